"""Measure what a build of a history costs against making it anew, and rows as of a position by the log and the history.

    .venv/bin/python scripts/bench/history.py [--keys 1000000] [--changed 1000] [--rounds 3]

A table of 12 columns; the log begins with three changes of every key. Each round changes some keys, half of them by a
change that comes late. Prints the rows that a build writes, and ratios of the medians of wall and CPU time.
"""

import os
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import click
from merge import Figures, contract, dbt_run, set_up, values

LOGGED = "'applied' as verdict, false as is_tied"
MODEL = "models/operations/wide_then.sql"


def append(spark, ids: str, number: str, batch: int) -> None:
    """Append one change per id to the log, number the place of the change among those of its key."""
    spark.sql(
        f"insert into lake.wide_changes select id as k, {values('id', number)}, "
        f"{contract(f'id * 1000 + {number}', chr(39) + 'update' + chr(39), batch)}, {LOGGED}, {batch} as log_batch "
        f"from ({ids})"
    )


def rows_then(relation: str, position: str) -> str:
    """Return SQL that reads the rows as of a position."""
    from highwater.spark import dbt

    Path(MODEL).write_text(
        f"select count(*), sum(c1) from ({{{{ rows_as_of(ref('{relation}'), 'wide', sequence='{position}') }}}})"
    )
    with redirect_stdout(StringIO()):
        status = dbt.run(["compile", "--quiet", "--select", "wide_then"])
    if status:
        raise SystemExit("dbt failed")
    return Path("target/compiled/highwater", MODEL).read_text()


@click.command()
@click.option("--keys", default=1_000_000)
@click.option("--changed", default=1_000)
@click.option("--rounds", default=3)
def main(keys, changed, rounds):
    """Measure everything in a lake of its own, which is removed at the end."""
    project = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as temporary:
        folder = Path(temporary) / "project"
        os.environ |= {"HIGHWATER_LAKE": f"{temporary}/lake", "HIGHWATER_LANDING": f"{temporary}/landing"}
        set_up(project, folder)
        from highwater.scaffold.add_table import add_table
        from highwater.spark.spark import session

        add_table("datastream_bench.wide", history=True)
        spark = session(spark__master="local[2]", spark__driver__memory="4g")
        run(spark, keys, changed, rounds)
        spark.stop()
        os.chdir(project)


def run(spark, keys: int, changed: int, rounds: int) -> None:
    """Build the history, then change keys and build it by both ways in turns."""
    figures = Figures()
    spark.sql("create schema if not exists bench")
    spark.sql(
        f"create table bench.staged using delta as select id as k, {values('id')}, "
        f"{contract('id', chr(39) + 'insert' + chr(39), 1)} from range(0)"
    )
    dbt_run("--select", "stg_datastream_bench__wide_changes", "wide_changes")
    for number in ("10", "20", "30"):
        append(spark, f"select id from range({keys})", number, 1)
    dbt_run("--select", "wide_history")
    for batch in range(2, rounds + 3):
        append(spark, f"select (id * 7919 + {batch}) % {keys} as id from range({changed})", f"{100 + batch}", batch)
        append(spark, f"select (id * 104729 + {batch}) % {keys} as id from range({changed})", "5", batch)
        figures.measure("a build", lambda: dbt_run("--select", "wide_history"))
        done = spark.sql("describe history lake.wide_history limit 1").first()["operationMetrics"]
        counted = {kind: int(done[f"numTargetRows{kind}"]) for kind in ("Inserted", "Updated", "Deleted")}
        print(f"  rows written: {counted} of {spark.table('lake.wide_history').count():,}", flush=True)
        figures.measure("anew", lambda: dbt_run("--select", "wide_history", "--full-refresh"))
    for relation in ("wide_changes", "wide_history"):
        sql = rows_then(relation, f"{keys * 500:016d}")
        for _ in range(rounds + 1):
            answer = figures.measure(f"rows as of a position, {relation}", lambda sql=sql: spark.sql(sql).collect())
        print(f"  {answer}")
    figures.compare("a build", "anew", "less, the more the fewer keys change")
    figures.compare("rows as of a position, wide_history", "rows as of a position, wide_changes", "less")


if __name__ == "__main__":
    main()
