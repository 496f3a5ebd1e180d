"""Rebuild a merged table from its log, or both from raw."""

import json

from highwater.catalog.as_built import declared_shape, remember
from highwater.catalog.entities import declared_columns, has_history, logged_tables, publish_groups, settings_of
from highwater.catalog.feeds import sql_text
from highwater.catalog.pending import log_went_back, merged_table, size_of
from highwater.catalog.tables import LISTS, count_anew, tables_in
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.project import require_space
from highwater.spark import dbt
from highwater.spark.spark import quoted
from highwater.upkeep.losses import losses, refuse_losses


def rebuild(spark, table: str) -> str:
    """Rebuild the merged table of an entity from its log, swapped in with one commit.

    Arguments:
        table: the entity, for example `customers`.
    Returns: a sentence with the number of rows.
    Raises: UsageError when there is no such entity or nothing has been built yet; CheckError when dbt fails.
    """
    merged = merged_table(spark, table)
    _refuse_older_log(spark, table)
    require_space(size_of(spark, f"lake.{merged}"), f"rebuilding {table}")
    status = dbt.run(["run-operation", "highwater.rebuild_merged", "--args", f"{{entity: {table}}}", "--quiet"])
    if status:
        raise CheckError(f"{merged} was not rebuilt; it is as it was.")
    rows = spark.table(f"lake.{merged}").count()
    return f"{merged}: {rows:,} keys, rebuilt from {table}_changes."


def _refuse_older_log(spark, table: str) -> None:
    """Refuse to rebuild a merged table from a log that lacks batches which the table has applied."""
    question = "select max(log_batch) from lake.`{table}_{layer}`"
    in_log = spark.sql(question.format(table=table, layer="changes")).first()[0]
    try:
        applied = spark.sql(question.format(table=table, layer="merged")).first()[0]
    except Exception:  # it is damaged, and is rebuilt for that reason
        return
    if said := log_went_back(table, in_log, applied):
        raise UsageError(f"{said}. Nothing was changed.")


# Records of a feed that the log has and raw no longer has, identified by file and line. A lost record has landed again
# if a later batch has it, classified as the same change; with other content of the file it is another record.
LOST = """
    select count(*) as records, min(landed_at) as first, max(landed_at) as last
    from lake.`{entity}_changes` as log
    where
        feed = '{feed}'
        and not is_derived
        and not exists (
            select 1
            from raw.{feed} as raw
            where
                raw.entry = 'record'
                and raw.source_table = {table}
                and raw.landing_batch <= log.landing_batch
                and raw.source_file <=> log.source_file
                and raw.source_line <=> log.source_line
        )
        and not exists (
            select 1
            from lake.`{entity}_changes` as again
            inner join raw.{feed} as raw
                on
                    raw.entry = 'record'
                    and raw.source_table = {table}
                    and raw.landing_batch = again.landing_batch
                    and raw.source_file <=> again.source_file
                    and raw.source_line <=> again.source_line
            where
                again.feed = '{feed}'
                and not again.is_derived
                and again.source_file <=> log.source_file
                and again.source_line <=> log.source_line
                and again.change_hash <=> log.change_hash
        )
"""
KEPT_PROPERTIES = ("delta.dataSkippingStatsColumns", "delta.enableTypeWidening", "delta.enableDeletionVectors")


def rebuild_from_raw(spark, table: str, accept_loss: bool = False) -> str:
    """Classify the raw records of an entity again with today's models: rebuild log, merged table, history and ledger.

    The new log is written next to the old one, from the same batches. The two are compared, and it stops if something
    would be lost. Otherwise the new log replaces the old one in one commit; merged table, history and ledger follow.
    Readers see the old rows until the commit of the merged table. Pending changes come from the log, so they
    change with its commit. Until `highwater vacuum`, the old log is an older version of the table. If it is
    killed, run it again.

    Arguments:
        table: the entity, for example `customers`. accept_loss: it may lose records and keys.
    Returns: sentences with the numbers of records and rows, and the version that holds the old log.
    Raises: UsageError when there is no such entity, nothing has been built yet, raw no longer has what the log has,
        or changes of a publish group are held; CheckError when dbt fails, a full load waits, or records or keys would
        be lost.
    """
    log = f"lake.`{table}_changes`"
    if not spark.catalog.tableExists(log):
        raise UsageError(f"the log of {table} has not been built yet; run: highwater build")
    sources = dict(logged_tables())[table]
    _refuse_loss(spark, table, sources)
    if settings_of(table).get("key"):
        merged_table(spark, table)
        _refuse_older_log(spark, table)
    _refuse_held(spark, table)
    built = spark.sql(f"select feed, max(landing_batch) as batch, max(log_batch) as log_batch from {log} group by feed")
    marks = {row.feed: row for row in built.collect()}
    if not marks:
        raise UsageError(f"the log of {table} is empty, so there is nothing to classify again; run: highwater build")
    upto = {feed: marks[feed].batch if feed in marks else 0 for feed, _ in sources}
    newest = max(row.log_batch for row in marks.values())
    require_space(size_of(spark, log), f"rebuilding {table}")
    _make_new_log(spark, table, {"entity": table, "log_batch": newest, "upto": upto})
    said = _compare(spark, table, log, accept_loss)
    old = spark.sql(f"describe history {log} limit 1").first()["version"]
    records = swap_in(spark, table)
    said.append(
        f"{table}_changes: {records:,} changes, classified again from raw; the log as it was is its version {old}."
    )
    if settings_of(table).get("key"):
        said.append(rebuild(spark, table))
    _follow(spark, table, [feed for feed, _ in sources])
    spark.sql(f"drop table if exists lake_rebuilt.`{table}_changes`")
    remember({table: declared_shape(table)})
    return "\n".join(said)


