"""What `highwater alter` edits, and what it refuses before anything is done; no Spark."""

import json
import re
from pathlib import Path

import pytest
import yaml
from highwater.catalog.as_built import declared_shape, differences
from highwater.catalog.declarations import append_epoch, epochs_of
from highwater.catalog.entities import declared_columns, has_history, settings_of, sources_of_logs
from highwater.catalog.feeds import declared_feeds, numbers_of
from highwater.formats.records import record_batch
from highwater.landing.feed_folders import delivered_files, undeclared_folders
from highwater.landing.read_files import as_declared
from highwater.runtime.errors import CheckError, UsageError
from highwater.scaffold.add_table import add_table
from highwater.scaffold.check import check
from highwater.scaffold.periods import periods_of
from highwater.scaffold.rename_table import left_in, renamed_files
from highwater.upkeep import alter as altering
from highwater.upkeep import renaming
from highwater.upkeep.alterations import Alteration, alteration
from highwater.upkeep.evolution import Met
from highwater.upkeep.losses import WouldBeLostError
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


REST = ". If that change was interrupted, this finishes it or says how: highwater build"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (("add",), "add takes COLUMN:TYPE, for example: highwater alter tolls add city:string"),
        (("add", "qty:string"), f"has the column qty, for the field 'Qty', already{REST}"),
        (("add", "Qty:string"), "has the column qty"),
        (("drop", "id"), "is in the key"),
        (("drop", "nothing"), "has no column 'nothing'; columns are: id, line, qty, at"),
        (("rename", "qty", "line"), "is the field 'line' already"),
        (("rename", "qty", "Qty"), f"is read from the field 'Qty' already{REST}"),
        (("type", "qty", "int"), f"is int already{REST}"),
        (("type", "qty", "strng"), "unknown type"),
        (("unit", "qty", "millis"), "which only date, timestamp, timestamp_ntz may have"),
        (("unit", "at", "millis"), f"is in millis already{REST}"),
        (("key", "id", "line"), "the key of tolls is id, line already" + REST),
        (("key", "id", "qty", "id"), "the key of tolls is id, line, and would be id, qty, id"),
        (("name", "tolls"), "is called so already"),
        (("name", "members"), "the project has members, members_changes, members_merged already"),
        (("name", "Tolls"), "no name of a table inside the project"),
        (("feed", "tungsten_rolls.tolls"), "is not declared yet; say its format with --format"),
        (("feed", "dms_rolls.members"), "brings the records of members already"),
        (("feed", "debezium_rolls.levies"), "brings records of tolls already, as debezium_rolls.tolls"),
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


def made_of(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(folder.glob("**/*")) if path.is_file()}


def until_killed(step, left):
    def killed(*arguments, **options):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return step(*arguments, **options)

    return killed


def test_another_name(project, monkeypatch):
    """Its files, and whoever reads it; killed behind any step, the same command does the rest."""
    tests = "data_tests: [{agrees: {with: ref('tolls_merged')}}]"
    readers = {
        "models/marts/rolls/dues.sql": "{%- set at = 'tolls' -%}\nselect * from {{ ref('tolls') }} -- not 'tolls'\n",
        "models/marts/rolls/dues.yml": f"models:\n  - {{name: dues, {tests}}}\n",
        "snapshots/tolls_seen.yml": "snapshots:\n  - {name: tolls_seen, relation: ref('tolls')}\n",
        "tests/old.sql": "select * from lake.tolls\n",
    }
    for path, text in readers.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)
    add_table("debezium_rolls.tolls", history=True)
    texts = renamed_files("tolls", "levies")
    assert left_in(texts, "tolls") == ["tests/old.sql line 1"]
    before = made_of(Path("models"))
    (project / "lake").mkdir(exist_ok=True)
    journal, kills = project / "lake/renaming.json", 0
    written = {str(path): text for path, text in texts.items()}
    journal.write_text(json.dumps({"was": "tolls", "is": "levies", "texts": written}))
    while True:
        with monkeypatch.context() as patch:  # each time one step further
            left = iter(range(1))
            for owner, name in ((renaming, "write_whole"), (renaming, "forget_state"), (Path, "unlink")):
                patch.setattr(owner, name, until_killed(getattr(owner, name), left))
            try:
                renaming.finish_project()
                break
            except KeyboardInterrupt:
                kills += 1
        with pytest.raises(UsageError, match="`highwater alter tolls name levies` was killed"):
            renaming.refuse_half()
    journal.unlink()
    after = made_of(Path("models"))
    assert kills > 10 and not [path for path in after if "tolls" in Path(path).name]
    assert len(after) == len(before) and declared_columns("levies")[1] == ["id"]
    sources = dict(sources_of_logs())
    assert sources["levies"] == [("debezium_rolls", "tolls")] and "tolls" not in sources and has_history("levies")
    assert after["models/marts/rolls/dues.sql"] == readers["models/marts/rolls/dues.sql"].replace(
        "ref('tolls')", "ref('levies')"
    )
    assert "ref('levies_merged')" in after["models/marts/rolls/dues.yml"]
    assert "ref('levies')" in Path("snapshots/tolls_seen.yml").read_text()
    told = after["models/tables/rolls/levies.yml"]
    assert "table: tolls, entity: levies" in told and "view: levies" in told and "The rows of levies as" in told
    assert "'levies'" in Path("macros/operations/logged_tables.sql").read_text()
    assert [str(each) for each in check().findings if each.is_error] == []
    for path in readers:
        Path(path).unlink()


