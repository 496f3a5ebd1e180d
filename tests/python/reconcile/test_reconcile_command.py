"""`highwater reconcile`: as of positions, in flight, what was not checked, and what every format of it shows."""

import base64
import json
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import date, datetime, timezone
from decimal import Decimal
from xml.etree import ElementTree

import pyarrow
import pyarrow.parquet
import pytest
import yaml
from highwater.catalog.feeds import declared_feeds
from highwater.landing.landing import skip
from highwater.reconcile import explain as reconcile_explain
from highwater.reconcile import measure as reconcile_measure
from highwater.reconcile import page as reconcile_page
from highwater.reconcile import reconcile as reconciliation
from highwater.reconcile.export import Export, newest_export
from highwater.reconcile.results import RUN
from highwater.reconcile.verdict import EXIT_CODES, FAIL, INCONCLUSIVE, PASS
from highwater.runtime import project
from highwater.runtime.errors import UsageError
from highwater.runtime.project import lake
from highwater.spark.lake_tables import RECONCILIATIONS
from workshop import change, in_soak_but

pytestmark = pytest.mark.long
TABLE, EXPORT = "vessels", "exports_fleet.vessels"
NAMES = ["ID", "NAME", "WEIGHT", "SEEN", "NOTE"]


def test_of_export(
    workshop,
    system: str,
    table: str,
    key: str,
    meta: dict | None = None,
    where=None,
    second: dict | None = None,
    **arguments,
):
    """Add matches_export to the mart, a second one with other arguments, and meta to its columns."""
    path = workshop.declaration(table)
    document = yaml.safe_load(path.read_text())
    model = next(each for each in document["models"] if each["name"] == table)
    model["data_tests"] = [test for test in model["data_tests"] if "matches_export" not in test]
    arguments = {"export": f"ref('stg_exports_{system}__{table}')", "key": [key], **arguments}
    test = {"arguments": arguments, "config": {"where": where, "store_failures": True}}
    model["data_tests"].append({"matches_export": test})
    if second:
        model["data_tests"].append({"matches_export": {"name": "second", "arguments": {**arguments, **second}}})
    # a list of its own, beside that of the log
    model["columns"] = [{"name": column["name"]} for column in model["columns"]]
    for column in model["columns"]:
        if own := (meta or {}).get(column["name"]):
            column["config"] = {"meta": own}
    path.write_text(yaml.safe_dump(document, sort_keys=False))


test_of_export.__test__ = False


class Fleet:
    """A table whose source the test plays: it writes, is delivered, and is exported at any moment."""

    def __init__(self, workshop, system: str = "fleet", table: str = TABLE):
        self.workshop, self.number, self.rows, self.exports = workshop, 0, {}, 0
        self.table, self.feed, self.export_feed = table, f"datastream_{system}", f"exports_{system}"
        workshop.add_table(
            f"{self.feed}.{table}", "ID:bigint", "NAME:string,WEIGHT:decimal(12,2),SEEN:timestamp,NOTE:string"
        )
        settings = {"role": "export", "positions": self.feed}
        workshop.add_table(f"{self.export_feed}.{table}", None, None, "csv", settings)

    @property
    def position(self) -> str:
        return f"{self.number:X}/1"

    def write(self, *changes: tuple[str, int, dict]):
        """Write at the source; return the records of it."""
        records = []
        for operation, key, values in changes:
            self.number += 1
            values = {"ID": key, **self.rows.get(key, {}), **values}
            if operation == "DELETE":
                self.rows.pop(key)
            else:
                self.rows[key] = {name: values.get(name) for name in NAMES}
            records.append(change(operation, self.position, values))
        return records

    def deliver(self, records):
        self.workshop.deliver(f"{self.feed}.{self.table}", f"{self.number:04}.json", records)

    def export(self, position=None, rows=None, more: str = ""):
        """Export what the source holds now."""
        self.exports += 1
        self.deliver_export(f"{self.table}-{self.exports:03}.csv", position, rows, more)
        self.workshop.land(self.export_feed)

    def deliver_export(self, name: str, position=None, rows=None, more: str = "", **declared):
        """Put an export into its folder, a part of one into the folder that its name begins with."""
        text = self.text_of_export(rows) + more
        self.workshop.deliver(f"{self.export_feed}.{self.table}", name, text, root=self.workshop.exports)
        self.declare(name.split("/")[0], position or self.position, **declared)

    def text_of_export(self, rows=None, names=NAMES) -> str:
        """Return these rows as an export, or those that the source has."""
        cells = [
            ",".join("" if value is None else f'"{value}"' for value in (row.get(name) for name in names))
            for _, row in sorted((rows if rows is not None else self.rows).items())
        ]
        return "".join(f"{line}\r\n" for line in [",".join(names), *cells])

    def declare(self, name: str, position, **declared):
        """Write the entry of an export into its `_exports.yml`."""
        path = self.workshop.exports / self.export_feed / self.table / "_exports.yml"
        entries = yaml.safe_load(path.read_text()) if path.exists() else {}
        entries[name] = {"position": position, **declared}
        path.write_text(yaml.safe_dump(entries))

    def build(self):
        self.workshop.land(self.feed, self.export_feed)
        self.workshop.build(f"+{self.table}", command="run")

    def newest(self) -> Export:
        """Return the export that would be compared."""
        (plan,) = reconciliation.plans((self.table,))
        return newest_export(self.workshop.spark, plan, datetime.now(timezone.utc).strftime(RUN))

    def reconcile(self, as_of=None, with_repairs=False):
        run = reconciliation.reconcile(self.workshop.spark, (self.table,), as_of, with_repairs)
        (found,) = run.comparisons
        sides = {
            side: sum(getattr(counts, f"{side}_rows") for counts in found.counts.values())
            for side in ("lake", "export")
        }
        assert sides == {"lake": found.lake_rows or 0, "export": found.export_rows or 0}, "the counts do not add up"
        return found

    @contextmanager
    def broken(self, *statements: str):
        """Break the merged table, and put it back."""
        spark, table = self.workshop.spark, f"lake.{self.table}_merged"
        version = self.workshop.version(table)
        for statement in statements:
            spark.sql(statement.format(table=table))
        yield
        spark.sql(f"restore table {table} to version as of {version}")


