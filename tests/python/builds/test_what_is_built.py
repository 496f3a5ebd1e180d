"""A build costs nothing for tables of which nothing has landed, and its rows are those of a build of everything."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from fault_points import Commands
from highwater.builds import account, build, last_build
from highwater.builds.landing_report import Landed
from highwater.catalog.feeds import Feed
from highwater.formats.formats import ReadOptions
from highwater.runtime.errors import CheckError
from highwater.spark import dbt, untold
from repository import PROJECT
from workshop import environment_of_a_user

MADE = "import fleet; from pathlib import Path; fleet.make_fleet(Path({project!r}), Path.cwd(), 3)"
DELIVERED = "import fleet; from pathlib import Path; fleet.deliver(Path('examples/landing'), {table!r}, {batch}, 20)"
ROWS = "select count(*), sum(hash(*)) from lake.{}"
FLEET = "debezium_fleet"


class Rows:
    """A session that has these rows for every question, and keeps the questions."""

    def __init__(self, *names):
        self.names, self.asked = names, []

    def sql(self, text):
        self.asked.append(text)
        return self

    def collect(self):
        from pyspark.sql import Row

        return [Row(source_table=name) for name in self.names]


def feed(name: str, role: str = "changes", **source_tables) -> dict[str, Feed]:
    options = ReadOptions("debezium-json")
    return {name: Feed(name, role, ("orders", "lines"), "folder", options, source_tables=source_tables)}


@pytest.mark.parametrize(
    ("given", "selected"),
    [
        (["--select", "+orders+", "lines"], ["+orders+", "lines"]),
        (["--threads", "2", "-s", "+orders+", "--exclude", "lines"], ["+orders+"]),
        (["--models=+orders+", "--vars={audit: true}"], ["+orders+"]),
        (["--exclude", "orders"], []),
        ([], []),
    ],
)
def test_a_selection_has_the_ledger_and_the_lists(given, selected):
    """Of dbt's own command line, which is asked what it makes of the arguments."""
    from dbt.cli.main import cli

    folders = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT / "profiles")]
    made = cli.commands["build"].make_context("build", [*last_build.with_operations(given), *folders])
    before = cli.commands["build"].make_context("build", [*given, *folders])
    others = {name: value for name, value in made.params.items() if name != "select"}
    assert others == {name: value for name, value in before.params.items() if name != "select"}
    assert [*(made.params["select"] or ())] == [*last_build.OPERATIONS, *selected] * bool(selected)


def test_what_has_landed_since_a_build():
    record = {"landings": {"shop": [3, 30]}}
    spark = Rows("Order Lines", "undeclared", None)
    declared = feed("shop", lines="Order Lines")
    assert last_build.news(spark, declared, record, {"shop": (3, 30)}) == {} and spark.asked == []
    assert last_build.news(spark, declared, record, {"shop": (5, 50)}) == {"shop": ["lines"]}
    assert spark.asked[-1].endswith("from raw.shop where landing_batch > 3")
    # a feed that landed for the first time
    assert last_build.news(spark, declared, {"landings": {}}, {"shop": (1, 10)}) == {"shop": ["lines"]}
    # raw went back, or the same number came again
    assert last_build.news(spark, declared, record, {"shop": (2, 20)}) is None
    assert last_build.news(spark, declared, record, {"shop": (3, 31)}) is None
    # an export that has no rows is one of an empty table
    exports = feed("shop", role="export")
    assert last_build.news(Rows(None), exports, record, {"shop": (4, 40)}) == {"shop": ["orders", "lines"]}


def test_what_dbt_is_told_to_select():
    told = last_build.selection({"shop": ["orders", "order.*"], "store": []}, ["lines_merged+", "source:shop+"])
    assert told == ["source:shop.orders+", "source:shop+", "lines_merged+", "unassigned_records"]


def result(name: str, status: str, kind: str = "model", attached: str | None = None, *reads: str):
    """A result of dbt's, of a node of this name."""
    depends = SimpleNamespace(nodes=[*reads])
    node = SimpleNamespace(name=name, resource_type=kind, attached_node=attached, depends_on=depends)
    return SimpleNamespace(status=status, node=node)


