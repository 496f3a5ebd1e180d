"""What a command has decided for the tables that it added, and what it could not tell: said once for all of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from highwater.catalog.columns import UNITS, FoundColumns
from highwater.catalog.feeds import Feed
from highwater.catalog.tables import named
from highwater.formats.declared import carries_parts, tells_truncates
from highwater.runtime.printable import printable

MOST_NAMED = 3


class Doubt(NamedTuple):
    """What could not be told of a column.

    Attributes:
        column: its field; None: it is said of the table. said: a sentence, of a column without its subject.
    """

    column: str | None
    said: str

    def __str__(self) -> str:
        return f"{self.column} {self.said}" if self.column else self.said


@dataclass(frozen=True)
class Addition:
    """What became of a table.

    Attributes:
        table: `<feed>.<table>`. columns: how many it has. key: its key. written: the files; none: it was not added.
        notes: what is declared otherwise, or why it was not added. found: its columns; None: it was not added now.
        doubts: what could not be told. key_from, units_from: what told key and units. refused: it was not added.
        command: the one that adds it, but for its key; None: there is more to say.
    """

    table: str
    columns: int
    key: list[str]
    written: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: bool = False
    found: FoundColumns | None = None
    doubts: list[Doubt] = field(default_factory=list)
    key_from: str = ""
    units_from: str = ""
    command: str | None = None

    @property
    def outcome(self) -> str:
        """What became of it, in a word or two."""
        if self.refused:
            return "not added"
        if self.written:
            return "added"
        return "differs" if self.notes else "as it was"

    @property
    def name(self) -> str:
        """The table inside its feed."""
        return self.table.partition(".")[2]


def decisions(feed: Feed, additions: Iterable[Addition]) -> list[str]:
    """Return what was decided for the tables that were added, a line each; none where none were."""
    added = [each for each in additions if each.written]
    if not added:
        return []
    lines = []
    for origin in dict.fromkeys(each.key_from for each in added):
        lines.append(f"key: {origin}{_of_some([each.name for each in added if each.key_from == origin], added)}")
    for unit in UNITS:
        columns = [
            f"{each.name}.{column.field}" for each in added for column in each.found.columns if column.unit == unit
        ]
        if columns:
            lines.append(f"unit of times: {unit}, {added[0].units_from}: {first_of(columns)}")
    if carries_parts(feed.format, feed.settings):
        lines.append(f"partial_images: true, for changes of {feed.format} may carry some columns only")
    if tells_truncates(feed.format, feed.settings) and not all(feed.shards_of(each.name) for each in added):
        lines.append(f"truncates: true, for {feed.format} tells when a table is truncated")
    system = feed.name.partition("_")[2]
    return [f"Decided, and declared in models/tables/{system}/:", *(f"  {line}" for line in lines)]


def _of_some(tables: list[str], added: list) -> str:
    return "" if len(tables) == len(added) else f": {first_of(tables)}"


def doubts(additions: list[Addition]) -> Iterator[str]:
    """Yield what could not be told of the columns, each thing once for all tables."""
    whose: dict[tuple[str, bool], list[str]] = {}
    for each in additions:
        for column, said in each.doubts:
            whose.setdefault((said, bool(column)), []).append(f"{each.name}.{column}" if column else each.name)
    for (said, is_of_column), names in whose.items():
        several = f"{first_of(names)}: each {said}"
        yield (several if len(names) > 1 else f"{names[0]} {said}") if is_of_column else f"{first_of(names)}: {said}"


def without_keys(additions: list[Addition]) -> Iterator[str]:
    """Yield what to do about tables whose key nothing tells, once for all of them."""
    commands = [each.command for each in additions if each.command]
    if not commands:
        return
    tables = "1 table" if len(commands) == 1 else f"{len(commands):,} tables"
    yield f"Nothing tells the key of {tables}. Say it, or --without-key where nothing identifies a row:"
    yield from (f"  {command} --key NAME,…" for command in commands[:MOST_NAMED])
    if len(commands) > MOST_NAMED:
        yield f"  and so on, for {len(commands) - MOST_NAMED:,} more"


def first_of(names: list[str]) -> str:
    """Return the first three names of a list in a row, and how many more there are."""
    return printable(named(names, MOST_NAMED))
