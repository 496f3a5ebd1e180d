"""An export of a table of a live database, with the position at which it was taken, while others write.

It reads, and nothing else: no writer waits for it, a user who may only read can take it, and a standby can be asked.
"""

import hashlib
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import yaml

from highwater.catalog.feeds import Feed, declared_feeds
from highwater.catalog.names import split_name
from highwater.databases.captures import Names
from highwater.databases.database import KINDS, POSTGRES, Database, Kind
from highwater.databases.source_tables import UNKNOWN, CapturedTable, MySqlTable, PostgresTable, SourceTable
from highwater.runtime.errors import UsageError
from highwater.runtime.project import write_whole

# rows of a large table that are read at a time
PART_ROWS = 100_000
SECONDS_BETWEEN_WORDS = 5


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
        file: its name when it is whole. columns: its header. key: what its parts are ranges of.
        origin: what its positions are of. start: the lowest position that rows of it may have. parts: those that are
            written, in the order of their keys.
    """

    file: str
    columns: list[str]
    key: list[list[str]]
    origin: str
    start: str
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

    Rows are read in one snapshot. Transactions that were under way before are waited for, so that it is known which
    changes it has. The position is exact for a table that `highwater extract` captures, and where MariaDB is asked;
    otherwise, and for a table that is written all the time in long transactions, it is two positions, and the snapshot
    was taken between them. Of a feed whose positions a database does not tell it is unknown.

    A large table is read in parts by its primary key. The database computes a checksum of each part; where it is the
    one that the export before has, the part is taken from there. An export that was interrupted goes on behind its
    last part; it is one between two positions, if anything has changed since it began.

    Arguments:
        name: `<feed>.<table>`, a table of PostgreSQL, MySQL or MariaDB.
        throttle: the database is asked for at most this share of the time, in percent.
    Returns: lines that say what was written.
    Raises: UsageError when there is no such table, or no feed of exports is declared for it; CheckError when the
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
    folder = Path(exports[0].root) / exports[0].name / exports[0].source_table(table)
    kinds = kinds_of(declared.get(feed))
    with Database(spark, feed, kinds) as database, Database(spark, feed, kinds) as others:
        source = _source_table(database, others, declared.get(feed), feed, table)
        start, end = source.snapshot()
        file = f"{table}-{datetime.now(timezone.utc):%Y%m%dT%H%M%S%f}.csv"
        new = Parts(file, source.columns, source.key, source.origin, start)
        unfinished, before = _unfinished(folder, table, new) or new, _export_before(folder, table, new)
        kept = _write(source, folder, unfinished, before, throttle)
    path = folder / unfinished.file
    position = end if unfinished.start == end else [unfinished.start, end]
    if not _has_positions(declared[feed], source):
        position = UNKNOWN
    _declare(path, position)
    _of_rows(path).rename(path)
    for older in folder.glob(f"_{table}-*.csv.parts.json"):
        older.unlink()
    _state(path).rename(_parts_of_whole(path))
    words = f"somewhere between {position[0]} and {position[1]}" if isinstance(position, list) else position
    rows, parts = unfinished.rows, len(unfinished.parts)
    same = f"; {kept:,} of {parts:,} parts have not changed since {before.file}" if kept else ""
    return [f"{path}: {rows:,} row{'s'[: rows != 1]} as of {words}{same}"]


def kinds_of(feed: Feed | None) -> Iterable[Kind]:
    """Return the kinds of databases that a feed can be exported from; what highwater captures is PostgreSQL's."""
    return (POSTGRES,) if feed and feed.format == "changelog" else KINDS.values()


def _source_table(database: Database, others: Database, feed: Feed | None, name: str, table: str) -> SourceTable:
    """Return the table of the database that a table of a feed is."""
    if feed is None:
        raise UsageError(f"{name} is no feed of this project; declare it: highwater add-table {name}.{table}.")
    if feed.format == "changelog":
        schema = feed.source_schema or "public"
        return CapturedTable(database, others, feed, Names(schema, table))
    kind, default = (PostgresTable, "public") if database.is_postgres else (MySqlTable, database.name())
    schema, source = feed.options.schema or default, feed.source_table(table)
    if schema is None:
        raise UsageError(f"the URL of the database of {name} names none: jdbc:mysql://<host>:<port>/<database>.")
    names = [Names(schema, source)]
    # where records tell tables, one of another schema is declared with it
    if "." in source:
        names.append(Names(*source.split(".", 1)))
    for each in names:
        if database.has_table(each.schema, each.table):
            return kind(database, others, feed, each)
    raise UsageError(
        f"the database of {name} has no table {source} in {schema}, or its user may not read it; one of another schema "
        "is declared with --source-table SCHEMA.TABLE."
    )


