"""A field that is not declared, or is gone: reported, refused, or made a column, as the table says."""

import errno

import pytest
import yaml
from highwater.scaffold.check import check
from highwater.scaffold.new_fields import types_of_fields
from highwater.upkeep.alter import alter
from highwater.upkeep.alterations import alteration
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
    workshop.build("+drifting", "drifting_history", command="run")
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
    from highwater.catalog.entities import models_of_tables
    from highwater.scaffold.new_fields import add_new_fields
    from highwater.spark import dbt, progress
    from highwater.upkeep.evolution import meet

    add_new_fields(workshop.spark)
    list(meet(workshop.spark, ["drifting"]))
    with progress.shown(models_of_tables()):
        status = dbt.run(["build", "--select", "+drifting"])
    return status, "".join(capsys.readouterr())


def test_report(drifting, capsys, monkeypatch):
    land_new_field(drifting, "report.json", 10, "gold")
    status, output = build(drifting, capsys, monkeypatch)
    assert status == 0
    assert (
        "datastream_drift/drifting/report.json: the field Loyalty is not declared (1 record, the first in line 2). "
        "To make a column of it (`highwater check` knows the TYPE): highwater alter drifting add Loyalty:TYPE" in output
    )
    # what dbt has to say of the test is said in words of the table, once
    told = [line for line in output.splitlines() if "declared_fields" in line or line.startswith("warning: ")]
    assert [line.partition(", which")[0] for line in told] == [
        "warning: datastream_drift.drifting: new records have fields that are not as declared"
    ]
    assert drifting.value("select count(*) from drifting") == 3


def test_fail(drifting, capsys, monkeypatch):
    mode(drifting, "severity: error")
    land_new_field(drifting, "fail.json", 20, "gold")
    status, output = build(drifting, capsys, monkeypatch)
    assert status == 1 and "fail.json: the field Loyalty is not declared" in output
    assert "report.json" not in output  # said once
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
        (11, "gold"),  # it was applied without, and is read again
        (20, None),
        (21, "gold"),
    ]
    assert (
        "{meta: {field: Loyalty, came_later: true}}"
        in (drifting.folder / "models/tables/drift/drifting.yml").read_text()
    )
    drifting.build("drifting_history", command="run")
    assert drifting.rows("select loyalty from drifting_history where id = 21") == [("gold",)]
    for model in yaml.safe_load((drifting.folder / DECLARATION).read_text())["models"]:
        assert [column["name"] for column in model.get("columns", [])] in ([], ["id", "v", "loyalty"])


def test_modes_of_a_feed(drifting, capsys, monkeypatch):
    """`new_fields: fail` takes nothing in and says what to do; `add` types the column by the values."""
    declared = drifting.folder / DECLARATION
    before = declared.read_text()
    declared.write_text(before.replace("severity: warn, meta: {new_fields: add}", "severity: warn"))
    sources = drifting.folder / "models/staging/datastream_drift/_datastream_drift__sources.yml"
    text = sources.read_text()
    deliver(drifting, "points", 25, v="a", Points=5)
    sources.write_text(text.replace("datastream-json\n", "datastream-json\n          new_fields: fail\n"))
    status, output = build(drifting, capsys, monkeypatch)
    words = " ".join(output.split())
    assert status == 1 and "points.json, line 1: the field Points is not declared" in words, words
    assert "What makes a column of it is said by: highwater check" in words
    told = [str(found) for found in check().findings if "Points" in str(found)]
    assert len(told) == 1 and "highwater alter drifting add Points:bigint" in told[0], told
    assert drifting.value("select count(*) from drifting_changes where source_file like '%/points.json'") == 0
    sources.write_text(text.replace("datastream-json\n", "datastream-json\n          new_fields: add\n"))
    status, output = build(drifting, capsys, monkeypatch)
    assert status == 0 and "points.json is a column (bigint) now." in output, output
    assert drifting.rows("select points from drifting where id in (1, 25) order by id") == [(None,), (5,)]
    sources.write_text(text)


def deliver(workshop, name, key, **values):
    workshop.deliver(TABLE, f"{name}.json", [change("INSERT", str(key), {"id": key, **values})])
    workshop.land("datastream_drift")


