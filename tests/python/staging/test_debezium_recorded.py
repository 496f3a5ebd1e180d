"""What Debezium wrote about a database, in several of its settings, ends in the rows that the database had.

`python tests/python/debezium_shop.py` records the fixtures anew.
"""

import functools
import gzip
import json
import random
from collections import Counter
from dataclasses import replace

import pytest
from connect_files import avro_file, by_schema, parquet_file
from debezium_shop import FIXTURES, TABLES, UNITS
from highwater.catalog.entities import declared_columns
from workshop import IN_ORDER, rows_in_the_end

SETTINGS = {"connector": "postgresql", "layout": "records", "schema": "public"}
FLATTENED = {"form": "flattened"}
# by fixture: how its feed is declared, what numbers of time count, the tables to build, columns of another type in it
FEEDS = {
    "with_schema": ({}, {}, ["every_type", "every_type_full", "toasted", "orders", "loose_keys", "moved_keys"], []),
    "without_schema": ({"decimals": "precise", "binary": "base64"}, UNITS, ["every_type", "toasted", "loose_keys"], []),
    "as_texts": (
        {"decimals": "string", "binary": "base64url", "times": "isostring"},
        {},
        ["every_type", "loose_keys"],
        ["c_time", "c_time_3"],
    ),
    "as_numbers": (
        {"decimals": "precise", "binary": "hex", "times": "microseconds"},
        {},
        ["every_type"],
        ["c_time_3"],
    ),
    "flattened": (
        FLATTENED | {"decimals": "precise", "binary": "base64"},
        UNITS,
        ["every_type", "toasted", "moved_keys"],
        [],
    ),
    "flattened_with_schema": (FLATTENED, {}, ["every_type"], []),
    # as converters write the same changes (debezium_forms.py)
    "avro_json": ({}, UNITS, ["every_type", "loose_keys"], []),
    "cloud_events": ({"decimals": "precise", "binary": "base64"}, UNITS, ["every_type"], []),
    "cloud_events_with_schema": ({}, {}, ["orders"], []),
    # the same runs as sinks of Kafka Connect write them
    "in_avro": ({}, {}, ["every_type"], []),
    "in_parquet": (FLATTENED, {}, ["every_type"], []),
    # incremental snapshots without a signal table: their rows have the position of the change that comes next
    "read_only": ({"decimals": "precise"}, {}, ["orders"], []),
}
# by what is delivered of a run: its fixture, the format, what makes files of it
IN_FILES = {
    "in_avro": ("with_schema", "debezium-avro", avro_file),
    "in_parquet": ("flattened_with_schema", "debezium-parquet", parquet_file),
}
CASES = [(fixture, table) for fixture, (_, _, tables, _) in FEEDS.items() for table in tables]


def without(table, names):
    """A table without some of its columns."""
    return replace(table, columns={name: kind for name, kind in table.columns.items() if name not in names})


def files_of(fixture):
    """Names and contents of the files of a run; in Avro and Parquet a file has one schema."""
    run, format, file = IN_FILES.get(fixture, (fixture, "debezium-json", None))
    lines = gzip.decompress((FIXTURES / f"{run}.jsonl.gz").read_bytes())
    if file is None:
        return [("1.json", lines)]
    suffix = format.rpartition("-")[2]
    return [(f"shop+0+{number}.{suffix}", file(*group)) for number, group in enumerate(by_schema(lines))]


@pytest.fixture(scope="module")
def entities(workshop):
    """The staging of all tables; the names of the tables by fixture and table."""
    entities = {}
    for fixture, (settings, units, names, other) in FEEDS.items():
        for table in (without(table, other) for table in TABLES if table.entity in names):
            format = IN_FILES[fixture][1] if fixture in IN_FILES else "debezium-json"
            written = workshop.add_table(
                f"debezium_{fixture}.{table.entity}", *table.declared(units), format, SETTINGS | settings
            )
            entities[fixture, table.entity] = next(path.stem for path in written if path.parts[1] == "marts")
        for name, content in files_of(fixture):
            workshop.deliver(f"debezium_{fixture}", name, content)
    workshop.land(*(f"debezium_{fixture}" for fixture in FEEDS))
    staged = workshop.staged(*entities.values())
    return {each: (entity, staged[entity]) for each, entity in entities.items()}


def shown(columns: dict[str, str]) -> list[str]:
    """Texts of columns: Python knows no time of the year 1 in every zone."""
    return [f"{'hex' if kind == 'binary' else 'string'}(`{name}`) as `{name}`" for name, kind in columns.items()]


@functools.cache
def expected(workshop, path, entity: str, columns: tuple) -> Counter:
    """The rows that the database had, by the types of the lake."""
    rows, columns = json.loads(path.read_text())[entity], dict(columns)
    names = ", ".join(f"`{name}` string" for name in columns)
    texts = workshop.spark.createDataFrame([[row[name] for name in columns] for row in rows], names)
    typed = (
        f"unhex(`{name}`) as `{name}`" if kind == "binary" else f"cast(`{name}` as {kind}) as `{name}`"
        for name, kind in columns.items()
    )
    return Counter(map(tuple, texts.selectExpr(*typed).selectExpr(*shown(columns)).collect()))


