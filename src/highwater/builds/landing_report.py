"""Landing as a command does it: every feed, each with its lines; a feed that fails keeps no other from landing."""

import contextlib
from dataclasses import dataclass, field

import click

from highwater.catalog.feeds import Feed
from highwater.catalog.tables import named
from highwater.landing.deliveries import (
    begun_in_words,
    cut_in_words,
    declaring_another,
    is_delivered_to,
    left_in_words,
    nothing_landed,
    odd_in_words,
    undeclared,
)
from highwater.landing.landing import land_all
from highwater.landing.landings import Landing, noted_landing
from highwater.landing.new_files import changed_file
from highwater.runtime.faults import trouble_of_one
from highwater.scaffold.found_columns import several_tables


@dataclass
class Landed:
    """What became of the feeds of a project.

    Attributes:
        newest: number and time of the newest batch of each feed, of one that failed as its note has it. changed: what
            to do about files that have changed since they landed, or were cut, but for exports. refused: what kept
            exports from landing. failures: what kept feeds from it.
    """

    newest: dict[str, Landing] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def land_and_tell(spark, feeds: dict[str, Feed]) -> Landed:
    """Land the feeds and print a summary line for each.

    Raises: what leaves nothing that the others could do either: Java has ended, or a disk is full.
    """
    found, idle, empty = Landed(), [], []
    with contextlib.closing(land_all(spark, feeds.values())) as landings:
        for feed, landed in landings:
            if isinstance(landed, Exception):
                found.failures.append(trouble_of_one(landed))
                found.newest[feed.name] = noted_landing(feed.name)
                click.echo(f"{feed.name}: failed")
                continue
            found.newest[feed.name] = landed.newest
            changed = _report(feed, landed)
            # what is wrong with an export is wrong with no table: it is told, and `highwater reconcile` says it too
            found.changed += [] if feed.role == "export" else changed
            found.refused += landed.refused
            if (feed.is_delivered or feed.relation) and not landed.files and not landed.refused:
                is_empty = is_delivered_to(feed) and not any(landed.newest) and not landed.gone_back
                (empty if is_empty else idle).append(feed)
    if idle:
        click.echo(f"{named([feed.name for feed in idle])}: nothing new")
    if empty:
        click.echo(f"{named([feed.name for feed in empty])}: no file has landed yet; {nothing_landed(empty)}")
    return found


def _report(feed, landed) -> list[str]:
    """Print what became of a feed; return what to do about its files that have changed, or were cut."""
    if landed.files:
        click.echo(str(landed))
    if landed.is_gone:
        click.echo(f"warning: the folder {feed.name}/, of which files have landed, is not there any more", err=True)
    if landed.gone_back:
        click.echo(f"warning: {landed.gone_back}", err=True)
    changed = [changed_file(feed, file) for file in landed.changed]
    changed += [cut_in_words(feed, file) for file in landed.cut]
    changed += [begun_in_words(feed, *names) for names in landed.begun]
    for what_to_do in changed:
        click.echo(f"warning: {what_to_do}", err=True)
    for words in landed.corrected:
        click.echo(words)
    for odd in odd_in_words(feed, landed.odd):
        click.echo(f"warning: {odd}", err=True)
    if landed.left:
        click.echo(f"warning: {left_in_words(feed, landed.left)}", err=True)
    for folder in landed.undeclared:
        click.echo(f"warning: {undeclared(feed, folder)}", err=True)
    for several in several_tables(feed, landed.tables):
        click.echo(f"warning: {several}", err=True)
    for name, (table, first) in landed.second.items():
        click.echo(
            f"warning: {feed.name}: records of the table {_in_words(table)} are in unassigned_records, for "
            f"{_in_words(first)} has its name. Declare it with: {declaring_another(feed, name)}",
            err=True,
        )
    return changed


def _in_words(table) -> str:
    schema, name = table
    return f"{name!r} of the schema {schema!r}" if schema else repr(name)
