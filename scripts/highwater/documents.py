"""Cut files of JSON documents into records, and find the table that a document names."""

import json
import re
from collections.abc import Iterator

import orjson
import pyarrow
from pyarrow import compute

from highwater import records
from highwater.formats import ReadOptions
from highwater.records import RECORDS, blocks_of_lines, record_batch, table_name, too_long, without_line_end

TOKEN = re.compile(rb'"(?:[^"\\\n]|\\[^\n])*"|[{}]')
BLANKS = re.compile(rb"\s*")
LINE_OF_DOCUMENT = re.compile(rb"^[ \t]*\{", re.MULTILINE)


def json_lines(stream) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of a file with one JSON document a line. Blank lines are no records."""
    for first, lines in blocks_of_lines(stream):
        numbered = [
            (number, without_line_end(line)) for number, line in enumerate(lines, first) if line and not line.isspace()
        ]
        if numbered:
            numbers, documents = zip(*numbered, strict=True)
            yield record_batch(numbers, documents)


def debezium_lines(stream) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of a Debezium file. A tombstone (`null`) says nothing, not even of which table: it is none."""
    for batch in json_lines(stream):
        yield batch.filter(compute.not_equal(batch.column("record"), pyarrow.scalar(b"null")))


def json_documents(stream) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of a file with JSON objects one after the other, each on one line or on many.

    A `{` in column 0 starts a document, whatever came before it: a document that was cut ends there, as it is. What is
    between documents is a record too, from where it starts to the next line that starts with `{`.
    """
    pending, start, size = [], 1, 0
    for first, lines in blocks_of_lines(stream):
        cut = []
        for number, line in enumerate(lines, first):
            if line.startswith(b"{"):
                cut += _documents(b"\n".join(pending), start)
                pending, start, size = [], number, 0
            pending.append(line)
            size += len(line) + 1
        if size > records.RECORD_BYTES_AT_MOST:
            text = b"\n".join(pending)
            *complete, (start, begin, end) = _pieces(text, start) or [(start, 0, 0)]
            if end - begin > records.RECORD_BYTES_AT_MOST:
                raise too_long(f"the document that starts in line {start}")
            cut += [(line, text[slice(*piece)]) for line, *piece in complete]
            pending, size = text[begin:].split(b"\n"), len(text) - begin
        if cut:
            yield record_batch(*zip(*cut, strict=True))
    if cut := _documents(b"\n".join(pending), start):
        yield record_batch(*zip(*cut, strict=True))


def _documents(text: bytes, line: int) -> list[tuple[int, bytes]]:
    """Return (line, bytes) of the documents in some lines, and of what is between them."""
    document = text.strip()
    if document.startswith(b"{") and _parsed(document) is not None:
        return [(line + text.count(b"\n", 0, text.index(b"{")), document)]
    return [(line, text[start:end]) for line, start, end in _pieces(text, line)]


def _pieces(text: bytes, line: int) -> list[tuple[int, int, int]]:
    """Return (line, start, end) of the documents in a text that starts in `line`, and of what is between them."""
    found, at = [], 0
    while (start := BLANKS.match(text, at).end()) < len(text):
        line += text.count(b"\n", at, start)
        at = _end_of_document(text, start) if text.startswith(b"{", start) else _next_document(text, start)
        found.append((line, start, start + len(text[start:at].rstrip())))
        line += text.count(b"\n", start, at)
    return found


def _end_of_document(text: bytes, start: int) -> int:
    """Return where the document that starts at `start` ends."""
    depth = 0
    for token in TOKEN.finditer(text, start):
        depth += {b"{": 1, b"}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)


def _next_document(text: bytes, start: int) -> int:
    """Return where the next line begins that a document begins with."""
    found = LINE_OF_DOCUMENT.search(text, start)
    return found.start() if found else len(text)


def _parsed(document: bytes):
    """Return what a JSON document says; None where it is none."""
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError:
        pass
    try:  # orjson is strict about lone surrogates, NaN and large numbers
        return json.loads(document)
    except (ValueError, RecursionError):
        return None


def _value(document, *path: str):
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _arcion(document) -> tuple:
    schema = _value(document, "tableName", "namespace", "schema")
    if schema in (None, "default_schema"):
        schema = _value(document, "tableName", "namespace", "catalog")
    return schema, _value(document, "tableName", "name")


def _debezium(document) -> tuple:
    source = _value(document, "source") or _value(document, "payload", "source")
    return _value(source, "schema") or _value(source, "db"), _value(source, "table")


def _datastream(document) -> tuple:
    source = _value(document, "source_metadata")
    return _value(source, "schema") or _value(source, "database"), _value(source, "table")


NAMED_TABLE = {
    "arcion-json": _arcion,
    "datastream-avro": _datastream,
    "datastream-gcs-json": _datastream,
    "debezium-json": _debezium,
}


def with_tables(batch: pyarrow.RecordBatch, options: ReadOptions) -> pyarrow.RecordBatch:
    """Return the batch with the table that each record names; NULL where it is broken or names none."""
    named = NAMED_TABLE[options.format]
    documents = batch.column("record").to_pylist()
    tables = [table_name(*named(_parsed(document)), options.schema) for document in documents]
    column = RECORDS.get_field_index("source_table")
    return batch.set_column(column, RECORDS.field(column), pyarrow.array(tables, pyarrow.string()))
