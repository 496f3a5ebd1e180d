"""Real processes, really killed: run again, and nothing is lost or doubled. Readers beside a writer."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from repository import PROJECT
from workshop import copy_project

HIGHWATER = [sys.executable, "-m", "highwater.cli"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with one example: a build of all of them takes six minutes, and here it is built dozens of times."""
    folder = tmp_path_factory.mktemp("killed") / "project"
    copy_project(PROJECT, folder, ("user1",))
    return folder


def environment(project, tmp_path):
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("HIGHWATER_", "DBT_", "SPARK_"))
    }
    return inherited | {
        "HIGHWATER_LAKE": str(tmp_path / "lake"),
        "HIGHWATER_LANDING": str(project / "landing"),
        "HIGHWATER_EXPORTS": str(project / "exports"),
        "DBT_TARGET_PATH": str(tmp_path / "target"),
        "DBT_LOG_PATH": str(tmp_path),
    }


def ask(project, tmp_path, sql):
    answer = subprocess.run(
        [*HIGHWATER, "query", sql, "--format", "json"],
        cwd=project,
        env=environment(project, tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    return [list(json.loads(line).values()) for line in answer.stdout.splitlines()]


def build(project, tmp_path, killed_after=None, waiting_for="", settings=None):
    """Run `highwater build`; kill it so many seconds after its output holds a word. Return whether it was killed."""
    process = subprocess.Popen(
        [*HIGHWATER, "build", "--verbose"],
        cwd=project,
        env=settings or environment(project, tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output = ""
    if killed_after is not None:
        for line in process.stdout:
            output += line
            if waiting_for in line:
                break
        time.sleep(killed_after)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
    output += process.stdout.read()
    assert process.wait() == 0, output
    return False


def is_whole(project, tmp_path):
    (counts,) = ask(
        project,
        tmp_path,
        "select (select count(*) from table1) as rows, "
        "(select count(*) from raw.datastream_user1 where entry = 'record') as records, "
        "(select count(*) from table1_changes) as changes, "
        "(select sum(read) from ledger where table_name = 'table1') as read, "
        "(select sum(applied + superseded + duplicate + rejected) from ledger where table_name = 'table1') as told, "
        "(select count(*) from customers) as customers, "
        "(select count(*) from customers_history) as versions, "
        "(select count(*) from customers_history where is_current) as current_versions, "
        "(select count(*) from ledger where table_name in ('table1', 'customers')) as batches",
    )
    assert counts == [188, 1027, 1000, 1000, 1000, 10, 22, 10, 2]


@pytest.mark.soak
def test_a_landing_that_is_killed(project, tmp_path):
    """Killed while its tasks write: nothing is there; run again: everything, once."""
    folder = tmp_path / "landing/datastream_user1/table1"
    folder.mkdir(parents=True)
    for number in range(4):
        (folder / f"{number}.json").write_text('{"COL1": "k"}\n' * 100_000)
    settings = environment(project, tmp_path) | {"HIGHWATER_LANDING": str(tmp_path / "landing")}
    command = [*HIGHWATER, "land", "datastream_user1"]
    process = subprocess.Popen(command, cwd=project, env=settings, start_new_session=True)
    written = tmp_path / "lake/tables/raw.db/datastream_user1/entry=record"
    while not written.exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not list((written.parent / "_delta_log").glob("*1.json"))  # nothing was committed
    again = subprocess.run(command, cwd=project, env=settings, capture_output=True, text=True)
    assert "datastream_user1: 4 files, 400,000 records" in again.stdout, again.stderr
    commits = sorted((written.parent / "_delta_log").glob("*.json"))
    added = [json.loads(line).get("add") for commit in commits for line in commit.read_text().splitlines()]
    rows = {entry: 0 for entry in ("record", "file")}
    for add in filter(None, added):
        rows[add["partitionValues"]["entry"]] += json.loads(add["stats"])["numRecords"]
    assert rows == {"record": 400_000, "file": 4}


@pytest.mark.soak
def test_a_build_that_is_killed_while_models_are_built(project, tmp_path):
    assert build(
        project, tmp_path, killed_after=1, waiting_for="OK created sql incremental model lake.customers_changes"
    )
    build(project, tmp_path)
    is_whole(project, tmp_path)


@pytest.mark.soak
def test_a_field_that_a_killed_build_took_in_is_told_by_the_next_one(project, tmp_path):
    """Said once: by the build that comes to its end, though nothing new has landed for it."""
    (tmp_path / "landing").mkdir()
    shutil.copytree(project / "landing/datastream_user1", tmp_path / "landing/datastream_user1")
    record = {"CUSTOMER_ID": 1, "TIER": "gold", "datastream_metadata": {"change_type": "INSERT"}}
    (tmp_path / "landing/datastream_user1/customers/tier.json").write_text(json.dumps(record) + "\n")
    settings = environment(project, tmp_path) | {"HIGHWATER_LANDING": str(tmp_path / "landing")}
    applied = "OK created sql incremental model lake.customers_changes"
    assert build(project, tmp_path, killed_after=0, waiting_for=applied, settings=settings)
    told = "datastream_user1/customers/tier.json: the field TIER is not declared (1 record, the first in line 1)."
    for times in (1, 0):
        again = subprocess.run([*HIGHWATER, "build"], cwd=project, env=settings, capture_output=True, text=True)
        assert again.returncode == 0 and again.stderr.count(told) == times, again.stdout + again.stderr


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
def test_a_build_that_is_killed_anywhere_several_times(project, tmp_path, seed):
    picks = random.Random(seed)
    for _ in range(3):
        build(project, tmp_path, killed_after=picks.uniform(0, 90))
    build(project, tmp_path)
    is_whole(project, tmp_path)


@pytest.mark.soak
def test_a_file_of_a_gigabyte_lands_in_bounded_memory(project, tmp_path):
    folder = tmp_path / "landing/datastream_user1/table1"
    folder.mkdir(parents=True)
    line = json.dumps({"COL1": "k", "COL2": "v" * 200, "datastream_metadata": {"change_type": "INSERT"}}) + "\n"
    with open(folder / "big.json", "w") as file:
        for _ in range(1024**3 // len(line) // 1000):
            file.write(line * 1000)
    process = subprocess.Popen(
        [*HIGHWATER, "land", "datastream_user1"],
        cwd=project,
        env=environment(project, tmp_path) | {"HIGHWATER_LANDING": str(tmp_path / "landing")},
    )
    most = 0
    while process.poll() is None:
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                text = status.read_text()
                if "pyspark.daemon" in (status.parent / "cmdline").read_text():
                    most = max(most, int(text.split("VmRSS:")[1].split()[0]))
            except (OSError, IndexError):
                continue
        time.sleep(0.5)
    assert process.returncode == 0
    assert 0 < most < 1_000_000  # kilobytes


@pytest.mark.soak
def test_a_reader_in_another_process_asks_while_the_lake_is_in_use(workshop):
    """This process has the metastore open; a second one that wants to write is refused, a reader is not."""
    settings = {**os.environ, "SPARK_CONF_DIR": str(workshop.folder / "conf")}
    answer = subprocess.run(
        [*HIGHWATER, "query", "select count(*) as n from table1", "--format", "csv"],
        cwd=workshop.folder, env=settings, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["n", "188"]