def vessel(number: int, **values) -> dict:
    return {
        "NAME": f"vessel {number}",
        "WEIGHT": f"{number}.50",
        "SEEN": f"2024-08-{number % 28 + 1:02} 12:00:00.000001",
        "NOTE": f"secret {number}",
        **values,
    }


@pytest.fixture(scope="module")
def fleet(workshop):
    fleet = Fleet(workshop)
    fleet.deliver(fleet.write(*(("INSERT", number, vessel(number)) for number in range(1, 31))))
    fleet.export()
    workshop.land(fleet.feed)
    workshop.build(f"+{TABLE}", f"stg_{fleet.export_feed}__{TABLE}", command="run")
    plans, kept = reconciliation.plans, {}

    def plans_once(tables):
        asked = (tables, tuple(workshop.state_of_files().items()))
        return kept[asked] if asked in kept else kept.setdefault(asked, plans(tables))

    with pytest.MonkeyPatch.context() as patch:
        # what is asked of a table depends on files of the project alone
        patch.setattr(reconciliation, "plans", plans_once)
        yield fleet


def found_in(comparison) -> dict:
    return {verdict: counts.keys for verdict, counts in comparison.counts.items() if counts.keys}


def test_equal_tables_pass(fleet):
    found = fleet.reconcile()
    assert (found.verdict, found.not_checked, found.notes) == (PASS, [], [])
    assert found_in(found) == {"equal": 30}
    assert found.compared == "as it is now: nothing has changed since the position of the export"


FAULTS = {
    "value": (["update {table} set weight = weight + 0.01 where id = 7"], {"value_differs": 1}, "weight"),
    "value to NULL": (["update {table} set name = null where id = 7"], {"value_differs": 1}, "name"),
    "missing": (["delete from {table} where id in (3, 4)"], {"missing_in_lake": 2}, None),
    "duplicate": (["insert into {table} select * from {table} where id = 5"], {"duplicate_in_lake": 1}, None),
    "trailing blank": (["update {table} set name = concat(name, ' ') where id > 20"], {"value_differs": 10}, "name"),
    "truncated": (["update {table} set name = left(name, 3) where id > 20"], {"value_differs": 10}, "name"),
    "offset": (["update {table} set seen = seen + interval 2 hours where id > 20"], {"value_differs": 10}, "seen"),
}
CAUSES = {
    "missing": "change not applied: 2 of 2 have a change in the log that is not in the table",
    "trailing blank": "trailing blank in name: 10 of 10 are equal without blanks at the end",
    "truncated": "truncated text in name: 10 of 10 are the beginning of what the export has",
    "offset": "constant time offset in seen: 10 of 10 are 7200 s later in the lake",
}


@pytest.mark.parametrize("fault", in_soak_but(["missing"], FAULTS))
def test_a_planted_fault_is_found_and_named(fleet, fault):
    statements, expected, column = FAULTS[fault]
    with fleet.broken(*statements):
        found = fleet.reconcile()
    assert found.verdict == FAIL
    assert {verdict: keys for verdict, keys in found_in(found).items() if verdict != "equal"} == expected
    assert list(found.columns) == ([column] if column else [])
    assert CAUSES.get(fault) in [None, *map(reconcile_page.cause_in_words, found.causes)]
    assert {sample.verdict for sample in found.samples} == set(expected)
    keys = [int(sample.key["id"]) for sample in found.samples]
    assert keys == sorted(keys) and len(keys) <= reconcile_explain.SAMPLES