def test_what_a_build_has_left():
    done = [
        result("a", "success"),
        result("t", "pass", "test"),
        result("u", "warn", "test"),
        result("e", "no-op", "exposure"),
    ]
    assert dbt.left_of(done) == []
    failed = [
        *done,
        result("orders_merged", "error"),
        result("orders", "skipped"),
        result("countries", "error", "seed"),
        # of a test that was skipped the model is left that it waited for
        result("is_unique_orders", "skipped", "test", "model.shop.orders"),
        result(
            "is_there_lines",
            "fail",
            "test",
            "model.shop.lines_changes",
            "model.shop.lines_changes",
            "model.shop.orders",
        ),
        result("own", "error", "test", None, "source.shop.crm.Order Lines", "source.shop.crm.items", "seed.shop.rates"),
        result("computes", "fail", "unit_test", None, "model.shop.totals.v2"),
    ]
    assert dbt.left_of(failed) == [
        "orders_merged+", "orders+", "countries+", "is_unique_orders", "is_there_lines", "lines_changes+",
        "own", "source:crm+", "source:crm.items+", "rates+", "computes", "totals.v2+",
    ]  # fmt: skip
    # a test of nothing in particular, and one of a name that dbt would read as something else
    assert dbt.left_of([result("is_day", "fail", "test")]) == ["is_day"]
    assert dbt.left_of([result("a, b", "fail", "test", "model.shop.orders")]) == ["orders+"]
    assert dbt.left_of([result("a, b", "skipped", "test", "model.shop.orders")]) == []
    # what cannot be selected exactly is everything: a hook, a model of such a name
    assert dbt.left_of([*failed, result("on-run-start-0", "error", "operation")]) is None
    assert dbt.left_of([result("orders and lines", "skipped")]) is None


def test_arguments_that_select_are_no_other_project(monkeypatch, tmp_path):
    monkeypatch.setenv("DBT_PROFILES_DIR", str(PROJECT / "profiles"))
    monkeypatch.chdir(tmp_path)
    assert last_build.split("build", []) == ({}, {})
    assert last_build.split("build", ["-s", "a", "b", "--exclude=c"]) == ({"select": ("a", "b"), "exclude": ("c",)}, {})
    assert last_build.split("run", ["--models", "a", "--full-refresh"]) == ({"select": ("a",)}, {"full_refresh": True})
    assert last_build.split("build", ["--vars", "{audit: true}"]) == ({}, {"vars": {"audit": True}})
    assert last_build.split("build", ["--selekt", "a"]) == ({}, {"arguments": ["--selekt", "a"]})


def test_the_record_names_what_is_left(monkeypatch, tmp_path):
    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path))
    last_build.take_again(last_build.remembered(), ["orders+"])
    assert last_build.remembered() == {}, "without a record everything is built"
    last_build.remember("mark", {"shop": (3, 30)}, "words", {}, ["lines+"], {"chosen": {"shop": (3, 30)}})
    record = last_build.remembered()
    assert record["left"] == ["lines+"] and record["selections"] == {"chosen": {"shop": [3, 30]}}
    last_build.take_again(record, ["lines+", "orders+"])
    assert last_build.remembered() == record | {"left": ["lines+", "orders+"]}
    # of version 0.6.0, which recorded builds that succeeded alone
    older = {name: value for name, value in record.items() if name not in last_build.LACKED}
    (tmp_path / "last_build.json").write_text(json.dumps(older))
    assert last_build.remembered() == older | last_build.LACKED


def became(**numbers) -> dict:
    return dict.fromkeys(account.COUNTED, 0) | numbers


