"""Cut delivered files into records: exact bytes, true line numbers, bounded memory.

Everything here streams: a file of any size passes through blocks of a few megabytes. Nothing here knows Spark.
"""

import gzip
import hashlib
import io
from collections.abc import Iterator

import numpy
import pyarrow
import pyarrow.csv

BLOCK_BYTES = 4 * 1024 * 1024
RECORD_BYTES_AT_MOST = 64 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

RECORDS = pyarrow.schema(
    [
        ("source_line", pyarrow.int32()),
        ("record", pyarrow.binary()),
        ("fields", pyarrow.map_(pyarrow.string(), pyarrow.string())),
        ("problem", pyarrow.string()),
    ]
)


class UnreadableFile(Exception):
    """The file as a whole cannot be read; the message says why, without the file's name."""


class CountedStream(io.RawIOBase):
    """Passes a stream's bytes on, counting and hashing them."""

    def __init__(self, stream):
        self._stream = stream
        self._hash = hashlib.sha256()
        self.size = 0

    def readable(self):
        """Return True: this is a stream to read from."""
        return True

    def readinto(self, buffer):
        """Fill `buffer` from the stream; return the number of bytes read."""
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._hash.update(data)
        self.size += len(data)
        return len(data)

    def digest(self) -> str:
        """Return the SHA-256 of the bytes that passed, in hex."""
        return self._hash.hexdigest()


def decompressed(stream: CountedStream) -> io.BufferedIOBase:
    """Return the stream's bytes, unpacked where they are gzip (by their first bytes, whatever the file's name)."""
    buffered = io.BufferedReader(stream, BLOCK_BYTES)
    if buffered.peek(2)[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=buffered)
    return buffered


def _blocks_of_lines(stream) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (number of the first line, lines without their ends) for block after block."""
    number, rest = 1, b""
    while chunk := stream.read(BLOCK_BYTES):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        if len(rest) > RECORD_BYTES_AT_MOST:
            raise UnreadableFile(
                f"line {number + len(lines)} is longer than {RECORD_BYTES_AT_MOST >> 20} MiB, "
                "the most that one record may have"
            )
        yield number, lines
        number += len(lines)
    if rest:
        yield number, [rest]


def _without_line_end(line: bytes) -> bytes:
    return line[:-1] if line.endswith(b"\r") else line


def json_lines(stream) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of a file with one JSON document a line. Blank lines are no records."""
    for first, lines in _blocks_of_lines(stream):
        if first == 1 and lines:
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
        numbered = [
            (number, _without_line_end(line)) for number, line in enumerate(lines, first) if line and not line.isspace()
        ]
        if numbered:
            numbers, records = zip(*numbered, strict=True)
            yield _record_batch(numbers, records)


def _record_batch(numbers, records, fields=None, problems=None) -> pyarrow.RecordBatch:
    nothing = pyarrow.nulls(len(records))
    return pyarrow.record_batch(
        [
            pyarrow.array(numbers, pyarrow.int32()),
            pyarrow.array(records, pyarrow.binary()),
            nothing.cast(RECORDS.field("fields").type) if fields is None else fields,
            pyarrow.array(problems, pyarrow.string()) if problems else nothing.cast(pyarrow.string()),
        ],
        schema=RECORDS,
    )


def _blocks_of_csv_records(stream) -> Iterator[tuple[list[int], list[bytes]]]:
    """Yield (line numbers, records) for block after block; a quoted value may hold line ends."""
    open_record, open_line = [], 0
    for first, lines in _blocks_of_lines(stream):
        numbers, records, size = [], [], sum(map(len, open_record))
        for number, line in enumerate(lines, first):
            if open_record:
                open_record.append(line)
                size += len(line)
                if size > RECORD_BYTES_AT_MOST:
                    raise UnreadableFile(f"the quotes that open in line {open_line} do not close")
                if line.count(b'"') % 2:
                    numbers.append(open_line)
                    records.append(_without_line_end(b"\n".join(open_record)))
                    open_record = []
            elif line.count(b'"') % 2:
                open_record, open_line, size = [line], number, len(line)
            elif line and not line.isspace():
                numbers.append(number)
                records.append(_without_line_end(line))
        yield numbers, records
    if open_record:
        yield [open_line], [_without_line_end(b"\n".join(open_record))]