@pytest.mark.soak
def test_every_way_to_compare_finds_the_same(fleet, monkeypatch):
    """Few rows are put aside; many are joined by their keys, which is given up when a key is there twice."""
    statements = [
        "update {table} set weight = weight + 0.01 where id = 7",
        "delete from {table} where id in (3, 4)",
        "insert into {table} select * from {table} where id = 5",
    ]
    expected = {"equal": 26, "value_differs": 1, "missing_in_lake": 2, "duplicate_in_lake": 1}
    used = []
    for name in ("_kept", "_write_differences_of_unique_keys", "_write_differing_keys"):
        way = getattr(reconcile_measure, name)
        monkeypatch.setattr(
            reconcile_measure, name, lambda *given, _name=name, _way=way: used.append(_name) or _way(*given)
        )
    with fleet.broken(*statements):
        assert found_in(fleet.reconcile()) == expected
        assert used == ["_kept", "_write_differing_keys"]
        monkeypatch.setattr(reconcile_measure, "MANY_ROWS", 0)
        for few_buckets in (reconcile_measure.FEW_BUCKETS, 0):
            used.clear()
            monkeypatch.setattr(reconcile_measure, "FEW_BUCKETS", few_buckets)
            assert found_in(fleet.reconcile()) == expected
            assert used == ["_write_differences_of_unique_keys", "_write_differing_keys"]
    used.clear()
    with fleet.broken(*statements[:2]):
        assert found_in(fleet.reconcile()) == {"equal": 27, "value_differs": 1, "missing_in_lake": 2}
        assert used == ["_write_differences_of_unique_keys"]


def test_position_and_time_decide_which_export_is_compared(fleet):
    """Not the name: as text `-9` is above `-10`. What was compared stands in the first lines."""
    other = {**fleet.rows, 11: {**fleet.rows[11], "NAME": "other", "NOTE": "secret other"}}
    fleet.deliver_export("a-9.csv", None, fleet.rows, taken_at="2024-08-01T10:00:00Z")
    fleet.deliver_export("a-10.csv", None, other, taken_at="2024-08-01T10:00:01Z")
    fleet.deliver_export("z.csv", "1D/1", {**other, 12: other[11]}, taken_at="2099-01-01T00:00:00Z")
    fleet.workshop.land("exports_fleet")
    # the one that the fixture has exported was taken later than both
    assert fleet.newest().file == "exports_fleet/vessels/vessels-001.csv"
    for name, moment in {"b-9.csv": "2098-08-01T10:00:00+02:00", "b-10.csv": "2098-08-01T08:00:01Z"}.items():
        fleet.deliver_export(name, None, other if "10" in name else fleet.rows, taken_at=moment)
    fleet.workshop.land("exports_fleet")
    found = reconciliation.reconcile(fleet.workshop.spark, (TABLE,))
    (each,) = found.comparisons
    assert (each.verdict, each.export_file) == (FAIL, "exports_fleet/vessels/b-10.csv")
    words = (
        "export exports_fleet/vessels/b-10.csv, position 1E/1, taken 2098-08-01 08:00:01 UTC, less than a minute old, "
        "30 rows"
    )
    assert reconcile_page.export_in_words(each) == words
    assert words in reconcile_page.as_json(found)[:500] and words in reconcile_page.as_junit(found)[:700]
    assert words in reconcile_page.page(fleet.workshop.spark, found).partition("<table")[0]
    suite = ElementTree.fromstring(reconcile_page.as_junit(found))
    assert (suite.get("failures"), suite.get("errors"), suite.find("testcase").get("name")) == ("1", "0", TABLE)
    # what is not declared sensitive is shown
    assert "secret other" in reconcile_page.as_json(found)
    # the test of the model reads the same one
    (failed,) = fleet.workshop.dbt("test", "--select", f"matches_export_{TABLE}*").result
    assert failed.failures == 1
    fleet.deliver_export("b-11.csv", None, fleet.rows, taken_at="2098-08-01T08:00:01Z")
    fleet.workshop.land("exports_fleet")
    found = fleet.reconcile()
    assert found.verdict != PASS and "nothing says which export is the newest" in found.not_checked[0]
    fleet.deliver_export("b-12.csv", None, fleet.rows, taken_at="2098-08-02T00:00:00Z")
    fleet.workshop.land("exports_fleet")
    assert (fleet.newest().file, fleet.newest().flaws) == ("exports_fleet/vessels/b-12.csv", [])


def test_an_export_that_waits_or_has_changed_is_inconclusive(fleet):
    fleet.deliver_export("b-13.csv", None, fleet.rows, taken_at="2098-08-03T00:00:00Z")
    found = fleet.reconcile()
    assert found.verdict == INCONCLUSIVE and found_in(found) == {"equal": 30}
    assert "vessels/b-13.csv lies in the folder and has not landed; run: highwater build" in found.not_checked[0]
    fleet.workshop.land("exports_fleet")
    # delivered again under its name, as nightly dumps are
    fleet.deliver_export("b-13.csv", None, {**fleet.rows, 11: {**fleet.rows[11], "NAME": "much longer than before"}})
    found = fleet.reconcile()
    assert found.verdict == INCONCLUSIVE and "b-13.csv has changed since it landed" in found.not_checked[0]
    skip(fleet.workshop.spark, declared_feeds(), "exports_fleet/vessels/b-13.csv")


