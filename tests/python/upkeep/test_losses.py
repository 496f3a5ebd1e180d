"""What a rebuild would lose, in logs that are made by hand: each key is a case of its own."""

import pytest
from highwater.catalog.columns import Column
from highwater.runtime.errors import CheckError
from highwater.upkeep import losses as module
from highwater.upkeep.losses import losses, refuse_losses

INSERT, DELETE, TRUNCATE, OLD_KEY = "insert", "delete", "truncate", "old key"
ODD = "value_does_not_fit"
# key, line, order, what it is, why it is rejected
OLD = [
    (1, 1, "10", INSERT, None),
    (2, 2, "10", INSERT, None),
    (3, 3, "10", INSERT, None), (3, 4, "20", INSERT, None),
    (4, 5, "10", INSERT, None), (4, 6, "20", DELETE, ODD),
    (5, 7, "10", INSERT, None), (5, 8, "05", DELETE, None),
    (6, 9, "20", INSERT, None), (6, 10, "10", DELETE, None),
    (7, 11, "10", INSERT, None),
    (8, 12, "10", INSERT, ODD), (8, 12, "10", INSERT, None),
    (9, 13, "10", INSERT, None), (9, 14, "20", DELETE, None),
    (10, 15, "10", INSERT, None), (11, 16, "20", INSERT, None),
]  # fmt: skip
NEW = [
    (1, 1, "10", INSERT, None),
    # rejected now, and with it the only row of its key
    (2, 2, "10", INSERT, ODD),
    # rejected now; an older row stays
    (3, 3, "10", INSERT, None), (3, 4, "20", INSERT, ODD),
    # a delete that is accepted now
    (4, 5, "10", INSERT, None), (4, 6, "20", DELETE, None),
    # one that an epoch has put above the row
    (5, 7, "10", INSERT, None), (5, 8, "15", DELETE, None),
    # one that stands where it stood, and the row has fallen below it
    (6, 9, "05", INSERT, None), (6, 10, "10", DELETE, None),
    # 7: a model leaves it out. 8: one arrival of a record is enough
    (8, 12, "10", INSERT, None), (8, 12, "10", INSERT, ODD),
    # a key that was not there
    (9, 13, "10", INSERT, ODD), (9, 14, "20", DELETE, ODD),
    # a record that is known now to have moved the key
    (10, 15, "10", INSERT, None), (11, 16, "20", INSERT, None), (10, 16, "20", OLD_KEY, None),
]  # fmt: skip
LOST_RECORDS, LOST_KEYS = {2, 4, 11, 13, 14}, {2, 6, 7}


@pytest.fixture
def compared(workshop, monkeypatch):
    """Compare two logs of a table with the key `id`, or without a key."""
    monkeypatch.setattr(module, "SHOWN", 100)

    def log(name, records):
        rows = ",".join(
            f"('{key}', {line}, '{order}', '{'delete' if kind == OLD_KEY else kind}', {kind not in (INSERT,)}, "
            f"{kind == OLD_KEY}, {f'{reason!r}' if reason else 'null'})"
            for key, line, order, kind, reason in records
        )
        workshop.spark.sql(
            f"create or replace temporary view {name} as select *, 'f' as feed, 'f/x.csv' as source_file, "
            "cast(hash(*) as bigint) as change_hash, 'what was found' as rejection_detail "
            f"from values {rows} as records (id, source_line, change_sequence_number, change_type, is_deleted, "
            "is_derived, rejection_reason)"
        )

    def compare(old, new, key=("id",), **options):
        # the key was text
        columns = [Column("id", "id", "int", None)]
        monkeypatch.setattr(module, "declared_columns", lambda entity: (columns, list(key)))
        log("old_log", old)
        log("new_log", new)
        found = losses(workshop.spark, "made_by_hand", "old_log", "new_log", **options)
        return {row.source_line for row in found.records}, {
            int("".join(filter(str.isdigit, r.key))) for r in found.keys
        }

    return compare


def test_what_would_be_lost_is_found_and_nothing_else(compared):
    assert compared(OLD, NEW) == (LOST_RECORDS, LOST_KEYS)
    assert compared(OLD, OLD) == (set(), set())


def test_tables_without_a_key_and_models_that_are_compared_lose_records(compared):
    assert compared(OLD, NEW, key=()) == (LOST_RECORDS, set())
    # of a replay: what retention has dropped from raw is no matter
    assert compared(OLD, NEW, is_rebuilt=False) == (LOST_RECORDS - {11}, set())


def test_a_truncate_takes_keys_away_when_it_is_new(compared):
    rows, truncate = [(1, 1, "10", INSERT, None), (2, 2, "30", INSERT, None)], (0, 9, "20", TRUNCATE, None)
    assert compared(rows, [*rows, truncate]) == (set(), set())
    # as an epoch moves a row below one that is known
    fallen = [(1, 1, "10", INSERT, None), (2, 2, "15", INSERT, None)]
    assert compared([*rows, truncate], [*fallen, truncate]) == (set(), {2})


def test_rows_that_a_key_tells_no_longer_apart(workshop):
    workshop.spark.sql(
        "create or replace temporary view made_base as select * from values "
        "(1, 1, false), (1, 2, false), (1, 3, true), (2, 1, false) as base (id, line, is_deleted) "
        "cross join (select 'update' as change_type)"
    )
    (row,) = module._alike(workshop.spark, "made_base", ["id"], "`id`")
    assert (row.key, row.rows, row.number) == ('{"id":1}', 2, 1)
    assert module._alike(workshop.spark, "made_base", ["id", "line"], "`id`, `line`") == []


def test_a_loss_stops_and_says_what_it_is(workshop, compared):
    compared(OLD, NEW)
    found = losses(workshop.spark, "made_by_hand", "old_log", "new_log")
    with pytest.raises(CheckError) as refused:
        refuse_losses(found, "rebuilding orders from raw", "highwater rebuild orders --from raw", False)
    said = str(refused.value)
    assert said.startswith(
        "rebuilding orders from raw would lose what the table has: 5 records that were accepted would be rejected and "
        '3 keys that are there would be gone:\n  f/x.csv, line 2, key {"id":"2"}: value_does_not_fit: what was found\n'
    )
    assert '\n  key {"id":6} (last in f/x.csv, line 9): it would be deleted by f/x.csv, line 10\n' in said
    assert said.endswith("take the loss: highwater rebuild orders --from raw --accept-loss")
    (told,) = refuse_losses(found, "", "", True)
    assert told.startswith("--accept-loss: 5 records")
    assert refuse_losses(module.Losses(), "", "", False) == []
