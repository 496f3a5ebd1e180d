"""What `rejection_reasons` advises, done word by word: the record is taken in, and its row is right.

One landing and one build carry all rejected records, and one more of each all that was delivered again; commands are
typed as the advice has them.
"""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner
from highwater import cli
from highwater.upkeep.evolution import meet
from workshop import change

POSTGRES, MYSQL = {"connector": "postgresql"}, {"connector": "mysql"}
UNAVAILABLE = "__debezium_unavailable_value"
REPLAY, REBUILD = "highwater replay TABLE", "highwater rebuild TABLE --from raw"
# feed -> format, settings, and of its declaration words and what takes their place
FEEDS = {
    "datastream_advice": ("datastream-json", None, ()),
    "datastream_told": ("datastream-json", None, ()),
    "datastream_left": ("datastream-json", None, ("json", "json\n          epochs: [{when: 'true', ignore: true}]")),
    "debezium_advice": ("debezium-json", POSTGRES, ()),
    "debezium_formless": ("debezium-json", POSTGRES, ()),
    "debezium_offsets": ("debezium-json", POSTGRES, ()),
    "debezium_failed": ("debezium-json", MYSQL, ("json", "json\n          epochs: [{source: '101'}]")),
    "dms_advice": ("dms-csv", None, ()),
}


@dataclass(frozen=True)
class Trial:
    """A record that is rejected, and what is done about it.

    Attributes:
        columns: of the table, beside its key `id:int`. file: with the record. reason: of the rejection. advised: words
            of the advice, a command with names for others in capitals. rows: at the end. edits: of the project, before
            the command. again: the file that is delivered. values: of names in capitals. detail: words of the detail.
        schema: of the folder, where the table has shards.
    """

    feed: str
    columns: str
    file: tuple[str, list | bytes]
    reason: str
    advised: str
    rows: list
    edits: list[tuple[Callable, str, str]] = field(default_factory=list)
    again: tuple[str, list | bytes] | None = None
    values: dict = field(default_factory=dict)
    detail: str = ""
    schema: str = ""

    def folder(self, table: str) -> str:
        return ".".join(filter(None, (self.feed, self.schema, table)))


def declaration(workshop, feed: str, table: str) -> Path:
    return workshop.declaration(table)


def sources(workshop, feed: str, table: str = "") -> Path:
    return workshop.folder / f"models/staging/{feed}/_{feed}__sources.yml"


def edit(path: Path, old: str, new: str):
    text = path.read_text()
    assert old in text, (old, text)
    path.write_text(text.replace(old, new, 1))


def row(key, value, *, id="id", at="1", **more) -> dict:
    return change("INSERT", at, {id: key, "n": value}, **more)


def line(key, value) -> bytes:
    return json.dumps(row(key, value), ensure_ascii=False).encode()


def timeless() -> dict:
    record = row(1, "late")
    record["datastream_metadata"]["source_timestamp"] = "soon"
    return record


def event(op: str, lsn: int | None, after: dict | None, **source) -> dict:
    source = {"connector": "postgresql", "name": "s", "table": "t", "lsn": lsn, "ts_ms": 1_700_000_000_000} | source
    return {"op": op, "before": None, "after": after, "source": source | {"snapshot": "false"}, "ts_ms": 1}


def of_server(server: int, key: int, pos: int, n="x") -> dict:
    place = {"server_id": server, "file": "binlog.000001", "pos": pos, "row": 0}
    return event("c", None, {"id": key, "n": n}, connector="mysql", **place)


