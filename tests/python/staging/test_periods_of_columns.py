"""Files without names, whose lines have other columns from some time on; and deletes, which need their key only.

One landing and one build carry all tables. A case that users met goes on from there (dms-csv-column-added).
"""

import json

import pytest
from highwater.builds import rejections
from highwater.catalog.entities import declared_columns
from highwater.runtime.errors import CheckError
from highwater.spark import dbt
from highwater.upkeep.rebuild import rebuild_from_raw
from highwater.upkeep.replay import replay
from repository import FIXTURES
from workshop import rows_in_the_end

CASE = FIXTURES / "cases/dms-csv-column-added"
STAGE = "opcode, seqno, row_id, commit_timestamp"
JSON_CURSOR = '"{{""timestamp"":1657516904000,""log"":""bin.1"",""position"":{},""logSeqNum"":1}}"'


def arcion(*values, op="U", position=1):
    """A change as Arcion's CSV has it: NEW, OLD and EXISTS of each column."""
    triplets = [str(text) for triplet in values for text in triplet]
    return ",".join([*triplets, op, JSON_CURSOR.format(position), "x"])


def staged(op, number, *values):
    """A change as Tungsten's files have it."""
    return ",".join(f'"{value}"' for value in (op, number, 1, "2026-03-02 15:56:55.300", *values))


