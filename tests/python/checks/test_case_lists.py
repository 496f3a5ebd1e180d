"""Each case of the lists that the project was built after has a test that shows its result.

D: Datastream's append mode. T: Tungsten's batch files. A: Arcion's change records. F: the catalogue of what change
formats do to those who read them.
"""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from highwater.formats.documents import IS_RECORD, NAMED_TABLE, json_records
from highwater.formats.formats import DEBEZIUM, TABLE_IN_RECORDS
from highwater.formats.formats import FORMATS as FEED_FORMATS
from highwater.formats.readers import READERS as READERS_OF_FORMATS
from highwater.scaffold.found_columns import IMAGES
from highwater.upkeep.resync import clock_of
from repository import COLLECTED, PROJECT

FORMATS = "test_tungsten_arcion_debezium.py::test_"
DATASTREAM = "test_datastream.py::test_"
READERS = "test_readers.py::test_"
COMPACTION = "test_compaction.py::test_"
EXTRACTION = "test_extract.py::test_"
WHOLE = "test_epochs_truncates_replay.py::test_"
CASES = {
    **{f"D{n}": f"{DATASTREAM}live_rows[D{n}" for n in (1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13)},
    "D10": DATASTREAM + "d10",
    **dict.fromkeys(["D7", "D16", "D17"], "test_article.py::test_d7_d16_d17"),
    "D14": "test_example.py::test_d14",
    "D14 the same in the comparison": "test_comparison.py::test_case[D14]",
    "D15": "test_reconcile_command.py::test_d15_",
    "D18": "test_versions.py::test_d18",
    "D18 in a snapshot": "test_dbt_snapshot.py::test_d18_",
    **{f"T{n}": f"{FORMATS}tungsten[T{n}" for n in (1, 2, 3, 4, 5, 6, 12, 13, 14, 16, 18)},
    "T7": READERS + "values_of_tungsten[T7 vertica",
    "T8": READERS + "values_of_tungsten[T8 mysql",
    "T9": READERS + "values_of_tungsten[T9 redshift",
    "T10": READERS + "values_of_tungsten[T10 hive",
    "T11": READERS + "values_of_tungsten[T11 vertica",
    "T11 the comparison sees it": "test_comparison.py::test_case[T11",
    "G16 the comparison sees it": "test_comparison.py::test_case[G16",
    "T17": READERS + "t17",
    "T19": WHOLE + "t19",
    "T20": WHOLE + "t20",
    **{f"A{n}": f"{FORMATS}arcion[A{n}" for n in (1, 2, 3, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17)},
    **{f"A{n}": f"{FORMATS}arcion_csv[A{n}]" for n in (11, 12, 13, 18)},
    "A4": "test_documented_samples.py::test_a4",
    **{f"C{n}": f"{DATASTREAM}live_rows[C{n}" for n in (1, 2, 3, 4, 5, 14, 15, 16)},
    **{f"C{n}": f"{COMPACTION}c{n}_" for n in (6, 8, 9, 10)},
    "C7": "test_example.py::test_a_build_with_nothing_new_writes_no_version",
    "C11": COMPACTION + "readers_see_whole_states_only",
    "C12": COMPACTION + "c12_of_two_writers",
    "C12 the lease": "test_commands.py::test_with_a_second_writer",
    "C13 another column": "test_schema_drift.py::test_add",
    "C13 a changed type": "test_values.py::test_a_wider_type_is_taken",
    **{f"G{n}": f"{EXTRACTION}g{n}_" for n in (1, 10, 11, 12, 14, 15, 18)},
    "G2": DATASTREAM + "live_rows[C1]",
    "G3": COMPACTION + "g3_g17_every_method",
    "G4": EXTRACTION + "g3_and_g4",
    "G5": COMPACTION + "g5_",
    "G6": COMPACTION + "g6_",
    "G7": COMPACTION + "g7_",
    "G8": EXTRACTION + "g8_g9_insert_only",
    "G9": EXTRACTION + "g8_g9_insert_only",
    "G13": COMPACTION + "g13_",
    "G16": EXTRACTION + "g16_row_versions",
    "G17": COMPACTION + "g3_g17_every_method",
    "T15": "test_publishing.py::test_t15",
    **{f"F{n}": f"{FORMATS}debezium[{n}-" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 16, 17, 19, 29)},
    "F10 width and case of hexadecimal sections": DATASTREAM + "live_rows[D6-case]",
    "F12 positions that start lower after a failover": WHOLE + "a_resync",
    "F18 truncate between inserts": WHOLE + "a_truncate_hides",
    "F20 images of the old row": DATASTREAM + "live_rows[D4-same-key]",
    "F21 deletes without values": "test_values.py::test_a_delete_is_told_by_its_key",
    "F22 decimals as text and number, to the digit": "test_values.py::test_value[n=",
    "F23 dates and times": "test_values.py::test_value[t=",
    "F23 the infinite ones": READERS + "avro_values_of_every_type",
    "F24 numbers beyond 2^53": "test_example.py::test_values_survive",
    "F25 unsigned numbers beyond 2^63": READERS + "parquet_values_of_every_type",
    "F26 NULL in a part of the key": FORMATS + "arcion_verdicts[A8]",
    "F27 the word NULL": FORMATS + "arcion_csv[A8]",
    "F28 files of a full load": READERS + "dms_load_files",
    "F30 a table without a key": WHOLE + "t20",
    "F32 columns that come and go": "test_schema_drift.py::test_",
    "F33 names in another case": "test_values.py::test_broken_records",
    "F34 records of other tables": WHOLE + "records_of_undeclared_tables",
}
# F31: nobody can tell it from the value; docs/formats.md says so
WITHOUT_A_TEST = {"F31 a default of the source in the place of NULL"}


