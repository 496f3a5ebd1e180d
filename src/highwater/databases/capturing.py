"""The begin and the end of the capture of a table."""

from pathlib import Path

from highwater.catalog.columns import as_typed
from highwater.catalog.entities import declaration_of, settings_of
from highwater.catalog.feeds import declared_feeds
from highwater.catalog.names import split_name
from highwater.catalog.source_types import source_type
from highwater.databases.capture_sql import (
    CAPTURES,
    CHANGELOG,
    FUNCTIONS,
    IMAGE_OF,
    WRITTEN_BY,
    call_after_changes,
    record_rows,
    spare_the_look,
    texts_of,
)
from highwater.databases.captures import (
    Names,
    capture_of,
    columns_of,
    entities_of_table,
    is_patched,
    landed_captures,
    names_of,
    record_capture,
    record_end,
    refuse_waiting,
    remembers_landed,
)
from highwater.databases.database import Database
from highwater.databases.extract import extract, gap, highest_position, landed_files
from highwater.runtime.errors import UsageError
from highwater.runtime.state import disabled_mark, forget_state, set_mark
from highwater.scaffold.add_table import add_table

# Triggers run in the order of their names: a change that another trigger makes in turn is recorded after its cause.
TRIGGER = "!highwater_capture"


def enable(spark, name: str, method: str = "changelog", key: str | None = None) -> list[str]:
    """Capture the changes of a table from now on, and land the rows that it has.

    Arguments:
        name: `<feed>.<table>`. method: `changelog`; `changelog-insert` for a table whose rows never change;
        `row-version`, without triggers, which sees no deletes.
        key: `column,…`; by default the primary key.
    Returns: lines that say what was done.
    Raises: UsageError when the table is not there, has no key, is captured already, or was captured before and is to
        be insert-only; nothing is created then.
    """
    feed, table = split_name(name)
    declared = declared_feeds().get(feed)
    names = names_of(declared, table)
    lines = []
    with Database(spark, feed) as database:
        capture = capture_of(database, names)
        if capture and capture.is_running:
            raise UsageError(f"{name} is captured already, by {capture.method} since {capture.enabled_at} UTC.")
        for entity in entities_of_table(feed, table):
            if method != "changelog-insert" and settings_of(entity).get("insert_only"):
                raise UsageError(
                    f"{declaration_of(entity)} declares `insert_only: true`. Declare `truncates: true` in its place, "
                    f"take the test has_inserts_only out, and begin again with --method {method}."
                )
        landed = landed_captures(spark, declared, table)
        if (capture or landed) and method == "changelog-insert":
            raise UsageError(
                f"{name} was captured before. Its rows would be inserted a second time, which an insert-only table "
                "refuses; use --method changelog."
            )
        columns = columns_of(database, names)
        if not columns:
            raise UsageError(f"the database of {feed} has no table {names.source} that this user can see.")
        types = {column: source_type(data_type, "postgresql").spark for column, data_type, _ in columns}
        chosen = [part.strip() for part in key.split(",")] if key else [c for c, _, is_key in columns if is_key == "t"]
        if not chosen:
            raise UsageError(
                f"{names.source} has no primary key; say which columns identify a row, for example "
                f"--key {columns[0][0]}."
            )
        if method in FUNCTIONS:
            _refuse_what_triggers_cannot_see(database, names)
        unknown = [column for column in chosen if column not in types]
        if unknown:
            raise UsageError(f"{names.source} has no column {unknown[0]!r}; it has: {', '.join(types)}.")
        if declared is None or table not in declared.tables:
            system = feed.partition("_")[2]
            if Path(f"models/changes/{system}/{table}_changes.sql").exists():
                raise UsageError(
                    f"the system {system} has a table {table} already, from another feed, whose order cannot be "
                    f"compared with this one; give the system another name: changelog_<name>.{table}."
                )
            written = add_table(
                name,
                as_typed((column, types[column]) for column in chosen),
                as_typed((column, kind) for column, kind in types.items() if column not in chosen),
                "changelog",
                insert_only=method == "changelog-insert",
            )
            lines += [f"wrote {path}" for path in written]
        create_objects(database)
        if method in FUNCTIONS:
            database.run(CHANGELOG.format(changelog=names.changelog))
            primary = [column for column, _, is_key in columns if is_key == "t"]
            function = FUNCTIONS[method].format(
                function=names.function, changelog=names.changelog, record_rows=record_rows(names, primary)
            )
            database.run(spare_the_look(function, texts_of(database, names, "source")))
            call_after_changes(database, names.source, TRIGGER, names.function)
        record_capture(database, names, method, chosen, landed)
        database.commit()
    forget_state(disabled_mark(name))
    captured = f"changes are captured in {names.changelog} from now on."
    if method == "row-version":
        captured = "rows are found by the transaction that wrote them; deletes are not seen."
    lines.append(f"{name}: {captured}")
    selected = " ".join(f"+{entity}" for entity in entities_of_table(feed, table))
    return [*lines, *extract(spark, name), f"Now run: highwater build --select {selected}"]


