"""Measure taking in, compaction and reading against what others do: a table of 20 million rows, 1 % random changes.

    .venv/bin/python scripts/bench/merge.py [--rows 20000000] [--rounds 6] [--iceberg JAR]

The peers run on copies of the same table with the same changes, in turns with ours, in one session: stock dbt-spark's
merge on Delta as it comes, the same with deletion vectors, Iceberg's merge-on-read (with `--iceberg`, the path of
iceberg-spark-runtime-4.1_2.13-1.12.0.jar). Prints ratios of the medians of wall time and of CPU time; the first round
is cold and does not count.
"""

import os
import shutil
import tempfile
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import click
from formats import measured, medians, print_ratio

COPIED = [
    "dbt_project.yml",
    "profiles",
    "conf",
    "macros",
    "tests/generic",
    "models/operations",
    "models/docs.md",
]
COLUMNS = {
    "c1": "bigint", "c2": "bigint", "c3": "int", "c4": "decimal(12,2)", "c5": "decimal(38,9)", "c6": "double",
    "c7": "string", "c8": "string", "c9": "date", "c10": "timestamp", "c11": "boolean",
}  # fmt: skip
VALUES = {
    "bigint": "xxhash64({seed}, {name})",
    "int": "cast(xxhash64({seed}, {name}) % 1000 as int)",
    "decimal(12,2)": "cast(xxhash64({seed}, {name}) % 1000000 as decimal(12,2))",
    "decimal(38,9)": "cast(xxhash64({seed}, {name}) as decimal(38,9))",
    "double": "rand({name})",
    "string": "concat('text ', cast(xxhash64({seed}, {name}) % 100000 as string))",
    "date": "date_add(date'2020-01-01', cast(abs(xxhash64({seed}, {name})) % 2000 as int))",
    "timestamp": "timestamp_micros(1600000000000000 + abs(xxhash64({seed}, {name})) % 100000000000000)",
    "boolean": "xxhash64({seed}, {name}) % 2 = 0",
}
KEPT = ", ".join(["k", *COLUMNS]) + (
    ", change_sequence_number, change_type, is_deleted, changed_at, change_hash, source_file, source_line, feed, "
    "landing_batch, landed_at"
)
# dbt's own incremental models, which find nothing to do
STOCK_MODELS = {
    "stock_log": "materialized='incremental', incremental_strategy='append', file_format='delta'",
    "stock_table": "materialized='incremental', incremental_strategy='merge', unique_key='k', file_format='delta'",
}
QUESTION = "select c3, count(*), sum(c1), max(c5), min(c7) from {table} group by c3"


class Figures:
    """What each way cost in each round."""

    def __init__(self):
        self.found = defaultdict(list)

    def measure(self, name: str, run):
        """Run once, and keep its wall and CPU seconds under a name."""
        (wall, cpu), result = measured(run)
        self.found[name].append((wall, cpu))
        print(f"  {name}: {wall:.1f} s, CPU {cpu:.1f} s", flush=True)
        return result

    def compare(self, name: str, other: str, wanted: str) -> None:
        """Print how much one way costs of another."""
        if other in self.found:
            print_ratio(f"{name} of {other}", self.found[name], self.found[other], wanted)


def values(seed: str, offset: str = "0") -> str:
    """Return the select list of the eleven values of a row."""
    return ", ".join(
        VALUES[kind].format(seed=f"{seed} + {offset}", name=number) + f" as {name}"
        for number, (name, kind) in enumerate(COLUMNS.items(), 1)
    )


def contract(sequence: str, change_type: str, batch: int) -> str:
    """Return the select list of the contract's columns."""
    return f"""
        lpad(hex({sequence}), 16, '0') as change_sequence_number, {change_type} as change_type,
        {change_type} = 'delete' as is_deleted, timestamp'2024-01-01' as changed_at,
        cast(null as array<string>) as present_columns, false as is_derived, xxhash64({sequence}) as change_hash,
        'bench' as source_file, 1 as source_line, 'datastream_bench' as feed, {batch}L as landing_batch,
        timestamp_seconds(1700000000 + {batch}) as landed_at, cast(null as string) as rejection_reason,
        cast(null as string) as rejection_detail, cast(null as binary) as record
    """