def test_every_record_that_has_landed_is_accounted_for(tmp_path, monkeypatch):
    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path))
    assert account.remembered() == {} and account.since_the_last({}, became(read=3), []) is None
    tables = [became(read=126, applied=42, superseded=80, rejected=4), became(read=1200, applied=1200)]
    names = ["customers", "orders"]
    now = account.account_of(tables, 7)
    assert account.in_words(now) == (
        "1,333 records landed: 1,242 applied, 80 superseded, 0 duplicate, 4 rejected, 7 unassigned"
    )
    account.remember(now, names)
    before = account.remembered()
    assert account.since_the_last(before, now, names) == f"No record has landed since the build of {before['at']} UTC."
    tables.append(became(read=3, applied=1, duplicate=2, replayed=1))
    assert account.since_the_last(before, account.account_of(tables, 7), names) == (
        f"2 records landed since the build of {before['at']} UTC, and 1 record read again by a replay: "
        "1 applied, 0 superseded, 2 duplicate, 0 rejected, 0 unassigned."
    )
    # what is less than it was has been counted anew, or a table was declared
    assert account.since_the_last(before, account.account_of(tables, 6), names) is None
    assert account.since_the_last(before, account.account_of(tables, None), names) is None
    # of what a removed table had is no telling, and a build that could not count a table has no account
    assert account.since_the_last(before, now, ["orders"]) is None
    account.remember({}, names)
    assert account.since_the_last(account.remembered(), now, names) is None
    # of a lake in which no table is built there is none either
    assert account.since_the_last(account.remembered(), {}, []) is None
    assert "unassigned" not in account.in_words(account.account_of(tables, None))
    (tmp_path / "account.json").write_text('{"account": 1')
    assert account.remembered() == {}


def test_the_first_build_says_that_it_takes_minutes(tmp_path, monkeypatch):
    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path))
    assert last_build.what_the_first_does(0) is None
    assert last_build.what_the_first_does(1).startswith("The first build of 1 table takes minutes: ")
    monkeypatch.setattr(last_build, "newest_versions", lambda: {"raw.shop": 1, "lake.orders_changes": 1})
    assert last_build.what_the_first_does(1) is None


def test_what_is_to_be_told_stays_until_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path))
    monkeypatch.setenv("HIGHWATER_PROJECT", "changed")
    monkeypatch.chdir(tmp_path)
    assert untold.untold("fields") == {} and not (tmp_path / "untold.json").exists()
    untold.note(fields={"orders shop": 3, "lines shop": 0}, rejected={"orders": 7, "removed": 2})
    # a second build is killed too; what was there first counts, unless something went back
    untold.note(fields={"orders shop": 5, "lines shop": 1}, rejected={"orders": 6})
    assert untold.untold("fields") == {"orders shop": 3, "lines shop": 0}
    untold.told("fields", ["orders shop", "other"])
    assert untold.untold("fields") == {"lines shop": 0}
    (tmp_path / "models/changes/shop").mkdir(parents=True)
    (tmp_path / "models/changes/shop/orders_changes.sql").touch()
    dbt.begin(is_same=False, tells_rejected=True)
    assert dbt.appended == {"orders": 6}
    dbt.begin(is_same=False)
    assert dbt.appended == {}
    untold.told("rejected")
    untold.told("fields")
    assert untold.untold("fields") == untold.untold("rejected") == {}
    (tmp_path / "untold.json").write_text('{"fields": [')
    assert untold.untold("fields") == {}


def test_tables_whose_log_was_not_built_are_named(monkeypatch):
    """By what was left of its staging or of the log itself; what is behind the log has all that landed."""
    known = {f"{name}_changes": (name, "log") for name in ("orders", "lines", "items")}
    known |= {"stg_shop__orders_changes": ("orders", "staging"), "items": ("items", "view")}
    monkeypatch.setattr(build, "models_of_tables", lambda: known)
    left = ["stg_shop__orders_changes+", "lines_changes+", "items+", "totals+", "source:shop.items+"]
    assert build._not_taken_in(dbt.Outcome(1, left)).startswith("Of lines, orders not everything was built;")
    assert build._not_taken_in(dbt.Outcome(1, left[2:])) is None


