"""What `highwater alter` edits, and what it refuses before anything is done; no Spark."""

import re
from pathlib import Path

import pytest
import yaml
from highwater.catalog.as_built import declared_shape
from highwater.catalog.entities import declared_columns
from highwater.runtime.errors import UsageError
from highwater.scaffold.add_table import add_table
from highwater.scaffold.check import check
from highwater.scaffold.periods import periods_of
from highwater.upkeep.alter import alteration
from repository import PROJECT
from workshop import copy_empty_project


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("alterations")
    copy_empty_project(PROJECT, folder)
    return folder


@pytest.fixture
def project(empty, monkeypatch):
    monkeypatch.chdir(empty)
    monkeypatch.setenv("HIGHWATER_LAKE", str(empty / "lake"))
    if not Path("models/tables").exists():
        settings = {"connector": "mysql"}
        columns = "Qty:int,at:timestamp[millis]"
        add_table("debezium_rolls.tolls", "id:int,line:int", columns, "debezium-json", settings)
        add_table("dms_rolls.members", "id:int", "name:string", "dms-csv")
    return empty


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (("add",), "add takes COLUMN:TYPE, for example: highwater alter tolls add city:string"),
        (("add", "qty:string"), "has the column qty"),
        (("add", "Qty:string"), "has the column qty"),
        (("drop", "id"), "is in the key"),
        (("drop", "nothing"), "has no column 'nothing'; columns are: id, line, qty, at"),
        (("rename", "qty", "line"), "is the field 'line' already"),
        (("rename", "qty", "Qty"), "is read from the field 'Qty' already"),
        (("type", "qty", "int"), "is int already"),
        (("type", "qty", "strng"), "unknown type"),
        (("unit", "qty", "millis"), "which only date, timestamp, timestamp_ntz may have"),
        (("unit", "at", "millis"), "is in millis already"),
        (("key", "id", "line"), "the key of tolls is id, line"),
    ],
)
def test_what_is_refused(project, action, said):
    before = {path: path.read_bytes() for path in project.glob("models/**/*.yml")}
    with pytest.raises(UsageError, match=re.escape(said)):
        alteration("tolls", action[0], action[1:])
    assert {path: path.read_bytes() for path in project.glob("models/**/*.yml")} == before


def test_what_is_edited(project):
    for action, *values in [
        ("add", "City:string,n:int"), ("rename", "qty", "Quantity"), ("rename", "Quantity", "Amount"),
        ("type", "qty", "decimal(12,2)"), ("unit", "at", "micros"), ("drop", "n"), ("key", "id"),
    ]:  # fmt: skip
        alteration("tolls", action, tuple(values)).edit()
    columns, key = declared_columns("tolls")
    assert [(c.name, c.field, c.written_type) for c in columns] == [
        ("id", "id", "int"), ("line", "line", "int"), ("qty", "Amount", "decimal(12,2)"),
        ("at", "at", "timestamp[micros]"), ("city", "City", "string"),
    ]  # fmt: skip
    assert key == ["id"] and declared_shape("tolls")["columns"]["qty"]["former_fields"] == ["Quantity", "Qty"]
    text = Path("models/tables/rolls/tolls.yml").read_text()
    assert "[id, line]" not in text and text.count("key: [id]") >= 3
    assert yaml.safe_load(text) and [str(each) for each in check().findings if each.is_error] == []


def test_files_without_names_get_a_period(project):
    added = alteration("members", "add", ("city:string",))
    assert any("_dms_rolls__sources.yml" in str(path) for path in added.files)
    added.edit()
    assert [each["columns"] for each in periods_of("dms_rolls", "members")] == [["id", "name"], ["id", "name", "city"]]
    with pytest.raises(UsageError, match="do not name their columns, so there is no name that could change"):
        alteration("members", "rename", ("name", "called"))
