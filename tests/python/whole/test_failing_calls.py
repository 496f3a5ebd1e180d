"""Real calls of the system that really fail, at many points of a command: a sentence, and the same rows afterwards."""

import json
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fault_points import KINDS, Commands, Faults, calls_of
from highwater.catalog.rendering import render
from repository import PROJECT
from workshop import change, copy_project, environment_of_a_user, never_due

HIGHWATER = [sys.executable, "-m", "highwater.cli"]
TRACE = re.compile(r"Traceback \(most recent|^\s+at [\w.$]+\(|Logging error|File \".*\", line \d+", re.MULTILINE)
REASON = {
    "ENOSPC": "No space left",
    "EIO": "Input/output error",
    "EROFS": "Read-only",
    "EACCES": "Permission denied",
    "killed": "Java process ended",
}
BUILD = (
    "build",
    "--select",
    "+table1",
    "ledger",
    "rejection_reasons",
    "rejected_changes",
    "--exclude-resource-types",
    "test",
    "unit_test",
)
WORK = {
    "land": ("land", "datastream_user1"),
    "build": BUILD,
    "compact": ("compact", "table1"),
    "compact in full": ("compact", "table1", "--method", "full"),
    "rebuild": ("rebuild", "table1"),
    "rebuild from raw": ("rebuild", "table1", "--from", "raw"),
    "replay": ("replay", "table1"),
    "vacuum": ("vacuum", "table1"),
}
HELD = "    select *\n    from {{ source("
HELD_BACK = """\
    select
        * except (problem),
        case when source_file like '%/held-%' then 'malformed_record: held back' else problem end as problem
    from {{ source("""


