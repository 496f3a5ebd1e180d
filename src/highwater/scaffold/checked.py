"""What a check of declarations looks at, and what it has found."""

from dataclasses import dataclass, field
from pathlib import Path

from highwater.catalog.columns import Column
from highwater.catalog.feeds import Feed
from highwater.catalog.tables import named as first_of
from highwater.runtime.printable import counted, printable
from highwater.scaffold.found_columns import Observed

# the tables of which something is said
THESE = "{these}"


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, or may be.

    Attributes:
        path: the file to edit, or the delivered one. line: in it, from 1. problem: what is wrong and what to do, in one
            sentence or two.
        is_error: the table cannot be right as it is declared; otherwise somebody should look.
    """

    path: Path | str
    line: int
    problem: str
    is_error: bool = True

    def __str__(self) -> str:
        said = f"{self.path}:{self.line}: {'' if self.is_error else 'warning: '}{self.problem}"
        return printable(said)


@dataclass(frozen=True)
class Compared:
    """What a table was compared with.

    Attributes:
        entity: the table. records: how many were read of it. files: in which. nothing: why none were; None: some were.
    """

    entity: str
    records: int
    files: set[str]
    nothing: str | None = None


@dataclass
class Checked:
    """What a check has found.

    Attributes:
        findings: in the order of the tables. compared: what each table was compared with, feed by feed.
        waiting: the feeds whose files are not those of their last landing.
    """

    findings: list[Finding] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)
    waiting: list[Feed] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """What it comes to, in a sentence."""
        if self.findings:
            return f"{counted(len(self.findings), 'warning')}."
        nothing = "" if any(not each.nothing for each in self.compared) else " in themselves"
        return f"Nothing is wrong with the declarations{nothing}."

    def compared_with(self) -> list[str]:
        """Return what the declarations were compared with, in words, a line each."""
        some = [each for each in self.compared if not each.nothing]
        lines, reasons = [], {}
        if some:
            tables = sorted({each.entity for each in some})
            records, files = sum(each.records for each in some), set().union(*(each.files for each in some))
            newest = f"{counted(records, 'record')} of {counted(len(files), 'file')}, the newest"
            lines.append(f"Compared {first_of(tables)} with {newest}.")
        for each in self.compared:
            if each.nothing:
                reasons.setdefault(each.nothing, []).append(each.entity)
        for reason, tables in reasons.items():
            it, read = ("it", "declaration was") if len(tables) == 1 else ("them", "declarations were")
            lines.append(f"Of {first_of(tables)} only the {read} read: {reason.replace(THESE, it)}.")
        return lines


@dataclass(frozen=True)
class Project:
    """What declarations may name: feeds by name, entities, models, of these such that nothing describes, own tests.

    And what the newest files tell of the tables that are checked, by feed and table.
    """

    feeds: dict[str, Feed]
    observed: dict[tuple[str, str], Observed]
    entities: list[str]
    models: set[str]
    undescribed: set[str]
    tests: set[str]

    def has(self, feed: str, table: str) -> bool:
        """Return whether a feed with a table that raw calls so is declared."""
        declared = self.feeds.get(feed)
        return declared is not None and table in map(declared.source_table, declared.tables)


@dataclass(frozen=True)
class Declared(Column):
    """A column as its line declares it.

    Attributes:
        line: where. former: what the records called it before. came_later: records from before do not have it.
    """

    line: int = 0
    former: tuple[str, ...] = ()
    came_later: bool = False
