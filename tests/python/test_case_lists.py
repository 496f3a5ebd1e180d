"""Each case of the lists that the project was built after has a test that shows its result.

D: Datastream's append mode. T: Tungsten's batch files. A: Arcion's change records. F: the catalogue of what change
formats do to those who read them.
"""

import subprocess
import sys

import pytest
from conftest import PROJECT

FORMATS = "test_cases_formats.py::test_"
DATASTREAM = "test_cases_datastream.py::test_"
READERS = "test_readers.py::test_"
WHOLE = "test_epochs_truncates_replay.py::test_"
CASES = {
    **{f"D{n}": f"{DATASTREAM}live_rows[D{n}" for n in (1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13)},
    "D10": DATASTREAM + "d10",
    **dict.fromkeys(["D7", "D16", "D17"], "test_article.py::test_d7_d16_d17"),
    "D14": "test_example.py::test_d14",
    **{f"T{n}": f"{FORMATS}tungsten[T{n}" for n in (1, 2, 3, 4, 5, 6, 12, 13, 14, 16, 18)},
    "T7": READERS + "values_of_tungsten[T7 vertica",
    "T8": READERS + "values_of_tungsten[T8 mysql",
    "T9": READERS + "values_of_tungsten[T9 redshift",
    "T10": READERS + "values_of_tungsten[T10 hive",
    "T11": READERS + "values_of_tungsten[T11 vertica",
    "T17": READERS + "t17",
    "T19": WHOLE + "t19",
    "T20": WHOLE + "t20",
    **{f"A{n}": f"{FORMATS}arcion[A{n}" for n in (1, 2, 3, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17)},
    **{f"A{n}": f"{FORMATS}arcion_csv[A{n}]" for n in (11, 12, 13, 18)},
    "A4": "test_seeds.py::test_a4",
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
def collected():
    command = [sys.executable, "-m", "pytest", "--collect-only", "--soak", "tests/python"]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True).stdout


@pytest.mark.parametrize("case", CASES)
def test_case_has_a_test(collected, case):
    assert f"tests/python/{CASES[case]}" in collected


def test_a_case_whose_test_is_gone_is_noticed(collected):
    assert FORMATS + "tungsten[T99" not in collected


def test_no_number_of_the_catalogue_is_left_out():
    numbers = {case.split()[0] for case in CASES.keys() | WITHOUT_A_TEST}
    assert {f"F{number}" for number in range(1, 35)} <= numbers
