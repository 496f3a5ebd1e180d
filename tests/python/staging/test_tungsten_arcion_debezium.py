"""Cases T and A, and the catalogue of change formats: files of each producer, landed and built; every case by its id.

Every case lives under its own name in the key of its table, and every batch of a case is a file of its own. Two
builds, two batches each, carry all of them.
"""

import functools
import itertools
import json
import re
from collections import defaultdict

import pytest
from highwater.catalog.entities import declared_columns
from highwater.upkeep.compact import compact
from repository import PROJECT
from workshop import rows_in_the_end

STEPS = 4
FORMATS_DOC = PROJECT / "docs/formats.md"


# ---------------------------------------------------------------- Tungsten, mysql dialect


def quoted(value):
    if value is None:
        return r"\N"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def tungsten_file(case, rows):
    """Rows (opcode, seqno, row_id, key, value) as the batch applier writes them."""
    return "".join(
        ",".join(map(quoted, [op, str(seqno), str(row), "2016-03-11 20:51:10.000", case, key, value])) + "\n"
        for op, seqno, row, key, value in rows
    )


SOFTWARE, MICROSOFT = "http://www.continent.com/software", "http://www.microsoft.com"
# case -> batches; a batch is a list of files; a file is a list of rows
TUNGSTEN = {
    "T1": (
        [
            [[("I", 1, 1, "143", "old")]],
            [[("I", 84900, 1, "986", SOFTWARE), ("D", 84901, 2, "143", None), ("I", 84901, 3, "143", MICROSOFT)]],
        ],
        {"986": SOFTWARE, "143": MICROSOFT},
    ),
    "T2": ([[[("I", 1, 1, "1", "a"), ("D", 2, 2, "1", None)]]], {}),
    "T3": ([[[("I", 1, 1, "1", "a")]], [[("D", 7, 1, "1", None), ("I", 7, 2, "2", "a")]]], {"2": "a"}),
    "T4": (
        [
            [[("I", 1, 1, "1", "a"), ("I", 1, 2, "2", "b")]],
            [[("D", 7, 1, "1", None), ("D", 7, 2, "2", None), ("I", 7, 3, "2", "a"), ("I", 7, 4, "3", "b")]],
        ],
        {"2": "a", "3": "b"},
    ),
    "T5-over": ([[[("I", 1, 1, "1", "a")]], [[("U", 2, 1, "1", "b")]]], {"1": "b"}),
    "T5-empty": ([[[("I", 1, 1, "1", "a"), ("U", 2, 2, "1", "b")]]], {"1": "b"}),
    "T6": ([[[("I", 1, 1, "1", "a")]], [[("UD", 5, 1, "1", None), ("UI", 5, 2, "2", "a")]]], {"2": "a"}),
    "T12": (
        [
            [[("D", 9, 1, "1", None), ("I", 9, 2, "1", "new")]],
            [[("I", 5, 1, "9", "x"), ("I", 5, 2, "8", "y"), ("I", 5, 3, "1", "old")]],
        ],
        {"9": "x", "8": "y", "1": "new"},
    ),
    "T12-one-batch": (
        [
            [
                [("D", 9, 1, "1", None), ("I", 9, 2, "1", "new")],
                [("I", 5, 1, "9", "x"), ("I", 5, 2, "8", "y"), ("I", 5, 3, "1", "old")],
            ]
        ],
        {"9": "x", "8": "y", "1": "new"},
    ),
    "T13": ([[[("D", 50, 1, "1", None)]], [[("I", 40, 1, "1", "old")]]], {}),
    "T14": ([[[("I", 18, 1, "1", "a")]], [[("I", 16, 1, "2", "b"), ("I", 18, 3, "1", "a")]]], {"1": "a", "2": "b"}),
    "T14-in-one-file": (
        [[[("I", 18, 1, "1", "a"), ("I", 18, 2, "2", "b"), ("I", 18, 1, "1", "a")]]],
        {"1": "a", "2": "b"},
    ),
    "T16": (
        [[[("I", 1, 1, "1", "a")]], [[("I", 1, 1, "1", "a")]], [[("D", 2, 1, "1", None)]], [[("I", 1, 1, "1", "a")]]],
        {},
    ),
    "T18": ([[[("I", 84900, 1, "1", "a"), ("I", 3000000000, 1, "1", "b")]]], {"1": "b"}),
    "T-set-back": (
        [
            [
                [("I", 1, 1, "1", "o")],
                [
                    *[("D", 7, 1, "1", None), ("I", 7, 2, "1", "a"), ("D", 7, 3, "1", None), ("I", 7, 4, "1", "b")],
                    *[("D", 7, 5, "1", None), ("I", 7, 6, "1", "a")],
                ],
            ]
        ],
        {"1": "a"},
    ),
    "T-swap": (
        [
            [[("I", 1, 1, "1", "a"), ("I", 1, 2, "2", "b")]],
            [[("D", 7, 1, "1", None), ("D", 7, 2, "2", None), ("I", 7, 3, "2", "a"), ("I", 7, 4, "1", "b")]],
        ],
        {"1": "b", "2": "a"},
    ),
}

