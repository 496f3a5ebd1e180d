"""What lies in the folders of a feed, and which of them are a table's."""

import functools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyarrow import fs

from highwater.catalog.feeds import Feed
from highwater.formats.formats import TABLE_IN_FILE_NAMES, TABLE_IN_FOLDERS
from highwater.formats.records import table_name
from highwater.landing.declared_exports import Declared, export_positions
from highwater.landing.file_names import is_called_so, left_alone
from highwater.landing.listing import (
    DeliveredFile,
    Found,
    LinkFound,
    Listed,
    files_below,
    filesystem,
    folders_in,
    is_missing,
)
from highwater.landing.partitions import NOTHING, PassedOver, is_passed_over
from highwater.runtime.errors import UsageError
from highwater.runtime.faults import masked
from highwater.runtime.printable import printable

NAMES_TABLE = re.compile(r"(?P<table>[^-]+)(-.+)?-\d+\.csv(\.gz)?")


@dataclass(frozen=True)
class Delivered:
    """What lies in the folders of a feed, in the order of the names.

    Attributes:
        files: that are read. odd: those that are not called as files of the feed are; they are not read.
        left: names below the landing folder of what is still written, or holds no data, and what each is in words.
        passed_over: what the listing has passed over.
    """

    files: list[DeliveredFile] = field(default_factory=list)
    odd: list[DeliveredFile] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    passed_over: PassedOver = NOTHING

    @property
    def listed(self) -> Iterator[Listed]:
        """All of the files, each with whether it is odd."""
        yield from ((file, False) for file in self.files)
        yield from ((file, True) for file in self.odd)


def look(feed: Feed, passed_over: PassedOver = NOTHING) -> Delivered:
    """Look into the folders of a feed.

    An export that `_exports.yml` does not declare says so itself, as `undeclared`.

    Arguments:
        passed_over: what need not be listed; where links are found, everything is all the same.
    """
    try:
        return _look(feed, passed_over)
    except LinkFound:
        return _look(feed, NOTHING)


def _look(feed: Feed, passed_over: PassedOver) -> Delivered:
    found = Delivered()
    if not feed.is_delivered:
        return found
    names = {"format": feed.format, "endings": feed.endings}
    for table, folders in _folders_of_tables(feed):
        read, passes_over = [], None
        if before := passed_over.before.get("/".join(folders)):
            passes_over = functools.partial(is_passed_over, feed.partitions, before)
        leaves_alone = functools.partial(left_alone, **names)
        for file in files_below(feed.root, *folders, leaves_alone=leaves_alone, passes_over=passes_over):
            if file.left is not None:
                found.left["/".join((*folders, str(file.below)))] = file.left
            elif file.problem or is_called_so(file.below.name, **names):
                read.append(file)
            else:
                found.odd.append(_delivered(feed, table, folders, file, Declared()))
        positions = export_positions(feed, folders, [file for file in read if not file.problem])
        found.files.extend(
            _delivered(feed, table, folders, file, positions.get(str(file.below), Declared())) for file in read
        )
    return Delivered(_each_once(found.files), _each_once(found.odd), found.left, passed_over)


def _folders_of_tables(feed: Feed) -> list[tuple[str | None, list[str]]]:
    """Return which folders hold the files of which tables, as raw calls them, each as the way to it."""
    if feed.layout != TABLE_IN_FOLDERS:
        return [(None, [feed.name])]
    found = []
    for name in feed.tables:
        table, shards = feed.source_table(name), feed.shards_of(name)
        schemas = [[each] for each in _looked_into(feed) if shards.has(each, table)] if shards else [[]]
        found += [(table, [feed.name, *schema, table]) for schema in schemas]
    # those of tables that the source has renamed
    return found + [(table, [feed.name, other]) for other, table in feed.options.also_called.items()]


def folders_of_tables(feed: Feed) -> list[str]:
    """Return the folders that hold the files of a feed, below the landing folder."""
    return ["/".join(folders) for _, folders in _folders_of_tables(feed)]


def _looked_into(feed: Feed, *folders: str) -> list[str]:
    """Return the names of the folders in a folder of a feed, but of those that are left alone."""
    names = folders_in(feed.root, "/".join((feed.name, *folders)))
    return sorted(name for name in names if left_alone(name, True, feed.format, feed.endings) is None)


