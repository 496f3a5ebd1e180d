"""Read one record strictly, with nothing of the project: what an accepted record must say."""

import base64
import json
import math
import re
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation


class Unfit(Exception):
    """The record, or a value of it, cannot be read."""


# Blanks and control characters around a number or a time say nothing.
BLANKS = "".join(map(chr, [*range(33), 127]))
# Of a name that stands twice in one object the last value counts, or the first.
twins = dict


@contextmanager
def first_of_twins():
    """Read objects with the first value of a name, where it stands twice."""
    global twins
    twins = lambda pairs: dict(reversed(pairs))  # noqa: E731
    try:
        yield
    finally:
        twins = dict


def json_document(record: bytes):
    def no_constant(word):
        raise Unfit(word)

    try:
        document = json.loads(record.decode(), parse_float=Decimal, parse_constant=no_constant, object_pairs_hook=twins)
    except (ValueError, RecursionError) as error:
        raise Unfit(str(error)) from error
    if not isinstance(document, dict):
        raise Unfit("no object")
    return document


def values_of_line(record: bytes, dialect) -> list:
    """The values of one record of a delimited file; `dialect` is one of producers.Delimited."""
    try:
        text = record.decode()
    except UnicodeDecodeError as error:
        raise Unfit(str(error)) from error
    delimiter, null = re.escape(dialect.delimiter), re.escape(dialect.null)
    if dialect.quotes == "none":
        one = rf"(?P<null>{null})|(?P<bare>(?:[^\\\r\n{delimiter}]|\\[\\{delimiter}])*)"
    else:
        inside = r'(?:[^"\\]|\\["\\])*' if dialect.escape == "backslash" else r'(?:[^"]|"")*'
        backslash = r"\\" if dialect.escape == "backslash" else ""
        one = rf'"(?P<quoted>{inside})"|(?P<null>{null})|(?P<bare>[^"{backslash}\r\n{delimiter}]*)'
    value, values, at = re.compile(rf"(?:{one})(?P<end>{delimiter}|\Z)"), [], 0
    while True:
        found = value.match(text, at)
        if not found:
            raise Unfit(f"at {at}")
        if found["null"] is not None:
            values.append(None)
        elif found.groupdict().get("quoted") is not None:
            quoted = found["quoted"]
            values.append(unescaped(quoted) if dialect.escape == "backslash" else quoted.replace('""', '"'))
        else:
            values.append(unescaped(found["bare"]) if dialect.quotes == "none" else found["bare"])
        at = found.end()
        if not found["end"]:
            return values


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


# ---------------------------------------------------------------- values


def as_text(value) -> str:
    """What a value of a JSON document is as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        raise Unfit("nested")
    return str(value)


def whole_number(text: str, bits: int) -> int:
    text = text.strip(BLANKS)
    if not re.fullmatch("[+-]?[0-9]+", text):
        raise Unfit(text)
    number = int(text)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise Unfit(text)
    return number


def number(text: str) -> Decimal:
    try:
        value = Decimal(text.strip(BLANKS))
    except InvalidOperation as error:
        raise Unfit(text) from error
    if not value.is_finite():
        raise Unfit(text)
    return value


DAY = r"(?P<year>[0-9]{4,6})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6})0*)?)?"
ZONE = r" ?(?:Z|UTC|(?P<sign>[+-])(?P<off_hours>[0-9]{2}):?(?P<off_minutes>[0-9]{2})?)"


def moment(text: str) -> str:
    """A date and time in UTC, as `YYYY-MM-DD HH:MM:SS.ffffff`."""
    found = re.fullmatch(rf"{DAY}(?:[T ]{TIME}(?:{ZONE})?)?", text.strip(BLANKS))
    if not found:
        raise Unfit(text)
    part = {name: int(found[name] or 0) for name in ("year", "month", "day", "hour", "minute", "second")}
    part["microsecond"] = int((found["fraction"] or "0").ljust(6, "0"))
    # the calendar repeats after 400 years; Python's own ends with the year 9999
    year = part.pop("year")
    try:
        when = datetime(year % 400 + 2000, **part)
    except ValueError as error:
        raise Unfit(text) from error
    offset = timedelta(hours=int(found["off_hours"] or 0), minutes=int(found["off_minutes"] or 0))
    when -= -offset if found["sign"] == "-" else offset
    return f"{when.year + year - year % 400 - 2000:04}-{when:%m-%d %H:%M:%S.%f}"


def day(text: str) -> str:
    moment(text)
    found = re.fullmatch(rf"({DAY})(?:[T ]00:00(?::00(?:\.0+)?)?(?:{ZONE})?)?", text.strip(BLANKS))
    if not found:
        raise Unfit(text)
    return found[1]


def double(text: str) -> float:
    try:
        value = float(text.strip(BLANKS).replace("_", "?"))
    except ValueError as error:
        raise Unfit(text) from error
    if math.isinf(value) and "inf" not in text.lower():
        raise Unfit(text)
    return value


def boolean(text: str) -> str:
    words = {"true": ("true", "t", "yes", "y", "1"), "false": ("false", "f", "no", "n", "0")}
    for value, spelt in words.items():
        if text.strip(BLANKS).lower() in spelt:
            return value
    raise Unfit(text)


def bytes_of(text: str, encoding: str) -> str:
    """Bytes in hex."""
    try:
        read = bytes.fromhex(text) if encoding == "hex" else base64.b64decode(text, validate=True)
    except ValueError as error:
        raise Unfit(text) from error
    if len(text) != len(read.hex() if encoding == "hex" else base64.b64encode(read)):
        raise Unfit(text)
    return read.hex().upper()


EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def day_number(text: str) -> str:
    try:
        return str(date(1970, 1, 1) + timedelta(days=int(text)))
    except (OverflowError, ValueError) as error:
        raise Unfit(text) from error


def microseconds(text: str) -> str:
    try:
        return f"{EPOCH + timedelta(microseconds=int(text)):%Y-%m-%d %H:%M:%S.%f}"
    except (OverflowError, ValueError) as error:
        raise Unfit(text) from error
