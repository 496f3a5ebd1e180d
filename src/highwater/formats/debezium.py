"""Records of Debezium: which documents are one, and the forms that are turned into the plain one.

Plain are an envelope (`op` and images of a row) and a flattened row whose metadata begin with `__`, each with a schema
of Kafka Connect around it or without. What is written in another form tells so by itself; a plain record is never
turned, whatever its columns hold:

- Avro's JSON encoding, in which a value that may be NULL stands under its type: `{"long": 5}`;
- CloudEvents (io.debezium.converters.CloudEventsConverter), whose attributes tell operation and position;
- an envelope without an operation, whose images tell it;
- a flattened row whose metadata have another prefix (`add.fields.prefix`).

Numbers keep their digits.
"""

import base64
import json
from collections.abc import Callable

import orjson

IMAGES = ("before", "after")
# by branch of a union in Avro's JSON encoding: what Kafka Connect calls the type
BRANCHES = {
    "string": "string", "int": "int32", "long": "int64", "boolean": "boolean", "float": "float32", "double": "float64",
    "bytes": "bytes",
}  # fmt: skip
# the name of a schema that says how values are written, and not of which type of Connect or Debezium they are
AVRO_JSON = "Avro's JSON encoding"
# the type of a text that stands there without a union: Avro writes bytes as texts too, a character for each
TEXT_OR_BYTES = "text or bytes"
# what stands in `source` of some connector, in the order in which a position is told
POSITIONS = (
    "lsn", "sequence", "file", "pos", "scn", "commit_scn", "ssn", "commit_lsn", "change_lsn", "event_serial_no",
    "commit_time", "record_time", "ord", "mod_number",
)  # fmt: skip
METADATA = frozenset(
    (
        *POSITIONS, "op", "ts_ms", "ts_us", "ts_ns", "version", "connector", "name", "db", "schema", "table",
        "snapshot", "server_id", "gtid", "row", "thread", "query", "txId", "xmin", "collection", "keyspace", "shard",
        "vgtid",
    )
)  # fmt: skip
OPERATIONS = frozenset("crudtm")
CLOUD_EVENT = {"id", "source", "specversion", "type"}
EXTENSION = "iodebezium"
# an attribute has letters and digits only; `tx…` tells of the transaction
BY_ATTRIBUTE = {name.replace("_", ""): name for name in METADATA}
OF_TRANSACTION = {"txid", "txtotalorder", "txdatacollectionorder"}
WITHOUT_OPERATION = {*IMAGES, "source", "transaction", "ts_ms", "ts_us", "ts_ns"}

NO_OPERATION = (
    "unknown_form: a CloudEvent without iodebeziumop, which tells the operation: set the converter's "
    "extension.attributes.enable to true, and deliver the records again"
)
BINARY_DATA = (
    "unknown_form: the data of this CloudEvent are Avro in bytes, whose schema is in a registry: set the converter's "
    "data.serializer.type to json, and deliver the records again"
)
DOCUMENT_AS_TEXT = (
    "unknown_form: the image is a text, as the connector mongodb writes documents, and its deletes carry no key: let "
    "MongoDB's ExtractNewDocumentState flatten them (delete.tombstone.handling.mode=rewrite, "
    "add.fields=op,source.ts_ms,source.ord), and declare `form: flattened` and `connector: mongodb`"
)


class CannotBeTurned(ValueError):
    """A record in a form that cannot be read; its text is a problem, `code: what was found and what to do`."""


def row_of_connect(document: dict):
    """Return the payload of a record that Connect's JsonConverter has written with its schema; else the record."""
    if "payload" in document and document.keys() <= {"schema", "payload"}:
        return document["payload"]
    return document


def is_record(document: dict) -> bool:
    """Return whether a document is a record of Debezium, in any form."""
    if _is_envelope(document):
        return True
    payload = row_of_connect(document)
    if payload is not document:
        return isinstance(payload, dict) and is_record(payload)
    return any(name.startswith("__") for name in document) or _turn_of(document) is not None


def is_plain(document: dict) -> bool:
    """Return whether a document is a record that need not be turned. Called for each line of a file."""
    if _is_envelope(document):
        image = document.get("after") or document.get("before")
        return (type(image) is dict and len(image) > 1) or _turn_of(document) is None
    payload = row_of_connect(document)
    if payload is not document:
        return type(payload) is dict and is_plain(payload)
    if "__op" in document and type(document["__op"]) is str:
        return not any(type(value) is dict and name.startswith("__") for name, value in document.items())
    return any(name.startswith("__") for name in document) and _turn_of(document) is None


def turned(text: str) -> tuple[str, dict]:
    """Return the text and the value of a record in the plain form.

    Arguments:
        text: of a document that `is_record` and not `is_plain`.
    Raises: CannotBeTurned saying what is missing, and what to do.
    """
    try:
        plain = _turned(json.loads(text, parse_float=_number, parse_int=_number))
        return orjson.dumps(plain).decode(), plain
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise CannotBeTurned("malformed_record: its values are nested too deep to be read") from error


