"""What a build would say of a delivered value, as far as it can be known without one.

The rules are those of the macros fits_type, typed_value and debezium_texts, a second time because `check`
starts no Spark; test_values.py and test_debezium_values.py compare the two. Where the macros ask Spark or a
record's schema, and the answer is not plain, nothing is said here: what is said must come true.
"""

import base64
import binascii
import re
from datetime import date
from decimal import Decimal

from highwater.catalog.columns import DECIMAL, DIGITS, UNSIGNED, UNSIGNED_TYPE, Column
from highwater.catalog.feeds import Feed
from highwater.formats.formats import DEBEZIUM

WHOLE = [*DIGITS]
LARGEST_FLOAT = {"float": 3.41e38, "double": float("inf")}
BOOLEANS = {"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"}
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)", re.ASCII)
WITH_EXPONENT = re.compile(rf"{NUMBER.pattern}[eE][+-]?\d+", re.ASCII)
NO_NUMBER = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
DAY, TIME = r"(?P<day>\d{4,6}-\d\d-\d\d)", r"(?P<time>\d\d:\d\d(:\d\d(\.\d{1,6}0*)?)?)"
MIDNIGHT, ZONE = r"00:00(:00(\.0+)?)?", r" ?(?P<zone>Z|UTC|[+-][\d:]+)"
TIMES = {
    "date": re.compile(rf"{DAY}([T ]{MIDNIGHT}({ZONE})?)?", re.ASCII),
    "timestamp": re.compile(rf"{DAY}([T ]{TIME}({ZONE})?)?", re.ASCII),
    "timestamp_ntz": re.compile(rf"{DAY}([T ]{TIME})?", re.ASCII),
}
BASE64, HEX = re.compile(r"[A-Za-z0-9+/]*={0,2}"), re.compile(r"([A-Fa-f0-9]{2})*")
# what the macros of Debezium tell digits from
MAY_BE_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
MAY_BE_BASE64URL = re.compile(r"[-_0-9A-Za-z]*={0,2}")
UNITS_OF_FEEDS = {"connect": "millis", "microseconds": "micros", "nanoseconds": "nanos"}
MICROS = {"millis": 1000, "micros": 1}
MICROS_OF_A_DAY = 86_400_000_000
# years 1 to 9999
DAYS = range(-719_162, 2_932_897)
# formats whose values staging changes by rules of their own
OF_THEIR_OWN = ("arcion-csv", "arcion-json", "datastream-avro", "dms-parquet", "parquet")
IN_HEX = ("datastream-gcs-json", "tungsten-csv")
WORD_OF_NONE = dict.fromkeys(DEBEZIUM, ("unavailable_value", "__debezium_unavailable_value"))
TOO_NARROW = "does not fit"


def misfit(value, column: Column, feed: Feed, has_schema: bool = False) -> str | None:
    """Return what a build would say of a value; None: it fits, or only a build can say.

    Arguments:
        value: of JSON, numbers with a point as Decimal; or the text of a delimited file.
        has_schema: the record says by itself how it was written.
    """
    if value is None or column.data_type == "string" or feed.format in OF_THEIR_OWN or _stands_for_none(value, feed):
        return None
    if feed.format in DEBEZIUM:
        return _misfit_of_debezium(value, column, feed.settings, has_schema)
    if isinstance(value, str):
        is_hex = feed.format in IN_HEX or (feed.options.change or {}).get("binary") == "hex"
        return TOO_NARROW if text_is_none(value, column.data_type, is_hex) else None
    return _misfit_of_number(value, column.data_type)


def _stands_for_none(value, feed: Feed) -> bool:
    """Return whether a text stands for a value that the producer did not have."""
    name, word = WORD_OF_NONE.get(feed.format, ("no_supplement", None))
    word = feed.settings.get(name, word)
    return bool(word) and isinstance(value, str) and word in (value, _decoded(value))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return text


