"""The seed's experiment as its article does it, and what the article gets wrong."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from workshop import change


@pytest.fixture(scope="module")
def changes(workshop):
    """The 1000 changes of TABLE1 in the order of the source."""
    records = []
    for path in sorted(Path("landing/datastream_user1/table1").iterdir()):
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        records += [json.loads(line) for line in text.splitlines() if line.strip()]
    assert len(records) == 1000

    def order(record):
        return [int(section, 16) for section in record["datastream_metadata"]["change_sequence_number"].split("/")]

    return sorted(records, key=order)


@pytest.fixture(scope="module")
def exported(workshop):
    with open("exports/exports_user1/table1/table1.csv", newline="") as file:
        return {row["COL1"]: row["COL2"] for row in csv.DictReader(file)}


def state_after(changes):
    rows = {}
    for record in changes:
        if record["datastream_metadata"]["change_type"] == "DELETE":
            rows.pop(record["COL1"], None)
        else:
            rows[record["COL1"]] = record["COL2"]
    return rows


def view(workshop, table):
    return dict(workshop.rows(f"select col1, col2 from {table}"))


def test_counts_of_the_experiment(changes):
    kinds = [record["datastream_metadata"]["change_type"] for record in changes]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"INSERT": 382, "DELETE": 194, "UPDATE-INSERT": 424}
    seconds = [record["datastream_metadata"]["source_timestamp"] for record in changes]
    assert len(set(seconds)) < len(seconds) / 2


def test_the_view_over_the_full_log(workshop, changes, exported):
    rows = workshop.rows(
        """
        select latest.col1, latest.col2 from (
            select max_by(struct(*), struct(change_sequence_number, not is_deleted, change_hash)) as latest
            from table1_changes group by col1
        ) where not latest.is_deleted
        """
    )
    assert dict(rows) == exported == state_after(changes) and len(rows) == 188


@pytest.fixture(scope="module")
def steps(workshop, changes):
    """Two tables side by side: halves (CHANGES_1, CHANGES_2, both again), and a base with the changes since."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["COL1", "COL2"])
    writer.writerows(state_after(changes[:400]).items())
    seen = []
    for number, (halves, based) in enumerate(
        [
            (changes[:500], changes[400:800]),
            (changes[500:], text.getvalue()),  # the base lands after changes that are newer
            (changes[500:], changes[800:]),
        ]
    ):
        workshop.deliver("datastream_article.halves", f"{number}.json", halves)
        if isinstance(based, str):
            workshop.deliver("baseline_article.based", "base.csv", based)
        else:
            workshop.deliver("datastream_article.based", f"{number}.json", based)
        workshop.land("datastream_article", "baseline_article")
        if number == 2:  # and the first batch once more, behind the second
            workshop.deliver("datastream_article.halves", "first-again.json", changes[:500])
            workshop.land("datastream_article")
        workshop.build("+halves", "+based", command="run")
        seen.append((view(workshop, "halves"), view(workshop, "based"), workshop.version("halves_merged")))
    return seen


@pytest.mark.soak
def test_base_1_and_the_merge_of_changes_2(steps, changes, exported):
    assert steps[0][0] == state_after(changes[:500])
    assert steps[1][0] == exported


@pytest.mark.soak
def test_a_batch_twice_and_the_first_batch_after_the_second_change_nothing(steps, exported):
    assert steps[2][0] == exported
    assert steps[1][2] == steps[2][2]  # no version was written


@pytest.mark.soak
def test_a_base_as_the_lowest_sequence(steps, workshop, changes, exported):
    """An export of the source as of the start is one feed, the changes since are another; in either order."""
    assert steps[1][1] == state_after(changes[:800])
    assert steps[2][1] == exported
    feeds = workshop.rows("select feed, max(landing_batch) from based_changes group by 1 order by 1")
    assert [feed for feed, _ in feeds] == ["baseline_article", "datastream_article"]
    operations = workshop.rows(
        "select distinct change_type, change_sequence_number from based_changes where feed = 'baseline_article'"
    )
    assert operations == [("insert", "0" * 16 + "/" + "0" * 16)]


