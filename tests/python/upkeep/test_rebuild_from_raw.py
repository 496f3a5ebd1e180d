"""`highwater rebuild TABLE --from raw`: a way back from a wrong declaration whose records were accepted."""

from pathlib import Path

import pytest
from highwater.catalog.rendering import render
from highwater.runtime.errors import CheckError, UsageError
from highwater.upkeep import rebuild as rebuilding
from highwater.upkeep.compact import compact, newest_version
from highwater.upkeep.rebuild import rebuild_from_raw
from highwater.upkeep.replay import replay

pytestmark = pytest.mark.soak

FEED = "debezium_clocks"
WRONG, RIGHT, DROPPED = "mistaken", "declared", "dropped"
LOGGED_TABLES = Path("macros/operations/logged_tables.sql")
COUNTED = "landing_batch, read, applied, superseded, duplicate, rejected, tied"


def record(op, lsn, key, at, n=1):
    image = {"id": key, "at": at, "n": n}
    return {
        "before": {"id": key} if op == "d" else None,
        "after": image if op in "cru" else None,
        "source": {"connector": "postgresql", "name": "clocks", "ts_ms": 1772442930123 + lsn, "lsn": lsn},
        "op": op,
    }


def deliver(workshop, name, records):
    for table in (WRONG, RIGHT):
        workshop.deliver(f"{FEED}.{table}", name, records)
    workshop.land(FEED)


def build(workshop):
    workshop.build(*(f"+{name}" for name in (WRONG, RIGHT)), command="run")
    workshop.build(f"{WRONG}_history", f"{RIGHT}_history", "ledger", "rejected_changes", command="run")


def declare(workshop, table, old, new):
    path = workshop.folder / f"models/tables/clocks/{table}.yml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def column(unit):
    return f"{{name: at, data_type: timestamp, config: {{meta: {{unit: {unit}}}}}}}"


@pytest.fixture(scope="module")
def clocks(workshop):
    """Two tables of the same records: one declared with a wrong unit of time, one rightly, over four batches."""
    for table in (WRONG, RIGHT, DROPPED):
        workshop.add_table(
            f"{FEED}.{table}", "id:int", "at:timestamp,n:int", "debezium-json", {"connector": "postgresql"},
            history=table != DROPPED,
        )  # fmt: skip
    for table, unit in ((WRONG, "micros"), (RIGHT, "millis"), (DROPPED, "millis")):
        path = workshop.folder / f"models/tables/clocks/{table}.yml"
        text = path.read_text()
        if "unit:" not in text:
            declare(workshop, table, "{name: at, data_type: timestamp}", column(unit))
    at = 1700000000000
    workshop.deliver(f"{FEED}.{DROPPED}", "a.json", [record("c", 10, 1, at), record("c", 11, 2, at)])
    deliver(workshop, "a.json", [record("c", 10, 1, at), record("c", 11, 2, at), record("c", 12, 3, at, 3_000_000_000)])
    # the ledger asks every log; these are the ones that there are
    every_table = LOGGED_TABLES.read_text()
    LOGGED_TABLES.write_text(render("logged_tables.sql", entities=[WRONG, RIGHT, DROPPED]))
    workshop.build(f"+{DROPPED}", command="run")
    build(workshop)
    deliver(workshop, "b.json", [record("u", 20, 1, at + 5000), record("d", 21, 2, at), record("c", 10, 1, at)])
    build(workshop)
    # a column that was too narrow: its record is taken again
    for table in (WRONG, RIGHT):
        declare(workshop, table, "{name: n, data_type: int}", "{name: n, data_type: bigint}")
        for layer in ("changes", "merged", "history"):
            workshop.spark.sql(f"alter table {table}_{layer} set tblproperties ('delta.enableTypeWidening' = 'true')")
            workshop.spark.sql(f"alter table {table}_{layer} alter column n type bigint")
        assert "1 record" in replay(workshop.spark, table)
    build(workshop)
    # an epoch, whose positions begin anew
    path = workshop.folder / f"models/staging/{FEED}/_{FEED}__sources.yml"
    epoch = "epochs: [{when: \"source_file like '%/c.json'\"}]"
    path.write_text(path.read_text().replace("connector: postgresql\n", f"connector: postgresql\n          {epoch}\n"))
    deliver(workshop, "c.json", [record("u", 5, 1, at + 9000), record("c", 6, 4, at)])
    build(workshop)
    yield workshop
    LOGGED_TABLES.write_text(every_table)


