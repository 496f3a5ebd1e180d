"""What a build rejected: which tables, why, where; what is too much of it, and columns whose type has changed."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from highwater.builds import value_counts
from highwater.catalog.columns import DECIMAL, DIGITS, WITH_UNIT
from highwater.catalog.declarations import sources_file
from highwater.catalog.entities import declaration_of, settings_of
from highwater.catalog.feeds import Feed, declared_feeds, sql_text
from highwater.catalog.tables import Trouble, by_itself, named, of_each
from highwater.formats.formats import CHOICES, DEBEZIUM, are_read_alike
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import counted, in_shell, printable
from highwater.spark.spark import quoted

# what a reader needs to act
QUERY = (
    'highwater query "select table_name, rejection_reason, rejection_detail, what_to_do, source_file, source_line '
    'from rejected_changes"'
)
LINES_OF_A_TABLE = 5
LONGEST_TEXT = 200
# one value that does not fit is odd, several in a row are a type
VALUES_OF_A_TYPE = 2

# `n = ["much"] does not fit int`, one for each column; what stands in it as JSON has no quote of its own
MISFIT = r'\S+ = \["[^"\\]*(?:\\.[^"\\]*)*"\] does not fit [a-z_]+(?:\(\d+,\d+\))?'
READ = """
    select feed, landing_batch, count(*) as read,
        count_if(rejection_reason <> 'ignored') as rejected
    from lake.`{entity}_changes`
    where log_batch >= {log_batch} and not is_derived
    group by feed, landing_batch
"""
REJECTED = """
    with misfits as (
        select *, regexp_substr(misfit, '^[^ ]+') as field,
            from_json(regexp_extract(misfit, {json}, 1), 'array<string>')[0] as value,
            regexp_substr(misfit, '[^ ]+$') as declared
        from (
            select feed, landing_batch, rejection_reason, rejection_detail, source_file, source_line,
                change_sequence_number, explode_outer(
                    case when rejection_reason = 'value_does_not_fit'
                        then regexp_extract_all(left(rejection_detail, 4000), {misfit}, 0) end
                ) as misfit
            from lake.`{entity}_changes`
            where log_batch >= {log_batch} and not is_derived and rejection_reason <> 'ignored'
        )
    )
    select feed, landing_batch, rejection_reason, field, any_value(declared) as declared, count(*) as records,
        min_by(
            struct(left(coalesce(misfit, rejection_detail), 1000) as detail, left(value, 1000) as value,
                source_file, source_line),
            struct(source_file, source_line)
        ) as first,
        min(change_sequence_number) as since,
        every(coalesce(number, '') rlike '^[+-]?[0-9]+([.][0-9]*)?$') as is_number,
        every(try_cast(value as timestamp) is not null and value rlike '^[0-9]{{4,6}}-') as is_time,
        max(length(regexp_extract(number, '^[+-]?0*([0-9]*)', 1))) as digits,
        max(length(regexp_extract(number, '[.]([0-9]*?)0*$', 1))) as scale
    from (
        select *, if(value rlike '[eE]', cast(try_cast(value as decimal(38, 18)) as string), value) as number
        from misfits
    )
    group by feed, landing_batch, rejection_reason, field
    order by records desc, feed, landing_batch, rejection_reason, field
"""
# in a record of Debezium, flattened too, and inside a JSON text
NAMES_CONNECTOR = r'(?:\\*"source\\*"\s*:\s*\{[^{}]*\\*"connector|"__(?:source_)?connector)\\*"\s*:\s*\\*"(\w+)'
CONNECTORS = """
    select feed, connector, count(*) as records,
        min(struct(source_file, source_line)) as first
    from (
        select feed, source_file, source_line, regexp_extract(cast(record as string), {names}, 1) as connector
        from lake.`{entity}_changes`
        where log_batch >= {log_batch} and not is_derived and rejection_reason <> 'ignored'
    )
    where connector <> ''
    group by feed, connector
"""
# values of some columns that do fit, from the first change at the source on whose value does not
FITTING = """
    select {counts}
    from lake.`{entity}_changes`
    where log_batch >= {log_batch} and change_type in ('insert', 'update')
        and (rejection_reason is null or rejection_reason = 'value_does_not_fit')
