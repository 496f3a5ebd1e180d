"""Tables of hundreds of columns: what is asked of a column is asked once, and the rows are right."""

import time

import pytest
from workshop import in_soak_but

FEED = "debezium_width"
ABSENT = "__debezium_unavailable_value"


def record(operation: str, lsn: int, row: dict) -> dict:
    source = {"name": "width", "db": "width", "schema": "public", "table": "t", "lsn": lsn, "snapshot": "false"}
    image = {"before": {"id": row["id"]}, "after": None} if operation == "d" else {"before": None, "after": row}
    return {**image, "source": source, "op": operation, "ts_ms": 1724900000000 + lsn}


def rows_of(workshop, table: str, columns: list[str]) -> dict:
    return {row["id"]: [row[name] for name in columns] for row in workshop.spark.table(table).collect()}


@pytest.mark.soak
@pytest.mark.parametrize("width", in_soak_but([600], [600, 1000]))
def test_a_wide_table_is_compiled_in_seconds_and_built(workshop, width):
    table = f"wide_{width}"
    columns = [f"c{number:03}" for number in range(width)]
    declared = ",".join(f"{name}:string" for name in columns)
    settings = {"connector": "postgresql"}
    workshop.add_table(f"{FEED}.{table}", "id:int", declared, "debezium-json", settings, history=True)
    rows = {key: [f"{key} {name}" for name in columns] for key in (1, 2, 3)}
    inserts = [record("c", key, {"id": key, **dict(zip(columns, values, strict=True))}) for key, values in rows.items()]
    workshop.deliver(f"{FEED}.{table}", "1.json", inserts)
    workshop.land_and_run(FEED, f"+{table}")
    assert rows_of(workshop, table, columns) == rows
    began = time.process_time()
    assert workshop.dbt("compile", "--select", f"+{table}").success
    assert time.process_time() - began < 10, "seconds of this process: macros ask again and again"
    # every other column is absent from the update of 1, and 2 is gone
    new = [f"new {name}" if place % 2 else ABSENT for place, name in enumerate(columns)]
    updates = [record("u", 11, {"id": 1, **dict(zip(columns, new, strict=True))}), record("d", 12, {"id": 2})]
    workshop.deliver(f"{FEED}.{table}", "2.json", updates)
    workshop.land_and_run(FEED, f"+{table}", f"{table}_history")
    rows[1] = [before if value == ABSENT else value for before, value in zip(rows[1], new, strict=True)]
    assert rows_of(workshop, table, columns) == {1: rows[1], 3: rows[3]}
    current = f"(select * from {table}_history where is_current) as history"
    workshop.spark.sql(f"select * from {current}").createOrReplaceTempView("current_of_wide")
    assert rows_of(workshop, "current_of_wide", columns) == {1: rows[1], 3: rows[3]}
    workshop.build(table, f"{table}_merged", f"{table}_history", command="test")