# ---------------------------------------------------------------- Arcion, JSON


def commit_log(dsc, mut, ts=None, part=1, node="node1"):
    """A cursor of the commit log (Cassandra)."""
    return json.dumps(
        {
            "extractorId": 0,
            "nodeID": node,
            "timestamp": dsc if ts is None else ts,
            "dscId": dsc,
            "mutId": mut,
            "partNum": part,
            "v": 2,
        }
    )


def log_file(log, position, number=1):
    """A cursor of log files (MySQL)."""
    return json.dumps(
        {"extractorId": 0, "timestamp": 1657516903000, "log": log, "position": position, "logSeqNum": number, "v": 2}
    )


def arcion(operation, cursor, before, after, exists):
    """A record; images are mappings of column to value, exists one of column to 0 to 3. Absent columns are 0."""

    def image(values):
        return {name: "null" if values.get(name) is None else values[name] for name in ("case_name", "id", "a", "b")}

    presence = {name: str(exists.get(name, 0)) for name in ("case_name", "id", "a", "b")}
    return {
        "tableName": {"namespace": {"catalog": None, "schema": "shop"}, "name": "arcion_rows"},
        "opType": operation,
        "cursor": cursor,
        "before": image(before),
        "after": image(after),
        "exists": presence,
        "operationcount": "{}",
    }


def ins(cursor, key, a, b, operation="I"):
    return lambda case: arcion(
        operation,
        cursor,
        {},
        {"case_name": case, "id": key, "a": a, "b": b},
        {"case_name": 1, "id": 1, "a": 1, "b": 1},
    )


def upd(cursor, key, operation="U", **columns):
    """An update as a commit log has it: set columns in the new image, the key in the old one."""
    return lambda case: arcion(
        operation,
        cursor,
        {"case_name": case, "id": key},
        columns,
        {"case_name": 2, "id": 2} | dict.fromkeys(columns, 1),
    )


def dele(cursor, key):
    return lambda case: arcion("D", cursor, {"case_name": case, "id": key}, {}, {"case_name": 2, "id": 2})


def moved(cursor, key, new_key, a, b):
    """An update that changes the key, with both images whole."""
    return lambda case: arcion(
        "U",
        cursor,
        {"case_name": case, "id": key, "a": a, "b": b},
        {"case_name": case, "id": new_key, "a": a, "b": b},
        {"case_name": 3, "id": 3, "a": 3, "b": 3},
    )