@pytest.mark.soak
def test_parts_of_an_export_are_compared_together(fleet):
    halves = [{key: row for key, row in fleet.rows.items() if (key > 15) is later} for later in (False, True)]
    for number, half in enumerate(halves, 1):
        fleet.deliver_export(f"whole/part-{number}.csv", None, half, taken_at="2098-08-04T00:00:00Z")
        # the other part may land in another batch; until then it waits
        fleet.workshop.land("exports_fleet")
        assert fleet.reconcile().verdict == (FAIL if number == 1 else PASS)
    found = fleet.reconcile()
    assert (found.export_file, found.export_records) == ("exports_fleet/vessels/whole", 30)
    assert "whole (2 parts), position 1E/1" in reconcile_page.export_in_words(found)
    for number, half in enumerate(halves, 1):
        fleet.deliver_export(f"lacking/part-{number}.csv", None, half, taken_at="2098-08-05T00:00:00Z")
    skip(fleet.workshop.spark, declared_feeds(), "exports_fleet/vessels/lacking/part-2.csv")
    fleet.workshop.land("exports_fleet")
    found = fleet.reconcile()
    assert found.verdict == FAIL and "is a part of the export and was left out" in found.not_checked[0]
    fleet.deliver_export("b-14.csv", None, fleet.rows, taken_at="2098-08-06T00:00:00Z")
    fleet.workshop.land("exports_fleet")
    assert fleet.reconcile().verdict == PASS


@pytest.mark.soak
def test_an_export_older_than_what_can_be_taken_back_is_inconclusive(fleet):
    found = fleet.reconcile("0/1")
    assert (found.verdict, found.counts, found.causes) == (INCONCLUSIVE, {}, [])
    assert "the export is too old to be compared: its position" in found.not_checked[0]
    assert "is before the first change that lake.vessels_changes has" in found.not_checked[0]
    # the control: the first change itself is there
    assert found_in(fleet.reconcile("1/1"))["equal"] == 1


def test_d15_what_is_newer_than_the_export_is_no_fault(fleet):
    fleet.deliver(fleet.write(("INSERT", 31, vessel(31))))
    fleet.build()
    found = fleet.reconcile()
    assert (found.verdict, found_in(found)) == (PASS, {"equal": 30})
    assert found.compared == "as of the position, 1 later changes taken back"
    # without its position it is one fault, as the test of the model says; add-table has made it a warning
    result = fleet.workshop.dbt("test", "--select", f"matches_export_{TABLE}*")
    assert [(str(each.status), each.failures) for each in result.result] == [("warn", 1)]


@pytest.mark.soak
def test_as_of_its_position_updates_and_deletes_are_taken_back(fleet):
    changed = fleet.write(
        ("UPDATE", 1, {"NAME": "renamed"}),
        ("DELETE", 2, {}),
        ("UPDATE", 3, {"WEIGHT": None}),
        ("DELETE", 31, {}),
    )
    fleet.deliver(changed)
    fleet.build()
    assert (fleet.reconcile().verdict, fleet.reconcile("1E/1").verdict) == (PASS, PASS)
    # one insert less
    earlier = fleet.reconcile("1D/1")
    assert (earlier.verdict, found_in(earlier)) == (FAIL, {"equal": 29, "missing_in_lake": 1})
    with fleet.broken("update {table} set name = 'x' where id = 9", "delete from {table} where id = 10"):
        assert found_in(fleet.reconcile()) == {"equal": 28, "value_differs": 1, "missing_in_lake": 1}
    fleet.export()
    found = fleet.reconcile()
    assert (found.verdict, found_in(found)) == (PASS, {"equal": 29})
    with fleet.broken("update {table} set is_deleted = false where id = 2"):
        found = fleet.reconcile()
    assert (found.verdict, found_in(found)) == (FAIL, {"equal": 29, "extra_in_lake": 1})
    (cause,) = found.causes
    assert (cause.cause, cause.rows) == ("delete not applied", 1)


@pytest.mark.soak
def test_an_export_that_is_ahead_is_inconclusive(fleet):
    late = fleet.write(("UPDATE", 5, {"NAME": "late"}), ("INSERT", 32, vessel(32)))
    fleet.export()
    found = fleet.reconcile()
    assert found.verdict == INCONCLUSIVE and "the changes that have been applied end at" in found.not_checked[0]
    assert found_in(found) == {"equal": 28, "value_differs": 1, "missing_in_lake": 1}
    fleet.deliver(late)
    # landed, and not built
    fleet.workshop.land("datastream_fleet")
    found = fleet.reconcile()
    assert found.verdict == INCONCLUSIVE
    assert ("late tail", 2) in [(cause.cause, cause.rows) for cause in found.causes]
    fleet.build()
    assert fleet.reconcile().verdict == PASS


