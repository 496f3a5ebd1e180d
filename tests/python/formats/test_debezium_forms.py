"""Debezium's records in other forms than the plain one are turned into it by their own form; plain ones never are."""

import gzip
import io
import json

import pytest
from highwater.formats import debezium
from highwater.formats.formats import ReadOptions
from highwater.formats.readers import read
from highwater.formats.records import CountedStream
from repository import FIXTURES

OPTIONS = ReadOptions("debezium-json", table_in_records=True)
SOURCE = {"version": "1.9", "connector": "postgresql", "name": "shop", "ts_ms": 5, "schema": "public", "table": "t"}


def recorded(form: str) -> list[str]:
    return gzip.decompress((FIXTURES / f"debezium/{form}.jsonl.gz").read_bytes()).decode().splitlines()


def records(*lines, options=OPTIONS) -> list[dict]:
    """What a reader makes of lines, each as it stands or of a value."""
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    batches = read(CountedStream(io.BytesIO(text.encode())), options)
    return [row for batch in batches for row in batch.to_pylist()]


def document(line) -> dict | None:
    """What a reader hands to staging where it is not the record itself."""
    (record,) = records(line)
    assert record["problem"] is None, record["problem"]
    told = dict(record["fields"] or ()).get("document")
    return None if told is None else json.loads(told)


def problem(line) -> str:
    (record,) = records(line)
    return record["problem"]


def envelope(**further) -> dict:
    return {"before": None, "after": None, "source": SOURCE, "op": "c", "ts_ms": 7} | further


def in_avro(row: dict, **further) -> dict:
    return envelope(after={"shop.public.t.Value": row}, ts_ms={"long": 7}, **further)


def payload(line) -> dict:
    return document(line)["payload"]


def rows_of(lines) -> list:
    """Images, operation and position of records, whatever their form."""
    found = []
    for line in lines:
        said = document(line) or json.loads(line)
        said = said.get("payload", said)
        position = [str(said["source"].get(name)) for name in ("lsn", "table", "snapshot")]
        found.append((said["before"], said["after"], said["op"], *position))
    return found


@pytest.mark.parametrize("form", ["avro_json", "cloud_events", "cloud_events_with_schema"])
def test_what_converters_write_says_the_same_as_the_plain_record(form):
    tables = ("every_type", "orders", "loose_keys")
    plain = [
        line
        for line in recorded("with_schema")
        if (json.loads(line)["payload"].get("source") or {}).get("table") in tables
    ]
    assert len(plain) == len(recorded(form)) == 50
    assert rows_of(recorded(form)) == rows_of(plain)
    assert [each["source_table"] for each in records(*recorded(form))] == [
        each["source_table"] for each in records(*plain)
    ]


def test_the_bytes_of_a_record_stay_as_they_came():
    (line, *_) = recorded("avro_json")
    assert records(line)[0]["record"] == line.encode()


