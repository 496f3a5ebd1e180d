"""The formats of feeds: what each may declare, how its files are read, and what its tables are made of."""

import re
from dataclasses import dataclass, field

TABLE_IN_FOLDERS, TABLE_IN_FILE_NAMES, TABLE_IN_RECORDS = ("folders", "files", "records")


@dataclass(frozen=True)
class Dialect:
    """How values are written in a delimited file.

    Attributes:
        delimiter: the character between values. quoted: whether values may be in double quotes.
        escape: `doubled` (a quote inside quotes is written twice) or `backslash` (before quotes and backslashes;
            without quotes, before delimiters and backslashes).
        null: the word that means NULL where it is not quoted. header: whether the first record names the columns.
    """

    delimiter: str = ","
    quoted: bool = True
    escape: str = "doubled"
    null: str = "NULL"
    header: bool = False


# what files are called by the last part of their format's name; what is behind may be the ending of a compression
ENDINGS = {
    "json": (
        "json",
        "jsonl",
        "ndjson",
        "jsonlines",
        "ldjson",
        "jsons",
        "txt",
        "text",
        "log",
        "dat",
        "data",
        "bin",
        "out",
    ),
    "csv": (
        "csv",
        "tsv",
        "txt",
        "dat",
        "data",
        "text",
        "psv",
        "dsv",
        "del",
        "unl",
        "lst",
        "asc",
        "bcp",
        "tab",
        "out",
        "log",
    ),
    "avro": ("avro",),
    "parquet": ("parquet", "parq", "pq"),
}
PACKED = ("gz", "gzip", "zst", "zstd", "snappy", "hsnappy", "sz", "bz2", "bzip2", "lz4")

TUNGSTEN_DIALECTS = {
    "mysql": Dialect(escape="backslash", null=r"\N"),
    "oracle": Dialect(escape="backslash", null=r"\N"),
    "vertica": Dialect(escape="backslash", null="null"),
    "redshift": Dialect(null="null"),
    "hive": Dialect(delimiter="\x01", quoted=False, escape="backslash", null=r"\N"),
}


@dataclass(frozen=True)
class Format:
    """What a feed of this format may declare.

    Attributes:
        roles: what its files may hold. layouts: how they may tell their tables.
        settings: names of its settings, beside `format` and `role`. needed: those that it cannot do without.
        choices: the values that settings may have, where they are not CHOICES.
        instead: by needed setting, a choice of another one with which it is not needed.
        dialect: of a delimited format, before the feed's settings.
        is_delivered: as files in the landing folder; otherwise it is extracted from a database.
        macro: what the staging models of its changes are made by. names_fields: its records name their fields.
        names_columns: a table declares the columns of its files, in their order.
        ends_last_line: its producer ends the last line of a file too, so that one without an end was cut.
        partial_images: its records may carry some columns only. truncates: it tells when a table is truncated.
        has_shards: tables of several schemas may be one.
    """

    roles: tuple[str, ...] = ("changes", "baseline")
    layouts: tuple[str, ...] = (TABLE_IN_FOLDERS,)
    settings: frozenset[str] = frozenset()
    needed: tuple[str, ...] = ()
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    instead: dict[str, tuple[str, str]] = field(default_factory=dict)
    dialect: Dialect | None = None
    is_delivered: bool = True
    macro: str = ""
    names_fields: bool = True
    names_columns: bool = False
    ends_last_line: bool = False
    partial_images: bool = False
    truncates: bool = False
    has_shards: bool = True


SORT_KEYS = ("oracle_sort_keys", "mysql_sort_keys", "postgresql_sort_keys", "sqlserver_sort_keys")

CONNECTORS = ("postgresql", "mysql", "mariadb", "oracle", "sqlserver")
CONNECTORS += ("db2", "informix", "mongodb", "spanner", "yugabytedb")

# the values of settings that are words
CHOICES = {
    "binary": ("bytes", "base64", "base64url", "hex"),
    "clock": ("ignore",),
    "connector": CONNECTORS,
    "decimals": ("precise", "string", "double"),
    "dialect": tuple(TUNGSTEN_DIALECTS),
    "escape": ("doubled", "backslash"),
    "form": ("envelope", "flattened"),
    "infinity": ("reject", "end_of_range"),
    "order": ("change_sequence_number", *SORT_KEYS),
    "replace": ("upsert",),
    "times": ("adaptive", "connect", "isostring", "microseconds", "nanoseconds"),
}

_ORDERED = frozenset(("baseline", "clock", "epochs"))
_DELIMITED = frozenset(("delimiter", "escape", "null", "header"))
_DMS = _ORDERED | {"sequence_column", "timestamp_column", "before_prefix", "no_supplement"}
_OF_RECORDS = (TABLE_IN_FOLDERS, TABLE_IN_RECORDS)
_MIXED = frozenset(("layout", "schema"))
_JSON = _ORDERED | {"relation", "wrapping"}
_DEBEZIUM = frozenset(
    ("connector", "order", "form", "prefix", "binary", "decimals", "times", "infinity", "unavailable_value")
)
_OF_FILES = {"needed": ("order",), "choices": {"order": SORT_KEYS}}
# one producer's records in three kinds of file; behind their readers they are the same documents
DEBEZIUM = ("debezium-json", "debezium-avro", "debezium-parquet")
_OF_DEBEZIUM = Format(
    layouts=_OF_RECORDS,
    settings=_JSON | _MIXED | _DEBEZIUM,
    needed=("connector",),
    choices={"order": ("kafka",)},
    # Kafka's offsets are an order whatever wrote the records
    instead={"connector": ("order", "kafka")},
    macro="debezium_changes",
    partial_images=True,
    truncates=True,
)

