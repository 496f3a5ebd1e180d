"""A lake is where it is: a copy never touches its original, one that was moved is used where it is now."""

import hashlib
import shutil

import pytest
from highwater.spark.places import moves, place_now
from test_long_views import python, query

WAS, NOW = "file:/disk/lake", "file:/other mount/größe%41"
MADE = """
from highwater.spark import spark as start
spark = start.session(spark__master="local[1]")
spark.sql("create table raw.landed using delta as select 1 as a")
spark.sql("create view lake.seen as select * from raw.landed")
spark.sql(f"create schema outside location '{OUTSIDE}'")
spark.sql("create table outside.kept using delta as select 1 as a")
"""
WRITTEN = """
from highwater.spark import spark as start
CONTROL
spark = start.session(spark__master="local[1]")
for table in ("raw.landed", "outside.kept"):
    spark.sql(f"insert into {table} values (2)")
spark.sql("create or replace table raw.second using delta as select 1 as a")
"""


def state(folder) -> dict:
    """What each file of a folder's tables holds."""
    return {
        path.relative_to(folder): hashlib.md5(path.read_bytes()).digest()
        for path in folder.glob("tables/**/*")
        if path.is_file()
    }


def test_what_was_in_the_lake_moves_along_and_nothing_else():
    databases = [("default", f"{WAS}/tables"), ("raw", f"{WAS}/tables/raw.db"), ("lake", f"{WAS}/tables/lake.db")]
    moved = moves([*databases, ("own", "file:/own/tables/own.db")], f"{NOW}/tables")
    assert moved == {WAS: NOW}
    for inside in ("", "/tables", "/tables/raw.db/a", "/tables/lake.db/b/c=1", "/reconciliations"):
        assert place_now(WAS + inside, moved) == NOW + inside
    for outside in ("file:/own/tables/own.db", f"{WAS}2/tables/raw.db/a", "s3a://bucket/a", ""):
        assert place_now(outside, moved) == outside
    assert moves(databases, f"{WAS}/tables") == {}


def test_a_warehouse_of_another_name_moves_by_itself():
    moved = moves([("raw", "file:/a/house/raw.db"), ("own", "file:/a/own.db")], "file:/b/house")
    assert moved == {"file:/a/house": "file:/b/house"}


@pytest.mark.soak
def test_a_copy_never_touches_its_original_and_a_lake_can_be_moved(tmp_path):
    """Without the repairing the copy writes into the original: the test would see it."""
    lake, copy, control, moved = (tmp_path / name for name in ("lake", "a copy", "control", "moved on"))
    outside = tmp_path / "outside.db"
    assert python(lake, "-c", f"OUTSIDE = '{outside}'\n{MADE}").returncode == 0
    before = state(lake)
    for folder in (copy, control):
        shutil.copytree(lake, folder)
    done = python(copy, "-c", WRITTEN.replace("CONTROL", ""))
    assert done.returncode == 0, done.stderr
    assert state(lake) == before
    assert len(state(copy)) > len(before)
    copy.rename(moved)
    assert query(moved, "select count(*) from seen") == "2"
    assert query(moved, "select count(*) from outside.kept") == "2"
    assert state(lake) == before
    done = python(control, "-c", WRITTEN.replace("CONTROL", "start.repair_places = lambda *_: None"))
    assert done.returncode == 0, done.stderr
    assert len(state(lake)) > len(before) and len(state(control)) == len(before)
