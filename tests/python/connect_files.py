"""What Kafka Connect's sinks write of records of JsonConverter: Avro containers as AvroData makes them, and Parquet.

Nothing here shares code with the project.
"""

import base64
import io
import json
from decimal import Decimal

import fastavro
import pyarrow
import pyarrow.parquet

DATA = "org.apache.kafka.connect.data."
PRIMITIVES = {
    "int8": "int", "int16": "int", "int32": "int", "int64": "long", "float": "float", "double": "double",
    "boolean": "boolean", "string": "string", "bytes": "bytes",
}  # fmt: skip
LOGICAL = {f"{DATA}Decimal": "decimal", f"{DATA}Date": "date", f"{DATA}Time": "time-millis"}
LOGICAL |= {f"{DATA}Timestamp": "timestamp-millis"}


def schema_of_avro(schema: dict, known: set) -> object:
    """A schema of Connect as Avro has it; a struct that is known by its name is that name alone."""
    kind, name = schema["type"], schema.get("name")
    if kind == "struct":
        full = name or "ConnectDefault"
        found = full
        if full not in known:
            known.add(full)
            fields = [{"name": each["field"], "type": schema_of_avro(each, known)} for each in schema["fields"]]
            for each, field in zip(schema["fields"], fields, strict=True):
                field |= {"default": None} if each["optional"] and "default" not in each else {}
            space, _, own = full.rpartition(".")
            found = {"type": "record", "name": own, "fields": fields} | ({"namespace": space} if space else {})
            found |= {"connect.name": name} if name else {}
    elif kind == "array":
        found = {"type": "array", "items": schema_of_avro(schema["items"], known)}
    elif kind == "map":
        found = {"type": "map", "values": schema_of_avro(schema["values"], known)}
    else:
        found = {"type": PRIMITIVES[kind]}
        found |= {"connect.type": kind} if kind in ("int8", "int16") else {}
    if name and kind != "struct":
        found |= {"connect.version": schema.get("version", 1), "connect.name": name}
        found |= {"connect.parameters": schema["parameters"]} if "parameters" in schema else {}
        found |= {"logicalType": LOGICAL[name]} if name in LOGICAL else {}
        if name == f"{DATA}Decimal":
            found |= {"scale": int(schema["parameters"]["scale"]), "precision": 64}
    if isinstance(found, dict) and found.keys() == {"type"}:
        found = found["type"]
    if not schema["optional"]:
        return found
    return [found, "null"] if "default" in schema else ["null", found]


def value_of_avro(value, schema: dict):
    """A value of JsonConverter as it was in Connect."""
    kind = schema["type"]
    if value is None:
        return None
    if kind == "struct":
        return {each["field"]: value_of_avro(value[each["field"]], each) for each in schema["fields"]}
    if kind == "array":
        return [value_of_avro(each, schema["items"]) for each in value]
    if kind == "map":
        return {key: value_of_avro(each, schema["values"]) for key, each in value.items()}
    return base64.b64decode(value) if kind == "bytes" else float(value) if kind in ("float", "double") else value


def avro_file(schema: dict, payloads: list, codec: str = "deflate") -> bytes:
    """A container of records of one schema."""
    file = io.BytesIO()
    parsed = fastavro.parse_schema(schema_of_avro(schema, set()))
    fastavro.writer(file, parsed, [value_of_avro(each, schema) for each in payloads], codec=codec)
    return file.getvalue()


ARROW = {
    "int8": pyarrow.int32(), "int16": pyarrow.int32(), "int32": pyarrow.int32(), "int64": pyarrow.int64(),
    "float": pyarrow.float32(), "double": pyarrow.float64(), "boolean": pyarrow.bool_(), "string": pyarrow.string(),
    "bytes": pyarrow.binary(),
}  # fmt: skip
ARROW_LOGICAL = {"date": pyarrow.date32(), "time-millis": pyarrow.time32("ms")}
ARROW_LOGICAL |= {"timestamp-millis": pyarrow.timestamp("ms", tz="UTC")}


def arrow_type(schema: dict) -> pyarrow.DataType:
    kind, logical = schema["type"], LOGICAL.get(schema.get("name"))
    if kind == "struct":
        return pyarrow.struct([(each["field"], arrow_type(each)) for each in schema["fields"]])
    if kind == "array":
        return pyarrow.list_(pyarrow.field("array", arrow_type(schema["items"])))
    if kind == "map":
        return pyarrow.map_(pyarrow.string(), arrow_type(schema["values"]))
    if logical == "decimal":
        return pyarrow.decimal256(76, int(schema["parameters"]["scale"]))
    return ARROW_LOGICAL.get(logical, ARROW[kind])


def arrow_value(value, schema: dict):
    kind = schema["type"]
    if value is None:
        return None
    if kind == "struct":
        return {each["field"]: arrow_value(value[each["field"]], each) for each in schema["fields"]}
    if kind == "array":
        return [arrow_value(each, schema["items"]) for each in value]
    if kind == "map":
        return [(key, arrow_value(each, schema["values"])) for key, each in value.items()]
    if LOGICAL.get(schema.get("name")) == "decimal":
        whole = int.from_bytes(base64.b64decode(value), "big", signed=True)
        digits = tuple(map(int, str(abs(whole))))
        return Decimal((int(whole < 0), digits, -int(schema["parameters"]["scale"])))
    return value_of_avro(value, schema)


def parquet_file(schema: dict, payloads: list, with_avro_schema: bool = True) -> bytes:
    """Rows of one schema, with or without the schema that Avro's writer of Parquet leaves in the file."""
    kind = arrow_type(schema)
    rows = pyarrow.array([arrow_value(each, schema) for each in payloads], kind)
    table = pyarrow.Table.from_struct_array(rows)
    if with_avro_schema:
        text = json.dumps(schema_of_avro(schema, set()))
        table = table.replace_schema_metadata({"parquet.avro.schema": text, "writer.model.name": "avro"})
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    return file.getvalue()


def struct_of_connect(**fields) -> dict:
    """A schema of a row, or of a row in a row: types of its fields by name, or (type, name of Connect, parameters)."""

    def of(kind) -> dict:
        if isinstance(kind, dict):
            return {**kind, "optional": True}
        kind, name, parameters = kind if isinstance(kind, tuple) else (kind, None, None)
        named = {"name": name, "version": 1} if name else {}
        return {"type": kind, "optional": True, **named} | ({"parameters": parameters} if parameters else {})

    name = "shop." + "_".join(fields)
    return {
        "type": "struct",
        "optional": False,
        "name": name,
        "fields": [{**of(kind), "field": field} for field, kind in fields.items()],
    }


def by_schema(lines: bytes) -> list[tuple[dict, list]]:
    """The records of JsonConverter by their schemas, in the order in which these come."""
    found: dict[str, tuple[dict, list]] = {}
    for line in lines.splitlines():
        document = json.loads(line)
        if document:
            schema = document["schema"]
            found.setdefault(json.dumps(schema), (schema, []))[1].append(document["payload"])
    return [*found.values()]
