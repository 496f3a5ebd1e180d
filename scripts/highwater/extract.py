"""Changes of a live PostgreSQL database: captured by triggers, landed once, removed when they have landed.

The changelog of a table is `highwater.<table>_changelog` in its database. An extraction marks what is committed there
with its own number, lands the marked rows under that number in one commit, and removes them. Whatever is killed, the
next one asks the raw table whether the marked rows have landed, so none is lost and none lands twice.
"""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from highwater import landing
from highwater.add_table import add_table, logged_tables
from highwater.database import Database, connection_settings, quoted
from highwater.errors import UsageError
from highwater.feeds import Feed, declared_feeds

SPARK_TYPES = {
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "real": "float",
    "double precision": "double",
    "boolean": "boolean",
    "date": "date",
    "timestamp without time zone": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
    "bytea": "binary",
}

CAPTURES = """
    create table if not exists highwater.captures (
        table_schema text,
        table_name text,
        capture bigint not null,
        method text not null,
        key_columns text not null,
        enabled_at timestamptz not null default clock_timestamp(),
        disabled_at timestamptz,
        primary key (table_schema, table_name)
    )
"""

CHANGELOG = """
    create table {changelog} (
        change_number bigint generated always as identity primary key,
        change_type text not null,
        changed_at timestamptz not null default clock_timestamp(),
        row_before jsonb,
        row_after jsonb,
        extraction bigint
    )
"""

# Whoever changes the table needs no right on the changelog: the function has its owner's.
FUNCTION = """
    create function {function}() returns trigger language plpgsql security definer
    set search_path = pg_catalog set timezone = 'UTC' as $capture$
    begin
        if tg_op = 'TRUNCATE' then
            insert into {changelog} (change_type) values ('truncate');
        else
            insert into {changelog} (change_type, row_before, row_after) values (
                lower(tg_op),
                case when tg_op <> 'INSERT' then to_jsonb(old) end,
                case when tg_op <> 'DELETE' then to_jsonb(new) end
            );
        end if;
        return null;
    end
    $capture$
"""

# A record lands as one JSON document with every value as text, so that no number passes through a double.
RECORD = """
    jsonb_build_object(
        'capture', '{capture}',
        'change_number', {number}::text,
        'change_type', {kind},
        'changed_at', (extract(epoch from {at}) * 1000)::bigint::text,
        'before', (select jsonb_object_agg(key, value) from jsonb_each_text({before})),
        'after', (select jsonb_object_agg(key, value) from jsonb_each_text({after}))
    )::text
"""