def _refuse_what_triggers_cannot_see(database: Database, names: Names) -> None:
    if database.rows(
        "select 1 from pg_index where indrelid = to_regclass(?) and indisprimary and not indimmediate", names.source
    ):
        raise UsageError(
            f"the primary key of {names.source} is deferrable: two rows may share a key for a while, and the order of "
            "their changes does not tell which one stays. Declare it not deferrable."
        )
    virtual = database.rows(
        "select attname from pg_attribute where attrelid = to_regclass(?) and attgenerated = 'v' order by attnum",
        names.source,
    )
    if virtual:
        raise UsageError(
            f"{names.source}: the column {virtual[0][0]} is generated and not stored, so triggers do not see its "
            "values. Declare it stored."
        )


def disable(spark, name: str) -> str:
    """Remove what captures the changes of a table.

    Returns: a sentence that says so.
    Raises: UsageError while changes wait in the changelog (unless raw lacks what was let go, which only a new capture
        repairs), or rows have been written since they were extracted by
        row-version; when the table is not captured.
    """
    feed, table = split_name(name)
    declared = declared_feeds().get(feed)
    names = names_of(declared, table)
    with Database(spark, feed) as database:
        capture = capture_of(database, names)
        if capture is None or not capture.is_running:
            raise UsageError(f"{name} is not captured.")
        if is_patched(database, names):
            raise UsageError(f"{name} is being patched; end it first: highwater patch {name} --end")
        if capture.method in FUNCTIONS:
            if database.has(names.source):
                # nobody changes the table until the triggers are gone
                database.run(f"lock table {names.source} in share row exclusive mode")
            is_known = declared is not None and spark.catalog.tableExists(declared.raw_table)
            landed = landed_files(spark, declared, table, capture) if is_known else {}
            if not landed or gap(database, declared, table, capture, landed) is None:
                refuse_waiting(database, names, name)
            # with its triggers
            database.run(f"drop function {names.function}() cascade")
            database.run(f"drop table {names.changelog}")
        elif database.has(names.source):
            since = highest_position(landed_files(spark, declared, table, capture))
            ((written,),) = database.rows(f"select count(*) from {names.source} where {WRITTEN_BY} >= {since}")
            if int(written):
                some = f"{int(written):,} row{'s'[: int(written) != 1]}"
                raise UsageError(
                    f"{some} of {name} may have been written since the last extraction; land them first: "
                    f"highwater extract {name} (again where a transaction was open meanwhile)"
                )
        record_end(database, names)
        database.commit()
    set_mark(disabled_mark(name))
    return f"{name}: its changes are no longer captured. Its tables in the lake stay as they are."


def create_objects(database: Database) -> None:
    """Create what all captures of a database share, where it is missing; an older version had less of it."""
    database.run("create schema if not exists highwater")
    database.run(CAPTURES)
    if not remembers_landed(database):
        database.run("alter table highwater.captures add column landed bigint")
    if database.rows("select to_regprocedure('highwater.image_of(anyelement,oid)') is null") == [("t",)]:
        database.run(IMAGE_OF)
