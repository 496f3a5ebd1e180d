"""Views of any length: the embedded metastore takes them, a new one and one that was there, whatever is killed."""

import shutil
import subprocess
import sys

import pytest
from repository import PROJECT
from workshop import environment_of_a_user

LONG = 300_000
# what the views of a lake say before and after: letters of any script, and a length that Derby takes as it comes
EARLIER = "x" * 30_000 + "größe名前"

START = """
import os, signal, sys
from pathlib import Path
from highwater.spark import spark as start
"""
# a lake whose metastore is as Hive makes it
STOCK = f"""
start.take_long_views = lambda *_: None
spark = start.session(spark__master="local[1]")
spark.sql("create view lake.earlier as select '{EARLIER}' as text")
try:
    spark.sql("create view lake.long as select '" + "x" * {LONG} + "' as text")
except Exception as error:
    print("refused:", str(error).splitlines()[0][:200])
"""
# no Spark, only its Java; killed before the statement of this number
KILLED = """
from pyspark.java_gateway import launch_gateway
gateway = launch_gateway()
changes = start.changes_for_long_views

def killed_changes(types):
    for number, change in enumerate(changes(types)):
        if number == int(sys.argv[2]):
            os.kill(gateway.proc.pid, signal.SIGKILL)
            gateway.proc.wait()
        yield change
    os.kill(gateway.proc.pid, signal.SIGKILL)
    gateway.proc.wait()

start.changes_for_long_views = killed_changes
start.take_long_views(gateway.jvm, f"jdbc:derby:;databaseName={sys.argv[1]}")
"""
# what the next start finds and leaves
COMPLETED = """
from pyspark.java_gateway import launch_gateway
gateway = launch_gateway()
for folder in sys.argv[1:]:
    url = f"jdbc:derby:;databaseName={folder}"
    types = lambda: start._types_of_texts(gateway.jvm.java.sql.DriverManager.getConnection(url))
    before = types()
    start.take_long_views(gateway.jvm, url)
    rows = gateway.jvm.java.sql.DriverManager.getConnection(url).createStatement().executeQuery(
        "select VIEW_EXPANDED_TEXT from APP.TBLS where TBL_NAME = 'earlier'")
    assert rows.next()
    text = rows.getString(1)
    print(*before.values(), *types().values(), len(text), text[-16:])
"""
USED = f"""
spark = start.session(spark__master="local[1]")
spark.sql("create view lake.long as select '" + "x" * {LONG} + "größe名前' as text")
spark.sql("alter view lake.long as select '" + "y" * {LONG} + "größe名前' as text")
print(spark.sql("show views in lake").count())
"""
READ = "select length(text) as length, left(text, 1) as first, right(text, 7) as last from "


def python(lake, *arguments) -> subprocess.CompletedProcess:
    """Run Python in a process of its own, on this lake."""
    settings = environment_of_a_user() | {"HIGHWATER_LAKE": str(lake)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=PROJECT, env=settings, capture_output=True, text=True, timeout=300)


def run(script: str, lake, *arguments) -> list[str]:
    """Return the lines that a script prints."""
    return python(lake, "-c", START + script, *arguments).stdout.splitlines()


def query(lake, sql: str) -> str:
    """Ask a lake by the command, which reads a copy of its metastore."""
    answer = python(lake, "-m", "highwater.cli", "query", sql, "--format", "csv")
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()[-1]


def test_a_new_lake_takes_long_views(workshop):
    for text in ("x", "y"):
        verb = "create" if text == "x" else "alter"
        workshop.spark.sql(f"{verb} view lake.long as select '{text * LONG}größe名前' as text")
    assert workshop.rows(READ + "lake.long") == [(LONG + 7, "y", "größe名前")]
    workshop.spark.sql("drop view lake.long")


@pytest.mark.soak
def test_a_lake_that_was_there_takes_them_whatever_was_killed(tmp_path):
    """Its own views stay as they are. As Hive makes it, a metastore refuses: the test would see it."""
    lake = tmp_path / "lake"
    assert [line[:8] for line in run(STOCK, lake)] == ["refused:"]
    copies = []
    for killed_before in range(9):
        copies.append(tmp_path / str(killed_before))
        shutil.copytree(lake / "metastore", copies[-1])
        assert python(lake, "-c", START + KILLED, copies[-1], killed_before).returncode != 0
    found = run(COMPLETED, lake, *copies)
    assert found == [f"LONG VARCHAR LONG VARCHAR CLOB CLOB {len(EARLIER) + 17} größe名前' as text"] * 9
    shutil.rmtree(lake / "metastore")
    shutil.copytree(copies[3], lake / "metastore")
    assert query(lake, READ + "earlier") == f"{len(EARLIER)},x,größe名前"
    assert run(USED, lake) == ["2"]
    assert query(lake, READ + "long") == f"{LONG + 7},y,größe名前"
    assert query(lake, READ + "earlier") == f"{len(EARLIER)},x,größe名前"
