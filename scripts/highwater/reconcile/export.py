"""The export that a table is compared with: which one it is, what waits in its place, and whether it is whole."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from highwater.catalog.entities import declared_columns
from highwater.catalog.feeds import declared_feeds, sql_text
from highwater.landing import landing
from highwater.landing.deliveries import skipping
from highwater.reconcile.plan import Plan
from highwater.reconcile.results import RUN
from highwater.runtime.errors import UsageError


@dataclass(frozen=True)
class Export:
    """The newest export that has landed; of a relation that is no feed nothing is known.

    Attributes:
        file: of the export, or the folder of its parts. parts: each with its SHA-256. sizes: of the parts, in bytes.
        taken_at: UTC. age: at the run, in words. position: as declared. flaws: why it may not be the whole export, or
            not the newest one.
    """

    file: str | None = None
    parts: dict = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    records: int | None = None
    taken_at: str | None = None
    age: str | None = None
    position: str | None = None
    flaws: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether a part of it has no byte."""
        return not all(self.sizes)


def newest_export(spark, plan: Plan, run: str) -> Export | None:
    """Return the export that is compared, the same as the staging model reads; None: there is none."""
    exports = f"select *, cast(taken_at as string) as taken from ({plan.exports}) order by place desc limit 2"
    newest, *others = spark.sql(exports).collect() or [None]
    if newest is None:
        return None
    return Export(
        file=newest.export,
        parts={part.source_file: part.file_hash for part in newest.parts},
        sizes=tuple(part.file_size for part in newest.parts),
        records=newest.records,
        taken_at=newest.taken[:19],
        age=age_in_words(datetime.strptime(run, RUN) - datetime.fromisoformat(newest.taken[:19])),
        position=newest.source_position,
        flaws=_parts_left_out(spark, plan, newest) + _parts_without_a_byte(newest) + _rivals(newest, others),
    )


def _parts_left_out(spark, plan: Plan, newest) -> list[str]:
    landed = {part.source_file for part in newest.parts}
    skipped = spark.sql(
        f"select distinct source_file from {plan.raw} where entry = 'skipped' "
        f"and startswith(source_file, {sql_text(newest.export + '/')})"
    ).collect()
    return [
        f"{row.source_file} is a part of the export and was left out by `highwater land --skip`"
        for row in skipped
        if row.source_file not in landed
    ]


def _parts_without_a_byte(newest) -> list[str]:
    return [f"{part.source_file} has no byte; take the export again" for part in newest.parts if not part.file_size]


def _rivals(newest, others: list) -> list[str]:
    return [
        f"nothing says which export is the newest: {other.export} has the position and the time of "
        f"{newest.export}, which is compared; declare `taken_at` of both in _exports.yml under new names"
        for other in others
        if other.place[:2] == newest.place[:2]
    ]


def age_in_words(age) -> str:
    """Return how old something is, in its largest unit."""
    seconds = int(age.total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return f"{seconds // length:,} {unit}{'s'[: seconds // length != 1]} old"
    return "less than a minute old"


def exports_that_wait(plan: Plan, listing: Callable) -> list[str]:
    """Return why what lies in the folder of a table's exports is not what has landed; nothing: it is.

    Arguments:
        listing: returns the new and the changed files of a feed.
    """
    feed = declared_feeds().get(plan.feed)
    if feed is None or feed.role != "export":
        return []
    try:
        new, changed = listing(feed.name)
    except (UsageError, OSError) as error:
        return [f"what lies in the folder of {feed.name} cannot be listed, so a newer export may wait there: {error}"]
    return [landing.changed_file(feed, name) for name in _of_table(plan, changed)] + _new_in_words(_of_table(plan, new))


def _of_table(plan: Plan, files) -> list[str]:
    return [file.source_file for file in files if file.table == plan.source_table]


def _new_in_words(waiting: list[str]) -> list[str]:
    if not waiting:
        return []
    more = f" and {len(waiting) - 1:,} more" if len(waiting) > 1 else ""
    return [
        f"{waiting[0]}{more} lies in the folder and has not landed; run: highwater build. To leave it out on "
        f"record: {skipping(waiting[0])}"
    ]


def rows_that_cannot_be_read(spark, plan: Plan) -> dict[str, int]:
    """Return how many rows of the export could not be read, by reason."""
    rows = spark.sql(
        f"select rejection_reason, count(*) as rows from {plan.export} where rejection_reason is not null "
        "group by rejection_reason order by rejection_reason"
    ).collect()
    return {row.rejection_reason: row.rows for row in rows}


def unreadable_in_words(unreadable: dict[str, int]) -> list[str]:
    """Return what is said of rows that could not be read."""
    reasons = ", ".join(f"{rows:,} {reason}" for reason, rows in unreadable.items())
    return [f"rows of the export that cannot be read: {reasons}"] if reasons else []


def flaws_of_records(spark, plan: Plan, export: Export) -> list[str]:
    """Return why an export may be no whole export of the table: columns that it lacks, a file cut off."""
    files = ", ".join(map(sql_text, export.parts))
    records = f"{plan.raw} where entry = 'record' and source_file in ({files})"
    return _columns_that_lack(spark, plan, records) + _files_cut_off(spark, records)


def _columns_that_lack(spark, plan: Plan, records: str) -> list[str]:
    fields = _fields_compared(plan)
    names = f"array({', '.join(map(sql_text, fields))})"
    rows = spark.sql(
        f"select distinct explode(array_except({names}, map_keys(fields))) as field from {records} "
        "and fields is not null"
    ).collect()
    lacking = {row.field for row in rows}
    if not lacking:
        return []
    return [
        f"the export has no column {', '.join(name for name in fields if name in lacking)}; take one of all columns of "
        f"{plan.table}, or name those to compare with `columns` of matches_export"
    ]


def _fields_compared(plan: Plan) -> list[str]:
    """Return the columns that are compared, by their names in a record."""
    declared, _ = declared_columns(plan.table)
    compared = {column.name.lower() for column in plan.columns}
    return [column.field for column in declared if column.mart_name.lower() in compared]


def _files_cut_off(spark, records: str) -> list[str]:
    return [
        f"the last record of {row.source_file} cannot be read ({row.problem}): the file was cut off, or something "
        "stands behind its rows; take the export again"
        for row in spark.sql(
            f"select source_file, max_by(problem, source_line) as problem from {records} group by source_file "
            "having problem like 'malformed_record%' or problem like 'wrong_column_count%' order by source_file"
        ).collect()
    ]
