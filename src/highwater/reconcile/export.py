"""The export that a table is compared with: which one it is, what waits in its place, and whether it is whole."""

import json
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from highwater.catalog.entities import declared_columns
from highwater.catalog.feeds import Feed, declared_feeds, sql_text
from highwater.landing import declared_exports, feed_folders, new_files
from highwater.landing.deliveries import odd_in_words, skipping
from highwater.landing.listing import digest_of
from highwater.reconcile.plan import Plan
from highwater.reconcile.results import RUN
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import printable
from highwater.runtime.project import landing_root


@dataclass(frozen=True)
class Doubts:
    """What of an export cannot be read.

    Attributes:
        unreadable: rows, by reason. flaws: why it may be no whole one: a file that is cut off.
    """

    unreadable: dict[str, int] = field(default_factory=dict)
    flaws: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Export:
    """The newest export that has landed; of a relation that is no feed nothing is known.

    Attributes:
        file: of the export, or the folder of its parts. parts: each with its SHA-256. sizes: of the parts, in bytes.
        taken_at: UTC. age: at the run, in words. position: as declared. flaws: why it may not be the whole export, or
            not the newest one. doubts: why it may be no whole export of this table: then no difference is a fault.
        notes: what else is to be said of it. entry: the entries of `_exports.yml` that declare it, with that file.
    """

    file: str | None = None
    parts: dict = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    records: int | None = None
    taken_at: str | None = None
    age: str | None = None
    position: str | None = None
    flaws: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    entry: str | None = None

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
    lacking, notes = _columns_that_differ(plan, _heads(spark, plan, newest.parts))
    return Export(
        file=newest.export,
        parts={part.source_file: part.file_hash for part in newest.parts},
        sizes=tuple(part.file_size for part in newest.parts),
        records=newest.records,
        taken_at=newest.taken[:19],
        age=age_in_words(datetime.strptime(run, RUN) - datetime.fromisoformat(newest.taken[:19])),
        position=newest.source_position,
        flaws=_parts_left_out(spark, plan, newest) + _parts_without_a_byte(newest) + _rivals(newest, others),
        doubts=lacking + _parts_that_may_be_none(newest) + _overwritten(plan, newest),
        notes=notes + _corrections(newest),
        entry=_entries_in_words(plan, newest),
    )


def _entries_in_words(plan: Plan, newest) -> str:
    """Return which entries of which file declare an export."""
    feed = declared_feeds().get(plan.feed)
    names = sorted({part.export_entry or part.source_file.split("/", 2)[-1] for part in newest.parts})
    path = f"{feed.root if feed else ''}/{plan.feed}/{plan.source_table}/_exports.yml"
    return f"{printable(path)}, {', '.join(map(printable, names))}"


def _parts_that_may_be_none(newest) -> list[str]:
    """Files of one folder are parts of one export by their position, or by the time that their entry declares."""
    if newest.source_position or len(newest.parts) < 2 or all(part.declared_time for part in newest.parts):
        return []
    first, last = newest.parts[0].source_file, newest.parts[-1].source_file
    return [
        f"nothing says whether {first} and {last} are parts of one export, for their position is unknown; in "
        "_exports.yml give the entry of their folder a `taken_at`, or each file an entry, and run: highwater build"
    ]


def _corrections(newest) -> list[str]:
    return [
        f"{part.source_file} landed with the position {part.landed_position}, which _exports.yml has corrected"
        for part in newest.parts
        if part.landed_position and part.landed_position != (newest.source_position or "unknown")
    ]


def _overwritten(plan: Plan, newest) -> list[str]:
    """Return which files were written anew with the size and time that they had; on a disk the system tells that."""
    feed = declared_feeds().get(plan.feed)
    if feed is None or "://" in feed.root:
        return []
    changed = []
    for part in newest.parts:
        path = Path(feed.root, part.source_file)
        with suppress(OSError):
            there = path.stat()
            is_as_landed = (there.st_size, there.st_mtime_ns // 1000) == (
                part.file_size,
                _micros(part.file_modified_at),
            )
            if (
                is_as_landed
                and there.st_ctime_ns // 1000 > _micros(part.landed_at)
                and digest_of(feed.root, str(path)) != part.file_hash
            ):
                changed.append(new_files.changed_file(feed, part.source_file))
    return changed


def _micros(moment: datetime) -> int:
    """Return a time as Spark hands it on, in the zone of this process, as microseconds."""
    return round(moment.astimezone(timezone.utc).timestamp() * 1e6)


