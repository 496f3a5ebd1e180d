"""Columns of a table: as the command line has them, their names inside the project, and their names outside."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from highwater.catalog.models import texts_in
from highwater.catalog.source_types import source_type
from highwater.runtime.errors import UsageError
from highwater.runtime.package import package

VERSIONED = ["valid_from_sequence", "valid_to_sequence", "valid_from", "valid_to", "is_current", "log_batch"]
DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
# the whole numbers, from the narrowest, and how many digits each may have
DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
TYPE = re.compile(
    rf"string|boolean|tinyint|smallint|int|bigint|float|double|date|timestamp|timestamp_ntz|binary|{DECIMAL.pattern}"
)
TYPES = (
    "Types are: string, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s) of at most 38 digits, "
    "date, timestamp, timestamp_ntz, binary, and a database's own: uuid, jsonb, text[], timestamptz, numeric(p,s), … "
    "docs/formats.md (Types) has which one for what of a database."
)
LONGEST_NAME = 255
UNITS = ("millis", "micros", "nanos")
# of numbers of 64 bits without a sign, which some producers write as if they had one
UNSIGNED, UNSIGNED_TYPE = "unsigned", "decimal(20,0)"
WITH_UNIT = ("date", "timestamp", "timestamp_ntz")
PART = re.compile(
    r"""\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<bare>[^\s,:"][^,:]*?))"""
    r"""\s*:\s*(?P<type>[^,:()\[\]]*(?:\([^()]*\)[^,:()\[\]]*)?)\s*(?:\[(?P<unit>[^\]]*)\])?\s*(?:,|\Z)"""
)


@dataclass(frozen=True)
class Column:
    """A column of an entity.

    Attributes:
        name: inside the project: letters of any script, digits and _, in lower case. field: in the vendor's record.
        data_type: in Spark's words. unit: of numbers that stand for times, one of UNITS, or UNSIGNED; None: not
            declared.
        comment: what the source says of it; None: nothing.
    """

    name: str
    field: str
    data_type: str
    unit: str | None = None
    comment: str | None = None

    @property
    def mart_name(self) -> str:
        """Its name in the mart, where a name that the project stores itself is free again.

        dbt asks the macro _own_name, which says the same (`test_mart_names_are_those_of_the_macro`).
        """
        plain = re.sub(r"\W", "_", self.field).lower()
        return plain if self.name == f"source_{plain}" else self.name

    @property
    def is_numbered(self) -> bool:
        """Whether its name has a number because another column has the name that it would have."""
        return self.name not in (plain_name(self.field), f"source_{plain_name(self.field)}")

    @property
    def written_type(self) -> str:
        """Its type as `--columns` has it, with its unit."""
        return self.data_type + (f"[{self.unit}]" if self.unit else "")

    @property
    def description(self) -> str:
        """What the source says of it, as it stands in a description; nothing where it says nothing."""
        return in_docs(self.comment or "")

    @property
    def version_name(self) -> str:
        """Its name in the history, which has columns of its own."""
        return f"source_{self.mart_name}" if self.mart_name in VERSIONED else self.mart_name

    @property
    def settings(self) -> dict[str, str]:
        """What the declaration says of it beside name and type."""
        settings = {"field": self.field} if self.field != self.name else {}
        return settings | ({"unit": self.unit} if self.unit else {})


def plain_name(field: str) -> str:
    """Return a field's name in lower case, with _ for what is no letter, digit or _; `column` where nothing is left.

    Example: `plain_name("Größe [cm]")` is `größe__cm_`.
    """
    name = re.sub(r"\W", "_", unicodedata.normalize("NFC", field).lower())
    return name if name.strip("_") else "column"


def parse_columns(text: str, others: Iterable[Column] = ()) -> list[Column]:
    """Read `name:type,name:type`; a unit stands behind its type: `at:timestamp[millis]`.

    A name that holds a comma or a colon, begins with a double quote, or begins or ends with a blank stands in double
    quotes; a double quote in it is doubled.

    Arguments:
        others: columns that the table has already.
    Returns: the columns. A name that the project stores itself gets the prefix `source_`, one that is taken a number.
    Raises: UsageError naming the parts that are wrong.
    """
    parts, wrong, at = [], [], 0
    while text[at:].strip():
        part = PART.match(text, at)
        if part:
            field = part["bare"] if part["quoted"] is None else part["quoted"].replace('""', '"')
            unit = part["unit"] and part["unit"].strip().lower()
            written = part["type"].strip().lower()
            data_type = "string" if unit == "" else in_spark(written)  # `text[]`
            of_source = source_type(written, "postgresql").unit  # `bigint unsigned`
            parts.append((field, data_type, unit or (UNSIGNED if of_source == UNSIGNED else None)))
            wrong += what_is_wrong(*parts[-1])
            at = part.end()
        else:
            rest, comma, _ = text[at:].partition(",")
            wrong.append(
                f"column {rest.strip()!r} is not written as name:type, for example total:decimal(12,2); a name that "
                "holds a comma or a colon stands in double quotes"
            )
            at += len(rest) + len(comma)
    fields = [field for field, *_ in parts]
    twice = [field for field in dict.fromkeys(fields) if fields.count(field) > 1]
    wrong += [f"column {field!r} is given twice" for field in twice]
    if wrong:
        raise UsageError(f"{'; '.join(wrong)}. {TYPES}")
    return named_columns(parts, others)


