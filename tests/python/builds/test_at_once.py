"""Two builds, or two landings, at once, without a lease: every statement that writes collides with its twin.

A twin is what another build that has asked the same questions would write. It runs beside the original, or behind it.
"""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import pytest
from dbt.adapters.spark.session import Cursor
from highwater.catalog.feeds import declared_feeds
from highwater.landing import raw_table
from highwater.landing.landings import noted_landing
from highwater.landing.raw_table import append, batch_after, entry_of_file, next_batch
from highwater.runtime.errors import CheckError
from highwater.runtime.faults import everything_said
from test_publishing import group
from workshop import change

pytestmark = pytest.mark.soak
FEED = "datastream_pairs"
WRITES = re.compile(
    r"\s*(/\*.*?\*/)?\s*(--[^\n]*\s*)*(insert into|merge into|create table|create or replace table)", re.I | re.S
)
# what a build is told that lost; nothing else may go wrong
LOSES = "DELTA_CONCURRENT|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|TABLE_OR_VIEW_ALREADY_EXISTS|DELTA_TABLE_ALREADY_EXISTS|another build has written"  # noqa: E501
LAYERS = ("changes", "merged", "history")
MODELS = ["+twins", "twins_history", "twins_publications", "ledger", "rejected_changes"]


@pytest.fixture(scope="module")
def twins(workshop):
    """A table with a history and a publication, and the same once more, which is built in peace."""
    for name in ("twins", "alone"):
        workshop.add_table(f"{FEED}.{name}", "id:int", "v:string,n:int")
        workshop.configure(name, "merged", "{meta: {merged: {compact_when: always}}}")
        (workshop.folder / f"models/history/user1/{name}_history.sql").write_text(
            f"{{{{ row_history(ref('{name}_changes'), '{name}') }}}}\n"
        )
        group(workshop, name, [name])
    # a deployment like the embedded one, but that it is not known to be alone
    profile = workshop.folder / "profiles/profiles.yml"
    text = profile.read_text()
    profile.write_text(
        text + text[text.index("    embedded:") : text.index("    # Any master")].replace("embedded:", "shared:")
    )
    return workshop


def deliver(workshop, number: int):
    """Inserts, updates, deletes and one that is rejected, to both tables."""
    for name in ("twins", "alone"):
        records = [
            change("INSERT", f"{number:X}1", {"id": number, "v": "new", "n": number}),
            change("UPDATE-INSERT", f"{number:X}2", {"id": 1, "v": f"at {number}", "n": number}),
            change("DELETE", f"{number:X}3", {"id": number - 2, "v": "gone", "n": 0}),
            change("INSERT", f"{number:X}4", {"id": 100 + number, "v": "bad", "n": "no number"}),
        ]
        workshop.deliver(f"{FEED}.{name}", f"{number}.json", records)
    workshop.land(FEED)


def rows_of(workshop, name: str) -> dict[str, list]:
    """All rows of all that is made of a table, without what tells the two apart."""
    found = {}
    for table in (*(f"{name}_{layer}" for layer in LAYERS), name, f"{name}_publications", "ledger", "rejected_changes"):
        of_table = f" where table_name = '{name}'" if table in ("ledger", "rejected_changes") else ""
        rows = workshop.rows(f"select to_json(struct(*)) from lake.{table}{of_table}")
        found[table.replace(name, "")] = sorted(re.sub(f"{name}|_metadata[^,]*", "", row[0]) for row in rows)
    return found


