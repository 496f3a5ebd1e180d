"""Read Datastream's Avro files: each record becomes the JSON document that it would be in Datastream's JSON files.

Times, decimals and bytes become text without loss: dates `YYYY-MM-DD`, timestamps `YYYY-MM-DDTHH:MM:SS.ffffff` in UTC
(or `infinity`, `-infinity`), timestamps with an offset the same with `+HH:MM`, times `[-]HH:MM:SS.ffffff`, bytes in
base64. Arrays of PostgreSQL become JSON arrays; doubles without a number in JSON: `NaN`, `Infinity`, `-Infinity`.
"""

import base64
import io
import math
import struct
import uuid
import zlib
from collections.abc import Iterator

import fastavro
import numpy
import orjson
import pyarrow

from highwater.formats import records
from highwater.formats.compression import snappy
from highwater.formats.records import UnreadableFile, record_batch

SECOND = 1_000_000
DAY = 86_400 * SECOND
# What PostgreSQL's Java driver has for its infinite times, told in microseconds or in milliseconds.
INFINITE_TIMES = {9223372036825200000: "infinity", -9223372036832400000: "-infinity"}
INFINITE_TIMES |= {moment * 1000: word for moment, word in INFINITE_TIMES.items()}


def _date(days: int) -> str:
    return str(numpy.datetime64(days, "D"))


class Time(int):
    """Microseconds since midnight; may be negative, or more than a day."""

    def __str__(self):
        seconds, fraction = divmod(abs(self), SECOND)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{'-' * (self < 0)}{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}"


class Timestamp(int):
    """Microseconds since 1970."""

    def __str__(self):
        days, time = divmod(self, DAY)
        return INFINITE_TIMES.get(self) or f"{_date(days)}T{Time(time)}"

    def at_offset(self, offset: Time) -> str:
        """Return the text of this moment where clocks are `offset` ahead of UTC."""
        if self in INFINITE_TIMES:
            return str(self)
        hours, minutes, seconds = str(Time(abs(offset)))[:8].split(":")
        sign = "-" if offset < 0 else "+"
        return f"{Timestamp(self + offset)}{sign}{hours}:{minutes}" + (f":{seconds}" if seconds != "00" else "")


def _decimal(unscaled: bytes, schema, _=None) -> str:
    number, scale = int.from_bytes(unscaled, "big", signed=True), schema.get("scale", 0)
    digits = str(abs(number)).rjust(scale + 1, "0")
    point = len(digits) - scale
    return "-" * (number < 0) + digits[:point] + "." * (scale > 0) + digits[point:]


def _nanos(nanos: int) -> str:
    """Return the text of a moment, nanoseconds since 1970; the last three digits are kept where they say something."""
    micros, rest = divmod(nanos, 1000)
    return f"{Timestamp(micros)}{rest:03}" if rest else str(Timestamp(micros))


def _duration(value: bytes) -> str:
    """Return months, days and milliseconds as ISO 8601 has them."""
    months, days, millis = struct.unpack("<III", value)
    return f"P{months}M{days}DT{millis // 1000}.{millis % 1000:03}S"


fastavro.read.LOGICAL_READERS.update(
    {
        "bytes-decimal": _decimal,
        "fixed-decimal": _decimal,
        "int-date": lambda days, *_: _date(days),
        "int-time-millis": lambda millis, *_: Time(millis * 1000),
        "long-time-micros": lambda micros, *_: Time(micros),
        "long-time-interval-micros": lambda micros, *_: Time(micros),
        "long-timestamp-millis": lambda millis, *_: Timestamp(millis * 1000),
        "long-timestamp-micros": lambda micros, *_: Timestamp(micros),
        "long-local-timestamp-millis": lambda millis, *_: Timestamp(millis * 1000),
        "long-local-timestamp-micros": lambda micros, *_: Timestamp(micros),
        "long-timestamp-nanos": lambda nanos, *_: _nanos(nanos),
        "long-local-timestamp-nanos": lambda nanos, *_: _nanos(nanos),
        "string-uuid": lambda text, *_: text,
        "fixed-uuid": lambda value, *_: str(uuid.UUID(bytes=bytes(value))),
        "fixed-duration": lambda value, *_: _duration(bytes(value)),
    }
)


