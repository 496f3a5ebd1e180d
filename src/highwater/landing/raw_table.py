"""The table `raw.<feed>`: its entries of records and files, its batches, and what it knows of files."""

import uuid
from datetime import datetime, timedelta, timezone

import pyarrow

from highwater.catalog.feeds import Feed
from highwater.formats import records
from highwater.landing.file_entries import FileEntries
from highwater.landing.landings import newest_landing, note_landing
from highwater.landing.listing import DeliveredFile, digest_if_readable
from highwater.runtime.deployment import is_embedded
from highwater.runtime.errors import CheckError
from highwater.runtime.faults import everything_said
from highwater.spark.lake_tables import is_committed, newest_version

RAW_TABLE = """
    create table if not exists {table} (
        entry string comment 'record; file, version: it landed; skipped: a file, on record; replayed: records, again',
        source_table string comment 'The table that the folder, the file name or the record names; NULL: it names none',
        source_file string comment 'Path below the landing folder',
        source_line int comment 'Line of the file where the record starts, from 1',
        landing_batch bigint comment 'Number of the batch it landed in, from 1, per feed',
        landed_at timestamp comment 'When that batch landed, UTC; increases from batch to batch',
        problem string comment 'Why the record could not be cut or decoded (`code: detail`); NULL: it could',
        record binary comment 'The exact bytes of the record',
        fields map<string, string> comment 'Values by name, where the reader takes them apart; of files: what is known',
        file_records bigint comment 'Files only: how many records it holds',
        file_size bigint comment 'Files only: bytes',
        file_modified_at timestamp comment 'Files only: last change, UTC',
        file_hash string comment 'Files only: SHA-256 of the bytes',
        source_position string comment 'Exports only: the position of the source at which it was taken, or `P0 .. P1`'
    )
    using delta
    partitioned by (entry)
    comment 'Everything that the feed {feed} delivered, as delivered'
"""

ENTRIES = pyarrow.schema(
    [
        ("entry", pyarrow.string()),
        ("source_file", pyarrow.string()),
        *records.RECORDS,
        ("file_records", pyarrow.int64()),
        ("file_size", pyarrow.int64()),
        ("file_modified_at", pyarrow.timestamp("us", tz="UTC")),
        ("file_hash", pyarrow.string()),
        ("source_position", pyarrow.string()),
    ]
)


def entries_of_files(spark, feed: Feed, which: str = "entry <> 'record'") -> FileEntries:
    """Return what the raw table holds about files; one narrow pass, no shuffle."""
    return FileEntries(
        spark.sql(
            f"""
            select
                entry,
                source_file,
                file_size,
                unix_micros(file_modified_at) as modified,
                file_hash,
                landing_batch,
                unix_micros(landed_at) as landed,
                source_position,
                to_json(fields) as fields
            from {feed.raw_table}
            where {which}
            """
        ).toArrow()
    )


def micros(moment: datetime) -> int:
    """Return a moment as raw tables and notes of landings have it, in microseconds."""
    return (moment - datetime.fromtimestamp(0, timezone.utc)) // timedelta(microseconds=1)


def next_batch(spark, feed: Feed) -> tuple[int, datetime]:
    """Return number and time of the next batch; both are above those of every batch that the lake has heard of."""
    number, landed = spark.sql(
        f"select max(landing_batch), max(unix_micros(landed_at)) from {feed.raw_table} where entry <> 'record'"
    ).first()
    return batch_after(*newest_landing(spark, feed, (number or 0, landed or 0)))


def batch_after(last: int, landed: int) -> tuple[int, datetime]:
    """Return number and time of the batch behind one, of whose landing these are number and time in microseconds."""
    previous = datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=landed)
    return last + 1, max(datetime.now(timezone.utc), previous + timedelta(microseconds=1))


def append(frame, feed: Feed, number: int, at: datetime) -> None:
    """Add entries to the raw table of a feed as one batch, by one commit, once.

    Where others may land too, Delta refuses a batch by a number that somebody else commits meanwhile, and skips, in
    silence, one whose number was there before; so what was committed is looked for. An embedded lake has one process.

    Arguments:
        frame: entries, in the columns of ENTRIES or of the table. number, at: of the batch, see next_batch.
    Raises: CheckError when another command has landed a batch by this number: nothing of this one is there.
    """
    from pyspark.sql import functions as f

    spark, mark, writer = frame.sparkSession, uuid.uuid4().hex, f"highwater-{feed.name}"
    frame = frame.withColumn("landing_batch", f.lit(number).cast("bigint"))
    frame = frame.withColumn("landed_at", f.timestamp_micros(f.lit(micros(at)).cast("bigint")))
    columns, options, before = spark.table(feed.raw_table).columns, {}, -1
    if not is_embedded():
        options = {"txnAppId": writer, "txnVersion": number, "userMetadata": mark}
        before = newest_version("raw", feed.name)
    try:
        frame.select(*columns).write.format("delta").mode("append").options(**options).saveAsTable(feed.raw_table)
    except Exception as error:
        if "DELTA_CONCURRENT_TRANSACTION" not in everything_said(error):
            raise
        raise _has_landed(feed, number) from None
    if options and not is_committed("raw", feed.name, before, mark):
        _note_number(spark, feed, writer, number, at)
        raise _has_landed(feed, number)
    note_landing(feed, (number, micros(at)))


def _has_landed(feed: Feed, number: int) -> CheckError:
    return CheckError(
        f"{feed.name}: another command has landed batch {number} meanwhile, and nothing of this one. Run it again: "
        "what is still new lands then."
    )


def _note_number(spark, feed: Feed, writer: str, number: int, at: datetime) -> None:
    """Note the number that Delta knows of a batch, where the table has lost it: the next one is above it."""
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        spark._jsparkSession, spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(feed.raw_table)
    )
    known = log.unsafeVolatileSnapshot().transactions().get(writer)
    (in_raw,) = spark.sql(f"select max(landing_batch) from {feed.raw_table} where entry <> 'record'").first()
    if known.isDefined() and known.get() > (in_raw or 0):
        note_landing(feed, (max(known.get(), number), micros(at)))


def create_raw_table(spark, feed: Feed) -> None:
    """Create `raw.<feed>` where it is missing, so that models build before anything has landed."""
    spark.sql(RAW_TABLE.format(table=feed.raw_table, feed=feed.name))


def spark_schema():
    """Return the columns of ENTRIES as Spark has them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(ENTRIES)


def entry_of_file(spark, entry: str, table: str | None, source_file: str, **values):
    """Return a frame of one entry about a file.

    Arguments:
        entry: `file` or `skipped`. table: that it belongs to. values: further columns of ENTRIES, by name.
    """
    row = {"entry": entry, "source_table": table, "source_file": source_file, **values}
    return spark.createDataFrame([dict.fromkeys(ENTRIES.names) | row], spark_schema())


def entry_of_delivered(spark, feed: Feed, entry: str, file: DeliveredFile):
    """Return a frame of one entry about a delivered file as it is now."""
    return entry_of_file(
        spark,
        entry,
        file.table,
        file.source_file,
        file_size=file.size,
        file_modified_at=file.modified_at,
        file_hash=None if file.problem else digest_if_readable(feed.root, file.path),
    )
