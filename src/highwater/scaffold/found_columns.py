"""The columns of a table as its delivered files tell them: from the schema that they carry, else from their values."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal

import fastavro
import pyarrow.parquet
from pyarrow import types

from highwater.catalog.columns import UNSIGNED, UNSIGNED_TYPE, FoundColumns, named_columns, what_is_wrong
from highwater.catalog.feeds import FORMATS, Feed
from highwater.catalog.models import texts_in
from highwater.catalog.tables import named
from highwater.formats import readers
from highwater.formats.compression import decompressed
from highwater.formats.debezium import AVRO_JSON
from highwater.formats.declared import key_in, row_in
from highwater.formats.documents import named_table_of, names_tables
from highwater.formats.formats import DEBEZIUM, TABLE_IN_FOLDERS
from highwater.formats.records import CountedStream, UnreadableFile
from highwater.landing.feed_folders import delivered_files
from highwater.landing.listing import DeliveredFile, filesystem
from highwater.runtime.errors import UsageError
from highwater.runtime.package import package
from highwater.runtime.printable import counted, printable
from highwater.scaffold.decisions import Doubt

RECORDS_AT_MOST, FILES_AT_MOST, ROWS_AT_ONCE = 1000, 20, 100
DATE = re.compile(r"\d{4}-\d\d-\d\d")
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(?P<zone>Z|[+-]\d\d:?\d\d)?")
MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0+)?)?(Z|[+-]\d\d:?\d\d)?\Z")
WHOLE = re.compile(r"-?(0|[1-9]\d*)")
FRACTION = re.compile(r"-?(0|[1-9]\d*)\.\d+")
# what DMS, Tungsten and Arcion put beside the columns of a table
BESIDE = {"opcode", "seqno", "row_id", "commit_timestamp", "optype", "cursor", "operationcounts"}
# what says the operation, and how it says that a row is gone
TELL_DELETES = ("op", "__op", "__deleted", "Op", "opcode", "change_type")
DELETES = {"D", "UD", "TRUE", "DELETE", "UPDATE-DELETE"}
# Kafka Connect: Schema.Type, and JsonSchema, which calls two of them otherwise; Debezium 3.6, "Data type mappings" of
# its connectors, for the names
CONNECT = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float32": "float", "float64": "double",
    "float": "float", "double": "double", "boolean": "boolean", "bytes": "binary",
}  # fmt: skip
CONNECT_NAMES = {
    "io.debezium.time.Date": ("date", None),
    "org.apache.kafka.connect.data.Date": ("date", None),
    "io.debezium.time.IsoDate": ("date", None),
    "io.debezium.time.Timestamp": ("timestamp_ntz", "millis"),
    "org.apache.kafka.connect.data.Timestamp": ("timestamp_ntz", "millis"),
    "io.debezium.time.MicroTimestamp": ("timestamp_ntz", "micros"),
    "io.debezium.time.NanoTimestamp": ("timestamp_ntz", "nanos"),
    "io.debezium.time.IsoTimestamp": ("timestamp_ntz", None),
    "io.debezium.time.ZonedTimestamp": ("timestamp", None),
}
# Avro 1.12, "Logical Types", and Datastream, "Unified types"
AVRO = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}
ARROW = [
    (types.is_boolean, "boolean"), (types.is_int8, "tinyint"), (types.is_int16, "smallint"),
    (types.is_uint8, "smallint"), (types.is_int32, "int"), (types.is_uint16, "int"), (types.is_int64, "bigint"),
    (types.is_uint32, "bigint"), (types.is_uint64, "decimal(20,0)"), (types.is_float64, "double"),
    (types.is_floating, "float"), (types.is_date, "date"), (types.is_binary, "binary"),
    (types.is_large_binary, "binary"), (types.is_fixed_size_binary, "binary"),
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """An image of a row, and the record that it is in.

    Attributes:
        values: by field. file, line: of the record. is_delete: nothing but its key is looked at.
    """

    values: dict
    file: str
    line: int
    is_delete: bool


@dataclass(frozen=True)
class Broken:
    """A record that cannot be read; or a file, then line is 0."""

    file: str
    line: int
    problem: str


@dataclass
class Observed:
    """What the files of a table tell of its columns.

    Attributes:
        types: by field, Spark's type and the unit of its times, from a schema. rows: those that were seen.
        key: the fields of its key; none: they do not tell it. files: that were read. records: how many of them.
        tables: schema and name of the records' tables, where folders tell the table and the format's records do too.
        named: by setting of the feed, how many records name which value of it.
        encoded: fields whose records say how their values are written, but not of which type they are.
        broken: what could not be read. opened: how many files were. is_unnamed: they do not name their columns.
    """

    types: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    encoded: set[str] = field(default_factory=set)
    tables: set[tuple[str | None, str]] = field(default_factory=set)
    named: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    broken: list[Broken] = field(default_factory=list)
    opened: int = 0
    is_unnamed: bool = False
    files: set[str] = field(default_factory=set)
    records: int = 0

    def __str__(self) -> str:
        records = counted(self.records, "record")
        return f"the schema and {records}" if self.types else records

    def of_several_tables(self) -> str | None:
        """Return what to say where the records of one folder name several tables; None: they name one, or none."""
        if len(self.tables) < 2:
            return None
        names = {name for _, name in self.tables}
        if len(names) < len(self.tables):
            names = {f"{schema}.{name}" if schema else name for schema, name in self.tables}
        return (
            f"its records name several tables ({printable(named(sorted(names)))}), and the folder tells one: "
            "all become rows of it. Declare `layout: records` for the feed where they are several"
        )

    @property
    def values(self) -> dict[str, list]:
        """What was seen of each field."""
        values = {}
        for row in self.rows:
            for name, value in row.values.items():
                values.setdefault(name, []).append(value)
        return values

    def see(self, row: Row) -> None:
        """Take in one image of a row."""
        self.records += 1
        self.rows.append(row)


def found_in_files(feed: Feed, table: str) -> tuple[FoundColumns, list[Doubt], str]:
    """Return the columns of a table as its newest delivered files tell them, and what they do not tell.

    Arguments:
        feed: declared, or as it is about to be. table: what its folder, its files or its records call it.
    Returns: the columns, with the key where the records tell it; what somebody has to look at;
        what told the columns, in words.
    Raises: UsageError when nothing is delivered yet, or its files do not name their columns.
    """
    if feed.relation:
        raise UsageError(
            f"{feed.name} reads {printable(feed.relation)}, whose columns are not looked up: name them with --key and "
            "--columns, or --ddl FILE."
        )
    if not feed.is_delivered:
        raise UsageError(
            f"{feed.format} is not delivered in files: highwater extract {feed.name}.{table} --enable declares a table."
        )
    observed = observed_of(feed, table)
    values = observed.values
    if not values and not observed.types:
        where = f"{feed.root}/{feed.name}" + (f"/{table}" if feed.layout == TABLE_IN_FOLDERS else "")
        raise UsageError(
            f"nothing in {printable(where)} tells the columns of {printable(table)}: "
            + ("its files do not name them" if observed.is_unnamed else "no record of it is delivered yet")
            + ". Take them from the database's DDL with --ddl FILE, or say which columns identify a row and what "
            "others there are, for example --key id:bigint --columns total:decimal(12,2)."
        )
    parts, doubts = [], []
    for name in {**observed.types, **values}:
        spark, unit = observed.types.get(name, (None, None))
        if spark is None:
            spark, doubt = _guessed(values[name], FORMATS[feed.format].dialect is not None)
            doubts += [Doubt(printable(name), doubt)] if doubt else []
        if wrong := what_is_wrong(name, spark, None):
            doubts.append(Doubt(printable(name), f"is left in raw: {printable(wrong[0])}"))
        else:
            parts.append((name, spark, unit))
    if feed.format in DEBEZIUM and not observed.types:
        said = "its records carry no schema, so numbers may be times and texts decimals: --ddl FILE would tell"
        doubts.append(Doubt(None, said))
    doubts += [Doubt(None, said) for said in filter(None, [observed.of_several_tables()])]
    key = [name for name in observed.key if name in values]
    return FoundColumns(named_columns(parts), key), doubts, str(observed)


def type_in(observed: Observed, feed: Feed, field: str) -> tuple[str, str | None]:
    """Return the type and unit of a field, as the schema of some files tells it, else the values of their records.

    Arguments:
        observed: see observed_of. feed: declared. field: as the records have it.
    """
    if field in observed.types:
        return observed.types[field]
    values = observed.values.get(field)
    return (_guessed(values, FORMATS[feed.format].dialect is not None)[0] if values else "string"), None


def several_tables(feed: Feed, tables: Iterable[str]) -> Iterator[str]:
    """Yield what to say of folders whose newest records name several tables, where the folder is to tell the table.

    Arguments:
        tables: of the feed, of whose files some have landed.
    """
    if feed.layout == TABLE_IN_FOLDERS and names_tables(feed.options):
        for table in sorted(tables):
            if several := observed_of(feed, table).of_several_tables():
                yield f"{feed.name}.{printable(table)}: {several}"


def observed_of(feed: Feed, table: str) -> Observed:
    """Return what the newest delivered files of a table tell, as far as they can be read."""
    return observed_of_tables(feed, [table], RECORDS_AT_MOST)[table]


def observed_of_tables(
    feed: Feed, tables: list[str], records_at_most: int, looked_at_most: int | None = None
) -> dict[str, Observed]:
    """Return what the newest delivered files of tables tell, as far as they can be read, in one pass over the files.

    Arguments:
        tables: of one feed, as raw calls them. records_at_most: of each.
        looked_at_most: how many records may be passed over to find them, of all tables together; None: any number.
    """
    if feed.layout == TABLE_IN_FOLDERS:  # the folders of its other tables need not be listed
        feed = replace(feed, tables=(*tables,), source_tables={})
    sample = _Sample(feed, tables, records_at_most, looked_at_most)
    for file in sorted(delivered_files(feed), key=lambda file: file.modified_at, reverse=True):
        sample.look_into(file)
        if not sample.wanted:
            break
    return sample.observed


class _Sample:
    """What the files of a feed tell of some tables, file by file."""

    def __init__(self, feed: Feed, tables: list[str], records_at_most: int, looked_at_most: int | None):
        self.feed, self.observed = feed, {table: Observed() for table in tables}
        self.records_at_most, self.looked_at_most = records_at_most, looked_at_most
        self.looked: dict[str | None, int] = {}
        self.wanted = set(tables)
        self.system, _ = filesystem(feed.root)

    def look_into(self, file: DeliveredFile) -> None:
        """Take in the rows of a file of these tables."""
        tables = sorted(self.wanted if file.table is None else self.wanted & {file.table})
        if not tables or self._has_looked_enough(file.table):
            return
        for table in tables:
            self.observed[table].opened += 1
        try:
            if file.problem:
                raise UnreadableFile(file.problem)
            self._read(file)
        except (UnreadableFile, OSError) as error:
            problem = file.problem or f"cannot be read: {error}"
            for table in tables:
                self.observed[table].broken.append(Broken(file.source_file, 0, problem))
        except ValueError:  # a schema that is none
            return

    def _has_looked_enough(self, table: str | None) -> bool:
        if self.looked_at_most is None:
            return False
        own = self.looked_at_most if table is None else self.looked_at_most // len(self.observed)
        return self.looked.get(table, 0) >= own

    def _read(self, file: DeliveredFile) -> None:
        with_schema, in_records = set(), self.feed.options.table_in_records
        for record in records_of(self.system, self.feed, file):
            self.looked[file.table] = self.looked.get(file.table, 0) + 1
            table = record["source_table"] if in_records else file.table
            if record["problem"]:
                for each in [*self.observed] if table is None else [table]:
                    self._see_broken(each, file, record)
            elif table in self.wanted and (row := self._row(record, file, self.observed[table])):
                if table not in with_schema:
                    _read_schema(self.system, self.feed, file, self.observed[table])
                with_schema.add(table)
                self._see(table, row)
            if not self.wanted or (file.table and file.table not in self.wanted) or self._has_looked_enough(file.table):
                return
        for table in {file.table} if file.table else set(self.wanted):
            if len(self.observed[table].files) >= FILES_AT_MOST:
                self.wanted.discard(table)

    def _see(self, table: str, row: Row) -> None:
        observed = self.observed[table]
        observed.files.add(row.file)
        observed.see(row)
        if observed.records >= self.records_at_most:
            self.wanted.discard(table)

    def _see_broken(self, table: str | None, file: DeliveredFile, record: dict) -> None:
        if table in self.observed:
            self.observed[table].broken.append(Broken(file.source_file, record["source_line"], record["problem"]))

    def _row(self, record: dict, file: DeliveredFile, observed: Observed) -> Row | None:
        """Return the image of a row in a record."""
        feed, fields = self.feed, dict(record["fields"] or ())
        if feed.options.dialect and not feed.options.dialect.header:
            observed.is_unnamed = True
            self.wanted.discard(file.table)
            return None
        if feed.format not in IMAGES and feed.options.change is None:
            row, is_delete = _own(feed, fields), _tells_delete(fields)
        else:
            row, is_delete = _image(feed, fields.get("document") or record["record"], observed)
        return Row(row, file.source_file, record["source_line"], is_delete) if row else None


def records_of(system, feed: Feed, file: DeliveredFile) -> Iterator[dict]:
    """Yield the records of a file."""
    opened = system.open_input_file(file.path) if readers.needs_random_access(feed.options) else None
    with opened or system.open_input_stream(file.path, compression=None) as stream:
        for batch in readers.read(stream if opened else CountedStream(stream), feed.options):
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                yield from batch.slice(start, ROWS_AT_ONCE).to_pylist()


def _image(feed: Feed, text: str | bytes, observed: Observed) -> tuple[dict | None, bool]:
    """Return the image of a row in a document, None where none can be made out; and whether the row is deleted."""
    try:
        document = json.loads(text, parse_float=Decimal)
        row = _declared(feed, document, observed) if feed.options.change else IMAGES[feed.format](document, observed)
        if row and feed.settings.get("form") == "flattened" and "prefix" in feed.settings:
            row = _without_metadata(row, feed.settings["prefix"])
    except (ValueError, RecursionError):  # staging says what is wrong with it
        return None, False
    if row and feed.layout == TABLE_IN_FOLDERS and names_tables(feed.options):
        schema, name = named_table_of(feed.options)(document)
        schema = schema if isinstance(schema, str) else None
        observed.tables |= {(schema, name)} if isinstance(name, str) else set()
    return row if isinstance(row, dict) else None, _tells_delete(document)


def _tells_delete(record: dict) -> bool:
    """Return whether a record, or the part of it that says so, tells of a delete."""
    said = {str(record.get(name)).upper() for name in TELL_DELETES}
    inside = (record.get(name) for name in ("payload", "source_metadata", "datastream_metadata"))
    return bool(said & DELETES) or any(_tells_delete(part) for part in inside if isinstance(part, dict))


def _own(feed: Feed, fields: dict) -> dict:
    """Return the columns of a table out of the fields of a row in a delimited or Parquet file."""
    settings, is_dms = feed.settings, feed.format.startswith("dms")
    beside = {settings.get("sequence_column"), settings.get("timestamp_column")} if is_dms else set()
    beside |= {"Op"} if is_dms and next(iter(fields), None) == "Op" else set()
    beside |= {*settings.get("columns", BESIDE)} if feed.format in ("tungsten-csv", "arcion-csv") else set()
    before = settings.get("before_prefix", "BI_") if is_dms else None
    return {
        name: value
        for name, value in fields.items()
        if name not in beside and not (before and name.startswith(before) and name.removeprefix(before) in fields)
    }


def _datastream(document: dict, observed: Observed) -> dict | None:
    metadata = document.get("source_metadata")
    keys = metadata.get("primary_keys") if isinstance(metadata, dict) else None
    observed.key = [name for name in keys if isinstance(name, str)] if isinstance(keys, list) else observed.key
    return document.get("payload")


def _datastream_row(document: dict, observed: Observed) -> dict:
    return {name: value for name, value in document.items() if name != "datastream_metadata"}


def _debezium(document: dict, observed: Observed) -> dict | None:
    payload = document
    if document.keys() <= {"schema", "payload"} and isinstance(document.get("payload"), dict):
        payload = document["payload"]
        observed.types |= _types_of_connect(document.get("schema"))
        observed.encoded |= _encoded_in(document.get("schema"))
    if "op" in payload and payload.keys() & {"before", "after", "source"}:
        source = payload.get("source")
        observed.named["form"]["envelope"] += 1
        if isinstance(source, dict) and isinstance(source.get("connector"), str):
            observed.named["connector"][source["connector"]] += 1
        return payload.get("after") or payload.get("before")
    observed.named["form"]["flattened"] += any(name in payload for name in ("__op", "__deleted"))
    return {name: value for name, value in payload.items() if not name.startswith("__")}


def _without_metadata(row: dict, prefix: str) -> dict:
    """Return the columns of a flattened row whose metadata begin with a declared prefix, as carried_fields has them."""
    if prefix:
        return {name: value for name, value in row.items() if not name.startswith(prefix)}
    known = {*texts_in(package() / "macros/staging/debezium/debezium_metadata_fields.sql")}
    return {name: value for name, value in row.items() if name not in known}


def _encoded_in(schema) -> set[str]:
    """Return the fields of which Avro's JSON encoding says how their values are written."""
    if not isinstance(schema, dict) or schema.get("name") != AVRO_JSON:
        return set()
    fields = _fields_of_connect(schema)
    row = next((each for each in fields if each["field"] == "after" and "fields" in each), None)
    return {each["field"] for each in (_fields_of_connect(row) if row else fields)}


