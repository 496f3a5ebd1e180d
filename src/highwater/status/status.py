"""Where every table stands: what has landed, what waits, what is pending, when it was compacted last."""

import re
from collections.abc import Iterable, Iterator

from highwater.builds import account
from highwater.catalog.entities import key_of, known_table, logged_tables, settings_of
from highwater.catalog.feeds import sql_text
from highwater.catalog.pending import are_pending, log_went_back
from highwater.catalog.tables import Trouble, by_itself, of_each, tables_in
from highwater.landing.landings import gone_back, noted_landing
from highwater.runtime.state import disabled_mark, marked_since, patch_mark
from highwater.spark.lease import step_under_way
from highwater.upkeep.epoch import fallen_in_log
from highwater.upkeep.retention import retention_of

STANDING = [
    "key",
    "step",
    "last_build",
    "landed_at",
    "landed_batch",
    "logged_batch",
    "source_position",
    "method",
    "disabled_since",
    "patched_since",
    "waiting",
    "gone_back",
    "trouble",
]
LAYERED = ["rows", "changed_at", "lag_seconds", "base", "pending", "pending_percent", "tombstones"]
COMPACTED = ["compacted_at", "compacted_by", "retained"]
# where a horizon is declared: changes that were applied after it
HORIZON = ["retention_days", "late"]
# where changes have a clock: those that lost to older ones
FALLEN = ["fallen", "fallen_since"]
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
    select any_value(logged.batch) as logged_batch, any_value(logged.newest) as newest, count(raw.entry) as waiting
    from (
        select
            coalesce(max(landing_batch) filter (where feed = '{feed}'), 0) as batch,
            coalesce(max(log_batch), 0) as newest
        from lake.`{entity}_changes`
    ) as logged
    left join raw.`{feed}` as raw
        on raw.entry = 'record' and raw.source_table = {table} and raw.landing_batch > logged.batch
"""

LAYERS = """
    select
        count_if(in_base and change_type <> 'truncate') as base,
        count_if(not in_base) as pending,
        count_if(in_base and change_type <> 'truncate' and is_deleted) as tombstones,
        max(log_batch) filter (where in_base) as applied_batch,
        max(changed_at) as changed_at,
        timestampdiff(second, max(changed_at), max_by(landed_at, changed_at)) as lag_seconds
    from (
        select true as in_base, change_type, is_deleted, log_batch, changed_at, landed_at
        from lake.`{entity}_merged`
        union all
        select false as in_base, change_type, is_deleted, log_batch, changed_at, landed_at
        from lake.`{entity}_changes`
        where {pending}
    )
