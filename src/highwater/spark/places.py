"""Where the embedded metastore says that databases and tables are: it keeps whole paths, and a lake may be moved."""

import contextlib
import re
from pathlib import Path

# the databases that every lake has; where one of them is tells where the lake was
OWN = {"default": "", "raw": "/raw.db", "lake": "/lake.db"}
# table, column of the number, column of the place, which of its rows
PLACES = [
    ("DBS", "DB_ID", "DB_LOCATION_URI", ""),
    ("SDS", "SD_ID", "LOCATION", ""),
    ("SERDE_PARAMS", "SERDE_ID", "PARAM_VALUE", "PARAM_KEY = 'path'"),
]


@contextlib.contextmanager
def in_metastore(jvm, url: str):
    """Open an embedded metastore for one transaction, which is undone when what is done in it fails.

    Arguments:
        jvm: the Java that has Derby. url: of the metastore, as JDBC has it.
    Yields: the connection.
    """
    with in_transaction(jvm.java.sql.DriverManager.getConnection(url)) as connection:
        yield connection


@contextlib.contextmanager
def in_transaction(connection):
    """Let what is done meanwhile be one transaction, which is undone when it fails; the connection is closed.

    Arguments:
        connection: of JDBC.
    Yields: the connection.
    """
    try:
        connection.setAutoCommit(False)
        yield connection
        connection.commit()
    finally:
        connection.rollback()
        connection.close()


def repair_places(jvm, url: str, warehouse: str) -> None:
    """Let an embedded metastore say where the lake is now; what was placed outside of the lake stays there.

    Without it a copy of a lake would write into its original, and a moved one be made anew where it was. It is one
    transaction, before Hive opens the metastore.

    Arguments:
        jvm, url: see in_metastore. warehouse: the folder of the lake's databases, as Spark writes it.
    """
    name = re.search("databaseName=([^;]+)", url)
    if not url.startswith("jdbc:derby:") or not name or not Path(name[1], "service.properties").exists():
        return
    with in_metastore(jvm, url) as connection:
        if not connection.getMetaData().getTables(None, "APP", "DBS", None).next():
            return
        moved = moves(rows_of(connection, "select NAME, DB_LOCATION_URI from APP.DBS"), warehouse)
        if not moved:
            return
        for table, number, place, which in PLACES:
            condition = f"where {which}" if which else ""
            for of, old in rows_of(connection, f"select {number}, {place} from APP.{table} {condition}"):
                if old and (new := place_now(old, moved)) != old:
                    _write(connection, f"update APP.{table} set {place} = ? where {number} = ?", new, of, which)


def moves(databases: list[tuple], warehouse: str) -> dict[str, str]:
    """Return where the folders of a lake were, each with where it is now; none: they are where they were.

    Arguments:
        databases: name and place of each one. warehouse: the folder of databases now.
    """
    moved = {}
    for name, place in databases:
        end = OWN.get(name)
        if end is not None and place.endswith(end) and place.removesuffix(end) != warehouse:
            old, new = place.removesuffix(end), warehouse
            if old.endswith("/tables") and new.endswith("/tables"):
                # beside the tables are the results of reconciliations
                old, new = old.removesuffix("/tables"), new.removesuffix("/tables")
            moved[old] = new
    return moved


def place_now(place: str, moved: dict[str, str]) -> str:
    """Return where something is now that was at a place; a place outside of what was moved stays as it is."""
    for old, new in moved.items():
        if place == old or place.startswith(f"{old}/"):
            return new + place.removeprefix(old)
    return place


def rows_of(connection, sql: str) -> list[tuple]:
    """Return the rows of a question to the metastore, every value as text."""
    statement = connection.createStatement()
    found, rows = statement.executeQuery(sql), []
    width = found.getMetaData().getColumnCount()
    while found.next():
        rows.append(tuple(found.getString(column) for column in range(1, width + 1)))
    statement.close()
    return rows


def _write(connection, sql: str, place: str, number: str, which: str) -> None:
    statement = connection.prepareStatement(f"{sql} and {which}" if which else sql)
    statement.setString(1, place)
    statement.setLong(2, int(number))
    statement.executeUpdate()
    statement.close()
