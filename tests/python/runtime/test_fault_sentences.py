"""Faults of the system, Java, Spark and Delta as sentences: what was done, on what, why, what to do; no traces."""

import errno
import logging
import os
import signal
import socket
import socketserver
import subprocess
import sys
import textwrap
import time

import pytest
from highwater.runtime import faults
from repository import PROJECT

TASK_FAILED = """\
An error occurred while calling o123.saveAsTable.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to \
file:/data/.lake/tables/raw.db/datastream_shop. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(QueryExecutionErrors.scala:774)
\tat org.apache.spark.sql.delta.files.DeltaFileFormatWriter$.executeTask(DeltaFileFormatWriter.scala:480)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: {reason}
\tat org.apache.hadoop.fs.RawLocalFileSystem$LocalFSFileOutputStream.write(RawLocalFileSystem.java:380)
\t... 31 more
Caused by: java.io.IOException: {reason}
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 40 more
"""


class Py4JJavaError(Exception):
    """What Py4J raises, without a Java: its text is Java's own."""


@pytest.fixture
def lake(tmp_path, monkeypatch):
    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path / "lake"))
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


def is_one_sentence(told: str):
    assert "\n" not in told and "Traceback" not in told and "\tat " not in told, told


@pytest.mark.parametrize(
    ("reason", "to_do"),
    [
        ("No space left on device", "Make room on its disk"),
        ("Disk quota exceeded", "Make room on its disk"),
        ("Read-only file system", "Make the disk writable"),
        ("Permission denied", "the right to read and write"),
        ("Input/output error", "See whether the disk is sound"),
    ],
)
def test_the_root_cause_of_a_task_that_failed(lake, reason, to_do):
    error = Py4JJavaError(TASK_FAILED.format(reason=reason))
    error.doing = "landing datastream_shop"
    told = faults.sentence_of(error)
    is_one_sentence(told)
    assert told.startswith(f"landing datastream_shop failed on raw.datastream_shop: {reason}"), told
    assert to_do in told and told.endswith(f"The whole trace is in {lake}/highwater.log.")
    assert "RawLocalFileSystem.java:380" in (lake / "highwater.log").read_text()


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file:/l/tables/raw.db/f/x.parquet.",
         ["on raw.f", "FILE_NOT_EXIST", "damaged or gone", "highwater rebuild"]),
        ("[DELTA_VERSIONS_NOT_CONTIGUOUS] Versions (Vector(0, 2)) are not contiguous.",
         ["VERSIONS_NOT_CONTIGUOUS", "damaged or gone"]),
        ("[DELTA_TABLE_NOT_FOUND] Delta table `raw`.`shop` doesn't exist.", ["on raw.shop", "doesn't exist"]),
        ("[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] Cannot create table ('`raw`.`shop`'). The associated location "
         "('file:/l/tables/raw.db/shop') is not empty and also not a Delta table.", ["on raw.shop", "metastore"]),
        ("io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict "
         "detected. A concurrent WRITE added data", ["another command has written the same table", "Run it again"]),
        ("[USER_RAISED_EXCEPTION] orders_changes: another build has written log_batch 4 meanwhile SQLSTATE: P0001",
         ["another command has written the same table", "Run it again"]),
        ("[TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create table or view `lake`.`orders_changes`; it already exists.",
         ["another command has written the same table", "Run it again"]),
        ("java.lang.OutOfMemoryError: Java heap space", ["Java ran out of memory", "spark.driver.memory"]),
        ("something nobody has seen", ["something nobody has seen", "the trace shows where"]),
    ],
)  # fmt: skip
def test_what_delta_and_java_say(lake, message, words):
    trace = f"An error occurred while calling o1.sql.\n: org.apache.SparkException: {message}\n\tat a.b.C.d(E.scala:1)"
    told = faults.sentence_of(Py4JJavaError(trace), "highwater land")
    is_one_sentence(told)
    assert told.startswith("highwater land failed")
    for word in words:
        assert word in told, told


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.ENOENT, errno.ENOTDIR])
def test_errors_of_the_system_name_their_file(lake, number):
    told = faults.sentence_of(OSError(number, os.strerror(number), "/some\n\x1b[31mwhere"), "highwater build")
    is_one_sentence(told)
    assert "on /some" in told and os.strerror(number) in told and "\x1b" not in told