class Played:
    """A project whose builds are played: what has landed and what dbt comes to is said, what dbt is told is kept."""

    def __init__(self, folder: Path, monkeypatch):
        self.told, self.mark, self.landed, self.outcomes = [], "mark", {"shop": (1, 10)}, []
        monkeypatch.setenv("HIGHWATER_LAKE", str(folder))
        monkeypatch.setenv("HIGHWATER_PROJECT", "changed")
        monkeypatch.setenv("DBT_PROFILES_DIR", str(PROJECT / "profiles"))
        monkeypatch.chdir(folder)
        logs = [(name, [("shop", name)]) for name in ("orders", "lines")]
        for name, play in {
            "build.declared_feeds": lambda: feed("shop"),
            "build.require_landing_folder": lambda feeds: None,
            "build.session": lambda **_: Rows("orders"),
            "build.land_and_tell": lambda spark, feeds: Landed(newest=self.landed),
            "build.add_new_fields": lambda spark: None,
            "build.logged_tables": lambda: logs,
            "last_build.fingerprint": lambda others: f"{self.mark} {others}",
            "last_build.newest_versions": dict,
            "last_build.summary": lambda *_: ("words", [], {}, {}),
            "rejections.check_thresholds": lambda: None,
            "rejections.of_build": lambda *_: ([], []),
        }.items():
            monkeypatch.setattr(f"highwater.builds.{name}", play)
        monkeypatch.setattr(dbt, "outcome_of", self.play)

    def play(self, arguments: list[str], *_) -> dbt.Outcome:
        self.told.append(arguments)
        outcome = self.outcomes.pop(0) if self.outcomes else dbt.Outcome(0, [])
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def build(self, *arguments: str, run=build.build, outcomes=()) -> list[list[str]]:
        """Build; return what dbt was told to select in each invocation, [] for everything."""
        self.told, self.outcomes = [], [*outcomes]
        with contextlib.suppress(CheckError, KeyboardInterrupt):
            run([*arguments])
        selects = [[*words, "--"] for words in self.told]
        starts = [words.index("--select") + 1 if "--select" in words else len(words) for words in selects]
        return [
            words[at : next(n for n, word in enumerate(words) if n >= at and word.startswith("--"))]
            if at < len(words)
            else []
            for words, at in zip(selects, starts, strict=True)
        ]


@pytest.fixture
def played(tmp_path, monkeypatch):
    return Played(tmp_path, monkeypatch)


ORDERS = ["source:shop.orders+"]
UNASSIGNED = ["unassigned_records"]
SICK_MART = dbt.Outcome(1, ["orders+"], ("orders",))


def test_the_next_build_takes_what_the_last_one_left(played, capsys):
    assert played.build() == [[]] and played.build() == []
    assert "Nothing has landed" in capsys.readouterr().out
    played.landed = {"shop": (2, 20)}
    assert played.build(outcomes=[SICK_MART]) == [ORDERS + UNASSIGNED]
    assert played.build(outcomes=[SICK_MART]) == [["orders+", *UNASSIGNED]]
    assert "The last build has left orders; the other tables stay" in capsys.readouterr().out
    played.landed = {"shop": (3, 30)}
    assert played.build() == [[*ORDERS, "orders+", *UNASSIGNED]] and played.build() == []
    # the ledger and the lists that dbt skipped are built behind it, unless they failed themselves
    played.landed = {"shop": (4, 40)}
    skipped = dbt.Outcome(1, ["lines_changes+", "ledger+", "stale_rows+"], ("is_sound",))
    assert played.build(outcomes=[skipped]) == [ORDERS + UNASSIGNED, ["ledger", "stale_rows"]]
    assert played.build(outcomes=[dbt.Outcome(1, ["ledger+"], ("ledger",))]) == [["lines_changes+", *UNASSIGNED]]
    assert played.build() == [["ledger+", *UNASSIGNED]] and played.build() == []


def test_a_table_whose_declaration_is_refused_is_left_out_until_it_is_met(played, capsys):
    refused = SimpleNamespace(entity="lines", sentence="lines: the key is b.", is_refused=True, models=["lines", "stg"])
    asked, is_refused = [], [refused]

    def run(arguments):
        build.build(arguments, meet=lambda spark: asked.append("") or is_refused)

    assert played.build(run=run) == [[]]
    assert " ".join(played.told[0]).endswith("--exclude lines stg") and "the key is b" in capsys.readouterr().err
    with pytest.raises(CheckError, match="the key is b"):
        run([])
    assert played.told[-1][1:3] == ["--select", "lines_changes+"] and "--exclude" in played.told[-1]
    is_refused.clear()
    assert played.build(run=run) == [["lines_changes+", *UNASSIGNED]] and "lines stg" not in " ".join(played.told[0])
    assert played.build(run=run) == [] and len(asked) == 3, "an unchanged project asks nothing"