def _each_once(files: list[DeliveredFile]) -> list[DeliveredFile]:
    return list({file.source_file: file for file in files}.values())


def delivered_files(feed: Feed) -> list[DeliveredFile]:
    """List the files of a feed that are to be read, in the order of their names."""
    return look(feed).files


def _delivered(feed: Feed, table: str | None, folders: list[str], file: Found, declared: Declared) -> DeliveredFile:
    name = os.path.normpath("/".join((*folders, str(file.below))))
    return DeliveredFile(
        path=file.path,
        source_file=printable(name) if file.problem else name,
        table=feed.in_raw(_table_of_file(file.below.name, feed) if feed.layout == TABLE_IN_FILE_NAMES else table),
        size=file.size,
        modified_at=file.modified_at,
        position=declared.position,
        taken_at=declared.taken_at,
        problem=file.problem,
        entry=declared.entry,
        undeclared=declared.problem,
    )


def require_landing_folder(feeds: Iterable[Feed]) -> None:
    """Check that the folder is there into which these feeds are delivered.

    Raises: UsageError naming the folder; an empty one is no error, a missing one is a disk that is not there or a typo.
    """
    roots = {feed.root for feed in feeds if feed.is_delivered and feed.role != "export"}
    for root in sorted(roots):
        if is_missing(root):
            raise UsageError(
                f"the landing folder {printable(masked(root))} is not there, so nothing can land. "
                f"{'Does its bucket exist' if '://' in root else 'Is its disk mounted'}? HIGHWATER_LANDING says where "
                "feeds are delivered."
            )


def is_gone(feed: Feed) -> bool:
    """Return whether the folder of a feed is not there; before the first delivery none is. A URI has no folders."""
    return feed.is_delivered and "://" not in feed.root and is_missing(f"{feed.root}/{feed.name}")


def _table_of_file(name: str, feed: Feed) -> str | None:
    """Return the table that a file named `<schema>-<table>[-<partition key>]-<number>.csv` belongs to.

    The schema of the name goes up to the first `-`, unless the name starts with the schema that the feed declares.
    """
    schema, _, rest = name.partition("-")
    own = feed.options.schema
    if own and name.lower().startswith(f"{own}-".lower()):
        schema, rest = own, name[len(own) + 1 :]
    named = NAMES_TABLE.fullmatch(rest)
    return table_name(schema, named["table"], own) if named else None


def undeclared_folders(feed: Feed) -> list[str]:
    """Return the names of the folders beside the feed's table folders, whose files are not read.

    Of the folders of shards, which are in those of schemas, one of each table: `<schema>/<table>`.
    """
    if feed.layout != TABLE_IN_FOLDERS or not feed.is_delivered:
        return []
    declared = {feed.source_table(table) for table in feed.tables if not feed.shards_of(table)}
    declared |= feed.options.also_called.keys()
    found, of_shards = [], set()
    for name in _looked_into(feed):
        tables = {each.table for each in feed.options.shards if each.has(name, each.table)}
        if name not in declared and not tables:
            found.append(name)
        elif name not in declared:
            others = set(_looked_into(feed, name)) - tables - of_shards
            found += [f"{name}/{table}" for table in sorted(others)]
            of_shards |= others
    return found


def entries_in(feed: Feed, root: str, folder: str) -> list[tuple[str, bool]]:
    """Return what lies in a folder below a root and is not left alone: names, and whether each is a folder."""
    system, path = filesystem(root)
    found = system.get_file_info(fs.FileSelector("/".join(filter(None, (path, folder))), allow_not_found=True))
    names = ((info.base_name, info.type == fs.FileType.Directory) for info in found)
    return sorted(each for each in names if left_alone(*each, feed.format, feed.endings) is None)


def holds_files(feed: Feed, root: str, *folders: str) -> bool:
    """Return whether a folder below a root, or one in it, has a file that is not left alone."""
    leaves_alone = functools.partial(left_alone, format=feed.format, endings=feed.endings)
    return any(file.left is None for file in files_below(root, *folders, leaves_alone=leaves_alone))