"""


def status(spark, table: str | None = None) -> list[dict]:
    """Return a mapping for each table, or for one.

    Arguments:
        table: the entity, for example `customers`; None: every one.
    Returns: entity, feeds, key columns, the command that is writing to the lake or was killed while it did, when a
        build came to its end last, when a batch landed last, the newest batch of each feed in raw and in the log, the
        position at the source that it reached (where feeds tell it), how a database's changes are found, since when
        they are no longer captured, since when a patch of the table is open, records that wait for a build, rows that
        the view shows, when the newest change was made at the source and how long it took to land, rows of the base,
        pending changes, their share in percent of the base, tombstones, when the table was compacted last and what
        made it due, the copy that `--retain-previous` kept,
        for how many days tombstones and changes are kept, changes that were applied after that horizon, changes that
        have lost to a row that is older by the clock of the source and the time of the first of them, and from
        the ledger: read, applied, superseded, duplicate, rejected, tied; how many rows are stale; and as `trouble`
        what could not be asked, a damaged table for example: what it would have said is None.
    Raises: UsageError when there is no such entity.
    """
    known = dict(logged_tables())
    chosen = {known_table(table): known[table]} if table else known
    of_lake = {"step": step_under_way(spark), "last_build": account.remembered().get("at")}
    found = {
        entity: {"table": entity, "feeds": [feed for feed, _ in feeds], "key": key_of(entity)}
        | of_lake
        | {"landed_batch": {}, "logged_batch": {}, "trouble": []}
        for entity, feeds in chosen.items()
    }
    raw, lake = tables_in(spark, "raw"), tables_in(spark, "lake")
    pairs = [(entity, feed, name) for entity, feeds in chosen.items() for feed, name in feeds]
    landed = _landed(spark, sorted({feed for _, feed, _ in pairs if feed in raw}))
    of_raw = _noted(found, ((entity, feed, name, landed[feed]) for entity, feed, name in pairs if feed in landed))
    of_pairs = [(entity, feed, _of_table(rows, name)) for entity, feed, name, rows in of_raw]
    for entity, feed, row in sorted(
        of_pairs, key=lambda each: (each[2]["landed_at"] is not None, each[2]["landed_at"])
    ):
        found[entity]["landed_batch"][feed] = row.pop("landed_batch")
        found[entity] |= row
    for entity, marks in _noted(
        found, ((entity, by_itself(_marks, "what is captured of {1}")(feed, name)) for entity, feed, name in pairs)
    ):
        found[entity] |= marks
    # before the logs: a build that runs meanwhile appends to them first
    merged = [entity for entity in chosen if f"{entity}_merged" in lake]
    ask = by_itself(lambda entity: _layers(spark, entity, entity in lake), "lake.{}_merged")
    layers = of_each(merged, ask, "asking tables")
    in_log = {}
    logged = [pair for pair in pairs if isinstance(landed.get(pair[1]), dict) and f"{pair[0]}_changes" in lake]
    waiting = of_each(logged, by_itself(lambda pair: _waiting(spark, *pair), "lake.{0[0]}_changes"), "asking logs")
    for entity, feed, row in _noted(
        found, ((entity, feed, row) for (entity, feed, _), row in zip(logged, waiting, strict=True))
    ):
        found[entity]["logged_batch"][feed] = row.logged_batch
        in_log[entity] = row.newest
        found[entity]["waiting"] = found[entity].get("waiting", 0) + row.waiting
    for values in found.values():
        values["gone_back"] = _gone_back(values, landed)
    for entity, row in _noted(found, zip(merged, layers, strict=True)):
        applied = row.pop("applied_batch")
        said = log_went_back(entity, in_log[entity], applied) if entity in in_log else None
        found[entity] |= row | {"gone_back": ". ".join(filter(None, [found[entity]["gone_back"], said])) or None}
    for entity in filter(lambda entity: f"{entity}_merged_previous" in lake, merged):
        found[entity]["retained"] = f"{entity}_merged_previous"
    lists = {"ledger": ", ".join(f"sum({name}) as {name}" for name in COUNTS), "stale_rows": "count(*) as stale"}
    retained = {entity: retention_of(entity) or None for entity in chosen}
    if any(retained.values()):
        lists["late_changes"] = "count_if(verdict = 'applied') as late"
    answers = {}
    for name in lists.keys() & lake:
        answer = by_itself(lambda name: _of_all(spark, name, lists[name]), "lake.{}")(name)
        if list(_noted(found, ((entity, answer) for entity in found))):
            answers[name] = answer
    for entity, values in found.items():
        values |= answers.get("ledger", {}).get(entity, {})
        if "stale_rows" in answers:
            values |= {"stale": 0} | answers["stale_rows"].get(entity, {})
        values["retention_days"] = retained[entity]
        if "tombstones" in (retained[entity] or {}) and "late_changes" in answers:
            values |= {"late": 0} | answers["late_changes"].get(entity, {})
    superseded = [entity for entity in merged if found[entity].get("superseded") != 0 and f"{entity}_changes" in lake]
    fallen = of_each(
        superseded, by_itself(lambda entity: fallen_in_log(spark, entity), "lake.{}_changes"), "asking logs"
    )
    for entity, row in _noted(found, zip(superseded, fallen, strict=True)):
        found[entity] |= row
    for values in found.values():
        values["trouble"] = " ".join(dict.fromkeys(values["trouble"])) or None
    names = ["table", "feeds", *STANDING, *LAYERED, *COMPACTED, *HORIZON, *FALLEN, *COUNTS, "stale"]
    return [dict.fromkeys(names) | values for values in found.values()]


def _noted(found: dict[str, dict], answers: Iterable[tuple]) -> Iterator[tuple]:
    """Yield entities with what was answered of them; what could not be asked is noted as their trouble."""
    for entity, *of_what, answer in answers:
        if isinstance(answer, Trouble):
            found[entity]["trouble"].append(answer.sentence)
        else:
            yield entity, *of_what, answer


def _of_all(spark, name: str, figures: str) -> dict[str, dict]:
    """Return what a table of operations says, by entity."""
    rows = spark.sql(f"select table_name, {figures} from lake.{name} group by table_name").collect()
    return {row.table_name: {name: row[name] for name in row.asDict() if name != "table_name"} for row in rows}


def _gone_back(values: dict, landed: dict[str, dict]) -> str | None:
    """Return what to say of the raw tables of an entity that lack what had landed in them; None: none does."""
    said = []
    for feed in values["feeds"]:
        if isinstance(landed.get(feed), Trouble):
            continue
        in_raw = max((row["landed_batch"] or 0 for row in landed.get(feed, {}).values()), default=0)
        known = max(noted_landing(feed)[0], values["logged_batch"].get(feed, 0))
        said.append(gone_back(feed, (in_raw, 0), (known, 0)))
    return " ".join(filter(None, dict.fromkeys(said))) or None


def _landed(spark, feeds: list[str]) -> dict[str, dict | Trouble]:
    """Return by feed, and by table as its entries name it (None: they name none), what has landed."""
    ask = by_itself(lambda feed: spark.sql(RAW.format(feed=feed)).collect(), "raw.{}")
    rows = of_each(feeds, ask, "asking feeds")
    return {
        feed: answer if isinstance(answer, Trouble) else {row.source_table: row for row in answer}
        for feed, answer in zip(feeds, rows, strict=True)
    }


def _marks(feed: str, name: str) -> dict:
    """Return since when a table of a database is not captured, or patched."""
    marks = {"disabled_since": disabled_mark(f"{feed}.{name}"), "patched_since": patch_mark(f"{feed}.{name}")}
    found = {fact: marked_since(mark) for fact, mark in marks.items()}
    return {fact: since or "an unknown time" for fact, since in found.items() if since is not None}


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


def _layers(spark, entity: str, has_view: bool) -> dict:
    row = spark.sql(LAYERS.format(entity=entity, pending=are_pending(spark, entity))).first()
    share = round(100 * row.pending / row.base, 1) if row.base else None
    rows = _rows(spark, entity, row) if has_view else None
    return row.asDict() | {"rows": rows, "pending_percent": share} | _compaction(spark, entity, row.base)


def _rows(spark, entity: str, layers) -> int | None:
    """Return how many rows a view shows; None: it cannot be read now. A base that is all there is was counted."""
    if not layers.pending and not settings_of(entity).get("truncates"):
        return layers.base - layers.tombstones
    ask = by_itself(lambda entity: spark.sql(f"select count(*) from lake.`{entity}`").first()[0], "lake.{}")
    answer = ask(entity)
    return None if isinstance(answer, Trouble) else answer


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


def _compaction(spark, entity: str, base: int) -> dict:
    """Return when the merged table was compacted or rebuilt last, and by what; its first build wrote what there was.

    Arguments:
        base: how many rows it has.
    """
    history = spark.sql(f"describe history lake.`{entity}_merged`").collect()
    for commit in history:
        if cause := compaction_of(commit):
            return {"compacted_at": commit.timestamp, "compacted_by": cause}
    if base and history[-1].version == 0:
        return {"compacted_at": history[-1].timestamp, "compacted_by": "the first build"}
    return {}
