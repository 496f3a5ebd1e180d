"""A damaged table costs what it would have said, and nothing of the others: status, summary, queries, exit codes."""

import contextlib
import json
import re
import shutil

import pytest
from click.testing import CliRunner
from highwater import cli
from highwater.builds import last_build, rejections
from highwater.catalog.feeds import declared_feeds
from highwater.catalog.rendering import render
from highwater.runtime import faults
from highwater.runtime.errors import UsageError
from highwater.runtime.project import lake
from highwater.status.status import status
from workshop import change, in_soak_but

LISTED = [("customers", [("datastream_user1", "customers")]), ("cases", [("datastream_cases", "cases")])]


def lose_files(folder):
    """Every file of rows is gone, the log is there."""
    files = list(folder.glob("**/*.parquet"))
    for file in files:
        file.unlink()
    assert files


def cut_files(folder):
    """Every file of rows ends in its middle."""
    files = [file for file in folder.glob("**/*.parquet") if "_delta_log" not in file.parts]
    for file in files:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert files


def lose_log(folder):
    """Delta's log is gone, the files are there."""
    shutil.rmtree(folder / "_delta_log")


def empty_commits(folder):
    """What a power cut leaves."""
    for commit in (folder / "_delta_log").glob("*.json"):
        commit.write_bytes(b"")


@pytest.fixture(scope="module")
def built(workshop):
    """The ledger of two of the workshop's tables."""
    path = workshop.folder / "macros/operations/logged_tables.sql"
    every_table = path.read_text()
    path.write_text(render("logged_tables.sql", entities=[table for table, _ in LISTED]))
    record = change("INSERT", "1", {"case_name": "damaged", "k": "a", "v": "x"})
    workshop.deliver("datastream_cases.cases", "damaged.json", [record])
    workshop.land("datastream_cases")
    workshop.build("+cases", "ledger", "rejected_changes", "stale_rows", command="run")
    yield workshop
    path.write_text(every_table)


def list_two_tables(patch):
    """Let the project list these two tables alone."""
    for module in ("catalog.entities", "landing.landing", "builds.last_build", "status.status"):
        patch.setattr(f"highwater.{module}.logged_tables", lambda: LISTED)


@pytest.fixture
def two_tables(built, monkeypatch):
    """Two of the workshop's tables, as if there were no other ones."""
    list_two_tables(monkeypatch)
    return built


@contextlib.contextmanager
def damaged(workshop, table: str, how):
    """Damage the folder of a table meanwhile."""
    schema, name = table.split(".")
    folder = lake() / f"tables/{schema}.db/{name}"
    beside = folder.with_name(f"{name}.whole")
    shutil.copytree(folder, beside)
    try:
        how(folder)
        forget_what_was_read(workshop)
        yield
    finally:
        shutil.rmtree(folder)
        beside.rename(folder)
        forget_what_was_read(workshop)


def forget_what_was_read(workshop):
    workshop.forget_what_was_read()
    for name in ("raw.datastream_user1", "lake.customers_changes", "lake.customers_merged", "lake.ledger"):
        with contextlib.suppress(Exception):
            workshop.spark.catalog.refreshTable(name)


def shown(monkeypatch, workshop, *command):
    """What a command prints, its error and its exit code, in the session of the workshop."""

    @contextlib.contextmanager
    def reading_session():
        yield workshop.spark

    monkeypatch.setattr("highwater.spark.spark.reading_session", reading_session)
    result = CliRunner().invoke(cli.commands, command)
    error = result.exception
    code = getattr(error, "exit_code", UsageError.exit_code) if error else 0
    return result.output, faults.sentence_of(error) if error else "", code


# what is damaged, how, which fields of which tables are empty for it
DAMAGES = [
    ("lake.customers_merged", lose_files, {"customers": {"base", "pending"}, "cases": set()}),
    ("raw.datastream_user1", empty_commits, {"customers": {"landed_at", "waiting"}, "cases": set()}),
    ("lake.ledger", lose_files, {"customers": {"read"}, "cases": {"read"}}),
    ("lake.customers_merged", lose_log, {"customers": {"base", "pending"}, "cases": set()}),
    ("lake.customers_changes", cut_files, {"customers": {"waiting"}, "cases": set()}),
]
FIELDS = {"landed_at", "waiting", "base", "pending", "read"}


