"""Land delivered files in `raw.<feed>`: every file exactly once, in one Delta commit per batch.

The raw table is its own memory. Beside the records of a file it holds one entry for the file itself, written by the
same commit, so there is no checkpoint to lose: what has landed is what the table says has landed.
"""

import functools
import hashlib
import json
import os
import re
import shlex
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

import pyarrow
import yaml
from pyarrow import compute, fs

from highwater.catalog.entities import logged_tables
from highwater.catalog.feeds import Feed, sql_text
from highwater.catalog.tables import THREADS
from highwater.formats import readers, records
from highwater.formats.formats import FORMATS, TABLE_IN_FILE_NAMES, TABLE_IN_FOLDERS, ReadOptions
from highwater.formats.records import (
    CountedStream,
    InShards,
    Table,
    TableNames,
    UnreadableFile,
    key_in_shards,
    names_of_table,
    owner_of,
    place_of_key,
    table_name,
)
from highwater.landing.deliveries import cut_in_words, skipping
from highwater.landing.file_names import is_called_so, left_alone
from highwater.landing.landings import (
    gone_back,
    landed_before_whole,
    left_for_the_first_time,
    newest_landing,
    note_landing,
    note_nothing_new,
    nothing_new,
    odd_names,
)
from highwater.landing.listing import DeliveredFile, Found, files_below, filesystem, folders_in, is_missing
from highwater.landing.whole import begun_before, cut_files
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.faults import doing
from highwater.runtime.printable import printable
from highwater.runtime.project import require_space

BATCH_BYTES = 1024**3
BATCH_FILES = 10_000
TASK_BYTES = 32 * 1024**2
MOST_TOLD = 10
LOOKED_AT_MOST = 1_000
LATER_CONTENT = re.compile(r"@(\d+)$")
NAMES_TABLE = re.compile(r"(?P<table>[^-]+)(-.+)?-\d+\.csv(\.gz)?")

RAW_TABLE = """
    create table if not exists {table} (
        entry string comment 'record, file (it landed), skipped (a file, on record), replayed (records taken again)',
        source_table string comment 'The table that the folder, the file name or the record names; NULL: it names none',
        source_file string comment 'Path below the landing folder',
        source_line int comment 'Line of the file where the record starts, from 1',
        landing_batch bigint comment 'Number of the batch it landed in, from 1, per feed',
        landed_at timestamp comment 'When that batch landed, UTC; increases from batch to batch',
        problem string comment 'Why the record could not be cut or decoded (`code: detail`); NULL: it could',
        record binary comment 'The exact bytes of the record',
        fields map<string, string> comment 'Values by name, where the reader takes them apart; of files: what is known',
        file_records bigint comment 'Files only: how many records it holds',
        file_size bigint comment 'Files only: bytes',
        file_modified_at timestamp comment 'Files only: last change, UTC',
        file_hash string comment 'Files only: SHA-256 of the bytes',
        source_position string comment 'Exports only: the position of the source at which it was taken, or `P0 .. P1`'
    )
    using delta
    partitioned by (entry)
    comment 'Everything that the feed {feed} delivered, as delivered'
"""

ENTRIES = pyarrow.schema(
    [
        ("entry", pyarrow.string()),
        ("source_file", pyarrow.string()),
        *records.RECORDS,
        ("file_records", pyarrow.int64()),
        ("file_size", pyarrow.int64()),
        ("file_modified_at", pyarrow.timestamp("us", tz="UTC")),
        ("file_hash", pyarrow.string()),
        ("source_position", pyarrow.string()),
    ]
)

_BAR = threading.Lock()
UNREADABLE = "HIGHWATER_UNREADABLE"


