"""An export of a captured PostgreSQL table, with the exact position at which it was taken, while others write."""

from datetime import datetime, timezone
from pathlib import Path

import yaml

from highwater.database import Database, quoted
from highwater.errors import UsageError
from highwater.extract import Names, capture_of, columns_of, names_of, split_name
from highwater.feeds import Feed, declared_feeds

# as staging reads them; everything else as PostgreSQL writes it
AS_TEXT = {
    "bytea": "encode({column}, 'hex')",
    "timestamp with time zone": "to_char({column} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
    "timestamp without time zone": "to_char({column}, 'YYYY-MM-DD HH24:MI:SS.US')",
    "boolean": "{column}::text",
}


def export(spark, name: str) -> list[str]:
    """Export a table as a CSV file into the folder of its exports, in one transaction, with its position beside it.

    Writers wait for a moment only: while the transaction of the export begins, none of theirs is under way, so the
    export has exactly the changes up to its position. They go on while rows are read.

    Arguments:
        name: `<feed>.<table>`, captured by the method changelog.
    Returns: lines that say what was written.
    Raises: UsageError when the table is not captured so, or no feed of exports is declared for it.
    """
    feed, table = split_name(name)
    declared = declared_feeds()
    exports = [each for each in declared.values() if each.positions == feed and table in each.tables]
    if not exports:
        raise UsageError(
            f"no feed of exports is declared for {name}; declare it: highwater add-table "
            f"exports_{feed.partition('_')[2]}.{table} --format csv --setting role=export --setting positions={feed}"
        )
    names = names_of(declared.get(feed), table)
    with Database(spark, feed) as database:
        capture = capture_of(database, names)
        if capture is None or not capture.is_running or capture.method != "changelog":
            raise UsageError(f"{name} is not captured by the method changelog, so the export would have no position.")
        columns = columns_of(database, names)
        database.rollback()
        database.run("set transaction isolation level repeatable read, read only")
        # a truncate, which snapshots do not see, waits until the export has ended
        database.run(f"lock table {names.source} in access share mode")
        database.run("savepoint gate")
        # waits for those who are writing; nobody else writes until the first query has fixed what the export sees
        database.run(f"lock table {names.source} in share mode")
        ((waiting,),) = database.rows(f"select max(change_number) from {names.changelog}")
        database.run("rollback to savepoint gate")
        path, rows = _write(spark, database, exports[0], names, table, columns)
    # numbers that were rolled back are nobody's position; a lower one may be committed after a higher one has landed
    position = max(int(waiting or 0), _landed(spark, declared[feed], table, capture.number))
    _declare(path, f"{capture.number}/{position}")
    path.with_suffix(".tmp").rename(path)
    return [f"{path}: {rows:,} row{'s'[: rows != 1]} as of {capture.number}/{position}"]


def _landed(spark, feed: Feed, table: str, capture: int) -> int:
    """Return the number of the last change that has landed."""
    return spark.sql(
        f"select coalesce(max(cast(source_position as bigint)), 0) from {feed.raw_table} "
        f"where entry = 'file' and startswith(source_file, '{feed.name}/{table}/capture-{capture:03}/')"
    ).first()[0]


def _write(spark, database: Database, feed: Feed, names: Names, table: str, columns) -> tuple[Path, int]:
    """Write the rows, as the transaction sees them; return the file and their number."""
    folder = Path(feed.root) / feed.name / table
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{table}-{datetime.now(timezone.utc):%Y%m%dT%H%M%S%f}.csv"
    shown = ", ".join(
        AS_TEXT.get(kind, "{column}").format(column=quoted(column)) + f" as {quoted(column)}"
        for column, kind, _ in columns
    )
    java = spark.sparkContext._jvm
    unfinished = path.with_suffix(".tmp")
    with database.errors():
        stream = java.java.io.FileOutputStream(str(unfinished))
        try:
            rows = java.org.postgresql.copy.CopyManager(database.connection).copyOut(
                f"copy (select {shown} from {names.source}) to stdout (format csv, header, force_quote *)", stream
            )
        finally:
            stream.close()
    return path, rows


def _declare(path: Path, position: str) -> None:
    """Write the position beside the export."""
    beside = path.parent / "_exports.yml"
    text = beside.read_text() if beside.exists() else "# Where the source stood when each export was taken.\n"
    entry = {path.name: {"position": position, "taken_at": datetime.now(timezone.utc).isoformat(timespec="seconds")}}
    beside.write_text(text + yaml.safe_dump(entry, default_flow_style=None))