def state(workshop, table):
    return {
        "rows": sorted(workshop.rows(f"select * from {table}")),
        "ledger": sorted(workshop.rows(f"select {COUNTED} from ledger where table_name = '{table}'")),
        "history": sorted(workshop.rows(f"select * except (log_batch) from {table}_history"), key=str),
        "rejected": workshop.rows(f"select rejection_reason from rejected_changes where table_name = '{table}'"),
    }


def shown_of(found: dict) -> dict:
    return {name: found[name] for name in ("rows", "history", "rejected")}


def test_a_wrong_unit_is_put_right(clocks):
    wrong, right = state(clocks, WRONG), state(clocks, RIGHT)
    assert [row[0] for row in wrong["rows"]] == [1, 3, 4] == [row[0] for row in right["rows"]]
    assert {row[1].year for row in wrong["rows"]} == {1970} and {row[1].year for row in right["rows"]} == {2023}
    compact(clocks.spark, WRONG)  # what is pending is read from the log
    declare(clocks, WRONG, "unit: micros", "unit: millis")
    old = newest_version(clocks.spark, f"lake.{WRONG}_changes")
    shown, table = wrong["rows"], clocks.table_id(f"{WRONG}_merged")
    # killed behind the commit of the new log: readers see what they saw
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(rebuilding, "rebuild", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        rebuild_from_raw(clocks.spark, WRONG)
    assert sorted(clocks.rows(f"select * from {WRONG}")) == shown
    # and before it
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(rebuilding, "swap_in", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        rebuild_from_raw(clocks.spark, WRONG)
    assert sorted(clocks.rows(f"select * from {WRONG}")) == shown
    assert "classified again from raw" in rebuild_from_raw(clocks.spark, WRONG)
    assert shown_of(state(clocks, WRONG)) == shown_of(right)
    # the record that was too wide is accepted where it arrived first, and its copy of the replay adds nothing
    assert [row[:6] for row in state(clocks, WRONG)["ledger"]] == [
        (1, 3, 3, 0, 0, 0), (2, 3, 2, 0, 1, 0), (3, 1, 0, 0, 1, 0), (5, 2, 2, 0, 0, 0),
    ]  # fmt: skip
    assert clocks.table_id(f"{WRONG}_merged") == table
    # the log as it was
    (year,) = {
        row[0] for row in clocks.rows(f"select year(at) from {WRONG}_changes version as of {old} where at is not null")
    }
    assert year == 1970
    assert not clocks.spark.catalog.tableExists(f"lake_rebuilt.{WRONG}_changes")


def test_builds_go_on_behind_it(clocks):
    deliver(clocks, "d.json", [record("u", 30, 3, 1700000000000, 7), record("d", 31, 4, 0)])
    path = clocks.folder / f"models/staging/{FEED}/_{FEED}__sources.yml"
    path.write_text(path.read_text().replace("%/c.json'", "%/c.json' or source_file like '%/d.json'"))
    build(clocks)
    assert shown_of(state(clocks, WRONG)) == shown_of(state(clocks, RIGHT))
    assert [row[0] for row in clocks.rows(f"select id, n from {WRONG} order by id")] == [1, 3]


def test_records_that_raw_no_longer_has_are_not_lost(clocks):
    before = newest_version(clocks.spark, f"lake.{DROPPED}_changes")
    clocks.spark.sql(
        f"delete from raw.{FEED} where entry = 'record' and source_table = '{DROPPED}' and source_line = 1"
    )
    with pytest.raises(UsageError, match=rf"raw.{FEED} no longer has 1 of the records that the log of {DROPPED} has"):
        rebuild_from_raw(clocks.spark, DROPPED)
    assert newest_version(clocks.spark, f"lake.{DROPPED}_changes") == before
    # negative control: without the refusal a row is gone
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rebuilding, "_refuse_loss", lambda *_: None)
        rebuild_from_raw(clocks.spark, DROPPED, accept_loss=True)
    assert clocks.rows(f"select id from {DROPPED}") == [(2,)]


def test_a_model_that_fails_changes_nothing(clocks):
    before = newest_version(clocks.spark, f"lake.{RIGHT}_changes")
    path = clocks.folder / f"models/changes/clocks/{RIGHT}_changes.sql"
    original = path.read_text()
    path.write_text(f"{original.rstrip()}\nwhere no_such_column\n")
    try:
        with pytest.raises(CheckError, match="could not be made; nothing was changed"):
            rebuild_from_raw(clocks.spark, RIGHT)
    finally:
        path.write_text(original)
    assert newest_version(clocks.spark, f"lake.{RIGHT}_changes") == before
