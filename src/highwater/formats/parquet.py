"""Read Parquet files: each row becomes a map of its values' texts."""

import base64
import uuid
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice

import numpy
import orjson
import pyarrow
import pyarrow.compute as compute
import pyarrow.parquet
from pyarrow import types

from highwater.formats import records
from highwater.formats.avro import Time, Timestamp
from highwater.formats.records import UnreadableFile, record_batch

CONVERSION_ERRORS = (pyarrow.ArrowException, OSError, ValueError, OverflowError, TypeError)
TEXT = (types.is_string, types.is_large_string, types.is_string_view)
BINARY = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
MICROS = {"s": 10**6, "ms": 10**3, "us": 1}
SPECIAL_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def parquet_rows(file, columns: list[str] | None = None) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a Parquet file; their lines are their ordinals, from 1.

    The fields are texts: decimals plain, timestamps `YYYY-MM-DD HH:MM:SS.ffffff` (in UTC where they have a zone),
    dates `YYYY-MM-DD`, durations `[-]HH:MM:SS.ffffff`, binary in base64, UUIDs in their usual form, booleans `true` and
    `false`, doubles in the fewest digits that tell them apart, nested values as JSON. The record is the JSON object of
    these texts. A row with a value that has no text has a problem that names its column, and no fields.

    Arguments:
        file: open for random access. columns: gets the names of its columns.
    Raises: UnreadableFile for a file that is no Parquet, or not whole, or has a column of a type that is not read.
    """
    try:
        opened = pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")
        names = opened.schema_arrow.names
        if len(set(names)) < len(names):
            raise UnreadableFile("its schema names a column twice")
        _check_types(opened.schema_arrow)
        if columns is not None:
            columns.extend(names)
        first = 1
        for batch in opened.iter_batches(batch_size=rows_in_a_block(opened.metadata), use_threads=False):
            yield _with_texts(batch, first)
            first += batch.num_rows
    except CONVERSION_ERRORS as error:
        where = unreadable_column(file) or "it is no sound Parquet file"
        raise UnreadableFile(f"{where}: {' '.join(str(error).split())}") from error


def unreadable_column(file) -> str | None:
    """Return words for the one column that keeps a file from being read; None where it is the file."""
    try:
        opened = pyarrow.parquet.ParquetFile(file)
    except CONVERSION_ERRORS:
        return None
    for column in opened.schema_arrow:
        try:
            for _ in opened.iter_batches(columns=[column.name], use_threads=False):
                pass
        except CONVERSION_ERRORS:
            return f"its column {column.name!r} ({column.type}) cannot be read"
    return None


def _check_types(schema: pyarrow.Schema) -> None:
    for column in schema:
        try:
            _texts(pyarrow.nulls(1, column.type))
        except CONVERSION_ERRORS:
            raise UnreadableFile(f"its column {column.name!r} has the type {column.type}, which is not read") from None


def rows_in_a_block(metadata) -> int:
    """Return how many rows of a file are read at once."""
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    return max(1, min(10_000, records.BLOCK_BYTES * metadata.num_rows // max(size, 1)))


def _with_texts(batch: pyarrow.RecordBatch, first: int) -> pyarrow.RecordBatch:
    names, problems = batch.schema.names, {}
    texts = [_texts_or_problems(*column, problems) for column in zip(names, batch.columns, strict=True)]
    rows = zip(*(column.to_pylist() for column in texts), strict=True)
    by_row = numpy.arange(batch.num_rows * len(names)).reshape(len(names), -1).T.ravel()
    fields = pyarrow.MapArray.from_arrays(
        pyarrow.array(numpy.arange(batch.num_rows + 1) * len(names), pyarrow.int32()),
        pyarrow.array(names * batch.num_rows, pyarrow.string()),
        pyarrow.concat_arrays(texts).take(pyarrow.array(by_row)),
    )
    of_rows = None
    if problems:
        of_rows = [problems.get(row) for row in range(batch.num_rows)]
        fields = compute.if_else(pyarrow.array(of_rows).is_null(), fields, None)
    documents = [orjson.dumps(dict(zip(names, row, strict=True))) for row in rows]
    return record_batch(range(first, first + batch.num_rows), documents, fields=fields, problems=of_rows)


def _texts_or_problems(name: str, column: pyarrow.Array, problems: dict[int, str]) -> pyarrow.Array:
    """Return the texts of a column; a row whose value has none gets its problem, and NULL."""
    try:
        return _texts(column)
    except CONVERSION_ERRORS:
        pass
    texts = []
    for row in range(len(column)):
        try:
            texts.append(_texts(column.slice(row, 1))[0].as_py())
        except CONVERSION_ERRORS as error:
            texts.append(None)
            problems.setdefault(row, _problem(name, column.slice(row, 1), error))
    return pyarrow.array(texts, pyarrow.string())


def _problem(name: str, value: pyarrow.Array, error: Exception) -> str:
    where = f"column {name!r} ({value.type})"
    try:
        value.cast(pyarrow.large_binary())[0].as_py().decode()
    except UnicodeDecodeError as found:
        return f"not_utf8: {where}: byte {found.start + 1} is 0x{found.object[found.start]:02x}, no character of UTF-8"
    except CONVERSION_ERRORS:
        pass
    return f"malformed_record: {where}: {' '.join(str(error).split())}"


def _texts(column: pyarrow.Array) -> pyarrow.Array:
    """Return the column's values as text; NULL stays NULL."""
    kind = column.type
    if isinstance(kind, pyarrow.BaseExtensionType):
        return _texts_of_extension(column)
    if types.is_dictionary(kind):
        return _texts(column.dictionary_decode())
    if types.is_timestamp(kind):
        return _timestamps(column)
    if types.is_duration(kind):
        return _durations(column)
    if types.is_float16(kind):
        return _texts(column.cast(pyarrow.float32()))
    if types.is_floating(kind) or types.is_decimal(kind):
        return _numbers(column)
    if types.is_nested(kind):
        texts = (None if value is None else orjson.dumps(value).decode() for value in _plain(column))
        return pyarrow.array(texts, pyarrow.string())
    if any(is_kind(kind) for is_kind in BINARY):
        return _each(column, lambda value: base64.b64encode(value).decode())
    if any(is_kind(kind) for is_kind in TEXT):
        column = column.cast(pyarrow.large_binary())  # and back: Parquet files are not checked for UTF-8
    return column.cast(pyarrow.string())


