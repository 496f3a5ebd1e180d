"""Which deployment a command works in, what is refused of it, and the lease of a lake that many machines write."""

import os
import re
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
from highwater.runtime import deployment, project, state
from highwater.runtime.errors import CheckError, UsageError
from highwater.spark import lease as leases
from highwater.spark.hadoop_files import HadoopFiles
from highwater.spark.spark import _start_java_without_secrets
from highwater.status.doctor import examine
from repository import PROJECT

NEEDED = {
    "HIGHWATER_MASTER": "spark://there:7077",
    "HIGHWATER_DRIVER_HOST": "10.0.0.5",
    "HIGHWATER_LAKE": "s3a://bucket/lake",
    "HIGHWATER_METASTORE": "jdbc:postgresql://there/metastore",
    "HIGHWATER_METASTORE_USER": "hive",
    "HIGHWATER_METASTORE_PASSWORD": "a secret",
}


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """The shipped profile in a project of its own, and the environment of its cluster."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "dbt_project.yml").write_text((PROJECT / "dbt_project.yml").read_text())
    path = tmp_path / "profiles/profiles.yml"
    path.write_text((PROJECT / "profiles/profiles.yml").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DBT_PROFILES_DIR", str(path.parent))
    monkeypatch.delenv("HIGHWATER_TARGET", raising=False)
    monkeypatch.delenv("HIGHWATER_LAKE", raising=False)
    return path


@pytest.fixture
def cluster(profile, monkeypatch):
    monkeypatch.setenv("HIGHWATER_TARGET", "cluster")
    for name, value in NEEDED.items():
        monkeypatch.setenv(name, value)
    return profile


def test_the_embedded_lake_is_a_folder(profile, monkeypatch):
    assert deployment.is_embedded() and deployment.target_name() == "embedded"
    assert deployment.place() == ".lake" and str(project.lake()) == ".lake"
    monkeypatch.setenv("HIGHWATER_LAKE", "elsewhere")
    assert deployment.settings()[deployment.WAREHOUSE] == "elsewhere/tables" and deployment.place() == "elsewhere"


def test_an_output_by_another_name_is_known_by_its_metastore(profile, monkeypatch):
    profile.write_text(profile.read_text().replace("embedded", "mine"))
    assert deployment.is_embedded() and deployment.target_name() == "mine"


def test_the_lake_of_a_cluster_is_above_its_warehouse(cluster, monkeypatch):
    assert not deployment.is_embedded() and deployment.place() == "s3a://bucket/lake"
    assert project.stored("reconciliations") == "s3a://bucket/lake/reconciliations"
    assert str(project.lake()) == ".lake", "logs are here"
    monkeypatch.setenv("HIGHWATER_TARGET", "thrift")
    assert deployment.place() == "s3a://bucket/lake" and deployment.target_name() == "thrift"
    text = cluster.read_text()
    cluster.write_text(text.replace('/tables"\n        # a meta', '/warehouse"\n        # a meta'))
    with pytest.raises(
        UsageError, match=r"warehouse.dir of thrift is 's3a://bucket/lake/warehouse'; it is a folder `tab"
    ):
        deployment.place()
    cluster.write_text(text.replace("    cluster:", "    others:"))
    with pytest.raises(UsageError, match=r"thrift goes through a server, and .* needs an output `cluster` beside it"):
        deployment.settings()


def test_a_lake_at_s3_is_written_as_spark_reads_it(cluster, monkeypatch):
    monkeypatch.setenv("HIGHWATER_LAKE", "s3://bucket/lake")
    with pytest.raises(UsageError, match=r"the lake of cluster is at s3://bucket/lake; write it as s3a://"):
        deployment.place()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("highwater:\n  target: [\n", "cannot be read: while parsing"),
        ("highwater:\n  target: embedded\n", "highwater has no outputs"),
        ("highwater: embedded\n", "highwater has no outputs"),
        ("other: {}\n", "has no profile 'highwater'"),
    ],
)
def test_a_profile_that_says_nothing_is_a_sentence(profile, text, words):
    profile.write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", "highwater.cli", "land"], cwd=profile.parents[1], capture_output=True, text=True
    )
    assert ran.returncode == 2 and words in ran.stderr and "Traceback" not in ran.stderr, ran.stderr
    assert ran.stderr.count("\n") == 1, ran.stderr


def test_what_needs_no_spark_starts_none_for_a_lake_at_a_uri(cluster, monkeypatch):
    from highwater.scaffold import check_tables
    from highwater.upkeep import renaming

    monkeypatch.setattr(state, "_elsewhere", [])
    assert renaming.under_way() is None
    assert list(check_tables._check_tables("orders", cluster, 1, [])) == []


def test_files_by_spark_are_what_files_here_are(workshop, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "lake", lambda: tmp_path / "here")
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    for files in (state._Here(), HadoopFiles(workshop.spark, f"file://{tmp_path}/there")):
        assert files.read("a/b.json") is None and files.names("a") == []
        for content in (b"first", "é second".encode()):
            files.write("a/b.json", content)
            assert files.read("a/b.json") == content
        assert files.names("a") == ["b.json"] and files.state_of("a/b.json")[0] == 9
        assert abs(files.state_of("a/b.json")[1] / 1e9 - time.time()) < 120
        files.remove("a/b.json")
        files.write("a/c/d.json", b"")
        files.remove("a")
        files.remove("nothing")
        assert files.read("a/c/d.json") is None and files.names("") == []


@pytest.mark.parametrize("words", [["--target", "cluster"], ["--target=cluster"], ["-t", "cluster"], ["-tcluster"]])
def test_what_is_typed_for_dbt_chooses(profile, monkeypatch, words):
    monkeypatch.setenv("HIGHWATER_TARGET", "embedded")
    deployment.take_target(["--select", "orders", *words])
    assert os.environ["HIGHWATER_TARGET"] == "cluster"


def test_what_is_missing_is_named(cluster, monkeypatch):
    monkeypatch.delenv("HIGHWATER_METASTORE_PASSWORD")
    with pytest.raises(UsageError, match="ConnectionPassword of cluster needs the environment variable HIGHWATER_META"):
        deployment.settings()
    monkeypatch.setenv("HIGHWATER_TARGET", "nowhere")
    with pytest.raises(
        UsageError, match="no output 'nowhere', and HIGHWATER_TARGET names one of: embedded, cluster, t"
    ):
        deployment.settings()


def test_a_store_that_loses_commits_is_refused(cluster):
    leases.require_safe_store()
    text = cluster.read_text()
    for store in (leases.SAFE_STORES[1], "io.delta.storage.S3SingleDriverLogStore", None):
        line = f"\n        spark.delta.logStore.s3a.impl: {store}" if store else ""
        cluster.write_text(re.sub(r"\n *spark.delta.logStore.*", line, text))
        if store in leases.SAFE_STORES:
            leases.require_safe_store()
            continue
        with pytest.raises(UsageError, match=r"two writers lose commits of each other\. Set spark.delta.logStore"):
            leases.require_safe_store()


def test_a_secret_is_on_no_command_line_of_java(monkeypatch):
    given = []
    monkeypatch.setattr("pyspark.SparkConf", Settings)
    monkeypatch.setattr("pyspark.SparkContext._ensure_initialized", lambda conf: given.extend(conf.pairs))
    shown = {"spark.driver.memory": "1g", "spark.hadoop.javax.jdo.option.ConnectionUserName": "hive"}
    secret = {
        "spark.hadoop.javax.jdo.option.ConnectionPassword": "a secret",
        "spark.hadoop.fs.s3a.secret.key": "a secret",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY": "a secret",
    }
    _start_java_without_secrets(shown | secret)
    assert dict(given) == shown


class Settings:
    """What is given to Java; the real one asks a Java that is there."""

    def __init__(self, loadDefaults):
        assert not loadDefaults

    def setAll(self, pairs):
        self.pairs = pairs
        return self


@pytest.fixture
def shared(workshop, monkeypatch):
    """The lake of the tests as one that many machines write."""
    for module in (leases, deployment, project):
        monkeypatch.setattr(module, "is_embedded", lambda: False)
    monkeypatch.setattr(leases, "session", lambda: workshop.spark)
    return workshop


def test_one_command_has_the_lease_and_the_next_one_is_told(shared, monkeypatch):
    spark = shared.spark
    assert leases.step_under_way(spark) is None
    with leases.lease("highwater build"):
        own = rf"process {os.getpid()} on {socket.gethostname()}, since [\d :-]+ UTC"
        assert re.fullmatch(rf"highwater build is running \({own}\)", leases.step_under_way(spark))
        assert project.holds_lease()
        in_use = rf"the lake .* is in use by `highwater build` \({own}\)\. Wait for it to end; if it was killed, "
        with pytest.raises(UsageError, match=in_use), leases.lease("highwater land"):
            pass
    assert leases.step_under_way(spark) is None and not project.holds_lease()
    with leases.lease("highwater land"):
        pass


def test_the_lease_of_a_lake_with_a_hostile_name(shared, monkeypatch, tmp_path):
    folder = tmp_path / "o'brien's `lake` \"x\" ünï % 100"
    folder.mkdir()
    monkeypatch.setenv("HIGHWATER_LAKE", str(folder))
    with leases.lease("highwater `build`'; drop table x --"):
        assert leases.step_under_way(shared.spark).startswith("highwater `build`; drop table x -- is running")
    assert leases.step_under_way(shared.spark) is None
    assert (folder / "lease.delta/_delta_log").is_dir()


def test_recover_begins_where_others_refuse(shared, monkeypatch):
    def refuse(spark):
        raise UsageError("To register them from their folders: highwater recover")

    monkeypatch.setattr(leases, "require_known_tables", refuse)
    with pytest.raises(UsageError, match="highwater recover"), leases.lease("highwater build"):
        pass
    with leases.lease("highwater recover", recovering=True):
        assert "highwater recover is running" in leases.step_under_way(shared.spark)


def test_of_two_at_once_one_has_the_lease(shared):
    spark = shared.spark
    if not leases.is_table(leases.LEASE):
        leases._create(spark)
    for _ in range(3):
        taken, meet = [], threading.Barrier(2)

        def take(holder, taken=taken, meet=meet):
            meet.wait()
            try:
                leases._take(spark, holder, "highwater land")
                taken.append(holder)
            except UsageError:
                pass

        threads = [threading.Thread(target=take, args=(holder,)) for holder in ("one", "other")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == 1
        leases._update(spark, "holder = cast(null as string)", "true")


def test_a_killed_holder_loses_the_lease_and_one_that_lives_keeps_it(shared, monkeypatch):
    spark = shared.spark
    leases._take(spark, "killed", "highwater compact")
    assert "is running" in leases.step_under_way(spark)
    with monkeypatch.context() as patch:
        patch.setattr(leases, "HELD_FOR", timedelta())
        killed = r"highwater compact of [\d :-]+ UTC was killed; run it again"
        assert re.fullmatch(killed, leases.step_under_way(spark))
        leases._take(spark, "next", "highwater land")
    leases._update(spark, "holder = cast(null as string)", "true")
    monkeypatch.setattr(leases, "RENEWED_EVERY", timedelta(seconds=1))
    with leases.lease("highwater build"):
        first, deadline = leases._holder(spark).renewed_at, time.monotonic() + 60
        while leases._holder(spark).renewed_at == first:
            assert time.monotonic() < deadline, "it is not renewed"
            time.sleep(0.5)


def test_a_doctor_tries_each_part(workshop, monkeypatch, tmp_path):
    found = {each.part: each for each in examine()}
    assert [part for part, each in found.items() if not each.is_well] == []
    assert list(found) == [
        "profile", "java", "jars", "log store", "metastore", "spark", "executors", "lake", "landing"
    ]  # fmt: skip
    assert not list(project.lake().glob("doctor-*"))
    monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path / "gone"))
    monkeypatch.setattr("highwater.status.doctor.MODULES", ("pyarrow", "no_such_module"))
    wrong = {each.part: each.words for each in examine() if not each.is_well}
    assert "is not there. HIGHWATER_LANDING says where feeds are delivered" in wrong["landing"]
    # a task has the module as it is where it runs
    assert wrong.keys() <= {"landing", "executors"}


def test_a_doctor_stops_where_nothing_behind_can_work(cluster, monkeypatch):
    monkeypatch.delenv("HIGHWATER_MASTER")
    (found,) = examine()
    assert not found.is_well and "needs the environment variable HIGHWATER_MASTER" in found.words


def test_the_command_ends_with_1_where_something_is_wrong(monkeypatch, capsys):
    from highwater.commands.project import doctor
    from highwater.status import doctor as examining

    found = [examining.Finding("java", True, "new enough"), examining.Finding("lake", False, "cannot be written to")]
    monkeypatch.setattr(examining, "examine", lambda makes_schema: iter(found))
    with pytest.raises(CheckError, match="lake: see above"):
        doctor.callback(False)
    assert capsys.readouterr().out == "ok     java       new enough\nWRONG  lake       cannot be written to\n"
