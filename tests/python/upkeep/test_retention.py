"""What `highwater vacuum` does to files and not to rows, and what it drops where a retention is declared."""

import json

import pytest
from highwater.catalog.feeds import declared_feeds
from highwater.runtime.errors import UsageError
from highwater.status.status import status
from highwater.upkeep.compact import compact
from highwater.upkeep.rebuild import rebuild
from highwater.upkeep.replay import replay
from highwater.upkeep.retention import retention_of, vacuum
from workshop import change

pytestmark = pytest.mark.soak
FEED = "datastream_keep"
NOTHING = "nothing is older than its retention, and every table has few files already"


@pytest.fixture(scope="module")
def parts(workshop):
    workshop.add_table(f"{FEED}.parts", "id:int", "v:string")
    steps = [
        [("INSERT", f"{key}", key, "first") for key in range(1, 6)] + [("INSERT", "x", 9, "rejected")],
        [("UPDATE-INSERT", "10", 1, "second"), ("DELETE", "11", 2, None)],
        [("UPDATE-INSERT", "12", 3, "third")],
    ]
    for number, changes in enumerate(steps):
        records = [change(kind, sequence, {"id": key, "v": value}) for kind, sequence, key, value in changes]
        workshop.deliver(f"{FEED}.parts", f"{number}.json", records)
        workshop.land_and_run(FEED, "+parts")
        if number == 1:
            compact(workshop.spark, "parts")
    return workshop


def test_vacuum_gathers_files_and_changes_no_row(parts):
    names = ("parts", "parts_merged", "parts_changes")
    before = [sorted(map(str, parts.rows(f"select * from {name}"))) for name in names]
    files = parts.spark.sql("describe detail parts_changes").first()["numFiles"]
    lines = vacuum(parts.spark, "parts")
    assert f"lake.parts_changes: {files} small files became 1" in lines
    assert [sorted(map(str, parts.rows(f"select * from {name}"))) for name in names] == before
    assert vacuum(parts.spark, "parts") == [NOTHING]
    version = parts.version("parts_merged")
    parts.land_and_run(FEED, "+parts")
    assert parts.version("parts_merged") == version
    with pytest.raises(UsageError, match="there is no table 'nothing'"):
        vacuum(parts.spark, "nothing")


SHED = "datastream_shed"
# as version 0.5 wrote it
LISTED_BY_0_5 = """{%- macro default__logged_tables() -%}
    {{ return([{'entity': 'crates', 'sources': [['SHED', 'crates']], 'tables': ['crates']}]) }}
{%- endmacro -%}
""".replace("SHED", SHED)


class Crates:
    """A table that keeps tombstones for 90 days and changes for 400, as its feed does its records."""

    def __init__(self, workshop):
        self.workshop, self.batch = workshop, 0
        workshop.add_table(f"{SHED}.crates", "id:int", "v:string")
        declare(workshop, {"tombstones": 90, "changes": 400})
        feeds = workshop.folder / f"models/staging/{SHED}/_{SHED}__sources.yml"
        feeds.write_text(feeds.read_text().replace("        feed:\n", "        feed:\n          retention_days: 400\n"))

    def arrive(self, *changes, upto="+crates"):
        records = [change(kind, sequence, {"id": key, "v": value}) for kind, sequence, key, value in changes]
        self.batch += 1
        self.workshop.deliver(f"{SHED}.crates", f"{self.batch}.json", records)
        self.workshop.land_and_run(SHED, upto)

    def pass_days(self, days: int):
        """Whatever has landed has landed so many days earlier; the ledger has counted it."""
        self.workshop.build("ledger", command="run")
        for name in (f"raw.{SHED}", "crates_changes", "crates_merged"):
            self.workshop.spark.sql(f"update {name} set landed_at = landed_at - interval {days} days")

    def vacuum(self) -> list[str]:
        return [line for line in vacuum(self.workshop.spark, "crates") if "older than" in line and line != NOTHING]

    def rows(self, sql: str) -> list[tuple]:
        return sorted(self.workshop.rows(sql))

    def view(self) -> dict:
        return dict(self.rows("select id, v from crates"))

    def tombstones(self) -> list:
        return [key for (key,) in self.rows("select id from crates_merged where is_deleted")]

    def late(self) -> list[tuple]:
        self.workshop.build("ledger", "late_changes", command="run")
        return self.rows("select key_values, verdict from late_changes where table_name = 'crates'")


