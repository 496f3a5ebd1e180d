"""How the newest files of a table differ from its declaration."""

import json
from collections.abc import Iterator
from pathlib import Path

from highwater.catalog.columns import as_typed
from highwater.catalog.declarations import sources_file
from highwater.catalog.feeds import Feed
from highwater.formats.declared import carries_parts
from highwater.formats.formats import CHOICES, DEBEZIUM, are_read_alike
from highwater.landing.deliveries import skipping
from highwater.runtime.printable import counted, in_shell, printable
from highwater.scaffold.checked import THESE, Compared, Declared, Finding
from highwater.scaffold.fits import TOO_NARROW, holds, misfit
from highwater.scaffold.found_columns import Observed, type_in

MOST_SHOWN, LONGEST_EXAMPLE = 5, 60
DEFAULTS = {"form": "envelope"}


class Files:
    """The newest files of a table, beside its declaration."""

    def __init__(
        self,
        entity: str,
        feed: Feed,
        observed: Observed,
        declared: dict[str, Declared],
        key: list[str],
        of_shards: Declared | None = None,
    ):
        self.entity, self.feed, self.observed = entity, feed, observed
        # the column of shards has what the record says of itself, and is none of its fields
        self.declared, self.of_shards = {field: c for field, c in declared.items() if c is not of_shards}, of_shards
        self.key = key
        self.values = self.observed.values

    @property
    def compared(self) -> Compared:
        """What the table was compared with."""
        return Compared(self.entity, self.observed.records, self.observed.files, self._nothing())

    def _nothing(self) -> str | None:
        if self.values or self.observed.types:
            return None
        if self.feed.relation:
            return f"{self.feed.name} reads {printable(self.feed.relation)}, and no files are delivered"
        if not self.feed.is_delivered:
            return f"{self.feed.name} is extracted from a database, and no files are delivered"
        if self.observed.is_unnamed:
            return f"the files of {self.feed.name} do not name their columns"
        if not self.observed.opened:
            return f"no file of {THESE} has come into {self.feed.root}/{self.feed.name}/ yet"
        return f"no record of {THESE} is in the newest {counted(self.observed.opened, 'file')} of {self.feed.name}"

    def findings(self, path: Path, line: int) -> Iterator[Finding]:
        """Yield what differs between the files and the declaration, whose columns are listed from a line on."""
        yield from self._broken()
        named = [(line, problem) for problem in self._named()]
        for at, problem in [*named, *self._undeclared(line), *self._columns()]:
            yield Finding(path, at, f"{problem}.", is_error=False)
        if several := self.observed.of_several_tables():
            yield Finding(path, line, f"{self.feed.name}: {several}.", is_error=False)

    def _named(self) -> Iterator[str]:
        """Yield which settings of the feed most records name otherwise."""
        for name, values in self.observed.named.items():
            if name == "connector" and self.feed.settings.get("order") == "kafka":
                continue
            said, count = next(iter(values.most_common(1)), (None, 0))
            declared = self.feed.settings.get(name, DEFAULTS.get(name))
            if count * 2 > values.total() and not are_read_alike(said, declared):
                records = f"{count:,} of {counted(values.total(), 'record')} of {self.feed.name}"
                do = f"write `{name}: {said}` into {sources_file(self.feed.name)}"
                if said not in CHOICES.get(name, (said,)):
                    do = f"positions of {said} cannot be read; where deliveries tell Kafka's offsets, " + do.replace(
                        f"{name}: {said}", "order: kafka"
                    )
                yield f"the {name} of {records} is {said}, and the feed declares {declared}; {do}"

    def _broken(self) -> Iterator[Finding]:
        more = len(self.observed.broken) - MOST_SHOWN
        for number, each in enumerate(self.observed.broken[:MOST_SHOWN], 1):
            path = f"{self.feed.root}/{each.file}"
            if each.line:
                problem = f"{each.problem}. The record will be rejected; the others of the file are taken."
            else:
                problem = f"{each.problem}. A build stops there; take it away, or leave it out: {skipping(each.file)}"
            if number == MOST_SHOWN and more > 0:
                problem += f" {more:,} more of these files are like that."
            yield Finding(path, each.line or 1, problem, is_error=False)

    def _undeclared(self, line: int) -> Iterator[tuple[int, str]]:
        by_letters, by_said = {name.lower(): (name, column) for name, column in self.declared.items()}, {}
        by_field, former = {}, {name for column in self.declared.values() for name in column.former}
        for name in [name for name in {**self.observed.types, **self.values} if name not in {*self.declared, *former}]:
            said = counted(len(self.values[name]), "record") if name in self.values else "the schema"
            said += f" of {self.feed.name} {'has' if said in ('1 record', 'the schema') else 'have'} the field"
            if self.of_shards and name == self.of_shards.field:
                do = f"to read it, first give the column {self.of_shards.name} of the shards a field that no record has"
                yield self.of_shards.line, f"{said} {name!r}; {do}: config: {{meta: {{field: shard of the record}}}}"
            elif other := by_letters.get(name.lower()):
                do = f"the column {other[1].name} is declared for {other[0]!r}: give it "
                yield other[1].line, f"{said} {name!r}, which is not declared; {do}config: {{meta: {{field: {name}}}}}"
            else:
                by_said.setdefault(said, []).append(repr(name))
                by_field.setdefault(said, []).append(name)
        for said, fields in by_said.items():
            one = len(fields) == 1
            added = as_typed((field, self._type_of(field)) for field in by_field[said])
            do = f"add {'it' if one else 'them'}: highwater alter {in_shell(self.entity)} add {in_shell(added)}"
            do += f", or {'its' if one else 'their'} values"
            names = f"{'' if one else 's'} {', '.join(fields)}, which {'is' if one else 'are'} not declared"
            yield line, f"{said}{names}; {do} stay in raw alone"

    def _type_of(self, field: str) -> str:
        """Return the type of a field as `alter` reads it, with its unit."""
        data_type, unit = type_in(self.observed, self.feed, field)
        return data_type + (f"[{unit}]" if unit else "")

    def _columns(self) -> Iterator[tuple[int, str]]:
        fields = {**self.observed.types, **self.values}
        # a record that carries some columns only says nothing of the others
        is_whole = self.feed.format in DEBEZIUM or not carries_parts(self.feed.format, self.feed.settings)
        says_all = fields and (self.observed.types or (is_whole and "no_supplement" not in self.feed.settings))
        letters, types = {name.lower() for name in fields}, self.observed.types
        for name, column in self.declared.items():
            is_known_to_lack = column.came_later or any(former.lower() in letters for former in column.former)
            if says_all and name.lower() not in letters and not is_known_to_lack:
                problem = f"{self.observed} of {self.feed.name} have no field {name!r}; records without it say NULL"
                yield column.line, f"column {column.name}: {problem}"
            elif self._says_type(column) and not holds(column.data_type, types[name][0]):
                problem = f"column {column.name} is {column.data_type}, and the schema of {self.feed.name} says "
                seen = types[name][0]
                yield (
                    column.line,
                    f"{problem}{seen}: what does not fit is rejected; {self._widen(column, seen)}",
                )
            elif problem := self._misfits(column):
                yield column.line, problem

    def _says_type(self, column: Declared) -> bool:
        """Return whether a schema says the type of a column: of decimals it may say only how they are written."""
        found = self.observed.types.get(column.field)
        is_form = column.data_type.startswith("decimal") and found and found[0] == self.feed.settings.get("decimals")
        return bool(found) and not is_form

    def _misfits(self, column: Declared) -> str | None:
        """Return what to say of the values that a column would reject; None: there are none."""
        there, odd = 0, []
        for row in self.observed.rows:
            value = row.values.get(column.field)
            if value is None or (row.is_delete and column.name not in self.key):
                continue
            there += 1
            is_typed = self._says_type(column) or column.field in self.observed.encoded
            if wrong := misfit(value, column, self.feed, is_typed):
                odd.append((row, value, wrong))
        if not odd:
            return None
        row, value, wrong = odd[0]
        do = f"; {self._widen(column)}" if wrong == TOO_NARROW else ""
        values = f"{len(odd):,} of {counted(there, 'value')} of {self.feed.name} would be rejected"
        example = f"{_shown(value)} for example ({row.file}, line {row.line:,})"
        return f"column {column.name} is {column.data_type}, and {values}: {example} {wrong}{do}"

    def _widen(self, column: Declared, data_type: str | None = None) -> str:
        wider = in_shell(data_type) if data_type else "TYPE"
        holds_it = "" if data_type else ", a type that holds it"
        return f"widen it: highwater alter {in_shell(self.entity)} type {in_shell(column.name)} {wider}{holds_it}"


def _shown(value) -> str:
    """Return a value as its record has it, not too long."""
    text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, str | bool) else str(value)
    return text if len(text) <= LONGEST_EXAMPLE else f"{text[:LONGEST_EXAMPLE]}…"
