"""Measure how `highwater build` grows with the base of a table, and with its history: landing, tests, summary included.

    .venv/bin/python scripts/bench/growth.py [--rows 1000000] [--times 20] [--batches 6] [--changes 1000]

One Debezium table of ten columns. Its first rows come through a build; the others are written into its log and its
merged table as one more batch, so that the base is above the bound (`base_rows`) below which every build merges. Each
build that is measured brings changes of random keys, and leaves them pending. Every table has a process of its own.
"""

import multiprocessing
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click
from fleet import FIRST, build, deliver, enter_lake, make_fleet
from merge import Figures

KEPT = 1000


def grow(spark, rows: int) -> None:
    """Write so many rows more into the log and the merged table, with keys behind those that are there."""
    for table in (f"lake.{FIRST}_changes", f"lake.{FIRST}_merged"):
        columns = spark.table(table).columns
        # values as different as those of real rows: what files pack away Spark takes for a small table
        others = {
            "id": f"many.id + {KEPT}", "change_hash": "xxhash64(many.id)", "name": "concat('name ', many.id)",
            "note": "md5(cast(many.id as string))", "points": "xxhash64(many.id, 1)", "ratio": "rand(1)",
        }  # fmt: skip
        picked = ", ".join(f"{others.get(column, f'one.`{column}`')} as `{column}`" for column in columns)
        spark.sql(
            f"insert into {table} by name select {picked} from range(0, {rows}, 1, 8) as many "
            f"cross join (select * from {table} where id is not null limit 1) as one"
        )


def measure(name: str, rows: int, before: int, batches: int, changes: int) -> dict:
    """Build a table of so many rows in a lake of its own, some batches without a measurement first."""
    from highwater.spark.spark import session
    from highwater.upkeep.compact import compact

    figures = Figures()
    folder = Path(tempfile.mkdtemp(prefix="highwater-growth-"))
    try:
        make_fleet(enter_lake(folder), folder / "project", 1)
        spark = session(spark__driver__memory="6g")
        deliver(folder / "landing", FIRST, 0, KEPT)
        build()
        grow(spark, rows)
        for batch in range(1, 1 + before + batches):
            deliver(folder / "landing", FIRST, batch, changes, keys=rows)
            if batch <= before:
                build()
            else:
                figures.measure(name, build)
        figures.measure(f"compaction, {name}", lambda: compact(spark, FIRST))
        _require_what_was_delivered(spark, rows, before + batches, changes)
        return dict(figures.found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _require_what_was_delivered(spark, rows: int, batches: int, changes: int) -> None:
    """Stop when the table is not what its changes make of it: then what was measured is not worth a figure."""
    expected = rows + KEPT - 1  # the row that was a pattern may be gone
    seen = spark.sql(f"select count(*) from lake.{FIRST}").first()[0]
    if not expected - batches * changes <= seen <= expected + 1:
        raise SystemExit(f"{seen:,} rows of {expected:,} are there after {batches} batches of {changes:,} changes")


@click.command()
@click.option("--rows", default=1_000_000)
@click.option("--times", default=20, help="How many times as big the big base is.")
@click.option("--batches", default=6)
@click.option("--changes", default=1000)
def main(rows, times, batches, changes):
    """Measure in lakes of their own, which are removed at the end."""
    figures = Figures()
    short, big, long = "the small table", f"{times} times the base", "ten times the history"
    alone = {"max_workers": 1, "max_tasks_per_child": 1, "mp_context": multiprocessing.get_context("spawn")}
    with ProcessPoolExecutor(**alone) as processes:
        for name, size, before in ((big, times * rows, 3), (long, rows, 30), (short, rows, 3)):
            figures.found |= processes.submit(measure, name, size, before, batches, changes).result()
    figures.compare(big, short, "CPU at most 1.1x")
    figures.compare(long, short, "CPU at most 1.1x")
    figures.compare(f"compaction, {big}", f"compaction, {short}", "less than the rows")


if __name__ == "__main__":
    main()
