"""Measure ways to make pending rows base rows, beside stock dbt-spark's merge of the same changes.

    .venv/bin/python scripts/bench/compaction.py [--rows 4000000] [--rounds 2] [--pairs 4]

1 % of the keys are pending, at random. Each way works on a table of its own, in turns, in one session; at the end all
hold the same rows. The first round is cold. What came of it: docs/decisions/0019-passes-of-a-compaction.md.
"""

import os
import tempfile

import click
from merge import Figures

COLUMNS = ["k", "change_sequence_number", "change_hash"]
MERGED, DELETED, LISTED, STOCK = "one MERGE", "MERGE that deletes, UPDATE", "DELETE by literals, UPDATE", "stock merge"
TABLES = {MERGED: "bench.merged", DELETED: "bench.deleted", LISTED: "bench.listed", STOCK: "bench.stock"}


def rows_of(key: str, number: str, source: str) -> str:
    """Return a select of rows with these keys, numbered in their order."""
    values = [
        f"xxhash64({number}, {name[1:]}) as {name}"
        if name[0] == "c"
        else f"concat('text ', cast(xxhash64({number}, {name[1:]}) % 100000 as string)) as {name}"
        for name in COLUMNS[3:]
    ]
    return (
        f"select {key} as k, lpad(hex({number}), 16, '0') as change_sequence_number, "
        f"xxhash64({number}) as change_hash, {', '.join(values)} from {source}"
    )


def create(spark, rows: int) -> None:
    """Write a base for each way."""
    spark.sql("create schema if not exists bench")
    base = rows_of("id", "id", f"range({rows})")
    for way, table in TABLES.items():
        layered = "false as is_pending, *" if way != STOCK else "*"
        form = "partitioned by (is_pending) tblproperties ('delta.enableDeletionVectors' = 'true')"
        spark.sql(f"create table {table} using delta {form if way != STOCK else ''} as select {layered} from ({base})")


def change(spark, rows: int, batch: int) -> None:
    """Make changes of 1 % of the keys, and pending rows of them."""
    changes = rows_of(f"abs(xxhash64(id, {batch})) % {rows}", f"id + {rows} * {batch}", f"range({rows // 100})")
    spark.sql(
        "create or replace table bench.changes using delta as select latest.* from "
        f"(select max_by(struct(*), change_sequence_number) as latest from ({changes}) group by k)"
    )
    for way, table in TABLES.items():
        if way != STOCK:
            spark.sql(f"insert into {table} select true, * from bench.changes")


def floor(spark) -> None:
    """Scan key and order of the base, and deduplicate and write the changes."""
    spark.sql("select max(k), max(change_sequence_number) from bench.stock").collect()
    spark.sql(
        "create or replace table bench.floor using delta as select latest.* from "
        "(select max_by(struct(*), change_sequence_number) as latest from bench.changes group by k)"
    )


def run(spark, way: str) -> None:
    """Do it in one of the ways."""
    table = TABLES[way]
    if way == STOCK:
        spark.sql(
            f"merge into {table} as target using bench.changes as batch on target.k = batch.k "
            "when matched then update set * when not matched then insert *"
        )
    elif way == MERGED:
        assignments = ", ".join(f"{name} = change.{name}" for name in COLUMNS)
        spark.sql(
            f"merge into {table} as base using (select * from {table} where is_pending) as change on base.k = change.k "
            f"when matched and not base.is_pending then update set {assignments} when matched then delete"
        )
    else:
        pending = f"select k from {table} where is_pending"
        if way == DELETED:
            spark.sql(
                f"merge into {table} as base using ({pending}) as change on not base.is_pending and base.k = change.k "
                "when matched then delete"
            )
        else:
            keys = ", ".join(str(key) for (key,) in spark.sql(pending).collect())
            spark.sql(f"delete from {table} where not is_pending and k in ({keys})")
        spark.sql(f"update {table} set is_pending = false where is_pending")


@click.command()
@click.option("--rows", default=4_000_000)
@click.option("--rounds", default=2)
@click.option("--pairs", default=4, help="Columns of values, one of numbers and one of texts each.")
def main(rows, rounds, pairs):
    """Measure in a lake of its own, which is removed at the end."""
    COLUMNS.extend(f"{kind}{number}" for number in range(pairs) for kind in "ct")
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as temporary:
        os.environ["HIGHWATER_LAKE"] = f"{temporary}/lake"
        from highwater.spark import session

        spark = session(spark__master="local[2]", spark__driver__memory="5g")
        figures = Figures()
        create(spark, rows)
        for batch in range(1, rounds + 2):
            print(f"round {batch - 1} of {rounds}", flush=True)
            change(spark, rows, batch)
            figures.measure("the floor", lambda: floor(spark))
            for way in TABLES:
                figures.measure(way, lambda way=way: run(spark, way))
            sums = f"count(*), sum(xxhash64({', '.join(COLUMNS)}) % 1000)"
            held = {tuple(spark.sql(f"select {sums} from {table}").first()) for table in TABLES.values()}
            assert len(held) == 1, "the ways hold other rows"
        for way in TABLES:
            figures.compare(way, "the floor", "at most 3x")
        spark.stop()


if __name__ == "__main__":
    main()
