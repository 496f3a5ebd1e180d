"""Java's kept classes: who writes them, who reads them, and when Spark starts as if there were none."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from highwater.spark import java_classes
from highwater.spark.java_classes import kept_classes
from repository import PROJECT

WHOLE, HALF = b"\xf0\x0b\xab\xa8 classes", bytes(4) + b" classes"


@pytest.fixture
def configuration(tmp_path, monkeypatch):
    """Enter a project with jars and a configuration as highwater has it; return its configuration."""
    for name in ("conf/spark-defaults.conf", "conf/log4j2.properties", ".spark/jars/delta.jar"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("spark.master local[*]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    return Path("conf")


def archive_of(configuration: Path) -> Path:
    return Path(options_of(configuration, writes=True)[-1].removeprefix("-XX:ArchiveClassesAtExit="))


def options_of(configuration: Path, writes: bool) -> list[str]:
    """Return the options of Java that tell of an archive."""
    return [option for option in kept_classes(configuration, writes)[1] if option.endswith(".jsa")]


def test_a_build_writes_classes_and_every_command_reads_them(configuration):
    assert not options_of(configuration, writes=False)
    archive = archive_of(configuration)
    assert not options_of(configuration, writes=True), "somebody is writing it"
    archive.write_bytes(WHOLE)
    for writes in (True, False):
        kept = archive.with_stem(f"{archive.stem}-{len(WHOLE)}")
        assert options_of(configuration, writes) == [f"-XX:SharedArchiveFile={kept}"]
        assert not list(Path(kept_classes(configuration, writes)[0]["SPARK_CONF_DIR"]).iterdir()), (
            "Java takes no classes where a folder has files"
        )


def test_classes_that_were_never_written_whole_are_written_anew(configuration):
    archive = archive_of(configuration)
    archive.write_bytes(HALF)
    assert not options_of(configuration, writes=True)
    os.utime(archive, (0, 0))
    assert not options_of(configuration, writes=False)
    assert archive_of(configuration) == archive


def test_classes_that_lack_their_end_are_written_anew(configuration):
    archive = archive_of(configuration)
    archive.write_bytes(WHOLE)
    assert options_of(configuration, writes=False)
    (kept,) = Path(".spark").glob("classes-*.jsa")
    kept.write_bytes(WHOLE[:-1])
    assert not options_of(configuration, writes=False)
    assert archive_of(configuration) == archive
    assert not kept.exists()


def test_other_jars_have_other_classes_and_the_old_ones_go(configuration):
    archive = archive_of(configuration)
    archive.write_bytes(WHOLE)
    Path(".spark/jars/delta.jar").write_text("another\n")
    assert archive_of(configuration) != archive
    assert not archive.exists()


@pytest.mark.parametrize("file", ["hive-site.xml", "spark-env.sh"])
def test_a_configuration_with_more_than_ours_stays_on_the_class_path(configuration, file):
    (configuration / file).touch()
    assert kept_classes(configuration, writes=True) == ({}, [])


def test_whoever_tells_spark_how_to_start_is_left_alone(configuration, monkeypatch):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master local[1] pyspark-shell")
    assert kept_classes(configuration, writes=True) == ({}, [])


def test_a_project_that_cannot_be_written_starts_as_before(configuration):
    Path(".spark/conf").write_text("a file in the place of the folder")
    assert kept_classes(configuration, writes=True) == ({}, [])


def test_a_configuration_that_is_not_there_is_left_to_spark(configuration):
    assert kept_classes(Path("nowhere"), writes=True) == ({}, [])


STARTS = """
import sys
from highwater.spark.spark import session
spark = session(keeps_classes=True)
java = spark.sparkContext._gateway.proc.pid
spark.sql("select 1").collect()
print("/.spark/classes-" in open(f"/proc/{java}/maps").read(), java, flush=True)
if "waits" in sys.argv:
    sys.stdin.read()
"""


@pytest.mark.soak
def test_java_reads_what_an_earlier_one_wrote_and_a_killed_one_leaves_the_metastore_open(tmp_path):
    for name in ("conf", "profiles", "dbt_project.yml"):
        (tmp_path / name).symlink_to(PROJECT / name)
    (tmp_path / ".spark").mkdir()
    (tmp_path / ".spark/jars").symlink_to(PROJECT / ".spark/jars")
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    settings |= {"HIGHWATER_LAKE": str(tmp_path / "lake"), "PYTHONPATH": os.pathsep.join(sys.path)}
    (tmp_path / "lake").mkdir()

    def start(*arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-c", STARTS, *arguments],
            cwd=tmp_path, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    first = start("waits")
    told, java = first.stdout.readline().split()
    assert told == "False"
    first.send_signal(signal.SIGKILL)
    first.wait()
    # Java goes on for a while, and writes its classes; the metastore is free before
    assert start().wait(400) == 0
    for _ in range(120):
        if not Path(f"/proc/{java}").exists():
            break
        time.sleep(1)
    (archive,) = (tmp_path / ".spark").glob("classes-*.jsa")
    assert archive.stat().st_size > 10_000_000
    assert any(archive.open("rb").read(java_classes.BYTES_OF_HEADER))
    third = start()
    assert third.stdout.readline().split()[0] == "True"
    assert third.wait(400) == 0
    # half of it, as of a copy that was interrupted, would be a crash of Java
    (archive,) = (tmp_path / ".spark").glob("classes-*.jsa")
    os.truncate(archive, archive.stat().st_size // 2)
    fourth = start()
    assert fourth.stdout.readline().split()[0] == "False"
    assert fourth.wait(400) == 0
    assert not (tmp_path / "derby.log").exists(), "the profile's options of Java hold"