def test_what_cannot_be_told_is_everything(played):
    """Killed, stopped in the middle, or changed; and what has not begun changes nothing."""
    assert played.build(outcomes=[KeyboardInterrupt()]) == [[]] and played.build() == [[]]
    played.landed = {"shop": (2, 20)}
    assert played.build(outcomes=[KeyboardInterrupt()]) == [ORDERS + UNASSIGNED]
    assert played.build() == [ORDERS + UNASSIGNED], "of a part that part"
    played.landed = {"shop": (3, 30)}
    assert played.build(outcomes=[dbt.Outcome(1, None)]) == [ORDERS + UNASSIGNED] and played.build() == [[]]
    played.landed = {"shop": (4, 40)}
    assert played.build(outcomes=[dbt.Outcome(2, None)]) == [ORDERS + UNASSIGNED] and played.build() == [[]]
    played.mark = "mistyped"
    assert played.build(outcomes=[dbt.Outcome(2, None, has_begun=False)]) == [[]]
    played.mark = "mark"
    assert played.build() == []
    played.landed = {"shop": (1, 11)}
    assert played.build() == [[]], "raw went back"


def test_a_selection_and_dbt_itself_leave_the_rest_as_it_is(played):
    operations = [*last_build.OPERATIONS]
    played.build()
    played.landed = {"shop": (2, 20)}
    chosen = ["--select", "lines"]
    assert played.build(*chosen) == [[*operations, "lines"]] and played.build(*chosen) == []
    assert played.build() == [ORDERS + UNASSIGNED] and played.build() == []
    played.landed = {"shop": (3, 30)}
    failed = dbt.Outcome(1, ["lines+"], ("lines",))
    assert played.build(*chosen, outcomes=[failed]) == [[*operations, "lines"]]
    assert played.build(*chosen) == [[*operations, "lines"]], "it may be well now"
    assert played.build() == [[*ORDERS, "lines+", *UNASSIGNED]] and played.build() == []
    # killed, or of another project: everything
    played.build(*chosen, "--exclude", "a", outcomes=[KeyboardInterrupt()])
    assert played.build() == [[]]
    played.mark = "changed"
    assert played.build(*chosen) == [[*operations, "lines"]] and played.build(*chosen) == []
    assert played.build() == [[]] and played.build() == []
    # with other options everything, and again without them
    assert played.build("--vars", "{a: 1}") == [[]] and played.build("--vars", "{a: 1}") == []
    assert played.build() == [[]]

    def dbt_itself(*arguments, outcomes=()):
        played.build(*arguments, run=build.run_dbt, outcomes=outcomes)
        return played.build()

    for reading in (["test"], ["docs", "generate"], ["source", "freshness"], ["show", "--inline", "select 1"]):
        assert dbt_itself(*reading) == [], reading
    assert dbt_itself("run", "--select", "orders") == dbt_itself("build") == []
    assert dbt_itself("run", "--select", "orders", outcomes=[SICK_MART]) == [["orders+", *UNASSIGNED]]
    assert dbt_itself("run", "--selekt", "orders", outcomes=[dbt.Outcome(2, None, has_begun=False)]) == []
    for writing in (["run-operation", "x"], ["run", "--full-refresh"], ["--quiet", "test"], ["retry"]):
        assert dbt_itself(*writing) == [[]], writing
    assert dbt_itself("run", outcomes=[KeyboardInterrupt()]) == [[]]


# models and a test of somebody's own, which fail while there is a line in a file
SICK = "select if(count(*) = 0, 'sound', string(raise_error('sick'))) from text.`FOLDER/model.switch`"
OWN = {
    "models/own/third_totals.sql": "{{ config(materialized='table', file_format='delta') }}\n"
    f"select *, ({SICK}) as state from {{{{ ref('fleet_002') }}}}",
    "models/own/third_report.sql": "select * from {{ ref('third_totals') }}",
    # of a log: what is behind it is skipped, with the ledger and the lists
    "tests/own/third_is_sound.sql": "-- {{ ref('fleet_002_changes') }}\nselect * from text.`FOLDER/test.switch`",
}


