"""What a build knew of its tables is handed to the next one while the commits are those it was known at."""

import json
import os
from types import SimpleNamespace

import pytest
from highwater.builds import facts
from highwater.spark import dbt
from highwater.spark.lake_tables import newest_commits

KNOWN = {"log_batch": 4, "feeds": {"shop": 9}, "rows": 20, "applied": 4, "held": None, "highest": "0a"}
WRITTEN = KNOWN | {"since": 3, "merged_since": 3, "arrived_rows": 2, "ends": {}, "due": 2}


@pytest.fixture
def lake(tmp_path, monkeypatch):
    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path))
    for layer in facts.LAYERS:
        commit(tmp_path, layer, 3)
    return tmp_path


def commit(lake, layer, version, content="{}"):
    log = lake / f"tables/lake.db/orders_{layer}/_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020}.json").write_text(content)


def handed() -> dict | None:
    with facts.handed_over(["orders", "another"], newest_commits("lake")):
        given = os.environ.get(facts.OF_TABLE + "orders")
        assert os.environ[facts.MET] == "met" and facts.OF_TABLE + "another" not in os.environ
    assert not [name for name in os.environ if name.startswith((facts.OF_TABLE, facts.MET))]
    return json.loads(given) if given else None


def built(lake, answer=WRITTEN, layers=("changes", "merged")):
    before = newest_commits("lake")
    for layer in layers:
        commit(lake, layer, 4)
    facts.keep({"orders": answer}, before)


def test_what_holds_on_is_handed_over(lake):
    built(lake)
    assert handed() == KNOWN | {"history": 0}


@pytest.mark.parametrize("layer", facts.LAYERS)
def test_another_commit_of_any_layer_is_asked(lake, layer):
    built(lake)
    commit(lake, layer, 5)
    assert handed() is None


def test_a_commit_of_the_same_number_that_is_another_one_is_asked(lake):
    built(lake)
    commit(lake, "merged", 4, content='{"restored": true}')
    assert handed() is None


@pytest.mark.parametrize(
    ("answer", "layers"),
    [
        ({}, ("changes", "merged")),  # held back for a publication, or made for the first time
        (KNOWN, ("changes",)),  # nothing was appended, and yet there is a commit
        (KNOWN | {"since": 3}, ("changes", "merged")),  # the base was not written, and yet there is a commit
    ],
)
def test_what_another_writer_may_have_changed_is_not_kept(lake, answer, layers):
    built(lake)
    commit(lake, "changes", 5)
    before = newest_commits("lake")
    for layer in layers:
        commit(lake, layer, 6)
    facts.keep({"orders": answer}, before)
    assert handed() is None


def test_a_merge_that_changed_no_row_has_no_commit(lake):
    built(lake, layers=("changes",))
    assert handed() == KNOWN | {"history": 0}


def test_another_version_means_something_else(lake, monkeypatch):
    built(lake)
    monkeypatch.setattr(facts, "version", lambda name: "0.0.1")
    assert handed() is None


@pytest.mark.parametrize("content", ['{"by": ', "[]", "", '{"by": "0.0.1", "tables": {}}'])
def test_a_damaged_file_is_asked_for(lake, content):
    built(lake)
    (lake / "facts.json").write_text(content)
    assert handed() is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda found: found.update(tables=[]),
        lambda found: found["tables"].update(orders=None),
        lambda found: found["tables"]["orders"].pop("commits"),
        lambda found: found["tables"]["orders"].update(facts=4),
        lambda found: found["tables"]["orders"]["facts"].pop("feeds"),
    ],
)
def test_a_file_that_somebody_has_edited_is_asked_for(lake, damage):
    built(lake)
    found = json.loads((lake / "facts.json").read_text())
    damage(found)
    (lake / "facts.json").write_text(json.dumps(found))
    assert handed() is None


@pytest.mark.parametrize(
    ("failures", "status", "where", "has_none"),
    [(0, "pass", None, True), (3, "warn", None, False), (3, "pass", None, False), (0, "pass", "feed = 'shop'", False)],
)
def test_a_list_is_not_counted_where_its_test_has_found_it_empty(failures, status, where, has_none):
    """A test passes also with rows where `warn_if` allows some, and looks at some where `where` says which."""
    node = SimpleNamespace(
        name="is_empty_stale_rows_",
        attached_node="model.highwater.stale_rows",
        test_metadata=SimpleNamespace(name="is_empty"),
        config=SimpleNamespace(where=where),
    )
    dbt.begin(is_same=False)
    dbt.take_answers([SimpleNamespace(node=node, status=status, failures=failures)])
    assert dbt.empty == ({"stale_rows"} if has_none else set())
    # the build goes on with what was skipped, and finds a row
    dbt.take_answers([SimpleNamespace(node=node, status="warn", failures=1)])
    assert dbt.empty == set()
