"""What a feed may declare of its records, and what is taken out of it for reading files."""

import io
import json
import random
import time

import pytest
from highwater.catalog.feeds import feed_of_settings
from highwater.formats import declared, documents
from highwater.formats.formats import DECLARED, ReadOptions
from highwater.formats.readers import read
from highwater.runtime.errors import UsageError

LSN = [{"lsn": "$.lsn"}]


def feed(**settings):
    return feed_of_settings("models/x.yml line 3: feed 'json_x'", "json_x", {"format": "json", **settings}, {})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (None, "change is None; it must say what records mean"),
        ({}, "order is None; it must be a list"),
        ({"order": []}, "order is []"),
        ({"order": ["place"]}, "takes 0 sections"),
        ({"order": [{"integer": "$.a"}] * 6}, "takes 6 sections"),
        ({"order": [{"digits": "$.a", "width": 80}, "place"]}, "takes 5 sections"),
        ({"order": ["kafka", {"digits": "$.a", "width": 50}]}, "takes 6 sections"),
        ({"order": [{"digits": "$.a"}]}, "width of digits is None"),
        ({"order": [{"text": "$.a", "width": True}]}, "width of text is True"),
        ({"order": [{"number": "$.a"}]}, "order has {'number': '$.a'}; it must be one of: {integer: $.name}"),
        ({"order": ["place", {"integer": "$.a"}]}, "order has 'place'"),
        ({"order": [{"integer": 7}]}, "integer is 7; it must be an expression"),
        ({"order": [{"integer": "$.a", "unit": "seconds"}]}, "integer has the unknown word 'unit'"),
        ({"order": [{"timestamp": "$.a", "unit": "days"}]}, "unit is 'days'; it must be one of: seconds"),
        ({"order": [{"hex": "$.a", "sections": 2, "separator": "--"}]}, "separator is '--'"),
        ({"order": LSN, "oder": 1}, "unknown word 'oder'"),
        ({"order": LSN, "operation": "$.op"}, "none of insert, update"),
        ({"order": LSN, "insert": ["I"]}, "insert is declared without operation"),
        ({"order": LSN, "operation": "$.op", "insert": "I"}, "insert is 'I'; it must be a list of names"),
        ({"order": LSN, "operation": "$.op", "insert": [True]}, "insert is [True]"),
        ({"order": LSN, "operation": "$.op", "insert": ["I"], "update": ["I"]}, "two operations have the value 'I'"),
        ({"order": LSN, "delete_when": True}, "delete_when is True; it must be an expression"),
        ({"order": LSN, "row": "data"}, "row is 'data'; it must be the path of a field"),
        ({"order": LSN, "row": {"of": "$.columns"}}, "it must be the path of an object"),
        ({"order": LSN, "before": {"names": "n", "values": "$.v"}}, "before: names is 'n'"),
        ({"order": LSN, "time": "$.ts"}, "time has '$.ts'; it must be one of: {timestamp: $.name}"),
        ({"order": LSN, "partial": "yes"}, "partial is 'yes'; it must be true or false"),
        ({"order": LSN, "ignore_null_updates": "name"}, "ignore_null_updates is 'name'; it must be a list of names"),
        ({"order": LSN, "binary": "bytes"}, "binary is 'bytes'; it must be base64"),
        ({"order": LSN, "schema": "$.s"}, "schema is declared without table"),
        ({"order": LSN, "each": "data"}, "each is 'data'"),
    ],
)
def test_what_is_declared_wrongly_is_refused_with_its_place_and_value(change, said):
    with pytest.raises(UsageError) as error:
        feed(change=change)
    assert said in str(error.value)
    assert str(error.value).startswith("models/x.yml line 3: feed 'json_x': change")


def test_what_is_declared_rightly_is_taken():
    change = {
        "order": [{"hex": "$.scn", "sections": 3, "separator": "."}, {"timestamp": "$.ts"}, "place"],
        "operation": "upper($.op)",
        "insert": ["I"],
        "__line__": 4,
    }
    assert feed(change=change).options.change == {name: value for name, value in change.items() if name != "__line__"}
    with pytest.raises(UsageError, match="does not say where a record names its table"):
        feed(change=change, layout="records")


def test_the_package_declares_what_its_formats_say():
    formats = declared.declared_formats()
    assert {name: [*each["orders"]] for name, each in formats.items()} == {
        name: [order for order in orders if order != "kafka"] for name, orders in DECLARED.items()
    }
    for name, each in formats.items():
        for order in DECLARED[name]:
            chosen = declared.with_order(each, order)
            assert declared.checked_change(name, chosen) == chosen


def test_paths_are_found_outside_of_texts():
    assert declared.paths_in("coalesce($.a.b, '$.c', $['d e'].f)") == [("a", "b"), ("d e", "f")]


