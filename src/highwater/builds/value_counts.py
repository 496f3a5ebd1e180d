"""Lines of files without names that have another number of values than is declared, and the period to declare."""

import re
from dataclasses import dataclass

from highwater.catalog.declarations import sources_file
from highwater.catalog.entities import declaration_of, sources_of_logs
from highwater.catalog.feeds import Feed, declared_feeds, sql_text
from highwater.runtime.printable import counted, printable
from highwater.scaffold.periods import has_periods, in_block, period_with, periods_of

REASON = "wrong_column_count"
# a line by itself may be damaged
LINES_OF_A_PERIOD = 2
STAGE = ["opcode", "seqno", "row_id", "commit_timestamp"]

# rejected lines of a build by how many values they have, the most first
COUNTS = """
    select size(raw.fields) as size, coalesce(raw.fields['1'] in ('I', 'U', 'D'), false) as may_have_operation,
        count(*) as records,
        min(struct(raw.source_file, raw.source_line, map_values(raw.fields) as texts)) as first
    from {raw} as raw
    left semi join (
        select source_file, source_line, landing_batch
        from lake.`{entity}_changes`
        where log_batch >= {log_batch} and feed = {feed} and rejection_reason = '{reason}'
    ) as rejected
        on raw.source_file = rejected.source_file and raw.source_line = rejected.source_line
            and raw.landing_batch = rejected.landing_batch
    where raw.entry = 'record' and raw.source_table = {table} and raw.fields is not null
        and raw.landing_batch in ({batches})
    group by size, may_have_operation
    order by records desc, size
"""
# all lines of those batches, and those from the first one on
LINES = """
    select count(*) as lines,
        count_if(struct(source_file, source_line) >= struct({file}, {line})) as since
    from {raw}
    where entry = 'record' and source_table = {table} and landing_batch in ({batches})
"""


@dataclass(frozen=True)
class OtherCount:
    """New lines of a source table that have more or fewer values than its newest period declares.

    Attributes:
        feed, table: as dbt names them. more: how many values more, fewer when below 0. records: how many lines.
        file, line: the first of them. texts: its values, those of columns only.
    """

    feed: str
    table: str
    more: int
    records: int
    file: str
    line: int
    texts: list[str | None]


def other_counts(spark, entity: str, log_batch: int, batches: dict) -> list[OtherCount]:
    """Return what a build rejected of a table because lines have another number of values, where most new ones do.

    Arguments:
        entity: for example `orders`. log_batch: the first batch of its log that the build appended. batches: the feeds
        and landing batches in it.
    """
    found, feeds = [], declared_feeds()
    for feed, table in dict(sources_of_logs())[entity]:
        numbers = ", ".join(str(number) for name, number in batches if name == feed)
        if not numbers or not has_periods(feed) or _has_header(feeds[feed]):
            continue
        place = {"raw": feeds[feed].raw_table, "table": sql_text(feeds[feed].source_table(table)), "batches": numbers}
        asked = COUNTS.format(entity=entity, log_batch=log_batch, feed=sql_text(feed), reason=REASON, **place)
        for row in spark.sql(asked).collect():
            texts = _of_columns(feeds[feed], row, len(periods_of(feed, table)[-1]["columns"]))
            more = len(texts) - len(periods_of(feed, table)[-1]["columns"])
            file, line = row.first.source_file, row.first.source_line
            lines = spark.sql(LINES.format(file=sql_text(file), line=line, **place)).first()
            is_alone = row.records < LINES_OF_A_PERIOD and row.records < lines.lines
            if more and not is_alone and row.records * 2 >= lines.since:
                found.append(OtherCount(feed, table, more, row.records, file, line, texts))
                break
    return found


def trouble_of(entity: str, found: OtherCount) -> str:
    """Return the sentence of it, with the period to declare as YAML."""
    columns = periods_of(found.feed, found.table)[-1]["columns"]
    number = "one value" if abs(found.more) == 1 else f"{abs(found.more)} values"
    have = "has" if found.records == 1 else "have"
    said = (
        f"{entity}: {counted(found.records, 'line')} of {found.feed}.{found.table} {have} {number} "
        f"{'more' if found.more > 0 else 'fewer'} than declared ({', '.join(columns)}), the first in "
        f"{printable(found.file)}, line {found.line}, and {'was' if found.records == 1 else 'were'} rejected. "
    )
    path, source = declaration_of(entity), sources_file(found.feed)
    if found.more > 0:
        names = ["new_column", *(f"new_column_{n}" for n in range(2, found.more + 1))]
        period, note = _period(found, names), ""
        said += (
            f"If the source has {'a column' if found.more == 1 else 'columns'} more since, declare it in {path}, and"
        )
    else:
        period, note = {"columns": columns}, f" # without the {-found.more} that it has no longer"
        said += "If the source has dropped columns, declare"
    yaml = in_block([*periods_of(found.feed, found.table), period])
    return (
        f"{said} in {source}, in `config.meta` of the table {found.table}, by their own names, as its lines have them:"
        f"\n{yaml}{note}\nThen: highwater rebuild {entity} --from raw. Otherwise the lines are damaged, and stay in "
        "rejected_changes."
    )


def _has_header(feed: Feed) -> bool:
    return bool(feed.options.dialect and feed.options.dialect.header)


def _of_columns(feed: Feed, row, declared: int) -> list[str | None]:
    """Return the values of a line that are those of columns; what the producer puts around them is left out."""
    texts = list(row.first.texts)
    if feed.format == "tungsten-csv":
        return texts[len(feed.settings.get("columns", STAGE)) :]
    if feed.format == "dms-csv":
        is_load = re.search(r"/LOAD[0-9A-Fa-f]{8}[.][^/]*$", row.first.source_file)
        return texts[1:] if row.may_have_operation and not is_load else texts
    # three for each column, and three more
    of_change = texts[: len(texts) - 3 : 3] if len(texts) % 3 == 0 and len(texts) > 3 else texts
    return min((texts, of_change), key=lambda each: abs(len(each) - declared))


def _period(found: OtherCount, names: list[str]) -> dict:
    """Return the newest period with further columns, where the producer's own values then stand at their place."""
    sequence = declared_feeds()[found.feed].settings.get("sequence_column")
    usual = period_with(found.feed, found.table, names)
    for at in [None, *range(len(usual["columns"]) - len(names), -1, -1)] if sequence else [None]:
        period = period_with(found.feed, found.table, names, at)
        place = period["columns"].index(sequence) if sequence in period["columns"] else None
        if place is None or re.fullmatch(r"\d{35}", found.texts[place] or ""):
            return period
    return usual
