"""Read records of Debezium in Avro and Parquet, as sinks of Kafka Connect write them.

Each becomes the JSON document that Connect's JsonConverter would have written, with its schema: what the record's own
schema says of units, scales and bytes says it there too, so the same staging models read all three. Decimals are the
base64 of their unscaled bytes, times the numbers that they were, maps objects, doubles without a number in JSON `NaN`,
`Infinity`, `-Infinity`.
"""

import base64
import io
import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal

import fastavro
import numpy
import orjson
import pyarrow
import pyarrow.compute as compute
import pyarrow.parquet
from pyarrow import types

from highwater.formats import records
from highwater.formats.avro import as_text, not_text
from highwater.formats.documents import ENVELOPE, IS_RECORD, NAMED_TABLE
from highwater.formats.formats import ReadOptions
from highwater.formats.parquet import BINARY, CONVERSION_ERRORS, TEXT, in_lists, rows_in_a_block, unreadable_column
from highwater.formats.records import TableNames, UnreadableFile, record_batch

DECIMAL, DATE, TIME, TIMESTAMP = (
    f"org.apache.kafka.connect.data.{n}" for n in ("Decimal", "Date", "Time", "Timestamp")
)
MICRO_TIME, NANO_TIME, MICROS, NANOS = (
    f"io.debezium.time.{name}" for name in ("MicroTime", "NanoTime", "MicroTimestamp", "NanoTimestamp")
)
# Avro 1.12, "Logical Types", where no name of Connect says more
LOGICAL = {
    "decimal": DECIMAL, "date": DATE, "time-millis": TIME, "time-micros": MICRO_TIME,
    "timestamp-millis": TIMESTAMP, "timestamp-micros": MICROS, "timestamp-nanos": NANOS,
    "local-timestamp-millis": TIMESTAMP, "local-timestamp-micros": MICROS, "local-timestamp-nanos": NANOS,
}  # fmt: skip
# as Connect's JsonConverter calls them
IN_CONNECT = {
    "int": "int32", "long": "int64", "float": "float", "double": "double", "boolean": "boolean", "bytes": "bytes",
    "fixed": "bytes", "string": "string", "enum": "string", "array": "array", "map": "map", "record": "struct",
}  # fmt: skip
# what a schema says of its bytes; defaults need not be valid to be read, and logical types are not to be decoded
STRUCTURE = ("type", "name", "namespace", "fields", "symbols", "items", "values", "size")
HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
        ],
    }
)
# where Avro's writer of Parquet keeps the schema, with what Connect has put into it
AVRO_SCHEMA = b"parquet.avro.schema"
EXACT = Context(prec=100)