def _types_of_connect(schema) -> dict[str, tuple[str, str | None]]:
    """Return the types of the columns in a schema of Kafka Connect, of a row or of Debezium's envelope around it."""
    if isinstance(schema, dict) and schema.get("name") == AVRO_JSON:
        return {}
    fields = _fields_of_connect(schema)
    row = next((each for each in fields if each["field"] == "after" and each.get("type") == "struct"), None)
    columns = _fields_of_connect(row) if row else fields
    return {each["field"]: _type_of_connect(each) for each in columns if not each["field"].startswith("__")}


def _fields_of_connect(schema) -> list[dict]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [
        each
        for each in (fields if isinstance(fields, list) else [])
        if isinstance(each, dict) and isinstance(each.get("field"), str)
    ]


def _type_of_connect(column: dict) -> tuple[str, str | None]:
    name, parameters = str(column.get("name")), column.get("parameters")
    if name == "org.apache.kafka.connect.data.Decimal":
        given = parameters if isinstance(parameters, dict) else {}
        return _decimal(given.get("connect.decimal.precision", 38), given.get("scale", 0)), None
    if name in CONNECT_NAMES:
        return CONNECT_NAMES[name]
    # what a connector that is told to passes on of the source (column.propagate.source.type)
    at_source = str(parameters.get("__debezium.source.column.type")) if isinstance(parameters, dict) else ""
    if column.get("type") == "int64" and at_source.upper() == "BIGINT UNSIGNED":
        return UNSIGNED_TYPE, UNSIGNED
    # times of day and durations are texts or numbers as they stand
    is_time = name.startswith("io.debezium.time.")
    return "string" if is_time else CONNECT.get(str(column.get("type")), "string"), None


