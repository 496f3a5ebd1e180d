"""An export of a captured PostgreSQL table, with the position at which it was taken, while others write.

It reads, and nothing else: no writer waits for it, a user who may only read can take it, and a standby can be asked.
"""

import hashlib
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import yaml

from highwater.database import Database, quoted
from highwater.errors import CheckError, UsageError
from highwater.extract import (
    WRITTEN_BY,
    Capture,
    Names,
    capture_of,
    columns_of,
    landed_number,
    names_of,
    split_name,
    texts_of,
)
from highwater.feeds import Feed, declared_feeds
from highwater.project import write_whole

# rows of a large table that are read at a time
PART_ROWS = 100_000
SECONDS_BETWEEN_WORDS = 5
# so many snapshots are looked at for one that no number is missing in
SNAPSHOTS = 50
SECONDS_FOR_WRITERS = 600
KEY = """
    select
        attname,
        format_type(atttypid, atttypmod),
        -- what decides what comes first: the type (an enum may be made anew), the collation, and its version, which an
        -- upgrade of the system changes
        concat_ws(
            ' ', atttypid, nullif(attcollation, 0)::regcollation, pg_collation_actual_version(nullif(attcollation, 0)),
            (select datcollate from pg_database where datname = current_database())
        )
    from pg_index
    cross join unnest(indkey) with ordinality as part (attribute, place)
    inner join pg_attribute on attrelid = indrelid and attnum = attribute
    where indrelid = to_regclass(?) and indisprimary
    order by place
"""
WRITERS = "select virtualtransaction from pg_locks where relation = to_regclass(?) and mode = 'RowExclusiveLock'"


@dataclass
class Part:
    """Rows of a range of keys.

    Attributes:
        last: SQL of the key that it ends with, one literal a column; None: it has all that follow. rows: how many.
        checksum: of the rows, as the database says it. begin, end: where its bytes stand. digest: of the bytes.
    """

    last: list[str] | None
    rows: int
    checksum: list[int]
    begin: int
    end: int
    digest: str


