"""Which delivered files have not landed, or have changed since they did."""

import hashlib
import re
import shlex
from dataclasses import dataclass, field
from datetime import datetime, timezone

from highwater.catalog.entities import logged_tables
from highwater.catalog.feeds import Feed
from highwater.landing.declared_exports import corrected_exports
from highwater.landing.deliveries import skipping
from highwater.landing.feed_folders import Delivered, folders_of_tables, look
from highwater.landing.file_entries import FileEntries
from highwater.landing.landings import noted_passed_over, nothing_new, odd_names
from highwater.landing.listing import DeliveredFile, digest_of, sum_of
from highwater.landing.partitions import NOTHING, PassedOver, next_passed_over, noted, read_note
from highwater.landing.raw_table import entries_of_files
from highwater.landing.whole import cut_files
from highwater.runtime.errors import CheckError
from highwater.runtime.printable import printable

MOST_NAMED = 10
LOOKED_AT_MOST = 1_000
LATER_CONTENT = re.compile(r"@(\d+)$")


def has_all_landed(feed: Feed, delivered: Delivered | None = None) -> bool:
    """Return whether all files that lie in the feed's folders are known to have landed, without asking Spark.

    Arguments:
        delivered: what lies there; None: look.
    """
    delivered = delivered or look(feed)
    return not delivered.files or nothing_new(feed, digest_of_listing(feed, delivered)) is not None


def waiting_files(feed: Feed, delivered: Delivered) -> tuple[list[str], list[str]]:
    """Return the files that wait for somebody, without asking Spark: not called as the feed's are, and cut.

    Of those that may be cut the newest are looked at, and none where all have landed.
    """
    if nothing_new(feed, digest_of_listing(feed, delivered)) is not None:
        return odd_names(feed), []
    newest = sorted(delivered.files, key=lambda file: file.modified_at)[-LOOKED_AT_MOST:]
    cut = cut_files(feed.root, feed.format, newest)
    return [file.source_file for file in delivered.odd], [file.source_file for file in cut]


def digest_of_listing(feed: Feed, delivered: Delivered) -> str:
    """Return what tells a listing of files from any other, and with it which tables are shards.

    What it has passed over is taken to lie there as it did.
    """
    everything = sum_of(delivered.listed) + delivered.passed_over.rest
    return hashlib.sha256(repr((everything, feed.options.shards)).encode(errors="surrogateescape")).hexdigest()


def may_pass_over(feed: Feed) -> PassedOver:
    """Return what a landing need not list: nothing, where its feed declares no partitions, or something waits."""
    if not feed.partitions:
        return NOTHING
    return read_note(feed, folders_of_tables(feed), noted_passed_over(feed), datetime.now(timezone.utc))


def next_to_pass_over(feed: Feed, delivered: Delivered, odd: list[str]) -> dict | None:
    """Return what the landing after one of which all has landed need not list, as it is noted; None: nothing.

    Arguments:
        odd: names that wait.
    """
    if not feed.partitions or odd:
        return None
    folders, now = folders_of_tables(feed), datetime.now(timezone.utc)
    return noted(feed, next_passed_over(feed, folders, delivered.listed, delivered.passed_over, now))


@dataclass(frozen=True)
class Waiting:
    """What lies in the folder of a feed and is not as it has landed.

    Attributes:
        new: files that have not landed. changed: that have changed since.
        corrected: exports of which `_exports.yml` says something else than when they landed, each with what landed.
        odd: files that are not called as those of the feed are, and have not landed.
    """

    new: list[DeliveredFile]
    changed: list[DeliveredFile]
    corrected: list[tuple[DeliveredFile, dict]] = field(default_factory=list)
    odd: list[DeliveredFile] = field(default_factory=list)


def what_waits(spark, feed: Feed) -> Waiting:
    """Return what the next landing of a feed would find."""
    delivered = look(feed)
    entries = entries_of_files(spark, feed) if spark.catalog.tableExists(feed.raw_table) else FileEntries()
    known = entries.of([file.source_file for file in delivered.odd])
    odd = [file for file in delivered.odd if file.source_file not in known]
    new, changed = new_and_changed(feed, delivered.files, entries)
    return Waiting(new, changed, corrected_exports(feed, delivered.files, entries), odd)


def gone_files(entries: FileEntries, delivered: Delivered, new: list[DeliveredFile]) -> list[tuple[str, int, str]]:
    """Return name, size and SHA-256 of the files that have landed and do not lie there any more.

    Arguments:
        new: only of names that begin as those of these files.
    """
    there = [file.source_file for file in delivered.files + delivered.odd]
    return [
        (entry["source_file"], entry["file_size"], entry["file_hash"])
        for entry in entries.gone(there, [file.source_file for file in new])
        if entry["source_file"] not in delivered.left
    ]


def new_and_changed(
    feed: Feed, delivered: list[DeliveredFile], entries: FileEntries
) -> tuple[list[DeliveredFile], list[DeliveredFile]]:
    """Return the files that have not landed, also what cannot be read, and those that have changed since they landed.

    What cannot be read has no hash, so what was left out as such is known by that.
    """
    new, changed = [], []
    for file, entry in entries.differing(delivered):
        if entry is None or (file.problem and entry["file_hash"] is not None):
            new.append(file)
        elif not file.problem and (
            entry["file_size"] != file.size or entry["file_hash"] != digest_of(feed.root, file.path)
        ):
            changed.append(file)
    return new, changed


def refuse_what_cannot_be_read(feed: Feed, files: list[DeliveredFile]) -> None:
    """Check that new files can be read.

    Raises: CheckError naming those that cannot; nothing of the feed lands.
    """
    unreadable = [
        f"{file.source_file} {printable(file.problem)}. Nothing of {feed.name} has landed. Take it away, or leave it "
        f"out on record with: {skipping(file.source_file)}"
        for file in files
        if file.problem
    ]
    if unreadable:
        over = len(unreadable) - MOST_NAMED
        more = [f"{feed.name}: {over:,} more cannot be read"] if over > 0 else []
        raise CheckError("\n".join([*unreadable[:MOST_NAMED], *more]))


def name_of_content(source_file: str) -> str:
    """Return the name that a file was delivered under; what landed of it later is called `<name>@2`, `<name>@3`."""
    return LATER_CONTENT.sub("", source_file)


def number_of_content(source_file: str) -> int:
    """Return which content of a file landed under this name: 1 the first, 2 that of `<name>@2`."""
    later = LATER_CONTENT.search(source_file)
    return int(later[1]) if later else 1


def changed_file(feed: Feed, source_file: str) -> str:
    """Return what to do about a file whose content has changed since it landed.

    Under another name it would be taken for more of what there was, and its rows could lose to older ones.
    """
    skip_it, name = skipping(source_file), printable(source_file)
    if feed.role == "export":
        return f"{name} has changed since it landed. Deliver the new export under a new name, or: {skip_it}"
    folder = feed.table_of_file(source_file)
    fed = [entity for entity, sources in logged_tables() if (feed.name, folder) in sources]
    return (
        f"{name} has changed since it landed, and what it holds now is not read. A full load that is taken "
        "again writes its files anew; to take it as the truth from then on: "
        f"highwater resync {fed[0] if fed else 'TABLE'} --from {shlex.quote(name)}. "
        f"To leave it out on record: {skip_it}"
    )
