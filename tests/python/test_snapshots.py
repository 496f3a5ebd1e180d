"""Full loads that come later: they wait until it is said what they are, and become the truth by a resync."""

import shutil
from pathlib import Path

import pytest
from conftest import PROJECT

CASES = PROJECT / "tests/python/fixtures/snapshots"




@pytest.fixture(scope="module")
def loads(workshop):
    workshop.add_table("dms_mysql1.orders", "id:int", "note:string", "dms-csv")
    return workshop


def rows(workshop, table):
    return dict(workshop.rows(f"select * from {table}"))


def test_dms_reload(loads):
    loads.deliver("dms_mysql1.orders", "LOAD00000001.csv", "1,old 1\n2,old 2\n")
    loads.deliver("dms_mysql1.orders", "20240105-101112345.csv", "U,1,cdc 1\nI,6,cdc 6\n")
    loads.deliver("dms_mysql1.orders", "reload-20240201/LOAD00000001.csv", "1,reload 1\n2,reload 2\n6,reload 6\n")
    loads.land("dms_mysql1")
    loads.build("+orders", command="run")
    print(loads.rows("select * from orders"))
    print((loads.folder / "target/compiled/highwater/models/changes/mysql1/orders_changes.sql").read_text()[:300])
    assert loads.rows("select * from orders") == []
