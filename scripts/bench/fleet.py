"""Measure a project of many small tables: what each table costs in a build, beside stock dbt incremental models.

    .venv/bin/python scripts/bench/fleet.py [--tables 100] [--changes 1000] [--some 10] [--without-stock]

Makes a project of Debezium tables of ten columns, declared as `highwater add-table` declares them, and prints seconds
and statements per table for the first build, a build in which every table got changes, one in which ten did, and one
in which none did: all of `highwater build` in a process that is warm, with its landing, data tests and summary. A stock
table is one incremental model that deduplicates the same records and merges them, in a project of its own; it reads
what has landed, so landing is not in its seconds, and it has no tests.
"""

import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import click
from formats import cpu_seconds
from merge import COPIED

FEED = "debezium_fleet"
KEY = "id:bigint"
COLUMNS = {
    "name": "string", "city": "string", "note": "string", "amount": "int", "points": "bigint", "ratio": "double",
    "active": "boolean", "kind": "string", "updated_at": "bigint",
}  # fmt: skip
FIRST = "fleet_000"
STOCK = """\
{{{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', file_format='delta') }}}}
with changes as (
    select
        from_json(cast(record as string), '{schema}') as change,
        landing_batch,
        source_line
    from {{{{ source('{feed}', '{table}') }}}}
    where entry = 'record' and source_table = '{table}'
    {{% if is_incremental() %}}
    and landing_batch > (select max(landing_batch) from {{{{ this }}}})
    {{% endif %}}
),
latest as (
    select
        *,
        row_number() over (
            partition by coalesce(change.after.id, change.before.id)
            order by change.source.lsn desc, source_line desc
        ) as place
    from changes
)
select change.after.*, landing_batch from latest where place = 1 and change.op <> 'd'
"""


def make_fleet(project: Path, folder: Path, tables: int) -> list[str]:
    """Make a project of so many Debezium tables and enter it; the first is declared, the others are made like it.

    Returns: the names of the tables.
    """
    for name in COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (project / name).is_dir() else shutil.copy)(project / name, folder / name)
    (folder / "snapshots").mkdir()
    (folder / ".spark").symlink_to(project / ".spark")
    os.chdir(folder)
    from highwater.scaffold.add_table import add_table, write_logged_tables

    columns = ",".join(f"{name}:{kind}" for name, kind in COLUMNS.items())
    add_table(f"{FEED}.{FIRST}", KEY, columns, "debezium-json", {"connector": "postgresql"})
    names = [f"fleet_{number:03}" for number in range(tables)]
    models = [path for path in folder.glob(f"models/*/*/*{FIRST}*") if path.is_file()]
    sources = folder / f"models/staging/{FEED}/_{FEED}__sources.yml"
    opening, tables_of_source = sources.read_text().split("    tables:\n")
    for name in names[1:]:
        for path in models:
            path.with_name(path.name.replace(FIRST, name)).write_text(path.read_text().replace(FIRST, name))
    entries = (tables_of_source.rstrip("\n") + "\n" for _ in names)
    sources.write_text(
        opening + "    tables:\n" + "".join(e.replace(FIRST, n) for e, n in zip(entries, names, strict=True))
    )
    write_logged_tables()
    return names


STOCK_PROJECT = """\
name: stock
profile: highwater
model-paths: [models]
flags:
  send_anonymous_usage_stats: false
"""
STOCK_SOURCES = """\
sources:
  - name: {feed}
    schema: raw
    tables:
"""


def add_stock(folder: Path, names: list[str]) -> None:
    """Write the same tables as stock dbt incremental models, a project of their own."""
    fields = ", ".join(f"{name} {kind}" for name, kind in {"id": "bigint", **COLUMNS}.items())
    row = f"struct<{', '.join(field.replace(' ', ': ', 1) for field in fields.split(', '))}>"
    schema = f"op string, before {row}, after {row}, source struct<lsn: bigint>"
    models = folder / "models"
    models.mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(STOCK_PROJECT)
    tables = "".join(f"      - {{name: {name}, identifier: {FEED}}}\n" for name in names)
    (models / "sources.yml").write_text(STOCK_SOURCES.format(feed=FEED) + tables)
    for name in names:
        text = STOCK.format(feed=FEED, table=name, schema=schema)
        (models / f"stock_{name}.sql").write_text(text)