TOLD = ["1700000000000", "mysql-bin.000001", "4"]
TRIALS = {
    "latin": Trial(
        "datastream_advice", "n:string", ("first.json", line(1, "größe").decode().encode("latin-1")),
        "not_utf8", "in UTF-8 in a file under another name", [(1, "größe")], again=("again.json", line(1, "größe")),
    ),
    "cut": Trial(
        "datastream_advice", "n:string", ("first.json", line(1, "whole")[:-9] + b"\n"),
        "malformed_record", "whole in a file under another name", [(1, "whole")],
        again=("again.json", line(1, "whole")),
    ),
    "timeless": Trial(
        "datastream_advice", "n:string", ("first.json", [timeless()]),
        "unreadable_commit_time", "with its time in a file under another name", [(1, "late")],
        again=("again.json", [row(1, "late")]),
    ),
    "narrow": Trial(
        "datastream_advice", "n:tinyint", ("first.json", [row(1, 300)]),
        "value_does_not_fit", "highwater alter TABLE type COLUMN TYPE", [(1, 300)],
        values={"COLUMN": "n", "TYPE": "int"},
    ),
    "burdens": Trial(
        "datastream_advice", "n:int", ("first.json", [row(1, "heavy")]),
        "value_does_not_fit", "the right one in a file under another name", [(1, 5)],
        again=("again.json", [row(1, 5)]),
    ),
    "unsigned": Trial(
        "debezium_failed", "n:decimal(20,0)", ("first.json", [of_server(101, 1, 9000, n=-2)]),
        "value_does_not_fit", "highwater alter TABLE unit COLUMN UNIT", [(1, 2**64 - 2)],
        values={"COLUMN": "n", "UNIT": "unsigned"}, detail="declare the unit unsigned",
    ),
    "unscaled": Trial(
        "debezium_advice", "n:decimal(9,2)", ("first.json", [event("c", 1, {"id": 1, "n": "1234"})]),
        "value_does_not_fit", REPLAY, [(1, 1234)],
        edits=[(sources, "postgresql", "postgresql\n          decimals: string")],
        detail="declare `decimals`",
    ),
    "letters": Trial(
        "datastream_advice", "n:string", ("first.json", [row(1, "x", id="ID"), row(2, "y", at="2")]),
        "null_key", "highwater alter TABLE rename COLUMN FIELD", [(1, "x"), (2, "y")],
        values={"COLUMN": "id", "FIELD": "ID"},
    ),
    "keyless": Trial(
        "datastream_advice", "n:string", ("first.json", [row(None, "x")]),
        "null_key", "with it in a file under another name", [(1, "x")], again=("again.json", [row(1, "x")]),
    ),
    "told": Trial(
        "datastream_told", "n:string", ("first.json", [row(1, "x", at=None, sort_keys=TOLD)]),
        "unreadable_sequence", REPLAY, [(1, "x")], edits=[(sources, "json", "json\n          order: mysql_sort_keys")],
    ),
    "unplaced": Trial(
        "debezium_offsets", "n:string", ("t+0+0000000007.json", [event("c", None, {"id": 1, "n": "x"})]),
        "unreadable_sequence", REPLAY, [(1, "x")],
        edits=[(sources, "postgresql", "postgresql\n          order: kafka")],
    ),
    "misplaced": Trial(
        "datastream_advice", "n:string", ("first.json", [row(1, "x", at="xyz")]),
        "unreadable_sequence", "whole in a file under another name", [(1, "x")], again=("again.json", [row(1, "x")]),
    ),
    "left_out": Trial(
        "datastream_left", "n:string", ("first.json", [row(1, "x")]), "ignored", REPLAY, [(1, "x")],
        edits=[(sources, "\n          epochs: [{when: 'true', ignore: true}]", "")],
    ),
    "emptied": Trial(
        "debezium_advice", "n:string",
        ("first.json", [event("c", 1, {"id": 1, "n": "x"}), event("t", 2, None)]), "unknown_operation", REPLAY, [],
        edits=[(declaration, "key: [id]", "key: [id]\n        truncates: true")],
    ),
    "emptied_shard": Trial(
        "debezium_advice", "n:string",
        ("first.json", [event("c", 1, {"id": 1, "n": "x"}), event("t", 2, None)]),
        "truncated_shard", "Deliver a delete of each row of that shard, at the position of the truncate", [],
        again=("again.json", [event("d", 2, None) | {"before": {"id": 1, "n": "x"}}]), schema="tenant_a",
    ),
    "partial": Trial(
        "debezium_advice", "n:string,m:string",
        ("first.json", [event("c", 1, {"id": 1, "n": "x", "m": "y"}),
                        event("u", 2, {"id": 1, "n": "z", "m": UNAVAILABLE})]),
        "partial_image", REBUILD, [(1, "z", "y")],
        edits=[(declaration, "key: [id]", "key: [id]\n        partial_images: true")],
    ),
    "formless": Trial(
        "debezium_formless", "n:string",
        ("first.json", [{"id": 1, "n": "x", "__op": "c", "__lsn": 1, "__source_ts_ms": 1_700_000_000_000}]),
        "unknown_form", REPLAY, [(1, "x")], edits=[(sources, "postgresql", "postgresql\n          form: flattened")],
        detail="declare `form: flattened`",
    ),
    "failed": Trial(
        "debezium_failed", "n:string", ("first.json", [of_server(101, 1, 9000), of_server(202, 2, 4)]),
        "unknown_source", REPLAY, [(1, "x"), (2, "x")],
        edits=[(sources, "{source: '101'}", "{source: '101'}, {source: '202'}")],
    ),
    "grown_advised": Trial(
        "dms_advice", "n:string", ("20260105-101112345.csv", b"I,1,a\nI,2,b,c\n"),
        "wrong_column_count", REBUILD, [(1, "a", None), (2, "b", "c")],
        edits=[
            (sources, "columns: [id, n]", "columns: [{columns: [id, n]}, {columns: [id, n, m]}]"),
            (declaration, "n, data_type: string}", "n, data_type: string}\n      - {name: m, data_type: string}"),
        ],
    ),
    "quoted": Trial(
        "dms_advice", "said:string", ("20260105-101112345.csv", b"I,1,a,b\n"),
        "wrong_column_count", "with quotes in a file under another name", [(1, "a,b")],
        again=("20260106-101112345.csv", b'I,1,"a,b"\n'),
    ),
}  # fmt: skip