def _turned(document: dict) -> dict:
    payload = row_of_connect(document)
    if payload is document:
        return _turn_of(document)(document)
    inside = _turned(payload)
    return inside if row_of_connect(inside) is not inside else document | {"payload": inside}


def _number(text: str) -> orjson.Fragment:
    return orjson.Fragment(text)


def _is_number(value) -> bool:
    return isinstance(value, int | float | orjson.Fragment) and not isinstance(value, bool)


def _is_envelope(document: dict) -> bool:
    return "op" in document and ("after" in document or "before" in document or "source" in document)


def _turn_of(document: dict) -> Callable[[dict], dict] | None:
    """Return what turns a document into the plain form; None: nothing does, or nothing needs to."""
    if _is_envelope(document):
        if isinstance(document.get("after") or document.get("before"), str):
            return _refused(DOCUMENT_AS_TEXT)
        return _envelope_of_unions if _is_in_unions(document) else None
    if len(document) == 1 and _is_named(inside := next(iter(document.values())), document) and _is_envelope(inside):
        return _out_of_name
    if document.keys() >= CLOUD_EVENT and ("data" in document or "data_base64" in document):
        return _envelope_of_event
    if document.keys() >= {*IMAGES} and document.keys() <= WITHOUT_OPERATION and _operation_of(document):
        return _with_operation
    if any(_branch(value) for name, value in document.items() if name.startswith("__")):
        return _row_of_unions
    return _with_usual_prefix if _prefix_of(document) else None


def _refused(problem: str) -> Callable[[dict], dict]:
    def refuse(_):
        raise CannotBeTurned(problem)

    return refuse


def _is_named(value, union: dict) -> bool:
    """Return whether a value is a record that stands under its full name in a union."""
    return isinstance(value, dict) and "." in next(iter(union))


def _branch(value) -> str | None:
    """Return the branch of a union of Avro's plain types that a value is, in Avro's JSON encoding; None: it is none."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((name, inside),) = value.items()
    if name in ("string", "bytes"):
        return name if isinstance(inside, str) else None
    if name in ("float", "double"):
        return name if _is_number(inside) or inside in ("NaN", "Infinity", "-Infinity", "INF", "-INF") else None
    if name == "boolean":
        return name if isinstance(inside, bool) else None
    return name if name in BRANCHES and _is_number(inside) else None


def _is_in_unions(envelope: dict) -> bool:
    """Return whether an envelope is in Avro's JSON encoding; what stands beside the images of the row tells it."""
    images = [envelope[name] for name in IMAGES if envelope.get(name) is not None]
    if not all(isinstance(image, dict) and len(image) == 1 for image in images):
        return False
    if not all(isinstance(inside, dict) for image in images for inside in image.values()):
        return False
    source = envelope.get("source")
    beside = [value for name, value in envelope.items() if name not in (*IMAGES, "source", "transaction")]
    if any(_branch(value) for value in [*beside, *(source.values() if isinstance(source, dict) else ())]):
        return True
    # as Debezium's Avro calls the row, and Materialize's, whose envelopes tell no source
    names = {name for image in images for name in image}
    is_named = all(name.endswith(".Value") or (name == "row" and source is None) for name in names)
    return bool(images) and is_named and not _is_number(envelope.get("ts_ms"))


def _out_of_name(document: dict) -> dict:
    (envelope,) = document.values()
    turn = _turn_of(envelope)
    return turn(envelope) if turn else envelope


def _envelope_of_unions(envelope: dict) -> dict:
    types, payload = {}, {}
    for name, value in envelope.items():
        if name in IMAGES:
            payload[name] = None if value is None else _row(next(iter(value.values())), types)
        elif name == "source" and isinstance(value, dict):
            inside = next(iter(value.values()), None)
            source = inside if len(value) == 1 and _is_named(inside, value) else value
            payload[name] = {field: _value(each)[0] for field, each in source.items()}
        else:
            payload[name] = _value(value)[0]
    return _with_types([{"field": "after", "fields": _fields(types)}], payload)


def _row_of_unions(document: dict) -> dict:
    types = {}
    row = _row(document, types)
    turn = _turn_of(row)
    return _with_types(_fields(types), turn(row) if turn else row)


def _with_types(fields: list, payload: dict) -> dict:
    return {"schema": {"name": AVRO_JSON, "fields": fields}, "payload": payload}


def _fields(types: dict[str, str]) -> list[dict]:
    return [{"field": name, "type": kind} for name, kind in types.items()]


def _row(image: dict, types: dict[str, str]) -> dict:
    """Return the values of a row out of their unions, and add their types to those that are known."""
    row = {}
    for name, value in image.items():
        row[name], kind = _value(value)
        if kind and types.get(name, TEXT_OR_BYTES) == TEXT_OR_BYTES:
            types[name] = kind
    return row


