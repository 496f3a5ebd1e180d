"""Replay rejected records after the model or the declaration that rejected them was fixed."""

from highwater.catalog.entities import key_of, known_table, logged_tables
from highwater.catalog.feeds import declared_feeds, sql_text
from highwater.landing.raw_table import append, next_batch
from highwater.runtime.errors import CheckError, UsageError
from highwater.spark import dbt
from highwater.upkeep.losses import losses, refuse_losses

# Records that are accepted now, and those of the same key and position in their file, which may have been accepted
# before: only together do they keep their ordinals. Those that were accepted before become duplicates.
REPAIRED = """
    select distinct companion.source_file, companion.source_line
    from (
        select staged.*
        from lake.`{staging}` as staged
        inner join (
            select source_file, source_line
            from lake.`{entity}_changes`
            where feed = '{feed}' and not is_derived
            group by source_file, source_line
            having every(verdict = 'rejected')
        ) as rejected
            on staged.source_file = rejected.source_file and staged.source_line = rejected.source_line
        where staged.rejection_reason is null
    ) as repaired
    inner join lake.`{staging}` as companion
        on
            companion.rejection_reason is null
            and companion.source_file = repaired.source_file
            and companion.landing_batch = repaired.landing_batch
            and regexp_replace(companion.change_sequence_number, '/[0-9a-f]+$', '')
            = regexp_replace(repaired.change_sequence_number, '/[0-9a-f]+$', '')
            {same_key}
"""

REPLAYED = """
    select
        'record' as entry, original.source_table, original.source_file, original.source_line, original.problem,
        original.record, original.fields, cast(null as bigint) as file_records, cast(null as bigint) as file_size,
        cast(null as timestamp) as file_modified_at, cast(null as string) as file_hash,
        cast(null as string) as source_position
    from (
        select *, row_number() over (partition by source_file, source_line order by landing_batch) as arrival
        from {raw_table}
        where entry = 'record' and source_table = {table}
    ) as original
    inner join replayed
        on original.source_file = replayed.source_file and original.source_line = replayed.source_line
    where original.arrival = 1
    union all
    select
        'replayed', {table}, cast(null as string), cast(null as int), cast(null as string), cast(null as binary),
        cast(null as map<string, string>), cast({records} as bigint), cast(null as bigint), cast(null as timestamp),
        cast(null as string), cast(null as string)
"""


def replay(spark, entity: str, accept_loss: bool = False) -> str:
    """Append rejected records of an entity that its staging models accept now to raw, as a new batch.

    They keep file and line. The log classifies them like any others, so nothing is applied twice, and the ledger shows
    both batches. If the declaration rejects records that the log has accepted, it stops.

    Arguments:
        entity: for example `customers`. accept_loss: the models may reject records that the log has accepted.
    Returns: a sentence for each feed.
    Raises: UsageError when there is no such entity or it has not been built; CheckError when dbt fails, or when the
        models reject records that the log has accepted.
    """
    tables = dict(logged_tables())
    known_table(entity)
    if not spark.catalog.tableExists(f"lake.{entity}_changes"):
        raise UsageError(f"the log of {entity} has not been built yet; run: highwater build")
    if dbt.run(["run", "--select", f"stg_*__{entity}_changes", "--quiet"]):
        raise CheckError(f"the staging models of {entity} could not be built; nothing was replayed.")
    said = []
    for feed, _ in tables[entity]:
        found = losses(
            spark, entity, f"lake.`{entity}_changes`", f"lake.`stg_{feed}__{entity}_changes`", is_rebuilt=False
        )
        doing = f"what is declared now takes no longer what the log of {entity} has; a rebuild"
        said += refuse_losses(found, doing, f"highwater replay {entity}", accept_loss)
    return "\n".join(said + [_replay_feed(spark, entity, feed, table) for feed, table in tables[entity]])


def _replay_feed(spark, entity: str, feed_name: str, table: str) -> str:
    feed = declared_feeds()[feed_name]
    same_key = "".join(f"and companion.`{column}` <=> repaired.`{column}` " for column in key_of(entity))
    repaired = REPAIRED.format(
        staging=f"stg_{feed_name}__{entity}_changes", entity=entity, feed=feed_name, same_key=same_key
    )
    replayed = spark.sql(repaired).localCheckpoint()
    records = replayed.count()
    if not records:
        return f"{feed_name}: no rejected record of {entity} is accepted now."
    replayed.createOrReplaceTempView("replayed")
    number, at = next_batch(spark, feed)
    append(
        spark.sql(REPLAYED.format(raw_table=feed.raw_table, table=sql_text(table), records=records)), feed, number, at
    )
    noun, verb = ("record", "arrives") if records == 1 else ("records", "arrive")
    return f"{feed_name}: {records:,} {noun} of {entity} {verb} again as batch {number}. Now run: highwater build"