def set_up(project: Path, folder: Path):
    """Make a project with one table, whose staging model reads prepared changes."""
    for name in COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (project / name).is_dir() else shutil.copy)(project / name, folder / name)
    (folder / ".spark").symlink_to(project / ".spark")
    os.chdir(folder)
    from highwater.scaffold.add_table import add_table

    add_table(
        "datastream_bench.wide", "k:bigint", ",".join(f"{name}:{kind}" for name, kind in COLUMNS.items()),
        "datastream-json",
    )  # fmt: skip
    (staging,) = folder.glob("models/staging/**/*.sql")
    # the raw table stays the model's source, for dbt's graph
    staging.write_text("-- {{ source('datastream_bench', 'wide') }}\nselect * from bench.staged\n")
    for name, config in STOCK_MODELS.items():
        (folder / f"models/{name}.sql").write_text(
            f"{{{{ config({config}) }}}}\nselect * from bench.staged where false\n"
        )


def dbt_run(*arguments: str) -> None:
    """Run dbt and stop when it fails."""
    from highwater.spark import dbt

    if dbt.run(["run", "--quiet", *arguments]):
        raise SystemExit("dbt failed")


def build_base(spark, rows: int) -> None:
    """Write the log's first batch and the merged table."""
    spark.sql("create schema if not exists bench")
    spark.sql(
        f"create or replace table bench.source using delta as select id as k, {values('id')}, "
        f"{contract('id', chr(39) + 'insert' + chr(39), 1)} from range({rows})"
    )
    spark.sql("create or replace table bench.staged using delta as select * from bench.source where false")
    dbt_run("--select", "stg_datastream_bench__wide_changes", "wide_changes", "wide_merged", "wide", *STOCK_MODELS)
    spark.sql(f"insert into lake.wide_merged ({KEPT}, log_batch) select {KEPT}, 1 from bench.source")
    # one row of the first batch: how far the log is
    spark.sql(
        "insert into lake.wide_changes select *, 'applied' as verdict, false as is_tied, "
        "1 as log_batch from bench.source where k = 0"
    )
    spark.sql("drop table bench.source")
    # it is another one over many rows
    dbt_run("--select", "wide")


def copy_base(spark, with_iceberg: bool) -> None:
    """Write the peers' copies of the merged table."""
    rows_of_base = f"select {KEPT} from lake.wide_merged"
    spark.sql(f"create or replace table bench.stock using delta as {rows_of_base}")
    spark.sql(
        "create or replace table bench.vectors using delta tblproperties "
        f"('delta.enableDeletionVectors' = 'true') as {rows_of_base}"
    )
    if with_iceberg:
        spark.sql("create namespace if not exists ice.bench")
        spark.sql(
            "create or replace table ice.bench.wide using iceberg tblproperties ('format-version' = '3', "
            f"'write.merge.mode' = 'merge-on-read') as {rows_of_base}"
        )


def stage(spark, rows: int, batch: int) -> None:
    """Put a batch of changes of 1 % of the keys before the log: nine in ten updates, the others inserts and deletes."""
    kind = "case when id % 20 = 0 then 'delete' when id % 20 = 1 then 'insert' else 'update' end"
    key = f"case when id % 20 = 1 then {rows} * {batch} + id else abs(xxhash64(id, {batch})) % {rows} end"
    spark.sql(
        f"insert overwrite bench.staged select {key} as k, {values('id', str(batch * 7))}, "
        f"{contract(f'{rows} * {batch} + id', kind, batch)} from range({rows // 100})"
    )
    latest = (
        "select latest.* from (select max_by(struct(*), change_sequence_number) as latest from bench.staged group by k)"
    )
    spark.sql(f"create or replace table bench.batch using delta as {latest}")


def merge_into(table: str) -> str:
    """Return what stock dbt-spark runs for an incremental model with a unique key."""
    return (
        f"merge into {table} as target using (select {KEPT} from bench.batch) as batch on target.k = batch.k "
        "when matched then update set * when not matched then insert *"
    )


def floor(spark) -> None:
    """Scan key and order of the base, and deduplicate and write the changes: less than this nobody can do."""
    spark.sql("select max(k), max(change_sequence_number) from bench.stock").collect()
    spark.sql(
        "create or replace table bench.floor using delta as select latest.* from (select max_by(struct(*), "
        "struct(change_sequence_number, change_hash)) as latest from bench.staged group by k)"
    )


@contextmanager
def lake_of_its_own(iceberg: str | None = None):
    """Give a session over a project with one table, whose lake is removed at the end."""
    project, iceberg = Path.cwd(), iceberg and str(Path(iceberg).resolve())
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as temporary:
        folder = Path(temporary) / "project"
        os.environ |= {"HIGHWATER_LAKE": f"{temporary}/lake", "HIGHWATER_LANDING": f"{temporary}/landing"}
        set_up(project, folder)
        from highwater.spark.spark import session

        settings = {
            "spark__master": "local[2]",
            "spark__driver__memory": "10g",
        }
        if iceberg:
            settings |= {
                "spark__jars": iceberg,
                "spark__sql__catalog__ice": "org.apache.iceberg.spark.SparkCatalog",
                "spark__sql__catalog__ice__type": "hadoop",
                "spark__sql__catalog__ice__warehouse": f"{temporary}/ice",
            }
        spark = session(**settings)
        yield spark
        spark.stop()
        os.chdir(project)