A1 = [
    ins(commit_log(1620787053904, 1048408), "10", "India", "India"),
    upd(commit_log(1620787053904, 1048480, ts=1620787053905), "10", a="USA"),
    dele(commit_log(1620787053905, 1721, ts=1620787053906), "10"),
]
NEWER = commit_log(9, 1)
ARCION = {
    **{f"A1-{''.join(map(str, order))}": ([[A1[i] for i in order]], {}) for order in itertools.permutations(range(3))},
    **{
        f"A1-apart-{''.join(map(str, order))}": ([[A1[i]] for i in order], {})
        for order in itertools.permutations(range(3))
    },
    "A2": ([[A1[1]], [A1[0]]], {"10": ("USA", "India", True)}),
    "A2-at-once": ([[A1[1], A1[0]]], {"10": ("USA", "India", True)}),
    "A3": (
        [
            [
                A1[0],
                A1[1],
                lambda case: A1[2](case) | {"cursor": A1[2](case)["cursor"].replace('"dscId"', '"dscI"')},
            ]
        ],
        {"10": ("USA", "India", True)},
    ),
    "A5": (
        [[ins(log_file("log-bin.000010", 4), "1", "b", "")], [upd(log_file("log-bin.000009", 999999999), "1", a="a")]],
        {"1": ("b", "", True)},
    ),
    "A5-roll-over": (
        [
            [ins(log_file("log-bin.1000000", 4), "1", "b", "")],
            [ins(log_file("log-bin.999999", 9), "1", "a", "")],
        ],
        {"1": ("b", "", True)},
    ),
    "A6-first": ([[upd(NEWER, "55", a="x")]], {"55": ("x", None, False)}),
    "A6": ([[upd(NEWER, "55", a="x")], [ins(commit_log(5, 1), "55", "old", "N")]], {"55": ("x", "N", True)}),
    "A7": (
        [[ins(commit_log(1, 1), "1", "a", "b")], [upd(commit_log(2, 1), "1", a=None)]],
        {"1": (None, "b", True)},
    ),
    "A9": (
        [[ins(commit_log(1, 1), "10", "a", "b")], [moved(commit_log(2, 1), "10", "11", "a", "b")]],
        {"11": ("a", "b", True)},
    ),
    "A9-as-two": (
        [
            [ins(commit_log(1, 1), "10", "a", "b")],
            [dele(commit_log(2, 1), "10"), ins(commit_log(2, 1), "11", "a", "b")],
        ],
        {"11": ("a", "b", True)},
    ),
    "A9-shift": (
        [
            [ins(commit_log(1, 1), "1", "a", ""), ins(commit_log(1, 2), "2", "b", "")],
            [moved(commit_log(2, 1), "1", "2", "a", ""), moved(commit_log(2, 1), "2", "3", "b", "")],
        ],
        {"2": ("a", "", True), "3": ("b", "", True)},
    ),
    "A9-swap": (
        [
            [ins(commit_log(1, 1), "1", "a", ""), ins(commit_log(1, 2), "2", "b", "")],
            [moved(commit_log(2, 1), "1", "2", "a", ""), moved(commit_log(2, 1), "2", "1", "b", "")],
        ],
        {"2": ("a", "", True), "1": ("b", "", True)},
    ),
    "A10": (
        [
            [ins(commit_log(1, 1), "10", "India", "India"), dele(commit_log(2, 1), "10")],
            [upd(commit_log(3, 1), "10", a="UK")],
        ],
        {"10": ("UK", None, False)},
    ),
    "A10-backwards": (
        [
            [upd(commit_log(3, 1), "10", a="UK")],
            [dele(commit_log(2, 1), "10")],
            [ins(commit_log(1, 1), "10", "India", "India")],
        ],
        {"10": ("UK", None, False)},
    ),
    "A15": (
        [
            [ins(commit_log(1, 5, ts=100), "1", "same", ""), ins(commit_log(9, 2, ts=100, node="n2"), "1", "same", "")],
            [upd(commit_log(1, 9, ts=200), "1", a="newer")],
        ],
        {"1": ("newer", "", True)},
    ),
    "A16": (
        [
            [upd(commit_log(2, 1, part=2), "1", a="second"), upd(commit_log(2, 1, part=1), "1", a="first")],
            [ins(commit_log(1, 1), "1", "base", "")],
        ],
        {"1": ("second", "", True)},
    ),
    "A17": (
        [
            [ins(commit_log(1, 1), "1", "a", "b")],
            [
                ins(commit_log(2, 1), "1", "replaced", "", operation="R"),
                upd(commit_log(3, 1), "1", operation="u", b="lower"),
                upd(commit_log(4, 1), "1", operation="X", b="unknown"),
            ],
        ],
        {"1": ("a", "lower", True)},
    ),
    "fold": (
        [
            [upd(commit_log(1, 1), "1", a="a1", b="b1"), upd(commit_log(3, 1), "1", b="b3")],
            [upd(commit_log(2, 1), "1", a="a2")],
        ],
        {"1": ("a2", "b3", True)},
    ),
    "fold-apart": (
        [
            [upd(commit_log(1, 1), "1", a="a1", b="b1")],
            [upd(commit_log(3, 1), "1", b="b3")],
            [upd(commit_log(2, 1), "1", a="a2")],
        ],
        {"1": ("a2", "b3", True)},
    ),
    "fold-backwards": (
        [
            [upd(commit_log(2, 1), "1", a="a2")],
            [upd(commit_log(3, 1), "1", b="b3")],
            [upd(commit_log(1, 1), "1", a="a1", b="b1")],
        ],
        {"1": ("a2", "b3", True)},
    ),
    "fold-twice": (
        [
            [upd(commit_log(1, 1), "1", a="a1")],
            [upd(commit_log(3, 1), "1", b="b3"), upd(commit_log(1, 1), "1", a="a1")],
            [upd(commit_log(1, 1), "1", a="a1")],
        ],
        {"1": ("a1", "b3", True)},
    ),
    "A8": (
        [[ins(commit_log(1, 1), None, "lost", ""), ins(commit_log(1, 2), "1", None, "b")]],
        {"1": (None, "b", True)},
    ),
    "A14": (
        [
            [
                ins(commit_log(1, 1), "1", "a", "b"),
                lambda case: json.dumps(upd(commit_log(2, 1), "1", a="cut")(case))[:-40],
                upd(commit_log(3, 1)[:-20], "1", a="cut cursor"),
                upd("", "1", a="no cursor"),
                upd(commit_log(4, 1), "1", b="last"),
            ]
        ],
        {"1": ("a", "last", True)},
    ),
}
ARCION_VERDICTS = {
    "A3": ["applied", "applied", "rejected unreadable_sequence"],
    "A15": ["applied", "superseded", "applied"],
    "A16": ["superseded", "applied", "applied"],
    "A17": ["applied", "rejected unknown_operation", "rejected unknown_operation", "applied"],
    "fold": ["applied", "applied", "applied"],
    "fold-backwards": ["applied", "applied", "superseded"],
    "fold-twice": ["applied", "applied", "duplicate", "duplicate"],
    "A8": ["applied", "rejected null_key"],
    "A14": ["applied", "applied", "rejected malformed_record", *["rejected unreadable_sequence"] * 2],
}

