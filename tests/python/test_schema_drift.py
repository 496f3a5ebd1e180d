"""A field that is not declared, or is gone: reported, refused, or made a column, as the table says."""

import pytest
import yaml
from workshop import change

pytestmark = pytest.mark.long

TABLE = "datastream_drift.drifting"
DECLARATION = "models/tables/drift/drifting.yml"


@pytest.fixture(scope="module")
def drifting(workshop):
    workshop.add_table(TABLE, "id:int", "v:string")
    workshop.deliver(TABLE, "a.json", [change("INSERT", "1", {"id": 1, "v": "a"})])
    workshop.land("datastream_drift")
    workshop.add_table(TABLE, history=True)
    workshop.build("+drifting", "drifting_history")
    return workshop


def mode(workshop, text):
    path = workshop.folder / DECLARATION
    workshop.declared = getattr(workshop, "declared", path.read_text())
    path.write_text(path.read_text().replace("config: {severity: warn}", f"config: {{{text}}}"))


def land_new_field(workshop, name, key, value):
    records = [change("INSERT", f"{key}{n}", {"id": key + n, "v": "b", "Loyalty": value}) for n in range(2)]
    workshop.deliver(TABLE, name, [change("INSERT", f"{key}", {"id": key, "v": "b"}), *records[1:]])
    workshop.land("datastream_drift")


def build(workshop, capsys, monkeypatch):
    """`highwater build` without its landing of other feeds: what it prints and returns."""
    from highwater import dbt
    from highwater.new_fields import add_new_fields

    add_new_fields(workshop.spark)
    status = dbt.run(["build", "--quiet", "--select", "+drifting"])
    return status, "".join(capsys.readouterr())


def test_report(drifting, capsys, monkeypatch):
    land_new_field(drifting, "report.json", 10, "gold")
    status, output = build(drifting, capsys, monkeypatch)
    assert status == 0
    assert (
        "datastream_drift/drifting/report.json: the field Loyalty is not declared (1 record, the first in line 2)."
        in output
    )
    assert drifting.value("select count(*) from drifting") == 3
    _, output = build(drifting, capsys, monkeypatch)
    assert "Loyalty" not in output  # said once


def test_fail(drifting, capsys, monkeypatch):
    mode(drifting, "severity: error")
    land_new_field(drifting, "fail.json", 20, "gold")
    status, output = build(drifting, capsys, monkeypatch)
    assert status == 1 and "fail.json: the field Loyalty is not declared" in output
    assert drifting.value("select count(*) from drifting") == 3
    assert drifting.value("select count(*) from drifting_changes where source_file like '%fail.json'") == 0


def test_add(drifting, capsys, monkeypatch):
    (drifting.folder / DECLARATION).write_text(drifting.declared)
    mode(drifting, "severity: warn, meta: {new_fields: add}")
    status, output = build(drifting, capsys, monkeypatch)
    assert status == 0, output
    assert "drifting: the new field Loyalty of datastream_drift/drifting/fail.json is a column (string) now." in output
    assert drifting.rows("select id, loyalty from drifting order by id") == [
        (1, None),
        (10, None),
        (11, None),  # reported only: it was taken in without
        (20, None),
        (21, "gold"),
    ]
    assert "{meta: {field: Loyalty}}" in (drifting.folder / "models/tables/drift/drifting.yml").read_text()
    drifting.build("drifting_history", command="build")
    assert drifting.rows("select loyalty from drifting_history where id = 21") == [("gold",)]
    for model in yaml.safe_load((drifting.folder / DECLARATION).read_text())["models"]:
        assert [column["name"] for column in model.get("columns", [])] in ([], ["id", "v", "loyalty"])


def test_a_field_in_other_letters_is_told_with_what_to_do(drifting, capsys, monkeypatch):
    """A second column of that name cannot be added."""
    drifting.deliver(TABLE, "letters.json", [change("INSERT", "30", {"id": 30, "V": "c"})])
    drifting.land("datastream_drift")
    status, output = build(drifting, capsys, monkeypatch)
    assert status == 0
    assert (
        "datastream_drift/drifting/letters.json: the field V is not declared (1 record, the first in line 1). v is: in "
        "drifting.yml, give the column v config: {meta: {field: V}}, then: highwater replay drifting" in output
    )


@pytest.mark.soak
def test_a_field_that_is_gone_is_reported_where_absence_says_something(workshop, capsys, monkeypatch):
    workshop.add_table("dms_drift.shelves", "id:int", "v:string", "dms-csv", {"header": "true"})
    path = workshop.declaration("shelves")
    path.write_text(
        path.read_text() + "    data_tests:\n      - has_declared_fields:\n"
        "          arguments: {feed: dms_drift, table: shelves, entity: shelves}\n"
        "          config: {severity: warn}\n"
    )
    workshop.deliver("dms_drift.shelves", "20260302-091530000.csv", "Op,id\nI,1\n")
    workshop.land("dms_drift")
    from highwater import dbt

    assert dbt.run(["build", "--quiet", "--select", "+shelves"]) == 0
    output = "".join(capsys.readouterr())
    assert "dms_drift/shelves/20260302-091530000.csv: the field v is in no record of its file." in output
    assert workshop.rows("select rejection_reason from shelves_changes") == [("wrong_column_count",)]
