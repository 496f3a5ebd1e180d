"""`highwater recover`: repair a lake after a power cut or the loss of its metastore.

Every start looks for such damage before anything is written.
"""

from datetime import datetime, timezone
from pathlib import Path

from highwater.builds import last_build
from highwater.catalog.feeds import sql_text
from highwater.runtime import faults
from highwater.runtime.deployment import METASTORE, is_here
from highwater.runtime.project import lake, stored
from highwater.runtime.state import files
from highwater.spark.lake_tables import (
    COMMIT,
    FIRST,
    OF_VERSION,
    folders_of_tables,
    half_files,
    newest_of,
    unknown_tables,
)
from highwater.spark.places import in_metastore, rows_of

REGISTERED = """
    select TBL_ID, NAME, TBL_NAME from APP.TBLS inner join APP.DBS on TBLS.DB_ID = DBS.DB_ID
    where TBL_TYPE = 'EXTERNAL_TABLE'
"""
# Make them managed tables: dropping one removes its files. For external tables, Spark tells Hive another folder.
MANAGED = [
    "update APP.SDS set LOCATION = (select cast(PARAM_VALUE as varchar(4000)) from APP.SERDE_PARAMS "
    "where SERDE_PARAMS.SERDE_ID = SDS.SERDE_ID and PARAM_KEY = 'path') "
    "where SD_ID = (select SD_ID from APP.TBLS where TBL_ID = {number})",
    "update APP.TBLS set TBL_TYPE = 'MANAGED_TABLE' where TBL_ID = {number}",
    "delete from APP.TABLE_PARAMS where TBL_ID = {number} and PARAM_KEY = 'EXTERNAL'",
]


def put_aside() -> list[str]:
    """Quarantine half-written commits of tables in `<lake>/put_aside`; return one line per table.

    If the commit that created a table is half-written, the whole folder of the table is moved. A store at a URI has
    no half files.
    """
    said = []
    if not is_here():
        return said
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
    """Sort key that moves the half-written commit last: after a kill, the next run finds it again."""
    return -int(OF_VERSION.match(path.name)[1]), bool(COMMIT.fullmatch(path.name))


def recover(spark) -> tuple[list[str], list[str]]:
    """Register tables that the metastore does not know, from their folders in the lake.

    Views have no folders; the next build creates them.

    Returns: one line per registered table, and one per table that could not be registered.
    """
    last_build.forget()
    said, failures, done = [], [], []
    for name in unknown_tables(spark):
        schema, _, table = name.partition(".")
        try:
            spark.sql(f"create schema if not exists `{schema}`")
            place = sql_text(stored(f"tables/{schema}.db/{table}"))
            spark.sql(f"create table `{schema}`.`{table}` using delta location {place}")
        except Exception as error:
            why, what_to_do = faults.why_and_what_to_do(faults.everything_said(error), error)
            failures.append(f"{name} could not be registered: {why.rstrip('.')}. {what_to_do}.")
        else:
            done.append(name)
            said.append(f"{name}: registered")
    _take_over(spark, done)
    for folder in sorted((lake() / "tables").glob("*.db/*/")):
        if newest_of(files().names(f"tables/{folder.parent.name}/{folder.name}/_delta_log")) < 0:
            failures.append(f"{folder} has no commit of Delta's, so nothing tells what table it is")
    return said, failures


def _take_over(spark, names: list[str]) -> None:
    url, names = spark.conf.get(METASTORE, ""), {name.lower() for name in names}
    if not names or not url.startswith("jdbc:derby:"):
        return
    with in_metastore(spark._jvm, url) as connection:
        for number, schema, table in rows_of(connection, REGISTERED):
            for statement in MANAGED if f"{schema}.{table}" in names else ():
                connection.createStatement().execute(statement.format(number=int(number)))