@dataclass
class Landed:
    """What landing a feed did, for the summary line.

    Attributes:
        is_gone: its folder is not there any more.
        newest: number and time, in microseconds, of the newest batch that raw has.
        tables: of whose files some have landed.
        gone_back: what to say of a raw table that lacks what had landed in it.
        cut: files that end within a line and wait until they are whole. odd: those that are not called as files of the
            feed are, and wait too. left: those that are not looked into, and that no landing has named before, with
            what each is in words. begun: files that are whole now, each with the name under which its beginning
            landed before, until the feed declares that this is ignored.
        second: tables whose bare name another table has, by the name that they go by: (the table, the other one).
        refused: of exports, what to do about the files that have not landed; each keeps only itself.
        corrected: of exports, what `_exports.yml` says otherwise now than when they landed.
    """

    feed: str
    files: int = 0
    records: int = 0
    newest: tuple[int, int] = (0, 0)
    gone_back: str | None = None
    seconds: float = 0.0
    changed: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    begun: list[tuple[str, str]] = field(default_factory=list)
    undeclared: list[str] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    is_gone: bool = False
    second: dict[str, tuple[Table, Table]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    corrected: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if not self.files:
            return f"{self.feed}: nothing new"
        return (
            f"{self.feed}: {self.files:,} file{'s'[: self.files != 1]}, "
            f"{self.records:,} record{'s'[: self.records != 1]}, {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class Delivered:
    """What lies in the folders of a feed, in the order of the names.

    Attributes:
        files: that are read. odd: those that are not called as files of the feed are; they are not read.
        left: names below the landing folder of what is still written, or holds no data, and what each is in words.
    """

    files: list[DeliveredFile] = field(default_factory=list)
    odd: list[DeliveredFile] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


def look(feed: Feed) -> Delivered:
    """Look into the folders of a feed.

    An export that `_exports.yml` does not declare says so itself, as `undeclared`.
    """
    found = Delivered()
    if not FORMATS[feed.format].is_delivered:
        return found
    names = {"format": feed.format, "endings": feed.endings}
    for table, folders in _folders_of_tables(feed):
        read = []
        for file in files_below(feed.root, *folders, leaves_alone=functools.partial(left_alone, **names)):
            if file.left is not None:
                found.left["/".join((*folders, str(file.below)))] = file.left
            elif file.problem or is_called_so(file.below.name, **names):
                read.append(file)
            else:
                found.odd.append(_delivered(feed, table, folders, file, Declared()))
        positions = _export_positions(feed, folders, [file for file in read if not file.problem])
        found.files.extend(
            _delivered(feed, table, folders, file, positions.get(str(file.below), Declared())) for file in read
        )
    return Delivered(_each_once(found.files), _each_once(found.odd), found.left)


def _folders_of_tables(feed: Feed) -> list[tuple[str | None, list[str]]]:
    """Return which folders hold the files of which tables, as raw calls them, each as the way to it."""
    if feed.layout != TABLE_IN_FOLDERS:
        return [(None, [feed.name])]
    found = []
    for name in feed.tables:
        table, shards = feed.source_table(name), feed.shards_of(name)
        schemas = [[each] for each in _looked_into(feed) if shards.has(each, table)] if shards else [[]]
        found += [(table, [feed.name, *schema, table]) for schema in schemas]
    # those of tables that the source has renamed
    return found + [(table, [feed.name, other]) for other, table in feed.options.also_called.items()]


def _looked_into(feed: Feed, *folders: str) -> list[str]:
    """Return the names of the folders in a folder of a feed, but of those that are left alone."""
    names = folders_in(feed.root, "/".join((feed.name, *folders)))
    return sorted(name for name in names if left_alone(name, True, feed.format, feed.endings) is None)


def _each_once(files: list[DeliveredFile]) -> list[DeliveredFile]:
    return list({file.source_file: file for file in files}.values())


def delivered_files(feed: Feed) -> list[DeliveredFile]:
    """List the files of a feed that are to be read, in the order of their names."""
    return look(feed).files


def has_all_landed(feed: Feed, delivered: Delivered | None = None) -> bool:
    """Return whether all files that lie in the feed's folders are known to have landed, without asking Spark.

    Arguments:
        delivered: what lies there; None: look.
    """
    delivered = delivered or look(feed)
    return not delivered.files or nothing_new(feed, _digest(feed, delivered)) is not None


def waiting_files(feed: Feed, delivered: Delivered) -> tuple[list[str], list[str]]:
    """Return the files that wait for somebody, without asking Spark: not called as the feed's are, and cut.

    Of those that may be cut the newest are looked at, and none where all have landed.
    """
    if nothing_new(feed, _digest(feed, delivered)) is not None:
        return odd_names(feed), []
    newest = sorted(delivered.files, key=lambda file: file.modified_at)[-LOOKED_AT_MOST:]
    cut = cut_files(feed.root, feed.format, newest)
    return [file.source_file for file in delivered.odd], [file.source_file for file in cut]


def _digest(feed: Feed, delivered: Delivered) -> str:
    """Return what tells a listing of files from any other, and with it which tables are shards."""
    told = repr((delivered.files, delivered.odd)) + (repr(feed.options.shards) if feed.options.shards else "")
    return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()


def _delivered(feed: Feed, table: str | None, folders: list[str], file: Found, declared: "Declared") -> DeliveredFile:
    name = os.path.normpath("/".join((*folders, str(file.below))))
    return DeliveredFile(
        path=file.path,
        source_file=printable(name) if file.problem else name,
        table=feed.in_raw(_table_of_file(file.below.name, feed) if feed.layout == TABLE_IN_FILE_NAMES else table),
        size=file.size,
        modified_at=file.modified_at,
        position=declared.position,
        taken_at=declared.taken_at,
        problem=file.problem,
        entry=declared.entry,
        undeclared=declared.problem,
    )


def require_landing_folder(feeds: Iterable[Feed]) -> None:
    """Check that the folder is there into which these feeds are delivered.

    Raises: UsageError naming the folder; an empty one is no error, a missing one is a disk that is not there or a typo.
    """
    for feed in feeds:
        if FORMATS[feed.format].is_delivered and feed.role != "export" and is_missing(feed.root):
            raise UsageError(
                f"the landing folder {printable(feed.root)} is not there, so nothing can land. Is its disk mounted? "
                "HIGHWATER_LANDING says where feeds are delivered."
            )


def is_gone(feed: Feed) -> bool:
    """Return whether the folder of a feed is not there; before the first delivery none is."""
    return FORMATS[feed.format].is_delivered and is_missing(f"{feed.root}/{feed.name}")


def _table_of_file(name: str, feed: Feed) -> str | None:
    """Return the table that a file named `<schema>-<table>[-<partition key>]-<number>.csv` belongs to.

    The schema of the name goes up to the first `-`, unless the name starts with the schema that the feed declares.
    """
    schema, _, rest = name.partition("-")
    own = feed.options.schema
    if own and name.lower().startswith(f"{own}-".lower()):
        schema, rest = own, name[len(own) + 1 :]
    named = NAMES_TABLE.fullmatch(rest)
    return table_name(schema, named["table"], own) if named else None


def undeclared_folders(feed: Feed) -> list[str]:
    """Return the names of the folders beside the feed's table folders, whose files are not read.

    Of the folders of shards, which are in those of schemas, one of each table: `<schema>/<table>`.
    """
    if feed.layout != TABLE_IN_FOLDERS or not FORMATS[feed.format].is_delivered:
        return []
    declared = {feed.source_table(table) for table in feed.tables if not feed.shards_of(table)}
    declared |= feed.options.also_called.keys()
    found, of_shards = [], set()
    for name in _looked_into(feed):
        tables = {each.table for each in feed.options.shards if each.has(name, each.table)}
        if name not in declared and not tables:
            found.append(name)
        elif name not in declared:
            others = set(_looked_into(feed, name)) - tables - of_shards
            found += [f"{name}/{table}" for table in sorted(others)]
            of_shards |= others
    return found


@dataclass(frozen=True)
class Declared:
    """What `_exports.yml` says of an export: position and time, by which entry; or why it may not land."""

    position: str | None = None
    taken_at: str | None = None
    entry: str | None = None
    problem: str | None = None


def entries_in(feed: Feed, root: str, folder: str) -> list[tuple[str, bool]]:
    """Return what lies in a folder below a root and is not left alone: names, and whether each is a folder."""
    system, path = filesystem(root)
    found = system.get_file_info(fs.FileSelector("/".join(filter(None, (path, folder))), allow_not_found=True))
    names = ((info.base_name, info.type == fs.FileType.Directory) for info in found)
    return sorted(each for each in names if left_alone(*each, feed.format, feed.endings) is None)


def holds_files(feed: Feed, root: str, *folders: str) -> bool:
    """Return whether a folder below a root, or one in it, has a file that is not left alone."""
    leaves_alone = functools.partial(left_alone, format=feed.format, endings=feed.endings)
    return any(file.left is None for file in files_below(root, *folders, leaves_alone=leaves_alone))


def _export_positions(feed: Feed, folders: list[str], files: list[Found]) -> dict[str, Declared]:
    """Return what `_exports.yml` beside the exports declares: of each file, or of a folder above it.

    An export that was taken while the source went on has two positions, written `P0 .. P1`; one of no known position
    has None, and one of no declared time too. What is wrong with one entry keeps nothing but its own files.
    """
    if not files or feed.role != "export":
        return {}
    system, root = filesystem(feed.root)
    path = "/".join((root, *folders, "_exports.yml"))
    try:
        if system.get_file_info(path).type != fs.FileType.File:
            raise UsageError(
                f"{path} is missing. It says at which position of the source each export was taken, "
                f"for example `{files[0].below}: {{position: unknown}}`, or a position as the feed of the changes "
                "has it."
            )
        with system.open_input_stream(path) as stream:
            declared = _entries_of_exports(path, stream.read())
    except UsageError as error:
        return {str(file.below): Declared(problem=str(error)) for file in files}
    return {str(file.below): _declared_of(path, declared, file.below) for file in files}


def _declared_of(path: str, declared: dict, below) -> Declared:
    """Return what the entries of `_exports.yml` say of one file."""
    names = [str(below), *(str(parent) for parent in below.parents)]
    name = next((name for name in names if isinstance(declared.get(name), dict)), None)
    entry = declared.get(name, {})
    given = entry.get("position")
    between = given if isinstance(given, list) else [given]
    if not all(isinstance(position, str) for position in between) or len(between) not in (1, 2):
        return Declared(
            problem=f'{path} declares no position for {below}: a quoted text; ["P0", "P1"] when it was taken between '
            "two; or `unknown`."
        )
    try:
        taken_at = _moment(path, below, entry.get("taken_at"))
    except UsageError as error:
        return Declared(problem=str(error))
    return Declared(None if given == "unknown" else " .. ".join(between), taken_at, name)


def _entries_of_exports(path: str, content: bytes) -> dict:
    """Return the entries of `_exports.yml`, by the name of a file or folder."""
    try:
        declared = yaml.safe_load(content) or {}
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(declared, dict):
        raise UsageError(f'{path} declares no exports; each is a line: `<file>: {{position: "..."}}`.')
    return {str(name): entry for name, entry in declared.items()}


def _moment(path: str, below, given) -> str | None:
    """Return a declared time as text, in UTC; one without a zone is of UTC."""
    if given is None:
        return None
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
        moment = moment.replace(tzinfo=moment.tzinfo or timezone.utc).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{path} declares {given!r} as taken_at of {below}; write a time as 2026-03-02T09:20:45Z."
        ) from None
    return moment.isoformat(sep=" ")


def _read_files(options: ReadOptions, root: str, counted, owners: dict[str, Table], keeps_owners: bool):
    """Return the function that Spark runs on each partition of the list of files; it adds up the records read."""

    def entries(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        system, _ = filesystem(root)
        for batch in batches:
            for file in batch.to_pylist():
                names = None
                if options.table_in_records:
                    names = TableNames(options.schema, owners, keeps_owners, options.shards)
                for found in _read_file(system, options, file, names):
                    counted.add(compute.sum(found.column("file_records")).as_py() or 0)
                    yield found

    return entries


def _read_file(
    system: fs.FileSystem, options: ReadOptions, file: dict, names: TableNames | None
) -> Iterator[pyarrow.RecordBatch]:
    count, columns = 0, []
    try:
        with system.open_input_stream(file["path"], compression=None) as opened:
            stream = CountedStream(opened)
            for batch in _read_records(system, options, file, stream, names, columns):
                count += batch.num_rows
                yield _entries("record", file, as_declared(batch, options.also_called))
            while stream.read(records.BLOCK_BYTES):
                pass
        if stream.size != file["size"]:
            raise UnreadableFile(
                f"it had {file['size']:,} bytes when it was listed and {stream.size:,} when it was read; "
                "is it still written?"
            )
    except (UnreadableFile, OSError) as error:
        message = json.dumps({"file": file["source_file"], "why": str(error)})
        raise RuntimeError(f"{UNREADABLE}{message}{UNREADABLE}") from None
    told = [(name, json.dumps(table)) for name, table in names.seen.items()] if names else []
    told += [(name, file[name]) for name in ("taken_at", "export_entry") if file[name]]
    told += [("columns", json.dumps(columns))] if columns and file["export_entry"] else []
    nothing = records.record_batch([None], [None], fields=[told] if told or names else None)
    yield _entries("file", file, nothing, count, stream.size, stream.digest())


def _read_records(system: fs.FileSystem, options: ReadOptions, file: dict, stream: CountedStream, names, columns):
    """Yield the file's records, from the stream where the reader can; `columns` gets the names in its head."""
    if readers.needs_random_access(options):
        with system.open_input_file(file["path"]) as opened:
            yield from readers.read(opened, options, names, columns)
    else:
        yield from readers.read(stream, options, names, columns)


def as_declared(batch: pyarrow.RecordBatch, also_called: dict[str, str]) -> pyarrow.RecordBatch:
    """Return records under the names that raw has for tables which the source has renamed."""
    place = batch.schema.get_field_index("source_table")
    told = batch.column(place).to_pylist() if also_called else []
    if not also_called.keys() & {*told}:
        return batch
    tables = pyarrow.array([also_called.get(name, name) for name in told], pyarrow.string())
    return batch.set_column(place, batch.schema.field(place), tables)


def _entries(entry, file, batch, count=None, size=None, digest=None) -> pyarrow.RecordBatch:
    def repeated(value, kind=None):
        return pyarrow.repeat(pyarrow.scalar(value, kind or pyarrow.string()), batch.num_rows)

    columns = {
        "entry": repeated(entry),
        "source_file": repeated(file["source_file"]),
        **dict(zip(batch.schema.names, batch.columns, strict=True)),
        "source_table": compute.coalesce(batch.column("source_table"), repeated(file["table"])),
        "file_records": repeated(count, pyarrow.int64()),
        "file_size": repeated(size, pyarrow.int64()),
        "file_modified_at": repeated(
            file["modified_at"] if entry == "file" else None, pyarrow.timestamp("us", tz="UTC")
        ),
        "file_hash": repeated(digest),
        "source_position": repeated(file["position"] if entry == "file" else None),
    }
    return pyarrow.record_batch([columns[name] for name in ENTRIES.names], schema=ENTRIES)


def hash_of(feed: Feed, path: str) -> str:
    """Return the SHA-256 of a delivered file as it is now."""
    system, _ = filesystem(feed.root)
    digest = hashlib.sha256()
    with system.open_input_stream(path, compression=None) as stream:
        while block := stream.read(records.BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _hash_if_readable(feed: Feed, path: str) -> str | None:
    try:
        return hash_of(feed, path)
    except OSError:
        return None


def _entries_of_files(spark, feed: Feed, which: str = "entry <> 'record'") -> list:
    """Return what the raw table holds about files, in the order of batches and names; one narrow pass, no shuffle."""
    rows = spark.sql(
        f"""
        select
            entry,
            source_file,
            file_size,
            unix_micros(file_modified_at) as modified,
            file_hash,
            landing_batch,
            unix_micros(landed_at) as landed,
            source_position,
            fields
        from {feed.raw_table}
        where {which}
        """
    ).collect()
    return sorted(rows, key=lambda row: (row.landing_batch, row.source_file))


def _known_files(entries: list) -> dict:
    """Return what is known of each file that landed or was skipped: its newest entry by name."""
    return {entry.source_file: entry for entry in entries}


def _owners(spark, feed: Feed, entries: list) -> tuple[dict[str, Table], bool]:
    """Return which table goes by each name of the feed: the one whose record landed first, by batch, file and line.

    Arguments:
        entries: what the raw table holds about files.
    Returns: the tables by name, and whether they are to be kept with the next batch: files that landed before names
        were kept tell nothing, and what their first records say is asked once.
    """
    files = [entry for entry in entries if entry.entry == "file"]
    if not files:
        return {}, False
    if all(file.fields is None for file in files):
        return _owners_by_first_records(spark, feed), True
    owners: dict[str, Table] = {}
    newest = entries[-1].landing_batch
    for file in files:
        if file.landing_batch < newest:
            _take_in_owners(feed, file, owners)
    # which a kill may have kept from happening
    _repair_names(spark, feed, newest, [file for file in files if file.landing_batch == newest], owners)
    return owners, False


def _take_in_owners(feed: Feed, file, owners: dict[str, Table]) -> None:
    """Add the tables of a file to the owners of their names, but names that the feed would not give them any more."""
    _take_in(feed, {name: tuple(json.loads(told)) for name, told in (file.fields or {}).items()}, owners)


def _take_in(feed: Feed, told: dict[str, Table], owners: dict[str, Table]) -> None:
    for name, table in told.items():
        if name in names_of_table(*table, feed.options.schema):
            owner_of(owners, name, table)


def _owners_by_first_records(spark, feed: Feed) -> dict[str, Table]:
    rows = spark.sql(
        f"""
        select source_table, min_by(record, struct(landing_batch, source_file, source_line)) as record
        from {feed.raw_table}
        where entry = 'record' and source_table is not null
        group by source_table
        """
    ).collect()
    return {row.source_table: readers.named_table(feed.format, bytes(row.record)) for row in rows}


def _repair_names(spark, feed: Feed, number: int, files: list, owners: dict[str, Table]) -> None:
    """Add the tables of a batch to the owners; repair the names of its records where its files disagree about one.

    Files are read side by side. Within a file the first table has the bare name; among files it is the first file's.

    Arguments:
        files: entries of the files of the batch, by name.
    """
    told = [(name, table) for file in files for name, table in (file.fields or {}).items()]
    disagree = len(set(told)) > len(dict(told))
    for file in files:
        if disagree:
            names = TableNames(feed.options.schema, owners, shards=feed.options.shards)
            renamed = {name: names.name_of(*json.loads(table)) for name, table in (file.fields or {}).items()}
            renamed = {name: new for name, new in renamed.items() if not isinstance(new, InShards)}
            _take_in(feed, names.seen, owners)
            if any(name != new for name, new in renamed.items()):
                _rename(spark, feed, number, file.source_file, renamed, names.seen)
        else:
            _take_in_owners(feed, file, owners)


def _rename(spark, feed, number: int, source_file: str, renamed: dict[str, str], seen: dict[str, Table]) -> None:
    """Write the names of one file's tables anew, and which table each one is, by one commit."""
    cases = " ".join(f"when {sql_text(name)} then {sql_text(new)}" for name, new in renamed.items())
    tables = ", ".join(f"{sql_text(name)}, {sql_text(json.dumps(table))}" for name, table in seen.items())
    spark.sql(
        f"""
        update {feed.raw_table}
        set
            source_table = case source_table {cases} else source_table end,
            fields = case entry when 'file' then map({tables}) else fields end
        where landing_batch = {number} and source_file = {sql_text(source_file)}
        """
    )


@dataclass(frozen=True)
class Move:
    """Records of a table that raw has under another name than the feed gives it as it is declared now.

    Attributes:
        key: what the table goes by among those that files have named; new_key: what it is to go by.
        name, shard: what raw says of its records. new_name, new_shard: what it is to say.
    """

    key: str
    new_key: str
    name: str
    shard: str | None
    new_name: str
    new_shard: str | None

    @property
    def condition(self) -> str:
        """Which records of raw they are, in SQL."""
        shard = f"= {sql_text(self.shard)}" if self.shard is not None else "is null"
        return f"source_table = {sql_text(self.name)} and fields['shard'] {shard}"


def _moves(feed: Feed, entries: list) -> list[Move]:
    """Return the tables that have come to shards since their records landed, or whose shards are declared no more.

    What a table with shards has of a schema stays when no pattern has it any more: the log has it too.
    """
    named = {
        (key, tuple(json.loads(told)))
        for entry in entries
        if entry.entry == "file"
        for key, told in (entry.fields or {}).items()
    }
    if not feed.options.shards and not any(place_of_key(*each)[1] for each in named):
        return []
    owners: dict[str, Table] = {}
    _take_in(feed, dict(named), owners)
    names = TableNames(feed.options.schema, owners, shards=feed.options.shards)
    of_shards, moves = {shards.table.lower() for shards in feed.options.shards}, []
    for key, table in sorted(named, key=repr):
        place, new = place_of_key(key, table), names.name_of(*table)
        new_place = (str(new), new.shard if isinstance(new, InShards) else None)
        is_next = new_place[1] or key.lower() in of_shards if place[1] is None else place[0].lower() not in of_shards
        if place != new_place and is_next:
            new_key = key_in_shards(new_place[0], table) if new_place[1] else new_place[0]
            moves.append(Move(key, new_key, *place, *new_place))
    return moves


def _move(spark, feed: Feed, moves: list[Move], number: int, at: datetime) -> None:
    """Let records that have landed arrive again, as a batch, under the names that they have now.

    So the log of a table that they come to takes them, whatever it has read. Killed on the way, all of it happens
    again.
    """
    append(entry_of_file(spark, "replayed", None, None, file_records=0), feed, number, at)
    names = " ".join(f"when {move.condition} then {sql_text(move.new_name)}" for move in moves)
    shards = " ".join(
        f"when {move.condition} then {sql_text(move.new_shard)}" for move in moves if move.new_shard is not None
    )
    shard = f"case {shards} end" if shards else "cast(null as string)"
    none = "cast(map() as map<string, string>)"
    others = f"map_filter(coalesce(fields, {none}), (name, value) -> name <> 'shard')"
    spark.sql(
        f"""
        update {feed.raw_table}
        set
            source_table = case {names} end,
            fields = map_concat({others}, if({shard} is null, {none}, map('shard', {shard}))),
            landing_batch = {number},
            landed_at = timestamp_micros({_micros(at)})
        where entry = 'record' and ({" or ".join(f"({move.condition})" for move in moves)})
        """
    )
    keys = " ".join(f"when {sql_text(move.key)} then {sql_text(move.new_key)}" for move in moves)
    moved = ", ".join(sql_text(move.key) for move in moves)
    spark.sql(
        f"""
        update {feed.raw_table}
        set fields = transform_keys(fields, (name, value) -> case name {keys} else name end)
        where entry = 'file' and exists(map_keys(fields), name -> name in ({moved}))
        """
    )


def _second_tables(feed: Feed, owners: dict[str, Table]) -> dict[str, tuple[Table, Table]]:
    """Return the tables that are not declared but for their bare name, which another table has."""
    declared, second = {feed.source_table(table) for table in feed.tables}, {}
    for name, (schema, table) in owners.items():
        bare = names_of_table(schema, table, feed.options.schema)[0]
        if name not in declared and bare in declared and bare in owners and bare != name:
            second[name] = ((schema, table), owners[bare])
    return second


def _micros(moment: datetime) -> int:
    return (moment - datetime.fromtimestamp(0, timezone.utc)) // timedelta(microseconds=1)


def new_and_changed(spark, feed: Feed) -> tuple[list[DeliveredFile], list[DeliveredFile]]:
    """Return the files of a feed that lie in its folder and have not landed, and those that have changed since."""
    waiting = what_waits(spark, feed)
    return waiting.new, waiting.changed


@dataclass(frozen=True)
class Waiting:
    """What lies in the folder of a feed and is not as it has landed.

    Attributes:
        new: files that have not landed. changed: that have changed since.
        corrected: exports of which `_exports.yml` says something else than when they landed, each with what landed.
        odd: files that are not called as those of the feed are, and have not landed.
    """

    new: list[DeliveredFile]
    changed: list[DeliveredFile]
    corrected: list[tuple[DeliveredFile, dict]] = field(default_factory=list)
    odd: list[DeliveredFile] = field(default_factory=list)


def what_waits(spark, feed: Feed) -> Waiting:
    """Return what the next landing of a feed would find."""
    delivered = look(feed)
    known = _known_files(_entries_of_files(spark, feed)) if spark.catalog.tableExists(feed.raw_table) else {}
    odd = [file for file in delivered.odd if file.source_file not in known]
    new, changed = _new_and_changed(feed, delivered.files, known)
    return Waiting(new, changed, _corrected(feed, delivered.files, known), odd)


def _corrected(feed: Feed, delivered: list[DeliveredFile], known: dict) -> list[tuple[DeliveredFile, dict]]:
    """Return the exports that have landed by another declaration than `_exports.yml` has now, each with its entry."""
    if feed.role != "export":
        return []
    landed = [(file, known[file.source_file]) for file in delivered if file.source_file in known]
    return [
        (file, entry)
        for file, entry in landed
        if entry["entry"] == "file"
        and not (file.undeclared or file.problem)
        and (file.position, file.taken_at) != (entry["source_position"], (entry["fields"] or {}).get("taken_at"))
    ]


def correction(file: DeliveredFile, entry) -> str:
    """Return what `_exports.yml` says otherwise of an export than when it landed."""
    landed_at = (entry["fields"] or {}).get("taken_at")
    was = f"{entry['source_position'] or 'unknown'}{', taken ' + landed_at if landed_at else ''}"
    now = f"{file.position or 'unknown'}{', taken ' + file.taken_at if file.taken_at else ''}"
    return f"{printable(file.source_file)} landed with the position {was}; _exports.yml has {now} now"


def _take_corrections(spark, feed: Feed, corrected: list) -> None:
    """Write what `_exports.yml` says now to the entries of files that landed by something else, by one commit."""

    def case(value) -> str:
        return " ".join(f"when {sql_text(file.source_file)} then {value(file, entry)}" for file, entry in corrected)

    def position(file, _) -> str:
        return sql_text(file.position) if file.position else "cast(null as string)"

    def told(file, entry) -> str:
        before = entry["fields"] or {}
        first = before.get("landed_position", entry["source_position"] or "unknown")
        now = {"taken_at": file.taken_at, "export_entry": file.entry, "landed_position": first}
        fields = {name: value for name, value in (before | now).items() if value is not None}
        return f"map({', '.join(sql_text(text) for pair in fields.items() for text in pair)})"

    spark.sql(
        f"""
        update {feed.raw_table}
        set
            source_position = case source_file {case(position)} end,
            fields = case source_file {case(told)} end
        where entry = 'file' and source_file in ({", ".join(sql_text(file.source_file) for file, _ in corrected)})
        """
    )


def _gone(known: dict, delivered: Delivered) -> list[tuple[str, int, str]]:
    """Return name, size and SHA-256 of the files that have landed and do not lie there any more."""
    there = {file.source_file for file in delivered.files + delivered.odd} | delivered.left.keys()
    return [
        (name, entry["file_size"], entry["file_hash"])
        for name, entry in known.items()
        if name not in there and entry["entry"] == "file"
    ]


def _new_and_changed(
    feed: Feed, delivered: list[DeliveredFile], known: dict
) -> tuple[list[DeliveredFile], list[DeliveredFile]]:
    """Return the files that have not landed, also what cannot be read, and those that have changed since they landed.

    What cannot be read has no hash, so what was left out as such is known by that.
    """
    new, changed = [], []
    for file in delivered:
        entry = known.get(file.source_file)
        if entry is None or (file.problem and entry["file_hash"] is not None):
            new.append(file)
        elif file.problem:
            continue
        elif (entry["file_size"], entry["modified"]) != (file.size, _micros(file.modified_at)) and (
            entry["file_size"] != file.size or entry["file_hash"] != hash_of(feed, file.path)
        ):
            changed.append(file)
    return new, changed


def _exports_refused(feed: Feed, files: list[DeliveredFile]) -> dict[str, str]:
    """Return of exports that cannot land what to do, by file; what is said of several is said once."""
    refused: dict[str, str] = {}
    for file in files:
        if file.problem:
            refused[file.source_file] = (
                f"{file.source_file} {printable(file.problem)}, so it has not landed; other exports have. "
                f"Take it away, or leave it out on record with: {skipping(file.source_file)}"
            )
        elif file.undeclared:
            refused[file.source_file] = f"{feed.name}: {file.undeclared} Until then it does not land; other exports do."
    return refused


def _refuse_what_cannot_be_read(feed: Feed, files: list[DeliveredFile]) -> None:
    told = [
        f"{file.source_file} {printable(file.problem)}. Nothing of {feed.name} has landed. Take it away, or leave it "
        f"out on record with: {skipping(file.source_file)}"
        for file in files
        if file.problem
    ]
    if told:
        more = [f"{feed.name}: {len(told) - MOST_TOLD:,} more cannot be read"] if len(told) > MOST_TOLD else []
        raise CheckError("\n".join([*told[:MOST_TOLD], *more]))


def _batches(files: list[DeliveredFile]) -> Iterator[list[DeliveredFile]]:
    """Cut the list of files so that no batch is much larger than BATCH_BYTES."""
    batch, size = [], 0
    for file in files:
        if batch and (size + file.size > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


def next_batch(spark, feed: Feed) -> tuple[int, datetime]:
    """Return number and time of the next batch; both are above those of every batch that the lake has heard of."""
    number, landed = spark.sql(
        f"select max(landing_batch), max(unix_micros(landed_at)) from {feed.raw_table} where entry <> 'record'"
    ).first()
    return _batch_after(*newest_landing(spark, feed, (number or 0, landed or 0)))


def _batch_after(last: int, landed: int) -> tuple[int, datetime]:
    previous = datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=landed)
    return last + 1, max(datetime.now(timezone.utc), previous + timedelta(microseconds=1))


def append(frame, feed: Feed, number: int, at: datetime) -> None:
    """Add entries to the raw table of a feed as one batch, by one commit.

    Arguments:
        frame: entries, in the columns of ENTRIES. number, at: of the batch, see next_batch.
    """
    from pyspark.sql import functions as f

    frame = frame.withColumn("landing_batch", f.lit(number).cast("bigint"))
    frame = frame.withColumn("landed_at", f.timestamp_micros(f.lit(_micros(at)).cast("bigint")))
    columns = frame.sparkSession.table(feed.raw_table).columns
    frame.select(*columns).write.format("delta").mode("append").saveAsTable(feed.raw_table)
    note_landing(feed, (number, _micros(at)))


@contextmanager
def _progress(spark, label: str):
    """Show how many tasks of a running batch are done, where a person is watching; of batches side by side, of one."""
    if not sys.stderr.isatty() or not _BAR.acquire(blocking=False):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    done = threading.Event()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def watch():
            tracker = spark.sparkContext.statusTracker()
            while not done.wait(0.3):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                stages = [stage for stage in stages if stage]
                if stages:
                    total = sum(stage.numTasks for stage in stages)
                    bar.update(task, total=total, completed=sum(s.numCompletedTasks for s in stages))

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            _BAR.release()


def create_raw_table(spark, feed: Feed) -> None:
    """Create `raw.<feed>` where it is missing, so that models build before anything has landed."""
    spark.sql(RAW_TABLE.format(table=feed.raw_table, feed=feed.name))


def land(spark, feed: Feed) -> Landed:
    """Land the new files of one feed.

    Returns: counts for the summary line, the names of delivered files that changed after they had landed or wait for
        another reason, and of folders that are no declared table.
    Raises: CheckError naming what cannot be read and the command that skips it; nothing of its batch lands. An export
        that cannot be read keeps only itself from landing, see `refused`. UsageError when the disk of the lake has not
        the room that the files take.
    """
    started = time.monotonic()
    result, delivered = Landed(feed.name), look(feed)
    listing = _digest(feed, delivered)
    result.undeclared = undeclared_folders(feed)
    if landing := nothing_new(feed, listing):
        result.newest, result.is_gone = landing, any(landing) and is_gone(feed)
        result.odd, result.left = odd_names(feed), left_for_the_first_time(feed, delivered.left)
        result.begun = landed_before_whole(feed, [])
        return result
    is_first = not spark.catalog.tableExists(feed.raw_table)
    create_raw_table(spark, feed)
    entries = [] if is_first else _entries_of_files(spark, feed)
    known = _known_files(entries)
    new, changed = _new_and_changed(
        feed, delivered.files + [file for file in delivered.odd if file.source_file in known], known
    )
    if feed.role == "export":
        refused = _exports_refused(feed, new)
        new, result.refused = [file for file in new if file.source_file not in refused], [*set(refused.values())]
        corrected = _corrected(feed, delivered.files, known)
        if corrected:
            _take_corrections(spark, feed, corrected)
        result.corrected = [correction(file, entry) for file, entry in corrected]
    else:
        _refuse_what_cannot_be_read(feed, new)
    cut = cut_files(feed.root, feed.format, new)
    result.cut = [file.source_file for file in cut]
    new = [file for file in new if file not in cut] if cut else new
    result.odd = [file.source_file for file in delivered.odd if file.source_file not in known]
    result.is_gone = bool(known) and is_gone(feed)
    result.newest = max(((entry["landing_batch"], entry["landed"]) for entry in known.values()), default=(0, 0))
    begun = begun_before(feed.root, new, _gone(known, delivered)) if feed.role != "export" else ()
    result.begun = landed_before_whole(feed, [(file.source_file, before) for file, before in begun])
    last = newest_landing(spark, feed, result.newest)
    result.gone_back = gone_back(feed.name, result.newest, last)
    names_tables = feed.options.table_in_records
    if names_tables and (moves := _moves(feed, entries)):
        number, at = _batch_after(*last)
        last = result.newest = (number, _micros(at))
        _move(spark, feed, moves, number, at)
        entries = _entries_of_files(spark, feed)
    owners, keeps_owners = _owners(spark, feed, entries) if new and names_tables else ({}, False)
    result.changed = [file.source_file for file in changed]
    for batch in _batches(new):
        require_space(sum(file.size for file in batch), f"landing {feed.name}")
        number, at = _batch_after(*last)
        batch, count = _land_sound(spark, feed, batch, number, at, owners, keeps_owners, result.refused)
        if not batch:
            continue
        last = result.newest = (number, _micros(at))
        result.records += count
        if names_tables:
            result.second = _second_tables(feed, owners)
        result.files += len(batch)
        result.tables |= {file.table for file in batch if file.table}
    if not changed and not cut and not result.gone_back and not result.refused:
        note_nothing_new(feed, listing, result.newest, result.odd)
    result.left = left_for_the_first_time(feed, delivered.left)
    result.seconds = time.monotonic() - started
    return result


def land_all(spark, feeds: Iterable[Feed]) -> Iterator[tuple[Feed, Landed | Exception]]:
    """Land the new files of feeds, some side by side; those that bring records of one table, one after the other.

    So which record came first is never chance.

    Yields: each feed, in the order given, with what land returned or raised.
    """
    feeds = list(feeds)
    together = {feed.name: [feed] for feed in feeds}
    for _, sources in logged_tables():
        of_table = [together[name] for name, _ in sources if name in together]
        for other in of_table[1:]:
            if other is not of_table[0]:
                of_table[0].extend(other)
                together |= {feed.name: of_table[0] for feed in other}
    groups = {id(group): sorted(group, key=feeds.index) for group in together.values()}
    threads = ThreadPoolExecutor(THREADS)
    landing = {id: threads.submit(_land_group, spark, group) for id, group in groups.items()}
    try:
        for feed in feeds:
            yield feed, landing[id(together[feed.name])].result()[feed.name]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        if not all(future.done() for future in landing.values()):  # Ctrl-C, or a full disk
            with suppress(Exception):
                spark.sparkContext.cancelAllJobs()


def _land_group(spark, feeds: list[Feed]) -> dict[str, Landed | Exception]:
    landed = {}
    for feed in feeds:
        try:
            with doing(f"landing {feed.name}"):
                landed[feed.name] = land(spark, feed)
        except Exception as error:
            landed[feed.name] = error
    return landed


def _land_sound(spark, feed, files, number, at, owners, keeps_owners, refused: list[str]) -> tuple[list, int]:
    """Land a batch, of exports without the files that cannot be read; return what has landed, and its records.

    Arguments:
        refused: gets what to do about those that have not.
    Raises: UnreadableDelivery, where the files hold changes: of them nothing of the batch lands.
    """
    while files:
        try:
            return files, _land_batch(spark, feed, files, number, at, owners, keeps_owners)
        except UnreadableDelivery as error:
            if feed.role != "export":
                raise
            refused.append(
                f"{printable(error.source_file)} cannot be read: {printable(error.why)}. It has not landed; other "
                "exports have. Deliver it again under another name, or leave it out on record with: "
                f"{skipping(error.source_file)}"
            )
            files = [file for file in files if file.source_file != error.source_file]
    return [], 0


class UnreadableDelivery(CheckError):
    """A delivered file cannot be read, so nothing of its batch has landed."""

    def __init__(self, source_file: str, why: str):
        super().__init__(
            f"{printable(source_file)} cannot be read: {printable(why)}. Nothing of its batch has "
            f"landed. Deliver it again, or leave it out on record with: {skipping(source_file)}"
        )
        self.source_file, self.why = source_file, why


def _land_batch(spark, feed, files, number, at, owners: dict[str, Table], keeps_owners: bool, beside=None) -> int:
    """Read files into a batch, with further entries beside them, by one commit; return how many records they hold."""
    size = sum(file.size for file in files)
    rows = [
        (
            file.path,
            file.source_file,
            file.table,
            file.size,
            file.modified_at,
            file.position,
            file.taken_at,
            file.entry,
        )
        for file in files
    ]
    cores = spark.sparkContext.defaultParallelism
    tasks = max(min(cores, len(files)), min(len(files), size // TASK_BYTES))
    schema = "path string, source_file string, table string, size bigint, modified_at timestamp, position string"
    schema += ", taken_at string, export_entry string"
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, tasks), schema)
    counted = spark.sparkContext.accumulator(0)
    reading = _read_files(feed.options, feed.root, counted, dict(owners), keeps_owners)
    frame = frame.mapInArrow(reading, _spark_schema())
    label = f"{feed.name}: reading {len(files):,} files, {size / 1e6:,.1f} MB"
    try:
        with _progress(spark, label):
            append(frame.unionByName(beside) if beside is not None else frame, feed, number, at)
    except Exception as error:
        _explain(error)
        raise
    if feed.options.table_in_records:
        files = _entries_of_files(spark, feed, f"entry = 'file' and landing_batch = {number}")
        _repair_names(spark, feed, number, files, owners)
    return counted.value


def name_of_content(source_file: str) -> str:
    """Return the name that a file was delivered under; what landed of it later is called `<name>@2`, `<name>@3`."""
    return LATER_CONTENT.sub("", source_file)


def number_of_content(source_file: str) -> int:
    """Return which content of a file landed under this name: 1 the first, 2 that of `<name>@2`."""
    later = LATER_CONTENT.search(source_file)
    return int(later[1]) if later else 1


def changed_file(feed: Feed, source_file: str) -> str:
    """Return what to do about a file whose content has changed since it landed.

    Under another name it would be taken for more of what there was, and its rows could lose to older ones.
    """
    skip_it, name = skipping(source_file), printable(source_file)
    if feed.role == "export":
        return f"{name} has changed since it landed. Deliver the new export under a new name, or: {skip_it}"
    folder = feed.table_of_file(source_file)
    fed = [entity for entity, sources in logged_tables() if (feed.name, folder) in sources]
    return (
        f"{name} has changed since it landed, and what it holds now is not read. A full load that is taken "
        "again writes its files anew; to take it as the truth from then on: "
        f"highwater resync {fed[0] if fed else 'TABLE'} --from {shlex.quote(name)}. "
        f"To leave it out on record: {skip_it}"
    )


def land_again(spark, feed: Feed, names: list[str]) -> int:
    """Land files that have landed before in their present content, under the name `<name>@2`, `<name>@3` and so on.

    The same commit records that the file as it is now needs no landing under its own name.

    Arguments:
        names: of the files, as landing names them.
    Returns: the number of their batch.
    Raises: UsageError when one of them is no longer there; CheckError when one cannot be read, or was cut.
    """
    delivered = {file.source_file: file for file in delivered_files(feed) if not file.problem}
    gone = [name for name in names if name not in delivered]
    if gone:
        raise UsageError(
            f"{printable(', '.join(gone))}: the file is no longer in the landing folder; deliver it again."
        )
    entries = _entries_of_files(spark, feed)
    known = _known_files(entries)
    files = [delivered[name] for name in names]
    if cut := cut_files(feed.root, feed.format, files):
        raise CheckError("\n".join(cut_in_words(feed, file.source_file) for file in cut))
    later = []
    for file in files:
        last = max(number_of_content(name) for name in known if name_of_content(name) == file.source_file)
        later.append(replace(file, source_file=f"{file.source_file}@{last + 1}"))
    skipped = [_entry_of_delivered(spark, feed, "skipped", file) for file in files]
    number, at = next_batch(spark, feed)
    owners = _owners(spark, feed, entries) if feed.options.table_in_records else ({}, False)
    _land_batch(
        spark, feed, later, number, at, *owners, functools.reduce(lambda one, other: one.unionByName(other), skipped)
    )
    return number


def _spark_schema():
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(ENTRIES)


def _explain(error: Exception) -> None:
    found = re.search(f"{UNREADABLE}(.*?){UNREADABLE}", str(error))
    if found:
        problem = json.loads(found[1])
        raise UnreadableDelivery(problem["file"], problem["why"]) from None


def entry_of_file(spark, entry: str, table: str | None, source_file: str, **values):
    """Return a frame of one entry about a file.

    Arguments:
        entry: `file` or `skipped`. table: that it belongs to. values: further columns of ENTRIES, by name.
    """
    row = {"entry": entry, "source_table": table, "source_file": source_file, **values}
    return spark.createDataFrame([dict.fromkeys(ENTRIES.names) | row], _spark_schema())


def _entry_of_delivered(spark, feed: Feed, entry: str, file: DeliveredFile):
    """Return a frame of one entry about a delivered file as it is now."""
    return entry_of_file(
        spark,
        entry,
        file.table,
        file.source_file,
        file_size=file.size,
        file_modified_at=file.modified_at,
        file_hash=None if file.problem else _hash_if_readable(feed, file.path),
    )


def skip(spark, feeds: dict[str, Feed], source_file: str) -> str:
    """Leave a delivered file out, on record: landing passes over it from now on, in its present content.

    Arguments:
        source_file: as landing names it, `<feed>/...`, or as its messages show that name.
    Returns: a sentence that says what was recorded.
    Raises: UsageError when there is no such file, or it has landed and is unchanged.
    """
    feed, shown = feeds.get(source_file.split("/")[0]), printable(source_file)
    if feed is None:
        raise UsageError(f"{shown}: no feed of that name; files are named <feed>/<path below its folder>.")
    create_raw_table(spark, feed)
    delivered = look(feed)
    known = _known_files(_entries_of_files(spark, feed))
    new, changed = _new_and_changed(feed, delivered.files + delivered.odd, known)
    files = {name: file for file in new + changed for name in (printable(file.source_file), file.source_file)}
    if source_file not in files:
        raise UsageError(f"{shown} is not waiting: it has landed or was skipped, or there is no such file.")
    file = files[source_file]
    number, at = next_batch(spark, feed)
    append(_entry_of_delivered(spark, feed, "skipped", file), feed, number, at)
    if file in changed:
        return f"{shown}: what landed first stays; its new content is left out, on record (batch {number})."
    return f"{shown} is left out, on record (batch {number} of raw.{feed.name})."
