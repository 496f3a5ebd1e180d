"""Change rows of the lake by SQL in a database: `highwater patch`.

The chosen rows are loaded behind an updatable view, `highwater.<table>_patch`. What is inserted, updated and deleted
there goes into the changelog of the table, so an extraction lands it like any other change. Rows that are in the
database's own table are changed there, and nowhere else.
"""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from highwater.catalog.entities import declared_columns, settings_of
from highwater.catalog.feeds import Feed, declared_feeds, sql_text
from highwater.catalog.pending import merged_table, newest_batch_shown
from highwater.databases.capture_sql import CHANGELOG, RECORD_CHANGE, call_after_changes, same_key
from highwater.databases.captures import (
    PATCH_METHODS,
    Names,
    capture_of,
    changelog_tables,
    columns_of,
    entities_of_table,
    is_patched,
    landed_captures,
    names_of,
    record_capture,
    record_end,
    refuse_waiting,
)
from highwater.databases.capturing import create_objects
from highwater.databases.database import FORMS_OF_TEXT, Database, connection_settings, quoted, reason_of
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.state import forget_state, patch_mark, set_mark
from highwater.scaffold.add_table import Column
from highwater.spark.spark import quoted as quoted_in_spark

# what a column of the lake is in PostgreSQL
POSTGRES_TYPES = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "date": "date",
    "timestamp_ntz": "timestamp without time zone",
    "timestamp": "timestamp with time zone",
    "binary": "bytea",
    "string": "text",
}

# The application's own trigger is not taking a row away.
NOT_TAKEN = "current_setting('highwater.takes', true) is distinct from 'on'"

# What is behind the view; a truncate of it would be one of the whole table in the lake. The application's own trigger
# takes a row away that has become its own, and that is no change of the patch.
FUNCTION = (
    """
    create function {function}() returns trigger language plpgsql security definer
    {texts} as $patch$
    begin
        if tg_op = 'TRUNCATE' {or_no_insert} then
            raise exception '% is refused in a patch of {label}', tg_op using hint = '{hint}';
        end if;
        if current_setting('highwater.takes', true) = 'on' then
            return null;
        end if;
        {not_twice}"""
    + RECORD_CHANGE
    + """
        return null;
    end
    $patch$
"""
)

NOT_TWICE = """
        if tg_op <> 'DELETE' and exists (select 1 from {source} as own where {as_new}) then
            raise exception 'the row is in {label} too' using hint = 'Change it there; its changes are captured.';
        end if;
"""

# Before a row of the patch is locked: whoever writes the table has ended, or waits until this transaction has.
WAIT = """
    create function {function}() returns trigger language plpgsql security definer
    set search_path = pg_catalog as $patch$
    begin
        if {not_taken} then
            if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
                raise exception 'a patch of {label} is changed in transactions of the isolation read committed'
                using hint = 'Others do not see what was committed since they began.';
            end if;
            lock table {source} in share mode;
        end if;
        return null;
    end
    $patch$
"""

# On the application's table: a key that it inserts is its own from there.
TAKE_AWAY = """
    create function {function}() returns trigger language plpgsql security definer
    set search_path = pg_catalog as $patch$
    begin
        perform set_config('highwater.takes', 'on', true);
        delete from {rows} as patched where {as_new};
        perform set_config('highwater.takes', 'off', true);
        return null;
    end
    $patch$
"""


