"""The tables of a database that are captured, as it knows them, and how their objects are called there.

The changelog of a table is `highwater.<table>_changelog` in its database.
"""

from dataclasses import dataclass

from highwater.catalog.entities import logged_tables
from highwater.catalog.feeds import Feed, declared_feeds
from highwater.databases.database import Database, quoted
from highwater.runtime.errors import UsageError

# A table that lives in the lake only, while it is patched; the second one is for tables whose rows never change.
PATCH_METHODS = ("patch", "patch-insert")


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


def names_of(feed: Feed | None, table: str) -> Names:
    """Return how the objects of a table of a feed are called."""
    return Names((feed and feed.source_schema) or "public", table)


def entities_of_table(feed: str, table: str) -> list[str]:
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


def refuse_waiting(database: Database, names: Names, name: str) -> None:
    """Raise UsageError while changes wait in the changelog of a table."""
    ((waiting,),) = database.rows(f"select count(*) from {names.changelog}")
    if int(waiting):
        some, wait = ("1 change", "waits") if waiting == "1" else (f"{int(waiting):,} changes", "wait")
        raise UsageError(f"{some} of {name} {wait} to be extracted; land them first: highwater extract {name}")


def changelog_tables() -> str:
    """Return the names of every table of a feed of the format changelog, as a sentence lists them."""
    feeds = [feed for feed in declared_feeds().values() if feed.format == "changelog"]
    return ", ".join(f"{feed.name}.{table}" for feed in feeds for table in feed.tables) or "none"
