"""Cut delivered files into records: exact bytes, true line numbers, bounded memory.

Everything here streams: a file of any size passes through blocks of a few megabytes. Nothing here knows Spark.
"""

import zlib
from collections.abc import Iterator

import pyarrow

from highwater.avro import avro_records
from highwater.delimited import delimited
from highwater.documents import debezium_lines, json_documents, json_lines, with_tables
from highwater.formats import ReadOptions
from highwater.parquet import parquet_rows
from highwater.records import UnreadableFile, decompressed

READERS = {
    "arcion-json": json_documents,
    "datastream-avro": avro_records,
    "datastream-gcs-json": json_lines,
    "datastream-json": json_lines,
    "debezium-json": debezium_lines,
}


def needs_random_access(options: ReadOptions) -> bool:
    """Return whether `read` needs a file that is open for random access, in place of a stream."""
    return options.format in ("dms-parquet", "parquet")


def read(opened, options: ReadOptions) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of one open file, in batches with the schema RECORDS.

    Arguments:
        opened: the file's bytes, as delivered: a CountedStream, or a file where `needs_random_access` says so.
        options: what the feed declares.
    Raises: UnreadableFile saying what is wrong with the file as a whole.
    """
    try:
        for batch in _batches(opened, options):
            yield with_tables(batch, options) if options.table_in_records else batch
    except (OSError, EOFError, zlib.error) as error:  # gzip: not whole, damaged, bytes behind the end
        raise UnreadableFile(str(error)) from error


def _batches(opened, options: ReadOptions) -> Iterator[pyarrow.RecordBatch]:
    if needs_random_access(options):
        return parquet_rows(opened)
    if options.dialect:
        return delimited(decompressed(opened), options.dialect)
    return READERS[options.format](decompressed(opened))