class Collisions:
    """Runs each statement that writes twice, from two threads; the build goes on when one of them has been done."""

    def __init__(self, is_late: bool, rewritten=lambda sql: sql):
        self.is_late, self.rewritten, self.ends = is_late, rewritten, []

    def execute(self, cursor, sql, *parameters):
        sql = self.rewritten(sql)
        if not WRITES.match(sql):
            return self.original(cursor, sql, *parameters)
        barrier = threading.Barrier(2)

        def run(mine):
            if not self.is_late:
                barrier.wait()
            try:
                self.original(mine, sql, *parameters)
            except Exception as error:
                return error

        twin = Cursor(server_side_parameters=cursor.server_side_parameters)
        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(run, cursor)
            if self.is_late:
                first.result()
            second = threads.submit(run, twin)
            errors = [first.result(), second.result()]
        lost = [error for error in errors if error]
        for error in lost:
            assert re.search(LOSES, everything_said(error)), everything_said(error)
        assert len(lost) < 2, "none of the two has been done"
        self.ends.append((WRITES.match(sql)[3].lower(), re.search(r"lake\.`?(\w+)", sql)[1], len(lost)))
        if errors[0]:
            cursor._df, cursor._rows = twin._df, twin._rows

    def __enter__(self):
        self.original = Cursor.execute
        Cursor.execute = lambda cursor, sql, *parameters: self.execute(cursor, sql, *parameters)
        return self

    def __exit__(self, *_):
        Cursor.execute = self.original


@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "one behind the other"])
def test_two_builds_leave_what_one_leaves(twins, is_late):
    for number in (3,) if is_late else (1, 2):
        deliver(twins, number)
        twins.build(*[model.replace("twins", "alone") for model in MODELS[:3]], command="run")
        with Collisions(is_late) as collisions:
            twins.build(*MODELS, command="run", target="shared")
        print(collisions.ends)
        written = {table for _, table, _ in collisions.ends}
        assert {"twins_changes", "twins_merged", "twins_history", "twins_publications", "ledger"} <= written
        left, alone = rows_of(twins, "twins"), rows_of(twins, "alone")
        assert {table: rows for table, rows in left.items() if rows != alone[table]} == {}, alone
    # a history in a publish group begins with the build behind the first publication
    assert all(left.values())


def test_without_its_guard_a_log_would_be_written_twice(twins):
    deliver(twins, 4)
    before = twins.value("select count(*) from lake.twins_changes")
    guard = re.compile(r"where if\(\s+exists.*?true\s+\)", re.S)
    with Collisions(True, lambda sql: guard.sub("", sql)):
        twins.build("twins_changes", command="run", target="shared")
    assert twins.value("select count(*) from lake.twins_changes") - before == 8


def test_a_batch_lands_once(twins, monkeypatch):
    """Two landings by one number: at once, one behind the other, and in a table that lost the number before."""
    monkeypatch.setattr(raw_table, "is_embedded", lambda: False)
    feed, spark = declared_feeds()[FEED], twins.spark

    def entry():
        return entry_of_file(spark, "file", "twins", f"{FEED}/twins/x", file_records=0)

    def land(frame, number):
        try:
            append(frame, feed, number, datetime.now(timezone.utc))
        except CheckError as error:
            return str(error)

    number, _ = next_batch(spark, feed)
    slow = "(select if(reflect('java.lang.Thread', 'sleep', 3000L) is null, 1, 2) from range(1))"
    with ThreadPoolExecutor(1) as threads:
        loser = threads.submit(land, entry().where(f"{slow} > 0"), number)
        assert land(entry(), number) is None
        lost = f"{FEED}: another command has landed batch {number} meanwhile, and nothing of this one. Run it again"
        assert loser.result().startswith(lost)
    version = twins.version(feed.raw_table)
    assert land(entry(), number).startswith(lost)
    assert twins.value(f"select count(*) from {feed.raw_table} where landing_batch = {number}") == 1
    assert noted_landing(FEED)[0] == number
    # restored, and neither a note nor a log has the number: Delta knows it, and the next landing is above it
    twins.deliver(f"{FEED}.twins", "behind.json", [change("INSERT", "FF", {"id": 9, "v": "new", "n": 9})])
    spark.sql(f"restore table {feed.raw_table} to version as of {version - 1}")
    (twins.folder / f"lake/landings/{FEED}.json").unlink()
    with pytest.raises(CheckError, match="Run it again"):
        twins.land(FEED)
    assert twins.land(FEED)[FEED].records == 1
    assert twins.value(f"select max(landing_batch) from {feed.raw_table}") == batch_after(number, 0)[0]
