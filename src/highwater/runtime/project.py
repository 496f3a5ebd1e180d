"""Where things are: the project folder, the lake, the landing folders, and the lake's lease."""

import contextlib
import fcntl
import json
import os
import shutil
from datetime import datetime, timezone
from pathlib import Path

from highwater.runtime.deployment import EMBEDDED, IS_URI, is_embedded, is_here, place
from highwater.runtime.errors import UsageError

# what this process holds the lease for
_held: list[str] = []


def enter_project() -> Path:
    """Find the project from the current folder upwards and make it the current folder.

    Returns: the project's folder. Relative settings (`HIGHWATER_LAKE`, ...) are relative to it.
    Raises: UsageError when no `dbt_project.yml` is there, or `HIGHWATER_LAKE` is no folder of this machine.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "dbt_project.yml").exists():
            os.chdir(folder)
            _refuse_embedded_elsewhere()
            return folder
    raise UsageError(f"no dbt_project.yml in {here} or above it; run this inside the project.")


def _refuse_embedded_elsewhere() -> None:
    given = os.environ.get("HIGHWATER_LAKE", "")
    if IS_URI.match(given) and is_embedded():
        raise UsageError(
            f"HIGHWATER_LAKE is {given}, and the lake of the target {EMBEDDED} is in a folder of this machine. Set "
            "HIGHWATER_LAKE to a folder, or HIGHWATER_TARGET=cluster, see docs/deploy.md."
        )


def lake() -> Path:
    """Return the folder of this machine that the lake has: tables and metastore, or, of one at a URI, logs alone."""
    where = place()
    return Path(".lake" if IS_URI.match(where) else where)


def utc_now() -> str:
    """Return the time of now in UTC as people read it, to the second, for example `2026-11-24 22:59:34`."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def write_whole(path: Path, text: str) -> None:
    """Write a file by a rename, so that nobody ever finds half of it.

    Arguments:
        path: of the file; its folder is there. text: all that it will hold.
    """
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def stored(name: str) -> str:
    """Return where something of the lake is that is no table of the metastore, as Spark reads and writes it."""
    return str(lake().resolve() / name) if is_here() else f"{place()}/{name}"


def landing_root() -> str:
    """Return the folder or URI where feeds land: `$HIGHWATER_LANDING`, by default `landing`, here or in `examples`."""
    return os.environ.get("HIGHWATER_LANDING", _of_examples("landing"))


def exports_root() -> str:
    """Return the folder or URI of source exports: `$HIGHWATER_EXPORTS`, by default `exports`, here or in `examples`."""
    return os.environ.get("HIGHWATER_EXPORTS", _of_examples("exports"))


def _of_examples(folder: str) -> str:
    """Return the folder of this name, of the examples where they are."""
    return f"examples/{folder}" if Path("examples").is_dir() else folder


def require_space(size: int, what: str) -> None:
    """Refuse a step for which the disk of a lake here is too small, before it has written anything.

    Arguments:
        size: the bytes that it needs at least. what: is to be done, for example `landing datastream_shop`.
    Raises: UsageError with what is needed and what is there.
    """
    if not is_here():
        return
    free = shutil.disk_usage(lake()).free
    if free < size:
        raise UsageError(
            f"{what} needs at least {size / 1e6:,.1f} MB on the disk of the lake {lake()}, and {free / 1e6:,.1f} MB "
            "are free. Nothing was done. Make room, or set HIGHWATER_LAKE to a folder of a larger disk."
        )


@contextlib.contextmanager
def lease(command: str):
    """Hold the lease of an embedded lake: one writer at a time.

    The lease is an advisory lock on `<lake>/lease`, so a killed process leaves nothing to clean up.

    Arguments:
        command: what is being done, shown to whoever finds the lake taken.
    Raises: UsageError when the lake cannot be written to, or another process holds the lease.
    """
    path = lake() / "lease"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open(path, "a+b", buffering=0)  # noqa: SIM115 - held until the end of the command
    except OSError as error:
        raise _cannot_be_written(error) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = _holder_in(handle) or {}
            raise UsageError(
                f"the lake {lake()} is in use by `{holder.get('command', 'another command')}` "
                f"(process {holder.get('process', '?')}, since {holder.get('since', '?')} UTC). "
                "Wait for it to end, or set HIGHWATER_LAKE to another folder."
            ) from None
        try:
            handle.truncate(0)
            handle.write(json.dumps({"command": command, "process": os.getpid(), "since": utc_now()}).encode())
        except OSError as error:
            raise _cannot_be_written(error) from error
        try:
            with holding(command):
                yield
        finally:
            with contextlib.suppress(OSError):
                handle.truncate(0)


@contextlib.contextmanager
def holding(command: str):
    """Let it be known meanwhile that this process holds the lease of the lake."""
    _held.append(command)
    try:
        yield
    finally:
        _held.remove(command)


def _cannot_be_written(error: OSError) -> UsageError:
    return UsageError(
        f"the lake folder {lake()} cannot be written to ({error.strerror}). "
        "Make it writable, or set HIGHWATER_LAKE to another folder."
    )


def _holder_in(handle) -> dict | None:
    """Return what a lease says of its holder; None: nobody, {}: what a power cut has left of it."""
    said = handle.read()
    try:
        holder = json.loads(said or "null")
    except ValueError:
        return {}
    return holder if holder is None or isinstance(holder, dict) else {}


def step_under_way() -> str | None:
    """Return which command is writing to the lake, or which one was killed while it did; None: neither."""
    try:
        with open(lake() / "lease", "rb") as handle:
            step = _holder_in(handle)
            if step is None:
                return None
            command, since = step.get("command", "a command"), step.get("since", "an unknown time")
            if _is_held(handle):
                return f"{command} is running (process {step.get('process', '?')}, since {since} UTC)"
            return f"{command} of {since} UTC was killed; run it again"
    except FileNotFoundError:
        return None


def holds_lease() -> bool:
    """Return whether this process holds the lake's lease: it may be writing."""
    return bool(_held)


def is_being_written() -> bool:
    """Return whether a command is writing to the lake."""
    try:
        with open(lake() / "lease", "rb") as handle:
            return _is_held(handle)
    except FileNotFoundError:
        return False


def _is_held(lease) -> bool:
    try:
        fcntl.flock(lease, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