def _block(stream) -> bytes:
    """Return the bytes of a block, behind their number as Avro writes numbers."""
    number = shift = 0
    while True:
        byte = stream.read(1)[0]
        number, shift = number | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return stream.read(number >> 1)


def _of_snappy(stream) -> io.BytesIO:
    """Return what a block of snappy holds, whose checksum is that of zlib."""
    block = _block(stream)
    unpacked = snappy(block[:-4])
    if zlib.crc32(unpacked) != int.from_bytes(block[-4:], "big"):
        raise ValueError("a block is damaged: its checksum is another")
    return io.BytesIO(unpacked)


def _of_zstd(stream) -> io.BytesIO:
    return io.BytesIO(pyarrow.CompressedInputStream(pyarrow.BufferReader(_block(stream)), "zstd").read())


# which fastavro has no library for
fastavro.read.BLOCK_READERS.update({"snappy": _of_snappy, "zstandard": _of_zstd})


def _json(value):
    """Return a decoded Avro value as JSON has it."""
    if isinstance(value, dict):
        if value.keys() == {"nestedArray", "elementValue"}:
            nested = value["nestedArray"]
            return _json(value["elementValue"] if nested is None else nested)
        if value.keys() == {"timestamp", "offset"} and isinstance(value["timestamp"], int):
            offset = value["offset"]
            return Timestamp(value["timestamp"]).at_offset(offset if isinstance(offset, Time) else Time(offset * 1000))
        return {name: _json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, Time | Timestamp) else value


def _document(record: dict) -> bytes:
    document = _json({**record, "payload": None}) if "payload" in record else _json(record)
    if isinstance(payload := record.get("payload"), dict):  # a row may have any columns, `timestamp` and `offset` too
        document["payload"] = {name: _json(value) for name, value in payload.items()}
    return orjson.dumps(document)


def avro_records(stream) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of an Avro container file; their lines are their ordinals, from 1.

    A record with a text that is no UTF-8 has a problem that names the field.

    Raises: UnreadableFile for a file that is no Avro or not whole, and for a codec that is not installed.
    """
    documents, problems, size, first = [], [], 0, 1
    try:
        for record in fastavro.reader(stream, handle_unicode_errors="surrogateescape"):
            document, problem = _document_or_problem(record)
            documents.append(document)
            problems.append(problem)
            size += len(document)
            if size >= records.BLOCK_BYTES:
                yield record_batch(range(first, first + len(documents)), documents, problems=problems)
                documents, problems, size, first = [], [], 0, first + len(documents)
    except Exception as error:  # fastavro lets through whatever it stumbles over
        raise UnreadableFile(f"it is no sound Avro file: {type(error).__name__}: {error}") from error
    if documents:
        yield record_batch(range(first, first + len(documents)), documents, problems=problems)


def _document_or_problem(record: dict) -> tuple[bytes, str | None]:
    """Return the document of a record, and what is wrong with it."""
    try:
        return _document(record), None
    except orjson.JSONEncodeError as error:
        found = not_text(record)
        if found is None:
            return b"{}", f"malformed_record: {error}"
    place, value = found
    return _document(as_text(record)), f"not_utf8: field {place!r}: 0x{value.hex()} is no text in UTF-8"


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def not_text(value, place: str = "") -> tuple[str, bytes] | None:
    """Return the place and the bytes of a text in a decoded value that is none."""
    if isinstance(value, str) and not value.isascii() and as_text(value) != value:
        return place, _bytes(value)
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        where = f"{place}.{name}" if place else str(name)
        if found := not_text(name, where) or not_text(item, where):
            return found
    return None


def as_text(value):
    """Return a decoded value with what is no text replaced."""
    if isinstance(value, dict):
        return {as_text(name): as_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    is_text = isinstance(value, str) and not value.isascii()
    return _bytes(value).decode(errors="replace") if is_text else value