# a value in Avro's JSON encoding, what is in the document, and which type is told of it
VALUES = [
    ({"int": 5}, 5, "int32"),
    ({"long": 9007199254740993}, 9007199254740993, "int64"),
    ({"boolean": False}, False, "boolean"),
    ({"double": 0.1}, 0.1, "float64"),
    ({"double": "NaN"}, "NaN", "float64"),
    ({"string": "x"}, "x", "string"),
    ({"string": '{"string": "x"}'}, '{"string": "x"}', "string"),
    ({"bytes": "\u0000\u00ff+"}, "AP8r", "bytes"),
    ({"array": [{"int": 1}, None]}, [1, None], None),
    ({"array": []}, [], None),
    ({"map": {"a": {"string": "1"}, "b": None}}, {"a": "1", "b": None}, None),
    ({"io.debezium.data.VariableScaleDecimal": {"scale": 2, "value": "\u0001:"}}, {"scale": 2, "value": "ATo="}, None),
    ({"scale": 2, "value": "\u0001:"}, {"scale": 2, "value": "ATo="}, None),
    ({"io.debezium.data.geometry.Point": {"x": 1.5, "y": 2.0, "wkb": {"bytes": "\u0001"}, "srid": None}},
     {"x": 1.5, "y": 2.0, "wkb": "AQ==", "srid": None}, None),
    # not under a type: the column may not be NULL, and a text may be bytes
    ("plain", "plain", "text or bytes"),
    (5, 5, None),
    (None, None, None),
    # a map that is called like a type, and holds what that type does not
    ({"string": {"string": "x"}}, {"string": "x"}, None),
    ({"int": {"string": "x"}}, {"int": "x"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("written", "value", "kind"), VALUES, ids=[json.dumps(each[0])[:40] for each in VALUES])
def test_a_value_comes_out_of_its_union(written, value, kind):
    said = document(in_avro({"id": 1, "v": written}))
    assert said["payload"]["after"] == {"id": 1, "v": value}
    (row,) = said["schema"]["fields"]
    assert {each["field"]: each["type"] for each in row["fields"]} == ({"v": kind} if kind else {})


def test_numbers_keep_their_digits():
    line = json.dumps(in_avro({"id": 1, "v": {"double": 0}})).replace(
        '"double": 0', '"double": 1.000000000000000000017'
    )
    assert '"v":1.000000000000000000017' in dict(records(line)[0]["fields"])["document"]


# plain records whose columns look like something else
PLAIN = {
    "a column that looks like a union": envelope(after={"id": 1, "doc": {"string": "x"}}),
    "one column that looks like a union": envelope(after={"doc": {"string": "x"}}),
    "one column of an object": envelope(after={"doc": {"a.Value": 1}}),
    "one column that is called like Avro's row": envelope(after={"shop.public.t.Value": {"f1": 1}}),
    "one column called row": envelope(after={"row": {"f1": 1}}, ts_ms=None),
    "columns of a CloudEvent": envelope(
        after={"id": "1", "source": "s", "specversion": "1.0", "type": "t", "data": {}, "iodebeziumop": "d"}
    ),
    "flattened, with columns of a CloudEvent": {
        "id": "1", "source": "s", "specversion": "1.0", "type": "t", "data": {}, "__op": "c", "__lsn": 5,
    },
    "flattened, with an object": {"id": 1, "doc": {"string": "x"}, "__op": "c", "__lsn": 5},
    "flattened, with other metadata of its own": {"id": 1, "my_op": "d", "my_lsn": 3, "__op": "c", "__lsn": 5},
    "flattened, told by __deleted": {"id": 1, "my_op": "d", "my_lsn": 3, "__deleted": "false", "__lsn": 5},
    "a truncate": envelope(op="t"),
    "with its schema": {"schema": {"type": "struct"}, "payload": envelope(after={"doc": {"string": "x"}})},
}  # fmt: skip


@pytest.mark.parametrize("case", PLAIN)
def test_a_plain_record_is_never_turned(case):
    assert document(PLAIN[case]) is None


@pytest.mark.parametrize("case", PLAIN)
def test_a_plain_record_in_an_envelope_is_never_turned(case):
    assert document({"key": {"id": 1}, "value": PLAIN[case], "offset": 5}) == PLAIN[case]


def test_the_envelope_tells_avro():
    row = {"shop.public.t.Value": {"id": 1}}
    # by any union beside the images, or by the name of the row where nothing else could
    for further in ({"ts_ms": {"long": 7}}, {"source": SOURCE | {"lsn": {"long": 5}}}, {"ts_ms": None}):
        assert payload(envelope(after=row) | further)["after"] == {"id": 1}
    assert payload(envelope(op="t", ts_ms={"long": 7}))["op"] == "t"
    assert payload({"shop.public.t.Envelope": in_avro({"id": 1})})["after"] == {"id": 1}
    source = {"io.debezium.connector.postgresql.Source": SOURCE | {"lsn": {"long": 5}}}
    assert payload(in_avro({"id": 1}) | {"source": source})["source"]["lsn"] == 5


def test_an_image_before_tells_types_too():
    row = {"id": {"int": 1}, "v": {"bytes": "\u0001"}}
    said = document(in_avro({"id": {"int": 1}, "v": None}, before={"shop.public.t.Value": row}, op="u"))
    assert {"field": "v", "type": "bytes"} in said["schema"]["fields"][0]["fields"]


def test_flattened_rows_of_avro():
    row = {"id": 1, "v": {"string": "x"}, "__op": "u", "__lsn": {"long": 5}, "__deleted": {"string": "false"}}
    said = document(row)
    assert said["payload"] == {"id": 1, "v": "x", "__op": "u", "__lsn": 5, "__deleted": "false"}
    assert {"field": "v", "type": "string"} in said["schema"]["fields"]


EVENT = {
    "id": "name:shop;lsn:5", "source": "/debezium/postgresql/shop", "specversion": "1.0",
    "type": "io.debezium.connector.postgresql.DataChangeEvent", "datacontenttype": "application/json",
    "iodebeziumop": "u", "iodebeziumconnector": "mysql", "iodebeziumtsms": "7", "iodebeziumserverid": "3",
    "iodebeziumtable": "t", "iodebeziumtxId": "571", "iodebeziumtxid": "571:5", "iodebeziumtxtotalorder": "1",
    "data": {"before": None, "after": {"id": 1}},
}  # fmt: skip


def test_a_cloud_event():
    said = document(EVENT)
    assert said["source"] == {"connector": "mysql", "ts_ms": "7", "server_id": "3", "table": "t", "txId": "571"}
    assert (said["op"], said["before"], said["after"]) == ("u", None, {"id": 1})
    assert records(EVENT)[0]["source_table"] == "t"
    # every name of a field comes back from the attribute that is made of it
    assert len(debezium.BY_ATTRIBUTE) == len(debezium.METADATA)


def test_a_cloud_event_of_a_row_alone():
    """`metadata.source: header`, of rows that were flattened before."""
    assert document(EVENT | {"data": {"id": 1, "v": "a"}})["after"] == {"id": 1, "v": "a"}
    assert document(EVENT | {"data": {"id": 1}, "iodebeziumop": "d"})["before"] == {"id": 1}


def test_a_cloud_event_of_avro_as_json():
    data = {"before": None, "after": {"shop.public.t.Value": {"id": {"int": 1}}}}
    attributes = {"datacontenttype": "application/avro", "iodebeziumserverid": {"string": "3"}}
    for images in (data, {"shop.public.t.Data": data}):
        said = payload(EVENT | attributes | {"data": images})
        assert (said["after"], said["source"]["server_id"]) == ({"id": 1}, "3")


def test_what_a_cloud_event_lacks_is_said():
    for line in recorded("cloud_events_of_avro"):
        assert problem(line) == debezium.BINARY_DATA
    assert problem(EVENT | {"data": {"bytes": "\u0000"}}) == debezium.BINARY_DATA
    assert problem({name: value for name, value in EVENT.items() if name != "iodebeziumop"}) == debezium.NO_OPERATION
    mongo = EVENT | {"data": {"before": None, "after": '{"_id": 1}'}}
    assert problem(mongo) == problem(envelope(after='{"_id": 1}')) == debezium.DOCUMENT_AS_TEXT
    assert problem({"schema": {}, "payload": envelope(after='{"_id": 1}')}) == debezium.DOCUMENT_AS_TEXT


def test_images_tell_the_operation():
    one, two = {"id": 1, "v": "a"}, {"id": 1, "v": "b"}
    assert document({"before": None, "after": one})["op"] == "c"
    assert document({"before": one, "after": two, "transaction": {"id": "5"}})["op"] == "u"
    assert document({"before": one, "after": None})["op"] == "d"
    assert payload({"before": None, "after": {"row": {"id": {"long": 1}}}})["after"] == {"id": 1}
    # a flattened row of two columns that are called so
    assert document({"before": one, "after": two, "__op": "c", "__lsn": 5}) is None


PREFIXED = [
    ("_dbz_", {"op": "c", "lsn": 100}),
    ("dbz.", {"op": "u", "source_lsn": 100, "source_ts_ms": 7}),
    ("$", {"op": "d", "file": "log.000001", "pos": 4}),
]


@pytest.mark.parametrize(("prefix", "metadata"), PREFIXED)
def test_another_prefix_is_found(prefix, metadata):
    row = {"id": 1, "amt": 5, f"{prefix}note": "of the table"}
    told = {f"{prefix}{name}": value for name, value in metadata.items()}
    found = document(row | told | {"__deleted": "false"})
    assert found == row | {f"__{name}": value for name, value in metadata.items()} | {"__deleted": "false"}
    with_schema = document({"schema": {"type": "struct"}, "payload": row | told})
    assert with_schema["payload"]["__op"] == metadata["op"]


def test_another_prefix_in_avro():
    row = {"id": 1, "v": {"string": "x"}, "_dbz_op": {"string": "u"}, "_dbz_lsn": {"long": 5}}
    assert payload(row) == {"id": 1, "v": "x", "__op": "u", "__lsn": 5}
    with_schema = {"schema": {"type": "struct"}, "payload": {"payload": "x", "_dbz_op": "u", "_dbz_lsn": 5}}
    assert document(with_schema) == with_schema | {"payload": {"payload": "x", "__op": "u", "__lsn": 5}}


# what looks like metadata, and may be a column
NO_PREFIX = [
    {"id": 1, "shop": "c", "shlsn": 5},
    {"id": 1, "my_op": "c", "amt": 5},
    {"id": 1, "my_op": "crate", "my_lsn": 5},
    {"id": 1, "op": "c", "lsn": 5},
]


@pytest.mark.parametrize("row", NO_PREFIX)
def test_no_prefix_is_made_of_columns(row):
    assert document(row) is None
    assert document(row | {"__deleted": "false"}) is None


def test_deep_values_are_said():
    deep = json.dumps(in_avro({"id": 1, "v": "x"})).replace('"x"', "[" * 900 + "]" * 900)
    assert "nested" in problem(deep)
