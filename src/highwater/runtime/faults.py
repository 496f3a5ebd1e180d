"""What the system, Java, Spark, Delta and dbt run into, as one sentence; the whole trace is in `<lake>/highwater.log`.

Needs nothing but Python, and no Java that still answers.
"""

import contextlib
import logging
import os
import re
import sys
import tempfile
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from urllib.parse import quote, unquote

from highwater.runtime.errors import UsageError
from highwater.runtime.printable import printable
from highwater.runtime.project import lake, utc_now

LOG_BYTES = 1_000_000
REASON_LENGTH = 400
IS_SECRET = re.compile(r"PASSW|PWD$|SECRET|TOKEN|KEY", re.IGNORECASE)
# where a shell is and was; of a URL it would be a password
FOLDERS = {"PWD", "OLDPWD"}
OF_URL = re.compile(r"(?<=[?&;])([^=&;?\s'\"]+)=([^&;\s'\"]+)")
USER_OF_URL = re.compile(r"(?<=://)[^/@\s'\"]*:[^/@\s'\"]+(?=@)")
MESSAGE = re.compile(r"(?:Caused by: |^: )?(?:[\w$]+\.)*[\w$]*(?:Exception|Error|Interrupt|Throwable)(?: [\w]+)?: (.+)")
CAUSE = re.compile(r"Caused by: (.+)")
FRAME = re.compile(
    r"\s+at [\w.$/<>]+\(|\s+\.\.\. \d+ more|\s+File \"|JVM stacktrace:|Traceback \(most recent call last\)"
)
CLASSES = re.compile(r"(?:(?:[\w$]+\.)+[\w$]+: )+")
TABLE = re.compile(r"tables/(\w+)\.db/([\w%$-]+)|\[DELTA_[A-Z_.]*\][^\n]*?`(\w+)`\.`(\w+)`")
OF_SOCKETS = {"Py4JNetworkError", "Py4JError", "ConnectionRefusedError", "ConnectionResetError", "EOFError"}

AGAIN = "then run it again: what was written in half is not read"
DAMAGED = (
    "A file of the table is damaged or gone. If there is a backup of the lake, put the table's folder back; "
    "a merged table is made again from its log by: highwater rebuild TABLE"
)
# What is looked for in everything that was said; why; what to do. The first that is found counts.
KINDS = [
    (r"OutOfMemoryError|Java heap space|GC overhead", "Java ran out of memory", "Give Spark more: spark.driver.memory in conf/spark-defaults.conf"),  # noqa: E501
    (r"No space left on device|Disk quota exceeded", None, f"Make room on its disk, {AGAIN}"),
    (r"Read-only file system", None, f"Make the disk writable, {AGAIN}"),
    (r"Permission denied|Operation not permitted", None, f"Give this user the right to read and write there, {AGAIN}"),
    (r"Input/output error", None, f"See whether the disk is sound, {AGAIN}"),
    (r"Too many open files", None, f"Raise the limit of open files (ulimit -n), {AGAIN}"),
    (
        r"DELTA_CONCURRENT_|DELTA_METADATA_CHANGED|TABLE_OR_VIEW_ALREADY_EXISTS|another build has written",
        "another command has written the same table meanwhile, and nothing of this one is in it",
        "Run it again",
    ),
    (
        r"DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
        "the metastore does not know a table whose files are there",
        "The metastore was lost or is of another lake; to register its tables from their folders: highwater recover",
    ),
    (r"DELTA_VERSIONS_NOT_CONTIGUOUS|DELTA_LOG_FILE_NOT_FOUND|DELTA_TRUNCATED|DELTA_STATE_RECOVER", None, DAMAGED),
    (r"DELTA_TABLE_NOT_FOUND|DELTA_PATH_DOES_NOT_EXIST|DELTA_MISSING_DELTA_TABLE", None, DAMAGED),
    (r"FAILED_READ_FILE|is not a Parquet file|FileNotFoundException|DELTA_FILE_NOT_FOUND", None, DAMAGED),
    (r"Not a directory|Is a directory|No such file or directory", None, f"Put right what is there, {AGAIN}"),
]  # fmt: skip


