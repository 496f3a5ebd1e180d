"""Changes of a live PostgreSQL database: captured by triggers, landed once, removed when they have landed.

The changelog of a table is `highwater.<table>_changelog` in its database. An extraction marks what is committed there
with its own number, lands the marked rows under that number in one commit, and removes them. Whatever is killed, the
next one asks the raw table whether the marked rows have landed, so none is lost and none lands twice.
"""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from highwater.catalog.columns import as_typed
from highwater.catalog.entities import declaration_of, logged_tables, settings_of
from highwater.catalog.feeds import Feed, declared_feeds
from highwater.catalog.source_types import source_type
from highwater.databases.database import FORMS_OF_TEXT, Database, connection_settings, quoted, reason_of
from highwater.landing import raw_table
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.project import disabled_mark, set_mark
from highwater.scaffold.add_table import add_table

CAPTURES = """
    create table if not exists highwater.captures (
        table_schema text,
        table_name text,
        capture bigint not null,
        method text not null,
        key_columns text not null,
        enabled_at timestamptz not null default clock_timestamp(),
        disabled_at timestamptz,
        landed bigint,
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

# One text for each value, of a capture and of an export: that of PostgreSQL's JSON. What is JSON itself keeps its own
# letters: a NULL in it is none of the column, and a text has quotes.
TEXTS = """
    select
        attname,
        attnum,
        is_json,
        case
            when is_json then format('%s.%I::text', '{row}', attname)
            else format('to_jsonb(%s.%I) #>> {nothing}', '{row}', attname)
        end as value
    from (
        select
            attname,
            attnum,
            coalesce(nullif(typbasetype, 0), pg_type.oid)
            in ('json'::regtype, 'jsonb'::regtype, 'json[]'::regtype, 'jsonb[]'::regtype) as is_json
        from pg_attribute
        inner join pg_type on pg_type.oid = atttypid
        where attrelid = {relation} and attnum > 0 and not attisdropped
    ) as columns_of_table
"""
NOTHING = "''{}''"

# What a trigger records of a row whose columns may be JSON: it looks at them as they are now.
IMAGE_OF = f"""
    create function highwater.image_of(own anyelement, relation oid) returns jsonb language plpgsql stable as $image$
    declare
        names text;
        texts text;
        image jsonb;
    begin
        select string_agg(quote_literal(attname), ', ' order by attnum), string_agg(value, ', ' order by attnum)
        into names, texts
        from ({TEXTS.format(row="($1)", relation="relation", nothing=NOTHING)}) as texts_of_columns
        having bool_or(is_json);
        if texts is null then
            return to_jsonb(own);
        end if;
        execute 'select jsonb_object(array[' || names || '], array[' || texts || '])' into image using own;
        return image;
    end
    $image$
"""

RECORD_CHANGE = """
            insert into {changelog} (change_type, row_before, row_after) values (
                lower(tg_op),
                case when tg_op <> 'INSERT' then highwater.image_of(old, tg_relid) end,
                case when tg_op <> 'DELETE' then highwater.image_of(new, tg_relid) end
            );
"""

# Whoever changes the table may have set them to anything.
SET_TEXTS = " ".join(FORMS_OF_TEXT)

# Triggers run in the order of their names: a change that another trigger makes in turn is recorded after its cause.
TRIGGER = "!highwater_capture"

# A row that a trigger changes in turn may be one whose own change is recorded after that, as it was before. From the
# first change in turn until its transaction ends, what is recorded is therefore how the rows of the keys are now.
RECORD_ROWS = """
        elsif pg_trigger_depth() > 1 or current_setting('highwater.in_turn', true) = 'on' then
            perform set_config('highwater.in_turn', 'on', true);
            if tg_op = 'DELETE' or tg_op = 'UPDATE' and not ({same_key}) then
                row_now := (select highwater.image_of(own.*, tg_relid) from {source} as own where {as_old});
                insert into {changelog} (change_type, row_before, row_after)
                values (
                    case when row_now is null then 'delete' else 'update' end,
                    highwater.image_of(old, tg_relid),
                    row_now
                );
            end if;
            if tg_op <> 'DELETE' then
                row_now := (select highwater.image_of(own.*, tg_relid) from {source} as own where {as_new});
                insert into {changelog} (change_type, row_before, row_after)
                values (
                    case when row_now is null then 'delete' else lower(tg_op) end,
                    highwater.image_of(new, tg_relid),
                    row_now
                );
            end if;
