"""Faults planted in merged table, log, ledger, history and snapshot: a shipped test catches each."""

from contextlib import contextmanager

import pytest
from highwater.catalog.rendering import render
from highwater.upkeep.compact import compact
from workshop import change, in_soak_but

pytestmark = pytest.mark.long

SNAPSHOT = """\
snapshots:
  - name: barges_snapshot
    relation: ref('barges')
    config: {unique_key: id, strategy: check, check_cols: all, hard_deletes: invalidate}
    data_tests:
      - has_no_overlapping_versions:
          arguments: {key: [id], valid_from: dbt_valid_from, valid_to: dbt_valid_to}
      - has_current_rows_of: {arguments: {view: barges, valid_to: dbt_valid_to}}
      - has_states_of_log: {arguments: {entity: barges}}
"""
TABLES = ["barges_merged", "barges_changes", "barges_history", "barges_snapshot", "ledger"]
EVERY = [*TABLES, "barges"]


def barge(operation: str, sequence: int, key, name="a", weight="1.50", **options) -> dict:
    return change(operation, f"{sequence:X}", {"ID": key, "NAME": name, "WEIGHT": weight}, **options)


BATCHES = [
    [barge("INSERT", key, key) for key in range(1, 13)],
    [
        *(barge("UPDATE", 0x100 + key, key, "b") for key in (1, 2, 3)),
        barge("DELETE", 0x110, 4),
        barge("INSERT", 5, 5, uuid="again"),
        barge("UPDATE", 0x120, "no number"),
        # lower than what comes with it
        barge("UPDATE", 0x90, 2, "late"),
    ],
    [
        barge("UPDATE", 0x200, 1, "c", "2.50"),
        barge("INSERT", 0x201, 4, "back"),
        barge("DELETE", 0x202, 6),
        barge("INSERT", 0x203, 13),
        # later than its place: between two versions
        barge("UPDATE", 0x80, 3, "between"),
    ],
]


class Audited:
    """A table with every layer, whose faults can be planted."""

    def __init__(self, workshop):
        self.workshop = workshop
        workshop.add_table("datastream_planted.barges", "ID:int", "NAME:string,WEIGHT:decimal(10,2)", history=True)
        (workshop.folder / "snapshots/barges_snapshot.yml").write_text(SNAPSHOT)
        for number, records in enumerate(BATCHES):
            workshop.deliver("datastream_planted.barges", f"{number}.json", records)
            workshop.land("datastream_planted")
            workshop.build("+barges", "barges_history", "barges_snapshot", exclude_resource_types="test")
            if number == 1:
                compact(workshop.spark, "barges")  # the last batch stays pending
        workshop.land("datastream_user1")
        # the ledger asks these logs only: what other modules have done to theirs is not looked at
        path = workshop.folder / "macros/operations/logged_tables.sql"
        every_table = path.read_text()
        path.write_text(render("logged_tables.sql", entities=["barges", "customers", "table1"]))
        workshop.build("+ledger", command="run")
        path.write_text(every_table)
        self.found = workshop.audit(*EVERY)
        self.tests = {name: each.node.compiled_code for name, each in self.found.items()}
        self.versions = {}

    def fails(self, test: str) -> bool:
        """Run what dbt has compiled of a generic test, wherever it is, until one of them fails."""
        # the ledger counts the tables of other modules too
        where = "where table_name = 'barges'" if test == "adds_up" else ""
        chosen = [sql for name, sql in self.tests.items() if name.startswith(f"{test}_")]
        assert chosen
        return any(self.workshop.rows(f"select * from ({sql}) {where} limit 1") for sql in chosen)

    @contextmanager
    def planted(self, *statements: str):
        """Plant faults in a table, and put it back."""
        (table,) = {name for statement in statements for name in TABLES if name in statement.replace(",", " ").split()}
        # what is planted and put back here are the only versions that are added
        version = self.versions.pop(table, None) or self.workshop.version(table)
        for statement in statements:
            self.workshop.spark.sql(statement)
        try:
            assert self.workshop.version(table) == version + len(statements), f"plants nothing: {statements}"
            yield
        finally:
            self.workshop.spark.sql(f"restore table {table} to version as of {version}")
        self.versions[table] = version + len(statements) + 1


@pytest.fixture(scope="module")
def audited(workshop):
    return Audited(workshop)


def test_the_table_has_what_faults_are_planted_in(audited):
    found = dict(audited.workshop.rows("select verdict, count(*) from barges_changes group by verdict"))
    assert found == {"applied": 20, "superseded": 2, "duplicate": 1, "rejected": 1}
    assert audited.workshop.layers("barges") == (12, 4)


def test_unplanted_it_passes_all_of_them(audited):
    odd = {name: each.message for name, each in audited.found.items() if each.status != "pass"}
    assert not {name for name in odd if not name.startswith("adds_up_")}, odd
    for test in {test for _, test in FAULTS.values()}:
        assert [name for name in audited.tests if name.startswith(f"{test}_")]
    assert not audited.fails("adds_up")


