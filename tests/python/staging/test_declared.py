"""Feeds whose records are declared: what the words of `change` make of them."""

import json

from highwater.formats.declared import declared_formats
from producers_declared import PRODUCERS, history, rows_of

FIVE_WORDS = {"order": [{"integer": "$.sequenceNum"}], "delete_when": "$.operation = 'DELETE'"}


def lines(*records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


# what the documentation of AUTO CDC has as its example, and what becomes of it there
ROWS = [
    (124, "Raul", "Oaxaca", "INSERT", 1),
    (123, "Isabel", "Monterrey", "INSERT", 1),
    (125, "Mercedes", "Tijuana", "INSERT", 2),
    (126, "Lily", "Cancun", "INSERT", 2),
    (123, None, None, "DELETE", 6),
    (125, "Mercedes", "Guadalajara", "UPDATE", 6),
    (125, "Mercedes", "Mexicali", "UPDATE", 5),
    (123, "Isabel", "Chihuahua", "UPDATE", 5),
]
TRUNCATE = (None, None, None, "TRUNCATE", 3)
OF_AUTO_CDC = {
    "deletes": (FIVE_WORDS, ROWS, [(124, "Raul", "Oaxaca"), (125, "Mercedes", "Guadalajara"), (126, "Lily", "Cancun")]),
    "truncates": (
        FIVE_WORDS | {"truncate_when": "$.operation = 'TRUNCATE'"},
        [*ROWS, TRUNCATE],
        [(125, "Mercedes", "Guadalajara")],
    ),
    "nulls": (
        FIVE_WORDS | {"ignore_null_updates": True},
        [(1, "Ann", "Rome", "INSERT", 1), (1, None, "Oslo", "UPDATE", 3), (1, "Eve", None, "UPDATE", 2)],
        [(1, "Eve", "Oslo")],
    ),
    "nulls_of_some": (
        FIVE_WORDS | {"ignore_null_updates": ["name"]},
        [(1, "Ann", "Rome", "INSERT", 1), (1, None, None, "UPDATE", 2)],
        [(1, "Ann", None)],
    ),
    "struct": (
        FIVE_WORDS | {"order": [{"integer": "$.sequenceNum"}, {"text": "rpad($.name, 4, ' ')", "width": 4}]},
        [(1, "a", "first", "INSERT", 1), (1, "b", "last", "UPDATE", 1)],
        [(1, "b", "last")],
    ),
}


def test_words_of_auto_cdc_make_what_they_make_there(workshop):
    names = ("userId", "name", "city", "operation", "sequenceNum")
    for name, (change, rows, _) in OF_AUTO_CDC.items():
        table = f"auto_{name}.users_{name}"
        workshop.add_table(table, "userId:int", "name:string,city:string", "json", {"change": json.dumps(change)})
        workshop.deliver(table, "1.json", lines(*(dict(zip(names, row, strict=True)) for row in rows)))
    workshop.land(*(f"auto_{name}" for name in OF_AUTO_CDC))
    workshop.build(*(f"+users_{name}" for name in OF_AUTO_CDC), command="run")
    for name, (_, _, expected) in OF_AUTO_CDC.items():
        assert sorted(workshop.rows(f"select * from lake.users_{name}")) == expected, name
        assert workshop.rows(f"select * from lake.users_{name}_changes where rejection_reason is not null") == [], name


def test_producers_say_the_same_of_one_history(workshop):
    changes = history(20261130)
    for number, (format, (order, write)) in enumerate(PRODUCERS.items()):
        feed, name = f"declared_p{number}", f"customers_p{number}"
        names_tables = "table" in declared_formats()[format]
        workshop.add_table(
            f"{feed}.{name}", "id:int", "email:string,balance:decimal(10,2),bio:string", format,
            {"order": order} | ({"layout": "records"} if names_tables else {}), source_table="customers",
        )  # fmt: skip
        lines = write(changes)
        # what is ordered by its place in a file cannot be cut anywhere
        half = len(lines) // 2 if format not in ("canal-json", "dms-json") else len(lines)
        for file, part in (("2", lines[:half]), ("1", lines[half:])):
            workshop.deliver(feed if names_tables else f"{feed}.customers", f"{file}.json", "\n".join(part) + "\n")
    feeds = [f"declared_p{number}" for number in range(len(PRODUCERS))]
    workshop.land(*feeds)
    workshop.build(*(f"+customers_p{number}" for number in range(len(PRODUCERS))), command="run")
    expected = rows_of(changes)
    for number, format in enumerate(PRODUCERS):
        rows = workshop.rows(f"select id, email, cast(balance as string), bio from lake.customers_p{number}")
        assert sorted(rows) == expected, format
        rejected = workshop.rows(
            f"select rejection_reason, rejection_detail, count(*) from lake.customers_p{number}_changes "
            "where rejection_reason <> 'ignored' group by all"
        )
        assert rejected == [], format
        tied = workshop.rows(f"select * from lake.customers_p{number}_changes where is_tied")
        assert tied == [] or format in ("canal-json", "dms-json"), format


def test_what_a_declaration_makes_of_odd_records(workshop):
    """Truncates among partitions, rows that move within a transaction, bytes in hex, names that are NULL, no key."""
    own = {"layout": "records"}
    for feed, format, order in (("odd_gate", "goldengate-json", "kafka"), ("odd_wal", "wal2json-v1", "place")):
        table = feed.removeprefix("odd_")
        workshop.add_table(
            f"{feed}.{table}", "id:int", "bytes:binary", format, own | {"order": order}, source_table="t"
        )
    workshop.add_table(
        "odd_loose.loose", None, "id:int,x:string", "maxwell-json", own | {"order": "place"},
        source_table="t", without_key=True,
    )  # fmt: skip
    gate = {"table": "S.T", "op_ts": "2026-01-01 00:00:00", "pos": "1"}
    workshop.deliver(
        "odd_gate", "t.json",
        lines({"offset": 5, "value": gate | {"op_type": "I", "after": {"id": 1}}},
              {"offset": 3, "value": gate | {"op_type": "T"}}),
    )  # fmt: skip
    row = {"schema": "public", "table": "t", "columnnames": ["id", "bytes"]}
    moved = {"kind": "update", "columnvalues": [6, "deadbeef"], "oldkeys": {"keynames": ["id"], "keyvalues": [5]}}
    at = {"timestamp": "2026-01-01 00:00:00"}
    workshop.deliver(
        "odd_wal", "t.json",
        lines(at | {"change": [row | {"kind": "insert", "columnvalues": [5, "00"]}, row | moved]},
              at | {"change": [row | {"kind": "insert", "columnnames": ["id", None], "columnvalues": [1, 2]}]}),
    )  # fmt: skip
    loose = {"database": "d", "table": "t", "ts": 1772442930, "data": {"id": 1, "x": "a"}}
    workshop.deliver(
        "odd_loose", "t.json", lines(loose | {"type": "insert"}, loose | {"type": "update", "old": {"x": "b"}})
    )
    workshop.land("odd_gate", "odd_wal", "odd_loose")
    workshop.build("+gate", "+wal", "+loose_changes", command="run")
    reasons = "select rejection_reason, count(*) from lake.{}_changes where rejection_reason is not null group by all"
    assert workshop.rows("select id from lake.gate") == [(1,)]
    assert workshop.rows(reasons.format("gate")) == [("unreadable_sequence", 1)]
    assert workshop.rows("select id, hex(bytes) from lake.wal") == [(6, "DEADBEEF")]
    assert workshop.rows(reasons.format("wal")) == [("malformed_record", 1)]
    assert workshop.value("select count(*) from lake.loose_changes where rejection_reason is null") == 2