"""

# Whoever changes the table needs no right on the changelog: the function has its owner's.
FUNCTION = (
    f"""
    create function {{function}}() returns trigger language plpgsql security definer
    {SET_TEXTS} as $capture$
    declare
        row_now jsonb;
    begin
        if tg_op = 'TRUNCATE' then
            insert into {{changelog}} (change_type) values ('truncate');
        {{record_rows}}
        else"""
    + RECORD_CHANGE
    + """
        end if;
        return null;
    end
    $capture$
"""
)

# An insert-only capture refuses what it could not show.
INSERTS = f"""
    create function {{function}}() returns trigger language plpgsql security definer
    {SET_TEXTS} as $capture$
    begin
        if tg_op <> 'INSERT' then
            raise exception '%.% is captured as insert-only by highwater: % is refused',
                tg_table_schema, tg_table_name, tg_op
            using hint = 'Capture it by the method changelog to change and delete rows.';
        end if;
        insert into {{changelog}} (change_type, row_after) values ('insert', highwater.image_of(new, tg_relid));
        return null;
    end
    $capture$
"""

FUNCTIONS = {"changelog": FUNCTION, "changelog-insert": INSERTS}

# A table that lives in the lake only, while it is patched; the second one is for tables whose rows never change.
PATCH_METHODS = ("patch", "patch-insert")

# The transaction that wrote a row, with the epoch that its 32 bits lack. A row that nobody has touched for 2^32
# transactions counts as new once more, and is only extracted again.
WRITTEN_BY = """
    case
        when xmin::text::bigint < 3 then 0
        when xmin::text::bigint > mod(pg_snapshot_xmax(pg_current_snapshot())::text::bigint, 4294967296)
            then (pg_snapshot_xmax(pg_current_snapshot())::text::bigint / 4294967296 - 1) * 4294967296
        else pg_snapshot_xmax(pg_current_snapshot())::text::bigint / 4294967296 * 4294967296
    end + xmin::text::bigint
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

    def _named(self, suffix: str) -> str:
        return f"highwater.{quoted(self.own + suffix)}"

    @property
    def changelog(self) -> str:
        """Where its changes wait."""
        return self._named("_changelog")

    @property
    def function(self) -> str:
        """What its triggers call."""
        return self._named("_capture")

    @property
    def patch(self) -> str:
        """The view by which rows of the lake are changed."""
        return self._named("_patch")

    @property
    def patch_rows(self) -> str:
        """What is behind that view."""
        return self._named("_patch_rows")

    @property
    def patch_functions(self) -> list[str]:
        """What records changes of the patch, what waits for the table's writers, what takes rows away."""
        return [self._named(suffix) for suffix in ("_patch_record", "_patch_wait", "_patch_takes")]


@dataclass(frozen=True)
class Capture:
    """A table that is captured, or was: the number of its capture, since when, whether it still runs."""

    number: int
    method: str
    enabled_at: str
    is_running: bool


@dataclass(frozen=True)
class Batch:
    """What lands as one file: the query of its records in the database, the position at the source it reaches."""

    table: str
    file: str
    query: str
    position: str | None = None


def split_name(name: str) -> tuple[str, str]:
    """Return feed and table of `<feed>.<table>`."""
    feed, dot, table = name.partition(".")
    if not dot:
        raise UsageError(f"{name!r} is not written as FEED.TABLE, for example changelog_shop.orders.")
    return feed, table