def test_the_example_passes_all_of_them(audited):
    found = audited.workshop.audit("table1_merged", "table1_changes", "customers_merged", "customers_changes")
    assert len(found) >= 8 and {each.status for each in found.values()} <= {"pass", "warn"}


MERGED, LOG, HISTORY, SNAPSHOTTED = (f"update {table} set" for table in TABLES[:4])
FAULTS = {
    # merged table
    "value of a changed row": (f"{MERGED} name = 'x' where id = 1", "agrees_with_log"),
    "value of a base row": (f"{MERGED} weight = weight + 0.01 where id = 7", "agrees_with_log"),
    "value to NULL": (f"{MERGED} name = null where id = 8", "agrees_with_log"),
    "row doubled": ("insert into barges_merged select * from barges_merged where id = 9", "has_agreeing_layers"),
    "row removed": ("delete from barges_merged where id = 9", "agrees_with_log"),
    "row that never was": (
        "insert into barges_merged by name select * except (id), 999 as id from barges_merged where id = 9",
        "agrees_with_log",
    ),
    "tombstone removed": ("delete from barges_merged where id = 4", "agrees_with_log"),
    "tombstone made alive": (f"{MERGED} is_deleted = false where id = 4", "agrees_with_log"),
    "row made a tombstone": (f"{MERGED} is_deleted = true where id = 9", "agrees_with_log"),
    "gone back to what it was": (
        f"{MERGED} name = 'a', change_sequence_number = '{'0' * 16}/{'0' * 15}1', log_batch = 1 where id = 1",
        "agrees_with_log",
    ),
    "sequences of rows swapped": (
        f"{MERGED} change_sequence_number = '{'0' * 16}/{'0' * 15}' || if(id = 9, 'a', '9') where id in (9, 10)",
        "agrees_with_log",
    ),
    "sequence raised": (
        f"{MERGED} change_sequence_number = replace(change_sequence_number, '000b', '0fff') where id = 11",
        "agrees_with_log",
    ),
    "hash changed": (f"{MERGED} change_hash = change_hash + 1 where id = 9", "agrees_with_log"),
    "keys of rows swapped": (f"{MERGED} id = 21 - id where id in (10, 11)", "agrees_with_log"),
    "batch number raised": (f"{MERGED} log_batch = 3 where id = 9", "agrees_with_log"),
    "batch number lowered": (f"{MERGED} log_batch = 1 where id = 2", "agrees_with_log"),
    "file of a row changed": (f"{MERGED} source_file = 'other.json' where id = 9", "agrees_with_log"),
    "row later than what is pending": (
        f"{MERGED} change_sequence_number = '{'f' * 16}/{'0' * 16}' where id = 1",
        "has_agreeing_layers",
    ),
    # log
    "value of the newest change": (f"{LOG} name = 'x' where id = 9", "agrees_with_log"),
    "value of an older applied change": (f"{LOG} name = 'x' where id = 1 and name = 'b'", "has_versions_of_log"),
    "value of a superseded change": (f"{LOG} name = 'x' where name = 'between'", "has_versions_of_log"),
    "applied made superseded": (f"{LOG} verdict = 'superseded' where id = 9", "has_agreeing_verdicts"),
    "superseded made applied": (f"{LOG} verdict = 'applied' where name = 'late'", "has_agreeing_verdicts"),
    "duplicate made superseded": (
        f"{LOG} verdict = 'superseded' where verdict = 'duplicate'",
        "has_agreeing_verdicts",
    ),
    "rejected made applied": (f"{LOG} verdict = 'applied' where verdict = 'rejected'", "has_agreeing_verdicts"),
    "order that is no text of sections": (f"{LOG} change_sequence_number = '9' where id = 9", "has_agreeing_verdicts"),
    "record without a line": (f"{LOG} source_line = 0 where id = 9", "has_agreeing_verdicts"),
    "rejected without a trace": (
        f"{LOG} verdict = 'superseded', rejection_reason = null where verdict = 'rejected'",
        "agrees_with_ledger",
    ),
    "change removed": ("delete from barges_changes where id = 12", "agrees_with_ledger"),
    "older change removed": ("delete from barges_changes where id = 1 and name = 'b'", "agrees_with_ledger"),
    "change doubled": ("insert into barges_changes select * from barges_changes where id = 12", "agrees_with_ledger"),
    "sequences of changes swapped": (
        "merge into barges_changes as one using barges_changes as other on one.id = 3 and other.id = 3 "
        "and struct(one.name, other.name) in (struct('b', 'between'), struct('between', 'b')) "
        "when matched then update set change_sequence_number = other.change_sequence_number",
        "has_agreeing_verdicts",
    ),
    "landing batch changed": (f"{LOG} landing_batch = landing_batch - 1 where id = 13", "agrees_with_ledger"),
    "batch of the log changed": (f"{LOG} log_batch = 2 where id = 13", "agrees_with_log"),
    "delete made an update": (f"{LOG} is_deleted = false where id = 6 and is_deleted", "agrees_with_log"),
    # ledger
    "count of the ledger": ("update ledger set applied = applied + 1 where table_name = 'barges'", "adds_up"),
    "counts of the ledger moved": (
        "update ledger set applied = applied - 1, duplicate = duplicate + 1 where table_name = 'barges'",
        "agrees_with_ledger",
    ),
    # history
    "versions overlap": (
        f"{HISTORY} valid_to_sequence = valid_to_sequence || 'f' where id = 1 and name = 'a'",
        "has_no_overlapping_versions",
    ),
    "versions leave a gap": (
        f"{HISTORY} valid_to_sequence = valid_from_sequence || '/1' where id = 1 and name = 'a'",
        "has_versions_of_log",
    ),
    "value of a closed version": (f"{HISTORY} name = 'x' where id = 1 and name = 'b'", "has_versions_of_log"),
    "value of an open version": (f"{HISTORY} name = 'x' where id = 9", "has_current_rows_of"),
    "closed version removed": ("delete from barges_history where id = 1 and name = 'b'", "has_versions_of_log"),
    "version doubled": (
        "insert into barges_history select * from barges_history where id = 1 and name = 'b'",
        "has_no_overlapping_versions",
    ),
    "version of a deleted key opened": (
        f"{HISTORY} valid_to = null, valid_to_sequence = null, is_current = true where id = 6",
        "has_current_rows_of",
    ),
    "time of a version changed": (
        f"{HISTORY} valid_from = valid_from - interval 1 second where id = 9",
        "has_versions_of_log",
    ),
    "is current, and closed": (f"{HISTORY} is_current = true where id = 6", "has_versions_of_log"),
    # snapshot
    "value of a closed version of the snapshot": (
        f"{SNAPSHOTTED} name = 'x' where id = 1 and name = 'b'",
        "has_states_of_log",
    ),
    "end of a snapshot's version earlier": (
        f"{SNAPSHOTTED} dbt_valid_to = dbt_valid_to - interval 1 millisecond where id = 1 and name = 'a'",
        "has_states_of_log",
    ),
    "end of a snapshot's version later": (
        f"{SNAPSHOTTED} dbt_valid_to = dbt_valid_to + interval 1 millisecond where id = 1 and name = 'a'",
        "has_no_overlapping_versions",
    ),
    "begin of a snapshot's version": (
        f"{SNAPSHOTTED} dbt_valid_from = dbt_valid_from + interval 1 millisecond where id = 9",
        "has_states_of_log",
    ),
    "value of an open version of the snapshot": (f"{SNAPSHOTTED} weight = 9 where id = 9", "has_current_rows_of"),
    "version of the snapshot doubled": (
        "insert into barges_snapshot select * from barges_snapshot where id = 1 and name = 'b'",
        "has_no_overlapping_versions",
    ),
    "open version of the snapshot removed": ("delete from barges_snapshot where id = 9", "has_current_rows_of"),
    "version of a deleted key opened in the snapshot": (
        f"{SNAPSHOTTED} dbt_valid_to = null where id = 6",
        "has_current_rows_of",
    ),
}