# feed.table: format, settings, key, columns, what stands in `columns`, files, rows, words of what is rejected by line
TABLES = {
    "dms_grown.grown": (
        "dms-csv", {}, "id:int", "name:string,city:string", "[{columns: [id, name]}, {columns: [id, name, city]}]",
        {
            "LOAD00000001.csv": ["1,Ann", "3,Cat"],
            "20260105-101112345.csv": ["U,1,Anna", "I,4,Dan"],
            # lines of both periods, and deletes with fewer and with more values
            "20260106-101112345.csv": ["I,2,Ben,Oslo", "U,1,Anna,Rome", "I,8,Hal", "D,4"],
            "20260107-101112345.csv": ["I,5,Eve,Bern", "I,6,Fay,Lima", "D,5,Eve,Bern,1999", "D,6,Fay", "I,7,G,Bonn,x"],
        },
        [(1, "Anna", "Rome"), (2, "Ben", "Oslo"), (3, "Cat", None), (8, "Hal", None)],
        {5: "5 values where 2 or 3 (a row) or 3 or 4 (a change) are declared"},
    ),
    # a text in front may look like an operation
    "dms_coded.coded": (
        "dms-csv", {}, "code:string", "name:string,capital:string",
        "[{columns: [code, name]}, {columns: [code, name, capital]}]",
        {
            "LOAD00000001.csv": ["I,Italy", "D,Germany", "DK,Denmark", "N,Norway"],
            "LOAD00000002.csv": ["U,Uruguay,Montevideo", "I,India,Delhi"],
            "20260106-101112345.csv": ["D,DK,Denmark", "U,D,Germany,Berlin", "D,Norway"],
        },
        [("D", "Germany", "Berlin"), ("I", "Italy", None), ("N", "Norway", None), ("U", "Uruguay", "Montevideo")],
        {2: "an operation or a value of the row", 3: "2 values, of which the first is an operation"},
    ),
    # one column was dropped and another one came: as many values, so the files tell
    "dms_swapped.swapped": (
        "dms-csv", {}, "id:int", "name:string,zip:string,city:string",
        "[{columns: [id, name, zip]}, {columns: [id, city, name], "
        "when: \"source_file >= 'dms_swapped/swapped/20260106' and source_file not like '%/LOAD%'\"}]",
        {
            "LOAD00000001.csv": ["1,Ann,11", "2,Ben,22"],
            "20260105-101112345.csv": ["U,1,Anna,12"],
            "20260106-101112345.csv": ["U,2,Oslo,Benno"],
        },
        [(1, "Anna", "12", None), (2, "Benno", None, "Oslo")],
        {},
    ),
    # the producer's time stands before the key
    "dms_timed.timed": (
        "dms-csv", {"timestamp_column": "ts"}, "id:int", "name:string", "[ts, id, name]",
        {
            "LOAD00000001.csv": [f"2026-01-05 00:00:00.000000,{key},Ann" for key in (1, 2, 3, 4)],
            "20260106-101112345.csv": [
                "D,2026-01-06 10:11:12.000000,1", "D,2026-01-06 10:11:13.000000,2,Ann,CHF",
                "D,2026-01-06 10:11:14.000000,3,", "U,2026-01-06 10:11:15.000000,4,Dan,CHF",
            ],
        },
        [(4, "Ann")],
        {4: "5 values where 3 (a row) or 4 (a change) are declared"},
    ),
    # the producer's own column stands behind the table's
    "dms_ordered.ordered": (
        "dms-csv", {"sequence_column": "SEQ"}, "id:int", "name:string,city:string",
        "[{columns: [id, name, SEQ]}, {columns: [id, name, city, SEQ]}]",
        {
            "LOAD00000001.csv": ["1,Ann,", "2,Ben,"],
            "20260105-101112345.csv": [f"U,1,Anna,{20260105101112000000000000000000001:035}"],
            "20260106-101112345.csv": [f"U,2,Ben,Oslo,{20260106101112000000000000000000001:035}", "D,1"],
        },
        [(1, "Anna", None), (2, "Ben", "Oslo")],
        {2: "2 values where 3 or 4 (a row) or 4 or 5 (a change)"},
    ),
    "dms_headed.headed": (
        "dms-csv", {"header": "true"}, "id:int", "name:string,city:string",
        "[{columns: [id, name]}, {columns: [id, name, city]}]",
        {
            "LOAD00000001.csv": ["id,name", "1,Ann", "3,Cat"],
            "20260106-101112345.csv": ["Op,id,name,city", "U,1,Anna,Rome", "I,4,Dan,Lima"],
            "20260107-101112345.csv": ["Op,id", "D,4"],
            "20260108-101112345.csv": ["Op,id,city", "U,3,Graz"],
        },
        [(1, "Anna", "Rome"), (3, "Cat", None)],
        {2: "it has no name"},
    ),
    "tungsten_grown.grown_too": (
        "tungsten-csv", {"dialect": "mysql"}, "id:int", "v:string,w:string",
        "[{columns: [id, v]}, {columns: [id, v, w]}]",
        {
            "a.csv": [staged("I", 1, 1, "a"), staged("I", 2, 2, "b"), staged("I", 3, 3, "c")],
            "b.csv": [
                staged("U", 4, 1, "a2", "w"), staged("D", 5, 2), staged("D", 6, 3, "c", "d", "e"), staged("I", 7, 4)
            ],
        },
        [(1, "a2", "w")],
        {4: "5 values where 6 or 7 are declared"},
    ),
    "arcion_grown.grown_there": (
        "arcion-csv", {}, "id:int", "v:string,w:string", "[{columns: [id, v]}, {columns: [id, v, w]}]",
        {
            "a.csv": ["1,a", "2,b", "3,c", arcion(("1", "1", 3), ("a2", "a", 3), position=2)],
            "b.csv": [
                arcion(("2", "2", 3), ("b2", "b", 3), ("w", "NULL", 1), position=3),
                # a delete whose other columns say nothing that could be right
                arcion(("NULL", "3", 2), ("NULL", "NULL", 9), ("NULL", "NULL", 1), op="D", position=4),
                "4,d,w,odd",
            ],
        },
        [(1, "a2", None), (2, "b2", "w")],
        {3: "4 values where 2 or 3 (a row) or 9 or 12 (a change) are declared"},
    ),
    "arcion_deletes.arcion_deletes": (
        "arcion-json", {}, "id:int", "n:int", None,
        {
            "a.json": [
                json.dumps({"opType": op, "cursor": json.dumps({"log": "bin.1", "position": n, "timestamp": n}), **at})
                for n, (op, at) in enumerate([
                    ("I", {"before": {}, "after": {"id": "1", "n": "1"}, "exists": {"id": "1", "n": "1"}}),
                    ("I", {"before": {}, "after": {"id": "2", "n": "1"}, "exists": {"id": "1", "n": "1"}}),
                    ("I", {"before": {}, "after": {"id": "3", "n": "1"}, "exists": {"id": "1", "n": "1"}}),
                    ("D", {"before": {"id": "1", "n": "much"}, "exists": {"id": "2", "n": "7"}}),
                    ("D", {"before": {"id": "2"}, "after": None}),
                    ("D", {"before": {"n": "1"}, "after": None, "exists": {"n": "2"}}),
                ], 1)
            ]
        },
        [(3, 1)],
        {6: "the key is id"},
    ),
    "datastream_deletes.datastream_deletes": (
        "datastream-json", {}, "id:int", "n:int,price:decimal(5,2)", None,
        {
            "a.json": [
                json.dumps(values | {"datastream_metadata": {
                    "change_type": op, "change_sequence_number": f"{n:x}", "source_timestamp": at
                }})
                for n, (op, at, values) in enumerate([
                    ("INSERT", 1724900000000, {"id": 1, "n": 1, "price": "1.00"}),
                    ("INSERT", 1724900000000, {"id": 2, "n": 1, "price": "1.00"}),
                    ("INSERT", 1724900000000, {"id": 3, "n": 1, "price": "1.00"}),
                    ("INSERT", 1724900000000, {"id": 4, "n": 1, "price": "1.00"}),
                    ("DELETE", 1724900000000, {"id": 1}),
                    ("DELETE", 1724900000000, {"id": 2, "n": "much", "price": "1.999"}),
                    ("DELETE", "yesterday", {"id": 3}),
                    ("DELETE", 1724900000000, {"id": "four"}),
                ], 1)
            ]
        },
        [(4, 1, 1)],
        {8: 'id = ["four"] does not fit int'},
    ),
}  # fmt: skip


