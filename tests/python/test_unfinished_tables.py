"""A creation of a table that is killed leaves a folder that Delta refuses; the next command makes the table."""

import shutil

import pytest
from highwater.landing import RAW_TABLE
from highwater.project import lake
from highwater.spark import _remove_unfinished_tables
from pyspark.errors import PySparkException

LEFT = ["before its commit", "before the metastore knew it"]


def create(spark, name):
    spark.sql(RAW_TABLE.format(table=f"raw.{name}", feed=name))


@pytest.mark.parametrize("left", LEFT)
def test_g7_a_killed_creation_is_made_good(workshop, left):
    name = f"unfinished_{LEFT.index(left)}"
    folder = lake() / f"tables/raw.db/{name}"
    if left == LEFT[0]:
        (folder / "_delta_log/_staged_commits").mkdir(parents=True)
        (folder / "entry=record").mkdir()
        (folder / "entry=record/part-0.parquet").write_text("half a file")
    else:
        create(workshop.spark, name)
        shutil.copytree(folder, f"{folder}_kept")
        workshop.spark.sql(f"drop table raw.{name}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(f"{folder}_kept", folder)
    with pytest.raises(PySparkException, match="NON_EMPTY_LOCATION"):
        create(workshop.spark, name)
    _remove_unfinished_tables(workshop.spark)
    create(workshop.spark, name)
    assert workshop.rows(f"select count(*) from raw.{name}") == [(0,)]


def test_tables_that_are_there_stay(workshop):
    """Tables that the metastore knows, empty ones too, and rows that it does not know."""
    create(workshop.spark, "unfinished_not")
    unknown = lake() / "tables/lake.db/unfinished_unknown"
    workshop.spark.sql(f"insert overwrite directory '{unknown.resolve()}' using parquet select 1 as a")
    workshop.spark.sql(f"convert to delta parquet.`{unknown.resolve()}`")
    _remove_unfinished_tables(workshop.spark)
    assert workshop.rows("select count(*) from raw.unfinished_not") == [(0,)]
    assert workshop.rows(f"select a from delta.`{unknown.resolve()}`") == [(1,)]
    shutil.rmtree(unknown)