def patch(spark, name: str, where: str | None = None) -> list[str]:
    """Load the chosen rows of a table behind an updatable view in its database.

    Arguments:
        name: `<feed>.<table>`, of a feed of the format changelog. where: a condition in Spark's SQL over the columns
        of the table; not for a table that declares `insert_only: true`, whose view begins without rows.
    Returns: lines that say what was done, and what to do next.
    Raises: UsageError when the table is no table of a changelog, is being patched, is captured without a changelog,
        has changes that are not built yet, or when a chosen row is in the database's own table too.
    """
    feed, names, entity = patchable(name)
    merged_table(spark, entity)
    columns, names_of_key = declared_columns(entity)
    key = [column.field for column in columns if column.name in names_of_key]
    if len(f"{names.own}_patch_takes".encode()) > 63:
        raise UsageError(
            f"the name {names.own} is too long: PostgreSQL's names have 63 bytes, and _patch_takes is added."
        )
    insert_only = bool(settings_of(entity).get("insert_only"))
    if insert_only and where:
        raise UsageError(f"{entity} declares `insert_only: true`: no row of it can be changed. Leave --where out.")
    if not insert_only and not where:
        raise UsageError('say which rows: --where "order_id < 100", or --where true for all.')
    with Database(spark, feed.name) as database:
        if is_patched(database, names):
            raise UsageError(f"{name} is being patched already; end it first: highwater patch {name} --end")
        capture = capture_of(database, names)
        captured = capture is not None and capture.is_running
        if captured and capture.method == "row-version":
            raise UsageError(
                f"{name} is captured by row-version, without a changelog that a patch could be written to."
            )
        types = {column: data_type for column, data_type, _ in columns_of(database, names)}
        if captured and not types:
            raise UsageError(f"{names.source} is captured and gone: highwater extract {name}, then --disable.")
        if types and not captured:
            raise UsageError(
                f"{names.source} is there and not captured: a patch is for rows that live in the lake only. "
                f"Change the table, and: highwater extract --enable {name}"
            )
        if captured:
            refuse_waiting(database, names, name)
        _refuse_unbuilt(spark, feed, names, entity)
        try:
            chosen = spark.table(f"lake.{entity}").where(where or "false")
        except PySparkException as error:
            raise UsageError(f"--where {where}: {str(error).splitlines()[0]}") from None
        create_objects(database)
        behind = ", ".join(f"{quoted(c.field)} {types.get(c.field) or _postgres_type(c.data_type)}" for c in columns)
        database.run(f"create table {names.patch_rows} ({behind}, primary key ({', '.join(map(quoted, key))}))")
        # before the commit: of a patch that is killed from here on status tells, until --end
        set_mark(patch_mark(name))
        database.commit()
        try:
            _load(chosen, feed, names, columns)
            ((count,),) = database.rows(f"select count(*) from {names.patch_rows}")
            if captured:
                _take_away(database, names, key)
                # the trigger is there, so nobody writes the table until the end of this transaction
                refuse_waiting(database, names, name)
                _refuse_rows_of_both(database, names, name, key)
            else:
                database.run(CHANGELOG.format(changelog=names.changelog))
                landed = landed_captures(spark, feed, names.table)
                record_capture(database, names, PATCH_METHODS[insert_only], key, landed)
            _record_changes(database, names, name, entity, key, captured, insert_only)
        except Exception:
            database.rollback()
            database.run(f"drop table {names.patch_rows}")
            database.commit()
            forget_state(patch_mark(name))
            raise
        fields = ", ".join(quoted(column.field) for column in columns)
        database.run(f"create view {names.patch} as select {fields} from {names.patch_rows}")
        database.commit()
    rows = f"{int(count):,} row{'s'[: count != '1']}"
    return [
        f"{names.patch}: {rows} of {entity}. Insert, update and delete there; every change is recorded.",
        f"Then run: highwater extract {name} && highwater build --select +{entity} && highwater patch {name} --end",
    ]


def end(spark, name: str) -> str:
    """Remove the view, and what is behind it.

    Returns: a sentence that says so.
    Raises: UsageError when the table is not being patched, or its changes have not been extracted.
    """
    feed, names, _ = patchable(name)
    with Database(spark, feed.name) as database:
        if not is_patched(database, names):
            forget_state(patch_mark(name))
            raise UsageError(f"{name} is not being patched.")
        # nobody changes the rows until they are gone
        database.run(f"lock table {names.patch_rows} in share row exclusive mode")
        capture = capture_of(database, names)
        if capture and capture.is_running and capture.method in PATCH_METHODS:
            refuse_waiting(database, names, name)
            database.run(f"drop table {names.changelog}")
            record_end(database, names)
        database.run(f"drop view if exists {names.patch}")
        database.run(f"drop table {names.patch_rows}")
        for function in names.patch_functions:
            # with its triggers
            database.run(f"drop function if exists {function}() cascade")
        database.commit()
    forget_state(patch_mark(name))
    return f"{name}: the patch has ended; {names.patch} is gone, and the rows in the lake stay as they are."


