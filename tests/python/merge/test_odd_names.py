"""Keys of any text, and columns called as macros call their own: a table is somebody else's."""

import json

import pytest
from highwater.spark import dbt
from workshop import change

pytestmark = pytest.mark.long

TEXTS = ["", "null", "=x", "O'Neil \\", "zebra", "äöü", "\U0001f600", "a`b", "%s {{ x }}", "  "]
# as the questions of a log call what they count, and where positions fall
KEY = {"second": "int", "landed": "int", "is_timed": "int", "held": "string", "own": "string", "lost": "string"}
NAMES = ["records", "lowest", "highest", "is_falling", "rows", "due", "feeds", "since", "fall", "keys"]


def test_keys_of_any_text_are_merged_between_their_ends(workshop):
    """A base that is written in every build takes the ends of its keys from what the log has counted."""
    workshop.add_table("datastream_odd.oddities", "name:string,day:date,n:int", "v:string")
    workshop.configure("oddities", "merged", "{meta: {merged: {compact_when: always}}}")
    latest = {}
    for step in range(1, 4):
        records = []
        for at, text in enumerate(TEXTS):
            if (at + step) % 3 == 0:
                continue
            kind = "DELETE" if (at + step) % 5 == 0 else "UPDATE-INSERT"
            # every fourth comes in backward order
            sequence = 16 * (step if at % 4 else 6 - step) + at
            row = {"name": text, "day": "2024-02-29", "n": -at, "v": f"v{step}"}
            records.append(change(kind, f"{sequence:X}", row))
            latest[text] = max(latest.get(text, (0, None)), (sequence, None if kind == "DELETE" else f"v{step}"))
        workshop.deliver("datastream_odd.oddities", f"{step}.json", records)
        workshop.land("datastream_odd")
        workshop.build("+oddities")
    rows = workshop.rows("select name, v from oddities")
    assert len(rows) == len(dict(rows))
    assert dict(rows) == {text: v for text, (_, v) in latest.items() if v}


def timer(number, lsn, at):
    row = {name: f"v{lsn}" for name in NAMES} | dict.fromkeys(KEY, 1) | {"second": number, "held": "h"}
    source = {"connector": "postgresql", "schema": "s", "table": "timers", "lsn": lsn, "ts_ms": 1000 * at}
    source |= {"snapshot": "false", "sequence": json.dumps([None, str(lsn)])}
    return {"op": "c", "before": None, "after": row, "source": source, "ts_ms": 1000 * at}


def test_columns_may_be_called_as_macros_call_their_own(workshop):
    """Also where the positions of the table fall, and keys that had lost so are counted."""
    table = "debezium_odd.timers"
    columns = ",".join(f"{name}:string" for name in NAMES)
    key = ",".join(f"{name}:{kind}" for name, kind in KEY.items())
    workshop.add_table(table, key, columns, "debezium-json", {"connector": "postgresql"})
    for name, records in {
        "1.json": [timer(number, 100 + number, 100 + number) for number in range(4)],
        "2.json": [timer(0, 200, 200), timer(1, 50, 50)],  # the second one comes late
        "3.json": [timer(2, 10, 7200)],  # one that falls is doubtful
    }.items():
        workshop.deliver(table, name, records)
        workshop.land("debezium_odd")
        workshop.build("+timers")
    assert "timers" in dbt.doubtful
    workshop.deliver(table, "4.json", [timer(number, 20 + number, 7300 + number) for number in range(4)])
    workshop.land("debezium_odd")
    workshop.build("+timers", command="run")
    assert "timers waits: 4 records of debezium_odd" in dbt.waiting["timers"]
    rows = workshop.rows("select second, landed, held, `records`, keys from timers order by second")
    assert rows == [(number, 1, "h", f"v{lsn}", f"v{lsn}") for number, lsn in enumerate([200, 101, 102, 103])]