@pytest.mark.soak
def test_an_export_between_two_positions(fleet):
    """It was read while rows changed: each is there as some version that was valid meanwhile."""
    start, rows = fleet.position, {key: dict(values) for key, values in fleet.rows.items()}
    changed = fleet.write(("UPDATE", 6, {"NAME": "first"}))
    rows[6] = dict(fleet.rows[6])
    changed += fleet.write(
        ("UPDATE", 6, {"NAME": "second"}),
        ("UPDATE", 7, {"NAME": "not read any more"}),
        ("DELETE", 8, {}),
        ("INSERT", 33, vessel(33)),
    )
    fleet.deliver(changed)
    fleet.export([start, fleet.position], rows)
    fleet.build()
    found = fleet.reconcile()
    assert (found.verdict, found_in(found)) == (PASS, {"equal": 27, "in_flight": 4}), found.samples
    # the lake has to have what it had at the end, whatever was exported before
    for lost in ("delete from {table} where id in (6, 33)", "update {table} set name = 'spoilt' where id in (6, 33)"):
        with fleet.broken(lost):
            broken = fleet.reconcile()
        assert (broken.verdict, found_in(broken)["in_flight"]) == (FAIL, 2), lost
    # a version that never was
    rows[6]["NAME"] = "neither"
    fleet.export([start, fleet.position], rows)
    found = fleet.reconcile()
    assert (found.verdict, found_in(found)) == (FAIL, {"equal": 27, "in_flight": 3, "value_differs": 1})
    # keys that did not change get no relief
    rows[6], rows[9]["NAME"] = fleet.rows[6], "other"
    fleet.export([start, fleet.position], rows)
    assert found_in(fleet.reconcile()) == {"equal": 27, "in_flight": 3, "value_differs": 1}


@pytest.mark.soak
def test_without_a_position_two_runs_tell(fleet):
    late = fleet.write(("UPDATE", 10, {"NAME": "on its way"}))
    fleet.export("unknown", {**fleet.rows, 11: {**fleet.rows[11], "NAME": "really other"}})
    found = fleet.reconcile()
    assert (found.verdict, found_in(found)) == (INCONCLUSIVE, {"equal": 28, "in_flight": 2})
    # nothing has come meanwhile
    assert fleet.reconcile().verdict == INCONCLUSIVE
    fleet.deliver(late)
    fleet.build()
    found = fleet.reconcile()
    assert (found.verdict, found_in(found)) == (FAIL, {"equal": 29, "value_differs": 1})
    assert "1 that differed in the run before is equal now" in found.notes
    assert found.samples[0].key == {"id": "11"}


@pytest.mark.soak
def test_two_tests_of_a_model_remember_apart(fleet):
    """What one of them has seen before is not news to it because the other one did not look there."""
    late = fleet.write(("UPDATE", 10, {"NAME": "again on its way"}))
    fleet.export("unknown", {**fleet.rows, 11: {**fleet.rows[11], "NOTE": "really other"}})
    test_of_export(fleet.workshop, "fleet", TABLE, "id", second={"exclude_columns": ["note"]})

    def verdicts():
        found = reconciliation.reconcile(fleet.workshop.spark, (TABLE,)).comparisons
        return sorted((each.verdict, each.keys("value_differs"), each.keys("in_flight")) for each in found)

    assert verdicts() == [(INCONCLUSIVE, 0, 1), (INCONCLUSIVE, 0, 2)]
    fleet.deliver(late)
    fleet.build()
    assert verdicts() == [(FAIL, 1, 0), (INCONCLUSIVE, 0, 0)]
    test_of_export(fleet.workshop, "fleet", TABLE, "id")


@pytest.mark.soak
def test_a_position_that_nobody_can_compare(fleet):
    fleet.export("scn 4711", {**fleet.rows, 11: {**fleet.rows[11], "NAME": "other"}})
    found = fleet.reconcile()
    assert found.verdict == INCONCLUSIVE and "none that datastream_fleet has" in found.notes[0]
    with pytest.raises(UsageError, match="--as-of: the position not a position is none that datastream_fleet has"):
        fleet.reconcile("not a position")
    sequence = f"sequence:0000000000000000/{fleet.number:016x}"
    assert fleet.reconcile(sequence).verdict == FAIL


@pytest.mark.soak
def test_rows_of_an_export_that_cannot_be_read(fleet):
    rows = {**fleet.rows}
    gone = rows.pop(12)
    fleet.export(None, rows, more=f'"twelve","{gone["NAME"]}",,,\r\n')
    found = fleet.reconcile()
    assert found.verdict == INCONCLUSIVE
    assert found.not_checked == ["rows of the export that cannot be read: 1 value_does_not_fit"]
    # one unreadable row explains one extra row, not two
    rows.pop(13)
    fleet.export(None, rows, more=f'"twelve","{gone["NAME"]}",,,\r\n')
    assert fleet.reconcile().verdict == FAIL


