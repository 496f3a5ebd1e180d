"""The tables of a lake by their folders: newest commits, and what a power cut or the loss of the metastore has left."""

import json
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from highwater.catalog.tables import named, tables_in
from highwater.runtime.deployment import is_here, place
from highwater.runtime.errors import UsageError
from highwater.runtime.project import lake
from highwater.runtime.state import files

RECONCILIATIONS, OPEN_DIFFERENCES = "reconciliations", "open_differences"
QUESTIONS_AT_ONCE = 16
OWN = ("raw", "lake")
FIRST = f"{0:020}"
COMMIT = re.compile(r"\d{20}\.json")
OF_VERSION = re.compile(r"\.?(\d{20})\.")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet")
END_OF_PARQUET = b"PAR1"


def newest_versions() -> dict[str, int]:
    """Return the version of each table of the lake, by its folder: by name of schema and table."""
    schemas = [name.removesuffix(".db") for name in files().names("tables") if name.endswith(".db")]
    tables = [(schema, table) for schema in sorted(schemas) for table in sorted(files().names(f"tables/{schema}.db"))]
    found = zip(tables, _of_each(newest_version, tables), strict=True)
    return {f"{schema}.{table}": version for (schema, table), version in found if version >= 0}


def folders_of_tables() -> dict[str, Path]:
    """Return the folders of a lake here that have a commit of Delta's, by name of schema and table."""
    names = {name: name.partition(".") for name in newest_versions()}
    return {name: lake() / "tables" / f"{schema}.db" / table for name, (schema, _, table) in names.items()}


def newest_commit(schema: str, table: str) -> str | None:
    """Return what tells the newest commit of a table of the lake's folder from any other; None: there is none."""
    version = newest_version(schema, table)
    if version < 0:
        return None
    size, written = files().state_of(f"{_log_of(schema, table)}/{version:020}.json")
    return f"{version:020} {size} {written}"


def newest_commits(schema: str) -> dict[str, str]:
    """Return what tells the newest commit of each table of a schema from any other, by the name of the table."""
    tables = files().names(f"tables/{schema}.db")
    marks = _of_each(newest_commit, [(schema, table) for table in tables])
    return {table: mark for table, mark in zip(tables, marks, strict=True) if mark}


def newest_version(schema: str, table: str) -> int:
    """Return the version of a table of the lake, by its folder; -1: it has no commit."""
    return newest_of(files().names(_log_of(schema, table)))


def newest_of(names: Iterable[str]) -> int:
    """Return the version of the newest commit among names of files of a log; -1: there is none."""
    return max((int(name[:20]) for name in names if COMMIT.fullmatch(name)), default=-1)


def is_committed(schema: str, table: str, version: int, mark: str) -> bool:
    """Return whether one of the commits behind a version of a table has a mark as its user's metadata."""
    commits = range(newest_version(schema, table), version, -1)
    log = _log_of(schema, table)
    return any(mark.encode() in (files().read(f"{log}/{number:020}.json") or b"") for number in commits)


def is_table(name: str) -> bool:
    """Return whether something of the lake that is no table of the metastore is there: a table of Delta's."""
    return newest_of(files().names(f"{name}/_delta_log")) >= 0


def _log_of(schema: str, table: str) -> str:
    return f"tables/{schema}.db/{table}/_delta_log"


def _of_each(function: Callable, arguments: list[tuple]) -> list:
    """Return what a function returns of each; of a store at a URI every answer takes a while, so many are asked for."""
    if is_here():
        return [function(*each) for each in arguments]
    with ThreadPoolExecutor(QUESTIONS_AT_ONCE) as threads:
        return list(threads.map(lambda each: function(*each), arguments))


def half_files(folder: Path) -> tuple[str, list[Path]] | None:
    """Return what is half in the log of a table, and the files to put aside; None: nothing.

    Delta takes an empty commit for one that does nothing, and writes behind one that it cannot read. What is behind a
    half commit goes with it: it was made of what is not there.
    """
    log = folder / "_delta_log"
    names = sorted(os.listdir(log))
    checkpoints = {int(found[1]): name for name in names if (found := CHECKPOINT.fullmatch(name))}
    half = {number for number, name in checkpoints.items() if not _ends_with(log / name, END_OF_PARQUET)}
    since = max((number for number in checkpoints if number not in half), default=-1)
    commits = [name for name in names if COMMIT.fullmatch(name) and int(name[:20]) > since]
    first = next((name for name in commits if not _is_whole(log / name)), None)
    aside = [log / name for name in names if any(checkpoints[number] in name for number in half)]
    if first:
        aside += [log / name for name in names if (found := OF_VERSION.match(name)) and found[1] >= first[:20]]
        return f"commit {int(first[:20])}", sorted(set(aside))
    return (f"checkpoint {max(half)}", aside) if half else None


def _ends_with(path: Path, end: bytes) -> bool:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(end)))
        return file.read() == end


def _is_whole(commit: Path) -> bool:
    """Return whether the last line of a commit is one of Delta's actions."""
    try:
        return isinstance(json.loads(commit.read_bytes().rstrip(b"\r\n").rpartition(b"\n")[2]), dict)
    except ValueError:
        return False


def half_logs() -> str | None:
    """Return what to say of tables whose log a power cut has left in half; None: none is.

    A store at a URI has no half files.
    """
    if not is_here():
        return None
    found = {name: half for name, folder in folders_of_tables().items() if (half := half_files(folder))}
    if not found:
        return None
    places = [f"{what} of {table}" for table, (what, _) in found.items()]
    return (
        f"{named(places)} {'is' if len(places) == 1 else 'are'} empty or half (a power cut?), and what was written "
        "there is not in the table. To put it aside, so that the table is as it was before: highwater recover"
    )


def lost(unknown: dict[str, int]) -> str | None:
    """Return what to say of folders of tables that a metastore does not know; None: nothing.

    One commit alone may be what a creation has left that was killed before the metastore knew of it, and is made anew.

    Arguments:
        unknown: see newest_versions.
    """
    names = [name for name, version in unknown.items() if name.partition(".")[0] in OWN and version > 0]
    if not names:
        return None
    return (
        f"the metastore of the lake {place()} was lost, or is older than the lake's tables: it does not know "
        f"{named(names)}, whose files are there. Nothing was done. To register them from their folders: "
        "highwater recover"
    )


def require_known_tables(spark) -> None:
    """Refuse to go on where the metastore does not know tables whose folders are there; new ones would be made instead.

    Raises: UsageError with their names and what to do.
    """
    said = lost(unknown_tables(spark))
    if said:
        raise UsageError(said)


def unknown_tables(spark) -> dict[str, int]:
    """Return the versions of the lake's tables that its metastore does not know, by name of schema and table."""
    versions = newest_versions()
    known = {
        f"{schema}.{table}"
        for schema in {name.partition(".")[0] for name in versions}
        for table in tables_in(spark, schema)
    }
    return {name: version for name, version in versions.items() if name.lower() not in known}