class Lake:
    """A project with one example, its lake, and a process of commands in which calls can be made to fail."""

    def __init__(self, folder: Path):
        self.folder, self.project, self.delivered, self.held = folder, folder / "project", 0, 0
        copy_project(PROJECT, self.project, ("user1",))
        settings = self.project / "dbt_project.yml"
        settings.write_text(never_due(settings.read_text()))
        self.count_table1_alone()
        self.faults, self.below = Faults(folder), folder / "lake"
        self.environment = environment_of_a_user() | self.faults.environment | {
            "HIGHWATER_LAKE": str(self.below),
            "HIGHWATER_LANDING": str(self.project / "landing"),
            "HIGHWATER_EXPORTS": str(self.project / "exports"),
            "HIGHWATER_SHOWN": str(folder / "shown"),
        }  # fmt: skip
        self.commands, self.calls, self.points = Commands(self.project, self.environment), {}, []
        self.version_with_pending_rows = None

    def count_table1_alone(self):
        """Let the ledger and the lists ask no log but table1's; the others are not built."""
        (self.project / "macros/operations/logged_tables.sql").write_text(
            render("logged_tables.sql", entities=["table1"])
        )

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

    def build_first(self):
        """Build what the example delivers; those rows stay."""
        self.run(*BUILD)
        self.rows_of_example = dict(self.commands.rows("select col1, col2 from table1"))
        assert len(self.rows_of_example) == 188

    def deliver(self):
        """Deliver two new rows and a change of an older one."""
        self.delivered += 1
        self.version_with_pending_rows = None
        number = self.delivered
        records = [
            change("INSERT", f"20000/0/{number:x}A", {"COL1": f"new{number}a", "COL2": f"v{number}"}),
            change("INSERT", f"20000/0/{number:x}B", {"COL1": f"new{number}b", "COL2": f"v{number}"}),
            change("UPDATE-INSERT", f"20000/0/{number:x}C", {"COL1": "changed", "COL2": f"v{number}"}),
        ]
        self._write(f"new-{number:04}", records)

    def have_pending_rows(self):
        """Build some, or take those out of the base again that a compaction has written."""
        if self.version_with_pending_rows is not None:
            self.run("sql", f"restore table lake.table1_merged to version as of {self.version_with_pending_rows}")
            return
        self.deliver()
        self.run(*BUILD)
        newest = self.commands.rows("describe history lake.table1_merged limit 1")
        self.version_with_pending_rows = newest[0][0]
        log, base = "select max(log_batch) from lake.table1_changes", "select max(log_batch) from lake.table1_merged"
        assert self.commands.rows(f"select ({log}) > ({base})") == [[True]]

    def hold(self):
        """Deliver a row that a build rejects, and let the models accept it then."""
        self.held += 1
        self.version_with_pending_rows = None
        self._write(f"held-{self.held:04}", [change("INSERT", f"30000/0/{self.held:x}", {"COL1": f"held{self.held}"})])
        (model,) = self.project.glob("models/staging/datastream_user1/stg_*__table1_changes.sql")
        accepting = model.read_text()
        model.write_text(accepting.replace(HELD, HELD_BACK))
        assert model.read_text() != accepting
        self.run(*BUILD)
        assert f"held{self.held}" not in dict(self.commands.rows("select col1, col2 from table1"))
        model.write_text(accepting)

    def _write(self, name: str, records: list[dict]):
        path = self.project / f"landing/datastream_user1/table1/{name}.json"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))

    def is_landed_whole(self):
        """Each delivered file and record is in raw once."""
        landed = self.commands.rows(
            "select entry, count(*), count(distinct struct(source_file, source_line)) from raw.datastream_user1 "
            "where source_file like '%/new-%' group by entry order by entry"
        )
        number = self.delivered
        assert landed == ([["file", number, number], ["record", 3 * number, 3 * number]] if number else [])

    def is_built_whole(self):
        """The rows, the verdicts and the ledger are those of an undisturbed lake."""
        self.is_landed_whole()
        numbers = range(1, self.delivered + 1)
        expected = self.rows_of_example | {f"new{number}{row}": f"v{number}" for number in numbers for row in "ab"}
        expected |= {"changed": f"v{self.delivered}"} if self.delivered else {}
        expected |= {f"held{number}": None for number in range(1, self.held + 1)}
        rows = self.commands.rows("select col1, col2 from table1")
        assert len(rows) == len(expected) and dict(rows) == expected
        verdicts = self.commands.rows(
            "select count(*), count_if(verdict in ('applied', 'superseded')) from table1_changes "
            "where source_file like '%/new-%'"
        )
        assert verdicts == [[3 * self.delivered, 3 * self.delivered]]
        held = self.commands.rows(
            "select count(distinct source_file), count_if(verdict = 'applied') from table1_changes "
            "where source_file like '%/held-%'"
        )
        assert held == [[self.held, self.held]]
        counted = self.commands.rows(
            "select sum(read), sum(applied + superseded + duplicate + rejected), (select count(*) from table1_changes) "
            "from ledger where table_name = 'table1'"
        )
        assert len(set(counted[0])) == 1, counted

    def leftovers(self) -> list[str]:
        """What a command that has ended well leaves nowhere: half written files, tables that nobody knows."""
        known = {
            f"{schema}.{row[1]}" for schema in ("raw", "lake") for row in self.commands.rows(f"show tables in {schema}")
        }
        found = [
            str(path) for path in self.below.glob("**/*")
            if ".tmp" in path.suffixes and "metastore" not in path.parts
        ]  # fmt: skip
        for folder in self.below.glob("tables/*.db/*"):
            if f"{folder.parent.name.removesuffix('.db')}.{folder.name}" not in known:
                found.append(str(folder))
        return found

    def half_states(self) -> list[Path]:
        """State files that are not whole; of the lease that is said where it is read."""
        files = [*self.below.glob("landings/*.json"), *self.below.glob("last_build.json")]

        def is_whole(path: Path) -> bool:
            try:
                return isinstance(json.loads(path.read_bytes()), dict)
            except ValueError:
                return False

        return [path for path in files if not is_whole(path)]

    def count_calls(self, name: str):
        """See how many calls a command makes when nothing disturbs it."""
        with self.faults.at(0, "EIO", self.below, self.below / "metastore") as control:
            self.run(*WORK[name])
        self.calls[name] = {kind: calls_of(kind, control) for kind in KINDS}

    def disturbed(self, name: str, kind: str, place: float) -> bool:
        """Run a command in which a call fails, at a place from 0 to 1; what it shows is sentences.

        Returns: whether it claims to be done.
        """
        number = 1 + int(place * self.calls[name][kind])
        with self.faults.at(number, kind, self.below, self.below / "metastore") as control:
            code, shown = self.commands.run(*WORK[name])
        point = f"{name}, {kind} at call {number} of {self.calls[name][kind]}: exit code {code}"
        print(point, [line for line in shown.splitlines() if "failed" in line or REASON[kind] in line][-1:])
        self.points.append((name, kind, control.hits))
        assert not TRACE.search(shown), (point, shown[-3000:])
        assert code in ((0, 1, 2, -9) if kind == "killed" else (0, 1, 2)), (point, shown[-3000:])
        assert self.half_states() == [], point
        if code in (1, 2):
            assert control.hits, (point, shown[-3000:])
            assert re.search(REASON[kind], shown), (point, shown[-3000:])
        return code == 0


