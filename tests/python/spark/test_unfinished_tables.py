"""A creation of a table that is killed leaves a folder that Delta refuses; the next command makes the table."""

import os
import shutil
import subprocess
import sys

import pytest
from highwater.landing.raw_table import RAW_TABLE
from highwater.runtime.project import lake
from highwater.spark.spark import remove_unfinished_tables
from pyspark.errors import PySparkException

LEFT = ["before its commit", "before the metastore knew it"]


def create(spark):
    spark.sql(RAW_TABLE.format(table="raw.unfinished", feed="unfinished"))


@pytest.fixture
def folder(workshop):
    """Where the table is, which other tests must not meet."""
    yield lake() / "tables/raw.db/unfinished"
    workshop.spark.sql("drop table raw.unfinished")


@pytest.mark.parametrize("left", LEFT)
def test_g7_a_killed_creation_is_made_good(workshop, folder, left):
    if left == LEFT[0]:
        (folder / "_delta_log/_staged_commits").mkdir(parents=True)
        (folder / "entry=record").mkdir()
        (folder / "entry=record/part-0.parquet").write_text("half a file")
    else:
        create(workshop.spark)
        shutil.copytree(folder, f"{folder}_kept")
        workshop.spark.sql("drop table raw.unfinished")
        shutil.move(f"{folder}_kept", folder)
    with pytest.raises(PySparkException, match="NON_EMPTY_LOCATION"):
        create(workshop.spark)
    remove_unfinished_tables(workshop.spark)
    create(workshop.spark)
    assert workshop.rows("select count(*) from raw.unfinished") == [(0,)]


def test_tables_that_are_there_stay(workshop, folder):
    """Those that the metastore knows, empty ones too, and of the others what has rows or might have them."""
    create(workshop.spark)
    rows, checkpoint, files = (lake() / f"tables/lake.db/unfinished_{name}" for name in ("rows", "checkpoint", "files"))
    workshop.spark.sql("select 1 as a").write.format("delta").save(str(rows.resolve()))
    (checkpoint / "_delta_log").mkdir(parents=True)
    (checkpoint / "_delta_log/00000000000000000010.checkpoint.parquet").touch()
    files.mkdir()
    remove_unfinished_tables(workshop.spark)
    assert workshop.rows("select count(*) from raw.unfinished") == [(0,)]
    for unknown in (rows, checkpoint, files):
        assert unknown.exists()
        shutil.rmtree(unknown)


def test_half_commits_go_and_whole_ones_stay(workshop, folder):
    create(workshop.spark)
    log = folder / "_delta_log"
    whole = sorted(log.iterdir())
    for name in (".00000000000000000001.json.4dd382a0.tmp", "..00000000000000000001.json.4dd382a0.tmp.crc"):
        (log / name).write_text('{"commitInfo":')
    remove_unfinished_tables(workshop.spark)
    assert sorted(log.iterdir()) == whole and whole


def test_g7_a_command_that_writes_makes_it_good(workshop, tmp_path):
    (tmp_path / "lake/tables/raw.db/datastream_user1/_delta_log/_staged_commits").mkdir(parents=True)
    settings = {**os.environ, "HIGHWATER_LAKE": str(tmp_path / "lake"), "SPARK_CONF_DIR": str(workshop.folder / "conf")}
    answer = subprocess.run(
        [sys.executable, "-m", "highwater.cli", "land", "datastream_user1"],
        cwd=workshop.folder, env=settings, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert "datastream_user1: " in answer.stdout