def _special(value: float):
    return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _single(value: float):
    """Return a number of 32 bits in the fewest digits that tell it apart."""
    return float(str(numpy.float32(value))) if math.isfinite(value) else _special(value)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _unscaled(value: Decimal, scale: int) -> str:
    """Return a decimal as base64 of the fewest bytes that hold its unscaled value."""
    whole = int(value.scaleb(scale, EXACT))
    return _base64(whole.to_bytes((whole + (whole < 0)).bit_length() // 8 + 1, "big", signed=True))


class _Schema:
    """A schema of Avro: what its values are in JSON, and what Connect's schema says of them."""

    def __init__(self, schema):
        self.names: dict[str, dict] = {}
        self.top = schema
        self._learn(schema, "")

    def _learn(self, kind, space: str) -> None:
        """Note the named types, by their full names and as they are called in their own namespace."""
        if isinstance(kind, list):
            for each in kind:
                self._learn(each, space)
        elif isinstance(kind, dict):
            if "name" in kind and kind.get("type") in ("record", "enum", "fixed"):
                space = kind.get("namespace", kind["name"].rpartition(".")[0] or space)
                name = kind["name"].rpartition(".")[2]
                self.names[f"{space}.{name}"] = self.names[name] = kind
            for each in kind.get("fields", ()):
                self._learn(each["type"], space)
            for part in ("items", "values", "type"):
                if isinstance(kind.get(part), dict | list):
                    self._learn(kind[part], space)

    def found(self, kind):
        """Return a type that is not NULL behind a name, a union or both."""
        while True:
            if isinstance(kind, list):
                others = [each for each in kind if each != "null"]
                kind = others[0] if len(others) == 1 else others
                if isinstance(kind, list):
                    return kind
            elif isinstance(kind, str) and kind in self.names:
                kind = self.names[kind]
            elif isinstance(kind, dict) and isinstance(kind["type"], dict | list):
                kind = kind["type"]
            else:
                return kind

    def fields(self, kind) -> dict[str, object]:
        """Return the types of a record's fields, by name; of anything else none."""
        kind = self.found(kind)
        is_record = isinstance(kind, dict) and kind["type"] == "record"
        return {each["name"]: each["type"] for each in kind["fields"]} if is_record else {}

    def described(self, name: str, kind) -> dict:
        """Return what Connect's schema says of a field."""
        kind = self.found(kind)
        kind = {"type": kind} if isinstance(kind, str) else kind if isinstance(kind, dict) else {"type": "union"}
        logical = kind.get("logicalType")
        own = kind.get("connect.name") or LOGICAL.get(logical)
        described = {"field": name, "type": kind.get("connect.type") or IN_CONNECT.get(kind["type"], "string")}
        if logical == "uuid":
            return described | {"type": "string"}
        parameters = kind.get("connect.parameters")
        parameters = {**parameters} if isinstance(parameters, dict) else {}
        if own == DECIMAL:
            parameters.setdefault("scale", str(kind.get("scale", 0)))
            if "connect.name" not in kind:
                parameters.setdefault("connect.decimal.precision", str(kind.get("precision", 38)))
        return described | ({"name": own} if own else {}) | ({"parameters": parameters} if parameters else {})

    def in_json(self, kind) -> Callable:
        """Return the function that makes of a value that is not NULL what JSON has of it."""
        kind = self.found(kind)
        if isinstance(kind, list):
            return self._of_union(kind)
        name = kind if isinstance(kind, str) else kind["type"]
        if name == "record":
            return self._of_record(kind)
        if name == "array":
            return self._of_array(kind)
        if name == "map":
            inner = self._or_null(kind["values"])
            return lambda value: {key: inner(each) for key, each in value.items()}
        if name == "fixed" and isinstance(kind, dict) and kind.get("logicalType") == "uuid":
            return lambda value: str(uuid.UUID(bytes=value))
        return {"float": _single, "double": _special, "bytes": _base64, "fixed": _base64}.get(name, lambda value: value)

    def _or_null(self, kind) -> Callable:
        inner = None

        def of(value):
            nonlocal inner
            if value is None:
                return None
            if inner is None:  # a type may hold itself
                inner = self.in_json(kind)
            return inner(value)

        return of

    def _of_record(self, kind: dict) -> Callable:
        fields = [(each["name"], self._or_null(each["type"])) for each in kind["fields"]]
        return lambda value: {name: inner(value[name]) for name, inner in fields}

    def _of_array(self, kind: dict) -> Callable:
        items = self.found(kind["items"])
        inner = self._or_null(items)
        if isinstance(items, dict) and items.get("connect.internal.type") == "MapEntry":
            return lambda value: [[*inner(each).values()] for each in value]
        return lambda value: [inner(each) for each in value]

    def _of_union(self, kinds: list) -> Callable:
        others = [(_python_types(self.found(kind)), self._or_null(kind)) for kind in kinds]
        return lambda value: next(inner for fitting, inner in others if isinstance(value, fitting))(value)


def _python_types(kind) -> tuple[type, ...]:
    name = kind if isinstance(kind, str) else kind["type"]
    found = {"record": dict, "map": dict, "array": list, "string": str, "enum": str, "bytes": bytes, "fixed": bytes}
    found |= {"boolean": bool, "int": int, "long": int, "float": float, "double": float}
    return (found[name],)


class _Documents:
    """Makes documents of the records of one file, whose schema is one.

    Arguments:
        columns: the fields of a record, by name. fields_of: returns what Connect's schema says of the fields there.
    """

    def __init__(self, options: ReadOptions, columns: Iterable[str], fields_of: Callable[..., list[dict]], names):
        self._names, self._format = names, options.format
        self._at = self._place(options, {*columns})
        fields = {each["field"]: each for each in fields_of(*self._at)}
        image = next((part for part in ("after", "before") if "op" in fields and part in fields), None)
        rows = fields_of(*self._at, image) if image else []
        schema = [{"field": "after", "type": "struct", "fields": rows}] if rows else [*fields.values()]
        self._before = b'{"schema":' + orjson.dumps({"type": "struct", "fields": schema}) + b',"payload":'

    def _place(self, options: ReadOptions, columns: set[str]) -> list[str]:
        """Return where in a record the document is: inside an envelope, or nowhere but itself."""
        field = options.wrapping or "value"
        is_record = IS_RECORD[options.format](dict.fromkeys(columns))
        is_wrapped = field in columns and not is_record and (options.wrapping or columns <= ENVELOPE)
        return [field] if is_wrapped else []

    def batch(self, first: int, rows: list[dict]) -> pyarrow.RecordBatch | None:
        """Return the documents of records, which are numbered from `first`; what says only that a key is gone is none.

        Arguments:
            rows: of what JSON has.
        """
        lines, texts, problems, tables = [], [], [], []
        for line, row in enumerate(rows, first):
            for name in self._at:
                row = row[name]
            if row is None:
                continue
            text, problem = self._document_or_problem(row)
            lines.append(line)
            texts.append(text)
            problems.append(problem)
            if self._names:
                tables.append(self._names.name_of(*NAMED_TABLE[self._format]({"payload": row})))
        return record_batch(lines, texts, problems=problems, tables=tables or None) if lines else None

    def _document_or_problem(self, row: dict) -> tuple[bytes, str | None]:
        """Return the document of a record, and what is wrong with it."""
        try:
            return self._before + orjson.dumps(row) + b"}", None
        except (orjson.JSONEncodeError, TypeError) as error:
            found = not_text(row)
            if found is None:
                return self._before + b"null}", f"malformed_record: {error}"
        place, value = found
        problem = f"not_utf8: field {place!r}: 0x{value.hex()} is no text in UTF-8"
        return self._before + orjson.dumps(as_text(row)) + b"}", problem


def _fields_of_avro(schema: _Schema) -> Callable[..., list[dict]]:
    def fields_of(*path: str) -> list[dict]:
        kind = schema.top
        for name in path:
            kind = schema.fields(kind)[name]
        return [schema.described(name, each) for name, each in schema.fields(kind).items()]

    return fields_of


def avro_documents(stream, options: ReadOptions, names: TableNames | None = None) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of an Avro container file as documents; their lines are their ordinals, from 1.

    A record with a text that is no UTF-8 has a problem that names the field.

    Arguments:
        options: what the feed declares. names: gives the records their tables, where records tell them.
    Raises: UnreadableFile for a file that is no Avro or not whole, for one whose values are no records, and for a codec
        that is not installed.
    """
    rows, size, first = [], 0, 1
    try:
        undecoded, written = _undecoded(stream)
        schema = _Schema(written)
        if not schema.fields(written):
            raise UnreadableFile("its values are no records, which have fields")
        documents = _Documents(options, schema.fields(written), _fields_of_avro(schema), names)
        in_json = schema.in_json(written)
        for record in fastavro.reader(undecoded, handle_unicode_errors="surrogateescape"):
            rows.append(in_json(record))
            if len(rows) >= 1000 or undecoded.passed - size >= records.BLOCK_BYTES:
                if batch := documents.batch(first, rows):
                    yield batch
                rows, first, size = [], first + len(rows), undecoded.passed
        if rows and (batch := documents.batch(first, rows)):
            yield batch
    except UnreadableFile:
        raise
    except Exception as error:  # fastavro lets through whatever it stumbles over
        raise UnreadableFile(f"it is no sound Avro file: {type(error).__name__}: {error}") from error


class _Behind(io.RawIOBase):
    """A stream with other bytes before it.

    Attributes:
        passed: how many bytes were read.
    """

    def __init__(self, begin: bytes, stream):
        self._begin, self._stream, self.passed = io.BytesIO(begin), stream, 0

    def read(self, size=-1):
        """Return up to `size` bytes."""
        data = self._begin.read(size)
        if size < 0 or len(data) < size:
            data += self._stream.read(size - len(data) if size >= 0 else -1)
        self.passed += len(data)
        return data


def _undecoded(stream) -> tuple[_Behind, object]:
    """Return a container file whose schema says nothing but its structure, and the schema that was written."""
    header = fastavro.schemaless_reader(stream, HEADER)
    written = json.loads(header["meta"]["avro.schema"])
    out = io.BytesIO()
    meta = {**header["meta"], "avro.schema": orjson.dumps(_structure(written))}
    fastavro.schemaless_writer(out, HEADER, {**header, "meta": meta})
    return _Behind(out.getvalue(), stream), written


def _structure(kind):
    """Return a schema without what is not needed to cut values."""
    if isinstance(kind, list):
        return [_structure(each) for each in kind]
    if not isinstance(kind, dict):
        return kind
    found = {name: kind[name] for name in STRUCTURE if name in kind}
    for part in ("type", "items", "values"):
        if part in found:
            found[part] = _structure(found[part])
    if isinstance(found.get("fields"), list):
        found["fields"] = [{"name": each["name"], "type": _structure(each["type"])} for each in found["fields"]]
    return found


def parquet_documents(file, options: ReadOptions, names: TableNames | None = None) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a Parquet file as documents; their lines are their ordinals, from 1.

    What Connect said of a column is read from the schema that Avro's writer of Parquet has left in the file; where
    there is none, the types of the columns say it.

    Arguments:
        file: open for random access. options: what the feed declares.
        names: gives the records their tables, where records tell them.
    Raises: UnreadableFile for a file that is no Parquet, or not whole, or has a column of a type that is not read.
    """
    try:
        opened = pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")
        schema = opened.schema_arrow
        if len(set(schema.names)) < len(schema.names):
            raise UnreadableFile("its schema names a column twice")
        for column in schema:
            try:
                _in_json(pyarrow.nulls(1, column.type))
            except CONVERSION_ERRORS:
                raise UnreadableFile(
                    f"its column {column.name!r} has the type {column.type}, which is not read"
                ) from None
        enums, first = _enums(opened.schema), 1
        documents = _Documents(options, schema.names, _fields_of_parquet(opened, enums), names)
        for batch in opened.iter_batches(batch_size=rows_in_a_block(opened.metadata), use_threads=False):
            if found := documents.batch(first, _in_json(batch.to_struct_array(), enums)):
                yield found
            first += batch.num_rows
    except CONVERSION_ERRORS as error:
        where = unreadable_column(file) or "it is no sound Parquet file"
        raise UnreadableFile(f"{where}: {' '.join(str(error).split())}") from error


def _enums(schema) -> frozenset[str]:
    """Return the paths of columns that hold enumerated words, which pyarrow takes for bytes, and what is above them."""
    columns = map(schema.column, range(len(schema.names)))
    paths = [column.path.split(".") for column in columns if column.logical_type.type == "ENUM"]
    return frozenset(".".join(path[:length]) for path in paths for length in range(1, len(path) + 1))


def _fields_of_parquet(opened: pyarrow.parquet.ParquetFile, enums: frozenset[str]) -> Callable[..., list[dict]]:
    written = (opened.metadata.metadata or {}).get(AVRO_SCHEMA)
    if written:
        return _fields_of_avro(_Schema(json.loads(written)))

    def fields_of(*path: str) -> list[dict]:
        kind = pyarrow.struct(list(opened.schema_arrow))
        for name in path:
            kind = kind.field(name).type
        if not types.is_struct(kind):
            return []
        is_word = {name: ".".join((*path, name)) in enums for name in kind.names}
        return [_arrow_as_connect(each.name, pyarrow.string() if is_word[each.name] else each.type) for each in kind]

    return fields_of


# by the type of a column: the type that Connect has for it, and the name of what its numbers mean
ARROW = [
    (types.is_boolean, "boolean", None), (types.is_int8, "int8", None), (types.is_int16, "int16", None),
    (types.is_uint8, "int16", None), (types.is_int32, "int32", None), (types.is_uint16, "int32", None),
    (types.is_integer, "int64", None), (types.is_float64, "double", None), (types.is_floating, "float", None),
    (types.is_date, "int32", DATE), (types.is_struct, "struct", None), (types.is_map, "map", None),
    (types.is_nested, "array", None), (lambda kind: any(is_kind(kind) for is_kind in BINARY), "bytes", None),
]  # fmt: skip
OF_TIME = {"s": TIME, "ms": TIME, "us": MICRO_TIME, "ns": NANO_TIME}
OF_TIMESTAMP = {"s": TIMESTAMP, "ms": TIMESTAMP, "us": MICROS, "ns": NANOS}


def _arrow_as_connect(field: str, kind: pyarrow.DataType) -> dict:
    """Return what Connect's schema would say of a column, by its type."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_decimal(kind):
        parameters = {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)}
        return {"field": field, "type": "bytes", "name": DECIMAL, "parameters": parameters}
    if types.is_timestamp(kind) or types.is_time(kind):
        units = OF_TIMESTAMP if types.is_timestamp(kind) else OF_TIME
        return {"field": field, "type": "int64", "name": units[kind.unit]}
    found = next(((type, name) for is_kind, type, name in ARROW if is_kind(kind)), ("string", None))
    return {"field": field, "type": found[0]} | ({"name": found[1]} if found[1] else {})


def _in_json(column: pyarrow.Array, enums: frozenset[str] = frozenset(), path: str = "") -> list:
    """Return a column's values as JSON has them.

    Arguments:
        enums: paths of columns whose bytes are words. path: of this column.
    """
    kind = column.type
    if types.is_struct(kind):
        names = [f"{path}.{name}".removeprefix(".") for name in kind.names]
        rows = zip(*(_in_json(column.field(at), enums, name) for at, name in enumerate(names)), strict=True)
        rows = [dict(zip(kind.names, row, strict=True)) for row in rows] or [{}] * len(column)
        return [row if valid else None for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)]
    if types.is_map(kind):
        return _maps(column, enums, path)
    if types.is_nested(kind):
        return in_lists(_in_json(column.flatten(), enums, path), compute.list_value_length(column).to_pylist())
    if isinstance(kind, pyarrow.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return _each(column.storage, lambda value: str(uuid.UUID(bytes=value)))
        is_truth = kind.extension_name == "arrow.bool8"
        return _in_json(column.storage.cast(pyarrow.bool_()) if is_truth else column.storage, enums, path)
    if types.is_dictionary(kind):
        return _in_json(column.dictionary_decode(), enums, path)
    if types.is_decimal(kind):
        return _each(column, lambda value: _unscaled(value, kind.scale))
    if types.is_date64(kind):
        return _in_json(column.cast(pyarrow.date32()))
    if types.is_temporal(kind):
        seconds = getattr(kind, "unit", None) == "s"  # which Connect counts in milliseconds
        numbers = column.view(pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64()).to_pylist()
        return [value * 1000 if seconds and value is not None else value for value in numbers]
    if types.is_floating(kind):
        return _each(column, _special if types.is_float64(kind) else _single)
    if path not in enums and any(is_kind(kind) for is_kind in BINARY):
        return _each(column, _base64)
    if any(is_kind(kind) for is_kind in (*TEXT, *BINARY)):  # Parquet files are not checked for UTF-8
        return _each(column.cast(pyarrow.large_binary()), lambda value: value.decode(errors="surrogateescape"))
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind):
        return column.to_pylist()
    raise TypeError(f"{kind} is not read")


def _each(column: pyarrow.Array, as_json: Callable) -> list:
    return [None if value is None else as_json(value) for value in column.to_pylist()]


def _maps(column: pyarrow.MapArray, enums: frozenset[str], path: str) -> list:
    """Return maps as objects, or as lists of their pairs where keys are no texts."""
    offsets = column.offsets.to_numpy()
    parts = (part.slice(offsets[0], offsets[-1] - offsets[0]) for part in (column.keys, column.items))
    keys, values = (_in_json(part, enums, path) for part in parts)
    pairs = in_lists([*map(list, zip(keys, values, strict=True))], numpy.diff(offsets).tolist())
    are_texts = any(is_kind(column.type.key_type) for is_kind in TEXT)
    pairs = [dict(each) for each in pairs] if are_texts else pairs
    return [each if valid else None for each, valid in zip(pairs, column.is_valid().to_pylist(), strict=True)]