def _misfit_of_number(value, data_type: str) -> str | None:
    """Return what is wrong with a value of JSON that is no text, where its text is what is read."""
    if isinstance(value, bool):
        return TOO_NARROW if data_type != "boolean" and data_type != "binary" else None
    if isinstance(value, Decimal | int) and (data_type in WHOLE or DECIMAL.fullmatch(data_type)):
        return None if fits(value, data_type) else TOO_NARROW
    if isinstance(value, int) and (data_type in TIMES or data_type == "boolean"):
        return TOO_NARROW if text_is_none(str(value), data_type) else None
    return None


def text_is_none(text: str, data_type: str, is_hex: bool = False) -> bool:
    """Return whether a text is surely no value of a type.

    Example: `text_is_none("469.07", "decimal(4,2)")` and `text_is_none("2024-02-30", "date")` are True.
    """
    if not (text.isascii() and text.isprintable()):
        return False
    if data_type in TIMES:
        return _is_no_time(TIMES[data_type].fullmatch(text))
    if data_type == "binary":
        return not HEX.fullmatch(text) if is_hex else len(text) % 4 != 0 or not BASE64.fullmatch(text)
    if data_type == "boolean":
        return text.strip().lower() not in BOOLEANS
    return data_type != "string" and _is_no_number(text.strip(), data_type)


def _is_no_number(text: str, data_type: str) -> bool:
    if data_type in LARGEST_FLOAT:
        if NUMBER.fullmatch(text) or WITH_EXPONENT.fullmatch(text):
            return abs(float(text)) >= LARGEST_FLOAT[data_type]
        return not NO_NUMBER.fullmatch(text)
    if WITH_EXPONENT.fullmatch(text):
        return data_type in WHOLE
    return not NUMBER.fullmatch(text) or not fits(Decimal(text), data_type)


def _is_no_time(found: re.Match | None) -> bool:
    if not found:
        return True
    year, month, day = map(int, found["day"].split("-"))
    if not 1 <= year <= 9999:
        return False
    try:
        date(year, month, day)
    except ValueError:
        return True
    time = found.groupdict().get("time")
    clock = [float(part) for part in time.split(":")] if time else []
    return any(part >= most for part, most in zip(clock, (24, 60, 60), strict=False))


def _misfit_of_debezium(value, column: Column, settings: dict, has_schema: bool) -> str | None:
    kind = column.data_type
    if kind == UNSIGNED_TYPE and isinstance(value, int) and value < 0 and not isinstance(value, bool):
        return _misfit_of_unsigned(value, column, settings, has_schema)
    if kind in WHOLE or kind in LARGEST_FLOAT or DECIMAL.fullmatch(kind):
        if isinstance(value, str):
            return None if has_schema else _misfit_of_digits(value, kind, settings.get("decimals"))
        return _misfit_of_number(value, kind)
    if kind == "boolean":
        is_none = isinstance(value, str) and text_is_none(value, kind)
        return TOO_NARROW if is_none else _misfit_of_number(value, kind)
    if has_schema:
        return None
    if isinstance(value, str):
        return _misfit_of_bytes(value, settings) if kind == "binary" else _misfit_of_time(value, kind, settings)
    if isinstance(value, int) and not isinstance(value, bool) and kind in TIMES:
        return _misfit_of_moment(value, column, settings)
    return None


def _misfit_of_unsigned(value: int, column: Column, settings: dict, has_schema: bool) -> str | None:
    """Return what is wrong with a negative number where one of 64 bits without a sign may be declared."""
    if column.unit == UNSIGNED or has_schema or settings.get("connector") not in ("mysql", "mariadb"):
        return None if fits(value, column.data_type) else TOO_NARROW
    return (
        "is negative, or above 9223372036854775807 in an unsigned bigint: give the column config: {meta: {unit: "
        "unsigned}}, or the type bigint where it is signed"
    )


def _misfit_of_digits(text: str, kind: str, decimals: str | None) -> str | None:
    """Return what is wrong with a text where a number is declared."""
    is_decimal = bool(DECIMAL.fullmatch(kind))
    may_be_bytes = len(text) % 4 == 0 and bool(MAY_BE_BASE64.fullmatch(text))
    is_plain = decimals in ("string", "double") or (not may_be_bytes and not (is_decimal and decimals == "precise"))
    if is_plain or text in ("NaN", "Infinity", "-Infinity"):
        return TOO_NARROW if text_is_none(text, kind) else None
    if re.fullmatch(r"\+?[0-9]+", text) and not (is_decimal and decimals == "precise"):
        return "may be digits or base64: declare `decimals` in the feed"
    if kind in LARGEST_FLOAT:
        return "may be base64 of a decimal: declare the type decimal"
    number = _number_of_bytes(text, int(DECIMAL.fullmatch(kind)[2]) if is_decimal else 0)
    return None if number is not None and fits(number, kind) else TOO_NARROW