@pytest.mark.soak
def test_columns_and_rows_that_are_left_out(fleet):
    fleet.export(None, {**fleet.rows, 14: {**fleet.rows[14], "NOTE": "other"}})
    test_of_export(fleet.workshop, "fleet", TABLE, "id", exclude_columns=["note"])
    found = fleet.reconcile()
    assert (found.verdict, found.not_checked) == (INCONCLUSIVE, ["columns left out: note"])
    test_of_export(fleet.workshop, "fleet", TABLE, "id", where="id <> 14")
    found = fleet.reconcile()
    assert (found.verdict, found.lake_rows) == (INCONCLUSIVE, 29)
    assert found.not_checked == ["rows left out: only those with id <> 14 are compared"]
    result = fleet.workshop.dbt("test", "--select", f"matches_export_{TABLE}*")
    assert [str(each.status) for each in result.result] == ["pass"]
    # without the condition the test keeps the row, with its verdict, where dbt keeps failures
    test_of_export(fleet.workshop, "fleet", TABLE, "id")
    (failed,) = fleet.workshop.dbt("test", "--select", f"matches_export_{TABLE}*").result
    (row,) = fleet.workshop.spark.table(failed.node.relation_name).collect()
    assert (row.verdict, row.differing_columns, row.export_values[0].note) == ("value_differs", ["note"], "other")
    # a column that the table has is compared, whether anybody has described it or not
    path = fleet.workshop.declaration(TABLE)
    described = path.read_text()
    document = yaml.safe_load(described)
    model = next(each for each in document["models"] if each["name"] == TABLE)
    model["columns"] = [each for each in model["columns"] if each["name"] != "note"]
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    assert found_in(fleet.reconcile())["value_differs"] == 1
    (failed,) = fleet.workshop.dbt("test", "--select", f"matches_export_{TABLE}*").result
    assert (str(failed.status), failed.failures) == ("fail", 1)
    path.write_text(described)
    test_of_export(fleet.workshop, "fleet", TABLE, "id", columns=["name", "wait"])
    found = fleet.reconcile()
    assert found.verdict == INCONCLUSIVE and found.not_checked == [
        "lake.vessels has no column 'wait'; it has: id, name, weight, seen, note."
    ]
    test_of_export(fleet.workshop, "fleet", TABLE, "id")


@pytest.mark.soak
def test_rules_make_rows_equal_only_where_they_are_declared(fleet):
    rows = {
        **fleet.rows,
        15: {**fleet.rows[15], "NAME": " VESSEL 15 "},
        16: {**fleet.rows[16], "WEIGHT": "16.54"},
        17: {**fleet.rows[17], "SEEN": "2024-08-18 14:00:00.000001"},
    }
    rows = {
        key: {**row, "SEEN": row["SEEN"].replace(" 12:", " 14:")} if row["SEEN"] else row for key, row in rows.items()
    }
    fleet.export(None, rows)
    rules = {
        "name": {"reconcile": {"trim": True, "case": "ignore"}},
        "weight": {"reconcile": {"scale": 1}},
        "seen": {"reconcile": {"time_zone": "Europe/Berlin"}},
    }
    assert found_in(fleet.reconcile()) == {"value_differs": 30}
    test_of_export(fleet.workshop, "fleet", TABLE, "id", rules)
    found = fleet.reconcile()
    assert (found.verdict, found_in(found)) == (PASS, {"equal": 30})
    equal_by_rule = {name: counts["equal_by_rule"] for name, counts in found.columns.items()}
    assert equal_by_rule == {"name": 1, "weight": 1, "seen": 30}
    assert found.rules["name"] == {"trim": True, "case": "ignore"}
    rows[18] = {**rows[18], "NAME": "vessel 18a"}
    fleet.export(None, rows)
    found = fleet.reconcile()
    assert (found.verdict, found_in(found)) == (FAIL, {"equal": 29, "value_differs": 1})
    assert [sample.columns for sample in found.samples] == [["name"]]
    test_of_export(fleet.workshop, "fleet", TABLE, "id")


def test_sensitive_values_are_in_no_output(fleet, capsys):
    test_of_export(fleet.workshop, "fleet", TABLE, "id", {"note": {"sensitive": True}})
    fleet.export(None, {**fleet.rows, 19: {**fleet.rows[19], "NOTE": "secret other", "NAME": "open"}})
    found = reconciliation.reconcile(fleet.workshop.spark, (TABLE,))
    assert found.verdict == FAIL
    reconcile_page.show(found)
    outputs = {
        "table": capsys.readouterr().out,
        "json": reconcile_page.as_json(found),
        "junit": reconcile_page.as_junit(found),
        "html": reconcile_page.page(fleet.workshop.spark, found),
        "results": str(stored(fleet.workshop).where(f"run = timestamp '{found.run}'").select("details").collect()),
    }
    for name, text in outputs.items():
        assert "secret" not in text, name
        assert "open" in text and reconcile_explain.MASK in text, name
    # the rows that dbt keeps of the test, keys too
    test_of_export(fleet.workshop, "fleet", TABLE, "id", {name: {"sensitive": True} for name in ("id", "note")})
    (failed,) = fleet.workshop.dbt("test", "--select", f"matches_export_{TABLE}*").result
    (row,) = fleet.workshop.spark.table(failed.node.relation_name).collect()
    assert "secret" not in str(row) and row.key.id == row.export_values[0].note == reconcile_explain.MASK
    assert row.export_values[0].name == "open" and "note" in row.differing_columns
    test_of_export(fleet.workshop, "fleet", TABLE, "id")