def names_of(feed: Feed | None, table: str) -> Names:
    """Return how the objects of a table of a feed are called."""
    return Names((feed and feed.source_schema) or "public", table)


def entities_of(feed: str, table: str) -> list[str]:
    """Return the entities that a table of a feed goes into."""
    return [entity for entity, sources in logged_tables() if (feed, table) in sources]


def capture_of(database: Database, names: Names) -> Capture | None:
    """Return the newest capture of a table, also one that has ended; None: it never was captured."""
    found = database.has("highwater.captures") and database.rows(
        "select capture, method, to_char(enabled_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'), disabled_at is null "
        "from highwater.captures where table_schema = ? and table_name = ?",
        names.schema,
        names.table,
    )
    if not found:
        return None
    number, method, at, is_running = found[0]
    return Capture(int(number), method, at, is_running == "t")


def landed_captures(spark, feed: Feed | None, table: str) -> int:
    """Return the highest number of a capture of a table that has landed, whatever the database remembers; 0: none."""
    if feed is None or not spark.catalog.tableExists(feed.raw_table):
        return 0
    number = "cast(regexp_extract(source_file, '/capture-([0-9]+)/') as int)"
    return spark.sql(
        f"select coalesce(max({number}), 0) from {feed.raw_table} "
        f"where entry = 'file' and startswith(source_file, '{feed.name}/{table}/capture-')"
    ).first()[0]


def is_patched(database: Database, names: Names) -> bool:
    """Return whether rows of a table are behind the view of a patch, or were when one was killed."""
    return database.has(names.patch_rows)


def record_capture(database: Database, names: Names, method: str, key: list[str], landed: int) -> None:
    """Begin a capture of a table: its number is one more than any before, here or landed."""
    database.run(
        "insert into highwater.captures (table_schema, table_name, capture, method, key_columns, landed) "
        f"values (?, ?, {landed} + 1, ?, ?, 0) on conflict (table_schema, table_name) do update set "
        f"capture = greatest(captures.capture, {landed}) + 1, method = excluded.method, "
        "key_columns = excluded.key_columns, "
        "enabled_at = clock_timestamp(), disabled_at = null, landed = 0",
        names.schema,
        names.table,
        method,
        ",".join(key),
    )


def record_end(database: Database, names: Names) -> None:
    """End the running capture of a table."""
    database.run(
        "update highwater.captures set disabled_at = clock_timestamp() where table_schema = ? and table_name = ?",
        names.schema,
        names.table,
    )


def columns_of(database: Database, names: Names) -> list[tuple[str, str, str]]:
    """Return name, type, and `t` or `f` for being of the primary key, of each column; none: there is no such table."""
    return database.rows(
        "select attname, format_type(atttypid, atttypmod), coalesce(attnum = any(indkey), false) from pg_attribute "
        "left join pg_index on indrelid = attrelid and indisprimary "
        "where attrelid = to_regclass(?) and attnum > 0 and not attisdropped order by attnum",
        names.source,
    )


def create_objects(database: Database) -> None:
    """Create what all captures of a database share, where it is missing; an older version had less of it."""
    database.run("create schema if not exists highwater")
    database.run(CAPTURES)
    if not remembers_landed(database):
        database.run("alter table highwater.captures add column landed bigint")
    if database.rows("select to_regprocedure('highwater.image_of(anyelement,oid)') is null") == [("t",)]:
        database.run(IMAGE_OF)


def remembers_landed(database: Database) -> bool:
    """Return whether the database knows up to which number changes have landed; an older version's does not."""
    return bool(
        database.rows(
            "select 1 from pg_attribute where attrelid = to_regclass('highwater.captures') and attname = 'landed'"
        )
    )


def landed_number(database: Database, names: Names) -> int | None:
    """Return up to which number changes of a table have landed, as the database knows it; None: it does not."""
    if not remembers_landed(database):
        return None
    ((landed,),) = database.rows(
        "select landed from highwater.captures where table_schema = ? and table_name = ?", names.schema, names.table
    )
    return None if landed is None else int(landed)