# ---------------------------------------------------------------- Arcion, CSV with headers

CHANGED = [f"{column}_{part}" for column in ("case_name", "id", "a", "b") for part in ("NEW", "OLD", "EXISTS")]
CHANGED += ["optype", "cursor", "operationcounts"]


def in_csv(values, case=None):
    """A line; what has to be quoted is, and a value that is quoted already stays."""
    cells = [case if value is CASE else value for value in values]
    return ",".join(cell if cell[:1] == '"' else f'"{cell}"' if "," in cell else cell for cell in cells) + "\n"


CASE = object()


def snapshot(*rows, header=("case_name", "id", "a", "b")):
    return lambda case: in_csv(header) + "".join(in_csv(row, case) for row in rows)


def inserts(*rows, header=CHANGED, missing=0):
    """A file of inserts (number of the change, key, a, b), in the order of its header."""

    def file(case):
        text = in_csv(header)
        for number, key, a, b in rows:
            values = {"optype": "I", "operationcounts": "{}"}
            values["cursor"] = '"' + log_file("log-bin.000001", number).replace('"', '""') + '"'
            for column, value in {"case_name": case, "id": key, "a": a, "b": b}.items():
                for name in {column, "c"} if column == "b" else {column}:
                    values |= {f"{name}_NEW": value, f"{name}_OLD": "NULL", f"{name}_EXISTS": "1"}
            text += in_csv([values[name] for name in header][: len(header) - missing])
        return text

    return file