@pytest.mark.soak
def test_a_row_whose_newest_change_was_rejected_is_never_equal(fleet):
    before = {key: dict(row) for key, row in fleet.rows.items()}
    fleet.deliver(fleet.write(("UPDATE", 22, {"WEIGHT": "heavy"}), ("UPDATE", 23, {"NAME": "fine"})))
    fleet.rows[22] = before[22]
    fleet.build()
    fleet.export()
    found = fleet.reconcile()
    assert (found.verdict, found.keys("stale")) == (INCONCLUSIVE, 1)
    assert found.not_checked[0].startswith("1 row of keys whose newest change was rejected: what the lake has is older")
    # one that differs too is a fault, with its cause and what repairs it
    fleet.export(None, {**fleet.rows, 22: {**fleet.rows[22], "WEIGHT": "22.75"}})
    ((each,),) = [reconciliation.reconcile(fleet.workshop.spark, (TABLE,), with_repairs=True).comparisons]
    assert (each.verdict, each.keys("stale"), each.keys("value_differs")) == (FAIL, 0, 1)
    assert "change rejected: 1 of 1 have a newest change that was rejected" in map(
        reconcile_page.cause_in_words, each.causes
    )
    assert [repair.run[-1] for repair in each.repairs] == ["highwater replay vessels"]
    # a later change that is accepted ends it
    fleet.deliver(fleet.write(("UPDATE", 22, {"WEIGHT": "22.75"})))
    fleet.build()
    fleet.export()
    assert fleet.reconcile().verdict == PASS


@pytest.mark.soak
def test_what_mends_each_difference_is_said_and_nothing_is_changed(fleet):
    fleet.export(None, {**fleet.rows, 24: {**fleet.rows[24], "NAME": "not delivered"}, 99: vessel(99) | {"ID": 99}})
    version = fleet.workshop.version(f"lake.{TABLE}_merged")
    with fleet.broken(
        "update {table} set name = 'broken' where id = 25",
        "insert into {table} select * from {table} where id = 26",
        "delete from {table} where id = 27",
    ):
        run = reconciliation.reconcile(fleet.workshop.spark, (TABLE,), with_repairs=True)
    (found,) = run.comparisons
    repaired = {(repair.verdict, repair.run[0]): repair.keys for repair in found.repairs}
    rebuild, deliver = (
        "highwater rebuild vessels",
        "deliver the table whole once more, and: highwater resync vessels --from FILE",
    )
    assert repaired == {
        ("duplicate_in_lake", rebuild): 1,
        ("missing_in_lake", rebuild): 1,
        ("missing_in_lake", deliver): 1,
        ("value_differs", rebuild): 1,
        ("value_differs", deliver): 1,
    }
    for text in (
        reconcile_page.as_json(run),
        reconcile_page.as_junit(run),
        reconcile_page.page(fleet.workshop.spark, run),
    ):
        assert rebuild in text
    assert fleet.workshop.version(f"lake.{TABLE}_merged") == version + 4  # the faults, and what put them back
    fleet.export()
    ((found,),) = [reconciliation.reconcile(fleet.workshop.spark, (TABLE,), with_repairs=True).comparisons]
    assert (found.verdict, found.repairs) == (PASS, [])


def stored(workshop):
    return workshop.spark.read.format("delta").load(project.stored(RECONCILIATIONS))


def test_results_are_appended_and_every_format_tells_the_verdict(fleet):
    fleet.export()
    before = stored(fleet.workshop).count()
    found = reconciliation.reconcile(fleet.workshop.spark, (TABLE, "table1"))
    assert stored(fleet.workshop).count() == before + 2
    assert found.verdict == PASS and EXIT_CODES[PASS] == 0
    assert json.loads(reconcile_page.as_json(found))["verdict"] == PASS
    page = reconcile_page.page(fleet.workshop.spark, found)
    assert page.index("PASS: 2 tables") < page.index("<h2") and "Plotly.newPlot" in page
    assert "http://" not in page.split("</script>")[-1] and 'src="' not in page.split("</script>")[-1]


