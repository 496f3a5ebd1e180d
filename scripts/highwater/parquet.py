"""Read Parquet files: each row becomes a map of its values' texts."""

import base64
import math
from collections.abc import Iterator
from decimal import Decimal

import numpy
import orjson
import pyarrow
import pyarrow.compute as compute
import pyarrow.parquet
from pyarrow import types

from highwater import records
from highwater.records import UnreadableFile, record_batch

SPECIAL_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def parquet_rows(file) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a Parquet file; their lines are their ordinals, from 1.

    The fields are texts: decimals plain, timestamps `YYYY-MM-DD HH:MM:SS.ffffff` (in UTC where they have a zone),
    dates `YYYY-MM-DD`, binary in base64, booleans `true` and `false`, doubles in the fewest digits that tell them
    apart, nested values as JSON. The record is the JSON object of these texts.

    Arguments:
        file: open for random access.
    Raises: UnreadableFile for a file that is no Parquet, or not whole.
    """
    try:
        opened = pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")
        names = opened.schema_arrow.names
        if len(set(names)) < len(names):
            raise UnreadableFile("its schema names a column twice")
        first = 1
        for batch in opened.iter_batches(batch_size=_rows_in_a_block(opened.metadata), use_threads=False):
            yield _with_texts(batch, first)
            first += batch.num_rows
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise UnreadableFile(f"it is no sound Parquet file: {error}") from error


def _rows_in_a_block(metadata) -> int:
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    return max(1, min(10_000, records.BLOCK_BYTES * metadata.num_rows // max(size, 1)))


def _with_texts(batch: pyarrow.RecordBatch, first: int) -> pyarrow.RecordBatch:
    names, texts = batch.schema.names, [_texts(column) for column in batch.columns]
    rows = zip(*(column.to_pylist() for column in texts), strict=True)
    by_row = numpy.arange(batch.num_rows * len(names)).reshape(len(names), -1).T.ravel()
    fields = pyarrow.MapArray.from_arrays(
        pyarrow.array(numpy.arange(batch.num_rows + 1) * len(names), pyarrow.int32()),
        pyarrow.array(names * batch.num_rows, pyarrow.string()),
        pyarrow.concat_arrays(texts).take(pyarrow.array(by_row)),
    )
    documents = [orjson.dumps(dict(zip(names, row, strict=True))) for row in rows]
    return record_batch(range(first, first + batch.num_rows), documents, fields=fields)


def _texts(column: pyarrow.Array) -> pyarrow.Array:
    """Return the column's values as text; NULL stays NULL."""
    kind = column.type
    if types.is_dictionary(kind):
        return _texts(column.dictionary_decode())
    if types.is_timestamp(kind):
        return _timestamps(column)
    if types.is_float16(kind):
        return _texts(column.cast(pyarrow.float32()))
    if types.is_floating(kind) or types.is_decimal(kind):
        return _numbers(column)
    if types.is_nested(kind):
        return _each(column, lambda value: orjson.dumps(_plain(value)).decode())
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _each(column, lambda value: base64.b64encode(value).decode())
    if types.is_string(kind) or types.is_large_string(kind):
        column = column.cast(pyarrow.large_binary())  # and back: Parquet files are not checked for UTF-8
    return column.cast(pyarrow.string())


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
    texts = column.view(pyarrow.timestamp(unit)).cast(pyarrow.string())
    if unit == "ns":  # the last three digits are kept where they say something
        return compute.replace_substring_regex(texts, r"(\.\d{6})000$", r"\1")
    return compute.binary_join_element_wise(texts, {"s": ".000000", "ms": "000", "us": ""}[unit], "")


def _plain(value):
    """Return a nested value as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return SPECIAL_FLOATS[str(value)]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return format(value, "f")
    return value if isinstance(value, str | int | float | None) else str(value)
