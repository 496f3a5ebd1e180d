"""What a lake is left with by a power cut or the loss of its metastore: found at each start, before anything is
written, and mended by `highwater recover`.
"""

import json
import os
import re
from datetime import datetime, timezone
from pathlib import Path

from highwater import faults, last_build
from highwater.errors import UsageError
from highwater.feeds import sql_text
from highwater.landings import COMMIT, folders_of_tables, newest_commit_in
from highwater.places import in_metastore, rows_of
from highwater.project import lake
from highwater.tables import named, tables_in

OWN = ("raw", "lake")
FIRST = f"{0:020}"
OF_VERSION = re.compile(r"\.?(\d{20})\.")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet")
END_OF_PARQUET = b"PAR1"
REGISTERED = """
    select TBL_ID, NAME, TBL_NAME from APP.TBLS inner join APP.DBS on TBLS.DB_ID = DBS.DB_ID
    where TBL_TYPE = 'EXTERNAL_TABLE'
"""
# As tables are that Spark has placed itself: dropping one removes its files. Of others it tells Hive another folder.
MANAGED = [
    "update APP.SDS set LOCATION = (select cast(PARAM_VALUE as varchar(4000)) from APP.SERDE_PARAMS "
    "where SERDE_PARAMS.SERDE_ID = SDS.SERDE_ID and PARAM_KEY = 'path') "
    "where SD_ID = (select SD_ID from APP.TBLS where TBL_ID = {number})",
    "update APP.TBLS set TBL_TYPE = 'MANAGED_TABLE' where TBL_ID = {number}",
    "delete from APP.TABLE_PARAMS where TBL_ID = {number} and PARAM_KEY = 'EXTERNAL'",
]


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
    told = [f"{what} of {table}" for table, (what, _) in found.items()]
    return (
        f"{named(told)} {'is' if len(told) == 1 else 'are'} empty or half (a power cut?), and what was written there "
        "is not in the table. To put it aside, so that the table is as it was before: highwater recover"
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
    said = lost(_unknown(spark))
    if said:
        raise UsageError(said)


def _unknown(spark) -> dict[str, Path]:
    folders = folders_of_tables()
    known = {
        f"{schema}.{table}"
        for schema in {name.partition(".")[0] for name in folders}
        for table in tables_in(spark, schema)
    }
    return {name: folder for name, folder in folders.items() if name.lower() not in known}


def put_aside() -> list[str]:
    """Move what is half in the logs of tables into `<lake>/put_aside`; return a line for each table.

    A table whose creation is half has nothing else, and its whole folder goes.
    """
    said = []
    target = lake() / "put_aside" / datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%f")
    for name, folder in folders_of_tables().items():
        if not (half := half_files(folder)):
            continue
        what, files = half
        beside = target / name
        beside.parent.mkdir(parents=True, exist_ok=True)
        if any(path.name == f"{FIRST}.json" for path in files):
            folder.rename(beside)
            said.append(f"{name}: {what} is half; the folder of the table was put aside, into {beside}")
            continue
        beside.mkdir()
        for path in [*folder.glob("_delta_log/*_last_checkpoint*"), *sorted(files, key=_last_is_half)]:
            path.rename(beside / path.name)
        said.append(f"{name}: {what} is half, and was put aside with whatever is behind it, into {beside}")
    return said


def _last_is_half(path: Path) -> tuple[int, bool]:
    """Order files so that the half commit goes last: killed meanwhile, the next time finds it again."""
    return -int(OF_VERSION.match(path.name)[1]), bool(COMMIT.fullmatch(path.name))


def recover(spark) -> tuple[list[str], list[str]]:
    """Register the tables that the metastore does not know, from their folders below the lake.

    Views are not in folders; the next build makes them.

    Returns: a line for each table that was registered, and for each that was not.
    """
    last_build.forget()
    said, failures, done = [], [], []
    for name, folder in _unknown(spark).items():
        try:
            spark.sql(f"create schema if not exists `{name.partition('.')[0]}`")
            spark.sql(f"create table {_quoted(name)} using delta location {sql_text(str(folder.absolute()))}")
        except Exception as error:
            why, what_to_do = faults.why_and_what_to_do(faults.everything_said(error), error)
            failures.append(f"{name} could not be registered: {why.rstrip('.')}. {what_to_do}.")
        else:
            done.append(name)
            said.append(f"{name}: registered")
    _take_over(spark, done)
    for folder in sorted((lake() / "tables").glob("*.db/*/")):
        if not newest_commit_in(folder):
            failures.append(f"{folder} has no commit of Delta's, so nothing tells what table it is")
    return said, failures


def _quoted(name: str) -> str:
    schema, _, table = name.partition(".")
    return f"`{schema}`.`{table}`"


def _take_over(spark, names: list[str]) -> None:
    from highwater.spark import METASTORE  # it starts with what is checked here

    url, names = spark.conf.get(METASTORE), {name.lower() for name in names}
    if not names or not url.startswith("jdbc:derby:"):
        return
    with in_metastore(spark._jvm, url) as connection:
        for number, schema, table in rows_of(connection, REGISTERED):
            for statement in MANAGED if f"{schema}.{table}" in names else ():
                connection.createStatement().execute(statement.format(number=int(number)))