# case -> batches of files, rows
ARCION_CSV = {
    "A8": ([[inserts((1, "1", "NULL", '"NULL"'))]], {"1": (None, "NULL")}),
    "A11": (
        [[snapshot((CASE, "7", "snapshot", "row"))], [inserts((1, "7", "change", "row"))]],
        {"7": ("change", "row")},
    ),
    "A12": (
        [[inserts((1, "1", "later", "change"))], [snapshot((CASE, "0", " AFRICA ", "AFRICA"), (CASE, "1", "s", "s"))]],
        {"0": (" AFRICA ", "AFRICA"), "1": ("later", "change")},
    ),
    "A13": (
        [
            [
                inserts((1, "1", "a", "b")),
                inserts((2, "2", "a", "b"), header=CHANGED[::-1]),
                inserts((3, "3", "a", "b"), header=[name.replace("b_", "c_") for name in CHANGED]),
            ]
        ],
        {"1": ("a", "b"), "2": ("a", "b")},
    ),
    "A18": ([[lambda case: "", inserts(), inserts((1, "1", "a", "b"), missing=1)]], {}),
}
ARCION_CSV_VERDICTS = {
    "A8": ["applied"],
    "A11": ["applied", "applied"],
    "A12": ["applied", "applied", "superseded"],
    "A13": ["applied", "applied", "rejected wrong_column_count"],
    "A18": ["rejected wrong_column_count"],
}

# ---------------------------------------------------------------- Debezium, MySQL connector

UNAVAILABLE = "__debezium_unavailable_value"


def debezium(op, pos, key, value=None, *, before=None, row=0, file="mysql-bin.000014", other="o", snapshot="false"):
    """A record of the MySQL connector; value None with op d is a delete."""

    def record(case):
        image = {"case_name": case, "id": key, "v": value, "other": other}
        old = {"case_name": case, "id": before or key, "v": "old", "other": "old"}
        return {
            "before": old if op in "ud" else None,
            "after": None if op in "dt" else image,
            "source": {
                "connector": "mysql",
                "name": "shop",
                "server_id": 1,
                "ts_ms": 1772442930123,
                "snapshot": snapshot,
                "file": file,
                "pos": pos,
                "row": row,
                "table": "debezium_rows",
            },
            "op": op,
            "ts_ms": 1772442930501,
        }

    return record


