"""The tables of a lake by their folders: newest commits, and what a power cut or the loss of the metastore has left."""

import json
import os
import re
from pathlib import Path

from highwater.catalog.tables import named, tables_in
from highwater.runtime.errors import UsageError
from highwater.runtime.project import lake

OWN = ("raw", "lake")
FIRST = f"{0:020}"
COMMIT = re.compile(r"\d{20}\.json")
OF_VERSION = re.compile(r"\.?(\d{20})\.")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet")
END_OF_PARQUET = b"PAR1"


def folders_of_tables() -> dict[str, Path]:
    """Return the folders of the lake that have a commit of Delta's, by name of schema and table."""
    folders = [log.parent for log in sorted((lake() / "tables").glob("*.db/*/_delta_log"))]
    return {f"{folder.parent.stem}.{folder.name}": folder for folder in folders if newest_commit_in(folder)}


def newest_commit(schema: str, table: str) -> str | None:
    """Return what tells the newest commit of a table of the lake's folder from any other; None: there is none."""
    return _mark_of(newest_commit_in(lake() / "tables" / f"{schema}.db" / table))


def newest_commits(schema: str) -> dict[str, str]:
    """Return what tells the newest commit of each table of a schema from any other, by the name of the table."""
    folders = [log.parent for log in (lake() / "tables" / f"{schema}.db").glob("*/_delta_log")]
    return {folder.name: mark for folder in folders if (mark := _mark_of(newest_commit_in(folder)))}


def newest_version(schema: str, table: str) -> int:
    """Return the version of a table of the lake's folder; -1: it has no commit."""
    commit = newest_commit_in(lake() / "tables" / f"{schema}.db" / table)
    return int(commit.stem) if commit else -1


def is_committed(schema: str, table: str, version: int, mark: str) -> bool:
    """Return whether one of the commits behind a version of a table has a mark as its user's metadata."""
    log = lake() / "tables" / f"{schema}.db" / table / "_delta_log"
    commits = range(newest_version(schema, table), version, -1)
    return any(mark.encode() in (log / f"{number:020}.json").read_bytes() for number in commits)


def _mark_of(commit: Path | None) -> str | None:
    if commit is None:
        return None
    state = commit.stat()
    return f"{commit.stem} {state.st_size} {state.st_mtime_ns}"


def newest_commit_in(folder: Path) -> Path | None:
    """Return the file of the newest commit of a table, by its folder; None: there is no commit."""
    try:
        names = [name for name in os.listdir(folder / "_delta_log") if COMMIT.fullmatch(name)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    return folder / "_delta_log" / max(names) if names else None


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
    """Return what to say of tables whose log a power cut has left in half; None: none is."""
    found = {name: half for name, folder in folders_of_tables().items() if (half := half_files(folder))}
    if not found:
        return None
    places = [f"{what} of {table}" for table, (what, _) in found.items()]
    return (
        f"{named(places)} {'is' if len(places) == 1 else 'are'} empty or half (a power cut?), and what was written "
        "there is not in the table. To put it aside, so that the table is as it was before: highwater recover"
    )


def lost(unknown: dict[str, Path]) -> str | None:
    """Return what to say of folders of tables that a metastore does not know; None: nothing.

    One commit alone may be what a creation has left that was killed before the metastore knew of it, and is made anew.

    Arguments:
        unknown: see folders_of_tables.
    """
    names = [
        name
        for name, folder in unknown.items()
        if name.partition(".")[0] in OWN and newest_commit_in(folder).stem != FIRST
    ]
    if not names:
        return None
    return (
        f"the metastore of the lake {lake()} was lost, or is older than the lake's tables: it does not know "
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


def unknown_tables(spark) -> dict[str, Path]:
    """Return the folders of the lake's tables that its metastore does not know, by name of schema and table."""
    folders = folders_of_tables()
    known = {
        f"{schema}.{table}"
        for schema in {name.partition(".")[0] for name in folders}
        for table in tables_in(spark, schema)
    }
    return {name: folder for name, folder in folders.items() if name.lower() not in known}