class Fleet:
    """A project of three tables, and a process that runs the commands."""

    def __init__(self, folder: Path):
        self.folder, self.tables = folder, [f"fleet_{number:03}" for number in range(3)]
        paths = [str(PROJECT / "src"), str(PROJECT / "scripts/bench")]
        self.environment = environment_of_a_user() | {
            "PYTHONPATH": os.pathsep.join(paths), "HIGHWATER_SHOWN": str(folder / "shown"),
        }  # fmt: skip
        self.python(MADE.format(project=str(PROJECT)))
        self.commands = Commands(folder, self.environment)
        for path, text in OWN.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text.replace("FOLDER", str(folder)))
        self.switch()

    def switch(self, on: str | None = None):
        """Let the model or the test fail, or neither."""
        for name in ("model", "test"):
            (self.folder / f"{name}.switch").write_text("sick\n" * (name == on))

    def python(self, code: str):
        """Run Python in the project."""
        subprocess.run([sys.executable, "-c", code], cwd=self.folder, env=self.environment, check=True)

    def deliver(self, table: str, batch: int):
        """Deliver a batch of one table."""
        self.python(DELIVERED.format(table=table, batch=batch))

    def build(self, *command: str) -> tuple[str, list[str]]:
        """Build; return what was said, and the tables of which dbt ran anything."""
        results = self.folder / "target/run_results.json"
        results.unlink(missing_ok=True)
        code, said = self.commands.run(*(command or ["build"]))
        assert code == 0, said[-3000:]
        ran = (
            " ".join(row["unique_id"] for row in json.loads(results.read_text())["results"]) if results.exists() else ""
        )
        return said, [table for table in self.tables if f"{table}_changes" in ran]

    def outcomes(self, code: int) -> tuple[str, dict[str, str]]:
        """Build; return what was said, and what became of each node, by name."""
        ended, answer = self.commands.run("outcomes", "build")
        said, outcomes = json.loads(answer)
        assert ended == code, said[-3000:]
        return said, outcomes

    def statements(self) -> list[str]:
        """Build; return what was sent to Spark for it."""
        code, seen = self.commands.run("statements", "build")
        assert code == 0, seen[-3000:]
        return json.loads(seen)

    def rows(self) -> list:
        """What all tables and the ledger hold."""
        return [self.commands.rows(ROWS.format(name)) for name in [*self.tables, "ledger", "unassigned_records"]]

    def lines(self, said: str) -> list[str]:
        """The lines of the summary that count the rows of a table."""
        return [line for line in said.splitlines() if line.startswith("  fleet_") and "rows now" in line]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    for table in fleet.tables:
        fleet.deliver(table, 0)
    _, ran = fleet.build()
    assert ran == fleet.tables
    yield fleet
    fleet.commands.end()