def test_a_record_names_its_table():
    named = declared.named_in
    assert named({"table": "$.t", "schema": "$.s.d"}, {"t": "x", "s": {"d": "y"}}) == ("y", "x")
    assert named({"table": {"qualified": "$.t"}}, {"t": "A.B.C"}) == ("A.B", "C")
    assert named({"table": {"qualified": "$.t"}}, {"t": "C"}) == (None, "C")
    assert named({"table": "$.t"}, {"t": {"no": "name"}})[1] == {"no": "name"}
    assert named({"table": "$.t"}, [1]) == (None, None)


def records_of(text: str, change: dict) -> list[tuple]:
    options = ReadOptions("json", change=change)
    return [
        (row["source_line"], row["record"].decode(), dict(row["fields"] or ()), row["problem"])
        for batch in read(io.BytesIO(text.encode()), options)
        for row in batch.to_pylist()
    ]


def test_each_element_is_a_record_with_its_own_digits():
    change = {"order": [{"integer": "$.id"}], "row": "$.data", "each": ["data", "old"]}
    document = '{"id": 1, "data": [{"a": 1.50}, {"a": 12345678901234567890.10}],\n "old": [{"a": 1e3}]}\n'
    ddl, empty, inside = (
        '{"id":2,"data":null}\n',
        '{"id":3,"data":[]}\n',
        '{"offset":7,"value":{"id":4,"data":[{"a":"]"}]}}\n',
    )
    assert records_of(document + ddl + empty + inside, change) == [
        (1, '{"id":1,"data":{"a": 1.50},"old":{"a": 1e3}}', {"index": "0"}, None),
        (1, '{"id":1,"data":{"a": 12345678901234567890.10},"old":null}', {"index": "1"}, None),
        (3, '{"id":2,"data":null}', {"index": "0"}, None),
        (5, '{"id":4,"data":{"a":"]"}}', {"index": "0", "offset": "7"}, None),
    ]


def test_elements_are_cut_as_json_reads_them():
    dice = random.Random(7)

    def value(depth=0):
        kinds = [lambda: dice.choice([None, True, 7, -1.5, 'a,]}[{\\" é☃', ""])]
        if depth < 3:
            kinds.append(lambda: [value(depth + 1) for _ in range(dice.randrange(4))])
            kinds.append(lambda: {dice.choice(["a", "b,]", "é"]): value(depth + 1) for _ in range(dice.randrange(4))})
        return dice.choice(kinds)()

    for _ in range(300):
        array = [value() for _ in range(dice.randrange(5))]
        text = json.dumps(array, ensure_ascii=dice.random() < 0.5, indent=dice.choice([None, 1]))
        assert [json.loads(each) for each in documents.texts_in_array(text)] == array


def test_a_document_that_is_a_record_is_not_unwrapped():
    change = {"order": [{"integer": "$.n"}]}
    said = [
        fields.get("document")
        for _, _, fields, _ in records_of('{"n":1,"value":{"n":2}}\n{"offset":1,"value":{"n":3}}\n', change)
    ]
    assert said == [None, '{"n":3}']


def test_what_a_record_is_is_told_by_something():
    change = {"order": ["kafka"], "delete_when": "$.deleted = 'true'"}
    ((_, _, fields, _),) = records_of('{"offset":7,"topic":"t","value":{"id":1,"deleted":false}}\n', change)
    assert fields["document"] == '{"id":1,"deleted":false}'
    of_arrays = declared.with_order(declared.declared_formats()["wal2json-v1"], "lsn")
    row = {"offset": 1, "value": '{"change":[{"kind":"insert"},{"kind":"delete"}],"nextlsn":"0/1"}', "read_at": "x"}
    assert [dict(fields)["index"] for _, _, fields, _ in records_of(json.dumps(row) + "\n", of_arrays)] == ["0", "1"]


def test_a_document_that_is_too_deep_is_one_rejected_record():
    change = {"order": [{"integer": "$.id"}], "row": "$.data", "each": ["data"]}
    deep = f'{{"id":1,"data":[{"[" * 1010}{"]" * 1010}]}}\n'
    found = records_of(deep + '{"id":2,"data":[{"a":1}]}\n', change)
    assert [(line, bool(problem)) for line, _, _, problem in found] == [(1, True), (2, False)]
    assert found[0][3] == documents.TOO_DEEP


def test_many_fields_beside_an_array_are_cut_once():
    fields = {f"field_{number}": number for number in range(20_000)}
    text = json.dumps({**fields, "data": [{"a": 1}]})
    began = time.process_time()
    (found,) = documents.each_of(text, json.loads(text), ["data"])
    assert time.process_time() - began < 5
    assert json.loads(found) == {**fields, "data": {"a": 1}}


@pytest.mark.parametrize("order", [[{"integer": "$.n"}, "place"], ["kafka"]])
def test_rows_of_a_table_have_no_places(order):
    settings = {"format": "table", "relation": "bronze.x", "change": {"order": order}}
    if order[-1] != "place":
        assert feed(**settings).relation == "bronze.x"
        return
    with pytest.raises(UsageError, match="rows of a table have no places"):
        feed(**settings)