def in_spark(data_type: str) -> str:
    """Return what a type is in Spark that is written as a database writes it; what is none stays as it is.

    Example: `in_spark("timestamptz")` is `timestamp`, `in_spark("timestamp")` itself, for that is one of Spark's.
    """
    if TYPE.fullmatch(data_type):
        return data_type
    found = source_type(data_type, "postgresql")
    return data_type if found.doubt else found.spark


def as_typed(columns: Iterable[tuple[str, str]]) -> str:
    """Return (name, type) of columns as `parse_columns` reads them, whatever a name holds."""
    return ",".join(f"{_as_one_name(name)}:{data_type}" for name, data_type in columns)


def _as_one_name(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else '"' + name.replace('"', '""') + '"'


def in_docs(text: str) -> str:
    """Return a text as it stands in a description, of which the docs site makes HTML, but no tag and no link of it."""
    return text.replace("<", "&lt;").replace("](", "]&#40;")


def what_is_wrong(field: str, data_type: str, unit: str | None) -> list[str]:
    """Return what is wrong with a column as it was written; nothing, mostly."""
    decimal = DECIMAL.fullmatch(data_type)
    if len(plain_name(field)) > LONGEST_NAME:
        return [f"column {field[:20] + '…'!r} has a name of more than {LONGEST_NAME} characters"]
    if not field or "\x00" in field:
        return ["a column has no name" if not field else f"column {field!r} has a character NUL in its name"]
    if not data_type:
        return [f"column {field!r} is not written as name:type, for example total:decimal(12,2)"]
    if not TYPE.fullmatch(data_type) or (decimal and not int(decimal[2]) <= int(decimal[1]) in range(1, 39)):
        return [f"column {field!r} has the unknown type {data_type!r}"]
    if unit is None:
        return []
    if (data_type, unit) == (UNSIGNED_TYPE, UNSIGNED):
        return []
    if unit == UNSIGNED:
        return [f"column {field!r} has the unit {unit!r}, which only {UNSIGNED_TYPE} may have"]
    if data_type not in WITH_UNIT:
        return [f"column {field!r} has the unit {unit!r}, which only {', '.join(WITH_UNIT)} may have"]
    if unit not in UNITS:
        return [f"column {field!r} has the unknown unit {unit!r}; units are: {', '.join(UNITS)}"]
    return []


def named_columns(
    parts: Iterable[tuple], others: Iterable[Column] = (), comments: dict[str, str] | None = None
) -> list[Column]:
    """Return the columns of some fields, each under a name that no other has.

    Arguments:
        parts: (field, type, unit) of each. others: columns that the table has already.
        comments: what the source says of some, by field.
    """
    stored, columns = stored_columns(), []
    taken = {claim for column in others for claim in _claims(column)}
    for field, data_type, unit in parts:
        plain = plain_name(field)
        names = [f"source_{plain}" if plain in stored else plain]
        while taken & _claims(column := Column(names[-1], field, data_type, unit, (comments or {}).get(field))):
            names.append(f"{names[0]}_{len(names) + 1}")
        taken |= _claims(column)
        columns.append(column)
    return columns


def _claims(column: Column) -> set[str]:
    """Return the names that nothing else may have, as Spark compares them: by upper case, letter by letter."""
    return {name.upper().lower() for name in (column.name, column.mart_name, column.version_name)}


def contract() -> list[str]:
    """Return the columns of the change contract, in their order, as the macro contract_columns has them."""
    return _names_in("contract_columns")


def stored_columns() -> set[str]:
    """Return the names that the project stores beside a table's own columns."""
    return {*contract(), *_names_in("stored_columns")}


def _names_in(macro: str) -> list[str]:
    return texts_in(package() / f"macros/staging/contract/{macro}.sql")


@dataclass(frozen=True)
class FoundColumns:
    """The columns of a table, in the order of the source.

    Attributes:
        columns: all of them. key: the fields that identify a row, in their order; none: it has no key.
    """

    columns: list[Column]
    key: list[str]

    @property
    def key_columns(self) -> list[Column]:
        """The columns of the key."""
        by_field = {column.field: column for column in self.columns}
        return [by_field[field] for field in self.key]