@pytest.fixture(scope="module")
def whole(built):
    """What status and summary say of the two tables when nothing is damaged."""
    with pytest.MonkeyPatch.context() as patch:
        list_two_tables(patch)
        found = {row["table"]: row for row in status(built.spark)}
        words, untold, *_ = last_build.summary(built.spark)
    assert untold == [] and not [row for row in found.values() if row["trouble"]]
    assert None not in {row[name] for row in found.values() for name in FIELDS}
    return found, words


@pytest.mark.long
@pytest.mark.parametrize(("table", "how", "empty"), in_soak_but(DAMAGES[:2], DAMAGES))
def test_a_damaged_table_costs_its_line_alone(two_tables, whole, monkeypatch, table, how, empty):
    before, words = whole
    with damaged(two_tables, table, how):
        output, told, code = shown(monkeypatch, two_tables, "status", "--format", "json")
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        found = {row["table"]: row for row in lines}
        assert code == 1 and found.keys() == before.keys()
        for entity, row in found.items():
            assert {name: row[name] for name in FIELDS} == {
                name: None if name in empty[entity] else json.loads(json.dumps(before[entity][name], default=str))
                for name in FIELDS
            }
            assert bool(row["trouble"]) == bool(empty[entity]), row
            if row["trouble"]:
                assert table in row["trouble"] and "\n" not in row["trouble"] and "damaged" in row["trouble"], row
                assert row["trouble"] in told
        said, untold, *_ = last_build.summary(two_tables.spark)
        (line,) = [line for line in words.splitlines() if line.startswith("  cases ")]
        assert line.split("  from ")[0].rstrip() in said, said
        # of a log the summary reads what the ledger has not counted, and there is nothing of that
        assert bool(untold) == (table != "lake.customers_changes"), said
        for name in {sentence.split()[0] for sentence in untold}:
            assert re.search(rf"^  {name}:? +asking .*{table}.* damaged", said, re.M), said
    assert shown(monkeypatch, two_tables, "status")[1:] == ("", 0)


@pytest.mark.soak
def test_a_page_and_a_build_tell_a_damaged_table_too(two_tables, whole, monkeypatch):
    feeds = {"datastream_cases": declared_feeds()["datastream_cases"]}
    monkeypatch.setattr("highwater.commands.build.feeds_named", lambda _: feeds)
    build = ["build", "--select", "cases", "--quiet"]
    with damaged(two_tables, "lake.customers_merged", lose_files):
        output, told, code = shown(monkeypatch, two_tables, "status", "--format", "html")
        assert code == 1 and output.count('<p class="odd">asking lake.customers_merged') == 1, told
        output, told, code = shown(monkeypatch, two_tables, *build)
        assert code == 1 and "customers could not be asked; its line says why" in told
        assert re.search(r"^  cases +[\d,]+ rows now", output, re.M), output
        assert re.search(r"^  customers +asking the rows of customers failed on lake.customers_merged", output, re.M)
    output, told, code = shown(monkeypatch, two_tables, *build, "--threads", "1")
    assert (told, code) == ("", 0), output


@pytest.mark.soak
def test_a_query_of_a_damaged_table_says_what_to_do(two_tables, monkeypatch):
    for how in (lose_files, lose_log, empty_commits):
        with damaged(two_tables, "lake.customers_merged", how):
            _, told, code = shown(monkeypatch, two_tables, "query", "select * from customers")
            assert code == 2 and "damaged" in told and "highwater rebuild" in told, told
            output, told, code = shown(monkeypatch, two_tables, "query", "select count(*) as n from cases")
            assert code == 0 and "n" in output, told


@pytest.mark.soak
def test_a_log_that_cannot_be_asked_hides_no_rejection_of_another(two_tables):
    with damaged(two_tables, "lake.customers_changes", lose_files):
        found, untold = rejections.of_build(two_tables.spark, {"cases": 1, "customers": 1})
    assert len(untold) == 1 and "customers_changes" in untold[0]
    assert [rejected.entity for rejected in found] == [
        rejected.entity for rejected in rejections.of_build(two_tables.spark, {"cases": 1})[0]
    ]