def patchable(name: str) -> tuple[Feed, Names, str]:
    """Return feed, names in the database, and entity of a table that can be patched.

    Raises: UsageError when it is no table of a changelog; it says which ones there are.
    """
    feed_name, _, table = name.partition(".")
    feed = declared_feeds().get(feed_name)
    if feed is None or feed.format != "changelog" or table not in feed.tables:
        raise UsageError(
            f"{name} is no table of a feed of the format changelog; only those can be patched: {changelog_tables()}."
        )
    (entity,) = entities_of_table(feed_name, table)
    return feed, names_of(feed, table), entity


def _postgres_type(data_type: str) -> str:
    data_type = data_type.lower()
    if data_type.startswith("decimal"):
        return data_type.replace("decimal", "numeric")
    return POSTGRES_TYPES.get(data_type, data_type)


def _text(words: str) -> str:
    """Return words as they stand inside a text of a function; a percent sign is one of raise."""
    return words.replace("'", "''").replace("%", "%%")


def _refuse_unbuilt(spark, feed: Feed, names: Names, entity: str) -> None:
    """A row that is changed as it was a while ago would take newer values back."""
    log = f"lake.{entity}_changes"
    ((unbuilt,),) = spark.sql(
        f"""
        select
            (
                select coalesce(max(landing_batch), 0) from {feed.raw_table}
                where entry = 'record' and source_table = {sql_text(names.table)}
            ) > (select coalesce(max(landing_batch), 0) from {log} where feed = '{feed.name}')
            or (select coalesce(max(log_batch), 0) from {log} where verdict = 'applied')
            > {newest_batch_shown(spark, entity)}
        """
    ).collect()
    if unbuilt:
        raise UsageError(f"changes of {entity} have landed and are not built: highwater build --select +{entity}")


def _load(chosen, feed: Feed, names: Names, columns: list[Column]) -> None:
    named = chosen.selectExpr(
        *(f"{quoted_in_spark(column.mart_name)} as {quoted_in_spark(column.field)}" for column in columns)
    )
    # a text goes into a column of whatever type the table has
    options = connection_settings(feed.name) | {"dbtable": names.patch_rows, "stringtype": "unspecified"}
    try:
        named.write.format("jdbc").options(**options).mode("append").save()
    except (PySparkException, Py4JJavaError) as error:
        raise CheckError(f"the chosen rows were not loaded: {reason_of(error)}") from None


def _take_away(database: Database, names: Names, key: list[str]) -> None:
    database.run(
        TAKE_AWAY.format(
            function=names.patch_functions[2], rows=names.patch_rows, as_new=same_key(key, "patched", "new")
        )
    )
    database.run(
        f"create trigger highwater_patch_takes after insert or update on {names.source} "
        f"for each row execute function {names.patch_functions[2]}()"
    )


def _record_changes(database, names: Names, name: str, entity: str, key: list[str], captured, insert_only) -> None:
    """Make the triggers of what is behind the view."""
    record, wait, _ = names.patch_functions
    not_twice = NOT_TWICE.format(source=names.source, as_new=same_key(key, "own", "new"), label=_text(names.source))
    database.run(
        FUNCTION.format(
            function=record,
            texts=" ".join(FORMS_OF_TEXT),
            changelog=names.changelog,
            not_twice=not_twice if captured else "",
            or_no_insert="or tg_op <> 'INSERT' and current_setting('highwater.takes', true) is distinct from 'on'"
            if insert_only
            else "",
            label=_text(name),
            hint=_text(f"{entity} declares insert_only." if insert_only else "Delete the rows."),
        )
    )
    call_after_changes(database, names.patch_rows, "highwater_patch", record)
    if captured:
        database.run(WAIT.format(function=wait, source=names.source, label=_text(name), not_taken=NOT_TAKEN))
        database.run(
            f"create trigger highwater_patch_wait before insert or update or delete on {names.patch_rows} "
            f"for each statement execute function {wait}()"
        )


def _refuse_rows_of_both(database: Database, names: Names, name: str, key: list[str]) -> None:
    keys = ", ".join(map(quoted, key))
    both = database.rows(
        f"select count(*) over (), {keys} from {names.patch_rows} join {names.source} using ({keys}) limit 1"
    )
    if both:
        count, *values = both[0]
        raise UsageError(
            f"{int(count):,} of the chosen rows are in {names.source} too, for example "
            f"{', '.join(f'{field} = {value}' for field, value in zip(key, values, strict=True))}. "
            f"Change them there: the changes of {name} are captured."
        )