def test_an_error_that_has_no_words(lake):
    class Mute(Exception):
        def __str__(self):
            raise ConnectionRefusedError("Java is gone")

    is_one_sentence(faults.sentence_of(Mute(), "highwater land"))
    is_one_sentence(faults.sentence_of(KeyError(), "highwater land"))


def test_secrets_reach_neither_the_sentence_nor_the_log(lake, monkeypatch):
    monkeypatch.setenv("HIGHWATER_STORE_PASSWORD", "Geheim/123")
    monkeypatch.setenv("MY_API_TOKEN", "t0k3n-value")
    monkeypatch.setenv("PWD", str(lake))
    monkeypatch.setenv("MY_PWD", "Pw5/x")
    words = (
        "login with Geheim/123 or Geheim%2F123, t0k3n-value, jdbc:postgresql://h/d?user=u&PASSWORD=Pw1&pass%77ord=Pw2&"
        f"sslpassword=Pw3;x=y s3://id:Pw4@bucket Pw5/x {lake}/tables"
    )
    told = faults.sentence_of(RuntimeError(words), "highwater extract")
    logged = (lake / "highwater.log").read_text()
    for secret in ("Geheim", "t0k3n", "Pw1", "Pw2", "Pw3", "Pw4", "Pw5"):
        assert secret not in told and secret not in logged
    assert "user=u" in told and "x=y" in told and "login with ***" in logged
    assert f"{lake}/tables" in told  # the folder of a shell is no secret, though it is called PWD


def test_the_log_is_rotated_and_has_another_place_when_the_lake_has_none(lake, monkeypatch, tmp_path):
    monkeypatch.setattr(faults, "LOG_BYTES", 1000)
    for _ in range(20):
        assert faults.write_down("test", "x" * 400) == lake / "highwater.log"
    assert {path.name for path in lake.iterdir()} == {"highwater.log", "highwater.log.1", "highwater.log.2"}
    assert sum(path.stat().st_size for path in lake.iterdir()) < 4000
    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path / "none"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = faults.write_down("test", "trace")
    assert path.parent == tmp_path and "trace" in path.read_text() and not (tmp_path / "none").exists()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    assert "Its trace could be written nowhere" in faults.sentence_of(KeyError("x"))


def test_what_dbt_prints_has_the_reason_in_place_of_the_trace():
    said = "Database Error in model orders (models/orders.sql)\n  " + TASK_FAILED.format(
        reason="No space left on device"
    ).replace("\n", "\n  ")
    told = faults.without_trace(said)
    assert told.splitlines()[0] == "Database Error in model orders (models/orders.sql)"
    assert "No space left on device" in told and len(told.splitlines()) < 4 and "scala:" not in told
    plain = "Compilation Error in model orders\n  it depends on what is not there\n  at line 3"
    assert faults.without_trace(plain) == plain


def test_what_libraries_log_goes_to_the_log(lake, capsys):
    handlers, handle_error = list(logging.getLogger().handlers), socketserver.BaseServer.handle_error
    try:
        faults.keep_the_terminal_clean()
        logging.getLogger("py4j.java_gateway").error("Exception while sending command.")
        with socketserver.TCPServer(("127.0.0.1", 0), None) as server, socket.create_connection(server.server_address):
            server.handle_request()  # which cannot, as PySpark's cannot when Java has ended
    finally:
        logging.getLogger().handlers[:] = handlers
        socketserver.BaseServer.handle_error = handle_error
    assert "a server failed\nTraceback" in (lake / "highwater.log").read_text()
    assert capsys.readouterr().err == ""
    assert "py4j.java_gateway says\nException while sending" in (lake / "highwater.log").read_text()