# producers whose records the package declares (macros/staging/declared), and what their changes may be ordered by
DECLARED = {
    "maxwell-json": ("position", "place", "kafka"),
    "canal-json": ("batch", "kafka"),
    "dms-json": ("place", "kafka"),
    "goldengate-json": ("pos", "kafka"),
    "wal2json": ("lsn", "place", "kafka"),
    "wal2json-v1": ("lsn", "place", "kafka"),
    "qlik-change-table": ("change_seq",),
    "qlik-json": ("change_seq", "kafka"),
    "sqlserver-change-table": ("lsn",),
    "airbyte": ("postgresql", "mysql"),
    "fivetran": ("synced",),
    "delta-changes": ("version",),
}


def _declared(orders: tuple[str, ...]) -> Format:
    return Format(
        layouts=_OF_RECORDS,
        settings=_JSON | _MIXED | {"order"},
        needed=("order",),
        choices={"order": orders},
        macro="declared_changes",
    )


FORMATS = {
    "datastream-json": Format(settings=_JSON | {"order"}, macro="datastream_changes"),
    "csv": Format(
        roles=("baseline", "export"),
        settings=frozenset(("epochs", "positions", "delimiter", "escape", "null", "rfc4180")),
        dialect=Dialect(null="", header=True),
        macro="exported_changes",
        has_shards=False,
    ),
    "parquet": Format(
        roles=("baseline", "export"),
        settings=frozenset(("epochs", "positions")),
        macro="exported_changes",
        has_shards=False,
    ),
    "tungsten-csv": Format(
        layouts=(TABLE_IN_FOLDERS, TABLE_IN_FILE_NAMES),
        settings=_ORDERED | _MIXED | {"dialect", "header", "columns"},
        needed=("dialect",),
        dialect=Dialect(),
        macro="tungsten_changes",
        names_fields=False,
        names_columns=True,
        ends_last_line=True,
    ),
    "arcion-csv": Format(
        settings=_ORDERED | _DELIMITED | {"columns", "replace"},
        dialect=Dialect(),
        macro="arcion_csv_changes",
        names_fields=False,
        names_columns=True,
        ends_last_line=True,
        partial_images=True,
    ),
    "arcion-json": Format(
        layouts=_OF_RECORDS,
        settings=_JSON | _MIXED | {"null", "replace"},
        macro="arcion_json_changes",
        partial_images=True,
    ),
    "datastream-gcs-json": Format(
        layouts=_OF_RECORDS, settings=_JSON | _MIXED | {"order"}, macro="datastream_file_changes", **_OF_FILES
    ),
    "datastream-avro": Format(
        layouts=_OF_RECORDS, settings=_ORDERED | _MIXED | {"order"}, macro="datastream_file_changes", **_OF_FILES
    ),
    **dict.fromkeys(DEBEZIUM, _OF_DEBEZIUM),
    "dms-csv": Format(
        settings=_DMS | _DELIMITED | {"rfc4180"},
        dialect=Dialect(),
        macro="dms_changes",
        names_fields=False,
        names_columns=True,
        ends_last_line=True,
    ),
    "dms-parquet": Format(settings=_DMS, macro="dms_changes", names_columns=True),
    # what records mean is declared by the feed, or by the package
    **dict.fromkeys(
        ("json", "table"),
        Format(layouts=_OF_RECORDS, settings=_JSON | _MIXED | {"change"}, macro="declared_changes"),
    ),
    **{name: _declared(orders) for name, orders in DECLARED.items()},
    "changelog": Format(
        roles=("changes",),
        settings=frozenset(("epochs", "source_schema")),
        is_delivered=False,
        macro="changelog_changes",
        truncates=True,
        has_shards=False,
    ),
}


def are_read_alike(connector: str | None, other: str | None) -> bool:
    """Return whether records of two connectors have the same form and positions, as MariaDB's and MySQL's have."""
    return connector == other or {connector, other} == {"mysql", "mariadb"}


@dataclass(frozen=True)
class Shards:
    """Schemas of one shape whose tables of one name are one table; databases, where a source has no schemas.

    Attributes:
        table: what raw calls that table, and what each of them calls its own. column: of the table, tells the schema.
        schemas: patterns of their names, upper and lower case alike; `*` stands for any text.
    """

    table: str
    column: str
    schemas: tuple[str, ...]

    def has(self, schema, table: str) -> bool:
        """Return whether a table of a schema is one of them."""
        if not isinstance(schema, str) or table.lower() != self.table.lower():
            return False
        patterns = (".*".join(map(re.escape, pattern.split("*"))) for pattern in self.schemas)
        return any(re.fullmatch(pattern, schema, re.IGNORECASE | re.DOTALL) for pattern in patterns)


@dataclass(frozen=True)
class ReadOptions:
    """What a reader is told about the files of a feed; it travels to Spark's workers.

    Attributes:
        format: a key of FORMATS. dialect: of delimited files.
        table_in_records: whether each record tells its table.
        schema: the source schema whose tables go by their bare names; None: of each name, the one that came first.
        wrapping: the field that holds the document, where it is another one than `value`.
        change: what is declared of the records; None: the format knows.
        also_called: what raw calls tables that the source calls otherwise too, by that other name.
        shards: schemas whose tables are one.
    """

    format: str
    dialect: Dialect | None = None
    table_in_records: bool = False
    schema: str | None = None
    wrapping: str | None = None
    change: dict | None = None
    also_called: dict[str, str] = field(default_factory=dict)
    shards: tuple[Shards, ...] = ()