DEBEZIUM = {
    "1-same-event-twice": ([[debezium("c", 1, "a", "1")] * 2, [debezium("c", 1, "a", "1")]], {"a": ("1", "o")}),
    "2-older-batch-after-newer": ([[debezium("u", 9, "a", "9")], [debezium("u", 5, "a", "5")]], {"a": ("9", "o")}),
    "3-update-after-delete-late": (
        [[debezium("c", 1, "a", "1")], [debezium("d", 9, "a")], [debezium("u", 5, "a", "5")]],
        {},
    ),
    "4-delete-of-a-key-never-seen": ([[debezium("d", 9, "a")], [debezium("c", 5, "a", "5")]], {}),
    "5-delete-and-reinsert": (
        [[debezium("c", 1, "a", "1"), debezium("d", 2, "a"), debezium("c", 3, "a", "3")]],
        {"a": ("3", "o")},
    ),
    "5-across-batches": (
        [[debezium("c", 1, "a", "1")], [debezium("d", 2, "a")], [debezium("c", 3, "a", "3")]],
        {"a": ("3", "o")},
    ),
    "6-many-updates-at-one-position": (
        [[debezium("u", 7, "a", str(number)) for number in range(1, 40)]],
        {"a": ("39", "o")},
    ),
    "7-rows-of-one-event": (
        [[debezium("c", 7, key, key, row=place) for place, key in enumerate("abc")]],
        {key: (key, "o") for key in "abc"},
    ),
    "8-delete-tied-behind-the-insert": ([[debezium("c", 7, "a", "1"), debezium("d", 7, "a")]], {}),
    "8-delete-tied-before-the-insert": ([[debezium("d", 7, "a"), debezium("c", 7, "a", "1")]], {"a": ("1", "o")}),
    "8-shift-at-one-position": (
        [
            [debezium("c", 1, "1", "a"), debezium("c", 2, "2", "b")],
            [debezium("u", 7, "2", "a", before="1"), debezium("u", 7, "3", "b", before="2")],
        ],
        {"2": ("a", "o"), "3": ("b", "o")},
    ),
    "8-shift-by-pairs": (
        [
            [debezium("c", 1, "1", "a"), debezium("c", 2, "2", "b")],
            [
                debezium("d", 7, "2"),
                debezium("c", 7, "3", "b"),
                debezium("d", 7, "1", row=1),
                debezium("c", 7, "2", "a", row=1),
            ],
        ],
        {"2": ("a", "o"), "3": ("b", "o")},
    ),
    # a shift written in rising order at several positions cannot be told from an overwrite: not guaranteed
    "8-shift-that-cannot-be-told": (
        [
            [debezium("c", 1, "1", "a"), debezium("c", 2, "2", "b")],
            [
                debezium("d", 7, "1"),
                debezium("c", 7, "2", "a"),
                debezium("d", 8, "2"),
                debezium("c", 8, "3", "b"),
            ],
        ],
        {"3": ("b", "o")},
    ),
    "9-swap": (
        [
            [debezium("c", 1, "1", "a"), debezium("c", 2, "2", "b")],
            [debezium("u", 7, "2", "a", before="1"), debezium("u", 7, "1", "b", before="2")],
        ],
        {"1": ("b", "o"), "2": ("a", "o")},
    ),
    "9-key-change": (
        [[debezium("c", 1, "1", "a")], [debezium("u", 7, "2", "a", before="1")]],
        {"2": ("a", "o")},
    ),
    "11-log-roll-over": (
        [
            [debezium("u", 4, "a", "new", file="mysql-bin.1000000")],
            [debezium("u", 9, "a", "old", file="mysql-bin.999999")],
        ],
        {"a": ("new", "o")},
    ),
    "14-unavailable-value": (
        [
            [debezium("c", 1, "a", "1", other="kept")],
            [debezium("u", 2, "a", "2", other=UNAVAILABLE), debezium("u", 3, "a", None, other=UNAVAILABLE)],
        ],
        {"a": (None, "kept")},
    ),
    "14-unavailable-then-null": (
        [
            [debezium("c", 1, "a", "1", other="kept")],
            [debezium("u", 2, "a", "2", other="X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")],
            [debezium("u", 3, "a", "3", other=None)],
        ],
        {"a": ("3", None)},
    ),
    "16-partial-before-its-base": (
        [[debezium("u", 5, "a", "5", other=UNAVAILABLE)], [debezium("c", 1, "a", "1", other="base")]],
        {"a": ("5", "base")},
    ),
    "13-positions-go-back-between-batches": (
        [[debezium("c", 9, "a", "9")], [debezium("c", 5, "b", "5")]],
        {"a": ("9", "o"), "b": ("5", "o")},
    ),
    "15-two-partial-updates": (
        [
            [debezium("c", 1, "a", "1", other="kept")],
            [debezium("u", 2, "a", "2", other=UNAVAILABLE), debezium("u", 3, "a", UNAVAILABLE, other="new")],
        ],
        {"a": ("2", "new")},
    ),
    "17-tombstone": ([[debezium("c", 1, "a", "1"), debezium("d", 2, "a"), lambda case: "null"]], {}),
    "19-snapshot-row-after-changes": (
        [[debezium("u", 5, "a", "5")], [debezium("r", 3, "a", "snapshot", snapshot="true")]],
        {"a": ("5", "o")},
    ),
    "19-snapshot-row-read-after-a-change": (
        [[debezium("u", 5, "a", "5")], [debezium("r", 99, "a", "snapshot", snapshot="true")]],
        {"a": ("snapshot", "o")},
    ),
    # MariaDB 11.4 and incremental snapshots: the next transaction begins where the row was read
    "19-snapshot-row-read-where-a-transaction-begins": (
        [[debezium("u", 5, "a", "5")], [debezium("r", 5, "a", "snapshot", snapshot="true")]],
        {"a": ("5", "o")},
    ),
    "19-snapshot-row-of-the-beginning": (
        [[debezium("r", 0, "a", "snapshot", snapshot="true")], [debezium("u", 4, "a", "4")]],
        {"a": ("4", "o")},
    ),
    "29-unknown-operation": ([[debezium("c", 1, "a", "1"), debezium("m", 2, "a", "2")]], {"a": ("1", "o")}),
}


