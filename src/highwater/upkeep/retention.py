"""`highwater vacuum`: drop what is older than its declared retention, combine small files, delete unneeded files."""

from datetime import datetime, timedelta, timezone

from highwater.catalog.entities import (
    declaration_of,
    has_history,
    known_table,
    logged_tables,
    publish_groups,
    settings_of,
)
from highwater.catalog.feeds import Feed, days, declared_feeds
from highwater.catalog.models import models
from highwater.catalog.tables import LISTS
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.faults import doing, trouble_of_one
from highwater.runtime.project import stored
from highwater.spark import dbt
from highwater.spark.lake_tables import is_table
from highwater.spark.lease import LEASE
from highwater.spark.spark import quoted

# up to which batch the ledger has counted the records of a feed, by entity
MARKS = "select table_name, max(landing_batch) as mark from lake.ledger where feed = '{feed}' group by table_name"
GATHERED = ["ledger", *sorted(LISTS), "unassigned_records", "gathered_batches"]
# remove records from a list that their log no longer has
FORGET = """
    merge into lake.{listed} as listed
    using (
        select distinct feed, landing_batch, source_file, source_line
        from lake.{listed}
        where table_name = '{entity}' and landed_at < timestamp '{before}'
        except
        select feed, landing_batch, source_file, source_line from lake.`{entity}_changes`
    ) as gone
        on
            listed.table_name = '{entity}'
            and listed.feed = gone.feed
            and listed.landing_batch = gone.landing_batch
            and listed.source_file <=> gone.source_file
            and listed.source_line <=> gone.source_line
    when matched then delete
"""
EVERY_BATCH = 2**63 - 1
DROP_RECORDS = """
    merge into {raw_table} as raw
    using may_go
        on
            raw.entry = 'record'
            and raw.landed_at < timestamp '{before}'
            and raw.{of_what} <=> may_go.name
            and raw.landing_batch <= may_go.mark
    when matched then delete
"""
# the newest export of each table, which the next comparison reads
NEWEST_EXPORTS = """
    select max_by(source_file, struct(landing_batch, source_file))
    from {raw_table} where entry = 'file' group by source_table
"""


def vacuum(spark, table: str | None = None) -> list[str]:
    """Drop what is older than its declared retention, combine small files, and delete files that no version of the last
    week needs.

    Without a declared retention no rows are dropped. Queries of a table show the same rows in any case. What was
    dropped can be read in older versions for another week.

    Arguments:
        table: the entity, for example `customers`; None: all of them, and the raw tables.
    Returns: one line per table with dropped rows or combined files.
    Raises: UsageError when there is no such entity, or a retention is declared wrongly; CheckError when dbt fails, or
        when a table cannot be read or written: the other tables are done nevertheless.
    """
    known = dict(logged_tables())
    entities = [known_table(table)] if table else list(known)
    feeds = {} if table else declared_feeds()
    kept = {entity: retention_of(entity) for entity in entities}
    lines = []
    for entity, retention in kept.items():
        if "tombstones" in retention and spark.catalog.tableExists(f"lake.{entity}_merged"):
            lines += _drop(spark, entity, "purge_tombstones", "merged", "tombstone", retention["tombstones"])
        if "changes" in retention and spark.catalog.tableExists("lake.ledger"):
            lines += _drop(spark, entity, "drop_old_changes", "changes", "change", retention["changes"])
            _forget(spark, entity, retention["changes"])
    for feed in feeds.values():
        if feed.retention_days and spark.catalog.tableExists(feed.raw_table):
            lines += _drop_records(spark, feed, known)
    names = [f"lake.{entity}_{layer}" for entity in entities for layer in ("changes", "merged", "history")]
    if not table:
        names += [f"lake.{name}" for name in GATHERED]
        names += [f"lake.{group}_publications" for group in publish_groups()]
    if not table and is_table(LEASE):
        spark.sql(f"vacuum delta.{quoted(stored(LEASE))}")
    failures = []
    for name in filter(spark.catalog.tableExists, [*names, *(feed.raw_table for feed in feeds.values())]):
        try:
            with doing(f"the vacuum of {name}"):
                lines += _gather(spark, name)
        except Exception as error:
            failures.append(trouble_of_one(error))
    if failures:
        raise CheckError("\n".join([*lines, *failures]))
    return lines or ["nothing is older than its retention, and every table has few files already"]


def _gather(spark, name: str) -> list[str]:
    """Combine the small files of a table, delete those that no version of the last week needs; return what was done."""
    done = spark.sql(f"optimize {name}").first()["metrics"]
    spark.sql(f"vacuum {name}")
    files = done["numFilesRemoved"]
    return [f"{name}: {files:,} small file{'s'[: files != 1]} became {done['numFilesAdded']:,}"] if files else []


