"""Changes of a live PostgreSQL database, landed once and removed there when they have landed.

An extraction marks what is committed in the changelogs of captures with its own number, lands the marked rows under
that number in one commit, and removes them. Whatever is killed, the next one asks the raw table whether the marked rows
have landed, so none is lost and none lands twice.
"""

import time
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from highwater.catalog.feeds import Feed, declared_feeds
from highwater.databases.capture_sql import RECORD, WRITTEN_BY, baseline_query, changes_query, image_of_row
from highwater.databases.captures import (
    PATCH_METHODS,
    Capture,
    Names,
    capture_of,
    changelog_tables,
    landed_number,
    names_of,
    remembers_landed,
)
from highwater.databases.database import FORMS_OF_TEXT, Database, connection_settings, reason_of
from highwater.landing import raw_table
from highwater.runtime.errors import CheckError, UsageError


@dataclass(frozen=True)
class Batch:
    """What lands as one file: the query of its records in the database, the position at the source it reaches."""

    table: str
    file: str
    query: str
    position: str | None = None


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
        landed = {table: landed_files(spark, feed, table, capture) for table, capture in captures.items()}
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
                query = baseline_query(database, names_of(feed, table), capture)
                lines += _land(spark, feed, [Batch(table, f"{folder}/baseline", query)])
        return lines + _extract_changes(spark, database, feed, logged, landed)


def _folder(feed: Feed, table: str, capture: Capture) -> str:
    return f"{feed.name}/{table}/capture-{capture.number:03}"


def landed_files(spark, feed: Feed, table: str, capture: Capture) -> dict:
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
    names, highest = names_of(feed, table), highest_position(landed)
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
    highest = {table: highest_position(landed[table]) for table in captures}
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
            batches.append(Batch(table, file, changes_query(names, capture, number), newest))
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
            spark, feed, [Batch(table, f"{folder}/rows-{0:09}", baseline_query(database, names, capture), under_way)]
        )
    last, since = _last_number(landed), highest_position(landed)
    if since > int(newest):
        raise UsageError(
            f"the database of {feed.name} is another one than before: its newest transaction is {newest}, and {since} "
            f"has landed. Land the table anew: highwater extract --disable {feed.name}.{table}, then --enable."
        )
    where = f"{WRITTEN_BY} >= {since}"
    ((waiting,),) = database.rows(f"select count(*) from {names.source} where {where}")
    if not int(waiting):
        return []
    after = image_of_row(database, names)
    record = RECORD.format(
        capture=capture.number, number=last + 1, kind="'update'", at="now()", before="null", after=after
    )
    query = (
        f"select row_number() over () as source_line, {record} as record from {names.source} as source where {where}"
    )
    return _land(spark, feed, [Batch(table, f"{folder}/rows-{last + 1:09}", query, under_way)])


def highest_position(landed: dict) -> int:
    """Return the highest position that has landed: the number of a change; a baseline has none.

    By row-version it is the transaction from which on written rows have not been extracted, or not for certain.
    """
    return max(map(int, filter(None, landed.values())), default=0)


def _last_number(landed: dict) -> int:
    return max((int(file.rpartition("-")[2]) for file in landed if not file.endswith("/baseline")), default=0)


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