def typed(table: str, trial: Trial) -> list[str]:
    """Return the command of an advice as somebody types it for a table."""
    names = {"TABLE": table, **trial.values}
    return shlex.split(re.sub(r"\b[A-Z]{4,}\b", lambda word: names[word[0]], trial.advised))[1:]


def commands_in(text: str) -> set[str]:
    """Return the commands that a text names: words in small letters or capitals, to the end of the sentence."""
    return set(re.findall(r"highwater [\w -]*\w", text))


@pytest.fixture(scope="module")
def followed(workshop):
    """What was said of each record, and the rows when its advice was followed."""
    for table, trial in TRIALS.items():
        form, settings, _ = FEEDS[trial.feed]
        shards = {"column": "tenant", "schemas": [trial.schema]} if trial.schema else None
        workshop.add_table(f"{trial.feed}.{table}", "id:int", trial.columns, form, settings, shards=shards)
        workshop.deliver(trial.folder(table), *trial.file)
    for feed, (*_, replaced) in FEEDS.items():
        if replaced:
            edit(sources(workshop, feed), *replaced)
    for setting in ("truncates", "partial_images"):
        for table in ("emptied", "partial"):
            path = workshop.declaration(table)
            path.write_text(re.sub(rf"( *#.*\n)? *{setting}: true\n", "", path.read_text()))
    tables = [f"+{table}" for table in TRIALS]
    workshop.land(*FEEDS)
    workshop.build("rejection_reasons", "ledger", "rejected_changes", *tables, command="run")
    assert list(meet(workshop.spark, [*TRIALS])) == []
    said = {}
    for table, *words in workshop.rows(
        "select table_name, rejection_reason, what_to_do, rejection_detail from rejected_changes "
        f"where table_name in ({', '.join(map(repr, TRIALS))})"
    ):
        said.setdefault(table, []).append(words)
    typing = CliRunner()
    for table, trial in TRIALS.items():
        for where, old, new in trial.edits:
            edit(where(workshop, trial.feed, table), old, new)
        if trial.again:
            workshop.deliver(trial.folder(table), *trial.again)
        else:
            result = typing.invoke(cli.commands, typed(table, trial))
            assert result.exit_code == 0, (table, result.output, result.exception)
    workshop.land(*FEEDS)
    # as `highwater build` does first: what it refuses, it does not build
    refused = [each.sentence for each in meet(workshop.spark, [*TRIALS]) if each.is_refused]
    workshop.build(*tables, command="run")
    return said, {table: workshop.rows(f"select * from {table} order by 1") for table in TRIALS}, refused


@pytest.mark.soak
@pytest.mark.parametrize("table", TRIALS)
def test_the_advice_of_a_reason_takes_its_record_in(followed, table):
    said, rows, _ = followed
    trial = TRIALS[table]
    ((reason, what_to_do, detail),) = said[table]
    assert reason == trial.reason and trial.advised in what_to_do and trial.detail in (detail or ""), said[table]
    assert rows[table] == trial.rows


@pytest.mark.soak
def test_no_build_refuses_what_was_advised(followed):
    assert followed[-1] == []


def test_every_reason_and_every_command_is_tried(workshop):
    tried = {(trial.reason, trial.advised) for trial in TRIALS.values()}
    reasons = workshop.rows("select rejection_reason, what_to_do from rejection_reasons")
    assert {reason for reason, _ in reasons} == {reason for reason, _ in tried}
    advised = {(reason, command) for reason, text in reasons for command in commands_in(text)}
    assert len(advised) > 8 and advised <= tried, advised - tried
