"""Ledger, rejected, tied and unassigned records: gained batch by batch, once, whatever is killed or replayed."""

import pytest
from highwater.catalog.rendering import render
from highwater.catalog.tables import count_anew
from highwater.upkeep.replay import replay

pytestmark = pytest.mark.soak

FEED = "debezium_docks"
LISTED = [("boxes", [(FEED, "boxes")]), ("pallets", [(FEED, "pallets")])]
TABLES = ["ledger", "rejected_changes", "stale_rows", "sequence_ties", "late_changes", "unassigned_records"]
# what the lists were before they were tables: all that the logs have
BY_THE_LOGS = {
    "rejected_changes": "select '{entity}', rejection_reason, source_file, source_line, landing_batch "
    "from {entity}_changes where rejection_reason is not null and not is_derived",
    "sequence_ties": "select '{entity}', change_sequence_number, source_file, source_line, landing_batch "
    "from {entity}_changes where is_tied",
}
LISTS = {
    "rejected_changes": "select table_name, rejection_reason, source_file, source_line, landing_batch "
    "from rejected_changes",
    "sequence_ties": "select table_name, change_sequence_number, source_file, source_line, landing_batch "
    "from sequence_ties",
}


class Docks:
    """Two tables of one feed, and records of a third that nobody has declared."""

    def __init__(self, workshop):
        self.workshop, self.file = workshop, 0
        for name in ("boxes", "pallets"):
            settings = {"connector": "postgresql", "layout": "records"}
            workshop.add_table(f"{FEED}.{name}", "id:int", "n:tinyint", "debezium-json", settings)

    def deliver(self, *changes):
        """Deliver a file of changes of several tables: table, position, id, n."""
        self.file += 1
        records = []
        for table, lsn, key, n in changes:
            source = {"connector": "postgresql", "name": "docks", "schema": "public", "table": table, "lsn": lsn}
            source |= {"ts_ms": 1_700_000_000_000, "snapshot": "false"}
            records.append({"op": "c", "before": None, "after": {"id": key, "n": n}, "source": source})
        self.workshop.deliver(FEED, f"{self.file}.json", records)
        self.workshop.land(FEED)

    def build(self, *logs):
        logs = logs or [f"+{entity}" for entity, _ in self.listed]
        return self.workshop.build(*logs, *TABLES, command="run")

    def record(self):
        """Build what is told of logs that have nothing new."""
        return self.workshop.build(*TABLES, command="run")

    def declare(self, tables):
        self.listed = tables
        path = self.workshop.folder / "macros/operations/logged_tables.sql"
        path.write_text(render("logged_tables.sql", entities=[table for table, _ in tables]))

    def rows(self, sql: str) -> list[tuple]:
        return sorted(map(str, self.workshop.rows(sql)))

    def contents(self) -> dict:
        return {name: self.rows(f"select * from {name}") for name in TABLES}

    def versions(self) -> list[int]:
        return [self.workshop.version(name) for name in [*TABLES, "gathered_batches"]]

    def by_the_logs(self, name: str) -> list:
        return self.rows(" union all ".join(BY_THE_LOGS[name].format(entity=entity) for entity, _ in self.listed))


@pytest.fixture(scope="module")
def docks(workshop):
    docks = Docks(workshop)
    path = workshop.folder / "macros/operations/logged_tables.sql"
    every_table = path.read_text()
    docks.declare(LISTED)
    yield docks
    path.write_text(every_table)


def test_each_list_has_what_the_logs_have(docks):
    docks.deliver(("boxes", 1, 1, 15), ("boxes", 2, 2, 12345), ("ghosts", 3, 1, 1), ("pallets", 4, 1, 2))
    docks.deliver(("boxes", 1, 1, 25), ("pallets", 5, 2, "much"), ("ghosts", 6, 2, 1), (None, 7, 2, 1))
    docks.build()
    for name in LISTS:
        assert docks.rows(LISTS[name]) == docks.by_the_logs(name), name
    assert len(docks.rows("select * from rejected_changes")) == 2
    assert len(docks.rows("select * from sequence_ties")) == 1
    assert docks.rows("select what_to_do from rejected_changes where what_to_do is null") == []
    assert docks.workshop.rows("select source_table, records from unassigned_records order by landing_batch, 1") == [
        ("ghosts", 1), (None, 1), ("ghosts", 1),
    ]  # fmt: skip
    found = docks.workshop.rows(
        "select table_name, landing_batch, read, applied, superseded, rejected, tied from ledger order by 1, 2"
    )
    assert [row[2] == sum(row[3:6]) for row in found] == [True] * 4, found


def test_nothing_new_writes_nothing(docks):
    before, contents = docks.versions(), docks.contents()
    docks.record()
    assert docks.versions() == before
    assert docks.contents() == contents


@pytest.mark.parametrize("lost", ["true", "model = 'ledger'", "model = 'rejected_changes'", "model like 'un%'"])
def test_what_was_killed_before_its_marks_counts_once(docks, lost):
    """The rows are committed first and the marks after them."""
    contents = docks.contents()
    docks.workshop.spark.sql(f"delete from gathered_batches where {lost}")
    docks.record()
    assert docks.contents() == contents


