"""Debezium's records in Avro and Parquet become the documents that JsonConverter writes of them."""

import gzip
import io
import json
import math
from datetime import date, datetime
from decimal import Decimal

import fastavro
import pyarrow
import pyarrow.parquet
import pytest
from connect_files import DATA, avro_file, by_schema, parquet_file
from debezium_shop import FIXTURES
from highwater.formats import readers, records
from highwater.formats.formats import ReadOptions

FORMS = {"debezium-avro": avro_file, "debezium-parquet": parquet_file}


def read(content: bytes, format: str, **options) -> list[dict]:
    options = ReadOptions(format=format, table_in_records=True, **options)
    opened = io.BytesIO(content)
    if not readers.needs_random_access(options):
        opened = records.CountedStream(opened)
    return [row for batch in readers.read(opened, options) for row in batch.to_pylist()]


def image_types(schema: dict) -> dict:
    """What staging reads of a schema: type, name and scale of the columns of a row."""
    row = next((each for each in schema["fields"] if each["field"] == "after"), schema)
    return {
        each["field"]: (each["type"], each.get("name"), (each.get("parameters") or {}).get("scale"))
        for each in row["fields"]
    }


@pytest.mark.parametrize("fixture", ["with_schema", "flattened_with_schema"])
@pytest.mark.parametrize("format", FORMS)
def test_a_recorded_run_says_the_same_in_each_kind_of_file(format, fixture):
    groups = by_schema(gzip.decompress((FIXTURES / f"{fixture}.jsonl.gz").read_bytes()))
    for schema, payloads in groups:
        found = read(FORMS[format](schema, payloads), format)
        documents = [json.loads(row["record"]) for row in found]
        assert [document["payload"] for document in documents] == payloads
        assert [row["problem"] for row in found] == [None] * len(payloads)
        assert [row["source_line"] for row in found] == [*range(1, len(payloads) + 1)]
        for document in documents:
            assert image_types(document["schema"]) == image_types(schema)
        # each file is read by itself, so the names of its tables are bare
        named = [payload.get("source", {}).get("table") or payload.get("__table") for payload in payloads]
        assert [row["source_table"] for row in found] == [name and name.lower() for name in named]


def avro(schema, *values) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), values)
    return file.getvalue()


def record(name: str, **fields) -> dict:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields.items()]}


def documents(content: bytes, format: str, **options) -> list[dict]:
    return [json.loads(row["record"]) for row in read(content, format, **options)]