def leaving(tmp_path, code: str, **settings) -> subprocess.Popen:
    """Start a process that does this and leaves with the sentence."""
    script = (
        "from highwater.runtime.endings import *\nfrom highwater.runtime.errors import *\ndef command():\n"
        + textwrap.indent(textwrap.dedent(code), "    ")
    )
    return subprocess.Popen(
        [sys.executable, "-c", f"{script}\nleave_with_the_sentence(command)"],
        env={**os.environ, "HIGHWATER_LAKE": str(tmp_path), **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("raise UsageError('wrong.')", 2, "wrong."),
        ("raise CheckError('failed.')", 1, "failed."),
        ("open('/nowhere/x')", 2, "No such file or directory"),
        ("{}['x']", 2, "KeyError: 'x'"),
        ("sys.exit(3)", 3, ""),
        ("pass", 0, ""),
        ("import atexit; atexit.register(lambda: 1 / 0); raise UsageError('wrong.')", 2, "wrong."),
    ],
)
def test_each_ending_has_its_code_and_one_line(tmp_path, code, status, words):
    process = leaving(tmp_path, code)
    _, told = process.communicate(timeout=60)
    assert process.returncode == status, told
    assert words in told and len(told.splitlines()) == bool(words), told


@pytest.mark.parametrize(
    "code",
    [
        "time.sleep(60)",
        "try: time.sleep(60)\nfinally: raise ValueError('of Java')",
        "try: time.sleep(60)\nexcept KeyboardInterrupt: pass",
        "try: time.sleep(60)\nexcept KeyboardInterrupt: sys.exit(1)",
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 2); time.sleep(60)",
        # what dbt and Java say of being stopped
        "try: time.sleep(60)\nfinally: print('CANCEL', flush=True); os.system('echo Traceback >&2')",
    ],
)
@pytest.mark.parametrize(("number", "is_writing"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_signal_prints_one_line(tmp_path, number, code, is_writing):
    """What it was doing is to be finished by whoever held the lease; a query has left nothing."""
    begun = f"import time, os\nprint('there', flush=True)\n{code}"
    writing = "from highwater.runtime.project import lease\nwith lease('highwater build'):\n"
    process = leaving(tmp_path, writing + textwrap.indent(begun, "    ") if is_writing else begun)
    assert process.stdout.readline() == "there\n"
    time.sleep(0.05)
    process.send_signal(number)
    printed, told = process.communicate(timeout=60)
    assert (process.returncode, printed) == (128 + number, "")
    again = "; run it again to finish what it was doing"
    assert told == f"highwater: stopped{again if is_writing else ''}.\n"


def test_a_second_signal_leaves_at_once(tmp_path):
    process = leaving(tmp_path, "import time\nprint('there', flush=True)\ntry: time.sleep(60)\nfinally: time.sleep(60)")
    assert process.stdout.readline() == "there\n"
    for _ in range(2):
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    assert process.wait(5) == 130


def test_commands_know_their_name_and_a_closed_pipe(lake, monkeypatch):
    from click.testing import CliRunner
    from highwater import cli
    from highwater.commands import build

    monkeypatch.chdir(PROJECT)

    def failing(error):
        def fail(*_):
            raise error

        return fail

    monkeypatch.setattr(build, "feeds_named", failing(OSError(errno.EIO, "Input/output error", "x.yml")))
    error = CliRunner().invoke(cli.commands, ["land"]).exception
    assert faults.sentence_of(error).startswith("highwater land failed on x.yml: ")
    monkeypatch.setattr(build, "feeds_named", failing(BrokenPipeError()))
    error = CliRunner().invoke(cli.commands, ["land"]).exception
    assert str(error) == "nobody reads the output any more." and error.exit_code == 2


HALVES = [b"", b"{", b'{"command": "highwater', b"[1]", b"1", b'"x"', b"null", b"\xff\xfe", b"{}", b"\0" * 100]


@pytest.mark.parametrize("half", HALVES)
def test_half_a_lease_is_no_trace(lake, half):
    import fcntl

    from highwater.runtime.errors import UsageError
    from highwater.runtime.project import lease, step_under_way

    (lake / "lease").write_bytes(half)
    assert step_under_way() is None or "a command of an unknown time UTC was killed" in step_under_way()
    with open(lake / "lease", "ab") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert step_under_way() is None or "a command is running" in step_under_way()
        with pytest.raises(UsageError, match="is in use by `another command`"), lease("highwater land"):
            pass
    with lease("highwater land"):
        assert step_under_way().startswith("highwater land is running")
    assert (lake / "lease").read_bytes() == b""


@pytest.mark.parametrize(
    "half", [*HALVES, b'{"fingerprint": "x", "at": "y"}', b'{"fingerprint": 1, "at": 2, "summary": 3}']
)
def test_half_a_record_of_the_last_build_is_none(lake, half):
    from highwater.builds import last_build

    (lake / "last_build.json").write_bytes(half)
    assert last_build.remembered() == {}
    last_build.remember("mark", {"feed": (3, 30)}, "words", {"table": {"now": 1}})
    assert last_build.other_version(last_build.remembered()) is None
    assert "was by highwater 0.1.0" in last_build.other_version(last_build.remembered() | {"by": "0.1.0"})
    record = last_build.remembered()
    assert (record["fingerprint"], record["summary"], record["landings"]) == ("mark", "words", {"feed": [3, 30]})


def test_a_state_file_is_written_whole_or_not_at_all(lake, monkeypatch):
    from highwater.runtime.project import write_whole

    write_whole(lake / "state", "before")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, full)
            with pytest.raises(OSError, match="No space"):
                write_whole(lake / "state", "after")
        assert [path.name for path in lake.iterdir()] == ["state"] and (lake / "state").read_text() == "before"


@pytest.mark.parametrize(
    ("said", "in_log", "words"),
    [
        (
            "Caused by: ERROR XSDB6: Another instance of Derby may have already booted",
            "",
            "another process has the met",
        ),
        (
            "HiveException: Unable to instantiate",
            "java.io.IOException: No space left on device",
            "No space left on dev",
        ),
        (
            "Caused by: ERROR XBM0A: it does not contain the expected 'service.properties' file",
            "",
            "metastore is damaged",
        ),
        (
            "java.lang.NoClassDefFoundError: Could not initialize ManagementFactory$PlatformMBeanFinder",
            "",
            "LC_ALL=C.UTF",
        ),
        (
            "[JAVA_GATEWAY_EXITED]",
            "Error occurred during initialization: Could not reserve enough space",
            "enough memory",
        ),
        ("java.lang.IllegalStateException: so strange", "", "so strange"),
    ],
)
def test_spark_that_does_not_start_says_why(lake, said, in_log, words):
    from highwater.spark.spark import _why_spark_did_not_start

    (lake / "spark.log").write_text("ERROR XSDB6: of yesterday")
    (lake / "derby.log").write_text(in_log)
    start = (lake / "spark.log").stat().st_size
    told = _why_spark_did_not_start(Py4JJavaError(said + "\n\tat a.B.c(D.java:1)"), lake / "spark.log", start)
    is_one_sentence(told)
    assert told.startswith(f"Spark did not start on the lake {lake}: ") and words in told
    assert ("XSDB6" in told or "another process" in told) == ("XSDB6" in said)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "C.UTF-8"),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LANG": "POSIX"}, "C.UTF-8"),
        ({"LC_ALL": "", "LANG": "tr_TR.UTF-8"}, ""),
    ],
)
def test_java_speaks_utf8_where_the_locale_is_bare(monkeypatch, settings, expected):
    from highwater.spark.spark import speak_utf8

    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    speak_utf8()
    assert os.environ.get("LC_ALL", "") == expected
    os.environ.pop("LC_ALL", None)