@contextlib.contextmanager
def doing(what: str):
    """Let errors that nobody foresaw tell what was being done when they came.

    Arguments:
        what: for example `landing datastream_shop`; the innermost counts.
    """
    try:
        yield
    except Exception as error:
        if not hasattr(error, "doing"):
            error.doing = what
        raise


def sentence_of(error: BaseException, otherwise_doing: str = "the command") -> str:
    """Return what was being done, on what, why it failed, and what to do; write the whole trace down.

    Arguments:
        error: anything. otherwise_doing: where nobody has said what was being done.
    """
    if isinstance(error, UsageError):
        return masked(str(error))
    said = everything_said(error)
    why, what_to_do = why_and_what_to_do(said, error)
    what = f"{getattr(error, 'doing', otherwise_doing)} failed{_on_what(error, said)}"
    trace = "".join(traceback.format_exception(error))
    return masked(f"{what}: {why.rstrip('.')}. {what_to_do}. {_where(write_down(what, trace, said))}")


def trouble_of_one(error: Exception) -> str:
    """Return the sentence of an error of one feed or table, which keeps no other from going on.

    Raises: the error, when nothing else could be done either: Java has ended, or a disk is full.
    """
    if _stops_everything(error):
        raise error
    return sentence_of(error)


def _stops_everything(error: BaseException) -> bool:
    said = everything_said(error)
    return java_has_ended(error) or bool(re.search(f"{KINDS[0][0]}|{KINDS[1][0]}|{KINDS[2][0]}", said))


def why_and_what_to_do(said: str, error: BaseException | None = None) -> tuple[str, str]:
    """Return the reason in a few words, and what to do.

    Arguments:
        said: everything that was said, Java's trace too. error: it, where there is one.
    """
    if java_has_ended(error):
        return _how_java_ended(), f"Give it more memory or a machine with more, {AGAIN}"
    for kind, why, what_to_do in KINDS:
        if found := re.search(kind, said):
            return why or getattr(error, "strerror", None) or _line_with(said, found), what_to_do
    return reason(said), "If it comes again, the trace shows where"


def is_known(said: str) -> bool:
    """Return whether one of the KINDS is in what was said."""
    return any(re.search(kind, said) for kind, _, _ in KINDS)


def _line_with(said: str, found: re.Match) -> str:
    """Return the message that a match is in, which is better than the last cause: that may be a frame's remark."""
    line = said[said.rfind("\n", 0, found.start()) + 1 :].split("\n", 1)[0]
    message = MESSAGE.match(line)
    return _short(CLASSES.sub("", message[1] if message else line, count=1))


def reason(said: str) -> str:
    """Return the root cause: the last message of a chain of causes, Java's or Python's."""
    lines = said.splitlines()
    causes = [
        line.removeprefix("Caused by: ").removeprefix(": ")
        for line in lines
        if MESSAGE.match(line) or CAUSE.match(line)
    ]
    reasons = [
        cause for cause in causes if "Traceback (most" not in cause and "An error occurred while calling" not in cause
    ]
    reasons = reasons or [line for line in lines if line.strip()] or ["no reason was given"]
    return _short(CLASSES.sub("", reasons[-1], count=1))


def _short(words: str) -> str:
    """Return words as one line that a terminal shows as they are."""
    line = printable(" ".join(words.split()))
    return line if len(line) <= REASON_LENGTH else f"{line[:REASON_LENGTH]} …"