# some of each layer; all of them in `make soak`
IN_CI = [
    "row doubled",
    "value of an older applied change",
    "superseded made applied",
    "change removed",
    "counts of the ledger moved",
    "versions leave a gap",
    "value of a closed version of the snapshot",
    "end of a snapshot's version earlier",
]


@pytest.mark.parametrize("fault", in_soak_but(IN_CI, FAULTS))
def test_a_planted_fault_is_caught_by_the_test_of_that_name(audited, fault):
    statement, test = FAULTS[fault]
    with audited.planted(statement):
        assert audited.fails(test)


# rows of their own, so that one query tells them apart, and what it says of each
BESIDE = {
    "value of a base row": {7: "is not what the log says"},
    "tombstone removed": {4: "is in the log alone"},
    "sequences of rows swapped": {9: "is not what the log says", 10: "is not what the log says"},
    "batch number lowered": {2: "has a batch that the log does not have"},
}


def test_faults_of_several_rows_are_told_by_their_keys(audited):
    assert {FAULTS[fault][1] for fault in BESIDE} == {"agrees_with_log"}
    (sql,) = [sql for name, sql in audited.tests.items() if name.startswith("agrees_with_log_barges_merged")]
    with audited.planted(*(FAULTS[fault][0] for fault in BESIDE)):
        found = dict(audited.workshop.rows(f"select key.id, problem from ({sql})"))
    assert found == {key: problem for problems in BESIDE.values() for key, problem in problems.items()}


def test_no_build_runs_what_reads_whole_logs(audited):
    """They are there with `audit: true` alone."""
    listed = audited.workshop.dbt("ls", "--select", "barges_merged", "barges_changes", "--resource-types", "test")
    names = [path.rpartition(".")[2] for path in listed.result]
    assert names and not [name for name in names if name.startswith(("agrees_with", "has_agreeing_verdicts"))]
