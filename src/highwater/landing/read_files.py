"""Files read into the entries of the raw table, inside of the tasks of Spark."""

import json
import re
from collections.abc import Iterator

import pyarrow
from pyarrow import compute, fs

from highwater.formats import readers, records
from highwater.formats.formats import ReadOptions
from highwater.formats.records import CountedStream, Table, TableNames, UnreadableFile
from highwater.landing.deliveries import skipping
from highwater.landing.listing import filesystem
from highwater.landing.raw_table import ENTRIES
from highwater.runtime.errors import CheckError
from highwater.runtime.printable import printable

UNREADABLE = "HIGHWATER_UNREADABLE"


def read_files(options: ReadOptions, root: str, counted, owners: dict[str, Table], keeps_owners: bool):
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
                yield entries_of("record", file, as_declared(batch, options.also_called))
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
    known = [(name, json.dumps(table)) for name, table in names.seen.items()] if names else []
    known += [(name, file[name]) for name in ("taken_at", "export_entry") if file[name]]
    known += [("columns", json.dumps(columns))] if columns and file["export_entry"] else []
    nothing = records.record_batch([None], [None], fields=[known] if known or names else None)
    yield entries_of("file", file, nothing, count, stream.size, stream.digest())


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
    called = batch.column(place).to_pylist() if also_called else []
    if not also_called.keys() & {*called}:
        return batch
    tables = pyarrow.array([also_called.get(name, name) for name in called], pyarrow.string())
    return batch.set_column(place, batch.schema.field(place), tables)


def entries_of(entry, file, batch, count=None, size=None, digest=None) -> pyarrow.RecordBatch:
    """Return entries of the raw table of what a file has brought, or of the file itself.

    Arguments:
        entry: `record` or `file`. file: its `source_file`, `table`, `modified_at` and `position`.
        batch: as readers yield it. count, size, digest: of the file, how many records, bytes and their SHA-256.
    """

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


class UnreadableDelivery(CheckError):
    """A delivered file cannot be read, so nothing of its batch has landed."""

    def __init__(self, source_file: str, why: str):
        super().__init__(
            f"{printable(source_file)} cannot be read: {printable(why)}. Nothing of its batch has "
            f"landed. Deliver it again, or leave it out on record with: {skipping(source_file)}"
        )
        self.source_file, self.why = source_file, why


def explain(error: Exception) -> None:
    """Raise UnreadableDelivery where that is what a failed job of Spark tells of."""
    found = re.search(f"{UNREADABLE}(.*?){UNREADABLE}", str(error))
    if found:
        problem = json.loads(found[1])
        raise UnreadableDelivery(problem["file"], problem["why"]) from None
