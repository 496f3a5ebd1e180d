"""Cut delivered files into records: exact bytes, true line numbers, bounded memory.

Everything here streams: a file of any size passes through blocks of a few megabytes. Nothing here knows Spark.
"""

import zlib
from collections.abc import Iterator

import pyarrow

from highwater.formats.avro import avro_records
from highwater.formats.compression import AVRO, HEAD_BYTES, PARQUET, decompressed, is_packed, refuse_foreign
from highwater.formats.connect import avro_documents, parquet_documents
from highwater.formats.delimited import delimited
from highwater.formats.documents import json_records, named_table_of, what_is_said, with_tables
from highwater.formats.formats import DECLARED, ReadOptions
from highwater.formats.parquet import parquet_rows
from highwater.formats.records import TableNames, UnreadableFile


def _avro(stream, options: ReadOptions, names: TableNames | None) -> Iterator[pyarrow.RecordBatch]:
    for batch in avro_records(stream):
        yield with_tables(batch, options.format, names) if names else batch


READERS = {
    "arcion-json": json_records,
    "datastream-avro": _avro,
    "datastream-gcs-json": json_records,
    "datastream-json": json_records,
    "debezium-json": json_records,
    "debezium-avro": avro_documents,
    "debezium-parquet": parquet_documents,
    **dict.fromkeys(("json", "table", *DECLARED), json_records),
}


OF_AVRO = {"datastream-avro", "debezium-avro"}


def needs_random_access(options: ReadOptions) -> bool:
    """Return whether `read` needs a file that is open for random access, in place of a stream."""
    return options.format.endswith("parquet")


def read(
    opened, options: ReadOptions, names: TableNames | None = None, columns: list[str] | None = None
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of one open file, in batches with the schema RECORDS.

    Arguments:
        opened: the file's bytes, as delivered: a CountedStream, or a file where `needs_random_access` says so.
        options: what the feed declares.
        names: where records tell their tables, gives them their names; by default nothing has landed before.
        columns: gets the names of columns in the head of a file that has one, also of one without rows.
    Raises: UnreadableFile saying what is wrong with the file as a whole.
    """
    if options.table_in_records and names is None:
        names = TableNames(options.schema, shards=options.shards)
    try:
        yield from _batches(opened, options, names, [] if columns is None else columns)
    except (OSError, EOFError, zlib.error) as error:  # packed: not whole, damaged, bytes behind the end
        raise UnreadableFile(str(error)) from error


def named_table(options: ReadOptions, record: bytes) -> tuple:
    """Return (schema, table) as a record names them that landed when records were not unwrapped yet."""
    return named_table_of(options)(what_is_said(record))


def _batches(opened, options: ReadOptions, names: TableNames | None, columns: list) -> Iterator[pyarrow.RecordBatch]:
    if needs_random_access(options):
        head = opened.read(HEAD_BYTES)
        if is_packed(head):
            raise UnreadableFile("it is packed as a whole, and Parquet packs its columns inside: unpack it")
        refuse_foreign(head, PARQUET)
        opened.seek(0)
        if options.format in READERS:
            return READERS[options.format](opened, options, names)
        return parquet_rows(opened, columns)
    unpacked = decompressed(opened)
    refuse_foreign(unpacked.peek(HEAD_BYTES)[:HEAD_BYTES], AVRO if options.format in OF_AVRO else None)
    if options.dialect:
        return delimited(unpacked, options.dialect, columns)
    return READERS[options.format](unpacked, options, names)