@pytest.fixture(scope="module")
def sort_keys(workshop):
    """Oracle sort keys; rows whose rs_id is empty are the backfill. Some columns have names of the project."""

    def record(operation, scn, rs_id, k, v, ssn="0"):
        return change(
            operation,
            "",
            {"k": k, "v": v, "feed": "own", "operation": "sum", "Copy": 2},
            sort_keys=["1700", scn, rs_id, ssn],
        )

    steps = [
        [
            record("INSERT", "500", "", "d7", "old"),
            record("UPDATE-INSERT", "9", "0x00001.0002.3", "d7", "new"),
            record("UPDATE-INSERT", "9", "0x1.2.3", "d16", "c9"),
            record("UPDATE-INSERT", "scn9", "0x1.2.3", "d17-text", "never"),
            record("UPDATE-INSERT", "9", "0x1.2.3", "d17", "first"),
            record("UPDATE-INSERT", "10", "0x1.2.3", "d17", "second"),
            record("UPDATE-INSERT", "10", "0xF.2.3", "rs_id", "first"),
            record("UPDATE-INSERT", "10", "0x10.0.0", "rs_id", "second"),
            record("UPDATE-INSERT", "10", "0x1.0.0", "ssn", "first", "9"),
            record("UPDATE-INSERT", "10", "0x1.0.0", "ssn", "second", "10"),
            record("UPDATE-INSERT", "18446744073709551616", "0x1.0.0", "d17-wide", "never"),
        ],
        [record("INSERT", "500", "", "d16", "b0")],
    ]
    for number, records in enumerate(steps):
        workshop.deliver("datastream_oracle.scn_ordered", f"{number}.json", records)
        workshop.land_and_run("datastream_oracle", "+scn_ordered")


@pytest.mark.soak
def test_d7_d16_d17_backfill_rows_declared_by_a_predicate(sort_keys, workshop):
    rows = dict(workshop.rows("select k, v from scn_ordered"))
    assert rows == {"d7": "new", "d16": "c9", "d17": "second", "rs_id": "second", "ssn": "second"}
    rejected = workshop.rows(
        "select k, rejection_reason from scn_ordered_changes where verdict = 'rejected' order by 1"
    )
    assert rejected == [("d17-text", "unreadable_sequence"), ("d17-wide", "unreadable_sequence")]


@pytest.mark.soak
def test_columns_with_names_of_the_project_get_their_names_back(sort_keys, workshop):
    assert workshop.rows("select feed, operation, copy from scn_ordered where k = 'd7'") == [("own", "sum", 2)]
    names = workshop.rows("select distinct source_feed, feed, operation from scn_ordered_changes where k = 'd7'")
    assert names == [("own", "datastream_oracle", "sum")]


@pytest.mark.soak
def test_matches_export_compares_columns_with_names_of_the_project(sort_keys, workshop):
    """A staging model of an export holds them as source_<name>, beside the project's own."""
    declaration = workshop.declaration("scn_ordered")
    described = declaration.read_text()
    check = '      - matches_export: {arguments: {export: \'source("exports_oracle", "scn_ordered")\', key: [k]}}\n'
    declaration.write_text(described.replace("      - has_unique_key", check + "      - has_unique_key", 1))
    source = workshop.folder / "models/staging/exports_oracle.yml"
    source.write_text(
        "sources: [{name: exports_oracle, schema: lake, tables: [{name: scn_ordered, identifier: export_of_scn}]}]\n"
    )
    columns = "k, v, feed as source_feed, 'exports' as feed, operation, copy"
    try:
        for changed, is_found in [(columns, False), (columns.replace("feed as", "'other' as"), True)]:
            workshop.spark.sql(f"create or replace view lake.export_of_scn as select {changed} from scn_ordered")
            tested = workshop.dbt("test", "--select", "scn_ordered,test_name:matches_export")
            assert not tested.exception, tested.exception
            assert [str(check.status) for check in tested.result] == ["fail" if is_found else "pass"]
    finally:
        declaration.write_text(described)
        source.unlink()