def texts_of(database: Database, names: Names, row: str) -> list[tuple[str, str, str]]:
    """Return name, `t` or `f` for being JSON, and the SQL of the text of each column, as captures and exports have it.

    Arguments:
        row: what the row is called in the SQL.
    """
    texts = TEXTS.format(row=row, relation="to_regclass(?)", nothing=NOTHING)
    return database.rows(f"select attname, is_json, value from ({texts}) as texts order by attnum", names.source)


def spare_the_look(function: str, texts: list[tuple[str, str, str]]) -> str:
    """Return a function of a trigger that looks at the columns only of a row that has others than these.

    A look costs several times what the rest of the trigger does.

    Arguments:
        texts: the columns of the table, see texts_of; one that is JSON needs the look.
    """
    if any(is_json == "t" for _, is_json, _ in texts):
        return function
    fields = ", ".join("'" + field.replace("'", "''") + "'" for field, _, _ in texts)
    return re.sub(
        r"highwater\.image_of\((own\.\*|old|new), tg_relid\)",
        lambda found: (
            f"case when to_jsonb({found[1]}) - array[{fields}]::text[] = '{{}}' "
            f"then to_jsonb({found[1]}) else {found[0]} end"
        ),
        function,
    )


def _image(database: Database, names: Names) -> str:
    """Return the SQL of what a record holds of a row of `source`: the same as what a trigger records."""
    texts = texts_of(database, names, "source")
    if all(is_json == "f" for _, is_json, _ in texts):
        return "to_jsonb(source.*)"
    fields = ", ".join("'" + field.replace("'", "''") + "'" for field, _, _ in texts)
    return f"jsonb_object(array[{fields}], array[{', '.join(value for _, _, value in texts)}])"


def call_after_changes(database: Database, table: str, trigger: str, function: str) -> None:
    """Make the triggers that call a function after every changed row of a table, and after it is truncated."""
    database.run(
        f"create trigger {quoted(trigger)} after insert or update or delete on {table} "
        f"for each row execute function {function}()"
    )
    database.run(
        f"create trigger {quoted(trigger + '_truncate')} after truncate on {table} "
        f"for each statement execute function {function}()"
    )


def refuse_waiting(database: Database, names: Names, name: str) -> None:
    """Raise UsageError while changes wait in the changelog of a table."""
    ((waiting,),) = database.rows(f"select count(*) from {names.changelog}")
    if int(waiting):
        some, wait = ("1 change", "waits") if waiting == "1" else (f"{int(waiting):,} changes", "wait")
        raise UsageError(f"{some} of {name} {wait} to be extracted; land them first: highwater extract {name}")


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
        for entity in entities_of(feed, table):
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
            _refuse_what_triggers_cannot_tell(database, names)
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
                function=names.function, changelog=names.changelog, record_rows=_record_rows(names, primary)
            )
            database.run(spare_the_look(function, texts_of(database, names, "source")))
            call_after_changes(database, names.source, TRIGGER, names.function)
        record_capture(database, names, method, chosen, landed)
        database.commit()
    disabled_mark(name).unlink(missing_ok=True)
    captured = f"changes are captured in {names.changelog} from now on."
    if method == "row-version":
        captured = "rows are found by the transaction that wrote them; deletes are not seen."
    lines.append(f"{name}: {captured}")
    selected = " ".join(f"+{entity}" for entity in entities_of(feed, table))
    return [*lines, *extract(spark, name), f"Now run: highwater build --select {selected}"]


def same_key(key: list[str], left: str, right: str) -> str:
    """Return the condition that two rows have the same values in the columns of a key, none of which is null."""
    return " and ".join(f"{left}.{quoted(field)} = {right}.{quoted(field)}" for field in key)


