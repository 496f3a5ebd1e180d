"""Many tables in one project: everything ends, and no statement grows with their number or nests subqueries."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fleet_of import PER_TABLE
from repository import PROJECT
from workshop import environment_of_a_user

pytestmark = pytest.mark.soak

FEW, MANY = 20, 200
# Spark has 16 threads for subqueries, and one that waits for another keeps its thread
SUBQUERIES = 6


def in_a_process_of_its_own(*command, cwd=PROJECT, **environment) -> str:
    """Run a command without this process's settings; return what it printed."""
    arguments, settings = [sys.executable, *map(str, command)], environment_of_a_user() | environment
    answer = subprocess.run(arguments, cwd=cwd, env=settings, capture_output=True, text=True, timeout=3000)
    assert answer.returncode == 0, (answer.stdout + answer.stderr)[-3000:]
    return answer.stdout


def fleet_of(tables: int, folder: Path) -> dict:
    return json.loads(in_a_process_of_its_own(PROJECT / "tests/python/fleet_of.py", tables, folder).splitlines()[-1])


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return fleet_of(FEW, tmp_path_factory.mktemp("few"))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return fleet_of(MANY, tmp_path_factory.mktemp("many"))


def grown(few: dict, many: dict) -> list[str]:
    """Return the kinds of statements that are longer where there are more tables, but for some digits of a number."""
    return [kind for kind, size in many["kinds"].items() if size > few["kinds"].get(kind, size) + 60]


def nested(seen: dict) -> list[str]:
    return [kind for kind, subqueries in seen["subqueries"].items() if subqueries > SUBQUERIES]


def test_everything_ends_with_the_counts_of_all_tables(many):
    assert {"error", "fail", "skipped"}.isdisjoint([*many["first"].values(), *many["operations"].values()])
    counts = {name: count * MANY for name, count in PER_TABLE.items()}
    assert many["counts"] == counts | {"published": MANY}
    assert [
        line for line in many["summary"] if re.match(r"  fleet_\d+ +3 rows now   from 7 records.*1 rejected", line)
    ][-1:]
    assert (
        len([line for line in many["summary"] if re.match(r"  fleet_\d+ +3 rows now   from 7 records", line)]) == MANY
    )
    assert [row[1:] for row in many["status"]] == [[7, 1, 0]] * MANY
    assert many["docs"] and many["queried"] == 3
    # no export has come: that is said of each table
    assert many["reconciled"] == MANY


def test_a_build_with_nothing_new_asks_no_table(many):
    """The publication asks its logs; the other models ask their feed, the ledger and their marks."""
    assert many["idle"] < 40 + 2 * MANY


def test_no_statement_grows_with_the_number_of_tables(few, many):
    assert [kind for kind in grown(few, many) if not is_publication(kind)] == []
    assert grown(few["planted"], many["planted"]), "the summary as it once was is found"


def is_publication(kind: str) -> bool:
    """Its row holds a number of each table of its group, and so does the statement that writes it."""
    return "as publication" in kind or "everything_publications" in kind


def test_no_statement_nests_subqueries_in_numbers(many):
    assert nested(many) == []
    assert nested(many["planted"]), "the summary as it once was is found"


CASES = {"build-hangs-with-16-debezium-tables": 17}


@pytest.mark.parametrize("tables", CASES.values(), ids=CASES)
def test_case(tables, tmp_path):
    """A build of as many tables that declare truncates as Spark has threads for subqueries ends with its summary."""
    make = f"import fleet; from pathlib import Path; folder = Path({str(tmp_path)!r})\n"
    make += f"names = fleet.make_fleet(Path({str(PROJECT)!r}), folder / 'project', {tables})\n"
    make += "[fleet.deliver(folder / 'landing', name, 0, 1) for name in names]"
    path = os.pathsep.join([str(PROJECT / "src"), str(PROJECT / "scripts/bench")])
    in_a_process_of_its_own("-c", make, PYTHONPATH=path)
    (tmp_path / "lake").mkdir()
    settings = {"HIGHWATER_LAKE": str(tmp_path / "lake"), "HIGHWATER_LANDING": str(tmp_path / "landing")}
    words = in_a_process_of_its_own(
        "-m", "highwater.cli", "build", "--exclude-resource-type", "test", cwd=tmp_path / "project",
        PYTHONPATH=path, **settings,
    )  # fmt: skip
    assert len(re.findall(r"^  fleet_\d+ +1 rows now   from 1 record", words, re.M)) == tables, words
