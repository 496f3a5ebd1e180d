"""Files of a table that an earlier version wrote: `earlier` has them, and every command goes on with them."""

import shutil
from pathlib import Path

import pytest
import yaml
from forked import forked
from highwater.catalog.columns import named_columns
from highwater.catalog.declarations import declare_truncates, in_columns
from highwater.catalog.entities import declaration_of, declared_columns, key_of
from highwater.scaffold.add_table import add_table
from highwater.scaffold.check import check
from highwater.scaffold.remove_table import removal_of, remove
from repository import EARLIER, PROJECT
from workshop import copy_empty_project, environment_of_a_user

LOG = Path("models/changes/shop/orders_changes.yml")


def add_note(entity: str):
    in_columns(entity, named_columns([("Note", "string", None)], declared_columns(entity)[0])[0])


@pytest.fixture
def project(tmp_path, monkeypatch):
    copy_empty_project(PROJECT, tmp_path)
    # as texts, so that dbt does not take them for the repository's own
    for path in EARLIER.glob("**/*.txt"):
        copy = tmp_path / path.relative_to(EARLIER).with_suffix("")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIGHWATER_LANDING", "landing")
    (tmp_path / "landing").mkdir()
    add_table("debezium_shop.others", "id:int")
    return tmp_path


def parses(project):
    warnings = '{"error": "all", "silence": ["UnusedResourceConfigPath"]}'
    arguments = ["--quiet", "--warn-error-options", warnings, "parse", "--profiles-dir", "profiles"]
    ended = forked(*arguments, cwd=project, program="dbt", environment=environment_of_a_user())
    return ended.returncode == 0 or ended.stdout


def test_they_are_read_checked_and_parsed_as_they_are(project):
    columns, key = declared_columns("orders")
    assert [(c.name, c.mart_name, c.data_type) for c in columns] == [
        ("id", "id", "bigint"),
        ("source_feed", "feed", "string"),
    ]
    assert key == key_of("orders") == ["id"] and declaration_of("orders") == LOG
    assert [str(finding) for finding in check().findings] == []
    assert parses(project) is True


def test_what_commands_write_gets_in_where_these_files_have_it(project):
    add_table("baseline_shop.orders", format="csv")
    assert "stg_baseline_shop__orders_changes" in LOG.read_text()
    assert "ref('stg_baseline_shop__orders_changes')," in LOG.with_suffix(".sql").read_text()
    LOG.write_text(LOG.read_text().replace("        truncates: true\n", ""))
    assert declare_truncates("orders") == LOG
    add_note("orders")
    assert [column.name for column in declared_columns("orders")[0]] == ["id", "source_feed", "note"]
    assert Path("models/marts/shop/orders.yml").read_text().endswith("      - name: note\n")
    assert [str(finding) for finding in check().findings] == []
    assert parses(project) is True


def test_they_can_be_removed_and_added_again_in_todays_form(project):
    remove(removal_of("debezium_shop.orders"))
    assert (
        not [path for path in project.glob("models/**/*orders*")] and not Path("models/staging/exports_shop").exists()
    )
    add_table("debezium_shop.orders", "id:bigint", "feed:string", history=True)
    add_table("exports_shop.orders", format="csv", settings={"role": "export"})
    path = Path("models/tables/shop/orders.yml")
    assert declaration_of("orders") == path
    # columns that have names of the project are listed by the view itself
    for name in ("orders", "others"):
        add_note(name)
    declared = {model["name"]: model for model in yaml.safe_load(path.read_text())["models"]}
    assert [c["name"] for c in declared["orders_changes"]["columns"]] == ["id", "source_feed", "note"]
    assert [c["name"] for c in declared["orders"]["columns"]] == ["id", "feed", "note"]
    assert "    columns: &columns\n      - {name: id, data_type: int}\n      - {name: note," in (
        Path("models/tables/shop/others.yml").read_text()
    )
    assert parses(project) is True
