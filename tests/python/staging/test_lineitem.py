"""LINEITEM of TPC-H, 16 columns of ordinary types: the same rows through every format that can express them."""

import json
import random
from datetime import date, timedelta
from decimal import Decimal

import pytest
from producers import TUNGSTEN, DatastreamAvro, Delimited

pytestmark = pytest.mark.long

COLUMNS = {
    "l_orderkey": "bigint", "l_linenumber": "int", "l_partkey": "bigint", "l_suppkey": "bigint",
    "l_quantity": "decimal(15,2)", "l_extendedprice": "decimal(15,2)", "l_discount": "decimal(15,2)",
    "l_tax": "decimal(15,2)", "l_returnflag": "string", "l_linestatus": "string", "l_shipdate": "date",
    "l_commitdate": "date", "l_receiptdate": "date", "l_shipinstruct": "string", "l_shipmode": "string",
    "l_comment": "string",
}  # fmt: skip
KEY = ["l_orderkey", "l_linenumber"]
EPOCH = date(1970, 1, 1)
AT = 1_772_442_930_000
PICKS = random.Random(0)
WORDS = ["carefully", "final", "ironic", "deposits", "sleep", "quickly", "above", "foxes", "haggle", "furiously"]


def row(key: tuple) -> dict:
    """A row as dbgen makes it."""
    quantity, price = PICKS.randint(1, 50), Decimal(PICKS.randint(90000, 209900)) / 100
    shipped = date(1992, 1, 2) + timedelta(PICKS.randint(0, 2525))
    return dict(
        zip(COLUMNS, (
            *key, PICKS.randint(1, 200000), PICKS.randint(1, 10000), Decimal(quantity).quantize(Decimal("0.01")),
            quantity * price, Decimal(PICKS.randint(0, 10)) / 100, Decimal(PICKS.randint(0, 8)) / 100,
            PICKS.choice("RAN"), PICKS.choice("OF"), shipped, shipped + timedelta(PICKS.randint(-60, 60)),
            shipped + timedelta(PICKS.randint(1, 30)),
            PICKS.choice(["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]),
            PICKS.choice(["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]),
            " ".join(PICKS.choices(WORDS, k=PICKS.randint(2, 6))) + PICKS.choice([".", "", ", \"x\"", " 'y'"]),
        ), strict=True)
    )  # fmt: skip


def history() -> tuple[list[tuple], set]:
    """Changes (letter, row), in order, and the rows that are there in the end."""
    changes, there = [], {}
    for key in [(order, line) for order in range(1, 61) for line in range(1, PICKS.randint(2, 8))]:
        there[key] = row(key)
        changes.append(("I", there[key]))
    for key in PICKS.sample(sorted(there), 60):
        there[key] = row(key)
        changes.append(("U", there[key]))
    for key in PICKS.sample(sorted(there), 20):
        changes.append(("D", there.pop(key)))
    return changes, {tuple(found.values()) for found in there.values()}


def texts(found: dict) -> list[str]:
    return list(map(str, found.values()))


def debezium(changes) -> str:
    """As Debezium writes it with decimals as texts, its schema beside each record."""
    kinds = {"bigint": "int64", "int": "int32", "date": "int32"}
    image = [
        {"field": name, "type": kinds.get(kind, "string"), "optional": True}
        | ({"name": "io.debezium.time.Date", "version": 1} if kind == "date" else {})
        for name, kind in COLUMNS.items()
    ]
    schema = {
        "type": "struct",
        "fields": [{"type": "struct", "field": side, "fields": image} for side in ("before", "after")],
    }

    def values(found):
        days = {name: (value - EPOCH).days for name, value in found.items() if isinstance(value, date)}
        numbers = {name: str(value) for name, value in found.items() if isinstance(value, Decimal)}
        return found | days | numbers

    def record(place, letter, found):
        source = {"connector": "postgresql", "name": "tpch", "schema": "public", "table": "t", "lsn": 1000 + place}
        before, after = (values(found), None) if letter == "D" else (None, values(found))
        operation = {"I": "c", "U": "u", "D": "d"}[letter]
        payload = {"before": before, "after": after, "op": operation, "source": source | {"ts_ms": AT + place}}
        return json.dumps({"schema": schema, "payload": payload})

    return "\n".join(record(place, *change) for place, change in enumerate(changes))


WORD = {"I": "INSERT", "U": "UPDATE-INSERT", "D": "DELETE"}


def plain(found: dict) -> dict:
    """A row as JSON holds it."""
    return {name: value if isinstance(value, int) else str(value) for name, value in found.items()}


def datastream(changes) -> str:
    def record(place, letter, found):
        told = {"uuid": str(place), "source_timestamp": AT, "change_sequence_number": f"{place:x}", "sort_keys": []}
        return json.dumps({**plain(found), "datastream_metadata": told | {"change_type": WORD[letter]}})

    return "\n".join(record(place, *change) for place, change in enumerate(changes))


def event(place, letter, payload) -> dict:
    """An event of Datastream's files, in the order of MySQL's sort keys."""
    return {
        "uuid": "u", "read_timestamp": AT, "source_timestamp": AT, "object": "tpch_lineitem",
        "read_method": "mysql-cdc-binlog", "stream_name": "projects/1/streams/s",
        "sort_keys": [AT, "mysql-bin.000001", 100 + place],
        "source_metadata": {"table": "lineitem", "database": "tpch", "change_type": WORD[letter]}, "payload": payload,
    }  # fmt: skip


def datastream_files(changes) -> str:
    written = {"read_timestamp": "2021-12-25T05:42:04.408", "source_timestamp": "2021-12-25T05:42:04.408"}
    events = (event(place, letter, plain(found)) for place, (letter, found) in enumerate(changes))
    return "\n".join(json.dumps(event | written) for event in events)


def datastream_avro(changes) -> bytes:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 15, "scale": 2}
    kinds = {"bigint": "long", "int": "int", "date": {"type": "int", "logicalType": "date"}, "string": "string"}
    payload = {name: kinds.get(kind, decimal) for name, kind in COLUMNS.items()}
    events = [event(place, letter, found) for place, (letter, found) in enumerate(changes)]
    return DatastreamAvro("datastream_avro", "datastream-avro").file(events, payload)


def tungsten(changes) -> bytes:
    dialect = TUNGSTEN["mysql"][0]
    lines = (
        [letter, 100 + place, 1, "2026-03-02 09:15:30.000", *texts(found)]
        for place, (letter, found) in enumerate(changes)
    )
    return b"".join(dialect.line(PICKS, line) + b"\n" for line in lines)


def arcion_json(changes) -> str:
    def record(place, letter, found):
        image, nothing = {name: str(value) for name, value in found.items()}, dict.fromkeys(found, "null")
        before, after = (image, nothing) if letter == "D" else (nothing, image)
        cursor = {"extractorId": 0, "timestamp": AT, "log": "log-bin.000001", "position": 100 + place, "v": 2}
        there = dict.fromkeys(found, "2" if letter == "D" else "1")
        table = {"namespace": {"catalog": "tpch", "schema": "default_schema"}, "name": "lineitem"}
        return json.dumps({
            "tableName": table, "opType": letter, "cursor": json.dumps(cursor), "before": before, "after": after,
            "exists": there, "operationcount": "{}",
        })  # fmt: skip

    return "\n".join(record(place, *change) for place, change in enumerate(changes))


def arcion_csv(changes) -> bytes:
    def record(place, letter, found):
        sides = (lambda text: (None, text, 2)) if letter == "D" else (lambda text: (text, None, 1))
        cursor = {"extractorId": 0, "nodeID": "node1", "timestamp": AT, "dscId": 7, "mutId": 1000 + place}
        values = [value for text in texts(found) for value in sides(text)]
        return Delimited(quotes="some").line(PICKS, [*values, letter, json.dumps(cursor), '{"insertCount":6}'])

    return b"".join(record(place, *change) + b"\n" for place, change in enumerate(changes))


def dms(changes) -> bytes:
    lines = [["Op", "AR_H_CHANGE_SEQ", *COLUMNS]]
    lines += [[letter, f"2026030209153000{place:019}", *texts(found)] for place, (letter, found) in enumerate(changes)]
    return b"".join(Delimited(quotes="some").line(PICKS, line) + b"\n" for line in lines)


# format -> settings, suffix, what writes it
FORMATS = {
    "debezium-json": ({"connector": "postgresql", "decimals": "string"}, "json", debezium),
    "datastream-json": (None, "json", datastream),
    "datastream-gcs-json": ({"order": "mysql_sort_keys"}, "json", datastream_files),
    "datastream-avro": ({"order": "mysql_sort_keys"}, "avro", datastream_avro),
    "tungsten-csv": ({"dialect": "mysql"}, "csv", tungsten),
    "arcion-json": (None, "json", arcion_json),
    "arcion-csv": (None, "csv", arcion_csv),
    "dms-csv": ({"sequence_column": "AR_H_CHANGE_SEQ", "header": "true"}, "csv", dms),
}


def entity_of(form: str) -> str:
    return f"lineitem_{form.replace('-', '_')}"


@pytest.fixture(scope="module")
def lineitems(workshop):
    """The rows that are right, each format's table having been built of two files that came one after the other."""
    changes, rows = history()
    half = len(changes) // 2
    key = ",".join(f"{name}:{COLUMNS[name]}" for name in KEY)
    columns = ",".join(f"{name}:{kind}" for name, kind in COLUMNS.items() if name not in KEY)
    for form, (settings, suffix, write) in FORMATS.items():
        feed = f"tpch{form.replace('-', '')}_wide"
        workshop.add_table(f"{feed}.{entity_of(form)}", key, columns, form, settings)
        written = [write(changes)] if suffix != "json" else [
            "\n".join(part) for lines in [write(changes).split("\n")] for part in (lines[:half], lines[half:])
        ]  # fmt: skip
        for number, content in enumerate(written):
            workshop.deliver(f"{feed}.{entity_of(form)}", f"{number}.{suffix}", content)
        workshop.land(feed)
    workshop.build(*(f"+{entity_of(form)}" for form in FORMATS), command="run")
    return rows


@pytest.mark.parametrize("form", FORMATS)
def test_every_row_comes_through(workshop, lineitems, form):
    names = ", ".join(COLUMNS)
    found = workshop.rows(f"select {names} from {entity_of(form)}")
    rejected = workshop.rows(
        f"select rejection_reason, rejection_detail from {entity_of(form)}_changes where rejection_reason is not null"
    )
    assert rejected == []
    assert len(found) == len(lineitems) and set(found) == lineitems, sorted(set(found) ^ lineitems)[:3]


def test_a_cent_is_noticed(workshop, lineitems):
    """Negative control."""
    names = ", ".join(COLUMNS)
    first = workshop.rows(f"select {names} from {entity_of('dms-csv')} limit 1")[0]
    changed = tuple(value + Decimal("0.01") if isinstance(value, Decimal) else value for value in first)
    assert first in lineitems and changed not in lineitems