def _refuse_loss(spark, table: str, sources) -> None:
    if said := lost(spark, table, sources):
        raise UsageError(said)


def lost(spark, table: str, sources) -> str | None:
    """Return what to report about records that the log has and raw no longer has; None: raw has them all."""
    for feed, source_table in sources:
        lost = spark.sql(LOST.format(entity=table, feed=feed, table=sql_text(source_table))).first()
        if lost.records:
            return (
                f"raw.{feed} no longer has {lost.records:,} of the records that the log of {table} has, landed from "
                f"{lost.first:%Y-%m-%d %H:%M} to {lost.last:%Y-%m-%d %H:%M} UTC: they were dropped (retention_days of "
                "the feed), or raw went back. A log made from raw would lack them, and the rows that stand on them. "
                "Nothing was changed. Files that still lie in the landing folder land again, and are classified, by: "
                f"highwater build. A new full load repairs the rows: highwater resync {table} --from FILES"
            )
    return None


def _refuse_held(spark, table: str) -> None:
    """Refuse a table with changes that its publish group has not published yet."""
    if group := held_by(spark, table):
        raise UsageError(f"{table} has changes that {group} has not published yet; run: highwater build")


def held_by(spark, table: str) -> str | None:
    """Return the publish group that still holds back changes of a table; None: none does."""
    for group, entities in publish_groups().items():
        publications = f"lake.{group}_publications"
        if table not in entities or not spark.catalog.tableExists(publications):
            continue
        held = spark.sql(
            f"select (select max(log_batch) from lake.`{table}_changes`) > "
            f"(select max_by(log_batches, publication)['{table}'] from {publications})"
        ).first()[0]
        if held:
            return group
    return None


def _make_new_log(spark, table: str, rebuilt: dict) -> None:
    """Write a new log into the schema `lake_rebuilt`, from the same batches as the old one."""
    new = f"lake_rebuilt.`{table}_changes`"
    if spark.catalog.tableExists(new):
        spark.sql(f"drop table {new}")
    if dbt.run(["run", "--select", f"stg_*__{table}_changes", "--quiet"]):
        raise CheckError(f"the staging models of {table} could not be built; nothing was changed.")
    dbt.waiting.pop(table, None)
    variables = json.dumps({"rebuilt": rebuilt})
    if dbt.run(["run", "--select", f"{table}_changes", "--vars", variables, "--quiet"]):
        raise CheckError(f"the new log of {table} could not be made; nothing was changed.")
    if table in dbt.waiting:
        raise CheckError(f"{dbt.waiting[table]}\nNothing was changed. Then run the command again.")


def _compare(spark, table: str, log: str, accept_loss: bool) -> list[str]:
    new = f"lake_rebuilt.`{table}_changes`"
    found = losses(spark, table, log, new)
    if found and not accept_loss:
        spark.sql(f"drop table {new}")
    return refuse_losses(found, f"rebuilding {table} from raw", f"highwater rebuild {table} --from raw", accept_loss)


def allow_types(spark, entity: str) -> None:
    """Allow the declared types in the tables of an entity; Delta needs a table feature for `timestamp_ntz`."""
    if "timestamp_ntz" not in {column.data_type for column in declared_columns(entity)[0]}:
        return
    for name in (f"{entity}_{layer}" for layer in ("changes", "merged", "history")):
        table = f"lake.{quoted(name)}"
        if spark.catalog.tableExists(table) and "timestamp_ntz" not in dict(spark.table(table).dtypes).values():
            spark.sql(f"alter table {table} set tblproperties ('delta.feature.timestampNtz' = 'supported')")


def swap_in(spark, entity: str) -> int:
    """Replace the rows of the log with those of the new one in one commit; return how many there are."""
    log, new = f"lake.`{entity}_changes`", f"lake_rebuilt.`{entity}_changes`"
    allow_types(spark, entity)
    columns = spark.table(new).columns
    if sorted(spark.table(log).dtypes) == sorted(spark.table(new).dtypes):
        spark.sql(f"insert overwrite {log} by name select * from {new}")
    else:
        properties = dict(spark.sql(f"show tblproperties {log}").collect())
        kept = ", ".join(f"'{name}' = '{properties[name]}'" for name in KEPT_PROPERTIES if name in properties)
        spark.sql(
            f"create or replace table {log} using delta {f'tblproperties ({kept})' * bool(kept)} "
            f"as select {', '.join(f'`{name}`' for name in columns)} from {new}"
        )
    return spark.table(log).count()


def _follow(spark, table: str, feeds: list[str]) -> None:
    """Rebuild what is derived from the log of a table: its history, its rows in the ledger and the lists."""
    if has_history(table) and dbt.run(["run", "--full-refresh", "--select", f"{table}_history", "--quiet"]):
        raise CheckError(f"the history of {table} could not be made anew; run the command again.")
    count_anew(spark, table, feeds)
    listed = sorted(({"ledger"} | set(LISTS)) & tables_in(spark, "lake"))
    if dbt.run(["run", "--select", table, *listed, "--quiet"]):
        raise CheckError(f"what is derived from the log of {table} could not be made anew; run: highwater build")