def _record_rows(names: Names, primary_key: list[str]) -> str:
    """Return the part of a trigger for changes in turn; a table without a primary key has none."""
    if not primary_key:
        return ""
    return RECORD_ROWS.format(
        source=names.source,
        changelog=names.changelog,
        same_key=same_key(primary_key, "old", "new"),
        as_old=same_key(primary_key, "own", "old"),
        as_new=same_key(primary_key, "own", "new"),
    )


def _refuse_what_triggers_cannot_tell(database: Database, names: Names) -> None:
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


def extract(spark, *names: str) -> list[str]:
    """Land what is committed in the changelogs of tables, and remove it there.

    Tables of one feed are extracted as of one moment of their database and land by one commit, so a transaction is
    there in all of them or in none.

    Arguments:
        names: `<feed>.<table>`; a `<feed>` alone stands for every table of it that is captured.
    Returns: a line for each batch of a table that landed, or one that says that nothing was new.
    Raises: UsageError when a table is not captured, or another extraction of it is running; CheckError when raw lacks
        changes that the database has let go; nothing is landed then.
    """
    lines = []
    for feed, tables in chosen_tables(names):
        lines += _extract_tables(spark, feed, tables)
    return lines or [f"{', '.join(names)}: nothing new"]


def changelog_tables() -> str:
    """Return the names of every table of a feed of the format changelog, as a sentence lists them."""
    feeds = [feed for feed in declared_feeds().values() if feed.format == "changelog"]
    return ", ".join(f"{feed.name}.{table}" for feed in feeds for table in feed.tables) or "none"


def chosen_tables(names: tuple[str, ...]) -> list[tuple[Feed, list[str] | None]]:
    """Return each feed that is named with its tables; None stands for every one that is captured.

    Arguments:
        names: `<feed>.<table>` or `<feed>`.
    Raises: UsageError when a name is no table of a changelog that is declared; it says which ones are.
    """
    declared, chosen = declared_feeds(), {}
    for name in names:
        feed_name, _, table = name.partition(".")
        feed = declared.get(feed_name)
        if feed is None or feed.format != "changelog" or (table and table not in feed.tables):
            example = name if table else f"{name}.<table>"
            raise UsageError(
                f"{name} is not captured; declared are: {changelog_tables()}. "
                f"To capture it: highwater extract --enable {example}"
            )
        tables = chosen.setdefault(feed.name, [])
        chosen[feed.name] = None if not table or tables is None else [*tables, table]
    return [(declared[name], tables) for name, tables in chosen.items()]


def _extract_tables(spark, feed: Feed, chosen: list[str] | None) -> list[str]:
    """Land what is new in tables of one database."""
    with Database(spark, feed.name) as database:
        captures = {
            table: capture
            for table in sorted(set(feed.tables if chosen is None else chosen))
            if (capture := capture_of(database, names_of(feed, table))) and capture.is_running
        }
        if not captures and chosen is None:
            raise UsageError(
                f"no table of {feed.name} is captured; begin with: highwater extract --enable {feed.name}.<table>"
            )
        for table in chosen or ():
            if table not in captures:
                name = f"{feed.name}.{table}"
                raise UsageError(f"{name} is not captured; begin with: highwater extract --enable {name}")
        for table in captures:
            lock = "select pg_try_advisory_lock(hashtextextended(?, 0))"
            if database.rows(lock, f"highwater {names_of(feed, table).changelog}") != [("t",)]:
                raise UsageError(f"another extraction of {feed.name}.{table} is running; wait for it to end.")
        raw_table.create_raw_table(spark, feed)
        landed = {table: _landed_files(spark, feed, table, capture) for table, capture in captures.items()}
        gaps = [gap(database, feed, table, capture, landed[table]) for table, capture in captures.items()]
        if any(gaps):
            raise CheckError("\n".join(filter(None, gaps)))
        lines, logged = [], {}
        for table, capture in captures.items():
            folder = _folder(feed, table, capture)
            if capture.method == "row-version":
                lines += _extract_rows(spark, database, feed, table, capture, folder, landed[table])
                continue
            logged[table] = capture
            if capture.method not in PATCH_METHODS and f"{folder}/baseline" not in landed[table]:
                # what changes meanwhile is in the changelog, and higher
                query = _baseline(database, names_of(feed, table), capture)
                lines += _land(spark, feed, [Batch(table, f"{folder}/baseline", query)])
        return lines + _extract_changes(spark, database, feed, logged, landed)


