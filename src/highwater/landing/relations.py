"""Land what is new in tables that others write: every version of a Delta table exactly once.

Which version has landed stands in the raw table, in an entry that the same commit writes, as it does for files.
"""

import io
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow
import pyarrow.compute as compute

from highwater.catalog.feeds import OF_RELATIONS, Feed
from highwater.formats import readers
from highwater.formats.formats import TABLE_IN_RECORDS, ReadOptions
from highwater.formats.records import Table, TableNames, record_batch
from highwater.landing.file_entries import FileEntries
from highwater.landing.raw_table import entry_of_file
from highwater.landing.read_files import as_declared, entries_of
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.faults import everything_said
from highwater.runtime.printable import printable

# what stands beside the columns of a row that Delta's change feed tells of
OF_CHANGE_FEED = ("_change_type", "_commit_version", "_commit_timestamp")
# what Delta and Spark say of files that are not there
GONE = re.compile("FileNotFoundException|_NOT_FOUND|DELTA_(TRUNCATED_TRANSACTION_LOG|VERSIONS_NOT_CONTIGUOUS)")
# times to the microsecond, and each NULL as such
AS_JSON = (
    "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", "
    "'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)


@dataclass(frozen=True)
class News:
    """Versions of a table that have not landed.

    Attributes:
        table: what raw calls it; None: its records tell. relation: as Spark's SQL names it. id: Delta's, of the table.
        first, last: the versions. is_whole: nothing of it has landed, so its rows of the last one are the start.
        problem: why they cannot land; None: they can.
    """

    table: str | None
    relation: str
    id: str
    first: int
    last: int
    is_whole: bool
    problem: str | None = None

    @property
    def source_file(self) -> str:
        """What raw calls the versions, as it calls files."""
        return f"{self.table or 'records'}/{self.first}-{self.last}"


def relations_of(feed: Feed) -> list[tuple[str | None, str]]:
    """Return the tables of the catalog that hold a feed's records, each behind what raw calls its table."""
    if feed.layout == TABLE_IN_RECORDS:
        return [(None, feed.relation)]
    names = [feed.source_table(table) for table in feed.tables]
    return [(name, feed.relation.replace("{table}", name)) for name in names]


def news_of(spark, feed: Feed, entries: FileEntries) -> list[News]:
    """Return which versions of a feed's tables have not landed.

    Arguments:
        entries: of the raw table, but those of records.
    Raises: UsageError for a table that is not there, or is not Delta's.
    """
    known = {mark["relation"]: (int(mark["version"]), mark["relation_id"]) for mark in entries.versions}
    found = []
    for table, relation in relations_of(feed):
        id, newest = _state_of(spark, feed, relation)
        landed, landed_id = known.get(relation, (-1, id))
        if landed_id != id or newest < landed:
            what = "is another table than" if landed_id != id else f"is at version {newest}, before that of"
            problem = (
                f"{printable(relation)} {what} the one of which version {landed} has landed: it was made anew or "
                "copied back, and its versions begin again"
            )
            found.append(News(table, relation, id, 0, newest, False, problem))
        elif newest > landed:
            found.append(News(table, relation, id, landed + 1, newest, relation not in known))
    return found


def _state_of(spark, feed: Feed, relation: str) -> tuple[str, int]:
    """Return what Delta tells a table apart by, and its newest version."""
    try:
        detail = spark.sql(f"describe detail {relation}").first()
    except Exception as error:
        why = everything_said(error).partition("\n")[0]
        raise UsageError(f"{feed.name}: relation {printable(relation)} cannot be read: {printable(why)}") from None
    if detail["format"] != "delta":
        raise UsageError(
            f"{feed.name}: relation {printable(relation)} is of the format {detail['format']}, and a feed reads "
            "versions of Delta tables. Let its rows be delivered as files, or copy them into a Delta table."
        )
    return detail["id"], spark.sql(f"describe history {relation} limit 1").first()["version"]


def rows_of(spark, feed: Feed, news: News):
    """Return a frame of one column, `json`: the records that some versions of a table have brought.

    Of a table that holds changes those are the rows that came; what was deleted from it, or rewritten, brings none. Of
    one whose change feed is read (`delta-changes`), all that happened to its rows.

    Raises: CheckError where a version cannot be read any more; UsageError where the table has names of Delta's own.
    """
    from pyspark.sql import functions as f

    reserved = [name for name in spark.table(news.relation).columns if name in OF_CHANGE_FEED]
    if reserved:
        raise UsageError(
            f"{feed.name}: relation {printable(news.relation)} has the column {reserved[0]}, which is Delta's own name "
            "for what it tells of a change. Give it another name in that table."
        )
    if news.problem:
        raise CheckError(f"{feed.name}: {news.problem}. {_way_on(feed, news)}")
    rows = _start_of(spark, news) if news.is_whole else _changes_of(spark, feed, news)
    wrapped = feed.options.wrapping or "value"
    if dict(rows.dtypes).get(wrapped) == "binary" and feed.format not in OF_RELATIONS:
        # as Kafka has it; what is no text stays what JSON has for bytes, and is rejected
        text = f"cast({_names([wrapped])} as string)"
        rows = rows.withColumn(wrapped, f.expr(f"if(is_valid_utf8({text}), {text}, base64({_names([wrapped])}))"))
    if feed.format == "delta-changes":
        return rows.select(_as_json(rows, rows.columns))
    came = rows.where("_change_type in ('insert', 'update_postimage')")
    return came.select(_as_json(rows, [name for name in rows.columns if name not in OF_CHANGE_FEED]))


def _as_json(rows, columns: list[str]):
    """Return the JSON of some columns of a frame; decimals are texts, for an exponent would make doubles of them."""
    from pyspark.sql import functions as f

    decimals = {name for name, kind in rows.dtypes if kind.startswith("decimal")}
    parts = (
        f"cast({_names([name])} as string) as {_names([name])}" if name in decimals else _names([name])
        for name in columns
    )
    return f.expr(f"to_json(struct({', '.join(parts)}), {AS_JSON}) as json")


def _names(columns: list[str]) -> str:
    return ", ".join("`" + name.replace("`", "``") + "`" for name in columns)


def _start_of(spark, news: News):
    """Return the rows of a version, as if they had come with it."""
    history = spark.sql(f"describe history {news.relation}").where(f"version = {news.last}")
    (at,) = history.selectExpr("unix_micros(timestamp)").first()
    return spark.sql(
        f"""
        select
            *, 'insert' as _change_type, {news.last}L as _commit_version, timestamp_micros({at}L) as _commit_timestamp
        from {news.relation} version as of {news.last}
        """
    )


def _changes_of(spark, feed: Feed, news: News):
    """Return what happened to rows in some versions, by Delta's change feed, or by the files where it was not on."""
    try:
        try:
            return _by_change_feed(spark, news)
        except Exception as error:
            if "DELTA_MISSING_CHANGE_DATA" not in everything_said(error):
                raise
            return _by_files(spark, news)
    except Exception as error:
        if not are_gone(error):
            raise
        raise gone(feed, news, error) from error


def are_gone(error: Exception) -> bool:
    """Return whether an error says that a file of a table's, or of its log, is not there any more."""
    return bool(GONE.search(everything_said(error)))


def gone(feed: Feed, news: News, error: Exception) -> CheckError:
    """Return what to say of versions of a table whose log or files are not there any more."""
    why = everything_said(error).partition("\n")[0]
    return CheckError(
        f"{feed.name}: versions {news.first} to {news.last} of {printable(news.relation)} cannot be read any more, so "
        f"changes in them are lost to this feed ({printable(why)}). Keep the table's log and files longer than a "
        f"landing may wait. {_way_on(feed, news)}"
    )


def _way_on(feed: Feed, news: News) -> str:
    name = shlex.quote(f"{feed.name}/{news.source_file}")
    return f"To leave them out, on record, and go on with what comes behind: highwater skip {name}"


def _by_change_feed(spark, news: News):
    reader = spark.read.option("readChangeFeed", "true")
    frame = reader.option("startingVersion", news.first).option("endingVersion", news.last).table(news.relation)
    frame._jdf.queryExecution().executedPlan()  # which is where Delta looks whether it has recorded them
    return frame


def _by_files(spark, news: News):
    """Return rows of files that came and went. A row in both was written anew, and nothing has happened to it."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    jvm, session = spark._jvm, spark._jsparkSession
    identifier = session.sessionState().sqlParser().parseTableIdentifier(news.relation)
    log, none = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, identifier), jvm.scala.Option.empty()
    reader = jvm.org.apache.spark.sql.delta.commands.cdc.CDCReader
    rows = DataFrame(reader.changesToBatchDF(log, news.first, news.last, session, none, none, True, none), spark)
    columns = [name for name in rows.columns if name not in OF_CHANGE_FEED]
    net = rows.groupBy("_commit_version", _as_json(rows, columns)).agg(
        f.expr(f"any_value(struct({_names(columns)})) as this"),
        f.any_value("_commit_timestamp").alias("_commit_timestamp"),
        f.sum(f.expr("if(_change_type = 'insert', 1, -1)")).alias("net"),
    )
    copies = net.where("net <> 0").withColumn("copy", f.explode(f.expr("sequence(1, int(abs(net)))")))
    return copies.selectExpr(
        "this.*", "if(net > 0, 'insert', 'delete') as _change_type", "_commit_version", "_commit_timestamp"
    )


def entries_of_rows(options: ReadOptions, feed: str, news: News, counted, owners: dict[str, Table], keeps_owners: bool):
    """Return the function that Spark runs on each partition of the records; it adds up those read.

    What a partition holds is read as a file of lines is, and lands as one: `<feed>/<table>/<versions>.<partition>`.
    """

    def entries(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from pyspark import TaskContext

        names = TableNames(options.schema, owners, keeps_owners, options.shards) if options.table_in_records else None
        place = f"{feed}/{news.source_file}.{TaskContext.get().partitionId()}"
        file = {"source_file": place, "table": news.table, "modified_at": None, "position": None}
        first, count = 1, 0
        for batch in batches:
            lines = io.BytesIO(b"".join(text.encode() + b"\n" for text in batch.column(0).to_pylist()))
            for found in readers.read(lines, options, names):
                place = found.schema.get_field_index("source_line")
                numbers = compute.add(found.column("source_line"), pyarrow.scalar(first - 1, pyarrow.int32()))
                found = found.set_column(place, found.schema.field(place), numbers)
                count += found.num_rows
                yield entries_of("record", file, as_declared(found, options.also_called))
            first += batch.num_rows
        if count:
            counted.add(count)
            known = [(name, json.dumps(table)) for name, table in names.seen.items()] if names else []
            yield entries_of("file", file, record_batch([None], [None], fields=[known] if names else None), count)

    return entries


def mark_of(spark, feed: Feed, news: News, **said: str):
    """Return a frame of the entry that says which versions of a table have landed, or are left out."""
    fields = {"relation": news.relation, "relation_id": news.id, "version": str(news.last), **said}
    return entry_of_file(spark, "version", news.table, f"{feed.name}/{news.source_file}", fields=fields)