@dataclass
class Parts:
    """What an export has been written of so far: what a later run goes on with, or compares with.

    Attributes:
        file: its name when it is whole. columns: its header. key: what its parts are ranges of, as KEY has it.
        capture: number of the capture. start: the lowest position that rows of it may have. parts: those that are
            written, in the order of their keys.
    """

    file: str
    columns: list[str]
    key: list[list[str]]
    capture: int
    start: int
    parts: list[Part] = field(default_factory=list)

    @property
    def after(self) -> list[str] | None:
        """SQL of the key of the last row."""
        return self.parts[-1].last if self.parts else None

    @property
    def rows(self) -> int:
        """How many rows are written."""
        return sum(part.rows for part in self.parts)

    @property
    def size(self) -> int:
        """How many bytes of the file are on record."""
        return self.parts[-1].end if self.parts else 0

    def is_like(self, other: "Parts") -> bool:
        """Return whether parts of the one can be parts of the other."""
        return (self.columns, self.key) == (other.columns, other.key)

    def write(self, path: Path) -> None:
        """Put it on record."""
        write_whole(path, json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "Parts | None":
        """Return what is on record; None when a run was ended while it wrote that."""
        try:
            found = cls(**json.loads(path.read_text()))
            found.parts = [Part(**part) for part in found.parts]
        except (OSError, ValueError, TypeError):
            return None
        return found


def export(spark, name: str, throttle: int = 100) -> list[str]:
    """Export a table as a CSV file into the folder of its exports, with its position beside it.

    Rows are read in one snapshot. Of the changes up to the highest number in it, those that were under way when it was
    taken are waited for, so that it is known whether one is missing; then another snapshot is taken. A table that is
    written all the time in long transactions has an export between two positions in the end.

    A large table is read in parts by its primary key. The database computes a checksum of each part; where it is the
    one that the export before has, the part is taken from there. An export that was interrupted goes on behind its
    last part; it is one between two positions, if anything has changed since it began.

    Arguments:
        name: `<feed>.<table>`, captured by the method changelog.
        throttle: the database is asked for at most this share of the time, in percent.
    Returns: lines that say what was written.
    Raises: UsageError when the table is not captured so, or no feed of exports is declared for it; CheckError when the
        database says no.
    """
    feed, table = split_name(name)
    declared = declared_feeds()
    exports = [each for each in declared.values() if each.positions == feed and table in each.tables]
    if not exports:
        raise UsageError(
            f"no feed of exports is declared for {name}; declare it: highwater add-table "
            f"exports_{feed.partition('_')[2]}.{table} --format csv --setting role=export --setting positions={feed}"
        )
    names = names_of(declared.get(feed), table)
    folder = Path(exports[0].root) / exports[0].name / exports[0].source_table(table)
    with Database(spark, feed) as database, Database(spark, feed) as others:
        capture = _capture(database, names, name)
        texts = _texts(database, names)
        _refuse_older_capture(database, names, name, texts)
        start, end = _snapshot(spark, database, others, declared[feed], names, capture)
        file = f"{table}-{datetime.now(timezone.utc):%Y%m%dT%H%M%S%f}.csv"
        key = [list(column) for column in database.rows(KEY, names.source)]
        new = Parts(file, [column for column, _, _ in texts], key, capture.number, start)
        unfinished, before = _unfinished(folder, table, new) or new, _export_before(folder, table, new)
        kept = _write(spark, database, folder, names, texts, unfinished, before, throttle)
    path = folder / unfinished.file
    position = [f"{capture.number}/{number}" for number in (unfinished.start, end)]
    position = position if unfinished.start < end else position[1]
    _declare(path, position)
    _of_rows(path).rename(path)
    for older in folder.glob(f"_{table}-*.csv.parts.json"):
        older.unlink()
    _state(path).rename(_parts_of_whole(path))
    words = position if isinstance(position, str) else f"somewhere between {position[0]} and {position[1]}"
    rows, parts = unfinished.rows, len(unfinished.parts)
    same = f"; {kept:,} of {parts:,} parts have not changed since {before.file}" if kept else ""
    return [f"{path}: {rows:,} row{'s'[: rows != 1]} as of {words}{same}"]


def _capture(database: Database, names: Names, name: str) -> Capture:
    capture = capture_of(database, names)
    if capture is None or not capture.is_running or capture.method != "changelog":
        raise UsageError(f"{name} is not captured by the method changelog, so the export would have no position.")
    return capture


def _texts(database: Database, names: Names) -> list[tuple[str, str, str]]:
    """Return the text of each column, as it is captured; bytes without the sign before their hex digits."""
    kinds = {column: kind for column, kind, _ in columns_of(database, names)}
    return [
        (column, is_json, f"substr({value}, 3)" if kinds[column] == "bytea" else value)
        for column, is_json, value in texts_of(database, names, "source")
    ]


def _refuse_older_capture(database: Database, names: Names, name: str, texts: list) -> None:
    """Raise UsageError where triggers of an older version record JSON otherwise than an export has it."""
    told = "select prosrc not like '%image_of%' from pg_proc where oid = to_regproc(?)"
    if any(is_json == "t" for _, is_json, _ in texts) and database.rows(told, names.function) == [("t",)]:
        raise UsageError(
            f"{name} is captured by triggers of an older version, which record JSON in another form than it has; every "
            f"such value would differ. Capture it anew: highwater extract {name}, then --disable, then --enable."
        )


def _snapshot(spark, database: Database, others: Database, feed: Feed, names: Names, capture: Capture):
    """Fix what the transaction of `database` sees; return the positions that it is of, one twice or two.

    `others` looks at what is committed later.
    """
    for left in reversed(range(SNAPSHOTS)):
        database.rollback()
        database.run("set transaction isolation level repeatable read, read only")
        # a truncate, which snapshots do not see, waits until the export has ended
        database.run(f"lock table {names.source} in access share mode")
        ((after, oldest, is_standby),) = database.rows(
            "select pg_snapshot_xmax(pg_current_snapshot()), pg_snapshot_xmin(pg_current_snapshot()), "
            "pg_is_in_recovery()"
        )
        end = _highest_number(spark, database, feed, names, capture, is_standby == "t")
        recent = (
            f"select change_number from {names.changelog} where change_number <= {end} and {WRITTEN_BY} >= {oldest}"
        )
        seen = set(database.rows(recent))
        _wait_for_writers(others, names, after if is_standby == "t" else None)
        missing = [int(number) for (number,) in set(others.rows(recent)) - seen]
        others.rollback()
        if not missing:
            return end, end
        if not left:
            return min(missing) - 1, end
    raise AssertionError


def _highest_number(spark, database: Database, feed: Feed, names: Names, capture: Capture, is_standby: bool) -> int:
    """Return the highest number of a change that the snapshot has, whether it waits or has landed."""
    ((waiting,),) = database.rows(f"select max(change_number) from {names.changelog}")
    landed = landed_number(database, names)
    if landed is None and is_standby:
        raise UsageError(
            f"{feed.name}.{names.table} is captured by an older version, so a standby does not tell up to where its "
            f"changes have landed. Export from the primary, or there: highwater extract {feed.name}.{names.table}, "
            "then --disable, then --enable."
        )
    landed = _landed(spark, feed, names.table, capture.number) if landed is None else landed
    return max(int(waiting or 0), int(landed))


def _wait_for_writers(others: Database, names: Names, after: str | None) -> None:
    """Wait until those have ended who may have had a number when the snapshot was taken.

    Arguments:
        after: of a standby, which does not know who writes which table: the first transaction behind the snapshot.
    """
    began, told = time.monotonic(), False
    writing = set() if after else set(others.rows(WRITERS, names.changelog))
    while True:
        if after:
            others.rollback()
            ((oldest,),) = others.rows("select pg_snapshot_xmin(pg_current_snapshot())")
            if int(oldest) >= int(after):
                return
        elif not writing & set(others.rows(WRITERS, names.changelog)):
            return
        waited = time.monotonic() - began
        if waited > SECONDS_FOR_WRITERS:
            raise CheckError(
                f"a transaction that may have written {names.source} has been open for more than "
                f"{SECONDS_FOR_WRITERS // 60} minutes, so the position of an export is not known; nothing was written. "
                "End it (pg_stat_activity names it), or export again when it has ended."
            )
        if waited > 5 and not told:
            told = True
            print(f"waiting for transactions that write {names.source} to end", file=sys.stderr, flush=True)
        time.sleep(0.01 if waited < 1 else 0.2)


def _landed(spark, feed: Feed, table: str, capture: int) -> int:
    """Return the number of the last change that has landed."""
    return spark.sql(
        f"select coalesce(max(cast(source_position as bigint)), 0) from {feed.raw_table} "
        f"where entry = 'file' and startswith(source_file, '{feed.name}/{table}/capture-{capture:03}/')"
    ).first()[0]


def _of_rows(path: Path) -> Path:
    """Return where the rows of an export are until it is whole."""
    return path.with_name(f"{path.name}.unfinished")


def _state(path: Path) -> Path:
    """Return where it stands how far an export that is not whole has come."""
    return path.with_name(f"_{path.name}.json")


def _parts_of_whole(path: Path) -> Path:
    """Return where it stands what parts an export has."""
    return path.with_name(f"_{path.name}.parts.json")


def _unfinished(folder: Path, table: str, new: Parts) -> Parts | None:
    """Return the export to go on with in place of a new one; one that cannot be gone on with is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for state in sorted(folder.glob(f"_{table}-*.csv.json"), reverse=True):
        found, path = Parts.read(state), _of_rows(folder / state.name.removeprefix("_").removesuffix(".json"))
        is_same = found and found.is_like(new) and found.capture == new.capture and found.after
        if is_same and path.exists() and path.stat().st_size >= found.size:
            print(f"going on with {found.file}, which has {found.rows:,} rows", file=sys.stderr, flush=True)
            return found
        state.unlink()
    for left in folder.glob(f"{table}-*.csv.unfinished"):
        left.unlink()
    return None


def _export_before(folder: Path, table: str, new: Parts) -> Parts | None:
    """Return the newest export that is still there whole; its parts may be those of the new one."""
    for record in sorted(folder.glob(f"_{table}-*.csv.parts.json"), reverse=True):
        found = Parts.read(record)
        path = folder / record.name.removeprefix("_").removesuffix(".parts.json")
        if found and found.is_like(new) and path.exists() and path.stat().st_size == found.size:
            return found
    return None


def _write(
    spark, database: Database, folder: Path, names: Names, texts, unfinished: Parts, before: Parts | None, throttle: int
) -> int:
    """Write the rows, as the transaction sees them, part by part; return how many parts the export before had."""
    kept, told, began = 0, time.monotonic(), time.monotonic()
    for part, is_kept in _parts(spark, database, folder, names, texts, unfinished, before):
        kept += is_kept
        # a range without rows belongs to the part behind it
        if part.rows or not part.last:
            unfinished.parts.append(part)
            unfinished.write(_state(folder / unfinished.file))
        if not part.last:
            break
        if time.monotonic() - told > SECONDS_BETWEEN_WORDS:
            told = time.monotonic()
            print(f"{names.source}: {unfinished.rows:,} rows so far", file=sys.stderr, flush=True)
        _rest((time.monotonic() - began) * (100 / throttle - 1))
        began = time.monotonic()
    return kept


def _parts(spark, database: Database, folder: Path, names: Names, texts, unfinished: Parts, before: Parts | None):
    """Yield each part that is still to come, written behind those on record, and whether the export before had it.

    Parts end where those of the export before do, so that they can be compared.
    """
    key, path, after = unfinished.key, _of_rows(folder / unfinished.file), unfinished.after
    earlier = before.parts if before else []
    if after:
        # an export that is gone on with may have begun before that one, and end its parts elsewhere
        earlier = earlier[next((n for n, part in enumerate(earlier, 1) if part.last == after), len(earlier)) :]
    for known in earlier or [None]:
        upto = known.last if known else None
        is_same = known and _has_not_changed(database, names, texts, _between(key, after, upto), known)
        if is_same and (part := _taken_over(folder / before.file, known, path, unfinished.size)):
            yield part, True
            after = upto
            continue
        is_at_end = False
        while not is_at_end:
            last = _last_of_part(database, names, key, after, upto) or upto
            yield _read(spark, database, names, texts, _between(key, after, last), path, unfinished.size, last), False
            after, is_at_end = last, last == upto


def _rest(seconds: float) -> None:
    """Leave the database alone for so long."""
    time.sleep(seconds)


def _read(spark, database: Database, names: Names, texts, where: str, path: Path, size: int, last) -> Part:
    """Write rows of the database behind the first bytes of a file; return them as a part that ends with a key."""
    shown = ", ".join(f"{value} as {quoted(column)}" for column, _, value in texts)
    header = "" if size else ", header"
    copy = f"copy (select {shown} from {names.source} as source{where}) to stdout (format csv{header}, force_quote *)"
    rows = _append(spark, database, copy, path, size)
    checksum, digest = _checksum(path, size, has_header=not size)
    return Part(last, rows, checksum, size, path.stat().st_size, digest)


def _append(spark, database: Database, copy: str, path: Path, size: int) -> int:
    """Write what a copy gives behind the first bytes of a file; return the number of rows."""
    java = spark.sparkContext._jvm
    _cut(path, size)
    with database.errors():
        stream = java.java.io.FileOutputStream(str(path), True)
        try:
            return java.org.postgresql.copy.CopyManager(database.connection).copyOut(copy, stream)
        finally:
            stream.close()


def _cut(path: Path, size: int) -> None:
    """Take away what an interrupted run wrote behind the part that is on record."""
    if path.exists():
        with path.open("r+b") as left:
            left.truncate(size)


def _taken_over(source: Path, part: Part, path: Path, size: int) -> Part | None:
    """Write a part of another export behind the first bytes of a file; None: somebody has changed that export."""
    with source.open("rb") as stream:
        stream.seek(part.begin)
        content = stream.read(part.end - part.begin)
    # the first part of a file has its header
    if hashlib.sha256(content).hexdigest() != part.digest or (part.begin == 0) != (size == 0):
        return None
    _cut(path, size)
    with path.open("ab") as stream:
        stream.write(content)
    return Part(part.last, part.rows, part.checksum, size, size + len(content), part.digest)


def _checksum(path: Path, begin: int, has_header: bool) -> tuple[list[int], str]:
    """Return the checksum of the records behind the first bytes of a file, as the database has it, and their digest."""
    count, first, second, digest = 0, 0, 0, hashlib.sha256()
    record, quotes = [], 0
    with path.open("rb") as stream:
        stream.seek(begin)
        for line in stream:
            digest.update(line)
            record.append(line)
            quotes += line.count(b'"')
            if quotes % 2:
                continue  # a line break in a value
            if not has_header:
                found = hashlib.md5(b"".join(record)[:-1], usedforsecurity=False).digest()
                count += 1
                first += int.from_bytes(found[:8], "big", signed=True)
                second += int.from_bytes(found[8:], "big", signed=True)
            has_header, record = False, []
    return [count, first, second], digest.hexdigest()


def _has_not_changed(database: Database, names: Names, texts, where: str, part: Part) -> bool:
    """Return whether the database has the rows of a part as they were: number and checksum, which it computes."""
    record = " || ',' || ".join(f"""coalesce('"' || replace(({v})::text, '"', '""') || '"', '')""" for _, _, v in texts)
    halves = (f"coalesce(sum(('x' || substr(digest, {start}, 16))::bit(64)::bigint), 0)" for start in (1, 17))
    ((*found,),) = database.rows(
        f"select count(*), {', '.join(halves)} from "
        f"(select md5(convert_to({record}, 'UTF8')) as digest from {names.source} as source{where}) as records"
    )
    return [int(number) for number in found] == part.checksum


def _last_of_part(database: Database, names: Names, key: list, after, upto) -> list[str] | None:
    """Return the key that the next part ends with, as literals; None: it ends with the last key, or where it must."""
    if not key:
        return None
    columns = ", ".join(f"source.{quoted(column)}" for column, *_ in key)
    literals = ", ".join(f"quote_literal(source.{quoted(column)}::text)" for column, *_ in key)
    found = database.rows(
        f"select {literals} from {names.source} as source{_between(key, after, upto)} order by {columns} "
        f"offset {PART_ROWS - 1} limit 1"
    )
    return [f"{value}::{kind}" for value, (_, kind, _) in zip(found[0], key, strict=True)] if found else None


def _between(key: list, after: list[str] | None, last: list[str] | None) -> str:
    columns = ", ".join(f"source.{quoted(column)}" for column, *_ in key)
    bounds = [f"({columns}) {than} ({', '.join(values)})" for than, values in ((">", after), ("<=", last)) if values]
    return f" where {' and '.join(bounds)}" if bounds else ""


def _declare(path: Path, position: str | list[str]) -> None:
    """Write the position beside the export."""
    beside = path.parent / "_exports.yml"
    text = beside.read_text() if beside.exists() else "# Where the source stood when each export was taken.\n"
    entry = {path.name: {"position": position, "taken_at": datetime.now(timezone.utc).isoformat()}}
    write_whole(beside, text + yaml.safe_dump(entry, default_flow_style=None))