def test_a_feed_that_fails_keeps_no_other_from_landing_but_a_full_disk_does(lake, monkeypatch, capsys):
    from highwater.builds.landing_report import land_and_tell
    from highwater.catalog.feeds import declared_feeds
    from highwater.landing import landing, landings
    from highwater.runtime.errors import UsageError

    monkeypatch.chdir(PROJECT)
    feeds = dict(list(declared_feeds().items())[:4])
    first, second, third, last = feeds
    errors = {
        first: OSError(errno.EIO, "Input/output error", "/x/part.json"),
        second: UsageError("no position."),
        third: Py4JJavaError("[DELTA_VERSIONS_NOT_CONTIGUOUS] /l/tables/raw.db/third_one/_delta_log"),
    }

    def land(spark, feed):
        if feed.name in errors:
            raise errors[feed.name]
        return landing.Landed(feed.name, files=1, records=2, newest=(7, 70))

    monkeypatch.setattr(landing, "land", land)
    # of one that failed a part may have landed, of which its note tells
    landings.note_landing(feeds[second], (3, 30))
    found = land_and_tell(None, feeds)
    assert found.newest == {first: (0, 0), second: (3, 30), third: (0, 0), last: (7, 70)} and found.changed == []
    failures = found.failures
    assert failures[0].startswith(f"landing {first} failed on /x/part.json: Input/output error.")
    assert failures[1] == "no position."
    assert failures[2].startswith(f"landing {third} failed on raw.third_one: ")
    assert f"{last}: 1 file, 2 records" in capsys.readouterr().out
    errors[first] = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space left"):
        land_and_tell(None, feeds)


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(workshop, monkeypatch):
    import shutil

    from highwater.catalog.feeds import declared_feeds
    from highwater.landing.landing import land
    from highwater.runtime.errors import UsageError
    from highwater.upkeep.rebuild import rebuild, rebuild_from_raw

    raw, merged = "raw.datastream_cases", "lake.table1_merged"
    workshop.land("datastream_cases")
    file = workshop.deliver("datastream_cases.cases", "too-large.json", [{"case_name": "x" * 1000, "k": "1"}])
    before = [workshop.version(table) for table in (raw, merged)]
    usage = shutil.disk_usage(workshop.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=900))
    spark = workshop.spark
    for step, what in [
        (lambda: land(spark, declared_feeds()["datastream_cases"]), "landing datastream_cases"),
        (lambda: rebuild(spark, "table1"), "rebuilding table1"),
        (lambda: rebuild_from_raw(spark, "table1"), "rebuilding table1"),
    ]:
        with pytest.raises(UsageError, match=rf"{what} needs at least 0\.0 MB .* 0\.0 MB are free\. Nothing was done"):
            step()
    assert [workshop.version(table) for table in (raw, merged)] == before
    file.unlink()