@pytest.fixture(scope="module")
def collected(request):
    """The names of all tests, whichever of them run."""
    names = request.config.stash[COLLECTED]
    if {name.partition("::")[0] for name in names} >= {
        str(path.relative_to(PROJECT)) for path in PROJECT.glob("tests/python/*/test_*.py")
    }:
        return "\n".join(names)
    command = [sys.executable, "-m", "pytest", "--collect-only", "--soak", "tests/python"]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True).stdout


@pytest.mark.parametrize("case", CASES)
def test_case_has_a_test(collected, case):
    assert f"/{CASES[case]}" in collected


def test_a_case_whose_test_is_gone_is_noticed(collected):
    assert FORMATS + "tungsten[T99" not in collected


def test_no_number_of_the_catalogue_is_left_out():
    numbers = {case.split()[0] for case in CASES.keys() | WITHOUT_A_TEST}
    assert {f"F{number}" for number in range(1, 35)} <= numbers


def test_every_format_is_known_wherever_formats_are_listed():
    """What a new format must be added to; carried_fields and source_of_records raise by themselves.

    Those whose records are declared are read by what is declared, wherever that is.
    """
    declared = {name for name, format in FEED_FORMATS.items() if format.macro == "declared_changes"}
    delivered = {name for name, format in FEED_FORMATS.items() if format.is_delivered}
    read = {name for name, format in FEED_FORMATS.items() if format.dialect} | READERS_OF_FORMATS.keys()
    assert delivered == read | {"dms-parquet", "parquet"}
    in_records = {name for name, format in FEED_FORMATS.items() if TABLE_IN_RECORDS in format.layouts}
    assert in_records - declared == NAMED_TABLE.keys()
    assert READERS_OF_FORMATS.keys() - declared == IMAGES.keys()
    documents = {name for name, reader in READERS_OF_FORMATS.items() if reader is json_records}
    assert documents - declared <= IS_RECORD.keys()
    clocks = (PROJECT / "macros/staging/order/clock_of_record.sql").read_text()
    timed = {name for name in delivered if f"'{name}'" in clocks}
    # a full load of Tungsten's has no time of its own
    assert timed == {
        name
        for name in delivered - declared
        if clock_of(SimpleNamespace(format=name, options=SimpleNamespace(change=None)), {})
    } | {"tungsten-csv"}
    reads = (PROJECT / "macros/staging/records/source_of_records.sql").read_text().replace("'debezium-'", str(DEBEZIUM))
    assert [name for name in timed if f"'{name}'" not in reads] == []
    for format in FEED_FORMATS.values():
        assert list(PROJECT.glob(f"macros/staging/*/{format.macro}.sql")) != []
    page = (PROJECT / "docs/formats.md").read_text()
    assert [name for name in delivered if f"`{name}`" not in page] == []
