"""Land delivered files in `raw.<feed>`: every file exactly once, in one Delta commit per batch.

The raw table is its own memory. Beside the records of a file it holds one entry for the file itself, written by the
same commit, so there is no checkpoint to lose: what has landed is what the table says has landed.
"""

import functools
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from highwater.catalog.entities import logged_tables
from highwater.catalog.feeds import Feed
from highwater.catalog.tables import THREADS
from highwater.formats.records import Table
from highwater.landing.bar import bar_of_tasks
from highwater.landing.declared_exports import corrected_exports, correction, exports_refused, take_corrections
from highwater.landing.deliveries import cut_in_words, skipping
from highwater.landing.feed_folders import delivered_files, is_gone, look, undeclared_folders
from highwater.landing.file_entries import FileEntries
from highwater.landing.landings import (
    gone_back,
    landed_before_whole,
    left_for_the_first_time,
    newest_landing,
    note_nothing_new,
    nothing_new,
    odd_names,
)
from highwater.landing.listing import DeliveredFile
from highwater.landing.new_files import (
    digest_of_listing,
    gone_files,
    may_pass_over,
    name_of_content,
    new_and_changed,
    next_to_pass_over,
    number_of_content,
    refuse_what_cannot_be_read,
)
from highwater.landing.partitions import NOTHING
from highwater.landing.raw_table import (
    append,
    batch_after,
    create_raw_table,
    entries_of_files,
    entry_of_delivered,
    micros,
    next_batch,
    spark_schema,
)
from highwater.landing.read_files import UnreadableDelivery, explain, read_files
from highwater.landing.relations import are_gone, entries_of_rows, gone, mark_of, news_of, rows_of
from highwater.landing.table_names import move_records, moves_of, owners_of, repair_names, second_tables
from highwater.landing.whole import begun_before, cut_files
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.faults import doing
from highwater.runtime.printable import printable
from highwater.runtime.project import require_space

BATCH_BYTES = 1024**3
BATCH_FILES = 10_000
TASK_BYTES = 32 * 1024**2


