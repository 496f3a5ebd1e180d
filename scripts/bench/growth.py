"""Measure how a build grows with the history of a table, and with its base where the changed keys are close.

    .venv/bin/python scripts/bench/growth.py [--rows 2000000] [--batches 5] [--changes 20000]

A log of ten times as many batches as another one, and a base ten times as big; files of the base hold ranges of keys,
and the keys of a batch are neighbours. The small ones come last: what runs first is slower, whatever it is.
"""

import click
from merge import Figures, build_base, contract, dbt_run, lake_of_its_own, values

MODELS = ["--select", "wide_changes", "wide_merged"]


def stage_neighbours(spark, rows: int, batch: int, changes: int) -> None:
    """Put updates of keys that follow each other before the log, each batch elsewhere in the base."""
    first = rows // 20 * (batch % 17)
    spark.sql(
        f"insert overwrite bench.staged select {first} + id as k, {values('id', str(batch * 7))}, "
        f"{contract(f'{rows} * {batch} + id', chr(39) + 'update' + chr(39), batch)} from range({changes})"
    )


def build(spark, figures: Figures, name: str, rows: int, batches: range, changes: int) -> None:
    """Let batches arrive; the measured ones under a name."""
    from highwater.upkeep.compact import compact

    for batch in batches:
        stage_neighbours(spark, rows, batch, changes)
        if name:
            compact(spark, "wide")
            figures.measure(name, lambda: dbt_run(*MODELS))
            figures.measure(f"compaction, {name}", lambda: compact(spark, "wide"))
        else:
            dbt_run(*MODELS)


@click.command()
@click.option("--rows", default=2_000_000)
@click.option("--batches", default=5)
@click.option("--changes", default=20_000)
def main(rows, batches, changes):
    """Measure in lakes of their own, which are removed at the end."""
    figures, first = Figures(), 2 + batches
    for name, size, before in (
        ("ten times the history", rows, 10 * first),
        ("ten times the base", 10 * rows, first),
        ("a short history", rows, first),
    ):
        with lake_of_its_own() as spark:
            build_base(spark, size)
            build(spark, figures, "", size, range(2, before), changes)
            build(spark, figures, name, size, range(before, before + 5), changes)
    for prefix in ("", "compaction, "):
        short = f"{prefix}a short history"
        figures.compare(f"{prefix}ten times the history", short, "at most 1.1x")
        figures.compare(f"{prefix}ten times the base", short, "at most 2x")


if __name__ == "__main__":
    main()