SOURCE = record("Source", connector="string", db="string", table="string")
FROM = {"connector": "mysql", "db": "shop", "table": "Every"}
ENTRY = record("Entry", key="int", value=["null", "string"])
INSIDE = record("Inside", again=["null", "Inside"])  # holds itself
# of each column: its type in Avro, a value, what JSON has of it, what Connect's schema says: type, name, scale
VALUES = {
    "entries": (
        {"type": "array", "items": ENTRY | {"connect.internal.type": "MapEntry"}},
        [{"key": 1, "value": None}], [[1, None]], ("array", None, None),
    ),
    "either": (["null", "string", "long"], 2**62, 2**62, ("string", None, None)),
    "small": ({"type": "int", "connect.type": "int8"}, -1, -1, ("int8", None, None)),
    "single": ("float", 0.1, 0.1, ("float", None, None)),
    "none": ("double", -math.inf, "-Infinity", ("double", None, None)),
    "nanos": (
        {"type": "long", "logicalType": "timestamp-nanos"}, 1, 1, ("int64", "io.debezium.time.NanoTimestamp", None),
    ),
    "local": (
        {"type": "long", "logicalType": "local-timestamp-micros"}, -1, -1,
        ("int64", "io.debezium.time.MicroTimestamp", None),
    ),
    "fixed": (
        {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4, "scale": 3},
        b"\xff\x01", "/wE=", ("bytes", f"{DATA}Decimal", "3"),
    ),
    "word": ({"type": "enum", "name": "Word", "symbols": ["A", "B"]}, "B", "B", ("string", None, None)),
    "id": (
        {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, bytes(15) + b"\x07",
        "00000000-0000-0000-0000-000000000007", ("string", None, None),
    ),
    "inside": (["null", INSIDE], {"again": {"again": None}}, {"again": {"again": None}}, ("struct", None, None)),
}  # fmt: skip


def test_values_that_the_recorded_runs_have_not():
    row = record("Row", **{name: kind for name, (kind, *_) in VALUES.items()})
    schema = record("Envelope", before=["null", row], after=["null", "Row"], source=SOURCE, op="string")
    image = {name: value for name, (_, value, *_) in VALUES.items()}
    content = avro(schema, {"before": None, "after": image, "source": FROM, "op": "c"})
    (document,) = documents(content, "debezium-avro")
    assert document["payload"]["after"] == {name: told for name, (_, _, told, _) in VALUES.items()}
    assert image_types(document["schema"]) == {name: said for name, (*_, said) in VALUES.items()}


def parquet(**columns) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


def test_parquet_without_the_schema_of_avro_says_it_by_its_types():
    at, day = datetime(1969, 12, 31, 23, 59, 59, 999999), date(1, 1, 1)
    kinds = {
        "price": (pyarrow.decimal128(9, 3), Decimal("-0.255"), "/wE=", ("bytes", f"{DATA}Decimal", "3")),
        "at": (pyarrow.timestamp("us"), at, -1, ("int64", "io.debezium.time.MicroTimestamp", None)),
        "nanos": (pyarrow.timestamp("ns"), 7, 7, ("int64", "io.debezium.time.NanoTimestamp", None)),
        "millis": (pyarrow.timestamp("ms", "UTC"), 7, 7, ("int64", f"{DATA}Timestamp", None)),
        "day": (pyarrow.date32(), day, -719162, ("int32", f"{DATA}Date", None)),
        "time": (pyarrow.time64("us"), 5, 5, ("int64", "io.debezium.time.MicroTime", None)),
        "single": (pyarrow.float32(), 0.1, 0.1, ("float", None, None)),
        "none": (pyarrow.float64(), math.nan, "NaN", ("double", None, None)),
        "raw": (pyarrow.binary(), b"\x00", "AA==", ("bytes", None, None)),
        "tags": (pyarrow.list_(pyarrow.string()), ["a", None], ["a", None], ("array", None, None)),
        "map": (pyarrow.map_(pyarrow.string(), pyarrow.int32()), [("k", 1)], {"k": 1}, ("map", None, None)),
    }  # fmt: skip
    kind = pyarrow.struct([(name, kind) for name, (kind, *_) in kinds.items()])
    image = {name: value for name, (_, value, *_) in kinds.items()}
    columns = {
        "op": ["c", "d"],
        "before": pyarrow.array([None, image], kind),
        "after": pyarrow.array([image, None], kind),
    }
    found = documents(parquet(**columns), "debezium-parquet")
    told = {name: said for name, (_, _, said, _) in kinds.items()}
    assert [document["payload"] for document in found] == [
        {"op": "c", "before": None, "after": told},
        {"op": "d", "before": told, "after": None},
    ]
    assert image_types(found[0]["schema"]) == {name: said for name, (*_, said) in kinds.items()}


def test_enumerated_words_of_parquet_are_words():
    content = parquet(op=["c"], after=pyarrow.array([{"word": "sunny"}]))
    # Parquet's ENUM in the place of its STRING, which pyarrow cannot write: LogicalType 4 for 1, ConvertedType 4 for 0
    as_enum = content.replace(b"\x25\x00\x4c\x1c\x00\x00", b"\x25\x08\x4c\x4c\x00\x00")
    kinds = pyarrow.parquet.ParquetFile(io.BytesIO(as_enum)).schema
    assert {kinds.column(place).logical_type.type for place in range(2)} == {"ENUM"}
    assert documents(as_enum, "debezium-parquet") == documents(content, "debezium-parquet")


ROW = record("Row", id="int", note=["null", "string"])
ENVELOPE = record("Envelope", before=["null", ROW], after=["null", "Row"], source=SOURCE, op="string")


def change(number: int, note="x") -> dict:
    return {"before": None, "after": {"id": number, "note": note}, "source": FROM, "op": "c"}


def test_what_a_sink_has_put_around_a_record_is_taken_off():
    around = record("Around", key=["null", "string"], offset="long", value=["null", ENVELOPE])
    values = [
        {"key": "k", "offset": number, "value": value} for number, value in enumerate([change(1), None, change(3)])
    ]
    found = read(avro(around, *values), "debezium-avro")
    assert [(row["source_line"], row["source_table"]) for row in found] == [(1, "every"), (3, "every")]
    assert [json.loads(row["record"])["payload"] for row in found] == [change(1), change(3)]
    other = record("Other", RECORD_CONTENT=["null", ENVELOPE], more="int")
    (document,) = documents(
        avro(other, {"RECORD_CONTENT": change(1), "more": 1}), "debezium-avro", wrapping="RECORD_CONTENT"
    )
    assert document["payload"] == change(1)
    # a row that happens to have such a field
    row = record("Row", value=["null", record("V", a="int")], __op="string")
    (document,) = documents(avro(row, {"value": {"a": 1}, "__op": "c"}), "debezium-avro")
    assert document["payload"] == {"value": {"a": 1}, "__op": "c"}


def test_a_text_that_is_none_is_named():
    content = avro(ENVELOPE, change(1, "bbbb"), change(2))
    first, second = read(content.replace(b"bbbb", b"bb\xe9b"), "debezium-avro")
    assert first["problem"] == "not_utf8: field 'after.note': 0x6262e962 is no text in UTF-8"
    assert json.loads(first["record"])["payload"]["after"]["id"] == 1 and second["problem"] is None
    content = parquet(op=["c", "c"], after=pyarrow.array([{"id": 1, "note": "bbbb"}, {"id": 2, "note": "x"}]))
    first, second = read(content.replace(b"bbbb", b"bb\xe9b"), "debezium-parquet")
    assert (
        first["problem"] == "not_utf8: field 'after.note': 0x6262e962 is no text in UTF-8" and second["problem"] is None
    )


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_file_that_is_not_whole_is_none(codec):
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(ENVELOPE), map(change, range(20)), codec=codec)
    content = file.getvalue()
    assert len(read(content, "debezium-avro")) == 20
    for size in {0, 3, 30, len(content) - 1, len(content) // 2}:
        with pytest.raises(records.UnreadableFile):
            read(content[:size], "debezium-avro")
    with pytest.raises(records.UnreadableFile, match="its values are no records"):
        read(avro("string", "x"), "debezium-avro")
    whole = parquet(op=["c"], after=pyarrow.array([{"id": 1}]))
    for size in (0, 3, len(whole) - 1, len(whole) // 2):
        with pytest.raises(records.UnreadableFile):
            read(whole[:size], "debezium-parquet")


def test_many_records_pass_in_batches_of_bounded_size():
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(ENVELOPE), (change(number, "y" * 999) for number in range(5000)))
    opened = records.CountedStream(io.BytesIO(file.getvalue()))
    sizes = [batch.num_rows for batch in readers.read(opened, ReadOptions(format="debezium-avro"))]
    assert sum(sizes) == 5000 and max(sizes) <= 1100
