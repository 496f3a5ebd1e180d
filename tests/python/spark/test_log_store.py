"""Delta's log on S3: of writers that want one version, one has it, and each knows whether it is the one."""

import json
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
import s3
from highwater.runtime.errors import UsageError
from highwater.spark import jars as of_spark
from highwater.spark.jars import JARS_OF_S3A, LOG_STORE, fetch_for_s3a
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError, get_return_value
from repository import PROJECT

OURS, DELTAS = "highwater.storage.S3ConditionalLogStore", "io.delta.storage.S3SingleDriverLogStore"
VERSIONS = 60
LOST = "java.nio.file.FileAlreadyExistsException"


def settings_of(port: int) -> dict[str, str]:
    return {
        "fs.s3a.endpoint": f"http://127.0.0.1:{port}",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "key",
        "fs.s3a.secret.key": "secret",
    }


@pytest.fixture(autouse=True)
def errors_of_each_java(monkeypatch):
    """PySpark, once it has a session, takes errors of every Java for those of its own."""
    monkeypatch.setattr("py4j.java_gateway.get_return_value", get_return_value)


@pytest.fixture(scope="module")
def jars() -> list[str]:
    """Make sure of the jars of S3; return the class path."""
    subprocess.run([sys.executable, "-m", "highwater.spark.jars", "s3a"], cwd=PROJECT, check=True)
    return [str(PROJECT / ".spark/jars/*"), str(PROJECT / JARS_OF_S3A / "*")]


@pytest.fixture(scope="module")
def server():
    with s3.serving() as server:
        yield server


class Writer:
    """A Java process with a log store on a server; its versions are those of one table."""

    def __init__(self, gateway: JavaGateway, store: str, port: int):
        self.jvm = gateway.jvm
        self.jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # one of a bucket is kept, with its server
        self.configuration = self.jvm.org.apache.hadoop.conf.Configuration()
        for name, value in settings_of(port).items():
            self.configuration.set(name, value)
        self.store = getattr(self.jvm, store)(self.configuration)

    def write(self, name: str, *actions, overwrite: bool = False) -> bool:
        """Write a file; return whether it is this one's, and not another's."""
        lines = self.jvm.java.util.ArrayList()
        for action in actions:
            lines.add(action)
        path = self.jvm.org.apache.hadoop.fs.Path(f"s3a://{s3.BUCKET}/{name}")
        try:
            self.store.write(path, lines.iterator(), overwrite, self.configuration)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() == LOST:
                return False
            raise
        return True


@pytest.fixture(scope="module")
def processes(jars):
    """Two Java processes: Delta's own store keeps writers of one apart."""
    classes = ":".join([*jars, str(Path(pyspark.__file__).parent / "jars/*")])
    gateways = [_started(classes) for _ in range(2)]
    yield gateways
    for gateway in gateways:
        gateway.shutdown()
        gateway.java_process.stdin.close()
        gateway.java_process.wait(30)


def _started(classes: str) -> JavaGateway:
    port, token, process = launch_gateway(
        classpath=classes,
        javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
        return_proc=True,
        enable_auth=True,
        redirect_stderr=subprocess.DEVNULL,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token), java_process=process)


def lost_versions(server, gateways, store: str) -> int:
    """Let two writers race for versions; return how many both have won, and so one of them has lost a commit."""
    writers = [Writer(gateway, store, server.port) for gateway in gateways]
    start = threading.Barrier(len(writers))

    def races(number: int) -> list[bool]:
        won = []
        for version in range(VERSIONS):
            start.wait(60)
            won.append(writers[number].write(f"{store}/{version}.json", f"writer {number}"))
        return won

    with ThreadPoolExecutor(len(writers)) as pool:
        won = list(zip(*pool.map(races, range(len(writers))), strict=True))
    assert len(won) == VERSIONS
    for version, wins in enumerate(won):
        there = server.get(f"{store}/{version}.json")
        assert there in [f"writer {number}\n" for number, is_won in enumerate(wins) if is_won]
    return sum(sum(wins) > 1 for wins in won)


def test_no_version_is_won_by_two_writers(server, processes):
    assert lost_versions(server, processes, OURS) == 0
    assert lost_versions(server, processes, DELTAS) > 0, "the race is none"


