"""What `rejected_changes` advises, done word by word: the record is taken in, and its row is right."""

from collections.abc import Callable
from pathlib import Path

import pytest
from highwater.upkeep.rebuild import rebuild_from_raw
from highwater.upkeep.replay import replay
from workshop import change

pytestmark = pytest.mark.soak

ADVICE, ORDERED, LEFT_OUT, EMPTIED = "datastream_advice", "datastream_told", "datastream_left", "debezium_advice"
UNAVAILABLE = "__debezium_unavailable_value"


def row(key, value, *, id="id", at="1", **more) -> dict:
    return change("INSERT", at, {id: key, "n": value}, **more)


def event(op: str, lsn: int, row: dict | None) -> dict:
    source = {"connector": "postgresql", "name": "s", "table": "t", "lsn": lsn, "ts_ms": 1_700_000_000_000}
    return {"op": op, "before": None, "after": row, "source": source | {"snapshot": "false"}, "ts_ms": lsn}


# table -> feed, column, what is delivered, the reason, what to do, the rows behind it
Case = tuple[str, str, list | bytes, str, Callable, list]
CASES: dict[str, Case] = {}


def case(table: str, feed: str, column: str, delivered, reason: str, rows: list):
    def of(follow):
        CASES[table] = (feed, column, delivered, reason, follow, rows)
        return follow

    return of


def edit(path: Path, old: str, new: str):
    text = path.read_text()
    assert old in text, (old, text)
    path.write_text(text.replace(old, new, 1))


def sources(workshop, feed: str) -> Path:
    return workshop.folder / f"models/staging/{feed}/_{feed}__sources.yml"


def line(key, value) -> bytes:
    import json

    return json.dumps(row(key, value), ensure_ascii=False).encode()


@case("latin", ADVICE, "n:string", line(1, "größe").decode().encode("latin-1"), "not_utf8", [(1, "größe")])
def deliver_in_utf8(workshop):
    workshop.deliver(f"{ADVICE}.latin", "again.json", line(1, "größe"))


@case("cut", ADVICE, "n:string", line(1, "whole")[:-9] + b"\n", "malformed_record", [(1, "whole")])
def deliver_whole(workshop):
    workshop.deliver(f"{ADVICE}.cut", "again.json", line(1, "whole"))


@case("timeless", ADVICE, "n:string", [row(1, "late", at="1") | {}], "unreadable_commit_time", [(1, "late")])
def deliver_with_a_time(workshop):
    workshop.deliver(f"{ADVICE}.timeless", "again.json", [row(1, "late")])


CASES["timeless"][2][0]["datastream_metadata"]["source_timestamp"] = "soon"


@case("narrow", ADVICE, "n:tinyint", [row(1, 300)], "value_does_not_fit", [(1, 300)])
def widen(workshop):
    edit(workshop.declaration("narrow"), "data_type: tinyint", "data_type: int")
    rebuild_from_raw(workshop.spark, "narrow")


@case("letters", ADVICE, "n:string", [row(1, "x", id="ID")], "null_key", [(1, "x")])
def name_the_field(workshop):
    edit(workshop.declaration("letters"), "{name: id, data_type: int}",
         "{name: id, data_type: int, config: {meta: {field: ID}}}")  # fmt: skip
    replay(workshop.spark, "letters")


@case("told", ORDERED, "n:string", [row(1, "x", at=None, sort_keys=[1700000000000, 7, "mysql-bin.000001", 4])],
      "unreadable_sequence", [(1, "x")])  # fmt: skip
def declare_the_order(workshop):
    edit(sources(workshop, ORDERED), "format: datastream-json",
         "format: datastream-json\n          order: mysql_sort_keys")  # fmt: skip
    replay(workshop.spark, "told")


@case("left_out", LEFT_OUT, "n:string", [row(1, "x")], "ignored", [(1, "x")])
def remove_the_entry(workshop):
    edit(sources(workshop, LEFT_OUT), "\n          epochs: [{when: 'true', ignore: true}]", "")
    replay(workshop.spark, "left_out")


@case("emptied", EMPTIED, "n:string", [event("c", 1, {"id": 1, "n": "x"}), event("t", 2, None)],
      "unknown_operation", [])  # fmt: skip
def declare_truncates(workshop):
    edit(workshop.declaration("emptied"), "key: [id]", "key: [id]\n        truncates: true")
    replay(workshop.spark, "emptied")


@case("partial", EMPTIED, "n:string,m:string",
      [event("c", 1, {"id": 1, "n": "x", "m": "y"}), event("u", 2, {"id": 1, "n": "z", "m": UNAVAILABLE})],
      "partial_image", [(1, "z", "y")])  # fmt: skip
def declare_partial_images(workshop):
    edit(workshop.declaration("partial"), "key: [id]", "key: [id]\n        partial_images: true")
    rebuild_from_raw(workshop.spark, "partial")


FEEDS = {ADVICE: None, ORDERED: None, LEFT_OUT: None, EMPTIED: {"connector": "postgresql"}}


@pytest.fixture(scope="module")
def followed(workshop):
    """What was said of each record, and the rows when its advice was followed."""
    for table, (feed, columns, delivered, *_) in CASES.items():
        form = "debezium-json" if feed == EMPTIED else "datastream-json"
        workshop.add_table(f"{feed}.{table}", "id:int", columns, form, FEEDS[feed])
        workshop.deliver(f"{feed}.{table}", "first.json", delivered)
    declaration = workshop.declaration("emptied")
    edit(declaration, "        # the feed tells when the table is truncated\n        truncates: true\n", "")
    edit(sources(workshop, LEFT_OUT), "format: datastream-json",
         "format: datastream-json\n          epochs: [{when: 'true', ignore: true}]")  # fmt: skip
    tables = [f"+{table}" for table in CASES]
    workshop.land(*FEEDS)
    workshop.build("rejection_reasons", "ledger", "rejected_changes", *tables, command="run")
    said = {row[0]: row[1:] for row in workshop.rows(
        "select table_name, rejection_reason, what_to_do from rejected_changes "
        f"where table_name in ({', '.join(map(repr, CASES))})"
    )}  # fmt: skip
    for *_, follow, _ in CASES.values():
        follow(workshop)
    workshop.land(*FEEDS)
    workshop.build(*tables, command="run")
    rows = {table: workshop.rows(f"select * from {table} order by 1") for table in CASES}
    return said, rows


# of each action the words that stand in the advice
WORDS = {
    "not_utf8": "in UTF-8",
    "malformed_record": "under another name",
    "unreadable_commit_time": "under another name",
    "value_does_not_fit": "highwater rebuild TABLE --from raw",
    "null_key": "highwater replay TABLE",
    "unreadable_sequence": "highwater replay TABLE",
    "ignored": "highwater replay TABLE",
    "unknown_operation": "truncates: true",
    "partial_image": "highwater rebuild TABLE --from raw",
}


@pytest.mark.parametrize("table", CASES)
def test_the_advice_of_a_reason_takes_its_record_in(followed, table):
    said, rows = followed
    *_, reason, _, expected = CASES[table]
    assert said[table][0] == reason and WORDS[reason] in said[table][1]
    assert rows[table] == expected