def _folder(feed: Feed, table: str, capture: Capture) -> str:
    return f"{feed.name}/{table}/capture-{capture.number:03}"


def _landed_files(spark, feed: Feed, table: str, capture: Capture) -> dict:
    """Return the names of what has landed of a capture, each with its position."""
    return {
        row.source_file: row.source_position
        for row in spark.sql(
            f"select source_file, source_position from {feed.raw_table} "
            f"where entry = 'file' and startswith(source_file, '{_folder(feed, table, capture)}/')"
        ).collect()
    }


def gap(database: Database, feed: Feed, table: str, capture: Capture, landed: dict) -> str | None:
    """Return what to say of a lake that lacks changes which the database has let go; None: it lacks none.

    A lake without the baseline of the capture gets it again, with all that was changed until now.
    """
    names, highest = names_of(feed, table), _highest_position(landed)
    known = landed_number(database, names)
    if f"{_folder(feed, table, capture)}/baseline" not in landed or known is None or known <= highest:
        return None
    name = f"{feed.name}.{table}"
    return (
        f"the lake is older than the capture of {name}: changes up to number {known} had landed and were removed in "
        f"the database, and raw has those up to {highest} (was the lake restored, or is it a copy?). Nothing has "
        f"landed. Capture the table anew, its rows land again: highwater extract --disable {name}, then --enable {name}"
    )


def _extract_changes(
    spark, database: Database, feed: Feed, captures: dict[str, Capture], landed: dict[str, dict]
) -> list[str]:
    """Land what waits in changelogs, as of one moment, by one commit."""
    last = {table: _last_number(landed[table]) for table in captures}
    highest = {table: _highest_position(landed[table]) for table in captures}
    batches = []
    database.commit()
    # each changelog is seen as it is when the first one is looked at
    database.run("set transaction isolation level repeatable read")
    for table, capture in captures.items():
        names, number = names_of(feed, table), last[table] + 1
        # landed before, and not removed then
        _remove(database, names, number - 1, highest[table])
        database.run(f"update {names.changelog} set extraction = ? where extraction is null", number)
        ((waiting, newest),) = database.rows(
            f"select count(*), max(change_number) from {names.changelog} where extraction = {number}"
        )
        if int(waiting):
            file = f"{_folder(feed, table, capture)}/extraction-{number:09}"
            batches.append(Batch(table, file, _changes(names, capture, number), newest))
    database.commit()
    if not batches:
        return []
    lines = _land(spark, feed, batches)
    for batch in batches:
        table = batch.table
        _remove(database, names_of(feed, table), last[table] + 1, max(int(batch.position), highest[table]))
    database.commit()
    return lines


def _remove(database: Database, names: Names, extraction: int, highest: int) -> None:
    """Remove changes that have landed, and remember beside them up to which number: both are seen together."""
    database.run(f"delete from {names.changelog} where extraction <= ?", extraction)
    if remembers_landed(database):
        database.run(
            "update highwater.captures set landed = ? where table_schema = ? and table_name = ? "
            "and landed is distinct from ?",
            highest,
            names.schema,
            names.table,
            highest,
        )


