"""Where every table stands: what has landed, what waits, what is pending, when it was compacted last."""

import re

from highwater.add_table import known_table, logged_tables
from highwater.feeds import sql_text
from highwater.landings import gone_back, noted_landing
from highwater.project import disabled_mark, patch_mark, step_under_way
from highwater.rebuild import PENDING, key_of
from highwater.retention import retention_of
from highwater.tables import of_each, tables_in

STANDING = [
    "key",
    "step",
    "landed_at",
    "landed_batch",
    "logged_batch",
    "source_position",
    "method",
    "disabled_since",
    "patched_since",
    "waiting",
    "gone_back",
]
LAYERED = ["changed_at", "lag_seconds", "base", "pending", "pending_percent", "tombstones"]
COMPACTED = ["compacted_at", "compacted_by", "retained"]
# where a horizon is declared: changes that were applied after it
HORIZON = ["retention_days", "late"]
# taking a batch in is a merge that is confined to the pending rows
IS_TAKING_IN = "is_pending"
COUNTS = ["read", "applied", "superseded", "duplicate", "rejected", "tied"]

# by table, so that one question answers for all tables of a feed; of the newest capture the highest position: what
# commits late is extracted late, and is lower
RAW = """
    select
        source_table,
        max(landed_at) as landed_at,
        max(landing_batch) as landed_batch,
        max(struct(
            coalesce(regexp_extract(source_file, '/capture-([0-9]+)/', 1), '') as capture,
            coalesce(try_cast(source_position as bigint), -9223372036854775808) as number,
            landing_batch,
            source_position
        )) filter (where source_position is not null) as position,
        max(struct(landing_batch, source_file)) filter (where source_file is not null) as file
    from raw.`{feed}`
    where entry <> 'record'
    group by source_table
"""
METHODS = {
    r"/capture-[0-9]+/rows-[0-9]+$": "row-version, deletes are not seen",
    r"/capture-[0-9]+/(baseline|extraction-[0-9]+)$": "changelog",
}

WAITING = """
    select any_value(logged.batch) as logged_batch, count(raw.entry) as waiting
    from (select coalesce(max(landing_batch), 0) as batch from lake.`{entity}_changes` where feed = '{feed}') as logged
    left join raw.`{feed}` as raw
        on raw.entry = 'record' and raw.source_table = {table} and raw.landing_batch > logged.batch
"""

LAYERS = """
    select
        count_if(not is_pending) as base,
        count_if({pending}) as pending,
        count_if(not is_pending and is_deleted) as tombstones,
        max(changed_at) as changed_at,
        timestampdiff(second, max(changed_at), max_by(landed_at, changed_at)) as lag_seconds
    from lake.`{entity}_merged`
"""


def status(spark, table: str | None = None) -> list[dict]:
    """Return a mapping for each table, or for one.

    Arguments:
        table: the entity, for example `customers`; None: every one.
    Returns: entity, feeds, key columns, the command that is writing to the lake or was killed while it did, when a
        batch landed last, the newest batch of each feed in raw and in the log, the position at the source that it
        reached (where feeds tell it), how a database's changes are found, since when they are no longer captured,
        since when a patch of the table is open, records that wait for a build, when the newest change was made at
        the source and how long it took to land, rows of base and pending, the pending share in percent of the base,
        tombstones, when the table was compacted last and what made it due, the copy that `--retain-previous` kept,
        for how many days tombstones and changes are kept, changes that were applied after that horizon, and from
        the ledger: read, applied, superseded, duplicate, rejected, tied; and how many rows are stale.
    Raises: UsageError when there is no such entity.
    """
    known = dict(logged_tables())
    chosen = {known_table(table): known[table]} if table else known
    step = step_under_way()
    found = {
        entity: {"table": entity, "feeds": [feed for feed, _ in feeds], "key": key_of(entity), "step": step}
        | {"landed_batch": {}, "logged_batch": {}}
        for entity, feeds in chosen.items()
    }
    raw, lake = tables_in(spark, "raw"), tables_in(spark, "lake")
    pairs = [(entity, feed, name) for entity, feeds in chosen.items() for feed, name in feeds if feed in raw]
    landed = _landed(spark, sorted({feed for _, feed, _ in pairs}))
    of_pairs = [(entity, feed, _of_table(landed[feed], name)) for entity, feed, name in pairs]
    for entity, feed, row in sorted(
        of_pairs, key=lambda each: (each[2]["landed_at"] is not None, each[2]["landed_at"])
    ):
        found[entity]["landed_batch"][feed] = row.pop("landed_batch")
        found[entity] |= row
    for entity, feeds in chosen.items():
        for feed, name in feeds:
            for fact, mark in [("disabled_since", disabled_mark), ("patched_since", patch_mark)]:
                path = mark(f"{feed}.{name}")
                if path.exists():
                    found[entity][fact] = path.read_text(errors="replace") or "an unknown time"
    logged = [pair for pair in pairs if f"{pair[0]}_changes" in lake]
    for (entity, feed, _), row in zip(
        logged, of_each(logged, lambda pair: _waiting(spark, *pair), "asking logs"), strict=True
    ):
        found[entity]["logged_batch"][feed] = row.logged_batch
        found[entity]["waiting"] = found[entity].get("waiting", 0) + row.waiting
    for values in found.values():
        values["gone_back"] = _gone_back(values, landed)
    merged = [entity for entity in chosen if f"{entity}_merged" in lake]
    for entity, layers in zip(
        merged, of_each(merged, lambda entity: _layers(spark, entity), "asking tables"), strict=True
    ):
        found[entity] |= layers
        if f"{entity}_merged_previous" in lake:
            found[entity]["retained"] = f"{entity}_merged_previous"
    if "ledger" in lake:
        sums = ", ".join(f"sum({name}) as {name}" for name in COUNTS)
        for row in spark.sql(f"select table_name, {sums} from lake.ledger group by table_name").collect():
            if row.table_name in found:
                found[row.table_name] |= {name: row[name] for name in COUNTS}
    if "stale_rows" in lake:
        stale = "select table_name, count(*) from lake.stale_rows group by table_name"
        counted = {table: count for table, count in spark.sql(stale).collect()}
        for entity, values in found.items():
            values["stale"] = counted.get(entity, 0)
    for entity in chosen:
        found[entity]["retention_days"] = retention_of(entity) or None
    if any(values["retention_days"] for values in found.values()) and "late_changes" in lake:
        late = "select table_name, count_if(verdict = 'applied') as late from lake.late_changes group by table_name"
        counted = {row.table_name: row.late for row in spark.sql(late).collect()}
        for entity, values in found.items():
            if "tombstones" in (values["retention_days"] or {}):
                values["late"] = counted.get(entity, 0)
    names = ["table", "feeds", *STANDING, *LAYERED, *COMPACTED, *HORIZON, *COUNTS, "stale"]
    return [dict.fromkeys(names) | values for values in found.values()]


