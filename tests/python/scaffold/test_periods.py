"""Periods of the columns of files: how they are read from a declaration, and how one more gets into it."""

import pytest
import yaml
from highwater.catalog.feeds import FAST_LOADER
from highwater.scaffold import periods

PLAIN = """
sources:
  - name: dms_shop
    schema: raw
    config:
      meta:
        feed: {{format: {format}{settings}}}
    tables:
      # the table that everybody knows
      - name: orders
        identifier: dms_shop
        {columns}
        description: Orders. # stays
      - name: items
        config: {{meta: {{columns: [id]}}}}
"""
IN_FLOW = "config: {meta: {columns: [id, name]}}"
IN_META = "config:\n          meta: {columns: [id, name]}"
IN_BLOCK = "config:\n          meta:\n            columns: [id, name] # as they stand"
IN_LINES = "config:\n          meta:\n            columns:\n              - id\n              - name"
FAR_LEFT = "config:\n          meta:\n            columns:\n            - id\n            - name"
TWO_IN_FLOW = "config: {meta: {columns: [{columns: [id]}, {columns: [id, name]}]}}"
TWO = """config:
          meta:
            columns:
              - {columns: [id]} # until May
              - columns: [id, name]
                when: "source_file >= 'x'"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "models/staging/dms_shop/_dms_shop__sources.yml"
    path.parent.mkdir(parents=True)

    def declare(columns, format="dms-csv", settings=""):
        path.write_text(PLAIN.format(columns=columns.strip(), format=format, settings=settings))
        return path

    return declare


@pytest.mark.parametrize("columns", [IN_FLOW, IN_META, IN_BLOCK, IN_LINES, FAR_LEFT, TWO_IN_FLOW, TWO])
@pytest.mark.parametrize("field", ["city", "total, net", "no", "on: {"])
def test_one_more_column_is_a_period_behind_the_others(project, columns, field):
    path = project(columns)
    before, others = periods.periods_of("dms_shop", "orders"), yaml.load(path.read_text(), FAST_LOADER)
    assert periods.add_column("dms_shop", "orders", field) == path.relative_to(path.parents[3])
    assert periods.periods_of("dms_shop", "orders") == [*before, {"columns": ["id", "name", field]}]
    text = path.read_text()
    assert "# the table that everybody knows" in text and "Orders. # stays" in text, text
    assert "# until May" in text or columns is not TWO
    found = yaml.load(text, FAST_LOADER)
    for document in (found, others):
        document["sources"][0]["tables"][0].pop("config")
    assert found == others
    assert periods.add_column("dms_shop", "orders", field) is None, "it is there already"
    assert path.read_text() == text


@pytest.mark.parametrize(
    "columns, settings, at, expected",
    [
        ("id, name, AR_H_CHANGE_SEQ", ", sequence_column: AR_H_CHANGE_SEQ", None, "id name city AR_H_CHANGE_SEQ"),
        ("id, name, ts, BI_id", ", timestamp_column: ts", None, "id name city ts BI_id"),
        ("ts, id, name", ", timestamp_column: ts", None, "ts id name city"),
        ("id, name, AR_H_CHANGE_SEQ", ", sequence_column: AR_H_CHANGE_SEQ", 3, "id name AR_H_CHANGE_SEQ city"),
        ("id, name", "", 1, "id city name"),
    ],
)
def test_it_stands_before_what_the_producer_adds(project, columns, settings, at, expected):
    project(f"config: {{meta: {{columns: [{columns}]}}}}", settings=settings)
    periods.add_column("dms_shop", "orders", "city", at)
    assert periods.periods_of("dms_shop", "orders")[-1] == {"columns": expected.split()}


def test_records_that_name_their_fields_have_no_periods(project):
    path = project("config: {meta: {columns: [id]}}", "dms-parquet")
    text = path.read_text()
    assert periods.add_column("dms_shop", "orders", "city") is None and path.read_text() == text


def test_yaml_to_paste_is_what_is_read(project):
    declared = [{"columns": ["id", "qty [kg]"]}, {"columns": ["id", "{{ x }}", "no"], "when": "source_file >= 'a'"}]
    lines = periods.in_block(declared).replace("\n", "\n            ")
    project(f"config:\n          meta:\n            {lines}")
    assert periods.periods_of("dms_shop", "orders") == declared