def everything_said(error: BaseException) -> str:
    """Return the messages of an error and of what caused it, with Java's own trace, outermost first."""
    said, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        said.append(f"{type(error).__name__}: {_words(error)}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(said)


def _words(error: BaseException) -> str:
    if getattr(error, "_stackTrace", None):  # of PySpark, which asks Java for the text
        return f"{error._desc}\n{error._stackTrace}"
    try:
        return str(error)
    except Exception:  # so does Py4J, and Java may be gone
        return getattr(error, "errmsg", "") or type(error).__name__


def without_trace(message: str) -> str:
    """Return a message of dbt with the reason in place of Java's or Python's trace."""
    lines = message.splitlines()
    first = next((number for number, line in enumerate(lines) if FRAME.match(line)), None)
    if first is None:
        return message
    why, what_to_do = why_and_what_to_do("\n".join(line.strip() for line in lines if not FRAME.match(line)))
    head = [line for line in lines[:first] if line.strip() and not MESSAGE.match(line.strip(" :"))]
    head = [_short(line) if len(line) > REASON_LENGTH else line for line in head[:3]]
    return "\n".join([*head, f"  {why.rstrip('.')}. {what_to_do}."])


def _on_what(error: BaseException, said: str) -> str:
    file = getattr(error, "filename", None)
    if file is not None and str(file) not in getattr(error, "doing", ""):
        return f" on {_short(os.fsdecode(file) if isinstance(file, bytes | str) else str(file))}"
    found = TABLE.search(said)
    return " on " + ".".join(filter(None, found.groups())) if found else ""


def java_has_ended(error: BaseException | None = None) -> bool:
    """Return whether the Java that this process had started is gone.

    Arguments:
        error: what it is asked for; after one of the connection with Java its end may be some moments away.
    """
    process = _java()
    if process is None:
        return False
    if type(error).__name__ in OF_SOCKETS or "Py4JNetworkError" in (everything_said(error) if error else ""):
        with contextlib.suppress(Exception):
            process.wait(2)
    return process.poll() is not None


def _java():
    context = sys.modules.get("pyspark.core.context")
    return getattr(context and context.SparkContext._gateway, "proc", None)


def _how_java_ended() -> str:
    code = _java().poll()
    how = f"killed by signal {-code}; out of memory?" if code < 0 else f"exit status {code}"
    return f"Spark's Java process ended ({how})"


def masked(text: str) -> str:
    """Return a text without the values of the environment's secrets and without passwords in URLs."""
    named = {name: value for name, value in os.environ.items() if IS_SECRET.search(name) and name not in FOLDERS}
    secrets = {value for value in named.values() if len(value) >= 4}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***").replace(quote(secret, safe=""), "***")
    text = OF_URL.sub(lambda found: f"{found[1]}=***" if IS_SECRET.search(unquote(found[1])) else found[0], text)
    return USER_OF_URL.sub("***:***", text)


def write_down(what: str, *traces: str) -> Path | None:
    """Add traces to the log of the lake, or where that cannot be to a file of their own; secrets are masked.

    Returns: the file; None when there is nowhere to write.
    """
    text = masked(f"{utc_now()} UTC, process {os.getpid()}: {what}\n" + "\n".join(traces).rstrip() + "\n")
    try:
        if not lake().is_dir():
            raise FileNotFoundError
        _append(lake() / "highwater.log", text)
        return lake() / "highwater.log"
    except (OSError, UsageError):  # the profile may say nothing of a lake
        return _in_temporary_folder(text)


def _in_temporary_folder(text: str) -> Path | None:
    try:
        handle, path = tempfile.mkstemp(prefix="highwater-", suffix=".log")
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return Path(path)
    except OSError:
        return None


class _Raising(RotatingFileHandler):
    def handleError(self, record):
        """Raise what is being handled."""
        raise


def _append(path: Path, text: str) -> None:
    handler = _Raising(path, maxBytes=LOG_BYTES, backupCount=2, encoding="utf-8", errors="backslashreplace")
    with contextlib.closing(handler):
        handler.emit(logging.makeLogRecord({"msg": text}))


def _where(log: Path | None) -> str:
    return f"The whole trace is in {log}." if log else "Its trace could be written nowhere."


class _ToTheLog(logging.Handler):
    """What libraries log of themselves, Py4J its lost connections for example."""

    def emit(self, record):
        write_down(f"{record.name} says", self.format(record))


def keep_the_terminal_clean() -> None:
    """Send what libraries log to the log of the lake, and the traces of threads too."""
    import socketserver
    import threading

    logging.raiseExceptions = False
    handler = _ToTheLog(logging.WARNING)
    logging.getLogger().addHandler(handler)
    threading.excepthook = lambda failure: write_down(
        "a thread failed", "".join(traceback.format_exception(failure.exc_value))
    )
    # of PySpark, when Java has ended
    socketserver.BaseServer.handle_error = lambda *_: write_down("a server failed", traceback.format_exc())