def test_another_feed(project):
    alteration("members", "feed", ("debezium_rolls.people",)).edit()
    assert dict(sources_of_logs())["members"] == [("debezium_rolls", "people"), ("dms_rolls", "members")]
    assert epochs_of("debezium_rolls")[1] == [{"table": "people", "number": 1000}]
    before = made_of(Path("models"))
    alteration("members", "feed", ("debezium_rolls.people",)).edit()  # as behind a kill
    assert made_of(Path("models")) == before
    append_epoch("debezium_rolls", {"when": "source_identity = '202'"})
    assert numbers_of(epochs_of("debezium_rolls")[1]) == [1000, 1001]
    # what the feed has said of its own epochs is said again above those of the others
    settings = {"dialect": "mysql"}
    alteration("members", "feed", ("tungsten_guild.people",), format="tungsten-csv", settings=settings).edit()
    assert epochs_of("tungsten_guild")[1] == [{"table": "people", "number": 2000}]
    with pytest.raises(UsageError, match="brought records of members before another feed did"):
        alteration("members", "feed", ("debezium_rolls.people",)).edit()
    assert [str(each) for each in check().findings if each.is_error] == []


def test_the_epochs_of_a_feed_are_kept_above_those_of_others(project):
    add_table("arcion_rolls.fees", "id:int", "n:int", "arcion-json", {})
    append_epoch("arcion_rolls", {"when": "source_file > 'b'"})
    append_epoch("arcion_rolls", {"table": "fees", "when": "source_file > 'c'", "ignore": True})
    add_table("debezium_rolls.rents", "id:int", "n:int")
    alteration("rents", "feed", ("arcion_rolls.rents",), resync=True).edit()
    assert epochs_of("arcion_rolls")[1][2:] == [
        {"table": "rents", "number": 2000, "resync": True}, {"table": "rents", "when": "source_file > 'b'"},
    ]  # fmt: skip
    assert numbers_of(epochs_of("arcion_rolls")[1]) == [1, 2, 2000, 2001]
    assert settings_of("rents")["truncates"] is True


def test_a_feed_of_another_kind_is_not_compared_in_silence(project):
    add_table("debezium_rolls.carts", "id:int", "n:int")
    was = declared_shape("carts")
    add_table("csv_rolls.carts", format="csv")
    assert not differences("carts", was, declared_shape("carts"), {"id": "int", "n": "int"}, None)
    add_table("datastream_rolls.carts", format="datastream-json")
    found = differences("carts", was, declared_shape("carts"), {"id": "int", "n": "int"}, None)
    assert found.feeds == ["datastream_rolls.carts"] and found.is_unsafe
    assert "highwater alter carts feed datastream_rolls.carts" in found.what_to_do()
    alteration("carts", "feed", ("datastream_rolls.carts",)).edit()
    assert not differences("carts", was, declared_shape("carts"), {"id": "int", "n": "int"}, None)


def test_another_name_at_the_source(project, tmp_path, monkeypatch):
    add_table("dms_rolls.guests", "id:int", "name:string")
    for name in ("people", "clients"):
        alteration("guests", "name", (name,), at_source=True).edit()
    (feed,) = [each for each in declared_feeds().values() if each.name == "dms_rolls"]
    assert {feed.in_raw(name) for name in ("people", "clients", "guests")} == {"guests"}
    monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path))
    for folder in ("guests", "people", "others"):
        (tmp_path / "dms_rolls" / folder).mkdir(parents=True)
        (tmp_path / "dms_rolls" / folder / "1.csv").write_text("I,1,a\n")
    assert [(file.source_file, file.table) for file in delivered_files(feed)] == [
        ("dms_rolls/guests/1.csv", "guests"), ("dms_rolls/people/1.csv", "guests"),
    ]  # fmt: skip
    assert undeclared_folders(feed) == ["others"]
    told = record_batch([1, 2, 3], [b"1", b"2", b"3"], tables=["people", None, "others"])
    assert as_declared(told, feed.options.also_called).column("source_table").to_pylist() == ["guests", None, "others"]
    for name, said in (("guests", "calls guests so already"), ("lodgers", "are those of the table lodgers")):
        if name == "lodgers":
            add_table("dms_rolls.lodgers", "id:int", "name:string")
        with pytest.raises(UsageError, match=said):
            alteration("guests", "name", (name,), at_source=True)
    assert [str(each) for each in check().findings if each.is_error] == []


@pytest.mark.parametrize("is_anew", [True, False])
def test_what_would_be_lost_is_told_with_the_command_that_was_typed(tmp_path, monkeypatch, is_anew):
    """The declaration is as it was behind it, so that a rebuild would not make the change."""
    declared = tmp_path / "jars.yml"
    declared.write_text("as it was")
    words = "2 keys that are there would be gone"

    def refuse(*_):
        raise WouldBeLostError("take the loss: highwater rebuild jars --from raw --accept-loss", words)

    monkeypatch.setattr(altering, "newest_versions", lambda: {"lake.jars_changes": 1})
    monkeypatch.setattr(altering, "rebuild_from_raw", refuse)
    monkeypatch.setattr(
        altering, "meet", lambda *_: [Met("jars", "highwater rebuild jars", is_refused=True, lost=words)]
    )
    edit = lambda: declared.write_text("edited")  # noqa: E731
    change = Alteration("jars", "reads at in micros", [declared], edit, is_anew=is_anew)
    with pytest.raises(CheckError) as refused:
        altering.alter(None, change)
    said = str(refused.value)
    assert words in said and said.endswith("type it again with --accept-loss") and "rebuild" not in said
    assert declared.read_text() == "as it was"
