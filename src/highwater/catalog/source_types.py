"""What a type of a database becomes: Spark's type, the unit of its times in Debezium's records, and what is doubtful.

Sources: the manuals of PostgreSQL 18 (Data Types), MySQL 8.4 (Data Types), Oracle 23 (Data Types), SQL Server 2022
(Data types); Debezium 3.6 (Data type mappings of its connectors) for the units of times.
"""

import re
from dataclasses import dataclass

DIALECTS = ("postgresql", "mysql", "oracle", "sqlserver")
MOST_DIGITS = 38

# whoever declares a type of Spark's own by these words means it as its databases do
NAMES = {
    "tinyint": "tinyint",
    "smallint": "smallint|int2|smallserial|serial2|tinyint unsigned",
    "int": "int|integer|int4|serial|serial4|mediumint|year|mediumint unsigned|smallint unsigned",
    "bigint": "bigint|oid|int8|bigserial|serial8|int unsigned|integer unsigned",
    "decimal(20,0)": "bigint unsigned",
    "float": "real|float4|binary_float",
    "double": "double|double precision|double unsigned|float8|binary_double",
    "boolean": "boolean|bool",
    "binary": (
        "bytea|binary|binary varying|varbinary|image|raw|long raw|bfile|rowversion|blob|tinyblob|mediumblob|longblob"
    ),
    "date": "date",
    "timestamp": "timestamptz|timestamp with time zone|timestamp with local time zone|datetimeoffset",
    "timestamp_ntz": "timestamp|timestamp without time zone|datetime|datetime2|smalldatetime",
    "string": (
        "char|character|nchar|national character|bpchar|varchar|char varying|sysname|character varying|"
        "nvarchar|national varchar|national character varying|varchar2|nvarchar2|text|tinytext|mediumtext|"
        "longtext|ntext|clob|nclob|long|name|citext|enum|set|uuid|uniqueidentifier|inet|cidr|macaddr|"
        "macaddr8|json|jsonb|xml|xmltype|hstore|time|timetz|time without time zone|time with time zone|"
        "tsvector|tsquery|ltree|hierarchyid|int4range|int8range|numrange|tsrange|tstzrange|daterange|rowid|"
        "urowid|point|line|lseg|box|path|polygon|circle|bit|varbit|bit varying"
    ),
}
SPARK = {name: spark for spark, names in NAMES.items() for name in names.split("|")}
# what the words mean elsewhere than in most databases
IN_DIALECT = {
    "mysql": {"timestamp": "timestamp", "real": "double", "serial": "decimal(20,0)"},
    "oracle": {name: "decimal(38,0)" for name in ("int", "integer", "smallint")} | {"date": "timestamp_ntz"},
    "sqlserver": {"tinyint": "smallint", "bit": "boolean", "timestamp": "binary"}
    | {"money": "decimal(19,4)", "smallmoney": "decimal(10,4)"},
    "postgresql": {},
}
DECIMALS = {"decimal", "numeric", "dec", "number", "fixed"}
# digits and scale where none are written; elsewhere any number fits
DECIMAL_BY_DEFAULT = {"mysql": (10, 0), "sqlserver": (18, 0)}
# digits behind the second where none are written; Oracle's DATE has none
SECONDS_BY_DEFAULT = {"mysql": 0, "postgresql": 6, "oracle": 6, "sqlserver": 7}
SECONDS = {"datetime": {"sqlserver": 3}, "smalldatetime": {"sqlserver": 0}, "date": {"oracle": 0}}
ARGUMENTS = re.compile(r"\([^()]*\)")
NUMBER = re.compile(r"(?:- ?)?\b\d{1,4}\b|\*")
QUOTED = re.compile(r"'(?:[^']|'')*'")
UNSCALED = "is a number without a declared scale; it is declared as string, digit by digit"


@dataclass(frozen=True)
class SourceType:
    """What a type of a database becomes.

    Attributes:
        spark: Spark's type. unit: of the numbers that Debezium writes for it by default: of times, millis, micros or
            nanos; `unsigned` where they are 64 bits without a sign; None: they are the value itself.
        doubt: what could not be told, as a sentence without its subject; None: nothing.
    """

    spark: str
    unit: str | None = None
    doubt: str | None = None


def source_type(text: str, dialect: str) -> SourceType:
    """Return what a type becomes that is written as a database writes it.

    Arguments:
        text: for example `character varying(20)`, `numeric(12,2)`, `text[]`. dialect: one of DIALECTS.
    """
    written = QUOTED.sub("", text).lower().replace('"', "")
    words = " ".join(ARGUMENTS.sub(" ", written).split())
    if words.endswith("[]") or words.endswith(" array"):
        return SourceType("string")
    found = ARGUMENTS.search(written)
    # as many as a type may have: `(12, 2)`, `(*, 0)`, `(5, - 2)`; none in `(30 byte)` and `(max)`
    arguments = (
        [MOST_DIGITS if word == "*" else int(word.replace(" ", "")) for word in NUMBER.findall(found[0])][:2]
        if found
        else []
    )
    base = " ".join(word for word in words.split() if word not in ("zerofill", "signed"))
    if base.removesuffix(" unsigned") in DECIMALS:
        return _decimal(arguments, dialect)
    if base.removesuffix(" unsigned") == "float":
        return _float(arguments, dialect)
    if base == "bit" and dialect == "mysql" and arguments in ([], [1]):
        return SourceType("boolean")
    if base.startswith("interval"):
        return SourceType("string")
    if base == "money" and dialect == "postgresql":
        return SourceType("string", doubt="is money, which some write with its sign; it is declared as string")
    spark = IN_DIALECT[dialect].get(base) or SPARK.get(base)
    if spark is None:
        return SourceType("string", doubt=f"is of the type {words}, which is not known here; it is declared as string")
    if spark == "timestamp_ntz":
        return SourceType(spark, _unit(base, arguments, dialect))
    if spark == "decimal(20,0)":
        return SourceType(spark, "unsigned")
    return SourceType(spark)


def _decimal(arguments: list[int], dialect: str) -> SourceType:
    if not arguments and dialect not in DECIMAL_BY_DEFAULT:
        return SourceType("string", doubt=UNSCALED)
    digits, scale = DECIMAL_BY_DEFAULT.get(dialect, (MOST_DIGITS, 0))
    if arguments:
        digits, scale = [*arguments, 0][:2]
    digits, scale = max(digits, digits - scale, scale, 1), max(scale, 0)
    if digits > MOST_DIGITS:
        return SourceType("string", doubt=f"has {digits} digits, more than decimal can hold; it is declared as string")
    return SourceType(f"decimal({digits},{scale})")


def _float(arguments: list[int], dialect: str) -> SourceType:
    if dialect == "oracle":
        return SourceType("string", doubt=UNSCALED)
    is_double = (len(arguments) == 1 and arguments[0] > 24) or (not arguments and dialect != "mysql")
    return SourceType("double" if is_double else "float")


def _unit(base: str, arguments: list[int], dialect: str) -> str:
    """Return the unit of a time without a zone in Debezium's adaptive mode, by its digits behind the second."""
    seconds = SECONDS.get(base, {}).get(dialect, SECONDS_BY_DEFAULT[dialect])
    if arguments:
        seconds = arguments[0]
    return "millis" if seconds <= 3 else "micros" if seconds <= 6 else "nanos"