@pytest.mark.parametrize(("fixture", "name"), CASES, ids=lambda part: part)
def test_the_rows_are_those_of_the_database(workshop, entities, fixture, name):
    entity, staged = entities[fixture, name]
    table = without(next(table for table in TABLES if table.entity == name), FEEDS[fixture][3])
    columns = {**table.key, **table.columns}
    changes = staged.selectExpr(*shown(columns), *IN_ORDER, "rejection_reason", "rejection_detail").collect()
    assert [each for each in changes if each.rejection_reason is not None] == []
    path = FIXTURES / f"{fixture}_rows.json"
    path = path if path.exists() else FIXTURES / "rows.json"
    wanted = expected(workshop, path, name, tuple(columns.items()))
    found = Counter(rows_in_the_end(changes, list(columns), declared_columns(entity)[1]))
    missing, extra = list((wanted - found).elements()), list((found - wanted).elements())
    assert (missing, extra) == ([], []), differences(list(columns), missing, extra)


def differences(columns, missing, extra) -> list:
    """Columns that differ in rows of the same first column."""
    found = {row[0]: row for row in extra}
    return [
        (row[0], {name: pair for name, *pair in zip(columns, row, found[row[0]], strict=True) if pair[0] != pair[1]})
        for row in missing
        if row[0] in found
    ]


def written_ahead(picks, keys=40, steps=1500):
    """A write-ahead log: transactions hold their rows until they commit, and the stream has them in that order.

    As the connector writes it: `lsn` is where a change begins, `sequence` also says where the last commit of the stream
    ended, which is as a rule where the next record begins. Rows of incremental snapshots stand there.

    Returns: the records, the rows in the end, how often a change began where a commit ended that an earlier change of
        its key and transaction did not know of.
    """
    lsn, ended, rows, records, risks = 1000, 1000, {}, [], 0
    running, held = {}, set()
    for step in range(steps):
        choice = picks.random()
        if choice < 0.2 and len(running) < 5:
            running[step] = []
        elif choice < 0.7 and running:
            changes = picks.choice(list(running.values()))
            own = {key for key, _, _ in changes}
            key = picks.choice(list(own) or [0]) if picks.random() < 0.6 else picks.randrange(keys)
            if key in held - own:
                continue
            held.add(key)
            there = next((value for known, value, _ in reversed(changes) if known == key), rows.get(key))
            changes.append((key, None if there is not None and picks.random() < 0.4 else step, lsn))
            lsn += picks.choice((56, 64, 248))
        elif choice < 0.93 and running:
            changes = running.pop(picks.choice(list(running)))
            lsn += 48
            for key, value, began in changes:
                was = rows.get(key)
                if value is not None or was is not None:
                    op = "d" if value is None else "c" if was is None else "u"
                    records.append((op, key, was, value, began, ended))
                    risks += began == ended and any(known == key and earlier < began for known, _, earlier in changes)
                rows[key] = value
            held -= {key for key, _, _ in changes}
            ended = lsn if changes else ended
        elif picks.random() < 0.5:
            records.extend(("r", key, None, value, None, ended) for key, value in rows.items() if value is not None)
    return records, {key: value for key, value in rows.items() if value is not None}, risks


def in_the_end(records, is_behind) -> dict:
    """The rows that are left where a change that is behind a commit is ordered by it first, others by their place."""
    latest = {}
    for place, (_, key, _, value, began, ended) in enumerate(records):
        order = (ended,) if began is None else (ended, began) if is_behind(began, ended) else (began,)
        latest[key] = max(latest.get(key, ((), 0, None)), (order, place, value), key=lambda change: change[:2])
    return {key: value for key, (_, _, value) in latest.items() if value is not None}


KEY = ["history", "id"]


def test_changes_that_begin_where_a_commit_ends(workshop):
    """A key that is deleted and inserted by one transaction, while others commit, is there."""
    settings = {"connector": "postgresql", "layout": "records"}
    workshop.add_table("debezium_wal.moments", "history:int,id:int", "v:int", "debezium-json", settings)
    lines, expected, risks, wrong = [], {}, 0, 0
    for history in range(20):
        records, rows, found = written_ahead(random.Random(history))
        risks += found
        # the control: a change that begins where a commit ends was once put before what that commit is behind
        wrong += in_the_end(records, lambda began, ended: began < ended) != rows
        expected |= {(history, key): value for key, value in rows.items()}
        for op, key, was, value, began, ended in records:
            image = {"history": history, "id": key}
            source = {"connector": "postgresql", "name": "wal", "ts_ms": 1772442930123, "table": "moments"}
            source |= {"lsn": began, "sequence": json.dumps([str(ended), str(began or ended)])}
            before, after = (each if each is None else image | {"v": each} for each in (was, value))
            lines.append(json.dumps({"before": before, "after": after, "source": source, "op": op}))
    assert risks > 20 and wrong > 3
    workshop.deliver("debezium_wal", "1.json", "\n".join(lines) + "\n")
    workshop.land("debezium_wal")
    changes = workshop.staged("moments")["moments"].select("history", "id", "v", *IN_ORDER, "rejection_reason")
    changes = changes.where("rejection_reason is null").collect()
    found = {(history, key): value for history, key, value in rows_in_the_end(changes, ["history", "id", "v"], KEY)}
    assert found == expected