def _decimal(precision, scale) -> str:
    try:
        digits, behind = int(precision), max(int(scale), 0)
    except (TypeError, ValueError):
        return "string"
    return f"decimal({max(digits, behind, 1)},{behind})" if max(digits, behind) <= 38 else "string"


def _declared(feed: Feed, document: dict, observed: Observed) -> dict | None:
    observed.key = key_in(feed.options.change, document) or observed.key
    return row_in(feed.options.change, document)


def _arcion(document: dict, observed: Observed) -> dict | None:
    return document.get("after") or document.get("before")


IMAGES = {
    "datastream-json": _datastream_row,
    "datastream-gcs-json": _datastream,
    "datastream-avro": _datastream,
    **dict.fromkeys(DEBEZIUM, _debezium),
    "arcion-json": _arcion,
}


def _read_schema(system, feed: Feed, file: DeliveredFile, observed: Observed) -> None:
    """Take in the schema that a file carries, where its format has one: the first, which is the newest, holds."""
    if readers.needs_random_access(feed.options) and feed.format not in IMAGES:
        with system.open_input_file(file.path) as opened:
            schema = pyarrow.parquet.ParquetFile(opened, coerce_int96_timestamp_unit="us").schema_arrow
        found = {column.name: (_type_of_arrow(column.type), None) for column in schema}
        observed.types = {**{name: found[name] for name in _own(feed, found)}, **observed.types}
    elif feed.format == "datastream-avro":
        with system.open_input_stream(file.path, compression=None) as opened:
            schema = fastavro.reader(decompressed(CountedStream(opened))).writer_schema
        payload = next((each for each in schema.get("fields", ()) if each["name"] == "payload"), None)
        row = _without_null(payload["type"]) if payload else {}
        columns = row.get("fields", ()) if isinstance(row, dict) else ()
        observed.types = {**{each["name"]: (_type_of_avro(each["type"]), None) for each in columns}, **observed.types}