def batch_of(batches, step):
    """Return what a case delivers in a step; a case of up to two batches has a build for each."""
    if len(batches) <= 2:
        batches = [part for batch in batches for part in (batch, None)]
    return batches[step] if step < len(batches) else None


@pytest.fixture(scope="module")
def live(workshop):
    workshop.add_table(
        "tungsten_cases.tungsten_rows", "case_name:string,id:string", "v:string", "tungsten-csv", {"dialect": "mysql"}
    )
    workshop.add_table("arcion_cases.arcion_rows", "case_name:string,id:string", "a:string,b:string", "arcion-json")
    workshop.add_table(
        "debezium_cases.debezium_rows",
        "case_name:string,id:string",
        "v:string,other:string",
        "debezium-json",
        {"connector": "mysql"},
    )
    workshop.add_table(
        "arcion_sheets.sheet_rows", "case_name:string,id:string", "a:string,b:string", "arcion-csv", {"header": "true"}
    )
    for step in range(STEPS):
        for case, (batches, _) in TUNGSTEN.items():
            for number, rows in enumerate(batch_of(batches, step) or []):
                workshop.deliver(
                    "tungsten_cases.tungsten_rows", f"{case}-{step}-{number}.csv", tungsten_file(case, rows)
                )
        for table, cases in [("arcion_cases.arcion_rows", ARCION), ("debezium_cases.debezium_rows", DEBEZIUM)]:
            for case, (batches, _) in cases.items():
                records = batch_of(batches, step)
                if records:
                    records = [record(case) for record in records]
                    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
                    workshop.deliver(table, f"{case}-{step}.json", "\n".join(lines) + "\n")
        for case, (batches, _) in ARCION_CSV.items():
            for number, file in enumerate(batch_of(batches, step) or []):
                workshop.deliver("arcion_sheets.sheet_rows", f"{case}-{step}-{number}.csv", file(case))
        landed = ("tungsten_cases", "arcion_cases", "debezium_cases", "arcion_sheets")
        workshop.land(*(feed for feed in landed if next((workshop.landing / feed).glob(f"*/*-{step}*"), None)))
        if step % 2:
            workshop.build("+tungsten_rows", "+arcion_rows", "+debezium_rows", "+sheet_rows", command="run")
    # whether rows are complete is told by the base
    compact(workshop.spark, "arcion_rows")
    live = defaultdict(lambda: defaultdict(dict))
    for name, key, v in workshop.rows("select case_name, id, v from tungsten_rows"):
        live["tungsten"][name][key] = v
    for name, key, v, other in workshop.rows("select case_name, id, v, other from debezium_rows"):
        live["debezium"][name][key] = (v, other)
    for name, key, *values in workshop.rows("select case_name, id, a, b from sheet_rows"):
        live["arcion_csv"][name][key] = tuple(values)
    for name, key, *values in workshop.rows(
        "select case_name, id, a, b, is_complete from arcion_rows_merged where not is_deleted"
    ):
        live["arcion"][name][key] = tuple(values)
    return live


@pytest.mark.parametrize("case", TUNGSTEN)
def test_tungsten(live, case):
    assert live["tungsten"][case] == TUNGSTEN[case][1]


@pytest.mark.parametrize("case", ARCION)
def test_arcion(live, case):
    assert live["arcion"][case] == ARCION[case][1]


@pytest.mark.parametrize("case", ARCION_CSV)
def test_arcion_csv(live, case):
    assert live["arcion_csv"][case] == ARCION_CSV[case][1]