def test_a_table_without_an_export_is_inconclusive(fleet):
    found = reconciliation.reconcile(fleet.workshop.spark, ("cases",))
    assert (found.verdict, found.comparisons[0].not_checked) == (INCONCLUSIVE, [reconciliation.WITHOUT_EXPORT])
    suite = ElementTree.fromstring(reconcile_page.as_junit(found))
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    with pytest.raises(UsageError, match=r"no table 'nothing'; tables are: .*vessels"):
        reconciliation.reconcile(fleet.workshop.spark, ("nothing",))


TIDES = pyarrow.schema(
    [
        ("ID", pyarrow.int64()),
        ("LEVEL", pyarrow.decimal128(38, 10)),
        ("AT", pyarrow.timestamp("us", "Europe/Berlin")),
        ("LOCAL", pyarrow.timestamp("ms")),
        ("DAY", pyarrow.date32()),
        ("BYTES", pyarrow.binary()),
        ("HIGH", pyarrow.bool_()),
        ("SHARE", pyarrow.float64()),
        ("NOTE", pyarrow.string()),
    ]
)


def tide(number: int) -> dict:
    return {
        "ID": number,
        "LEVEL": Decimal(f"1234567890123456789012345678.{number:010}"),
        "AT": datetime(2024, 8, 1, 12, 0, 0, number, timezone.utc),
        "LOCAL": datetime(2024, 8, 1, 12, 0, number),
        "DAY": date(2024, 8, number),
        "BYTES": bytes([0, 255, number]),
        "HIGH": number % 2 == 0,
        "SHARE": number / 10,
        "NOTE": f" a tide, {number}\n",
    }


@pytest.mark.soak
def test_an_export_in_parquet(workshop):
    columns = "LEVEL:decimal(38,10),AT:timestamp,LOCAL:timestamp_ntz,DAY:date,BYTES:binary,HIGH:boolean,SHARE:double"
    workshop.add_table("datastream_quay.tides", "ID:bigint", f"{columns},NOTE:string")
    settings = {"role": "export", "positions": "datastream_quay"}
    workshop.add_table("exports_quay.tides", None, None, "parquet", settings)
    rows = [tide(number) for number in range(1, 11)] + [{name: None for name in TIDES.names} | {"ID": 11}]
    texts = {"BYTES": lambda value: base64.b64encode(value).decode(), "HIGH": bool, "SHARE": float, "ID": int}
    delivered = [
        {name: None if value is None else texts.get(name, str)(value) for name, value in row.items()} for row in rows
    ]
    changes = [change("INSERT", f"{row['ID']:X}/1", values) for row, values in zip(rows, delivered, strict=True)]
    workshop.deliver("datastream_quay.tides", "1.json", changes)

    def verdict(name: str, rows: list):
        folder = workshop.exports / "exports_quay/tides"
        folder.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, TIDES), folder / name)
        positions = {path.name: {"position": "B/1"} for path in folder.glob("*.parquet")}
        (folder / "_exports.yml").write_text(yaml.safe_dump(positions))
        workshop.land("datastream_quay", "exports_quay")
        workshop.build("+tides", "stg_exports_quay__tides", command="run")
        (found,) = reconciliation.reconcile(workshop.spark, ("tides",)).comparisons
        return found

    assert verdict("tides-1.parquet", rows).verdict == PASS
    # the next value in one column of each row
    for row, name in zip(rows, TIDES.names[1:], strict=False):
        row[name] = not row[name] if name == "HIGH" else tide(row["ID"] + 1)[name]
    found = verdict("tides-2.parquet", rows)
    assert (found.verdict, found_in(found)) == (FAIL, {"equal": 3, "value_differs": 8})
    assert sorted(found.columns) == sorted(name.lower() for name in TIDES.names[1:])


@pytest.mark.soak
def test_the_command_runs_beside_another_process_and_exits_with_the_verdict(fleet):
    def run(*arguments):
        command = [sys.executable, "-m", "highwater.cli", *arguments]
        return subprocess.run(command, cwd=fleet.workshop.folder, capture_output=True, text=True, timeout=600)

    with fleet.broken("delete from {table} where id = 21"):
        failed = run("reconcile", TABLE, "table1")
    assert failed.returncode == 1, failed.stderr
    assert failed.stdout.startswith("FAIL: 2 tables, 1 passed, 1 failed, 0 inconclusive; ")
    assert "vessels: for example missing_in_lake id=21" in failed.stdout
    (query,) = [line.partition("see them: ")[2] for line in failed.stdout.splitlines() if "see them" in line]
    shown = run(*shlex.split(query)[1:], "--format", "json")
    assert [json.loads(line)["which side"] for line in shown.stdout.splitlines()] == ["lake", "export"], shown.stderr
    open_ended = run("reconcile", "cases", "--format", "junit")
    assert open_ended.returncode == 3, open_ended.stderr
    runs = run("query", f"select verdict from reconciliations where table_name = '{TABLE}' order by run desc limit 1")
    assert FAIL in runs.stdout


def test_nothing_is_left_behind(fleet):
    assert not list(lake().glob("reconcile-*"))
    shutil.rmtree(project.stored(RECONCILIATIONS))
