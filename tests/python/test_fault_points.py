"""Real calls of the system that really fail, at many points of a command: a sentence, and the same rows afterwards."""

import functools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fault_points import KINDS, Commands, Faults
from workshop import change, copy_project

PROJECT = Path(__file__).parents[2]
HIGHWATER = [sys.executable, "-m", "highwater.cli"]
TRACE = re.compile(r"Traceback \(most recent|^\s+at [\w.$]+\(|Logging error|File \".*\", line \d+", re.MULTILINE)
FAILING = [kind for kind in KINDS if kind != "killed"]


class Lake:
    """A project with one example, its lake, and a process of commands in which calls can be made to fail."""

    def __init__(self, folder: Path):
        self.folder, self.project, self.delivered = folder, folder / "project", 0
        copy_project(PROJECT, self.project, ("user1",))
        settings = self.project / "dbt_project.yml"
        settings.write_text(re.sub("pending_percent: .*", "pending_percent: 100000", settings.read_text()))
        self.faults, self.below = Faults(folder), folder / "lake"
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(("HIGHWATER_", "DBT_", "SPARK_"))
        }
        self.environment = own | self.faults.environment | {
            "HIGHWATER_LAKE": str(self.below),
            "HIGHWATER_LANDING": str(self.project / "landing"),
            "HIGHWATER_EXPORTS": str(self.project / "exports"),
            "HIGHWATER_SHOWN": str(folder / "shown"),
        }  # fmt: skip

    @functools.cached_property
    def commands(self):
        return Commands(self.project, self.environment)

    def process(self, *command) -> subprocess.Popen:
        """Start a command in a process of its own."""
        return subprocess.Popen(
            [*HIGHWATER, *command], cwd=self.project, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *command):
        """Run a command to its good end."""
        code, shown = self.commands.run(*command)
        assert code == 0, shown[-3000:]
        return shown

    def deliver(self) -> str:
        """Deliver two new rows and a change of an older one; return the name of their file."""
        self.delivered += 1
        number = self.delivered
        records = [
            change("INSERT", f"20000/0/{number:x}A", {"COL1": f"new{number}a", "COL2": f"v{number}"}),
            change("INSERT", f"20000/0/{number:x}B", {"COL1": f"new{number}b", "COL2": f"v{number}"}),
            change("UPDATE-INSERT", f"20000/0/{number:x}C", {"COL1": "changed", "COL2": f"v{number}"}),
        ]
        path = self.project / f"landing/datastream_user1/table1/new-{number:04}.json"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return f"datastream_user1/table1/{path.name}"

    def landed(self) -> list:
        """How often each of the delivered files and records is in raw."""
        return self.commands.rows(
            "select entry, count(*), count(distinct source_file, source_line) from raw.datastream_user1 "
            "where source_file like '%/new-%' group by entry order by entry"
        )

    def is_landed_whole(self):
        number = self.delivered
        assert self.landed() == [["file", number, number], ["record", 3 * number, 3 * number]]
        left = [path for path in self.below.glob("*") if path.name.endswith(".tmp")]
        assert not left

    def is_built_whole(self):
        self.is_landed_whole()
        number = self.delivered
        counts = "(select count(*) from table1), (select col2 from table1 where col1 = 'changed')"
        assert self.commands.rows(f"select {counts}") == [[188 + 2 * number + 1, f"v{number}"]]
        judged = "select sum(read), sum(applied + superseded + duplicate + rejected) from ledger"
        records = 1000 + 3 * number
        assert self.commands.rows(f"{judged} where table_name = 'table1'") == [[records, records]]

    def calls(self, kind: str, *command) -> int:
        """How many calls of a kind there are in a command that nothing disturbs."""
        with self.faults.at(0, kind, self.below / "tables") as control:
            self.run(*command)
        return control.count

    def disturbed(self, number: int, kind: str, *command) -> int:
        """Run a command in which a call fails; what it shows is sentences. Returns how many calls failed."""
        with self.faults.at(number, kind, self.below / "tables") as control:
            code, shown = self.commands.run(*command)
        assert not TRACE.search(shown), shown[-3000:]
        assert code in (0, 1, 2), (code, shown[-3000:])
        if code:
            words = {
                "ENOSPC": "No space left",
                "EIO": "Input/output error",
                "EROFS": "Read-only",
                "EACCES": "ermission",
            }
            assert re.search(rf"{words[kind]}|DELTA_|[Ff]ailed", shown), shown[-3000:]
        return control.hits


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    lake = Lake(tmp_path_factory.mktemp("points"))
    yield lake
    lake.commands.end()