def _type_of_arrow(kind) -> str:
    if types.is_decimal(kind):
        return _decimal(kind.precision, kind.scale)
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return next((spark for is_kind, spark in ARROW if is_kind(kind)), "string")


def _without_null(kind):
    others = [each for each in kind if each != "null"] if isinstance(kind, list) else [kind]
    return others[0] if len(others) == 1 else "string"


def _type_of_avro(kind) -> str:
    kind = _without_null(kind)
    if not isinstance(kind, dict):
        return AVRO.get(kind, "string")
    if kind.get("logicalType") == "decimal":
        return _decimal(kind["precision"], kind.get("scale", 0))
    if kind.get("type") == "record":
        return "timestamp" if [each["name"] for each in kind["fields"]] == ["timestamp", "offset"] else "string"
    if isinstance(kind.get("type"), dict | list):
        return _type_of_avro(kind["type"])
    if "logicalType" in kind:  # times of day and intervals are texts
        return AVRO.get(kind["logicalType"], "string")
    return AVRO.get(kind["type"], "string")


def _guessed(values: list, all_texts: bool) -> tuple[str, str | None]:
    """Return the type that holds all of some values, and what cannot be told from them.

    Arguments:
        all_texts: the format writes every value as text.
    """
    there = [value for value in values if value is not None]
    if not there:
        return "string", "has no value in these records; it is declared as string"
    if all(isinstance(value, bool) for value in there):
        return "boolean", None
    if all(isinstance(value, int | Decimal) and not isinstance(value, bool) for value in there):
        return _number(there)
    if not all(isinstance(value, str) for value in there):
        kinds = {type(value) for value in there} - {dict, list}
        mixed = "holds values of several kinds, numbers and texts for example; it is declared as string"
        return "string", mixed if len(kinds) > 1 and str in kinds else None
    if all(map(DATE.fullmatch, there)):
        return "date", None
    moments = [MOMENT.fullmatch(value) for value in there]
    if all(moments):
        doubt = "has times at midnight only, so it may be a date" if all(map(MIDNIGHT.search, there)) else None
        return "timestamp" if all(each["zone"] for each in moments) else "timestamp_ntz", doubt
    if all(WHOLE.fullmatch(value) or FRACTION.fullmatch(value) for value in there):
        if all_texts:
            return _number([Decimal(value) for value in there])
        return "string", (
            "holds numbers as texts; it is declared as string. If they are decimals: highwater alter TABLE type COLUMN "
            "'decimal(p,s)'"
        )
    return "string", None


def _number(values: list) -> tuple[str, str | None]:
    exact = [Decimal(value) for value in values]
    scale = max(0, *(-value.as_tuple().exponent for value in exact))
    digits = max(len(value.as_tuple().digits) + max(value.as_tuple().exponent, 0) for value in exact)
    if not scale and max(map(abs, exact)) < 2**63:
        return "bigint", None
    if max(digits, scale) > 38:
        return "string", f"has up to {max(digits, scale)} digits, more than a decimal holds; it is declared as string"
    return (
        f"decimal(38,{scale})",
        f"has at most {scale} digits behind the point in these records; the source may have more",
    )
