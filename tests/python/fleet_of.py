"""A fleet of so many tables, in a process and a lake of its own: `python fleet_of.py TABLES FOLDER` prints what it saw.

One table is landed, built and checked as every table is. The logs, merged tables and views of the others are copies of
its files under their own names, which take a tenth of the time; raw is landed for all of them. Everything that asks all
tables runs on all of them: ledger, lists, publication, checks, summary, status, docs, reconciliation.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path

from repository import PROJECT

sys.path.insert(0, str(PROJECT / "scripts/bench"))

from fleet import FEED, FIRST, deliver, make_fleet

PER_TABLE = {"read": 7, "rejected": 1, "ties": 3}
OPERATIONS = ["ledger", "rejected_changes", "stale_rows", "sequence_ties", "late_changes", "unassigned_records"]
PUBLICATION = """\
{{{{ config(materialized='incremental') }}}}
{{{{ publication('everything', [{logs}]) }}}}
"""
# how the summary once asked: two scalar subqueries a table, around those of its view
OLD_SUMMARY = """
    select
        '{name}' as entity,
        (select count(*) from lake.{name}) as now,
        (select count(*) from lake.{name}_changes where verdict = 'applied') as pending
"""


class Seen:
    """The longest statement of each kind, and the most subqueries in one."""

    def __init__(self):
        self.kinds, self.subqueries, self.count = {}, {}, 0

    def add(self, text: str, frame) -> None:
        """Keep what is the most of its kind: a statement without the names of tables, comments and numbers."""
        plain = re.sub(r"/\*.*?\*/|--.*", "", text)
        kind = " ".join(re.sub(r"fleet_\d+|\d+", "#", plain).split())[:60]
        self.count += 1
        self.kinds[kind] = max(len(plain), self.kinds.get(kind, 0))
        subqueries = frame._jdf.queryExecution().analyzed().subqueriesAll().size()
        self.subqueries[kind] = max(subqueries, self.subqueries.get(kind, 0))


def watch(spark) -> Seen:
    """Let every statement of this process be seen, from now on."""
    seen, original = Seen(), type(spark).sql

    def sql(self, text, *arguments, **named):
        frame = original(self, text, *arguments, **named)
        seen.add(text, frame)
        return frame

    type(spark).sql = sql
    return seen


def copy_tables(spark, lake: Path, names: list[str]) -> None:
    """Give the other tables of the fleet what the first one has."""
    views = {path.stem: path.read_text() for path in Path("target/compiled").glob(f"**/models/**/*{FIRST}*.sql")}
    marts = {name: text for name, text in views.items() if name == FIRST or name.startswith("stg_")}
    for name in names[1:]:
        for layer in ("changes", "merged"):
            folder = lake.resolve() / "tables/lake.db" / f"{name}_{layer}"
            shutil.copytree(folder.with_name(f"{FIRST}_{layer}"), folder)
            spark.sql(f"create table lake.{name}_{layer} using delta location '{folder}'")
        for view, text in marts.items():
            spark.sql(f"create view lake.{view.replace(FIRST, name)} as {text.replace(FIRST, name)}")


def dbt(*arguments: str) -> dict[str, str]:
    """Run dbt; return the status of each node by name."""
    from dbt.cli.main import dbtRunner

    result = dbtRunner(manifest=parsed).invoke([*arguments, "--quiet"])
    if result.exception:
        raise result.exception
    return {r.node.name: str(r.status) for r in getattr(result.result, "results", [])}


def main(tables: int, folder: Path) -> dict:
    """Make the fleet and run everything that asks all of its tables."""
    from dbt.cli.main import dbtRunner
    from highwater.builds.last_build import summary
    from highwater.catalog.feeds import declared_feeds
    from highwater.landing.landing import land
    from highwater.reconcile.reconcile import reconcile
    from highwater.spark.spark import reading_session, session
    from highwater.status.status import status

    global parsed
    lake, landing = folder / "lake", folder / "landing"
    lake.mkdir(parents=True)
    os.environ |= {"HIGHWATER_LAKE": str(lake), "HIGHWATER_LANDING": str(landing), "DBT_PROFILES_DIR": "profiles"}
    os.environ |= {"HIGHWATER_EXPORTS": str(folder / "exports"), "SPARK_CONF_DIR": str(PROJECT / "conf")}
    names = make_fleet(PROJECT, folder / "project", tables)
    logs = ", ".join(f"ref('{name}_changes')" for name in names)
    Path("models/publications/fleet").mkdir(parents=True)
    Path("models/publications/fleet/everything_publications.sql").write_text(PUBLICATION.format(logs=logs))
    for name in names:
        deliver(landing, name, 0, 3, damaged=1)
        shutil.copy(landing / FEED / name / "0000.json", landing / FEED / "kept")
        deliver(landing, name, 0, 3, salt="tied")
        shutil.move(landing / FEED / name / "0000.json", landing / FEED / name / "0001.json")
        shutil.move(landing / FEED / "kept", landing / FEED / name / "0000.json")
    spark = session()
    parsed = dbtRunner().invoke(["parse", "--quiet"]).result
    land(spark, declared_feeds()[FEED])
    dbt("run", "--select", "rejection_reasons")
    found = {"first": dbt("build", "--select", f"+{FIRST}", "--exclude-resource-types", "unit_test")}
    copy_tables(spark, lake, names)
    seen = watch(spark)
    found["operations"] = dbt("build", "--select", *OPERATIONS, "everything_publications")
    found["counts"] = {
        "read": spark.sql("select sum(read) from ledger").first()[0],
        "rejected": spark.sql("select count(*) from rejected_changes").first()[0],
        "ties": spark.sql("select count(*) from sequence_ties").first()[0],
        "published": spark.sql("select cardinality(log_batches) from everything_publications").first()[0],
    }
    before = seen.count
    dbt("run", "--select", *OPERATIONS, "everything_publications")
    found["idle"] = seen.count - before
    found["summary"] = summary(spark)[0].splitlines()
    found["status"] = [(row["table"], row["read"], row["rejected"], row["waiting"]) for row in status(spark)]
    # a command of its own has no views that a build before it left in the session
    for view in filter(lambda row: row.isTemporary, spark.sql("show views").collect()):
        spark.catalog.dropTempView(view.viewName)
    found["docs"] = dbt("docs", "generate", "--no-compile") is not None and Path("target/catalog.json").exists()
    found["reconciled"] = len(reconcile(spark, (), None).comparisons)
    found |= {"kinds": dict(seen.kinds), "subqueries": dict(seen.subqueries)}
    planted = Seen()
    old = " union all ".join(OLD_SUMMARY.format(name=name) for name in names)
    planted.add(old, spark.sql(old))
    found["planted"] = {"kinds": planted.kinds, "subqueries": planted.subqueries}
    spark.stop()
    with reading_session() as reader:
        found["queried"] = reader.sql(f"select count(*) from {names[-1]}").first()[0]
    return found


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), Path(sys.argv[2]))))