def retention_of(entity: str) -> dict[str, int]:
    """Return for how many days an entity keeps `tombstones` and `changes`, as far as its log declares it.

    Raises: UsageError naming the file, the value and what is allowed.
    """
    settings = settings_of(entity)
    declared = settings.get("retention_days", {})
    where = str(declaration_of(entity))
    if not isinstance(declared, dict) or set(declared) - {"tombstones", "changes"}:
        raise UsageError(
            f"{where}: retention_days is {declared!r}; it must be a mapping of tombstones and changes to days, "
            "either or both, for example {tombstones: 90, changes: 400}."
        )
    kept = {name: days(where, f"{name} of retention_days", value) for name, value in declared.items()}
    if "tombstones" in kept and not settings.get("key"):
        raise UsageError(f"{where}: {entity} has no key, so it has no tombstones; leave them out of retention_days.")
    if kept.get("changes", kept.get("tombstones", 0)) < kept.get("tombstones", 0):
        raise UsageError(
            f"{where}: changes are kept for {kept['changes']} days and tombstones for {kept['tombstones']}; "
            "changes must be kept as long as tombstones or longer."
        )
    if "changes" in kept and has_history(entity):
        raise UsageError(
            f"{where}: {entity} has a history, which is made from its changes, so they stay; take `changes` out of "
            f"retention_days, or remove the model {entity}_history."
        )
    return kept


def _before(retention: int) -> str:
    """Return the time, in UTC, before which rows must have landed to be dropped."""
    return (datetime.now(timezone.utc) - timedelta(days=retention)).strftime("%Y-%m-%d %H:%M:%S")


def _drop(spark, entity: str, operation: str, layer: str, noun: str, retention: int) -> list[str]:
    """Run an operation that drops rows of a layer of an entity; return a line if it dropped any."""
    name = f"lake.{entity}_{layer}"
    rows = spark.table(name).count()
    arguments = f"{{entity: {entity}, landed_before: '{_before(retention)}'}}"
    if dbt.run(["run-operation", f"highwater.{operation}", "--args", arguments, "--quiet"]):
        raise CheckError(f"{name}: what is older than {retention} days could not be dropped.")
    return _line(name, rows - spark.table(name).count(), noun, retention)


def _forget(spark, entity: str, retention: int) -> None:
    """Remove changes that the log of an entity no longer has from the lists of rejected, tied and late changes.

    Not from `stale_rows`: such a row is still stale.
    """
    for listed in filter(lambda name: spark.catalog.tableExists(f"lake.{name}"), LISTS - {"stale_rows"}):
        spark.sql(FORGET.format(listed=listed, entity=entity, before=_before(retention)))


def _drop_records(spark, feed: Feed, known: dict) -> list[str]:
    """Drop old records of a feed, not the entries of its files; return a line if there were any."""
    before = _before(feed.retention_days)
    of_what = "source_file" if feed.role == "export" else "source_table"
    old = f"select distinct {of_what} from {feed.raw_table} where entry = 'record' and landed_at < timestamp '{before}'"
    names = [name for (name,) in spark.sql(old).collect()]
    marks = _exports_that_may_go(spark, feed, names) if feed.role == "export" else _marks(spark, feed, known, names)
    if not marks:
        return []
    spark.createDataFrame(list(marks.items()), "name string, mark bigint").createOrReplaceTempView("may_go")
    dropped = spark.sql(DROP_RECORDS.format(raw_table=feed.raw_table, before=before, of_what=of_what)).first()[0]
    if spark.catalog.tableExists("lake.unassigned_records"):
        spark.sql(
            f"delete from lake.unassigned_records where feed = '{feed.name}' and landed_at < timestamp '{before}'"
        )
    return _line(feed.raw_table, dropped, "record", feed.retention_days)


def _exports_that_may_go(spark, feed: Feed, files: list[str]) -> dict[str, int]:
    """Return those of these files that no staging model reads and that are not the newest export of a table."""
    kept = {file for (file,) in spark.sql(NEWEST_EXPORTS.format(raw_table=feed.raw_table)).collect()}
    for model in models("staging"):
        if not model.startswith(f"stg_{feed.name}__"):
            continue
        if not spark.catalog.tableExists(f"lake.{model}"):
            return {}
        kept |= {file for (file,) in spark.sql(f"select distinct source_file from lake.{model}").collect()}
    return {file: EVERY_BATCH for file in files if file not in kept}


def _marks(spark, feed: Feed, known: dict, tables: list[str | None]) -> dict[str | None, int]:
    """Return up to which batch the records of these tables are in every log that reads them, and counted.

    A declared table may still get its models: its log then begins with the first record in raw. So its records stay.
    """
    declared = {feed.source_table(table) for table in feed.tables}
    marks = {table: EVERY_BATCH for table in tables if table not in declared}
    if spark.catalog.tableExists("lake.ledger"):
        recorded = {row.table_name: row.mark for row in spark.sql(MARKS.format(feed=feed.name)).collect()}
        for entity, sources in known.items():
            for _, table in filter(lambda source: source[0] == feed.name and source[1] in tables, sources):
                mark = recorded.get(entity, 0)
                marks[table] = min(mark, marks.get(table, mark))
    return marks


def _line(name: str, dropped: int, noun: str, retention: int) -> list[str]:
    if not dropped:
        return []
    return [f"{name}: {dropped:,} {noun}{'s'[: dropped != 1]} older than {retention} days dropped"]