def _extract_rows(spark, database, feed: Feed, table: str, capture: Capture, folder: str, landed: dict) -> list[str]:
    """Land the rows as they are that were written since the last time.

    A row counts as written since then when its transaction was not over at that time, so one that commits late is not
    missed. What is read later is newer: the number of the extraction is the order.
    """
    names = names_of(feed, table)
    ((under_way, newest),) = database.rows(
        "select pg_snapshot_xmin(pg_current_snapshot()), pg_snapshot_xmax(pg_current_snapshot())"
    )
    if not landed:
        return _land(
            spark, feed, [Batch(table, f"{folder}/rows-{0:09}", _baseline(database, names, capture), under_way)]
        )
    last, since = _last_number(landed), _highest_position(landed)
    if since > int(newest):
        raise UsageError(
            f"the database of {feed.name} is another one than before: its newest transaction is {newest}, and {since} "
            f"has landed. Land the table anew: highwater extract --disable {feed.name}.{table}, then --enable."
        )
    where = f"{WRITTEN_BY} >= {since}"
    ((waiting,),) = database.rows(f"select count(*) from {names.source} where {where}")
    if not int(waiting):
        return []
    after = _image(database, names)
    record = RECORD.format(
        capture=capture.number, number=last + 1, kind="'update'", at="now()", before="null", after=after
    )
    query = (
        f"select row_number() over () as source_line, {record} as record from {names.source} as source where {where}"
    )
    return _land(spark, feed, [Batch(table, f"{folder}/rows-{last + 1:09}", query, under_way)])


def _highest_position(landed: dict) -> int:
    """Return the highest position that has landed: the number of a change; a baseline has none.

    By row-version it is the transaction from which on written rows have not been extracted, or not for certain.
    """
    return max(map(int, filter(None, landed.values())), default=0)


def _last_number(landed: dict) -> int:
    return max((int(file.rpartition("-")[2]) for file in landed if not file.endswith("/baseline")), default=0)


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
            landed = _landed_files(spark, declared, table, capture) if is_known else {}
            if not landed or gap(database, declared, table, capture, landed) is None:
                refuse_waiting(database, names, name)
            # with its triggers
            database.run(f"drop function {names.function}() cascade")
            database.run(f"drop table {names.changelog}")
        elif database.has(names.source):
            since = _highest_position(_landed_files(spark, declared, table, capture))
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


def _baseline(database: Database, names: Names, capture: Capture) -> str:
    """Every row of the table; a later capture first empties the table of what an earlier one left."""
    after = _image(database, names)
    record = RECORD.format(capture=capture.number, number=0, kind="'baseline'", at="now()", before="null", after=after)
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


def _land(spark, feed: Feed, batches: list[Batch]) -> list[str]:
    """Land the rows of queries, each as the records of one file, all by one commit; return the summary lines."""
    from pyspark.sql import functions as f

    started = time.monotonic()
    number, at = raw_table.next_batch(spark, feed)
    settings = connection_settings(feed.name) | {"sessionInitStatement": "; ".join(FORMS_OF_TEXT), "fetchsize": "10000"}
    reader = spark.read.format("jdbc").options(**settings)
    read, counts, entries = [], [], None
    try:
        for batch in batches:
            try:
                read.append(reader.options(query=batch.query).load().persist())
                counts.append(read[-1].count())
            except (PySparkException, Py4JJavaError) as error:
                raise CheckError(f"{feed.name}/{batch.table} was not read: {reason_of(error)}") from None
            entry = raw_table.entry_of_file(
                spark, "file", batch.table, batch.file, file_records=counts[-1], source_position=batch.position
            )
            records = read[-1].select(
                f.lit("record").alias("entry"),
                f.lit(batch.table).alias("source_table"),
                f.lit(batch.file).alias("source_file"),
                f.col("source_line").cast("int"),
                f.encode("record", "utf-8").alias("record"),
            )
            entry = entry.unionByName(records, allowMissingColumns=True)
            entries = entries.unionByName(entry) if entries else entry
        raw_table.append(entries, feed, number, at)
    finally:
        for frame in read:
            frame.unpersist()
    seconds = time.monotonic() - started
    lines = []
    for batch, count in zip(batches, counts, strict=True):
        what = "change" if "/extraction-" in batch.file else "row"
        lines.append(f"{batch.file}: {count:,} {what}{'s'[: count != 1]}, {seconds:.1f} s")
    return lines