@click.command()
@click.option("--rows", default=20_000_000)
@click.option("--rounds", default=6)
@click.option("--iceberg", type=click.Path(exists=True), help="Path of Iceberg's runtime jar.")
def main(rows, rounds, iceberg):
    """Measure in a lake of its own, which is removed at the end."""
    with lake_of_its_own(iceberg) as spark:
        figures = Figures()
        run_rounds(spark, figures, rows, rounds, bool(iceberg))
        report(figures)


def run_rounds(spark, figures: Figures, rows: int, rounds: int, with_iceberg: bool) -> None:
    """One round: a batch arrives, is applied, is read, is compacted; the peers take the same batch."""
    from highwater.upkeep.compact import compact

    figures.measure("setting up", lambda: (build_base(spark, rows), copy_base(spark, with_iceberg)))
    models = ["--select", "wide_changes", "wide_merged"]
    for batch in range(2, rounds + 2):
        print(f"round {batch - 1} of {rounds}", flush=True)
        stage(spark, rows, batch)
        figures.measure("the floor of a merge", lambda: floor(spark))
        figures.measure("taking in", lambda: dbt_run(*models))
        version = spark.sql("describe history lake.wide_merged limit 1").first()["version"]
        figures.measure("nothing to do", lambda: dbt_run(*models))
        figures.measure("dbt's own time", lambda: dbt_run("--select", *STOCK_MODELS))
        spark.sql(
            "update bench.staged set landing_batch = landing_batch + 1000, landed_at = landed_at + interval 1 day"
        )
        figures.measure("the same batch again", lambda: dbt_run(*models))
        assert spark.sql("describe history lake.wide_merged limit 1").first()["version"] == version
        for _ in range(2):
            pending = figures.measure("reading with 1 % pending", lambda: ask(spark, "lake.wide"))
        figures.measure("compaction in place", lambda: compact(spark, "wide"))
        for _ in range(2):
            assert figures.measure("reading with nothing pending", lambda: ask(spark, "lake.wide")) == pending
        figures.measure("stock merge", lambda: spark.sql(merge_into("bench.stock")))
        for _ in range(2):
            figures.measure("reading a plain table", lambda: ask(spark, "bench.stock"))
        figures.measure("stock merge with deletion vectors", lambda: spark.sql(merge_into("bench.vectors")))
        for _ in range(2):
            figures.measure("reading a plain table with deletion vectors", lambda: ask(spark, "bench.vectors"))
        if with_iceberg:
            figures.measure("Iceberg's merge-on-read", lambda: spark.sql(merge_into("ice.bench.wide")))
        live = spark.sql(QUESTION.format(table="(select * from bench.stock where not is_deleted)")).collect()
        assert sorted(live) == sorted(pending), "the peers hold other rows"
        # marks of arrival rise
        spark.sql("delete from lake.wide_changes where landing_batch > 1000")


def ask(spark, table: str) -> list:
    """An analyst's aggregate over the whole table."""
    return sorted(spark.sql(QUESTION.format(table=table)).collect())


def report(figures: Figures) -> None:
    """Print the ratios that count."""
    figures.compare("taking in", "the floor of a merge", "at most 1.5x (dbt's own time is in ours)")
    figures.compare("the same batch again", "the floor of a merge", "at most 1.5x (dbt's own time is in ours)")
    figures.compare("compaction in place", "stock merge", "at most 0.125x")
    figures.compare("compaction in place", "stock merge with deletion vectors", "less than 1x")
    figures.compare("compaction in place", "Iceberg's merge-on-read", "less than 1x")
    figures.compare("compaction in place", "the floor of a merge", "at most 3x")
    figures.compare("reading with 1 % pending", "reading a plain table", "at most 1.3x of CPU")
    for plain in ("reading a plain table", "reading a plain table with deletion vectors"):
        figures.compare("reading with nothing pending", plain, "at most 1.05x of CPU")
    nothing, own = (medians(figures.found[name])[0] for name in ("nothing to do", "dbt's own time"))
    print(
        f"nothing to do, two models: {nothing:.1f} s; two incremental models of dbt's own: {own:.1f} s; "
        f"one of ours costs {(nothing - own) / 2:.2f} s; wanted: at most 0.5 s"
    )


if __name__ == "__main__":
    main()