def _gone_back(values: dict, landed: dict[str, dict]) -> str | None:
    """Return what to say of the raw tables of an entity that lack what had landed in them; None: none does."""
    said = []
    for feed in values["feeds"]:
        in_raw = max((row["landed_batch"] or 0 for row in landed.get(feed, {}).values()), default=0)
        known = max(noted_landing(feed)[0], values["logged_batch"].get(feed, 0))
        said.append(gone_back(feed, (in_raw, 0), (known, 0)))
    return " ".join(filter(None, dict.fromkeys(said))) or None


def _landed(spark, feeds: list[str]) -> dict[str, dict]:
    """Return by feed, and by table as its entries name it (None: they name none), what has landed."""
    rows = of_each(feeds, lambda feed: spark.sql(RAW.format(feed=feed)).collect(), "asking feeds")
    return {feed: {row.source_table: row for row in found} for feed, found in zip(feeds, rows, strict=True)}


def _of_table(landed: dict, table: str) -> dict:
    """Return what has landed for a table: a file whose records tell their tables has none itself."""
    rows = [landed[name] for name in {table, None} if name in landed]

    def highest(name: str):
        return max((row[name] for row in rows if row[name] is not None), default=None)

    position, file = highest("position"), highest("file")
    methods = (name for pattern, name in METHODS.items() if file and re.search(pattern, file.source_file))
    return {
        "landed_at": highest("landed_at"),
        "landed_batch": highest("landed_batch"),
        "source_position": position and position.source_position,
        "method": next(methods, None),
    }


def _waiting(spark, entity: str, feed: str, table: str):
    return spark.sql(WAITING.format(entity=entity, feed=feed, table=sql_text(table))).first()


def _layers(spark, entity: str) -> dict:
    row = spark.sql(LAYERS.format(entity=entity, pending=PENDING)).first()
    share = round(100 * row.pending / row.base, 1) if row.base else None
    return row.asDict() | {"pending_percent": share} | _compaction(spark, entity)


def compaction_of(commit) -> str | None:
    """Return by what a commit of a merged table's history compacted it; None: it did something else."""
    predicate = commit.operationParameters.get("predicate") or ""
    cause = re.search(r"compacted by ([\w ,.]+)", predicate)
    if cause:
        return cause[1]
    if commit.operation == "WRITE" and predicate not in ("", "[]"):
        return "highwater compact, by partitions"
    # the first version is the table's first build
    is_replaced = commit.operation.startswith(("CREATE OR REPLACE", "REPLACE"))
    if commit.version > 0 and (is_replaced or commit.operationParameters.get("mode") == "Overwrite"):
        return "highwater, written anew"
    return None


def _compaction(spark, entity: str) -> dict:
    """Return when the merged table was compacted or rebuilt last, and by what."""
    for commit in spark.sql(f"describe history lake.`{entity}_merged`").collect():
        if cause := compaction_of(commit):
            return {"compacted_at": commit.timestamp, "compacted_by": cause}
    return {}
