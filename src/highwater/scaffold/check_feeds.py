"""What is wrong with the declaration of a feed, beside the folders and files that are delivered for it."""

import contextlib
from collections.abc import Iterator

import yaml

from highwater.catalog.declarations import sources_file
from highwater.catalog.feeds import FAST_LOADER, Feed
from highwater.catalog.tables import named as first_of
from highwater.catalog.yaml_files import named, value_of
from highwater.landing.deliveries import cut_in_words, left_in_words, odd_in_words, tables_called_like, undeclared
from highwater.landing.feed_folders import Delivered, undeclared_folders
from highwater.landing.file_names import is_whole_beside
from highwater.landing.listing import is_missing
from highwater.landing.new_files import waiting_files
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import did_you_mean, printable
from highwater.scaffold.checked import Finding, Project
from highwater.scaffold.misspelt import misspelt_in_source
from highwater.scaffold.periods import lacks_own_column, periods_of


def check_feed(feed: Feed, project: Project, is_whole: bool, lying: Delivered) -> Iterator[Finding]:
    """Look at the declaration of a feed, and at the folders that are delivered for it."""
    path = sources_file(feed.name)
    document = yaml.compose(path.read_text(), FAST_LOADER)
    source = named(value_of(document, "sources"), feed.name)
    line = source.start_mark.line + 1
    yield from (Finding(path, at, problem, False) for at, problem in misspelt_in_source(document, feed.name))
    if feed.positions and feed.positions not in project.feeds:
        said = f"positions is {feed.positions!r}, which is no declared feed."
        yield Finding(path, line, f"{feed.name}: {said}{did_you_mean(feed.positions, project.feeds)}")
    for epoch in feed.settings.get("epochs") or []:
        if isinstance(epoch, dict) and epoch.get("table", feed.name) not in (feed.name, *feed.tables):
            said = f"an epoch is of the table {epoch['table']!r}, which the feed does not have."
            at = epoch.get("__line__", line)
            yield Finding(path, at, f"{feed.name}: {said}{did_you_mean(str(epoch['table']), feed.tables)}")
    if feed.format == "dms-csv" and not feed.options.dialect.header:
        yield from (Finding(path, line, problem) for problem in _lacking(feed))
    for problem in [*_undeclared(feed, is_whole), *_waiting(feed, lying)]:
        yield Finding(path, line, problem, False)


def _lacking(feed: Feed) -> Iterator[str]:
    """Yield what to say of tables whose lists of columns lack one that the producer adds, as the feed says."""
    for table in feed.tables:
        with contextlib.suppress(UsageError):  # it lists none, which a build says
            listed = {column for period in periods_of(feed.name, table) for column in period["columns"]}
            for setting in ("timestamp_column", "sequence_column"):
                column = feed.settings.get(setting)
                if column and column not in listed:
                    yield f"{feed.name}.{table}: {lacks_own_column(column, setting)}."


def check_folder(feeds: list[Feed]) -> Iterator[Finding]:
    """Look for the folder into which feeds are delivered."""
    delivered = [feed for feed in feeds if feed.is_delivered and feed.role != "export"]
    if delivered and is_missing(delivered[0].root):
        problem = f"the folder {delivered[0].root}, into which feeds are delivered, is not there."
        yield Finding(sources_file(delivered[0].name), 1, f"{problem} HIGHWATER_LANDING says where it is.", False)


def _undeclared(feed: Feed, is_whole: bool) -> Iterator[str]:
    """Yield what to say of delivered folders that are no table's; of some tables, of those alone that may be meant."""
    folders = undeclared_folders(feed)
    alike = [folder for folder in folders if tables_called_like(feed, folder)]
    yield from (undeclared(feed, folder) for folder in alike)
    others = [folder for folder in folders if folder not in alike]
    if len(others) == 1 and is_whole:
        yield undeclared(feed, others[0])
    elif others and is_whole:
        yield (
            f"{len(others):,} folders in {feed.name}/ are no declared tables of the feed; their files are not read: "
            f"{first_of(others)}. All are declared with: highwater add-tables {feed.name}"
        )


def _waiting(feed: Feed, lying: Delivered) -> Iterator[str]:
    """Yield what to say of files that do not land as they are."""
    odd, cut = waiting_files(feed, lying)
    yield from odd_in_words(feed, odd)
    yield from (cut_in_words(feed, name) for name in cut)
    names = {file.source_file for file in lying.files}
    over = [left for left, words in lying.left.items() if words and is_whole_beside(left, names)]
    if over:
        it, what = ("it", "1 file is") if len(over) == 1 else ("them", f"{len(over):,} files are")
        files = first_of([printable(name) for name in over])
        yield f"{what} left of a download whose whole file is there by now: {files}. Nothing reads {it}: remove {it}"
    if left := {name: words for name, words in lying.left.items() if name not in over}:
        yield left_in_words(feed, left)