def declare_columns(workshop, feed, columns):
    path = workshop.folder / f"models/staging/{feed}/_{feed}__sources.yml"
    text = path.read_text()
    (line,) = [line for line in text.split("\n") if "columns: [" in line]
    path.write_text(text.replace(line, f"{line[: len(line) - len(line.lstrip())]}meta: {{columns: {columns}}}"))


@pytest.fixture(scope="module")
def grown(workshop):
    """By table the rows that are left of what staging says of its lines, and line and detail of what it rejects."""
    for table, (form, settings, key, columns, periods, files, *_) in TABLES.items():
        workshop.add_table(table, key, columns, form, settings or None)
        if periods:
            declare_columns(workshop, table.partition(".")[0], periods)
        for name, lines in files.items():
            workshop.deliver(table, name, "\n".join(lines) + "\n")
    workshop.land(*(table.partition(".")[0] for table in TABLES))
    answers = {}
    for name, staged in workshop.staged(*(table.partition(".")[2] for table in TABLES)).items():
        columns, key = declared_columns(name)
        columns, changes = [column.name for column in columns], staged.collect()
        rows = rows_in_the_end([each for each in changes if each.rejection_reason is None], columns, key)
        rejected = {each.source_line: each.rejection_detail for each in changes if each.rejection_reason is not None}
        assert len(rejected) == sum(each.rejection_reason is not None for each in changes)
        answers[name] = sorted(rows), rejected
    return answers


@pytest.mark.parametrize("table", TABLES)
def test_lines_of_every_period_are_read(grown, table):
    assert grown[table.partition(".")[2]][0] == TABLES[table][-2]


@pytest.mark.parametrize("table", TABLES)
def test_what_fits_no_period_is_rejected(grown, table):
    (_, found), expected = grown[table.partition(".")[2]], TABLES[table][-1]
    assert sorted(found) == sorted(expected), found
    for line, detail in found.items():
        assert expected[line] in detail


FEED, TABLE = "dms_wider", "members"
ROWS = [(1, "Anna", "Rome"), (2, "Ben", "Oslo"), (3, "Cat", None)]


@pytest.fixture(scope="module")
def wider(workshop):
    """dms-csv-column-added, up to the build behind the second delivery; with what that build tells."""
    workshop.add_table(f"{FEED}.{TABLE}", "id:int", "name:string", "dms-csv")
    for part in ("input", "second/input"):
        for file in sorted((CASE / part / FEED / TABLE).iterdir()):
            workshop.deliver(f"{FEED}.{TABLE}", file.name, file.read_bytes())
        workshop.land(FEED)
        dbt.begin(is_same=False)
        workshop.build(f"+{TABLE}", command="run")
    (found,), untold = rejections.of_build(workshop.spark, dbt.appended)
    assert untold == []
    return workshop, rejections.troubles_of(found)


def declare_city(workshop):
    path = workshop.declaration(TABLE)
    if "city" not in path.read_text():
        name = "      - {name: name, data_type: string}\n"
        assert name in path.read_text()
        path.write_text(path.read_text().replace(name, f"{name}{name.replace('name: name', 'name: city')}", 1))