def deliver(
    landing: Path, name: str, batch: int, changes: int, damaged: int = 0, salt: str = "", keys: int | None = None
) -> None:
    """Deliver changes of a table: inserts in the first batch, updates and deletes of them in later ones.

    Arguments:
        landing: the landing folder. name: of the table. batch: from 0. changes: how many.
        damaged: so many records that are none. salt: other values at the same positions.
        keys: from how many the later batches take theirs; without it as many as there are changes.
    """
    seed = random.Random(f"{name} {batch} {salt}")
    lines = []
    for number in range(changes):
        key = number if batch == 0 else seed.randrange(keys or changes)
        op = "c" if batch == 0 else seed.choice("uuud")
        row = {
            "id": key, "name": f"name {seed.randrange(9999)}", "city": seed.choice(["Oslo", "Rom", "東京"]),
            "note": None, "amount": seed.randrange(10**6), "points": seed.randrange(10**12), "ratio": seed.random(),
            "active": seed.random() < 0.5, "kind": seed.choice("abc"), "updated_at": 1_700_000_000_000 + number,
        }  # fmt: skip
        source = {
            "connector": "postgresql", "name": "fleet", "ts_ms": 1_700_000_000_000 + number, "snapshot": "false",
            "db": "fleet", "schema": "public", "table": name, "txId": batch + 1, "lsn": batch * 10**6 + number + 1,
        }  # fmt: skip
        before = None if op == "c" else row
        record = {"before": before, "after": None if op == "d" else row, "op": op, "ts_ms": 1, "source": source}
        lines.append(json.dumps(record))
    lines += ["no record"] * damaged
    file = landing / FEED / name / f"{batch:04}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")


def enter_lake(folder: Path) -> Path:
    """Let this process have a lake and a landing folder below a folder; return the project whose settings it has."""
    project = Path(__file__).parents[2]
    os.environ.update(HIGHWATER_LAKE=str(folder / "lake"), HIGHWATER_LANDING=str(folder / "landing"))
    os.environ["SPARK_CONF_DIR"] = str(project / "conf")
    (folder / "lake").mkdir()
    return project


@contextlib.contextmanager
def statements_seen():
    """Yield a list that gains every statement that this process sends to Spark."""
    from pyspark.sql import SparkSession

    seen, original = [], SparkSession.sql

    def sql(self, text, *arguments, **named):
        seen.append(text)
        return original(self, text, *arguments, **named)

    SparkSession.sql = sql
    try:
        yield seen
    finally:
        SparkSession.sql = original


def _measured(name: str, tables: int, run) -> None:
    with statements_seen() as seen:
        started, spent = time.monotonic(), cpu_seconds()
        run()
        seconds, spent = time.monotonic() - started, cpu_seconds() - spent
    print(
        f"{name:<40} {seconds:8.1f} s, CPU {spent:8.1f} s; a table {seconds / tables:6.2f} s, "
        f"CPU {spent / tables:6.2f} s, {len(seen) / tables:6.1f} statements",
        flush=True,
    )


def build() -> None:
    """Run `highwater build`; what it prints is not what is looked at."""
    from highwater.cli import commands

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        commands(["build"], standalone_mode=False)


def _build_stock(folder: Path) -> None:
    from dbt.cli.main import dbtRunner

    result = dbtRunner().invoke(["run", "--project-dir", str(folder), "--profiles-dir", "profiles", "--quiet"])
    if not result.success:
        raise SystemExit(f"stock dbt failed: {result.exception or result.result}")


@click.command()
@click.option("--tables", default=100)
@click.option("--changes", default=1000)
@click.option("--some", default=10, help="How many tables get changes in the third build.")
@click.option("--without-stock", is_flag=True)
def main(tables, changes, some, without_stock):
    """Measure in a project and a lake of their own, which are removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="highwater-fleet-"))
    try:
        project = enter_lake(folder)
        names = make_fleet(project, folder / "project", tables)
        if not without_stock:
            add_stock(folder / "stock", names)
        _measure(folder, names, changes, some, without_stock)
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def _measure(folder: Path, names: list[str], changes: int, some: int, without_stock: bool) -> None:
    from highwater.spark.spark import session

    session()
    for batch, (what, changed) in enumerate(
        [
            ("first build", names),
            ("every table changed", names),
            (f"{some} changed", names[:some]),
            ("none changed", []),
        ]
    ):
        for name in changed:
            deliver(folder / "landing", name, batch, changes)
        _measured(f"{what}: highwater build", len(names), build)
        if not without_stock:
            _measured(f"{what}: stock", len(names), lambda: _build_stock(folder / "stock"))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