def _value(value) -> tuple[object, str | None]:
    """Return a value out of its union, bytes in base64 as JSON has them; and its type, where it is told."""
    if isinstance(value, str):
        return value, TEXT_OR_BYTES
    if isinstance(value, list):
        return [_value(each)[0] for each in value], None
    if not isinstance(value, dict):
        return value, None
    branch = _branch(value)
    if branch == "bytes":
        return _bytes(value[branch]), "bytes"
    if branch:
        return value[branch], BRANCHES[branch]
    if len(value) == 1:
        ((name, inside),) = value.items()
        if (name == "array" and isinstance(inside, list)) or (name == "map" and isinstance(inside, dict)):
            return (
                _value(inside)[0] if name == "array" else {key: _value(each)[0] for key, each in inside.items()}
            ), None
        if _is_named(inside, value):
            return _record(inside), None
        if "." in name and isinstance(inside, str):  # one of the words of an enum
            return inside, "string"
    return _record(value), None


def _record(record: dict) -> dict:
    """Return a record inside a row; `value` beside `scale`, and `wkb`, are bytes in those of io.debezium.data."""
    fields = {name: _value(each)[0] for name, each in record.items()}
    for name in ("value", "wkb"):
        if isinstance(record.get(name), str) and (name == "wkb" or record.keys() == {"scale", "value"}):
            fields[name] = _bytes(record[name])
    return fields


def _bytes(text: str) -> str:
    try:
        return base64.b64encode(text.encode("iso-8859-1")).decode()
    except UnicodeEncodeError:
        return text


def _envelope_of_event(event: dict) -> dict:
    """Return the envelope of a CloudEvent: operation and source from its attributes, the images from its data."""
    attributes = {name: _value(value)[0] for name, value in event.items() if name != "data"}
    if not isinstance(attributes.get(f"{EXTENSION}op"), str):
        raise CannotBeTurned(NO_OPERATION)
    data, is_avro = event.get("data"), attributes.get("datacontenttype") == "application/avro"
    if not isinstance(data, dict) or _branch(data) == "bytes":
        raise CannotBeTurned(BINARY_DATA)
    schema = data.get("schema") if row_of_connect(data) is not data else None
    images = row_of_connect(data)
    if isinstance(images, dict) and len(images) == 1 and _is_named(inside := next(iter(images.values())), images):
        images = inside
    operation, source = attributes[f"{EXTENSION}op"], {}
    for name, value in attributes.items():
        attribute = name.removeprefix(EXTENSION)
        if name.startswith(EXTENSION) and attribute != "op" and attribute not in OF_TRANSACTION:
            source[BY_ATTRIBUTE.get(attribute, attribute)] = value
    if not isinstance(images, dict) or not images.keys() & {*IMAGES}:  # flattened before it became an event
        images = {"before" if operation == "d" else "after": images}
    if isinstance(images.get("after") or images.get("before"), str):
        raise CannotBeTurned(DOCUMENT_AS_TEXT)
    envelope = {"before": images.get("before"), "after": images.get("after"), "source": source, "op": operation}
    if schema is None and (_is_in_unions(envelope) or (is_avro and _is_in_unions(envelope | {"avro": {"int": 0}}))):
        return _envelope_of_unions(envelope)
    return {"schema": schema, "payload": envelope} if isinstance(schema, dict) else envelope


def _operation_of(document: dict) -> str | None:
    """Return the operation that two images tell of a row; None: they are none."""
    before, after = document["before"], document["after"]
    if not all(image is None or isinstance(image, dict) for image in (before, after)) or before is after is None:
        return None
    return "c" if before is None else "d" if after is None else "u"


def _with_operation(document: dict) -> dict:
    envelope = document | {"op": _operation_of(document)}
    return _envelope_of_unions(envelope) if _is_in_unions(envelope) else envelope


def _prefix_of(document: dict) -> str | None:
    """Return what the metadata of a flattened row begin with, where it is not `__`; None: nothing tells it.

    An operation and a position under one prefix tell it, if no position stands under `__`.
    """
    if any(name in document for position in POSITIONS for name in (f"__{position}", f"__source_{position}")):
        return None
    for name, value in document.items():
        prefix, value = name.removesuffix("op"), value["string"] if _branch(value) == "string" else value
        if name.endswith("op") and isinstance(value, str) and value in OPERATIONS and not prefix[-1:].isalnum():
            fields = (f"{prefix}{position}" for position in POSITIONS)
            if prefix not in ("", "__") and any(
                field in document or f"{prefix}source_{field.removeprefix(prefix)}" in document for field in fields
            ):
                return prefix
    return None


def _with_usual_prefix(document: dict) -> dict:
    prefix, row = _prefix_of(document), {}
    for name, value in document.items():
        bare = name.removeprefix(prefix)
        is_metadata = name.startswith(prefix) and (bare in METADATA or bare.removeprefix("source_") in METADATA)
        row[f"__{bare}" if is_metadata else name] = value
    turn = _turn_of(row)
    return turn(row) if turn else row