def test_a_log_that_lags_is_recorded_when_it_comes(docks):
    docks.deliver(("boxes", 11, 5, 1), ("pallets", 12, 5, "heavy"), ("boxes", 13, 6, 99999))
    docks.build("+boxes")
    assert docks.rows("select * from ledger where table_name = 'pallets' and landing_batch > 2") == []
    docks.deliver(("boxes", 14, 7, 1))
    docks.build("+boxes")
    docks.build()
    assert docks.workshop.rows(
        "select table_name, landing_batch, read, rejected from ledger where landing_batch > 2 order by 2, 1"
    ) == [("boxes", 3, 2, 1), ("pallets", 3, 1, 1), ("boxes", 4, 1, 0)]
    assert docks.rows(LISTS["rejected_changes"]) == docks.by_the_logs("rejected_changes")
    before = docks.versions()
    docks.record()
    assert docks.versions() == before


def test_what_a_replay_accepted_leaves(docks):
    path = docks.workshop.folder / "models/tables/docks/boxes.yml"
    path.write_text(path.read_text().replace("tinyint", "int"))
    for layer in ("changes", "merged"):
        docks.workshop.spark.sql(f"alter table boxes_{layer} set tblproperties ('delta.enableTypeWidening' = 'true')")
        docks.workshop.spark.sql(f"alter table boxes_{layer} alter column n type int")
    assert "2 records of boxes arrive again" in replay(docks.workshop.spark, "boxes")
    docks.deliver(("boxes", 21, 8, "nothing"))
    docks.build()
    assert docks.workshop.rows("select table_name, source_line from rejected_changes order by landing_batch") == [
        ("pallets", 2), ("pallets", 2), ("boxes", 1),
    ]  # fmt: skip
    assert docks.workshop.value("select count(*) from boxes where n in (12345, 99999)") == 2
    before = docks.versions()
    docks.record()
    assert docks.versions() == before


def test_a_table_that_is_declared_leaves_the_unassigned(docks):
    docks.workshop.add_table(f"{FEED}.ghosts", "id:int", "n:int", "debezium-json")
    docks.declare([*LISTED, ("ghosts", [(FEED, "ghosts")])])
    docks.build()
    assert docks.workshop.rows("select source_table from unassigned_records") == [(None,)]
    assert docks.workshop.rows("select landing_batch, read from ledger where table_name = 'ghosts' order by 1") == [
        (1, 1), (2, 1),
    ]  # fmt: skip


def test_a_lake_of_an_earlier_version_is_upgraded(docks):
    """There the lists were views, and the ledger had no marks."""
    spark, contents = docks.workshop.spark, docks.contents()
    for name in TABLES[1:]:
        spark.sql(f"drop table {name}")
        spark.sql(f"create view {name} as select 'view' as kind")
    spark.sql("drop table gathered_batches")
    docks.record()
    assert docks.contents() == contents


def test_a_list_that_was_dropped_is_made_again(docks):
    contents = docks.contents()
    docks.workshop.spark.sql("drop table rejected_changes")
    docks.record()
    assert docks.contents() == contents


def test_a_log_that_was_written_anew_is_counted_anew(docks):
    contents = docks.contents()
    count_anew(docks.workshop.spark, "pallets", [FEED])
    assert docks.contents() != contents
    docks.record()
    assert docks.contents() == contents


def test_a_mark_is_written_when_it_is_ten_batches_behind(docks):
    """What lies between is read again by every build, so it must not grow without end; and a commit costs more."""
    marks = "select model, landing_batch from gathered_batches where table_name is null order by 1"
    newest = f"select max(landing_batch) from raw.{FEED}"

    def follow(behind: int) -> list:
        while docks.workshop.value(newest) < was + behind:
            docks.deliver(("pallets", 100 + docks.file, 100 + docks.file, 1))
        docks.build("+pallets")
        return docks.workshop.rows(marks)

    docks.workshop.spark.sql("delete from gathered_batches where table_name is null")
    docks.record()
    was = docks.workshop.value(newest)
    written = [("ledger", was), ("unassigned_records", was)]
    assert docks.workshop.rows(marks) == written
    assert follow(9) == written
    assert follow(10) == [("ledger", was + 10), ("unassigned_records", was + 10)]


def test_a_lost_record_shows(docks):
    """Negative control: of a log that has lost a record, the ledger's counts do not add up."""
    docks.deliver(("boxes", 31, 31, 1), ("boxes", 32, 32, 1))
    docks.workshop.build("+boxes", command="run")
    docks.workshop.spark.sql("delete from boxes_changes where id = 31")
    statuses = {r.node.name: str(r.status) for r in docks.workshop.dbt("build", "--select", "ledger").result}
    assert statuses == {"ledger": "success", "adds_up_ledger_": "fail"}
    docks.workshop.spark.sql("update ledger set read = applied + superseded + duplicate + rejected")