def declare(workshop, retention):
    """Declare the retention of crates."""
    path = workshop.folder / "models/tables/shed/crates.yml"
    lines = [line for line in path.read_text().splitlines() if "retention_days" not in line]
    place = next(number for number, line in enumerate(lines) if "key: [id]" in line)
    lines.insert(place + 1, f"        retention_days: {json.dumps(retention)}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def crates(workshop):
    crates = Crates(workshop)
    # the ledger counts this table alone: not every table of the workshop is built when one module runs
    listed = workshop.folder / "macros/operations/logged_tables.sql"
    every_table = listed.read_text()
    listed.write_text(LISTED_BY_0_5)
    yield crates
    listed.write_text(every_table)


def test_tombstones_go_when_nothing_stands_on_them(crates):
    crates.arrive(*[("INSERT", f"{key}", key, "first") for key in range(1, 9)], ("INSERT", "x", 9, "rejected"))
    crates.arrive(*[("DELETE", f"1{key}", key, None) for key in (2, 3, 4, 5)], ("INSERT", "1", 1, "first"))
    compact(crates.workshop.spark, "crates")
    # tombstones of the newest batch stay: it says how far the log has been applied
    crates.arrive(("UPDATE-INSERT", "19", 8, "first"))
    compact(crates.workshop.spark, "crates")
    assert crates.tombstones() == [2, 3, 4, 5]
    assert crates.vacuum() == [], "nothing is old enough"
    # both return, and are pending; one in a build that was killed before the merged table
    crates.arrive(("INSERT", "20", 3, "returned"))
    crates.pass_days(100)
    crates.arrive(("INSERT", "21", 4, "returned too"), upto="+crates_changes")
    view = crates.view()
    assert crates.vacuum() == ["lake.crates_merged: 2 tombstones older than 90 days dropped"]
    assert crates.tombstones() == [3, 4], "2 and 5 are gone, 3 has a pending row, 4 waits in the log"
    assert crates.view() == view
    crates.arrive(("UPDATE-INSERT", "22", 1, "second"))
    compact(crates.workshop.spark, "crates")
    live = {1: "second", 3: "returned", 4: "returned too", 6: "first", 7: "first", 8: "first"}
    assert crates.view() == live
    assert crates.tombstones() == []
    assert crates.late() == []


def test_a_change_that_comes_after_the_horizon_is_counted(crates):
    # what is below the deletes of 100 days ago; 6 has a row, 2 has no tombstone that could tell
    crates.arrive(("UPDATE-INSERT", "5", 2, "late"), ("UPDATE-INSERT", "5", 6, "late"), ("INSERT", "23", 10, "new"))
    assert crates.view()[2] == "late", "nothing is there that could have told"
    assert crates.view()[6] == "first"
    assert crates.late() == [('{"id":2}', "applied"), ('{"id":6}', "superseded")]
    statuses = crates.workshop.build("late_changes")
    assert "warn" in statuses.values()
    (found,) = status(crates.workshop.spark, "crates")
    assert (found["retention_days"], found["late"]) == ({"tombstones": 90, "changes": 400}, 1)


def test_a_late_change_that_a_rebuild_has_judged_is_not_taken_in_again(crates):
    """The log knows the delete that the purged tombstone was of; made anew, the row is gone and stays so."""
    crates.arrive(("UPDATE-INSERT", "5/1", 2, "later than late"))
    assert crates.view()[2] == "later than late"
    rebuild(crates.workshop.spark, "crates")
    assert 2 not in crates.view()
    crates.workshop.build("+crates", command="run")
    compact(crates.workshop.spark, "crates")
    assert 2 not in crates.view()
    crates.workshop.build("crates_merged", command="test")
    crates.arrive(("DELETE", "24", 2, None))


def test_old_changes_and_records_go_and_the_table_can_be_rebuilt(crates, monkeypatch):
    workshop = crates.workshop
    crates.arrive(("UPDATE-INSERT", "29", 8, "first"))
    compact(workshop.spark, "crates")
    crates.pass_days(450)
    crates.arrive(("UPDATE-INSERT", "30", 7, "later"))
    merged = "select * except (landed_at) from crates_merged where not is_deleted"
    view, log = crates.view(), workshop.value("select count(*) from crates_changes")
    entries = crates.rows(f"select entry, count(*) from raw.{SHED} group by entry")
    lines = crates.vacuum()
    left = crates.rows("select id, change_sequence_number, verdict from crates_changes")
    # of every key that is there its newest old change and the young one; 2 and 5 were deleted, and nothing is young
    assert [key for key, _, _ in left] == [1, 3, 4, 6, 7, 7, 8, 10], left
    assert f"lake.crates_changes: {log - len(left)} changes older than 400 days dropped" in lines
    assert "lake.crates_merged: 2 tombstones older than 90 days dropped" in lines
    assert crates.vacuum() == []
    # records of a feed go when no table is named; the workshop's other feeds are left alone
    monkeypatch.setattr("highwater.upkeep.retention.declared_feeds", lambda: {SHED: declared_feeds()[SHED]})
    monkeypatch.setattr("highwater.upkeep.retention.logged_tables", lambda: [("crates", [(SHED, "crates")])])
    everything = vacuum(workshop.spark)
    records = dict(entries)["record"]
    assert f"raw.{SHED}: {records - 1} records older than 400 days dropped" in everything
    left = [("file", crates.batch), ("record", 1)]
    assert crates.rows(f"select entry, count(*) from raw.{SHED} group by entry") == left
    assert crates.view() == view
    before = sorted(map(str, workshop.rows(merged)))
    rebuild(workshop.spark, "crates")
    assert crates.view() == view
    assert len(workshop.rows(merged)) <= len(before)
    assert workshop.land(SHED)[SHED].files == 0, "every file is known still"
    versions = [workshop.version(name) for name in ("crates_changes", "crates_merged")]
    workshop.build("+crates", "ledger")
    assert [workshop.version(name) for name in ("crates_changes", "crates_merged")] == versions
    assert "no rejected record" in replay(workshop.spark, "crates")
    crates.arrive(("UPDATE-INSERT", "31", 8, "goes on"), ("INSERT", "2", 6, "old copy"))
    assert crates.view() == view | {8: "goes on"}


@pytest.mark.parametrize(
    ("retention", "message"),
    [
        ({"tombstones": 0}, "tombstones of retention_days is 0; it must be a whole number of days, 1 or more"),
        ({"changes": "long"}, "changes of retention_days is 'long'"),
        ({"records": 3}, "it must be a mapping of tombstones and changes to days"),
        (400, "it must be a mapping of tombstones and changes to days"),
        ({"tombstones": 90, "changes": 30}, "changes must be kept as long as tombstones or longer"),
    ],
)
def test_a_retention_that_makes_no_sense_is_refused(crates, retention, message):
    declare(crates.workshop, retention)
    try:
        with pytest.raises(UsageError, match=message) as error:
            retention_of("crates")
        assert "models/tables/shed/crates.yml" in str(error.value)
    finally:
        declare(crates.workshop, {"tombstones": 90, "changes": 400})


def test_the_changes_of_a_history_stay(crates):
    history = crates.workshop.folder / "models/history/shed/crates_history.sql"
    history.parent.mkdir(parents=True)
    history.touch()
    try:
        with pytest.raises(UsageError, match="crates has a history, which is made from its changes, so they stay"):
            retention_of("crates")
    finally:
        history.unlink()
    assert retention_of("crates")


def test_a_feed_s_retention_is_days(crates):
    path = crates.workshop.folder / f"models/staging/{SHED}/_{SHED}__sources.yml"
    sound = path.read_text()
    assert declared_feeds()[SHED].retention_days == 400
    path.write_text(sound.replace("retention_days: 400", "retention_days: a year"))
    with pytest.raises(UsageError, match="retention_days is 'a year'; it must be a whole number of days"):
        declared_feeds()
    path.write_text(sound)
