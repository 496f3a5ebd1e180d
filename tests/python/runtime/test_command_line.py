"""Every command, typed with every option that it has, hands what was typed to the function that does the work.

Those functions take the arguments that they have, and do nothing: nothing here starts Spark.
"""

import contextlib
import pkgutil
import shlex
from types import SimpleNamespace
from unittest.mock import MagicMock, create_autospec

import click
import pytest
from click.testing import CliRunner
from highwater.cli import commands
from highwater.upkeep.alterations import ACTIONS
from repository import PROJECT

LANDED = SimpleNamespace(refused=[], failures=[])
CHECKED = SimpleNamespace(findings=[], compared_with=list, outcome="", waiting=[])
PG = SimpleNamespace(name="changelog_pg")
# what does the work, and what it returns here
WORK = {
    "builds.build.build": 0,
    "builds.build.run_dbt": 0,
    "builds.landing_report.land_and_tell": LANDED,
    "databases.capturing.disable": "",
    "databases.capturing.enable": [],
    "databases.extract.extract": [],
    "databases.live_export.export": [],
    "databases.patch.end": "",
    "databases.patch.patch": [],
    "landing.landing.skip": "",
    "status.doctor.examine": [],
    "reconcile.page.as_json": "{}",
    "reconcile.page.as_junit": "",
    "reconcile.page.page": "",
    "reconcile.page.show": None,
    "scaffold.check.check": CHECKED,
    "scaffold.new_project.begin_project": [],
    "scaffold.remove_table.remove": [],
    "spark.jars.resolve": None,
    "status.query.show": None,
    "status.query.show_table": None,
    "status.status_page.page": "",
    "upkeep.alter.alter": [],
    "upkeep.compact.compact": "",
    "upkeep.dry_run.what_it_would_touch": [],
    "upkeep.epoch.declare_epochs": [],
    "upkeep.rebuild.rebuild": "",
    "upkeep.rebuild.rebuild_from_raw": "",
    "upkeep.recover.put_aside": [],
    "upkeep.recover.recover": ([], []),
    "upkeep.replay.replay": "",
    "upkeep.resync.resync": [],
    "upkeep.retention.vacuum": [],
}
# what is asked before the work, which would need a lake or a database
ASKED = {
    "catalog.tables.tables_in": set(),
    "databases.database.connection_settings": {},
    "databases.extract.chosen_tables": [(PG, None)],
    "databases.patch.patchable": (PG, None, ""),
    "reconcile.reconcile.reconcile": SimpleNamespace(verdict="PASS"),
    "scaffold.remove_table.removal_of": SimpleNamespace(relations=[]),
    "status.status.status": [],
}
# what needs no Spark; test_commands.py types them, and they do their work
TYPED_ELSEWHERE = {"add-table", "add-tables"}
ALTER = "upkeep.alter.alter"
FEED = "debezium_other.customers"
# as typed, and what of the work is called
TYPED = {
    "alter customers add extra:int": ALTER,
    "alter customers drop photo": ALTER,
    "alter customers rename name FULL_NAME": ALTER,
    "alter customers type is_active string": ALTER,
    "alter payments unit paid_at micros": ALTER,
    "alter customers key name": ALTER,
    "alter customers name clients --accept-loss": ALTER,
    "alter customers name clients --at-source": ALTER,
    f"alter customers feed {FEED} --format debezium-json --setting connector=mysql --source-table c --resync": ALTER,
    "alter customers add extra:int --dry-run": "upkeep.dry_run.what_it_would_touch",
    "build --hold --verbose --select +customers": "builds.build.build",
    "check customers": "scaffold.check.check",
    "doctor --make-schema": "status.doctor.examine",
    "compact customers --threshold 2 --method full --stop-before-rewrite --retain-previous": "upkeep.compact.compact",
    "dbt ls": "builds.build.run_dbt",
    "epoch debezium_erp": "upkeep.epoch.declare_epochs",
    "extract changelog_pg": "databases.extract.extract",
    "extract changelog_pg.t --enable --method row-version --key id": "databases.capturing.enable",
    "extract changelog_pg.t --disable": "databases.capturing.disable",
    "extract changelog_pg.t --export --throttle 50": "databases.live_export.export",
    "init shop": "scaffold.new_project.begin_project",
    "install": "spark.jars.resolve",
    "land datastream_user1": "builds.landing_report.land_and_tell",
    "land --skip x.json": "landing.landing.skip",
    "patch changelog_pg.t --where true": "databases.patch.patch",
    "patch changelog_pg.t --end": "databases.patch.end",
    "query 'select 1' --format json --unsafe": "status.query.show",
    "rebuild customers --accept-loss": "upkeep.rebuild.rebuild",
    "rebuild customers --from raw": "upkeep.rebuild.rebuild_from_raw",
    "reconcile customers --as-of 1 --repair": "reconcile.page.show",
    "reconcile --format json": "reconcile.page.as_json",
    "reconcile --format junit": "reconcile.page.as_junit",
    "reconcile --format html": "reconcile.page.page",
    "recover": "upkeep.recover.recover",
    "remove-table datastream_user1.customers --drop-data": "scaffold.remove_table.remove",
    "replay customers --accept-loss": "upkeep.replay.replay",
    "resync customers --from a.json --from b.json --read-at 2026-01-01": "upkeep.resync.resync",
    "status": "status.query.show_table",
    "status customers --format html": "status.status_page.page",
    "vacuum customers": "upkeep.retention.vacuum",
}


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(PROJECT)
    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path))
    monkeypatch.setenv("HIGHWATER_LANDING", str(PROJECT / "examples/landing"))
    monkeypatch.setattr("highwater.spark.spark.session", lambda **settings: MagicMock())
    monkeypatch.setattr("highwater.spark.spark.reading_session", lambda: contextlib.nullcontext(MagicMock()))
    played = {}
    for name, value in {**ASKED, **WORK}.items():
        played[name] = create_autospec(pkgutil.resolve_name(f"highwater.{name}"), return_value=value)
        monkeypatch.setattr(f"highwater.{name}", played[name])
    return played


@pytest.mark.parametrize("typed", TYPED)
def test_what_is_typed_comes_to_the_function_that_does_it(work, typed):
    result = CliRunner().invoke(commands, shlex.split(typed))
    assert result.exit_code == 0, (result.output, result.exception)
    called = {name for name in WORK if work[name].called}
    assert TYPED[typed] in called
    # a dry run changes nothing, and what is no dry run does
    assert (ALTER in called) == (TYPED[typed] == ALTER)


def test_every_command_and_every_option_is_typed():
    words = [shlex.split(typed) for typed in TYPED]
    for name, command in commands.commands.items():
        if name in TYPED_ELSEWHERE:
            continue
        mine = {word for first, *rest in words if first == name for word in [first, *rest]}
        assert name in mine, name
        options = [option for option in command.params if isinstance(option, click.Option)]
        assert not [option.name for option in options if not {*option.opts} & mine], name
    assert {action for _, action in ((word[0], word[2]) for word in words if word[0] == "alter")} == {*ACTIONS}


def test_a_call_with_other_arguments_than_the_function_has_is_found(work):
    """The negative control: what plays a function takes no others."""
    with pytest.raises(TypeError):
        work[ALTER](None, None, accept_los=True)