"""
FITS = """count_if(
        feed = {feed} and {column} is not null and change_sequence_number >= {since}
        and not coalesce(exists(
            regexp_extract_all(left(rejection_detail, 4000), {misfit}, 0), found -> startswith(found, {begin})
        ), false)
    )"""


@dataclass(frozen=True)
class Threshold:
    """How much of a batch may be rejected before a build fails: `rejected_when` of a table.

    Attributes:
        percent: more than this share of a batch is too much. records: of a batch that has at least so many.
    """

    percent: float = 1
    records: int = 100


@dataclass(frozen=True)
class TypeChange:
    """A column whose type has changed at the source.

    Attributes:
        column, declared: its name and type. brought: what the values are, in words. misfits: how many do not fit.
        values: how many there are since the first of them, which is `first`, with its file and line.
        wider: the type that takes both; None: the numbers stand for times, and their unit is not declared.
    """

    column: str
    declared: str
    brought: str
    wider: str | None
    misfits: int
    values: int
    first: dict


@dataclass(frozen=True)
class OtherConnector:
    """Records of Debezium that another connector wrote than their feed declares.

    Attributes:
        feed: its name. declared, named: the connectors. records: how many were rejected, of `read`. first: of them.
    """

    feed: str
    declared: str
    named: str
    records: int
    read: int
    first: dict


@dataclass(frozen=True)
class Rejected:
    """What a build rejected of a table.

    Attributes:
        entity: for example `customers`. batches: by feed and landing batch, records read and rejected. groups: records
        of one reason and column, the most first. type_changes: of columns. connectors: where most records of a feed
        name another one than it declares, which explains all that was rejected of it. counts: lines of another number
        of values than is declared, where most new ones have it.
    """

    entity: str
    batches: dict[tuple[str, int], tuple[int, int]]
    groups: list = field(default_factory=list)
    type_changes: list[TypeChange] = field(default_factory=list)
    connectors: list[OtherConnector] = field(default_factory=list)
    counts: list[value_counts.OtherCount] = field(default_factory=list)


def threshold_of(entity: str) -> Threshold:
    """Return what an entity declares as `rejected_when`, or what holds where it declares nothing.

    Raises: UsageError naming the file, the value and what is allowed.
    """
    declared = settings_of(entity).get("rejected_when", {})

    def is_number(value, least, most, kinds):
        return isinstance(value, kinds) and not isinstance(value, bool) and least <= value <= most

    if (
        not isinstance(declared, dict)
        or set(declared) - {"percent", "records"}
        or not is_number(declared.get("percent", 0), 0, 100, int | float)
        or not is_number(declared.get("records", 1), 1, float("inf"), int)
    ):
        raise UsageError(
            f"{declaration_of(entity)}: rejected_when is {declared!r}; it must be a mapping of percent (from 0 to 100, "
            "more of a batch fails the build) and records (1 or more, in smaller batches nothing is too much), either "
            "or both, for example {percent: 1, records: 100}."
        )
    return Threshold(**declared)


def check_thresholds() -> None:
    """Look at what every table declares as `rejected_when`, before a build that would ask for it at its end.

    Raises: UsageError naming the file, the value and what is allowed.
    """
    for path in sorted([*Path("models/tables").glob("*/*.yml"), *Path("models/changes").glob("*/*_changes.yml")]):
        if "rejected_when" in path.read_text():
            threshold_of(path.stem.removesuffix("_changes"))


def of_build(spark, log_batches: dict[str, int], is_recorded: bool = False) -> tuple[list[Rejected], list[str]]:
    """Return what a build rejected, of each table that it rejected something of, and what could not be asked.

    Arguments:
        log_batches: by entity, the first batch of its log that the build appended. is_recorded: the ledger has counted
        those batches, so a log in which it has counted no rejected record need not be asked.
    """
    if is_recorded:
        counted = spark.sql("select table_name from lake.ledger group by table_name having sum(rejected) > 0").collect()
        log_batches = {row.table_name: log_batches[row.table_name] for row in counted if row.table_name in log_batches}
    ask = by_itself(lambda entity: _of_table(spark, entity, log_batches[entity]), "what was rejected of {}")
    found = of_each(sorted(log_batches), ask, "asking what was rejected")
    unanswered = [answer.sentence for answer in found if isinstance(answer, Trouble)]
    return [rejected for rejected in found if isinstance(rejected, Rejected)], unanswered


def _of_table(spark, entity: str, log_batch: int) -> Rejected | None:
    if not spark.catalog.tableExists(f"lake.`{entity}_changes`"):
        return None
    read = spark.sql(READ.format(entity=entity, log_batch=log_batch)).collect()
    batches = {(row.feed, row.landing_batch): (row.read, row.rejected) for row in read if row.rejected}
    if not batches:
        return None
    asked = REJECTED.format(
        entity=entity, log_batch=log_batch, misfit=sql_text(MISFIT), json=sql_text(r"^\S+ = (\[.*\]) does not fit ")
    )
    groups = spark.sql(asked).collect()
    connectors = _other_connectors(spark, entity, log_batch, batches)
    misread = {other.feed for other in connectors}
    types = _type_changes(spark, entity, log_batch, [group for group in groups if group.feed not in misread])
    lengths = any(group.rejection_reason == value_counts.REASON for group in groups)
    counts = value_counts.other_counts(spark, entity, log_batch, batches) if lengths else []
    return Rejected(entity, batches, groups, types, connectors, counts)


def _other_connectors(spark, entity: str, log_batch: int, batches: dict) -> list[OtherConnector]:
    """Return the connectors that most records of a feed name, where it declares another one."""
    feeds = declared_feeds()
    declared = {name: feeds[name].settings["connector"] for name, _ in batches if _has_connector(feeds[name])}
    if not declared:
        return []
    asked = CONNECTORS.format(entity=entity, log_batch=log_batch, names=sql_text(NAMES_CONNECTOR))
    others = []
    for row in spark.sql(asked).collect():
        own, read = declared.get(row.feed), sum(read for (feed, _), (read, _) in batches.items() if feed == row.feed)
        if own and not are_read_alike(own, row.connector) and row.records * 2 > read:
            others.append(OtherConnector(row.feed, own, row.connector, row.records, read, row.first.asDict()))
    return others


def troubles_of_connectors(rejected: Iterable[Rejected]) -> list[str]:
    """Return which feeds of a build declare another connector than their records name, and what to do, one each."""
    of_feeds = defaultdict(list)
    for found in rejected:
        for other in found.connectors:
            of_feeds[other.feed, other.declared, other.named].append((found.entity, other))
    troubles = []
    for (feed, declared, connector), found in of_feeds.items():
        count, read = (sum(getattr(other, name) for _, other in found) for name in ("records", "read"))
        entities = [entity for entity, _ in found]
        table = entities[0] if len(found) == 1 else "TABLE"
        troubles.append(
            f"{feed}: {count:,} of {counted(read, 'record')} of {named(entities)} name the connector {connector}, and "
            f"the feed declares {declared}: their order is not read rightly, and their values may not be; the first in "
            f"{_place(found[0][1].first)}. {_other_setting(connector)} in {sources_file(feed)}, and see what types and "
            f"units become: highwater add-tables {feed} --ddl FILE. Then: highwater rebuild {table} --from raw"
            + (f", for {named(entities)}" if len(found) > 1 else "")
        )
    return troubles


def _has_connector(feed: Feed) -> bool:
    """Return whether the connector of a feed says how its records are ordered."""
    return feed.format in DEBEZIUM and feed.settings.get("order") != "kafka"


def _other_setting(connector: str) -> str:
    if connector in CHOICES["connector"]:
        return f"Write `connector: {connector}`"
    return (
        f"Positions of {connector} cannot be read. Where the names of files, or what is around the records, tell the "
        "partition and offset of Kafka, write `order: kafka`"
    )


def _type_changes(spark, entity: str, log_batch: int, groups: list) -> list[TypeChange]:
    """Return the columns of which most values do not fit, from the first change at the source on that did not."""
    columns = defaultdict(list)
    for group in groups:
        if group.field:
            columns[group.feed, group.field].append(group)
    columns = {column: found for column, found in columns.items() if sum(g.records for g in found) >= VALUES_OF_A_TYPE}
    if not columns:
        return []
    counts = ", ".join(
        FITS.format(
            feed=sql_text(feed), column=quoted(name), since=sql_text(min(g.since or "" for g in found)),
            misfit=sql_text(MISFIT), begin=sql_text(f"{name} = ["),
        )
        for (feed, name), found in columns.items()
    )  # fmt: skip
    fitting = spark.sql(FITTING.format(entity=entity, log_batch=log_batch, counts=counts)).first()
    changes = []
    for ((_, name), found), fits in zip(columns.items(), fitting, strict=True):
        misfits = sum(group.records for group in found)
        if misfits >= fits:
            first = min((group.first for group in found), key=lambda first: (first.source_file, first.source_line))
            brought, wider = _wider(found, declared_feeds()[found[0].feed].format)
            changes.append(TypeChange(name, found[0].declared, brought, wider, misfits, misfits + fits, first.asDict()))
    return changes


def _wider(groups: list, format: str) -> tuple[str, str | None]:
    """Return in words what values that do not fit are, and the type that takes them and those that did."""
    declared = groups[0].declared
    digits, scale = (max(group[name] for group in groups) for name in ("digits", "scale"))
    if all(group.is_number for group in groups):
        if declared in WITH_UNIT and not scale and format in DEBEZIUM:
            return "whole numbers", None
        old = DECIMAL.fullmatch(declared)
        if old:
            return _wider_number(digits, scale, int(old[1]), int(old[2]), declared)
        if declared in DIGITS:
            return _wider_number(digits, scale, DIGITS[declared], 0, declared)
        return "numbers", "string"
    if declared in ("date", "timestamp_ntz") and all(group.is_time for group in groups):
        return "times" if declared == "date" else "times with a zone", "timestamp"
    return "text", "string"


def _wider_number(digits: int, scale: int, old_digits: int, old_scale: int, declared: str) -> tuple[str, str]:
    if not scale and declared in DIGITS and digits < DIGITS["bigint"]:
        return "larger numbers", "bigint"
    brought = "numbers with more digits behind the point" if scale > old_scale else "larger numbers"
    scale = max(scale, old_scale)
    precision = max(digits, old_digits - old_scale) + scale
    return brought, f"decimal({precision},{scale})" if precision <= 38 else "string"


def lines_of(rejected: Rejected) -> list[str]:
    """Return what was rejected of a table, a line for each reason, column and batch: how many, which share, where."""
    lines = []
    for group in rejected.groups[:LINES_OF_A_TABLE]:
        read, _ = rejected.batches[group.feed, group.landing_batch]
        lines.append(
            f"{group.records:,} of {counted(read, 'record')} rejected ({_share(group.records, read)}) in batch "
            f"{group.landing_batch} of {group.feed}: {group.rejection_reason}, {_shown(group.first.detail)}; "
            f"{'the first ' * (group.records > 1)}in {_place(group.first)}"
        )
    left = len(rejected.groups) - LINES_OF_A_TABLE
    if left > 0:
        lines.append(f"and for {left:,} more reasons, columns and batches (see rejected_changes)")
    return lines


def troubles_of(rejected: Rejected) -> list[str]:
    """Return why a build has failed: changed types and numbers of columns, batches of which too much is rejected.

    Raises: UsageError when the table declares its threshold wrongly.
    """
    of_counts = [value_counts.trouble_of(rejected.entity, found) for found in rejected.counts]
    return [*of_counts, *_of_types(rejected), *_of_batches(rejected)]


def _of_types(rejected: Rejected) -> list[str]:
    troubles = []
    for change in rejected.type_changes:
        name = _shown(change.column)
        column = in_shell(change.column)
        what = f"type {column} {in_shell(change.wider)}" if change.wider else f"unit {column} millis, or what they are"
        troubles.append(
            f"{rejected.entity}: the type of {name} has changed at the source. It is declared as {change.declared}, "
            f"and {change.misfits:,} of the {change.values:,} values that came since are {change.brought}, the first "
            f"{_shown(json.dumps(change.first['value'], ensure_ascii=False))} in {_place(change.first)}. "
            f"To take both: highwater alter {rejected.entity} {what}"
        )
    return troubles


def _of_batches(rejected: Rejected) -> list[str]:
    threshold, troubles = threshold_of(rejected.entity), []
    explained = {other.feed for other in rejected.connectors}
    for (feed, batch), (read, count) in sorted(rejected.batches.items()):
        if feed not in explained and read >= threshold.records and count * 100 > read * threshold.percent:
            troubles.append(
                f"{rejected.entity}: {count:,} of {counted(read, 'record')} ({_share(count, read)}) of batch {batch} "
                f"of {feed} were rejected, more than the {threshold.percent:g} % of `rejected_when`; what was right is "
                f'in the table. See: highwater query "select * from rejected_changes where table_name = '
                f"'{rejected.entity}' and feed = '{feed}' and landing_batch = {batch}\""
            )
    return troubles


def why_no_trouble(rejected: Iterable[Rejected]) -> str | None:
    """Return why the build does not fail for what it rejected, of the tables that are no trouble; None: there are none.

    Example: `6 of 9 new records of customers, orders were rejected. That is a warning and no error: their batches have
    fewer than 100 records (rejected_when).`
    """
    calm = [found for found in rejected if not found.connectors and not troubles_of(found)]
    if not calm:
        return None
    batches = [(found.entity, read, count) for found in calm for read, count in found.batches.values()]
    read, count = (sum(numbers) for numbers in list(zip(*batches, strict=True))[1:])
    allowed = {
        f"batches of fewer than {threshold.records:,} records"
        if read < threshold.records
        else f"at most {threshold.percent:g} % of a batch"
        for entity, read, _ in batches
        for threshold in [threshold_of(entity)]
    }
    why = " or ".join(sorted(allowed)) if len(allowed) < 3 else "as many as each table allows"
    return (
        f"{count:,} of {counted(read, 'new record')} of {named([found.entity for found in calm])} rejected: a warning "
        f"and no error, for `rejected_when` lets pass {why}. What to do: {QUERY}"
    )


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %" if percent >= 0.1 else "less than 0.1 %"


def _place(first) -> str:
    return f"{_shown(first['source_file'] or 'no file')}, line {first['source_line']}"


def _shown(words: str | None) -> str:
    """Return a text as a line on a terminal may have it, of at most LONGEST_TEXT characters."""
    words = words or ""
    return printable(words if len(words) <= LONGEST_TEXT else f"{words[:LONGEST_TEXT]}…")