def points(count: int, calls: int, seed: int) -> list[int]:
    """Choose as many points, in each part of a command one."""
    chance = random.Random(seed)
    return [1 + int((place + chance.random()) * calls / count) for place in range(count)]


@pytest.mark.soak
def test_a_landing_that_is_disturbed_at_many_points(lake):
    land = ("land", "datastream_user1")
    lake.run(*land)
    hits = 0
    for kind in FAILING:
        lake.deliver()
        calls = lake.calls(kind, *land)
        for number in points(2, calls, seed=len(kind)):
            lake.deliver()
            hits += bool(lake.disturbed(number, kind, *land))
            lake.run(*land)
            lake.is_landed_whole()
    assert hits >= 6


WORK = {
    "land": ("land",),
    "build": ("build",),
    "compact": ("compact", "table1"),
    "compact in full": ("compact", "table1", "--method", "full"),
    "rebuild": ("rebuild", "table1"),
    "rebuild from raw": ("rebuild", "table1", "--from", "raw"),
    "replay": ("replay", "customers"),
    "vacuum": ("vacuum",),
}


@pytest.mark.soak
@pytest.mark.parametrize("kind", FAILING)
@pytest.mark.parametrize("name", WORK)
def test_a_command_that_is_disturbed_at_many_points(lake, name, kind):
    command = WORK[name]

    def prepare():
        lake.deliver()
        if name not in ("land", "build"):
            lake.run("build")

    prepare()
    calls = lake.calls(kind, *command)
    seed = random.randrange(10**9)
    print("seed", seed, "calls", calls)
    for number in points(7, calls, seed) if calls else []:
        prepare()
        lake.disturbed(number, kind, *command)
        lake.run(*command)
        lake.run("build")
        lake.is_built_whole()


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["land", "build", "status", "query", "reconcile"])
def test_a_process_that_is_disturbed_or_killed_from_its_start_on(tmp_path_factory, name, kind):
    lake = Lake(tmp_path_factory.mktemp("processes"))
    lake.run("build")
    lake.commands.end()
    command = {"query": ["query", "select count(*) as n from table1"]}.get(name, [name])

    def ended_process():
        process = lake.process(*command)
        return process.communicate()[1], process.returncode

    with lake.faults.at(0, kind, lake.below) as control:
        _, undisturbed = ended_process()
    for number in points(4, control.count, random.randrange(10**9)):
        with lake.faults.at(number, kind, lake.below):
            told, code = ended_process()
        assert not TRACE.search(told), told[-3000:]
        assert code in ((0, 2, 3, -9) if name == "reconcile" else (0, 1, 2, -9)), told[-3000:]
        assert told or code in (0, 3, -9)
        told, code = ended_process()
        assert code == undisturbed, told[-3000:]


@pytest.mark.soak
def test_java_that_is_killed_and_ctrl_c_while_spark_starts(tmp_path):
    lake = Lake(tmp_path / "größe")
    with lake.faults.at(4, "killed", lake.below / "tables") as control:
        process = lake.process("land", "datastream_user1")
        _, told = process.communicate(timeout=300)
    assert control.hits and process.returncode == 2, told
    assert "Spark's Java process ended (killed by signal 9" in told and len(told.splitlines()) == 1, told
    process = lake.process("reconcile")
    while not subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True).stdout:
        assert process.poll() is None
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert told == "highwater: stopped; run it again to finish what it was doing.\n"
    lake.environment["LC_ALL"] = "C"  # as cron has it
    process = lake.process("land", "datastream_user1")
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0, told