def look(lake: Lake, name: str):
    """Look at what a command was to make, once it says that it is done."""
    lake.is_landed_whole() if name == "land" else lake.is_built_whole()


def try_points(lake: Lake, name: str, points: list[tuple[str, float]]):
    """Disturb a command at points, each a kind and a place; run it again each time, and look at everything."""

    def prepare():
        if name in ("land", "build"):
            lake.deliver()
        elif name.startswith("compact"):
            lake.have_pending_rows()
        elif name == "replay":
            lake.hold()

    if name not in lake.calls:
        prepare()
        lake.count_calls(name)
    for kind, place in points:
        if not lake.calls[name][kind]:
            continue
        prepare()
        is_done = lake.disturbed(name, kind, place)
        if is_done and name != "replay":  # it says that the row arrives with the next build
            look(lake, name)
        lake.run(*WORK[name])
        if name == "replay":
            lake.run(*BUILD)
        look(lake, name)
        left = lake.leftovers()
        assert not left, left


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    lake = Lake(tmp_path_factory.mktemp("points"))
    lake.build_first()
    yield lake
    lake.commands.end()


# in each part of a command one, the kinds in turn
TWENTY = {"land": 9, "build": 1, "compact": 4, "rebuild": 4, "vacuum": 2}


@pytest.mark.soak
def test_twenty_points(lake):
    kinds = ["ENOSPC", "EIO", "EROFS", "EACCES"]
    for turn, (name, count) in enumerate(TWENTY.items()):
        places = [(place + 0.5) / count for place in range(count)]
        try_points(lake, name, [(kinds[(turn + number) % 4], place) for number, place in enumerate(places)])
    assert len(lake.points) == 20 and sum(bool(hits) for *_, hits in lake.points) >= 18
    # negative control: half a state file, and what nobody knows, would have been seen
    half, nobody = lake.below / "landings/half.json", lake.below / "tables/lake.db/nobody"
    half.write_text('{"number": 1')
    nobody.mkdir()
    assert lake.half_states() == [half] and lake.leftovers() == [str(nobody)]
    half.unlink()
    nobody.rmdir()


@pytest.mark.soak
@pytest.mark.parametrize("name", WORK)
def test_a_command_that_is_disturbed_at_many_points(lake, name):
    seed = random.randrange(10**9)
    print("seed", seed)
    chance = random.Random(seed)
    before = len(lake.points)
    points = [(kind, (part + chance.random()) / 6) for part in range(6) for kind in KINDS]
    chance.shuffle(points)
    try_points(lake, name, points)
    hits = [bool(hits) for *_, hits in lake.points[before:]]
    assert sum(hits) >= 0.6 * len(hits) >= 10


@pytest.mark.soak
@pytest.mark.parametrize("name", ["land", "build", "status", "query", "reconcile"])
def test_a_process_that_is_disturbed_or_killed_from_its_start_on(lake, name):
    """The metastore's files too, which a process reads before anything else."""
    lake.run("dbt", "run", "--select", "stg_exports_user1__table1")
    lake.commands.end()
    command = {"build": BUILD, "query": ("query", "select count(*) as n from table1")}.get(name, (name,))

    def ended_process():
        process = lake.process(*command)
        return process.communicate()[1], process.returncode

    with lake.faults.at(0, "EIO", lake.below) as control:
        _, undisturbed = ended_process()
    calls = {kind: calls_of(kind, control) for kind in KINDS}
    for kind in filter(calls.get, KINDS):
        with lake.faults.at(1 + int(random.random() * calls[kind]), kind, lake.below):
            told, code = ended_process()
        print(name, kind, calls[kind], code, told.splitlines()[-1:])
        assert not TRACE.search(told), told[-3000:]
        assert code in {0, 2, -9, undisturbed, 3 if name == "reconcile" else 1}, told[-3000:]
        assert told or code in (0, -9, undisturbed)
        told, code = ended_process()
        assert code == undisturbed, told[-3000:]
    lake.is_built_whole()


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
    assert told == "highwater: stopped.\n"
    lake.environment["LC_ALL"] = "C"  # as cron has it
    process = lake.process("land", "datastream_user1")
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0, told
