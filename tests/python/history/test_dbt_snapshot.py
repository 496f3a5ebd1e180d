"""dbt snapshot of an entity: a delete closes the version, a returning key opens a new one; beside it the history."""

import pytest
from workshop import change, in_soak_but

pytestmark = pytest.mark.long

KEY = 9007199254740995


def versions(workshop, key=KEY):
    return workshop.rows(
        f"select name, dbt_valid_to is null from customers_snapshot where customer_id = {key} order by dbt_valid_from"
    )


def deliver(workshop, operation, sequence, name, key=KEY):
    record = change(operation, sequence, {"CUSTOMER_ID": key, "NAME": name})
    workshop.deliver("datastream_user1.customers", f"snapshot-{sequence}.json", [record])
    workshop.land_and_run("datastream_user1", "+customers")
    workshop.build("customers_snapshot", command="snapshot")


@pytest.mark.soak
def test_a_delete_closes_the_version_and_a_return_opens_a_new_one(workshop):
    workshop.build("customers_snapshot", command="snapshot")
    first = workshop.value(f"select name from customers where customer_id = {KEY}")
    assert versions(workshop) == [(first, True)]
    deliver(workshop, "DELETE", "FFFF01", None)
    assert versions(workshop) == [(first, False)]
    deliver(workshop, "INSERT", "FFFF02", "back again")
    assert versions(workshop) == [(first, False), ("back again", True)]
    workshop.build("customers_snapshot", command="test")


@pytest.mark.soak
def test_d18_a_late_update_behind_a_delete_opens_no_version(workshop):
    key = KEY + 1000
    deliver(workshop, "INSERT", "FFFF05", "first", key)
    assert versions(workshop, key) == [("first", True)]
    deliver(workshop, "DELETE", "FFFF20", None, key)
    deliver(workshop, "UPDATE", "FFFF10", "late", key)
    assert versions(workshop, key) == [("first", False)]


UNKNOWN = "select {0} from customers_snapshot except select {0} from customers_history"
COLUMNS = "customer_id, name, balance, born_on, is_active, photo, preferences"


def test_versions_of_the_snapshot_are_some_of_the_history(workshop):
    workshop.build("customers_snapshot", command="snapshot")
    workshop.build("customers_history", command="run")
    assert workshop.rows(UNKNOWN.format(COLUMNS)) == []
    seen, known = (workshop.value(f"select count(*) from customers_{name}") for name in ("snapshot", "history"))
    assert known > seen > 0
    version = workshop.version("customers_history")
    workshop.spark.sql(f"update customers_history set name = 'another' where customer_id = {KEY}")
    assert workshop.rows(UNKNOWN.format(COLUMNS))
    workshop.spark.sql(f"restore table customers_history to version as of {version}")


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        *in_soak_but(
            (),
            [
                (f"update customers_snapshot set dbt_valid_to = null where customer_id = {KEY}", "has_no_overlapping"),
                (f"update customers_snapshot set name = 'else' where customer_id = {KEY}", "has_current_rows_of"),
            ],
        ),
        ("delete from customers_snapshot where dbt_valid_to is null and customer_id = 42", "has_current_rows_of"),
    ],
)
def test_a_planted_fault_of_the_snapshot_is_noticed(workshop, fault, test):
    version = workshop.version("customers_snapshot")
    workshop.spark.sql(fault)
    try:
        with pytest.raises(AssertionError, match=test):
            workshop.build("customers_snapshot", command="test")
    finally:
        workshop.spark.sql(f"restore table customers_snapshot to version as of {version}")


PAIRS = """\
snapshots:
  - name: pairs_snapshot
    relation: ref('pairs')
    config: {unique_key: [a, b], strategy: check, check_cols: all, hard_deletes: invalidate}
"""


@pytest.mark.soak
def test_a_key_of_several_columns_is_snapshotted_again_and_again(workshop):
    model, snapshot = workshop.folder / "models/pairs.sql", workshop.folder / "snapshots/pairs_snapshot.yml"
    snapshot.write_text(PAIRS)
    try:
        for number in range(4):
            model.write_text(f"select 1 as a, {number % 2} as b, 'v{number}' as v\n")
            workshop.build("pairs", command="run")
            workshop.build("pairs_snapshot", command="snapshot")
        assert workshop.rows("select a, b, v, dbt_valid_to is null from pairs_snapshot order by v") == [
            (1, number % 2, f"v{number}", number == 3) for number in range(4)
        ]
        assert not [name for name in workshop.spark.table("pairs_snapshot").columns if "unique_key" in name]
    finally:
        model.unlink()
        snapshot.unlink()