def _number_of_bytes(text: str, scale: int) -> Decimal | None:
    try:
        found = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    if not 1 <= len(found) <= 16:
        return None
    return Decimal(int.from_bytes(found, "big", signed=True)).scaleb(-scale)


def _misfit_of_bytes(text: str, settings: dict) -> str | None:
    encoding, is_hex = settings.get("binary"), bool(text) and bool(HEX.fullmatch(text))
    if encoding == "hex":
        return None if HEX.fullmatch(text) else TOO_NARROW
    if encoding is None and is_hex:
        return "may be hex or base64: declare `binary` in the feed" if len(text) % 4 == 0 else None
    if encoding == "base64url" or (encoding is None and MAY_BE_BASE64URL.fullmatch(text) and len(text) % 4 == 0):
        text = text.translate(str.maketrans("-_", "+/"))
    return TOO_NARROW if text_is_none(text, "binary") else None


def _misfit_of_time(text: str, kind: str, settings: dict) -> str | None:
    if settings.get("infinity") == "end_of_range" and not text[:1].isdigit():
        return None
    if settings.get("times") == "isostring":
        text = text.removesuffix("Z")
    return TOO_NARROW if text_is_none(text, kind) else None


def _misfit_of_moment(number: int, column: Column, settings: dict) -> str | None:
    """Return what is wrong with a number where a time is declared."""
    is_date = column.data_type == "date"
    unit = column.unit or ("days" if is_date else UNITS_OF_FEEDS.get(settings.get("times")))
    if unit is None:
        return "is a number without a unit: give the column config: {meta: {unit: micros}}, or millis, or nanos"
    if unit == "days":
        is_there = number in DAYS
    else:
        micros = number * MICROS[unit] if unit in MICROS else number // 1000 if number % 1000 == 0 else None
        is_there = micros is not None and micros // MICROS_OF_A_DAY in DAYS
        is_there = is_there and not (is_date and micros % MICROS_OF_A_DAY)
    return None if is_there or settings.get("infinity") == "end_of_range" else TOO_NARROW


def fits(value: int | Decimal, declared: str) -> bool:
    """Return whether a number fits a declared type of whole numbers or decimals.

    Example: `fits(300, "tinyint")` is False, `fits(Decimal("1.0"), "int")` is True.
    """
    number, decimal = Decimal(value), DECIMAL.fullmatch(declared)
    if not number.is_finite() or not number or number.adjusted() > 40:
        return not number
    _, digits, exponent = number.as_tuple()
    behind = max(0, -exponent - (len(digits) - len("".join(map(str, digits)).rstrip("0"))))
    if declared in WHOLE:
        bits = 8 * 2 ** WHOLE.index(declared)
        return not behind and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
    return behind <= int(decimal[2]) and abs(number) < 10 ** (int(decimal[1]) - int(decimal[2]))


def holds(declared: str, other_type: str) -> bool:
    """Return whether a declared type holds every value of the type that a schema tells.

    Example: `holds("decimal(12,2)", "int")` is True, `holds("int", "bigint")` is False.
    """
    if declared in (other_type, "string"):
        return True
    if other_type in WHOLE and declared in WHOLE:
        return WHOLE.index(declared) >= WHOLE.index(other_type)
    mine, other = DECIMAL.fullmatch(declared), DECIMAL.fullmatch(other_type)
    if mine and (other or other_type in WHOLE):
        digits, scale = (int(other[1]), int(other[2])) if other else (DIGITS[other_type], 0)
        return int(mine[1]) - int(mine[2]) >= digits - scale and int(mine[2]) >= scale
    moments = ("timestamp", "timestamp_ntz")
    return (declared, other_type) == ("double", "float") or (declared in moments and other_type in (*moments, "date"))