def _heads(spark, plan: Plan, parts: list) -> dict[str, list[str]]:
    """Return the names of the columns of each file; of those that landed without them, as a record has them."""
    heads = {part.source_file: json.loads(part.columns) for part in parts if part.columns}
    unknown = [part.source_file for part in parts if not part.columns]
    if unknown:
        rows = spark.sql(
            f"select source_file, any_value(map_keys(fields)) as names from {plan.raw} where entry = 'record' "
            f"and fields is not null and source_file in ({', '.join(map(sql_text, unknown))}) group by source_file"
        ).collect()
        heads |= {row.source_file: row.names for row in rows}
    return heads


def _columns_that_differ(plan: Plan, heads: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """Return which columns files lack, and which they have beside those of the table: these are no fault."""
    if not plan.log:
        return [], []
    fields, known = _fields_compared(plan), {column.field for column in declared_columns(plan.table)[0]}
    lacking = [field for field in fields if any(field not in names for names in heads.values())]
    if lacking:
        files = ", ".join(file for file, names in heads.items() if set(lacking) - set(names))
        others = {name.casefold(): name for names in heads.values() for name in names}
        alike = [f"{field} is written {others[field.casefold()]}" for field in lacking if field.casefold() in others]
        said = f" (names are compared letter by letter: {', '.join(alike)})" if alike else ""
        words = (
            f"the export has no column {', '.join(lacking)}{said}; take one of all columns of {plan.table}, or name "
            f"those to compare with `columns` of matches_export. It is missing in {files}"
        )
        return [words], []
    more = sorted({name for names in heads.values() for name in names} - known)
    beside = {field.casefold(): field for field in known}
    shown = [f"{name} (beside {beside[name.casefold()]})" if name.casefold() in beside else name for name in more]
    words = f"the export has columns that {plan.table} has not, and they are compared with nothing: {', '.join(shown)}"
    return [], [words] if shown else []


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
        listing: returns what waits in the folder of a feed.
    """
    feed = declared_feeds().get(plan.feed)
    if feed is None or feed.role != "export":
        return []
    try:
        waiting = listing(feed.name)
        beside = _exports_astray(plan, feed)
    except (UsageError, OSError) as error:
        return [f"what lies in the folder of {feed.name} cannot be listed, so a newer export may wait there: {error}"]
    changed = [new_files.changed_file(feed, file.source_file) for file in _of_table(plan, waiting.changed)]
    corrected = [
        f"{declared_exports.correction(file, entry)}; run: highwater build"
        for file, entry in waiting.corrected
        if file.table == plan.source_table
    ]
    new = _of_table(plan, waiting.new)
    undeclared = [file.undeclared for file in new if file.undeclared]
    sound = [file.source_file for file in new if not file.undeclared]
    odd = odd_in_words(feed, [file.source_file for file in _of_table(plan, waiting.odd)])
    return changed + corrected + list(dict.fromkeys(undeclared)) + _new_in_words(sound) + list(odd) + beside


def _of_table(plan: Plan, files) -> list:
    return [file for file in files if file.table == plan.source_table]


def _exports_astray(plan: Plan, feed: Feed) -> list[str]:
    """Return what is said of files that may be exports of the table and lie where exports of it are not read."""
    here = f"{feed.root}/{feed.name}/{plan.source_table}/"
    own, names = _letters(plan.source_table), [_letters(feed.source_table(table)) for table in feed.tables]

    def may_be_of_table(name: str, is_folder: bool) -> bool:
        letters = _letters(name.rsplit(".", 1)[-1]) if is_folder else _letters(name)
        # a file that is called like none of the tables may be of any of them
        return letters == own if is_folder else own in letters or not any(other in letters for other in names)

    astray = [
        (feed.name, name)
        for name, is_folder in feed_folders.entries_in(feed, feed.root, feed.name)
        if name not in map(feed.source_table, feed.tables)
        and may_be_of_table(name, is_folder)
        and (not is_folder or feed_folders.holds_files(feed, feed.root, feed.name, name))
    ]
    astray += [
        (name,)
        for name, is_folder in feed_folders.entries_in(feed, feed.root, "")
        if (_letters(name) in (own, _letters(feed.name)) if is_folder else own in _letters(name))
        and (not is_folder or (name not in declared_feeds() and feed_folders.holds_files(feed, feed.root, name)))
    ]
    if landing_root() != feed.root and feed_folders.holds_files(feed, landing_root(), feed.name):
        astray.append((landing_root(), feed.name))
    return [
        f"{printable('/'.join(path))} lies where exports of {plan.table} are not read, and may be a newer one; move "
        f"it into {printable(here)}, with its entry in the _exports.yml there, and run: highwater build"
        for path in astray
    ]


def _letters(name: str) -> str:
    """Return what tells a name from others that differ by upper and lower case and by signs only."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFC", name).casefold()))


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
    """Return why an export may be no whole export of the table: a file cut off."""
    files = ", ".join(map(sql_text, export.parts))
    return _files_cut_off(spark, f"{plan.raw} where entry = 'record' and source_file in ({files})")


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
