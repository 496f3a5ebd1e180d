"""A lake whose metastore was lost, or a commit left in half: found at the next command, and repaired by one."""

import shutil

import pytest
from test_long_views import python
from test_places import state

MADE = """
from highwater.spark import spark as start
spark = start.session(spark__master="local[1]")
spark.sql("create table raw.landed using delta partitioned by (b) as select 1 as a, 'x' as b")
spark.sql("insert into raw.landed values (2, 'y')")
spark.sql("create table lake.taken using delta as select 1 as a")
spark.sql("create view lake.seen as select * from raw.landed")
spark.sql("create schema own")
spark.sql("create table own.kept using delta tblproperties ('delta.enableDeletionVectors' = 'true') as select 1 as a")
"""
# what a build does with a log that is not there, where nobody asks whether it is known
REPLACED = """
from highwater.spark import spark as start
start.require_known_tables = lambda *_: None
spark = start.session(spark__master="local[1]")
spark.sql("create or replace table raw.landed using delta as select 5 as a, 'z' as b")
print(spark.sql("select sum(a) from raw.landed").first()[0])
"""
# the command again, and what is there behind it
RECOVERED = """
from highwater import cli
from highwater.spark import spark as start
cli.commands(["recover"], standalone_mode=False)
spark = start.session()
"""
SUM = "print(spark.sql('select sum(a) from raw.landed').first()[0])\n"
DROPPED = """
print(spark.sql("select sum(a) + (select sum(a) from own.kept) from raw.landed").first()[0])
print([row.tableType for row in map(spark.catalog.getTable, ("raw.landed", "lake.taken", "own.kept"))])
spark.sql("drop table raw.landed")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A lake with tables in three schemas."""
    lake = tmp_path_factory.mktemp("recovered") / "a lake"
    assert python(lake, "-c", MADE).returncode == 0
    return lake


def highwater(lake, *arguments):
    """Run a command on a lake; return its exit code and what it said."""
    ended = python(lake, "-m", "highwater.cli", *arguments)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.long
def test_a_lost_metastore_is_found_and_its_tables_are_registered(made, tmp_path):
    lake, control = (tmp_path / name for name in ("lake", "control"))
    for folder in (lake, control):
        shutil.copytree(made, folder)
    shutil.rmtree(lake / "metastore")
    before = state(lake)
    # the second time there is a metastore again, an empty one
    for command in (["query", "select * from raw.landed"], ["build"], ["status"]):
        code, said = highwater(lake, *command)
        assert code == 2 and "does not know raw.landed, whose files are there. Nothing was done." in said, said
        assert said.rstrip().endswith("highwater recover") and len(said.splitlines()) == 1
    assert state(lake) == before
    (lake / "tables/lake.db/no_table").mkdir()
    code, said = highwater(lake, "recover")
    assert code == 1 and "no_table has no commit of Delta's" in said
    for table in ("raw.landed", "lake.taken", "own.kept"):
        assert f"{table}: registered" in said
    (lake / "tables/lake.db/no_table").rmdir()
    # dropped tables leave nothing, as if they had been made there
    recovered = python(lake, "-c", RECOVERED + DROPPED)
    assert recovered.stdout.splitlines() == [
        "Every table is whole, and the metastore knows it.", "4", "['MANAGED', 'MANAGED', 'MANAGED']",
    ], recovered.stdout + recovered.stderr  # fmt: skip
    assert not (lake / "tables/raw.db/landed").exists()
    # negative control: what happens to a table that nobody knows
    shutil.rmtree(control / "metastore")
    replaced = python(control, "-c", REPLACED)
    assert replaced.stdout == "5\n", replaced.stderr


@pytest.mark.long
def test_a_half_commit_stops_who_writes_and_is_told_to_who_reads(made, tmp_path):
    lake = tmp_path / "lake"
    shutil.copytree(made, lake)
    (lake / f"tables/raw.db/landed/_delta_log/{1:020}.json").write_bytes(b"")
    before = state(lake)
    code, said = highwater(lake, "land")
    assert code == 2 and said.startswith(
        "highwater: nothing was done: commit 1 of raw.landed is empty or half (a power cut?)"
    ), said
    assert said.endswith(": highwater recover\n") and len(said.splitlines()) == 1
    assert state(lake) == before
    code, said = highwater(lake, "query", "select sum(a) as it_is_like_before from raw.landed")
    assert code == 0 and "warning: commit 1 of raw.landed is empty or half" in said and "it_is_like_before" in said
    recovered = python(lake, "-c", RECOVERED + SUM)
    said = recovered.stdout.splitlines()
    assert said[0].startswith("raw.landed: commit 1 is half, and was put aside with whatever is behind it"), said
    assert said[-2:] == ["Now run: highwater build", "1"], recovered.stdout + recovered.stderr