def csv_with_header(stream) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of a comma-separated file whose first record names the columns.

    RFC 4180: values may be quoted, a quote inside is doubled. An empty unquoted value is NULL, `""` is the empty
    string. A record with another number of values than the header, with quotes that do not close, or with bytes
    that are no UTF-8 is passed on with its problem and without fields.
    """
    header: list[str] | None = None
    for numbers, records in _blocks_of_csv_records(stream):
        if header is None and records:
            header = _header(records[0].removeprefix(BYTE_ORDER_MARK))
            numbers, records = numbers[1:], records[1:]
        if records:
            try:
                yield _record_batch(numbers, records, _csv_fields(records, header))
            except pyarrow.ArrowInvalid:  # some record of the block is bad: find out which
                for number, record in zip(numbers, records, strict=True):
                    try:
                        yield _record_batch([number], [record], _csv_fields([record], header))
                    except pyarrow.ArrowInvalid:
                        yield _record_batch([number], [record], problems=[_csv_problem(record)])


def _header(record: bytes) -> list[str]:
    try:
        values = _parse_csv([record], None)
        names = [column[0].as_py().decode() for column in values]
    except (pyarrow.ArrowInvalid, UnicodeDecodeError, AttributeError) as error:
        raise UnreadableFile("its first line is no header of column names") from error
    if len(set(names)) < len(names):
        raise UnreadableFile("its header names a column twice")
    return names


def _parse_csv(records: list[bytes], names: list[str] | None) -> list[pyarrow.Array]:
    count = {"column_names": names} if names else {"autogenerate_column_names": True}
    types = {name: pyarrow.binary() for name in names or []}
    table = pyarrow.csv.read_csv(
        io.BytesIO(b"\n".join(records) + b"\n"),
        read_options=pyarrow.csv.ReadOptions(**count, use_threads=False, block_size=RECORD_BYTES_AT_MOST * 2),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types or None,
            check_utf8=False,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    if table.num_rows != len(records):
        raise pyarrow.ArrowInvalid("records and rows differ")
    return [column.combine_chunks().cast(pyarrow.binary()) for column in table.columns]


def _csv_fields(records: list[bytes], header: list[str]) -> pyarrow.MapArray:
    if records[-1].count(b'"') % 2:  # only the last record of a file can be open; pyarrow would close it
        raise pyarrow.ArrowInvalid("quotes do not close")
    columns = [column.cast(pyarrow.string()) for column in _parse_csv(records, header)]
    rows, width = len(records), len(header)
    by_row = numpy.arange(width * rows).reshape(width, rows).T.ravel()
    return pyarrow.MapArray.from_arrays(
        pyarrow.array(numpy.arange(rows + 1, dtype="int32") * width),
        pyarrow.array(header * rows, pyarrow.string()),
        pyarrow.concat_arrays(columns).take(pyarrow.array(by_row)),
    )


def _csv_problem(record: bytes) -> str:
    try:
        record.decode()
    except UnicodeDecodeError:
        return "not_utf8"
    return "malformed_record" if record.count(b'"') % 2 else "wrong_column_count"


READERS = {"datastream-json": json_lines, "csv": csv_with_header}


def read(stream, format: str) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of one open file, in batches with the schema RECORDS.

    Arguments:
        stream: the file's bytes, as delivered (a CountedStream).
        format: the feed's format, a key of READERS.
    Raises: UnreadableFile saying what is wrong with the file as a whole.
    """
    try:
        yield from READERS[format](decompressed(stream))
    except (OSError, EOFError) as error:  # gzip: not whole, wrong checksum, bytes behind the end
        raise UnreadableFile(str(error)) from error
