"""`highwater doctor`: try the chosen deployment, part by part, before anything is built on it.

Each part is tried for real: executors write a table and read it, a file is written where the lake is.
"""

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from highwater.landing.feed_folders import is_missing
from highwater.landing.listing import filesystem
from highwater.runtime import deployment, faults
from highwater.runtime.deployment import is_embedded, place, target_name
from highwater.runtime.errors import UsageError
from highwater.runtime.java import java_command, require_java
from highwater.runtime.printable import counted, printable
from highwater.runtime.project import landing_root, stored
from highwater.runtime.state import files
from highwater.spark import jars, metastore
from highwater.spark.lease import require_safe_store
from highwater.spark.spark import JARS, fetch_jars, session

SECONDS_OF_CLOCKS = 60
# what a task of the landing needs where it runs
MODULES = ("pyarrow", "pandas", "orjson", "fastavro", "numpy")


@dataclass(frozen=True)
class Finding:
    """What a part of a deployment was found to be.

    Attributes:
        part: its name. is_well: it works. words: how it is, or what is wrong and what to do.
    """

    part: str
    is_well: bool
    words: str


def examine(makes_schema: bool = False) -> Iterator[Finding]:
    """Yield what is found of each part of the chosen deployment; what needs one that does not work is not tried.

    Arguments:
        makes_schema: of a metastore that has none.
    """
    parts: list[tuple[str, Callable[[], str]]] = [
        ("profile", _profile),
        ("java", _java),
        ("jars", _jars),
        ("log store", _log_store),
        ("metastore", lambda: _metastore(makes_schema)),
        ("spark", _spark),
        ("executors", _executors),
        ("lake", _lake),
        ("landing", _landing),
    ]
    for part, examined in parts:
        try:
            found = Finding(part, True, examined())
        except UsageError as error:
            found = Finding(part, False, faults.masked(str(error)))
        except Exception as error:
            found = Finding(part, False, faults.sentence_of(error, f"trying {part}"))
        yield found
        if not found.is_well and part not in ("log store", "landing", "executors"):
            return


def _profile() -> str:
    return f"the target is {target_name()}, the lake is at {printable(place())}"


def _java() -> str:
    require_java()
    return f"{java_command()} is new enough"


def _jars() -> str:
    if not JARS.exists():
        fetch_jars()  # not in this process, whose Spark would lack them
    if wrong := jars.differences(JARS):
        raise UsageError(f"{JARS}: {'; '.join(wrong)}. To fetch them anew: rm -r {JARS} && highwater install")
    return f"{counted(len(list(JARS.glob('*.jar'))), 'jar')} in {JARS}, each with the SHA-256 that is pinned"


def _log_store() -> str:
    require_safe_store()
    if not place().startswith("s3a:"):
        return "Delta's own"
    return deployment.settings()["spark.delta.logStore.s3a.impl"]


def _metastore(makes_schema: bool) -> str:
    settings = deployment.settings()
    if is_embedded():
        return "in the folder of the lake, for one process at a time"
    if metastore.URL not in settings:
        return f"a service: {settings.get('spark.hadoop.hive.metastore.uris', 'as the configuration of Spark says')}"
    found = metastore.state(settings)
    if found.is_reached and not found.has_schema and makes_schema:
        metastore.make_schema(settings)
        found = metastore.state(settings)
    if not found.has_schema:
        to_do = " To make it: highwater doctor --make-schema" if found.is_reached else ""
        raise UsageError(f"{found.sentence}{to_do}")
    return found.sentence


def _spark() -> str:
    began = time.monotonic()
    spark = session()
    return (
        f"Spark {spark.version} by {spark.conf.get('spark.master')}, started in {time.monotonic() - began:.0f} s; "
        f"{counted(spark.sql('show databases').count(), 'database')} in its catalog"
    )


def _executors() -> str:
    spark = session()
    tasks = max(2, spark.sparkContext.defaultParallelism)
    rows = spark.range(0, tasks, 1, tasks).mapInArrow(_of_task, "host string, python string, at double, lacks string")
    asked, found = time.time(), rows.collect()
    if lacking := sorted({row.lacks for row in found if row.lacks}):
        raise UsageError(
            f"Python of executors lacks {', '.join(lacking)}. Install highwater's wheel there, and let PYSPARK_PYTHON "
            "name that Python."
        )
    late = max(abs(row.at - asked) for row in found) - (time.time() - asked)
    if late > SECONDS_OF_CLOCKS:
        raise UsageError(f"clocks of executors are {late:.0f} s away from this one; let them be set by one source.")
    hosts, versions = sorted({row.host for row in found}), sorted({row.python for row in found})
    own = ".".join(map(str, sys.version_info[:2]))
    if versions != [own]:
        raise UsageError(
            f"executors have Python {', '.join(versions)}, and this is {own}; let PYSPARK_PYTHON name one that is "
            f"{own} there."
        )
    return f"{counted(len(hosts), 'host')} ({', '.join(hosts)}) with Python {own} and what reading files needs"


def _of_task(batches):
    import importlib.util
    import socket

    import pyarrow

    lacks = " ".join(name for name in MODULES if importlib.util.find_spec(name) is None)
    for batch in batches:
        count = len(batch)
        yield pyarrow.RecordBatch.from_pydict(
            {
                "host": [socket.gethostname()] * count,
                "python": [".".join(map(str, sys.version_info[:2]))] * count,
                "at": [time.time()] * count,
                "lacks": [lacks] * count,
            }
        )


def _lake() -> str:
    spark, name = session(), f"doctor-{uuid.uuid4().hex[:8]}"
    began, wrote = time.time(), f"{name}/written"
    try:
        files().write(wrote, b"by highwater doctor")
        _, modified = files().state_of(wrote)
        away = max(began - modified / 1e9, modified / 1e9 - time.time())
        if away > SECONDS_OF_CLOCKS:
            raise UsageError(
                f"the clock of what has the lake is {away:.0f} s away from this one; set one of them right."
            )
        table = stored(f"{name}/table")
        for _ in range(2):
            spark.range(0, 100, 1, 2).write.format("delta").mode("append").save(table)
        if (rows := spark.read.format("delta").load(table).count()) != 200:
            raise UsageError(f"of 200 rows that executors wrote to {table}, {rows} are there; do all see one folder?")
    finally:
        files().remove(name)
    return f"{printable(place())} is written to and read by driver and executors, in {time.time() - began:.0f} s"


def _landing() -> str:
    root = landing_root()
    if is_missing(root):
        raise UsageError(
            f"the landing folder {printable(faults.masked(root))} is not there. HIGHWATER_LANDING says where feeds are "
            "delivered."
        )
    rows = session().range(0, 2, 1, 2).mapInArrow(_listing(root), "trouble string").collect()
    if trouble := next((row.trouble for row in rows if row.trouble), None):
        raise UsageError(
            f"{printable(faults.masked(root))} is seen here, and not by executors: {trouble}. Give them the keys that "
            "this process has (spark.executorEnv.AWS_ACCESS_KEY_ID for example, or a role of their hosts)."
        )
    return f"{printable(faults.masked(root))} is seen by driver and executors"


def _listing(root: str):
    def listing(batches):
        import pyarrow

        for batch in batches:
            try:
                system, path = filesystem(root)
                system.get_file_info(path)
                is_there = os.path.exists(path) if "://" not in root else True
                trouble = "" if is_there else f"{path} is not there"
            except Exception as error:
                trouble = str(error)[:300]
            yield pyarrow.RecordBatch.from_pydict({"trouble": [trouble] * len(batch)})

    return listing