def test_a_java_that_is_gone_is_told_with_what_it_went_by(lake, monkeypatch):
    from types import SimpleNamespace

    from py4j.protocol import Py4JNetworkError
    from pyspark.core.context import SparkContext

    process = subprocess.Popen(["sleep", "100"])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    error = Py4JNetworkError("Answer from Java side is empty")
    assert "Java process ended" not in faults.sentence_of(RuntimeError("another"))
    process.kill()
    told = faults.sentence_of(error, "highwater land")
    is_one_sentence(told)
    assert told.startswith("highwater land failed: Spark's Java process ended (killed by signal 9; out of memory?)")
    with pytest.raises(Py4JNetworkError):
        faults.trouble_of_one(error)


def test_a_java_that_cannot_begin_says_so(tmp_path):
    java = tmp_path / "java"
    java.write_text(
        "#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n"
        '[ "$1" = -version ] || { echo "Could not reserve enough space for object heap" >&2; exit 1; }\n'
    )
    java.chmod(0o755)
    (tmp_path / "lake").mkdir()
    settings = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HIGHWATER_LAKE": str(tmp_path / "lake")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HIGHWATER_", "SPARK_"))}
    ended = subprocess.run(
        [sys.executable, "-m", "highwater.cli", "land"],
        cwd=PROJECT, env={**inherited, **settings, "JAVA_HOME": ""}, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    is_one_sentence(ended.stderr.rstrip("\n"))
    assert "Spark did not start on the lake" in ended.stderr and "there is not enough memory for Java" in ended.stderr


def test_what_dbt_prints_passes_through(lake, capsys, monkeypatch):
    from dbt.cli.main import dbtRunner
    from dbt.events.types import MainEncounteredError, MainStackTrace
    from dbt_common.events.functions import fire_event
    from highwater.spark import dbt

    monkeypatch.setenv("HIGHWATER_STORE_PASSWORD", "Geheim/123")
    monkeypatch.setenv("DBT_LOG_PATH", str(lake / "logs"))
    for heard in (lambda _: None, dbt.hear):  # the first time as a control: it is dbt that prints traces
        dbtRunner(callbacks=[heard]).invoke(["list", "--profiles-dir", str(lake), "--project-dir", str(lake)])
        capsys.readouterr()
        fire_event(MainEncounteredError(exc=f"Geheim/123 {TASK_FAILED.format(reason='Input/output error')}"))
        fire_event(MainStackTrace(stack_trace="Traceback (most recent call last):\n"))
        printed = capsys.readouterr().out
        traces = ["DeltaFileFormatWriter.scala" in printed, "Traceback" in printed, "Geheim" in printed]
        assert traces == [heard is not dbt.hear] * 3
        assert "Input/output error" in printed
    written = (lake / "logs/dbt.log").read_text()
    assert written.count("DeltaFileFormatWriter.scala") == 2 and written.count("Geheim") == 1
