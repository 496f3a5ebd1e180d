"""dbt snapshot of an entity: a delete closes the version, a returning key opens a new one."""

import pytest
from workshop import change

pytestmark = pytest.mark.long

KEY = 9007199254740995


def versions(workshop):
    return workshop.rows(
        f"select name, dbt_valid_to is null from customers_snapshot where customer_id = {KEY} order by dbt_valid_from"
    )


def deliver(workshop, operation, sequence, name):
    record = change(operation, sequence, {"CUSTOMER_ID": KEY, "NAME": name})
    workshop.deliver("datastream_user1.customers", f"snapshot-{sequence}.json", [record])
    workshop.land_and_run("datastream_user1", "+customers")
    workshop.build("customers_snapshot", command="snapshot")


def test_a_delete_closes_the_version_and_a_return_opens_a_new_one(workshop):
    workshop.build("customers_snapshot", command="snapshot")
    first = workshop.value(f"select name from customers where customer_id = {KEY}")
    assert versions(workshop) == [(first, True)]
    deliver(workshop, "DELETE", "FFFF01", None)
    assert versions(workshop) == [(first, False)]
    deliver(workshop, "INSERT", "FFFF02", "back again")
    assert versions(workshop) == [(first, False), ("back again", True)]