def _has_positions(feed: Feed, source: SourceTable) -> bool:
    """Return whether positions of the feed are what its database tells, see docs/reconciliation.md."""
    order, connector = feed.settings.get("order"), feed.settings.get("connector")
    if feed.settings.get("epochs"):
        return False
    if isinstance(source, CapturedTable):
        return True
    if isinstance(source, MySqlTable):
        # whether others have the beginning or the end of what they read is not known
        return connector in ("mysql", "mariadb")
    return order == "postgresql_sort_keys" or connector == "postgresql"


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
        is_same = found and found.is_like(new) and found.origin == new.origin and found.after
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


def _write(source: SourceTable, folder: Path, unfinished: Parts, before: Parts | None, throttle: int) -> int:
    """Write the rows, as the transaction sees them, part by part; return how many parts the export before had."""
    kept, said_at, began = 0, time.monotonic(), time.monotonic()
    for part, is_kept in _parts(source, folder, unfinished, before):
        kept += is_kept
        # a range without rows belongs to the part behind it
        if part.rows or not part.last:
            unfinished.parts.append(part)
            unfinished.write(_state(folder / unfinished.file))
        if not part.last:
            break
        if time.monotonic() - said_at > SECONDS_BETWEEN_WORDS:
            said_at = time.monotonic()
            print(f"{source.shown}: {unfinished.rows:,} rows so far", file=sys.stderr, flush=True)
        _rest((time.monotonic() - began) * (100 / throttle - 1))
        began = time.monotonic()
    return kept


def _parts(source: SourceTable, folder: Path, unfinished: Parts, before: Parts | None):
    """Yield each part that is still to come, written behind those on record, and whether the export before had it.

    Parts end where those of the export before do, so that they can be compared.
    """
    path, after = _of_rows(folder / unfinished.file), unfinished.after
    earlier = before.parts if before else []
    if after:
        # an export that is gone on with may have begun before that one, and end its parts elsewhere
        earlier = earlier[next((n for n, part in enumerate(earlier, 1) if part.last == after), len(earlier)) :]
    for known in earlier or [None]:
        upto = known.last if known else None
        is_same = known and _has_not_changed(source, source.between(after, upto), known)
        if is_same and (part := _taken_over(folder / before.file, known, path, unfinished.size)):
            yield part, True
            after = upto
            continue
        is_at_end = False
        while not is_at_end:
            last = (source.key and source.last_of_part(source.between(after, upto), PART_ROWS)) or upto
            yield _read(source, source.between(after, last), path, unfinished.size, last), False
            after, is_at_end = last, last == upto


def _has_not_changed(source: SourceTable, where: str, part: Part) -> bool:
    """Return whether the database has the rows of a part as they were."""
    return source.checksum(where) == part.checksum


def _rest(seconds: float) -> None:
    """Leave the database alone for so long."""
    time.sleep(seconds)


def _read(source: SourceTable, where: str, path: Path, size: int, last) -> Part:
    """Write rows of the database behind the first bytes of a file; return them as a part that ends with a key."""
    _cut(path, size)
    rows = source.write(where, path, has_header=not size)
    checksum, digest = _checksum(path, size, has_header=not size)
    return Part(last, rows, checksum, size, path.stat().st_size, digest)


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


def _declare(path: Path, position: str | list[str]) -> None:
    """Write the position beside the export."""
    beside = path.parent / "_exports.yml"
    text = beside.read_text() if beside.exists() else "# Where the source stood when each export was taken.\n"
    entry = {path.name: {"position": position, "taken_at": datetime.now(timezone.utc).isoformat()}}
    write_whole(beside, text + yaml.safe_dump(entry, default_flow_style=None))