@dataclass
class Landed:
    """What landing a feed did, for the summary line.

    Attributes:
        is_gone: its folder is not there any more.
        newest: number and time, in microseconds, of the newest batch that raw has.
        tables: of whose files some have landed.
        gone_back: what to say of a raw table that lacks what had landed in it.
        cut: files that end within a line and wait until they are whole. odd: those that are not called as files of the
            feed are, and wait too. left: those that are not looked into, and that no landing has named before, with
            what each is in words. begun: files that are whole now, each with the name under which its beginning
            landed before, until the feed declares that this is ignored.
        second: tables whose bare name another table has, by the name that they go by: (the table, the other one).
        refused: of exports, what to do about the files that have not landed; each keeps only itself.
        corrected: of exports, what `_exports.yml` says otherwise now than when they landed.
    """

    feed: str
    files: int = 0
    records: int = 0
    newest: tuple[int, int] = (0, 0)
    gone_back: str | None = None
    seconds: float = 0.0
    changed: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    begun: list[tuple[str, str]] = field(default_factory=list)
    undeclared: list[str] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    is_gone: bool = False
    second: dict[str, tuple[Table, Table]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    corrected: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if not self.files:
            return f"{self.feed}: nothing new"
        return (
            f"{self.feed}: {self.files:,} file{'s'[: self.files != 1]}, "
            f"{self.records:,} record{'s'[: self.records != 1]}, {self.seconds:.1f} s"
        )


def _batches(files: list[DeliveredFile]) -> Iterator[list[DeliveredFile]]:
    """Cut the list of files so that no batch is much larger than BATCH_BYTES."""
    batch, size = [], 0
    for file in files:
        if batch and (size + file.size > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


def land(spark, feed: Feed) -> Landed:
    """Land the new files of one feed.

    Returns: counts for the summary line, the names of delivered files that changed after they had landed or wait for
        another reason, and of folders that are no declared table.
    Raises: CheckError naming what cannot be read and the command that skips it; nothing of its batch lands. An export
        that cannot be read keeps only itself from landing, see `refused`. UsageError when the disk of the lake has not
        the room that the files take.
    """
    started = time.monotonic()
    if feed.relation:
        return _land_versions(spark, feed, started)
    result, delivered = Landed(feed.name), look(feed, may_pass_over(feed))
    listing, is_all = digest_of_listing(feed, delivered), delivered.passed_over is NOTHING
    result.undeclared = undeclared_folders(feed)
    if landing := nothing_new(feed, listing):
        result.newest, result.is_gone = landing, any(landing) and is_gone(feed)
        result.odd, result.left = odd_names(feed), left_for_the_first_time(feed, delivered.left, is_all)
        if feed.partitions and is_all:
            note_nothing_new(feed, listing, landing, result.odd, next_to_pass_over(feed, delivered, result.odd))
        result.begun = landed_before_whole(feed, [])
        return result
    is_first = not spark.catalog.tableExists(feed.raw_table)
    create_raw_table(spark, feed)
    entries = FileEntries() if is_first else entries_of_files(spark, feed)
    known = entries.of([file.source_file for file in delivered.odd])
    new, changed = new_and_changed(
        feed, delivered.files + [file for file in delivered.odd if file.source_file in known], entries
    )
    if feed.role == "export":
        refused = exports_refused(feed, new)
        new, result.refused = [file for file in new if file.source_file not in refused], [*set(refused.values())]
        corrected = corrected_exports(feed, delivered.files, entries)
        if corrected:
            take_corrections(spark, feed, corrected)
        result.corrected = [correction(file, entry) for file, entry in corrected]
    else:
        refuse_what_cannot_be_read(feed, new)
    cut = cut_files(feed.root, feed.format, new)
    result.cut = [file.source_file for file in cut]
    new = [file for file in new if file not in cut] if cut else new
    result.odd = [file.source_file for file in delivered.odd if file.source_file not in known]
    result.is_gone = bool(entries) and is_gone(feed)
    result.newest = entries.newest
    begun = begun_before(feed.root, new, gone_files(entries, delivered, new)) if feed.role != "export" else ()
    result.begun = landed_before_whole(feed, [(file.source_file, before) for file, before in begun])
    last = newest_landing(spark, feed, result.newest)
    result.gone_back = gone_back(feed.name, result.newest, last)
    names_tables = feed.options.table_in_records
    if names_tables and (moves := moves_of(feed, entries.fields())):
        number, at = batch_after(*last)
        last = result.newest = (number, micros(at))
        move_records(spark, feed, moves, number, at)
        entries = entries_of_files(spark, feed)
    owners, keeps_owners = owners_of(spark, feed, entries) if new and names_tables else ({}, False)
    result.changed = [file.source_file for file in changed]
    for batch in _batches(new):
        require_space(sum(file.size for file in batch), f"landing {feed.name}")
        number, at = batch_after(*last)
        batch, count = _land_sound(spark, feed, batch, number, at, owners, keeps_owners, result.refused)
        if not batch:
            continue
        last = result.newest = (number, micros(at))
        result.records += count
        if names_tables:
            result.second = second_tables(feed, owners)
        result.files += len(batch)
        result.tables |= {file.table for file in batch if file.table}
    if not changed and not cut and not result.gone_back and not result.refused:
        passed_over = next_to_pass_over(feed, delivered, result.odd)
        note_nothing_new(feed, listing, result.newest, result.odd, passed_over)
    result.left = left_for_the_first_time(feed, delivered.left, is_all)
    result.seconds = time.monotonic() - started
    return result


def _land_versions(spark, feed: Feed, started: float) -> Landed:
    """Land the new versions of the tables that hold a feed's records, as one batch."""
    result = Landed(feed.name)
    create_raw_table(spark, feed)
    entries = entries_of_files(spark, feed)
    result.newest = entries.newest
    last = newest_landing(spark, feed, result.newest)
    result.gone_back = gone_back(feed.name, result.newest, last)
    news = news_of(spark, feed, entries)
    if not news:
        return result
    names_tables = feed.options.table_in_records
    owners, keeps_owners = owners_of(spark, feed, entries) if names_tables else ({}, False)
    counted = spark.sparkContext.accumulator(0)
    frames = []
    for each in news:
        reading = entries_of_rows(feed.options, feed.name, each, counted, dict(owners), keeps_owners)
        frames += [rows_of(spark, feed, each).mapInArrow(reading, spark_schema()), mark_of(spark, feed, each)]
    number, at = batch_after(*last)
    try:
        append(functools.reduce(lambda one, other: one.unionByName(other), frames), feed, number, at)
    except Exception as error:
        if not are_gone(error) or len(news) > 1:
            raise
        raise gone(feed, news[0], error) from error
    result.newest = (number, micros(at))
    if names_tables:
        files = entries_of_files(spark, feed, f"entry = 'file' and landing_batch = {number}")
        repair_names(spark, feed, number, files.of_batch(number), owners)
        result.second = second_tables(feed, owners)
    result.files, result.records = len(news), counted.value
    result.tables = {each.table for each in news if each.table}
    result.seconds = time.monotonic() - started
    return result


def land_all(spark, feeds: Iterable[Feed]) -> Iterator[tuple[Feed, Landed | Exception]]:
    """Land the new files of feeds, some side by side; those that bring records of one table, one after the other.

    So which record came first is never chance.

    Yields: each feed, in the order given, with what land returned or raised.
    """
    feeds = list(feeds)
    together = {feed.name: [feed] for feed in feeds}
    for _, sources in logged_tables():
        of_table = [together[name] for name, _ in sources if name in together]
        for other in of_table[1:]:
            if other is not of_table[0]:
                of_table[0].extend(other)
                together |= {feed.name: of_table[0] for feed in other}
    groups = {id(group): sorted(group, key=feeds.index) for group in together.values()}
    threads = ThreadPoolExecutor(THREADS)
    landing = {id: threads.submit(_land_group, spark, group) for id, group in groups.items()}
    try:
        for feed in feeds:
            yield feed, landing[id(together[feed.name])].result()[feed.name]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        if not all(future.done() for future in landing.values()):  # Ctrl-C, or a full disk
            with suppress(Exception):
                spark.sparkContext.cancelAllJobs()


def _land_group(spark, feeds: list[Feed]) -> dict[str, Landed | Exception]:
    landed = {}
    for feed in feeds:
        try:
            with doing(f"landing {feed.name}"):
                landed[feed.name] = land(spark, feed)
        except Exception as error:
            landed[feed.name] = error
    return landed


def _land_sound(spark, feed, files, number, at, owners, keeps_owners, refused: list[str]) -> tuple[list, int]:
    """Land a batch, of exports without the files that cannot be read; return what has landed, and its records.

    Arguments:
        refused: gets what to do about those that have not.
    Raises: UnreadableDelivery, where the files hold changes: of them nothing of the batch lands.
    """
    while files:
        try:
            return files, _land_batch(spark, feed, files, number, at, owners, keeps_owners)
        except UnreadableDelivery as error:
            if feed.role != "export":
                raise
            refused.append(
                f"{printable(error.source_file)} cannot be read: {printable(error.why)}. It has not landed; other "
                "exports have. Deliver it again under another name, or leave it out on record with: "
                f"{skipping(error.source_file)}"
            )
            files = [file for file in files if file.source_file != error.source_file]
    return [], 0


def _land_batch(spark, feed, files, number, at, owners: dict[str, Table], keeps_owners: bool, beside=None) -> int:
    """Read files into a batch, with further entries beside them, by one commit; return how many records they hold."""
    size = sum(file.size for file in files)
    rows = [
        (
            file.path,
            file.source_file,
            file.table,
            file.size,
            file.modified_at,
            file.position,
            file.taken_at,
            file.entry,
        )
        for file in files
    ]
    cores = spark.sparkContext.defaultParallelism
    tasks = max(min(cores, len(files)), min(len(files), size // TASK_BYTES))
    schema = "path string, source_file string, table string, size bigint, modified_at timestamp, position string"
    schema += ", taken_at string, export_entry string"
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, tasks), schema)
    counted = spark.sparkContext.accumulator(0)
    reading = read_files(feed.options, feed.root, counted, dict(owners), keeps_owners)
    frame = frame.mapInArrow(reading, spark_schema())
    label = f"{feed.name}: reading {len(files):,} files, {size / 1e6:,.1f} MB"
    try:
        with bar_of_tasks(spark, label):
            append(frame.unionByName(beside) if beside is not None else frame, feed, number, at)
    except Exception as error:
        explain(error)
        raise
    if feed.options.table_in_records:
        files = entries_of_files(spark, feed, f"entry = 'file' and landing_batch = {number}")
        repair_names(spark, feed, number, files.of_batch(number), owners)
    return counted.value


def land_again(spark, feed: Feed, names: list[str]) -> int:
    """Land files that have landed before in their present content, under the name `<name>@2`, `<name>@3` and so on.

    The same commit records that the file as it is now needs no landing under its own name.

    Arguments:
        names: of the files, as landing names them.
    Returns: the number of their batch.
    Raises: UsageError when one of them is no longer there; CheckError when one cannot be read, or was cut.
    """
    delivered = {file.source_file: file for file in delivered_files(feed) if not file.problem}
    gone = [name for name in names if name not in delivered]
    if gone:
        raise UsageError(
            f"{printable(', '.join(gone))}: the file is no longer in the landing folder; deliver it again."
        )
    entries = entries_of_files(spark, feed)
    files = [delivered[name] for name in names]
    if cut := cut_files(feed.root, feed.format, files):
        raise CheckError("\n".join(cut_in_words(feed, file.source_file) for file in cut))
    later = []
    for file in files:
        known = entries.called(file.source_file)
        last = max(number_of_content(name) for name in known if name_of_content(name) == file.source_file)
        later.append(replace(file, source_file=f"{file.source_file}@{last + 1}"))
    skipped = [entry_of_delivered(spark, feed, "skipped", file) for file in files]
    number, at = next_batch(spark, feed)
    owners = owners_of(spark, feed, entries) if feed.options.table_in_records else ({}, False)
    _land_batch(
        spark, feed, later, number, at, *owners, functools.reduce(lambda one, other: one.unionByName(other), skipped)
    )
    return number


def skip(spark, feeds: dict[str, Feed], source_file: str) -> str:
    """Leave a delivered file out, on record: landing passes over it from now on, in its present content.

    Arguments:
        source_file: as landing names it, `<feed>/...`, or as its messages show that name.
    Returns: a sentence that says what was recorded.
    Raises: UsageError when there is no such file, or it has landed and is unchanged.
    """
    feed, shown = feeds.get(source_file.split("/")[0]), printable(source_file)
    if feed is None:
        raise UsageError(f"{shown}: no feed of that name; files are named <feed>/<path below its folder>.")
    create_raw_table(spark, feed)
    if feed.relation:
        return _skip_versions(spark, feed, source_file)
    delivered = look(feed)
    new, changed = new_and_changed(feed, delivered.files + delivered.odd, entries_of_files(spark, feed))
    files = {name: file for file in new + changed for name in (printable(file.source_file), file.source_file)}
    if source_file not in files:
        raise UsageError(f"{shown} is not waiting: it has landed or was skipped, or there is no such file.")
    file = files[source_file]
    number, at = next_batch(spark, feed)
    append(entry_of_delivered(spark, feed, "skipped", file), feed, number, at)
    if file in changed:
        return f"{shown}: what landed first stays; its new content is left out, on record (batch {number})."
    return f"{shown} is left out, on record (batch {number} of raw.{feed.name})."


def _skip_versions(spark, feed: Feed, source_file: str) -> str:
    """Leave versions of a table out, on record: landing goes on behind them."""
    name, _, last = source_file.rpartition("-")
    news = news_of(spark, feed, entries_of_files(spark, feed))
    waiting = [f"{feed.name}/{each.source_file}" for each in news]
    found = next((each for each in news if f"{feed.name}/{each.source_file}".startswith(f"{name}-")), None)
    if found is None or not last.isdecimal() or not found.first <= int(last) <= found.last:
        raise UsageError(
            f"{printable(source_file)} is not waiting; what waits is: {printable(', '.join(waiting)) or 'nothing'}."
        )
    number, at = next_batch(spark, feed)
    append(mark_of(spark, feed, replace(found, last=int(last)), skipped="true"), feed, number, at)
    return f"{printable(source_file)} is left out, on record (batch {number} of raw.{feed.name})."