@pytest.mark.long
def test_only_tables_with_news_are_built(fleet):
    said, ran = fleet.build()
    assert ran == [] and "Nothing has landed" in said
    first, second, third = fleet.tables
    fleet.deliver(second, 1)
    said, ran = fleet.build()
    assert ran == [second] and "Something has landed for 1 of 3 declared tables" in said
    # a line a table in place of dbt's log, which is there when asked for
    assert re.search(rf"^{second}: staging [\d.]+ s, log [\d.]+ s, base [\d.]+ s, view [\d.]+ s$", said, re.M)
    assert re.search(r"^\d+ models built, \d+ tests passed, in \d+ s of dbt$", said, re.M)
    assert re.search(r"^The build took \d+ s\.$", said, re.M)
    # what became of every record that has landed, and of those since the last build
    assert re.search(
        r"^20 records landed since the build of [-: \d]+ UTC: \d+ applied, \d+ superseded, .* 0 unassigned\.$",
        said,
        re.M,
    ), said
    assert re.search(r"^  80 records landed: \d+ applied, .* 0 duplicate, 0 rejected, 0 unassigned$", said, re.M), said
    assert "OK created" not in said and "\x1b" not in said and len(said.splitlines()) < 40
    narrow, lines = fleet.rows(), fleet.lines(said)
    assert len(lines) == 3
    # the same as a build of everything, which is what it is compared with
    said, ran = fleet.build("dbt", "build")
    assert ran == fleet.tables and fleet.rows() == narrow
    said, ran = fleet.build()
    assert ran == [] and fleet.lines(said) == lines and fleet.rows() == narrow
    assert fleet.commands.rows("select sum(read) from lake.ledger") == [[80]]
    # records of a table that nobody has declared
    (fleet.folder / "examples/landing" / FLEET / first / "other.json").write_text(
        (fleet.folder / "examples/landing" / FLEET / first / "0000.json").read_text().replace(first, "undeclared")
    )
    before = fleet.rows()
    said, ran = fleet.build()
    assert fleet.rows()[:3] == before[:3]
    # a table that is not there any more is made again
    fleet.commands.rows(f"drop table lake.{third}_merged")
    said, ran = fleet.build()
    assert ran == fleet.tables and fleet.rows()[:3] == before[:3]


@pytest.mark.long
def test_a_build_of_one_table_has_its_ledger(fleet):
    first, _, third = fleet.tables
    fleet.build()
    fleet.deliver(first, 5)
    fleet.deliver(third, 5)
    read = "select table_name, sum(read) from lake.ledger group by 1 order by 1"
    before = fleet.commands.rows(read)
    _, ran = fleet.build("build", "--select", f"+{third}+")
    assert ran == [third]
    # the other one waits for a build of its own
    assert fleet.commands.rows(read) == [[name, rows + 20 * (name == third)] for name, rows in before]
    assert fleet.build()[1] == [first, third]
    assert fleet.commands.rows(read) == [[name, rows + 20 * (name in (first, third))] for name, rows in before]


# a table that changed, of which the last build knew what there is: a text is a statement that does nothing
BUDGET = {"landing and summary": 2, "_changes": 2, "_merged": 1, "texts": 4, "tests": 3}
# the same where something else has written the log meanwhile: its layers, its feeds and what is highest are asked
ASKED = BUDGET | {"_changes": 5, "tests": 4}


def spent(fleet, table: str, others: list[str]) -> dict[str, int]:
    """How many statements a build sends of one table, by node; one about all tables is none of a table's."""
    seen = fleet.statements()
    # landing asks every log that has changed since it asked last
    assert not [text for text in seen if any(other in text for other in others) and "node_id" in text]
    counted = Counter()
    for text in seen:
        if table not in text or others[0] in text:
            continue
        node = re.search(r'"node_id": "(\w+)\.\w+\.(\w+)', text)
        if node is None:
            counted["landing and summary"] += 1
        elif node[1] == "test":
            counted["tests"] += 1
        elif table in node[2]:
            is_text = re.search(r"\*/\s*select '[^']*'\s*$", text)
            counted["texts" if is_text else node[2].partition(table)[2]] += 1
    return dict(counted)


@pytest.mark.long
def test_statements_are_counted(fleet):
    """A table that changed costs so many, one that did not none, and a build with nothing new none at all."""
    first, second, third = fleet.tables
    fleet.deliver(second, 6)
    fleet.build()
    assert fleet.statements() == []
    fleet.deliver(second, 7)
    assert spent(fleet, second, [first, third]) == BUDGET
    fleet.commands.rows(f"alter table lake.{second}_changes set tblproperties ('touched' = 'by another')")
    fleet.deliver(second, 8)
    assert spent(fleet, second, [first, third]) == ASKED


