"""Declarations as commands change them: whatever style they are written in, and all else as it was."""

from pathlib import Path

import pytest
import yaml
from highwater.catalog.as_built import declared_shape, differences, shape_of_table
from highwater.catalog.columns import Column
from highwater.catalog.declarations import in_columns, out_of_columns, set_in_column, set_key, set_type
from highwater.catalog.entities import declared_columns
from highwater.runtime.errors import UsageError

FLOW = """\
models:
  - name: orders_changes
    config:
      meta:
        key: [id, line] # of the source
    columns: &columns
      - {name: id, data_type: int}
      - {name: line, data_type: int, config: {meta: {field: Line}}}
      # what the source says
      - {name: at, data_type: timestamp, config: {}}
  - name: orders_merged
    data_tests:
      - has_agreeing_layers: {arguments: {key: [id, line]}}
  - name: orders
    columns: *columns
    data_tests:
      - has_unique_key: {arguments: {key: [id, line]}}
"""
BLOCK = """\
models:
  - name: orders_changes
    config:
      meta:
        key:
          - id
          - line
    columns:
      - name: id
        data_type: int
      - name: line
        data_type: int
        config:
          meta:
            field: Line
      - name: at
        data_type: "timestamp"
        description: >
          when
  - name: orders
    columns:
      - name: id
      - name: line
      - name: at
    data_tests:
      - has_unique_key:
          arguments:
            key: [id, line]
"""


@pytest.fixture(params=[FLOW, BLOCK], ids=["flow", "block"])
def orders(request, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("models/tables/shop/orders.yml")
    path.parent.mkdir(parents=True)
    path.write_text(request.param)
    return path


def column(name: str) -> Column:
    return next(each for each in declared_columns("orders")[0] if each.name == name)


def test_settings_of_a_column(orders):
    for name in ("id", "line", "at"):
        set_in_column("orders", name, "came_later", True)
    set_in_column("orders", "line", "former_fields", ["a b"])
    set_in_column("orders", "line", "former_fields", ["a b", "no", "Zeile"])
    set_in_column("orders", "at", "unit", "millis")
    set_in_column("orders", "at", "unit", "micros")
    set_type("orders", "line", "decimal(12,2)")
    columns = declared_shape("orders")["columns"]
    assert all(each["came_later"] for each in columns.values())
    assert columns["line"]["former_fields"] == ["a b", "no", "Zeile"] and columns["line"]["field"] == "Line"
    assert columns["line"]["type"] == "decimal(12,2)" and columns["at"]["unit"] == "micros"
    with pytest.raises(UsageError, match="no column 'city'; columns are: id, line, at"):
        set_in_column("orders", "city", "came_later", True)


def test_columns_in_and_out(orders):
    before = yaml.safe_load(orders.read_text())
    in_columns("orders", Column("city", "City", "string"))
    assert [each.name for each in declared_columns("orders")[0]] == ["id", "line", "at", "city"]
    after = yaml.safe_load(orders.read_text())
    names = [[each["name"] for each in model["columns"]] for model in after["models"] if "columns" in model]
    assert names == [["id", "line", "at", "city"]] * 2
    out_of_columns("orders", column("city"))
    assert yaml.safe_load(orders.read_text()) == before
    out_of_columns("orders", column("at"))
    assert [each.name for each in declared_columns("orders")[0]] == ["id", "line"]


def test_another_key(orders):
    set_key("orders", [column("line")])
    assert declared_columns("orders")[1] == ["line"]
    assert "[id, line]" not in orders.read_text() and orders.read_text().count("[line]") >= 2


def test_what_differs(orders, monkeypatch):
    monkeypatch.setattr("highwater.catalog.as_built.stored_columns", lambda: {"log_batch"})
    was = declared_shape("orders")
    there = {"id": "int", "line": "int", "at": "timestamp"}
    assert not differences("orders", was, was, there, there)
    set_in_column("orders", "line", "field", "Zeile")
    assert differences("orders", was, declared_shape("orders"), there, there).others == [
        "the field of line is Zeile and was Line"
    ]
    set_in_column("orders", "line", "former_fields", ["Line"])
    assert differences("orders", was, declared_shape("orders"), there, there).renamed == ["line"]
    in_columns("orders", Column("city", "city", "string"))
    set_type("orders", "id", "bigint")
    out_of_columns("orders", column("at"))
    found = differences("orders", was, declared_shape("orders"), there, there)
    assert (found.added, found.dropped, found.types) == (["city"], ["at"], {"id": ("int", "bigint")})
    # a table that no build has written down, and a base that lacks what its log has
    now = declared_shape("orders")
    there |= {"city": "string", "id": "bigint"}
    assert differences("orders", shape_of_table(there | {"log_batch": "bigint"}, now), now, there, None).dropped == [
        "at"
    ]
    assert differences("orders", now, now, there, {"id": "bigint", "line": "int"}).added == ["city"]
