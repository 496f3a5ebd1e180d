"""Measure a day: ten batches of 1 % random changes, and after each an analyst's aggregate over the whole table.

    .venv/bin/python scripts/bench/day.py [--rows 20000000] [--batches 10] [--iceberg JAR]

Ours takes the changes in with dbt and compacts when its rule fires (as delivered: a million pending rows, or 10 %);
stock dbt-spark's merge and Iceberg's merge-on-read take the same changes in, deduplicated before. Overhead is the CPU
time of all of it less that of the same questions to a plain table. The jar is the one that merge.py names.
"""

import click
from merge import Figures, ask, build_base, copy_base, dbt_run, lake_of_its_own, merge_into, stage

READ_PLAIN, READ_OURS, READ_ICEBERG = "reading a plain table", "reading ours", "reading Iceberg's"
TAKE_IN, STOCK, ICEBERG = "taking in, and compaction when due", "stock merge", "Iceberg's merge-on-read"


@click.command()
@click.option("--rows", default=20_000_000)
@click.option("--batches", default=10)
@click.option("--iceberg", type=click.Path(exists=True), help="Path of Iceberg's runtime jar.")
def main(rows, batches, iceberg):
    """Measure in a lake of its own, which is removed at the end."""
    figures = Figures()
    with lake_of_its_own(iceberg) as spark:
        build_base(spark, rows)
        copy_base(spark, bool(iceberg))
        # warm, as later batches find it
        stage(spark, rows, 2)
        dbt_run("--select", "wide_changes", "wide_merged")
        for table in filter(None, ["bench.stock", iceberg and "ice.bench.wide"]):
            spark.sql(merge_into(table))
            ask(spark, table)
        ask(spark, "lake.wide")
        for batch in range(3, batches + 3):
            print(f"batch {batch - 2} of {batches}", flush=True)
            run_batch(spark, figures, rows, batch, bool(iceberg))
    spent = {name: sum(cpu for _, cpu in rounds) for name, rounds in figures.found.items()}
    ours = spent[TAKE_IN] + spent[READ_OURS] - spent[READ_PLAIN]
    print(f"overhead of the day, CPU: ours {ours:.0f} s")
    print(f"stock merge {spent[STOCK]:.0f} s: ours is {ours / spent[STOCK]:.2f}x; wanted: at most 0.125x")
    if iceberg:
        theirs = spent[ICEBERG] + spent[READ_ICEBERG] - spent[READ_PLAIN]
        print(f"Iceberg's merge-on-read {theirs:.0f} s: ours is {ours / theirs:.2f}x; wanted: at most 0.6x")


def run_batch(spark, figures: Figures, rows: int, batch: int, with_iceberg: bool) -> None:
    """Let one batch arrive everywhere, and ask everywhere."""
    stage(spark, rows, batch)
    figures.measure(TAKE_IN, lambda: dbt_run("--select", "wide_changes", "wide_merged"))
    found = figures.measure(READ_OURS, lambda: ask(spark, "lake.wide"))
    figures.measure(STOCK, lambda: spark.sql(merge_into("bench.stock")))
    figures.measure(READ_PLAIN, lambda: ask(spark, "bench.stock"))
    assert ask(spark, "(select * from bench.stock where not is_deleted)") == found, "stock merge holds other rows"
    if with_iceberg:
        figures.measure(ICEBERG, lambda: spark.sql(merge_into("ice.bench.wide")))
        figures.measure(READ_ICEBERG, lambda: ask(spark, "ice.bench.wide"))


if __name__ == "__main__":
    main()