@pytest.mark.long
def test_one_sick_table_is_one_sick_table(fleet):
    first, second, third = fleet.tables
    fleet.build()
    ledger = "select sum(read) from lake.ledger where table_name = '{}'"
    ((read,),) = fleet.commands.rows(ledger.format(second))

    def untouched(*tables: str) -> bool:
        return not [name for name in statuses if any(table in name for table in tables)]

    # a test of a log fails: the tables behind it wait, the others, the ledger and the account go on
    fleet.switch("test")
    fleet.deliver(second, 11)
    fleet.deliver(third, 11)
    said, statuses = fleet.outcomes(1)
    assert statuses["third_is_sound"] == "fail" and statuses[f"{second}_merged"] == "success" and untouched(first)
    assert {statuses[name] for name in (f"{third}_merged", third, "third_totals", "third_report")} == {"skipped"}
    assert "failed: third_is_sound. The next build takes that" in said
    assert re.search(r"^40 records landed since the build of ", said, re.M), said
    assert fleet.commands.rows(ledger.format(second)) == [[read + 20]]
    # news of another table: that one and the sick one, which fails again
    fleet.deliver(first, 12)
    said, statuses = fleet.outcomes(1)
    assert statuses[f"{first}_merged"] == "success" and statuses[f"{third}_merged"] == "skipped" and untouched(second)
    assert "for 1 of 3 declared tables, and the last build has left fleet_002, fleet_002_changes, fleet_002_m" in said
    # mended, and now a model fails: what was left is built up to that one
    fleet.switch("model")
    said, statuses = fleet.outcomes(1)
    assert statuses[f"{third}_merged"] == "success" and untouched(first, second)
    assert (statuses["third_totals"], statuses["third_report"]) == ("error", "skipped")
    assert "failed: third_totals. The next build takes that" in said
    # mended: what failed and what was skipped, and nothing else
    fleet.switch()
    _, statuses = fleet.outcomes(0)
    assert (statuses["third_totals"], statuses["third_report"]) == ("success", "success") and untouched("fleet")
    assert "Nothing has landed" in fleet.build()[0]


# a build that is killed when the base of a table is begun
KILLED = """
import os, signal
from highwater import cli
from highwater.spark import dbt

hear = dbt.hear

def kill(event):
    hear(event)
    if event.info.name == "LogStartLine" and event.data.node_info.node_name == "{}_merged":
        os.kill(os.getpid(), signal.SIGKILL)

dbt.hear = kill
cli.commands(["build"])
"""


@pytest.mark.soak
def test_a_killed_build_and_one_of_a_selection_leave_what_they_were_to_build(fleet):
    first, second, third = fleet.tables
    fleet.build()
    # a selection takes what it names; the others wait for a build of their own, which takes no table without news
    fleet.deliver(first, 21)
    fleet.deliver(third, 21)
    chosen = ["build", "--select", f"+{third}+"]
    assert fleet.build(*chosen)[1] == [third] and "Nothing has landed" in fleet.build(*chosen)[0]
    assert fleet.build()[1] == [first, third]
    assert "Nothing has landed" in fleet.build()[0]
    # what dbt only reads changes nothing
    fleet.build("dbt", "test", "--select", first)
    assert "Nothing has landed" in fleet.build()[0]
    fleet.build("dbt", "run-operation", "highwater.names_of_tables")
    assert fleet.build()[1] == fleet.tables
    # killed in the middle of what it builds
    fleet.deliver(second, 22)
    record = fleet.folder / ".lake/last_build.json"
    was = json.loads(record.read_text())
    fleet.commands.end()
    killed = subprocess.run([sys.executable, "-c", KILLED.format(second)], cwd=fleet.folder, env=fleet.environment)
    assert killed.returncode == -signal.SIGKILL
    assert json.loads(record.read_text())["left"] == [f"source:{FLEET}.{second}+", "unassigned_records"]
    assert was["left"] == []
    assert fleet.build()[1] == [second]
    # what changes in the project changes what is built, also back again
    path = fleet.folder / "dbt_project.yml"
    text = path.read_text()
    path.write_text(f"{text}\n# another\n")
    # and what a selection alone has built is not everything
    assert fleet.build(*chosen)[1] == [third] and "Nothing has landed" in fleet.build(*chosen)[0]
    assert fleet.build()[1] == fleet.tables and fleet.build()[1] == []
    path.write_text(f"{text}\nmodels: [\n")
    assert fleet.commands.run("build")[0] == 2
    path.write_text(f"{text}\n# another\n")
    assert "Nothing has landed" in fleet.build()[0]