@pytest.fixture
def project(jars, tmp_path, monkeypatch):
    """Enter a project that has the jars of S3, and no network."""
    (tmp_path / "dbt_project.yml").write_text("name: highwater\n")
    for name in ("conf", LOG_STORE.parent, JARS_OF_S3A):
        shutil.copytree(PROJECT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(of_spark, "_fetched", lambda what, *_: pytest.fail(f"{what} are fetched"))


def test_jars_of_s3_are_fetched_once(project):
    fetch_for_s3a()
    (JARS_OF_S3A / LOG_STORE.name).write_bytes(b"of another version")
    fetch_for_s3a()
    assert (JARS_OF_S3A / LOG_STORE.name).read_bytes() == LOG_STORE.read_bytes()


def test_an_altered_jar_of_s3_is_fetched_again(project):
    (jar,) = JARS_OF_S3A.glob("*awssdk_s3-2*")
    jar.write_bytes(jar.read_bytes() + b"x")
    with pytest.raises(pytest.fail.Exception, match="the jars of S3"):
        fetch_for_s3a()


def test_without_a_log_store_nothing_is_fetched(project):
    LOG_STORE.unlink()
    with pytest.raises(UsageError, match="make setup"):
        fetch_for_s3a()


@contextmanager
def one_with(fault, server, processes):
    """A writer between which and the server something happens to its first conditional PUT."""
    with s3.before(server) as between:
        between.fault = fault
        yield Writer(processes[0], OURS, between.port), between


def the_answer_is_lost(server, name):
    return True, None


def another_was_first(server, name):
    server.put(name, "{}\n")
    return False, None


def it_never_arrives(server, name):
    return False, None


def another_request_is_under_way(server, name):
    return False, (409, s3.CONFLICT)


@pytest.mark.parametrize(
    ("fault", "statuses", "is_won"),
    [
        (the_answer_is_lost, [200, 412], True),
        # the same content: it is the object that tells whose it is
        (another_was_first, [412], False),
        (it_never_arrives, [200], True),
        (another_request_is_under_way, [200], True),
    ],
)
def test_a_writer_knows_whether_a_repeated_commit_is_its_own(server, processes, fault, statuses, is_won):
    name = f"repeated/{fault.__name__}.json"
    with one_with(fault, server, processes) as (writer, between):
        assert writer.write(name, "{}") == is_won
        assert between.statuses == statuses, "the server's answers; a lost one is repeated"
        assert server.get(name) == "{}\n"
        assert not writer.write(name, "{}"), "its own commit of before is another's for the next"


def test_a_file_is_written_whole_or_not_at_all(server, processes):
    writer = Writer(processes[0], OURS, server.port)
    with pytest.raises(Py4JJavaError, match="ClassCastException"):
        writer.write("half.json", "first", 2)  # the second action fails
    assert server.get("half.json") is None
    assert writer.write("half.json", "é" * 1000, "second")
    assert server.get("half.json") == "é" * 1000 + "\nsecond\n"


def test_what_may_be_overwritten_is(server, processes):
    writer = Writer(processes[0], OURS, server.port)
    for content in ("first", "second"):
        assert writer.write("_last_checkpoint", content, overwrite=True)
    assert server.get("_last_checkpoint") == "second\n"


def test_a_file_system_without_conditional_writes_is_refused(server, processes, tmp_path):
    writer = Writer(processes[0], OURS, server.port)
    path = writer.jvm.org.apache.hadoop.fs.Path(f"file:{tmp_path}/0.json")
    with pytest.raises(Py4JJavaError, match="IllegalArgumentException"):
        writer.store.write(path, writer.jvm.java.util.ArrayList().iterator(), False, writer.configuration)


# Each thread has a session of its own, and each append begins with one of the other's.
APPENDS = """
import json, sys
from threading import Barrier
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession
given = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]")
for name, value in given["settings"].items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
start = Barrier(2)

def appended(writer):
    session = spark.newSession()
    for number in range(given["appends"]):
        rows = session.range(10).selectExpr(f"{writer} as writer", f"{number} as number", "id")
        start.wait(60)
        rows.coalesce(1).write.format("delta").mode("append").save(given["table"])

spark.range(0).selectExpr("0 as writer", "0 as number", "id").write.format("delta").save(given["table"])
with ThreadPoolExecutor(2) as pool:
    list(pool.map(appended, range(2)))
rows = spark.read.format("delta").load(given["table"])
print(json.dumps([rows.count(), rows.distinct().count()]))
spark.stop()
"""


def test_two_sessions_append_every_row_once(server, jars, tmp_path):
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path),
        "spark.delta.logStore.s3a.impl": OURS,
    }
    appends = 3
    with s3.before(server) as between:
        settings |= {f"spark.hadoop.{name}": value for name, value in settings_of(between.port).items()}
        given = json.dumps({"settings": settings, "appends": appends, "table": f"s3a://{s3.BUCKET}/rows"})
        command = [sys.executable, "-c", APPENDS, given]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout) == [2 * appends * 10] * 2
    assert server.get(f"rows/_delta_log/{2 * appends:020}.json"), "each append is a version"
    assert 412 in between.statuses, "no version was wanted by both"