def _texts_of_extension(column: pyarrow.Array) -> pyarrow.Array:
    name = column.type.extension_name
    if name == "arrow.uuid":
        return _each(column.storage, lambda value: str(uuid.UUID(bytes=value)))
    return _texts(column.storage.cast(pyarrow.bool_()) if name == "arrow.bool8" else column.storage)


def _each(column: pyarrow.Array, text) -> pyarrow.Array:
    values = (None if value is None else text(value) for value in column.to_pylist())
    return pyarrow.array(values, pyarrow.string())


def _numbers(column: pyarrow.Array) -> pyarrow.Array:
    texts = column.cast(pyarrow.string())
    if types.is_decimal(column.type):
        odd, text = compute.match_substring(texts, "E"), lambda text: format(Decimal(text), "f")
    else:
        odd, text = compute.is_in(texts, pyarrow.array(SPECIAL_FLOATS)), SPECIAL_FLOATS.get
    odd = compute.fill_null(odd, False)
    return compute.replace_with_mask(texts, odd, _each(texts.filter(odd), text))


def _timestamps(column: pyarrow.Array) -> pyarrow.Array:
    unit = column.type.unit
    plain = column.view(pyarrow.timestamp(unit))
    texts = plain.cast(pyarrow.string())
    if unit == "ns":  # the last three digits are kept where they say something
        return compute.replace_substring_regex(texts, r"(\.\d{6})000$", r"\1")
    far = compute.fill_null(compute.starts_with(texts, "<"), False)  # years that Arrow does not write
    texts = compute.binary_join_element_wise(texts, {"s": ".000000", "ms": "000", "us": ""}[unit], "")
    moments = plain.filter(far).view(pyarrow.int64())
    return compute.replace_with_mask(
        texts, far, _each(moments, lambda moment: str(Timestamp(moment * MICROS[unit])).replace("T", " "))
    )


def _durations(column: pyarrow.Array) -> pyarrow.Array:
    nanos = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[column.type.unit]

    def text(count: int) -> str:
        micros, rest = divmod(abs(count * nanos), 1000)
        return str(Time(-micros if count < 0 else micros)) + (f"{rest:03}" if rest else "")

    return _each(column.view(pyarrow.int64()), text)


def _plain(column: pyarrow.Array) -> list:
    """Return a column's values as JSON has them: nested ones, and in them numbers as numbers."""
    kind = column.type
    if types.is_struct(kind):
        rows = zip(*(_plain(column.field(place)) for place in range(kind.num_fields)), strict=True)
        rows = [dict(zip(kind.names, row, strict=True)) for row in rows] or [{}] * len(column)
        return [row if valid else None for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)]
    if types.is_map(kind):
        return _maps(column)
    if types.is_nested(kind):
        return in_lists(_plain(column.flatten()), compute.list_value_length(column).to_pylist())
    if types.is_integer(kind) or types.is_boolean(kind):
        return column.to_pylist()
    texts = _texts(column).to_pylist()
    if types.is_floating(kind):
        return [text if text in (None, *SPECIAL_FLOATS.values()) else float(text) for text in texts]
    return texts


def _maps(column: pyarrow.MapArray) -> list:
    """Return maps as lists of their pairs."""
    offsets = column.offsets.to_numpy()
    keys, values = (_plain(part.slice(offsets[0], offsets[-1] - offsets[0])) for part in (column.keys, column.items))
    lists = in_lists([*map(list, zip(keys, values, strict=True))], numpy.diff(offsets).tolist())
    return [pairs if valid else None for pairs, valid in zip(lists, column.is_valid().to_pylist(), strict=True)]


def in_lists(values: list, lengths: list[int | None]) -> list:
    """Return values that stand one after the other in lists of these lengths; no length is NULL."""
    values = iter(values)
    return [None if length is None else list(islice(values, length)) for length in lengths]
