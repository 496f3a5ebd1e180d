"""A table that is taken out of the project leaves it as it was without it."""

import pytest
from forked import forked
from highwater.runtime.errors import UsageError
from highwater.scaffold.add_table import add_table
from highwater.scaffold.remove_table import removal_of, remove
from repository import PROJECT
from workshop import copy_empty_project, environment_of_a_user


@pytest.fixture
def project(tmp_path, monkeypatch):
    copy_empty_project(PROJECT, tmp_path)
    monkeypatch.chdir(tmp_path)
    add("kept")
    return tmp_path


def add(name, feed="debezium_shop", **options):
    if not options:
        options = {"format": "debezium-json", "settings": {"connector": "postgresql"}}
    return add_table(f"{feed}.{name}", "id:int", "v:string", **options)


def files(project):
    return {path: path.read_text() for path in project.glob("m*/**/*") if path.is_file()}


def remove_it(table):
    remove(removal_of(table))


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_adding_and_removing_changes_nothing(project, order):
    before = files(project)
    for name in ("first", "second"):
        add(name, source_table=f"The {name}", history=name == "first")
    both = files(project)
    for name in order:
        remove_it(f"debezium_shop.{name}")
        assert files(project) != both
    assert files(project) == before


def test_the_first_of_a_feed_can_go(project):
    add("second")
    remove_it("debezium_shop.kept")
    assert not [path for path in files(project) if "kept" in path.name]
    arguments = ["--quiet", "parse", "--profiles-dir", "profiles"]
    ended = forked(*arguments, cwd=project, program="dbt", environment=environment_of_a_user())
    assert ended.returncode == 0, ended.stdout


def test_the_last_of_a_feed_takes_its_declaration_along(project):
    remove_it("debezium_shop.kept")
    assert not list(project.glob("models/staging/**/*")) and not list(project.glob("models/changes/*"))
    assert "kept" not in (project / "macros/operations/logged_tables.sql").read_text()


def test_exports_and_further_feeds_go_by_themselves_and_with_the_table(project):
    before = files(project)
    exports = {"format": "csv", "settings": {"role": "export"}}
    baseline = {"format": "csv", "settings": {}}
    add_table("exports_shop.kept", **exports)
    with_exports = files(project)
    add_table("baseline_shop.kept", **baseline)
    remove_it("baseline_shop.kept")
    assert files(project) == with_exports
    remove_it("exports_shop.kept")
    assert files(project) == before
    add_table("exports_shop.kept", **exports)
    remove_it("debezium_shop.kept")
    assert not list(project.glob("models/staging/*")) and not list(project.glob("models/marts/*"))


def test_what_others_read_stays(project):
    reader = project / "models/marts/shop/report.sql"
    reader.write_text("select * from {{ ref('kept') }}")
    before = files(project)
    with pytest.raises(UsageError, match=r"nothing was removed, .*models/marts/shop/report.sql \(kept\)"):
        removal_of("debezium_shop.kept")
    assert files(project) == before


def test_a_table_that_is_not_there(project):
    with pytest.raises(UsageError, match=r"debezium_shop.other is not declared; declared are: debezium_shop.kept"):
        removal_of("debezium_shop.other")