def state(workshop):
    return [
        workshop.version(f"lake.{TABLE}_changes"),
        workshop.version(f"lake.{TABLE}_merged"),
        workshop.version(f"raw.{FEED}"),
    ]


def test_a_build_says_which_period_to_declare(wider):
    workshop, (trouble,) = wider
    assert sorted(workshop.rows(f"select * from {TABLE}")) == [(1, "Anna"), (3, "Cat")]
    assert trouble == (
        f"{TABLE}: 2 lines of {FEED}.{TABLE} have one value more than declared (id, name), the first in "
        f"{FEED}/{TABLE}/20260106-101112345.csv, line 1, and were rejected. If the source has a column more since, "
        f"declare it in models/tables/wider/{TABLE}.yml, and in models/staging/{FEED}/_{FEED}__sources.yml, in "
        f"`config.meta` of the table {TABLE}, by their own names, as its lines have them:\n"
        "columns:\n  - {columns: [id, name]}\n  - {columns: [id, name, new_column]}\n"
        f"Then: highwater rebuild {TABLE} --from raw. Otherwise the lines are damaged, and stay in rejected_changes."
    )


def test_a_rebuild_that_would_lose_changes_nothing(wider):
    """The plain list is what comes to mind, and no shorter line fits it."""
    workshop, _ = wider
    declare_city(workshop)
    with pytest.raises(Exception, match="hold no column city; declared are: id, name") as refused:
        workshop.build(f"stg_{FEED}__{TABLE}_changes", command="run")
    assert "  - {columns: [id, name, city]}" in str(refused.value)
    path = workshop.folder / f"models/staging/{FEED}/_{FEED}__sources.yml"
    text = path.read_text()
    path.write_text(text.replace("columns: [id, name]", "columns: [id, name, city]"))
    before = state(workshop)
    with pytest.raises(CheckError) as refused:
        rebuild_from_raw(workshop.spark, TABLE)
    assert str(refused.value).startswith(
        f"rebuilding {TABLE} from raw would lose what the table has: 3 records that were accepted would be rejected "
        f'and 1 key that is there would be gone:\n  {FEED}/{TABLE}/20260105-101112345.csv, line 1, key {{"id":1}}: '
        "wrong_column_count: 3 values, of which the first is an operation, where 4 are declared\n"
    ), refused.value
    assert f'\n  key {{"id":3}} (last in {FEED}/{TABLE}/LOAD00000001.csv, line 2): no record' in str(refused.value)
    assert str(refused.value).endswith(f"highwater rebuild {TABLE} --from raw --accept-loss")
    with pytest.raises(CheckError, match=r"3 records that were accepted would be rejected(.|\n)*highwater replay"):
        replay(workshop.spark, TABLE)
    assert state(workshop) == before and sorted(workshop.rows(f"select id from {TABLE}")) == [(1,), (3,)]
    path.write_text(text)


def test_shorter_lines_stay_when_the_period_is_declared(wider):
    """dms-csv-column-added"""
    workshop, (trouble,) = wider
    declare_city(workshop)
    path = workshop.folder / f"models/staging/{FEED}/_{FEED}__sources.yml"
    (line,) = [line for line in path.read_text().split("\n") if "columns: [" in line]
    indent = line[: len(line) - len(line.lstrip())]
    pasted = trouble[trouble.index("columns:\n") : trouble.index("\nThen:")].replace("new_column", "city")
    lines = "\n".join([f"{indent}meta:", *(f"{indent}  {each}" for each in pasted.split("\n"))])
    path.write_text(path.read_text().replace(line, lines))
    assert "classified again from raw" in rebuild_from_raw(workshop.spark, TABLE)
    assert sorted(workshop.rows(f"select * from {TABLE}")) == ROWS
    assert workshop.value(f"select count(*) from {TABLE}_changes where rejection_reason is not null") == 0


@pytest.mark.soak
def test_a_loss_is_taken_when_it_is_accepted(wider):
    workshop, _ = wider
    path = workshop.folder / f"models/staging/{FEED}/_{FEED}__sources.yml"
    text = path.read_text()
    path.write_text(text.replace("- {columns: [id, name]}", "- {columns: [id]}"))
    said = rebuild_from_raw(workshop.spark, TABLE, accept_loss=True)
    assert said.startswith("--accept-loss: 3 records that were accepted would be rejected and 1 key"), said
    assert sorted(workshop.rows(f"select * from {TABLE}")) == ROWS[:2]
    path.write_text(text)