@pytest.mark.parametrize("case", DEBEZIUM)
def test_debezium(live, case):
    assert live["debezium"][case] == DEBEZIUM[case][1]


@functools.cache
def judged(workshop, entity) -> dict[str, list[str]]:
    """Verdict and reason of the records of an entity, by case."""
    found = defaultdict(list)
    for file, *row in workshop.rows(
        f"select source_file, verdict, rejection_reason from {entity}_changes where not is_derived "
        "order by landing_batch, source_line, verdict"
    ):
        found[re.search(r"/([^/]*?)-[0-9](-[0-9])?[.]", file)[1]].append(" ".join(filter(None, row)))
    return found


def verdicts(workshop, entity, case):
    return judged(workshop, entity)[case]


@pytest.mark.parametrize("case", ARCION_VERDICTS)
def test_arcion_verdicts(live, workshop, case):
    assert sorted(verdicts(workshop, "arcion_rows", case)) == sorted(ARCION_VERDICTS[case])


@pytest.mark.parametrize("case", ARCION_CSV_VERDICTS)
def test_arcion_csv_verdicts(live, workshop, case):
    assert sorted(verdicts(workshop, "sheet_rows", case)) == sorted(ARCION_CSV_VERDICTS[case])


def test_a8_nulls_that_may_be_the_word_are_counted(live, workshop):
    """The query of docs/formats.md."""
    (query,) = re.findall(r"```sql\n(select count\(\*\) as ambiguous_null.*?)```", FORMATS_DOC.read_text(), re.S)
    query = query.replace("lake.regions_changes", "arcion_rows_changes").replace("r_comment", "a")
    assert workshop.value(query + " and case_name = 'A8'") == 1
    assert workshop.value(query) > 1  # A7 sets it to NULL too


def test_the_view_shows_folded_rows_without_their_orders(live, workshop):
    assert workshop.rows("select * from arcion_rows where case_name = 'A10'") == [("A10", "10", "UK", None)]


def test_t14_the_repeated_row_is_a_duplicate_whatever_its_row_id(live, workshop):
    assert workshop.rows(
        "select id, verdict from tungsten_rows_changes where case_name = 'T14' order by landing_batch, source_line"
    ) == [("1", "applied"), ("2", "applied"), ("1", "duplicate")]


def test_t14_a_copy_stands_where_its_original_does(live, workshop):
    """The line that comes first is applied: a copy behind it is no later change."""
    assert workshop.rows(
        "select source_line, id, verdict from tungsten_rows_changes where case_name = 'T14-in-one-file' "
        "order by source_line"
    ) == [(1, "1", "applied"), (2, "2", "applied"), (3, "1", "duplicate")]


def test_the_total_order_alone_says_the_same(live, workshop):
    """What other modules take for the rows that a table ends in (`rows_in_the_end`) is what builds make of them."""
    for entity, staged in workshop.staged("arcion_rows", "debezium_rows").items():
        columns, key = declared_columns(entity)
        changes = staged.where("rejection_reason is null").collect()
        rows = rows_in_the_end(changes, [column.name for column in columns], key)
        assert sorted(rows, key=repr) == sorted(workshop.rows(f"select * from {entity}"), key=repr)


def test_a_rebuild_gives_the_same_rows(live, workshop):
    from highwater.upkeep.rebuild import rebuild

    before = sorted(workshop.rows("select * from arcion_rows"), key=repr)
    rebuild(workshop.spark, "arcion_rows")
    assert sorted(workshop.rows("select * from arcion_rows"), key=repr) == before


def test_a_record_that_stands_for_two_changes_is_counted_once(live, workshop):
    for entity, feed in [("arcion_rows", "arcion_cases"), ("debezium_rows", "debezium_cases")]:
        counted = workshop.value(f"select count(*) from {entity}_changes where not is_derived")
        assert counted == workshop.value(f"select count(*) from raw.{feed} where entry = 'record'")
    # A9 has one, the shift and the swap two each
    assert workshop.value("select count(*) from arcion_rows_changes where is_derived") == 5