def said(capsys, command="build", selected="+drifting_changes"):
    """Run dbt as `highwater build` does, up to the log, which tells; return its status and what was printed."""
    from highwater.spark import dbt

    status = dbt.run([command, "--quiet", "--select", selected])
    return status, "".join(capsys.readouterr())


def be_killed(workshop, monkeypatch, capsys, key):
    """Build, and be gone when every record is applied and nobody was told of a field."""

    def be_gone(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("highwater.spark.dbt.failing_rows", be_gone)
        with pytest.raises(KeyboardInterrupt):
            said(capsys)
    assert workshop.value(f"select count(*) from drifting where id = {key}") == 1


@pytest.mark.soak
def test_a_field_that_a_killed_build_took_in_is_told_by_the_next_one(drifting, capsys, monkeypatch):
    told = "datastream_drift/drifting/{}.json: the field Tier is not declared (1 record, the first in line 1)."
    deliver(drifting, "killed", 40, v="a", Tier=1)
    be_killed(drifting, monkeypatch, capsys, 40)
    be_killed(drifting, monkeypatch, capsys, 40)
    # a build of another table changes nothing
    assert said(capsys, selected="+customers") == (0, "")
    # nothing new has landed
    status, output = said(capsys)
    assert status == 0 and told.format("killed") in output
    assert said(capsys) == (0, "")
    # the next build has something new for the table
    deliver(drifting, "killed_too", 41, v="a", Tier=1)
    be_killed(drifting, monkeypatch, capsys, 41)
    deliver(drifting, "behind", 42, v="a")
    _, output = said(capsys)
    assert told.format("killed_too") in output and "/killed.json" not in output and "/behind.json" not in output
    assert said(capsys) == (0, "")
    # models without their tests
    deliver(drifting, "untested", 43, v="a", Tier=1)
    assert said(capsys, "run") == (0, "") and drifting.value("select count(*) from drifting where id = 43") == 1
    _, output = said(capsys, "test", "stg_datastream_drift__drifting_changes")
    assert told.format("untested") in output
    assert said(capsys) == (0, "")


def test_what_is_noted_is_what_tells(drifting, capsys, monkeypatch):
    """The control: without the note that a build leaves, the next one says nothing."""
    deliver(drifting, "control", 44, v="a", Tier=1)
    be_killed(drifting, monkeypatch, capsys, 44)
    (drifting.folder / "lake/untold.json").unlink()
    assert said(capsys) == (0, "")


def test_a_field_that_must_be_declared_fails_every_build_though_its_records_are_taken_in(drifting, capsys):
    path = drifting.folder / DECLARATION
    text = path.read_text()
    deliver(drifting, "refused", 45, v="a", Tier=1)
    assert said(capsys, "run") == (0, "")
    path.write_text(text.replace("severity: warn", "severity: error"))
    for _ in range(2):
        status, output = said(capsys)
        assert status == 1 and "/refused.json: the field Tier is not declared" in output
    path.write_text(text)
    status, output = said(capsys)
    assert status == 0 and "/refused.json: the field Tier is not declared" in output


def test_a_log_takes_nothing_in_that_cannot_be_noted(drifting, capsys, monkeypatch):
    def no_space(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    drifting.deliver(TABLE, "letters.json", [change("INSERT", "47", {"id": 47, "V": "c"})])
    deliver(drifting, "full", 46, v="a", Tier=1)
    with monkeypatch.context() as patch:
        patch.setattr("highwater.spark.untold.write_state", no_space)
        status, output = said(capsys)
    assert status == 1 and "No space left on device" in output and "Traceback" not in output, output
    assert drifting.value("select count(*) from drifting_changes where source_file like '%/full.json'") == 0
    status, output = said(capsys)
    drifting.said = output  # for the next test
    assert status == 0 and "/full.json: the field Tier is not declared" in output
    assert "/refused.json" not in output  # the build before has said it
    assert drifting.value("select count(*) from drifting where id = 46") == 1


def test_a_field_in_other_letters_is_told_with_what_to_do(drifting):
    """A second column of that name cannot be added."""
    assert (
        "datastream_drift/drifting/letters.json: the field V is not declared (1 record, the first in line 1). v is; to "
        "read the column v from both: highwater alter drifting rename v V" in drifting.said
    )


def test_what_a_field_is_not_any_more_is_reported_where_records_say_it(workshop, capsys, monkeypatch):
    """A field that is gone, where absence says something; a unit that is another one, where records have a schema."""
    workshop.add_table("dms_drift.shelves", "id:int", "v:string", "dms-csv", {"header": "true"})
    path = workshop.declaration("shelves")
    path.write_text(
        path.read_text() + "    data_tests:\n      - has_declared_fields:\n"
        "          arguments: {feed: dms_drift, table: shelves, entity: shelves}\n"
        "          config: {severity: warn}\n"
    )
    workshop.deliver("dms_drift.shelves", "20260302-091530000.csv", "Op,id\nI,1\n")
    workshop.land("dms_drift")
    columns = "at:timestamp[millis],seen:timestamp[micros],left:string"
    workshop.add_table("debezium_units.clocks", "id:int", columns, "debezium-json", {"connector": "postgresql"})

    def record(key: int, op: str, of_at: str, **others) -> dict:
        kinds = {"id": None, "at": f"io.debezium.time.{of_at}", "seen": "io.debezium.time.MicroTimestamp"}
        fields = [{"type": "int64", "field": name, "name": kind} for name, kind in kinds.items()]
        source = {"connector": "postgresql", "ts_ms": 1_700_000_000_000, "snapshot": "false", "lsn": key}
        row = {"id": key, "at": 1_700_000_000_000, "seen": 1_700_000_000_000_000} | others
        payload = {
            "before": row if op == "d" else None,
            "after": None if op == "d" else row,
            "op": op,
            "source": source,
        }
        return {"schema": {"type": "struct", "fields": [{"field": "after", "fields": fields}]}, "payload": payload}

    told = [record(1, "c", "Timestamp"), record(2, "c", "MicroTimestamp"), record(3, "c", "MicroTimestamp")]
    workshop.deliver("debezium_units.clocks", "1.json", told)
    workshop.deliver("debezium_units.clocks", "2.json", [record(4, "c", "Timestamp", local=1_700_000_000_000_000)])
    workshop.deliver("debezium_units.clocks", "3.json", [record(1, "d", "Timestamp")])
    workshop.land("debezium_units")
    from highwater.spark import dbt

    assert dbt.run(["build", "--quiet", "--select", "+shelves", "+clocks"], types_of_fields()) == 0
    output = "".join(capsys.readouterr())
    assert "dms_drift/shelves/20260302-091530000.csv: the field v is in no record of its file." in output
    assert workshop.rows("select rejection_reason from shelves_changes") == [("wrong_column_count",)]
    found = sorted(line.partition("debezium_units/clocks/")[2] for line in output.splitlines() if "/clocks/" in line)
    # the third file has a delete alone, which carries no row
    assert found == [
        "1.json: the field at is declared in millis, and its records say io.debezium.time.MicroTimestamp "
        "(2 records, the first in line 2). They are read as they say. To declare that: highwater alter clocks unit at "
        "micros",
        "1.json: the field left is in no record of its file.",
        "2.json: the field left is in no record of its file.",
        "2.json: the field local is not declared (1 record, the first in line 1). To make a column of it: highwater "
        "alter clocks add local:bigint",
    ]
    advised = found[0].partition("To declare that: highwater alter ")[2].split()
    alter(workshop.spark, alteration(advised[0], advised[1], tuple(advised[2:])))
    workshop.deliver("debezium_units.clocks", "4.json", [record(5, "c", "MicroTimestamp")])
    workshop.land("debezium_units")
    capsys.readouterr()
    assert dbt.run(["test", "--quiet", "--select", "stg_debezium_units__clocks_changes"]) == 0
    output = "".join(capsys.readouterr())
    assert "4.json: the field left" in output and "the field at" not in output
    # of a type that Delta wants a feature for, in tables that have none of it: with a record that has it, and without
    alter(workshop.spark, alteration("clocks", "add", ("local:timestamp_ntz[micros]",)))
    alter(workshop.spark, alteration("clocks", "add", ("due:timestamp_ntz[micros]",)))
    found = workshop.rows("select id, cast(local as string), cast(due as string) from clocks order by id")
    assert found == [(1, None, None), (2, None, None), (3, None, None), (4, "2023-11-14 22:13:20", None)]