@dataclass(frozen=True)
class Names:
    """How the objects of a captured table are called in the database, ready for SQL."""

    schema: str
    table: str

    @property
    def source(self) -> str:
        """The table of the application."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"

    @property
    def own(self) -> str:
        """What is in front of the names of its objects; another schema than public is part of it."""
        return self.table if self.schema == "public" else f"{self.schema}.{self.table}"

    @property
    def changelog(self) -> str:
        """Where its changes wait."""
        return f"highwater.{quoted(self.own + '_changelog')}"

    @property
    def function(self) -> str:
        """What its triggers call."""
        return f"highwater.{quoted(self.own + '_capture')}"


@dataclass(frozen=True)
class Capture:
    """A table that is captured: the number of its capture, and since when."""

    number: int
    method: str
    enabled_at: str


def _split(name: str) -> tuple[str, str]:
    feed, dot, table = name.partition(".")
    if not dot:
        raise UsageError(f"{name!r} is not written as FEED.TABLE, for example changelog_shop.orders.")
    return feed, table


def _names(feed: Feed | None, table: str) -> Names:
    return Names((feed and feed.source_schema) or "public", table)


def _capture(database: Database, names: Names) -> Capture | None:
    (is_there,) = database.rows("select to_regclass('highwater.captures') is not null")[0]
    found = is_there == "t" and database.rows(
        "select capture, method, to_char(enabled_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') "
        "from highwater.captures where table_schema = ? and table_name = ? and disabled_at is null",
        names.schema,
        names.table,
    )
    if not found:
        return None
    number, method, at = found[0]
    return Capture(int(number), method, at)


def spark_type(postgres_type: str) -> str:
    """Return the type that a column of PostgreSQL has in the lake; what has no equal there stays text."""
    digits = re.fullmatch(r"numeric\((\d+),(\d+)\)", postgres_type)
    if digits and int(digits[1]) <= 38:
        return f"decimal({digits[1]},{digits[2]})"
    return SPARK_TYPES.get(re.sub(r"\(\d+\)", "", postgres_type), "string")


def enable(spark, name: str, method: str = "changelog", key: str | None = None) -> list[str]:
    """Capture the changes of a table from now on, and land the rows that it has.

    Arguments:
        name: `<feed>.<table>`. method: how; there is `changelog`. key: `column,…`; by default the primary key.
    Returns: lines that say what was done.
    Raises: UsageError when the table is not there, has no key or is captured already; nothing is created then.
    """
    feed, table = _split(name)
    declared = declared_feeds().get(feed)
    names = _names(declared, table)
    lines = []
    with Database(spark, feed) as database:
        capture = _capture(database, names)
        if capture:
            raise UsageError(f"{name} is captured already, by {capture.method} since {capture.enabled_at} UTC.")
        columns = database.rows(
            "select attname, format_type(atttypid, atttypmod), coalesce(attnum = any(indkey), false) from pg_attribute "
            "left join pg_index on indrelid = attrelid and indisprimary "
            "where attrelid = to_regclass(?) and attnum > 0 and not attisdropped order by attnum",
            names.source,
        )
        if not columns:
            raise UsageError(f"the database of {feed} has no table {names.source} that this user can see.")
        types = {column: spark_type(data_type) for column, data_type, _ in columns}
        chosen = [part.strip() for part in key.split(",")] if key else [c for c, _, is_key in columns if is_key == "t"]
        if not chosen:
            raise UsageError(
                f"{names.source} has no primary key; say which columns identify a row, for example "
                f"--key {columns[0][0]}."
            )
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
                ",".join(f"{column}:{types[column]}" for column in chosen),
                ",".join(f"{column}:{kind}" for column, kind in types.items() if column not in chosen),
                "changelog",
            )
            lines += [str(path) for path in written]
        database.run("create schema if not exists highwater")
        database.run(CAPTURES)
        database.run(CHANGELOG.format(changelog=names.changelog))
        database.run(FUNCTION.format(function=names.function, changelog=names.changelog))
        database.run(
            f"create trigger highwater_capture after insert or update or delete on {names.source} "
            f"for each row execute function {names.function}()"
        )
        database.run(
            f"create trigger highwater_capture_truncate after truncate on {names.source} "
            f"for each statement execute function {names.function}()"
        )
        database.run(
            "insert into highwater.captures (table_schema, table_name, capture, method, key_columns) "
            "values (?, ?, 1, ?, ?) on conflict (table_schema, table_name) do update set "
            "capture = captures.capture + 1, method = excluded.method, key_columns = excluded.key_columns, "
            "enabled_at = clock_timestamp(), disabled_at = null",
            names.schema,
            names.table,
            method,
            ",".join(chosen),
        )
        database.commit()
    lines.append(f"{name}: changes are captured in {names.changelog} from now on.")
    entities = [entity for entity, sources in logged_tables() if (feed, table) in sources]
    return [*lines, *extract(spark, name), f"Now run: highwater build --select {' '.join(f'+{e}' for e in entities)}"]


def extract(spark, name: str) -> list[str]:
    """Land what is committed in the changelog of a table, and remove it there.

    Arguments:
        name: `<feed>.<table>`.
    Returns: a line for each batch that landed, or one that says that nothing was new.
    Raises: UsageError when the table is not captured, or another extraction of it is running.
    """
    name_of_feed, table = _split(name)
    feed = declared_feeds().get(name_of_feed)
    if feed is None or feed.format != "changelog" or table not in feed.tables:
        raise UsageError(f"{name} is not captured; begin with: highwater extract --enable {name}")
    names = _names(feed, table)
    lines = []
    with Database(spark, name_of_feed) as database:
        capture = _capture(database, names)
        if capture is None:
            raise UsageError(f"{name} is not captured; begin with: highwater extract --enable {name}")
        lock = "select pg_try_advisory_lock(hashtextextended(?, 0))"
        if database.rows(lock, f"highwater {names.changelog}") != [("t",)]:
            raise UsageError(f"another extraction of {name} is running; wait for it to end.")
        landing.create_raw_table(spark, feed)
        folder = f"{feed.name}/{table}/capture-{capture.number:03}"
        landed = {
            row.source_file
            for row in spark.sql(
                f"select source_file from {feed.raw_table} where entry = 'file' and source_file like '{folder}/%'"
            ).collect()
        }
        if f"{folder}/baseline" not in landed:
            # what changes meanwhile is in the changelog, and higher
            lines.append(_land(spark, feed, table, f"{folder}/baseline", _baseline(names, capture)))
        numbers = [int(file.rpartition("-")[2]) for file in landed if not file.endswith("/baseline")]
        last = max(numbers, default=0)
        # landed before, and not removed then
        database.run(f"delete from {names.changelog} where extraction <= ?", last)
        database.run(f"update {names.changelog} set extraction = ? where extraction is null", last + 1)
        ((waiting, highest),) = database.rows(
            f"select count(*), max(change_number) from {names.changelog} where extraction = {last + 1}"
        )
        database.commit()
        if int(waiting):
            file = f"{folder}/extraction-{last + 1:09}"
            lines.append(_land(spark, feed, table, file, _changes(names, capture, last + 1), highest))
            database.run(f"delete from {names.changelog} where extraction <= ?", last + 1)
            database.commit()
    return lines or [f"{name}: nothing new"]


def disable(spark, name: str) -> str:
    """Remove what captures the changes of a table.

    Returns: a sentence that says so.
    Raises: UsageError while changes wait in the changelog, or when the table is not captured.
    """
    feed, table = _split(name)
    names = _names(declared_feeds().get(feed), table)
    with Database(spark, feed) as database:
        capture = _capture(database, names)
        if capture is None:
            raise UsageError(f"{name} is not captured.")
        # nobody changes the table until the triggers are gone
        database.run(f"lock table {names.source} in share row exclusive mode")
        ((waiting,),) = database.rows(f"select count(*) from {names.changelog}")
        if int(waiting):
            raise UsageError(
                f"{int(waiting):,} changes of {name} wait to be extracted; land them first: highwater extract {name}"
            )
        database.run(f"drop trigger highwater_capture on {names.source}")
        database.run(f"drop trigger highwater_capture_truncate on {names.source}")
        database.run(f"drop function {names.function}()")
        database.run(f"drop table {names.changelog}")
        database.run(
            "update highwater.captures set disabled_at = clock_timestamp() where table_schema = ? and table_name = ?",
            names.schema,
            names.table,
        )
        database.commit()
    return f"{name}: its changes are no longer captured. Its tables in the lake stay as they are."


def _baseline(names: Names, capture: Capture) -> str:
    """Every row of the table; a later capture first empties the table of what an earlier one left."""
    record = RECORD.format(
        capture=capture.number, number=0, kind="'baseline'", at="now()", before="null", after="to_jsonb(source)"
    )
    rows = f"select row_number() over () + 1 as source_line, {record} as record from {names.source} as source"
    if capture.number == 1:
        return rows
    emptied = RECORD.format(
        capture=capture.number, number=0, kind="'truncate'", at="now()", before="null", after="null"
    )
    return f"select 1 as source_line, {emptied} as record union all {rows}"


def _changes(names: Names, capture: Capture, extraction: int) -> str:
    record = RECORD.format(
        capture=capture.number,
        number="change_number",
        kind="change_type",
        at="changed_at",
        before="row_before",
        after="row_after",
    )
    return (
        f"select row_number() over (order by change_number) as source_line, {record} as record "
        f"from {names.changelog} where extraction = {extraction}"
    )


def _land(spark, feed: Feed, table: str, file: str, query: str, position: str | None = None) -> str:
    """Land the rows of a query as the records of one file, in one commit; return the summary line."""
    from pyspark.sql import functions as f

    started = time.monotonic()
    number, at = landing.next_batch(spark, feed)
    reader = spark.read.format("jdbc").options(**connection_settings(feed.name))
    frame = reader.options(query=query, fetchsize="10000", sessionInitStatement="set timezone = 'UTC'").load()
    frame = frame.persist()
    try:
        count = frame.count()
        entry = landing.entry_of_file(spark, "file", table, file, file_records=count, source_position=position)
        records = frame.select(
            f.lit("record").alias("entry"),
            f.lit(table).alias("source_table"),
            f.lit(file).alias("source_file"),
            f.col("source_line").cast("int"),
            f.encode("record", "utf-8").alias("record"),
        )
        landing.append(entry.unionByName(records, allowMissingColumns=True), feed, number, at)
    finally:
        frame.unpersist()
    what = "row" if file.endswith("/baseline") else "change"
    return f"{file}: {count:,} {what}{'s'[: count != 1]}, {time.monotonic() - started:.1f} s"
