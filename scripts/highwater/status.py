"""Where every table stands: what has landed, what waits, what is pending, when it was compacted last."""

from highwater.add_table import logged_tables
from highwater.errors import UsageError
from highwater.rebuild import PENDING

STANDING = ["landed_at", "source_position", "waiting"]
LAYERED = ["base", "pending", "pending_percent", "tombstones", "compacted_at"]
COUNTS = ["read", "applied", "superseded", "duplicate", "rejected", "tied"]

RAW = """
    select
        '{entity}' as entity,
        max(landed_at) as landed_at,
        max_by(source_position, landing_batch) as source_position
    from raw.{feed}
    -- a file whose records tell their tables has none itself
    where entry <> 'record' and coalesce(source_table, '{table}') = '{table}'
"""

WAITING = """
    select '{entity}' as entity, count(*) as waiting
    from raw.{feed}
    where
        entry = 'record'
        and source_table = '{table}'
        and landing_batch > coalesce((select max(landing_batch) from lake.{entity}_changes where feed = '{feed}'), 0)
"""

LAYERS = """
    select
        '{entity}' as entity,
        count_if(not is_pending) as base,
        count_if({pending}) as pending,
        count_if(not is_pending and is_deleted) as tombstones
    from lake.{entity}_merged
"""


def status(spark, table: str | None = None) -> list[dict]:
    """Return a mapping for each table, or for one.

    Arguments:
        table: the entity, for example `customers`; None: every one.
    Returns: entity, feeds, when a batch landed last, the position at the source that it reached (where feeds
        tell it), records that wait for a build, rows of base and pending, the pending share in percent of the base,
        tombstones, when the table was compacted last, and from the ledger: read, applied, superseded, duplicate,
        rejected, tied.
    Raises: UsageError when there is no such entity.
    """
    known = dict(logged_tables())
    if table and table not in known:
        raise UsageError(f"there is no table {table!r}; tables are: {', '.join(sorted(known)) or 'none'}.")
    chosen = {table: known[table]} if table else known
    found = {entity: {"table": entity, "feeds": [feed for feed, _ in feeds]} for entity, feeds in chosen.items()}
    pairs = [
        {"entity": entity, "feed": feed, "table": name}
        for entity, feeds in chosen.items()
        for feed, name in feeds
        if spark.catalog.tableExists(f"raw.{feed}")
    ]
    logged = [pair for pair in pairs if spark.catalog.tableExists(f"lake.{pair['entity']}_changes")]
    for row in sorted(_rows(spark, RAW, pairs), key=lambda row: (row.landed_at is not None, row.landed_at)):
        found[row.entity] |= {"landed_at": row.landed_at, "source_position": row.source_position}
    for row in _rows(spark, WAITING, logged):
        found[row.entity]["waiting"] = found[row.entity].get("waiting", 0) + row.waiting
    merged = [entity for entity in chosen if spark.catalog.tableExists(f"lake.{entity}_merged")]
    for row in _rows(spark, LAYERS, [{"entity": entity, "pending": PENDING} for entity in merged]):
        share = round(100 * row.pending / row.base, 1) if row.base else None
        found[row.entity] |= {"base": row.base, "pending": row.pending, "pending_percent": share}
        found[row.entity] |= {"tombstones": row.tombstones, "compacted_at": _compacted_at(spark, row.entity)}
    if spark.catalog.tableExists("lake.ledger"):
        sums = ", ".join(f"sum({name}) as {name}" for name in COUNTS)
        for row in spark.sql(f"select table_name, {sums} from lake.ledger group by table_name").collect():
            if row.table_name in found:
                found[row.table_name] |= {name: row[name] for name in COUNTS}
    return [dict.fromkeys(["table", "feeds", *STANDING, *LAYERED, *COUNTS]) | values for values in found.values()]


def _rows(spark, select: str, values: list[dict]) -> list:
    return spark.sql(" union all ".join(select.format(**each) for each in values)).collect() if values else []


def _compacted_at(spark, entity: str):
    """Return when the merged table was compacted or rebuilt last, as its history tells: None, never."""
    for commit in spark.sql(f"describe history lake.{entity}_merged").collect():
        # taking a batch in is a merge too, confined to the pending rows
        if commit.operation == "MERGE" and "is_pending" not in (commit.operationParameters.get("predicate") or ""):
            return commit.timestamp
        # the first version is the table's first build, a later one a rebuild
        if commit.version > 0 and commit.operation.startswith(("CREATE OR REPLACE", "REPLACE")):
            return commit.timestamp
    return None
