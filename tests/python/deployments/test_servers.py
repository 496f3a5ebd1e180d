"""Spark's own parts do what a shared lake asks of them: cluster, shared metastore, Thrift, S3; without highwater."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import s3
from cluster import (
    DELTA,
    QUICKLY,
    can_blind,
    command_lines,
    configuration,
    running,
    settings_of_cluster,
    shared_metastore,
    standalone,
    thrift_server,
    zipped_package,
)
from deployed import credentials
from repository import PROJECT
from servers import PASSWORD
from workshop import environment_of_a_user

pytestmark = pytest.mark.soak
IN_A_SESSION = """
import json, sys, time
from pyspark.sql import SparkSession

def described(batches):
    import os, pyarrow
    import highwater.formats.readers
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({
            "id": batch.column(0),
            "process": [os.getpid()] * len(batch),
            "package": [highwater.__file__] * len(batch),
            "seen": [sum(map(os.path.exists, HIDDEN))] * len(batch),
        })

HIDDEN = json.loads(sys.argv[1])
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
"""
WRITES = """
spark.sql("create schema shop")
spark.sql("create table shop.rows (id bigint, process bigint, package string, seen bigint) using delta")
# a stage waits for the second executor, so that both have something to do
while spark._jsc.sc().getExecutorMemoryStatus().size() < 3:
    time.sleep(0.2)
rows = spark.range(0, 1000, 1, 2).mapInArrow(described, "id long, process long, package string, seen long")
rows.write.format("delta").mode("append").saveAsTable("shop.rows")
spark.sql(\"\"\"
    merge into shop.rows using (select id from range(900, 1100)) as changes on rows.id = changes.id
    when matched then update set process = -1
    when not matched then insert (id, process, package, seen) values (changes.id, -2, '', 0)
\"\"\")
"""
READS = """
print(json.dumps([list(row) for row in spark.sql("select id, process, package, seen from shop.rows").collect()]))
"""


@pytest.fixture(scope="module")
def folders():
    """A folder for servers, one for the lake, and a lake's folder of the driver's that no worker sees."""
    with TemporaryDirectory(prefix="highwater-servers-") as top:
        for name in ("servers", "lake", "driver"):
            Path(top, name).mkdir()
        Path(top, "driver/file").touch()
        yield Path(top)


@pytest.fixture(scope="module")
def settings(folders):
    """The settings of a driver on a cluster whose workers see neither the project nor the driver's folder."""
    with (
        shared_metastore() as metastore,
        standalone(folders / "servers", blind=[PROJECT, folders / "driver"]) as cluster,
    ):
        yield {
            **settings_of_cluster(cluster),
            **DELTA,
            **metastore,
            "spark.driver.memory": "1g",
            "spark.sql.warehouse.dir": str(folders / "lake"),
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.ui.enabled": "false",
        }


def in_session(folders: Path, name: str, statements: str, settings: dict[str, str]) -> list:
    """Run statements in a process of their own, in the driver's folder; return what they print."""
    hidden = json.dumps([str(PROJECT / "dbt_project.yml"), str(folders / "driver/file")])
    ran = subprocess.run(
        [sys.executable, "-c", IN_A_SESSION + statements, hidden],
        cwd=folders / "driver", capture_output=True, text=True, timeout=120,
        env=environment_of_a_user() | {
            "SPARK_CONF_DIR": str(configuration(folders / name, settings)), "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LAUNCHER_OPTS": QUICKLY, "PYSPARK_PYTHON": str(Path(sys.executable)), "PYTHONPATH": "",
        },
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture(scope="module")
def rows(folders, settings):
    """The rows that one session writes and a second one reads."""
    in_session(folders, "writer", WRITES, settings | {"spark.submit.pyFiles": str(zipped_package(folders))})
    (found,) = in_session(folders, "reader", READS, settings | {"spark.master": "local[1]"})
    return [tuple(row) for row in found]


def test_executors_write_what_another_session_reads(rows):
    assert sorted(id for id, *_ in rows) == list(range(1100))
    assert {id for id, process, *_ in rows if process == -1} == set(range(900, 1000))
    assert {id for id, process, *_ in rows if process == -2} == set(range(1000, 1100))
    assert len({process for _, process, *_ in rows if process > 0}) == 2


def test_executors_have_the_package_of_the_driver_and_not_its_folders(rows):
    assert {package for _, _, package, _ in rows if package} == {"./highwater.zip/highwater/__init__.py"}
    assert {seen for *_, seen in rows} == ({0} if can_blind() else {0, 2})


def test_thrift_reads_the_same_table(rows, folders, settings):
    from pyhive import hive

    with thrift_server(folders / "servers", settings) as port, hive.connect("127.0.0.1", port) as connection:
        asked = connection.cursor()
        asked.execute("select id, process, package, seen from shop.rows")
        assert sorted(asked.fetchall()) == sorted(rows)
        assert not [line for line in command_lines() if PASSWORD in line]


def test_the_object_store_lets_one_of_two_win_a_name(monkeypatch):
    from pyarrow import fs

    with s3.serving() as store:
        for name, value in credentials(store).items():
            monkeypatch.setenv(name, value)
        once = {**s3.ANYBODY, "If-None-Match": "*"}
        first, *_ = store.answer("PUT", "/lake/log/0.json", b"first", once)
        second, *_ = store.answer("PUT", "/lake/log/0.json", b"second", once)
        assert (first, second) == (200, 412)
        system, path = fs.FileSystem.from_uri("s3://lake/log/0.json")
        with system.open_input_stream(path) as stream:
            assert stream.read() == b"first"


def test_a_server_that_does_not_come_up_is_told_with_its_last_words(tmp_path):
    with (
        pytest.raises(AssertionError, match=r"odd ended with 3:\nno such port"),
        running("odd", ["bash", "-c", "echo no such port; exit 3"], tmp_path, lambda: False),
    ):
        pass
    with (
        pytest.raises(AssertionError, match="slow is not there after 1 s"),
        running("slow", ["sleep", "600.25"], tmp_path, lambda: False, seconds=1),
    ):
        pass
    assert not [line for line in command_lines() if line.startswith("sleep 600.25")]
