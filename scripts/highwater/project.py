"""Where things are: the project folder, the lake, the landing folders, and the lake's lease."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from highwater.errors import UsageError, leave_with_the_sentence

JAVA_AT_LEAST = 17


def enter_project() -> Path:
    """Find the project from the current folder upwards and make it the current folder.

    Returns: the project's folder. Relative settings (`HIGHWATER_LAKE`, ...) are relative to it.
    Raises: UsageError when no `dbt_project.yml` is there.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "dbt_project.yml").exists():
            os.chdir(folder)
            return folder
    raise UsageError(f"no dbt_project.yml in {here} or above it; run this inside the project.")


def lake() -> Path:
    """Return the folder of tables and metastore: `$HIGHWATER_LAKE`, by default `.lake`."""
    return Path(os.environ.get("HIGHWATER_LAKE", ".lake"))


def utc_now() -> str:
    """Return the time of now in UTC as people read it, to the second, for example `2026-11-24 22:59:34`."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def patch_mark(name: str) -> Path:
    """Return the file that says since when a table, `<feed>.<table>`, is being patched; it is there only meanwhile."""
    return lake() / "patches" / name


def disabled_mark(name: str) -> Path:
    """Return the file that says since when a table, `<feed>.<table>`, is no longer captured; only meanwhile."""
    return lake() / "disabled" / name


def set_mark(mark: Path) -> None:
    """Write the time of now into the file of a mark."""
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(utc_now())


def landing_root() -> str:
    """Return the folder or URI where feeds land: `$HIGHWATER_LANDING`, by default `examples/landing`."""
    return os.environ.get("HIGHWATER_LANDING", "examples/landing")


def exports_root() -> str:
    """Return the folder or URI of source exports: `$HIGHWATER_EXPORTS`, by default `examples/exports`."""
    return os.environ.get("HIGHWATER_EXPORTS", "examples/exports")


def require_java() -> None:
    """Check that the Java which Spark will start is there and new enough.

    Raises: UsageError naming the Java that was found, or saying that none was.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    wanted = f"Install Java {JAVA_AT_LEAST} or newer and put it on PATH, or set JAVA_HOME to it."
    if not java or not Path(java).exists():
        where = f"JAVA_HOME is {home}, but there is no bin/java in it" if home else "no java on PATH"
        raise UsageError(f"Spark needs Java, and {where}. {wanted}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    if not found:
        raise UsageError(f"{java} does not say which Java it is. {wanted}")
    if int(found[1]) < JAVA_AT_LEAST:
        raise UsageError(f"Spark needs Java {JAVA_AT_LEAST}, and {java} is Java {found[1]}. {wanted}")


@contextlib.contextmanager
def lease(command: str):
    """Hold the lake's lease: one writer at a time.

    The lease is an advisory lock on `<lake>/lease`, so a killed process leaves nothing to clean up.

    Arguments:
        command: what is being done, shown to whoever finds the lake taken.
    Raises: UsageError when the lake cannot be written to, or another process holds the lease.
    """
    path = lake() / "lease"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open(path, "a+")  # noqa: SIM115 - held until the end of the command
    except OSError as error:
        raise UsageError(
            f"the lake folder {lake()} cannot be written to ({error.strerror}). "
            "Make it writable, or set HIGHWATER_LAKE to another folder."
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.seek(0)
            holder = json.loads(handle.read() or "{}")
            raise UsageError(
                f"the lake {lake()} is in use by `{holder.get('command', 'another command')}` "
                f"(process {holder.get('process', '?')}, since {holder.get('since', '?')} UTC). "
                "Wait for it to end, or set HIGHWATER_LAKE to another folder."
            ) from None
        handle.truncate(0)
        since = utc_now()
        json.dump({"command": command, "process": os.getpid(), "since": since}, handle)
        handle.flush()
        try:
            yield
        finally:
            handle.truncate(0)


def step_under_way() -> str | None:
    """Return which command is writing to the lake, or which one was killed while it did; None: neither."""
    try:
        with open(lake() / "lease") as handle:
            step = json.loads(handle.read() or "null")
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return step and f"{step['command']} is running (process {step['process']}, since {step['since']} UTC)"
            return step and f"{step['command']} of {step['since']} UTC was killed; run it again"
    except FileNotFoundError:
        return None


if __name__ == "__main__":  # `make setup` asks for Java before it downloads anything
    leave_with_the_sentence(require_java)
