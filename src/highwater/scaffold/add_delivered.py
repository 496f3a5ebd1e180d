"""Declare the tables of which files are delivered: their columns are what the files tell."""

import contextlib
import re
from collections.abc import Iterator

from highwater.catalog.columns import FoundColumns
from highwater.catalog.entities import declared_columns
from highwater.catalog.feeds import Feed, declared_feeds
from highwater.catalog.names import declaring, name_inside
from highwater.formats.formats import TABLE_IN_FILE_NAMES, TABLE_IN_FOLDERS
from highwater.formats.records import UnreadableFile
from highwater.landing.feed_folders import delivered_files, undeclared_folders
from highwater.landing.listing import filesystem
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import in_shell, printable
from highwater.scaffold.add_table import add_table
from highwater.scaffold.add_tables import chosen_key, entity_of, options_of_new
from highwater.scaffold.decisions import Addition, Doubt
from highwater.scaffold.found_columns import FILES_AT_MOST, found_in_files, records_of
from highwater.scaffold.new_feed import given_feed

# a key that is written with types
TYPED = re.compile(r":\s*\w+[^:\"]*\Z")


def found_for(
    table: str,
    key: str | None,
    without_key: bool,
    format: str | None,
    settings: dict,
    source_table: str | None,
    shards: dict | None = None,
) -> tuple[FoundColumns, list[Doubt], str]:
    """Return the columns of a table that is about to be added, as found_in_files has them.

    Arguments:
        table: `<feed>.<table>`. key: `NAME,…`, the columns that identify a row; None: the records tell it.
        without_key: nothing does. format, settings: of a feed that is not declared yet.
        source_table, shards: as for add_table.
    Raises: UsageError when nothing tells the columns, or the key.
    """
    name, _, inside = table.partition(".")
    called = source_table or inside
    if given_feed(name, format, settings, {}).layout != TABLE_IN_FOLDERS and '"' not in called:
        called = called.lower()
    feed = given_feed(name, format, settings, {inside: called}, {inside: shards} if shards else None)
    found, doubts, evidence = found_in_files(feed, called)
    if key or without_key:
        return FoundColumns(found.columns, chosen_key(key, found.columns) if key else []), doubts, evidence
    if not found.key:
        raise UsageError(
            f"the records of {printable(called)} do not tell its key; say which columns identify a row with "
            "--key NAME,… or that none do with --without-key. "
            f"It has: {printable(', '.join(column.field for column in found.columns))}."
        )
    return found, doubts, evidence


def add_delivered_tables(feed: str, format: str | None, settings: dict[str, str]) -> Iterator[Addition]:
    """Declare every table that files of a feed are delivered of and that it does not have yet.

    Arguments:
        feed: its name. format, settings: of a feed that is not declared yet.
    Yields: what became of each, when it is done. Of what is there already nothing is written; see the module check.
    Raises: UsageError when no file is delivered.
    """
    given = given_feed(feed, format, settings, {})
    delivered = _delivered_tables(given)
    if not delivered:
        raise UsageError(
            f"no table is delivered in {printable(f'{given.root}/{feed}')}. Deliver files first, or take the tables "
            "from the database's DDL with --ddl FILE."
        )
    for called in delivered:
        declared = declared_feeds().get(feed)
        there = [table for table in (declared.tables if declared else ()) if declared.source_table(table) == called]
        name = f"{feed}.{there[0] if there else name_inside(called)}"
        if there:
            columns, key = declared_columns(entity_of(feed, there[0]))
            yield Addition(name, len(columns), key)
            continue
        columns = 0
        try:
            found, doubts, _ = found_in_files(given_feed(feed, format, settings, {name_inside(called): called}), called)
            columns = len(found.columns)
            if not found.key:
                options = [declaring(feed, called), *map(in_shell, options_of_new(feed, format, settings))]
                yield Addition(name, columns, [], refused=True, command=" ".join(options))
                continue
            source_table = None if name_inside(called) == called else called
            format_of_new = None if declared else format
            written = add_table(name, format=format_of_new, settings=settings, source_table=source_table, found=found)
            origins = {"key_from": "as the records tell", "units_from": "as the schema of the records tells"}
            yield Addition(name, columns, found.key, written, found=found, doubts=doubts, **origins)
        except UsageError as error:
            yield Addition(name, columns, [], notes=[f"not added: {error}"], refused=True)


def _delivered_tables(feed: Feed) -> list[str]:
    """Return the tables of a feed of which files are delivered, as its folders, its files or its records call them."""
    if feed.layout == TABLE_IN_FOLDERS:
        return [folder for folder in undeclared_folders(feed) if "/" not in folder]
    files = sorted(delivered_files(feed), key=lambda file: file.modified_at, reverse=True)
    if feed.layout == TABLE_IN_FILE_NAMES:
        return sorted({file.table for file in files if file.table and not file.problem})
    found, (system, _) = set(), filesystem(feed.root)
    for file in files[:FILES_AT_MOST]:
        with contextlib.suppress(UnreadableFile, OSError):
            found.update(record["source_table"] for record in records_of(system, feed, file))
    found.discard(None)
    return sorted(found)
