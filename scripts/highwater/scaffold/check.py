"""Check what the project declares, as a compiler would: without Spark, against the newest files that are delivered."""

from collections.abc import Iterator
from pathlib import Path

<<<<<<< HEAD
import yaml

from highwater.catalog import as_built
from highwater.catalog.columns import VERSIONED, Column, as_typed, stored_columns, what_is_wrong
from highwater.catalog.declarations import sources_file
from highwater.catalog.entities import declaration_of, known_table, logged_tables, publish_groups, staging_of
from highwater.catalog.feeds import FAST_LOADER, FORMATS, Feed, declared_feeds, plain_text
from highwater.catalog.models import calls_of, models, value_returned_in
from highwater.catalog.tables import named as first_of
from highwater.catalog.yaml_files import described_models, named, value_of
from highwater.formats.formats import CHOICES, DEBEZIUM, are_read_alike
from highwater.landing.deliveries import (
    cut_in_words,
    left_in_words,
    odd_in_words,
    skipping,
    tables_called_like,
    undeclared,
)
from highwater.landing.file_names import is_whole_beside
from highwater.landing.landing import Delivered, has_all_landed, look, undeclared_folders, waiting_files
from highwater.landing.listing import is_missing
=======
from highwater.catalog.entities import known_table, logged_tables, publish_groups
from highwater.catalog.feeds import FORMATS, Feed, declared_feeds
from highwater.catalog.models import models, value_returned_in
from highwater.catalog.yaml_files import described_models
from highwater.landing.feed_folders import Delivered, look
from highwater.landing.new_files import has_all_landed
>>>>>>> rules
from highwater.runtime.errors import UsageError
from highwater.runtime.package import package
from highwater.runtime.printable import did_you_mean
from highwater.scaffold.add_table import list_of_tables
from highwater.scaffold.check_feeds import check_feed, check_folder
from highwater.scaffold.check_tables import check_table
from highwater.scaffold.checked import Checked, Finding, Project
from highwater.scaffold.found_columns import RECORDS_AT_MOST, Observed, observed_of_tables

<<<<<<< HEAD
# the tables of which something is said
THESE = "{these}"
MOST_TOLD, LONGEST_EXAMPLE = 5, 60
DEFAULTS = {"form": "envelope"}
=======
>>>>>>> rules
# so that it takes about a second, however many tables there are
RECORDS_OF_ALL, RECORDS_AT_LEAST, LOOKED_AT_MOST = 10_000, 20, 40_000


def check(*chosen: str) -> Checked:
    """Return what is wrong with the declarations of all tables, or of some.

    Arguments:
        chosen: the names of tables; none: all, and the list of tables too.
    Raises: UsageError when a feed or a file of YAML cannot be read, or there is no such table.
    """
    feeds, found = declared_feeds(), Checked()
    for table in chosen:
        known_table(table)
    written, described = models().keys(), described_models().keys()
    tests = {path.stem for path in (package() / "tests/generic").glob("*.sql")}
    tables, findings, of_check = logged_tables(), [], set()
    checked = [(entity, sources) for entity, sources in tables if not chosen or entity in chosen]
    observed = _observed([source for _, sources in checked for source in sources], feeds)
    project = Project(feeds, observed, [entity for entity, _ in tables], written, written - described, tests)
    for entity, sources in checked:
        findings += check_table(entity, sources, project, found.compared)
        of_check |= {feed for feed, _ in sources if feed in feeds}
    of_tables = [feed for name, feed in feeds.items() if not chosen or name in of_check]
    lying = {feed.name: _lying(feed) for feed in of_tables}
    for feed in of_tables:
        findings += check_feed(feed, project, not chosen, lying[feed.name])
    findings += check_folder(of_tables)
    if not chosen:
        findings += [*_check_groups(project), *_check_list_of_logs()]
    found.findings = [*{(str(each)): each for each in findings}.values()]
    found.waiting = [feeds[name] for name in sorted(of_check) if not has_all_landed(feeds[name], lying[name])]
    return found


def _lying(feed: Feed) -> Delivered:
    """Return what lies in the folders of a feed; nothing where an export has no position, which landing says."""
    try:
        return look(feed)
    except UsageError:
        return Delivered()


def _observed(sources: list[tuple[str, str]], feeds: dict[str, Feed]) -> dict[tuple[str, str], Observed]:
    """Return what the newest files tell of some tables, from fewer records of each where they are many."""
    records = min(RECORDS_AT_MOST, max(RECORDS_AT_LEAST, RECORDS_OF_ALL // max(1, len(sources))))
    observed = {source: Observed() for source in sources}
    for feed in [feeds[name] for name in dict.fromkeys(name for name, _ in sources) if name in feeds]:
        if FORMATS[feed.format].is_delivered:
            tables = [table for name, table in sources if name == feed.name]
            of_feed = observed_of_tables(feed, tables, records, LOOKED_AT_MOST)
            observed |= {(feed.name, table): found for table, found in of_feed.items()}
    return observed


def _check_list_of_logs() -> Iterator[Finding]:
    listed = list_of_tables()
    if (_listed(listed) or []) != [entity for entity, _ in logged_tables()]:
        problem = "is not what the models say, and builds read it. Take it from version control, or run any add-table."
        yield Finding(listed, 1, problem)


def _check_groups(project: Project) -> Iterator[Finding]:
    """Look for tables of publish groups that are not there."""
    for group, entities in publish_groups().items():
        for entity in entities:
            if entity not in project.entities:
                path = models("publications")[f"{group}_publications"].path
                said = f"the group {group} has the table {entity}, which is not there."
                yield Finding(path, 1, f"{said}{did_you_mean(entity, project.entities)}")


def _listed(path: Path) -> list[str] | None:
    """Return the names in the list of tables; None: there is no list."""
    listed = value_returned_in(path) if path.exists() else None
    # as add-table of version 0.5 wrote them, each is a mapping
    return listed and [table["entity"] if isinstance(table, dict) else table for table in listed]
<<<<<<< HEAD


def _check_table(
    entity: str, sources: list[tuple[str, str]], project: _Project, compared: list[Compared]
) -> Iterator[Finding]:
    path = declaration_of(entity)
    try:
        document = yaml.compose(path.read_text(), FAST_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        yield Finding(path, mark.line + 1 if mark else 1, f"is not YAML: {getattr(error, 'problem', error)}.")
        return
    log = named(value_of(document, "models"), f"{entity}_changes")
    columns = value_of(log, "columns")
    if not isinstance(columns, yaml.SequenceNode):
        yield Finding(path, 1, f"does not describe {entity}_changes with its columns.")
        return
    declared, wrong = _declared(columns, path.parts[1] == "changes")
    yield from (Finding(path, line, problem) for line, problem in wrong)
    yield from (Finding(path, line, problem, False) for line, problem in misspelt_in_table(document, entity))
    names, key = [column.name for column in declared.values()], value_of(log, "config", "meta", "key")
    if isinstance(key, yaml.ScalarNode) and key.value:
        yield Finding(path, key.start_mark.line + 1, f"key is {key.value!r}; it must be a list: [{key.value}].")
    seen = set()
    for node in key.value if isinstance(key, yaml.SequenceNode) else ():
        if node.value not in names:
            problem = f"the key names {node.value!r}, which is no column. Columns are: {', '.join(names)}."
            yield Finding(path, node.start_mark.line + 1, problem)
        elif node.value in seen:
            yield Finding(path, node.start_mark.line + 1, f"the key names {node.value!r} twice; take one out.")
        seen.add(node.value)
    if not (key and key.value) and f"{entity}_merged" in project.models:
        problem = f"declares no key (`config: {{meta: {{key: […]}}}}`), and {entity}_merged is there, which needs one."
        yield Finding(path, log.start_mark.line + 1, problem)
    layers = [model.name for model in staging_of(entity)]
    layers += [f"{entity}_merged", entity] if key and key.value else []
    for model in layers:
        if model not in project.models:
            yield Finding(path, log.start_mark.line + 1, f"the model {model} is not there; write {model}.sql again.")
        elif model in project.undescribed:
            yield Finding(path, log.start_mark.line + 1, f"nothing describes the model {model}; its tests do not run.")
    yield from _check_tables(entity, path, columns.start_mark.line + 1, wrong)
    yield from _check_sources(entity, sources, project)
    yield from _check_references(entity, document, path, declared, project)
    # what is wrong in itself is repaired first
    for feed, name in sources if not wrong else ():
        if project.has(feed, name):
            shards = project.feeds[feed].shards_of(name)
            column = next((each for each in declared.values() if shards and each.name == shards.column), None)
            files = _Files(entity, project.feeds[feed], project.told[feed, name], declared, names_of_key(key), column)
            compared.append(files.compared)
            yield from files.findings(path, columns.start_mark.line + 1)


def names_of_key(key) -> list[str]:
    """Return the columns that the node of a key names."""
    return [node.value for node in key.value] if isinstance(key, yaml.SequenceNode) else []


def _check_tables(entity: str, path: Path, line: int, wrong: list) -> Iterator[Finding]:
    """Look for what the declaration has that its tables were not made by, as far as a build has written that down."""
    was = as_built.remembered().get(entity)
    if not was or wrong:
        return
    types = {name: column["type"] for name, column in was["columns"].items()}
    differs = as_built.differences(entity, was, as_built.declared_shape(entity), types, None)
    if differs.is_unsafe:
        do = f"{differs.what_to_do()}. Until then it is not built"
        yield Finding(path, line, f"differs from its tables: {differs.in_words()}. {do}.")
    elif differs:
        said = f"differs from its tables: {differs.in_words()}; the next highwater build sees to it"
        yield Finding(path, line, f"{said}.", is_error=False)


def _check_sources(entity: str, sources: list[tuple[str, str]], project: _Project) -> Iterator[Finding]:
    """Look for feeds and tables that staging models read and nothing declares."""
    for feed, table in sources:
        declared = project.feeds.get(feed)
        if project.has(feed, table):
            continue
        model = next(model.path for model in staging_of(entity) if feed in dict(model.sources))
        word, known = (table, declared.tables) if declared else (feed, project.feeds)
        said = f"reads the table {table} of the feed {feed}, and no source declares {word}."
        yield Finding(model, 1, f"{said}{did_you_mean(word, known)}")
        path = Path(f"models/staging/{feed}/_{feed}__sources.yml")
        if not declared and path.exists():
            document = yaml.compose(path.read_text(), FAST_LOADER)
            yield from (Finding(path, line, problem) for line, problem in misspelt_in_source(document, feed))


def _check_references(entity: str, document, path: Path, declared: dict, project: _Project) -> Iterator[Finding]:
    """Look for what the tests of a table's layers name and is not there: tables, feeds, columns, models."""
    every = {name for column in declared.values() for name in (column.name, column.mart_name, column.version_name)}
    every |= stored_columns() | {*VERSIONED}
    for model in layers_in(document, entity):
        columns = value_of(model, "columns")
        # somebody's own columns of a mart are listed there
        listed = {_text(value_of(node, "name")) for node in columns.value} if columns else set()
        names = every | (listed - {None})
        for test, settings in tests_of(model):
            arguments = value_of(settings, "arguments")
            for name, node in arguments.value if isinstance(arguments, yaml.MappingNode) else ():
                for word, known in _named_by(name.value, node, test, names, project, path):
                    said = f"the test {test} names {word!r} as {name.value}, which is not there."
                    yield Finding(path, node.start_mark.line + 1, f"{said}{did_you_mean(word, known)}")


def _named_by(
    argument: str, node, test: str, columns: set[str], project: _Project, path: Path
) -> Iterator[tuple[str, set]]:
    """Yield the words of a test's argument that name nothing, each with what they may name."""
    known = {"column_name": columns}
    if test.rpartition(".")[2] in project.tests:
        tables = {table for feed in project.feeds.values() for table in feed.tables}
        known |= {"entity": {*project.entities}, "feed": {*project.feeds}, "table": tables, "key": columns}
        known |= {"view": project.models, "export": project.models}
    for each in (node.value if isinstance(node, yaml.SequenceNode) else [node]) if argument in known else ():
        word = plain_text(_text(each) or "")
        for name in _staging_in(word, path) if argument == "export" else [word]:
            if name and name not in known[argument]:
                yield name, known[argument]


def _staging_in(text: str, path: Path) -> list[str]:
    """Return the staging models that a text of Jinja refers to; another export may be a seed or a snapshot."""
    return [name for call in calls_of(f"{{{{ {text} }}}}", path) for name in call.names[-1:] if name.startswith("stg_")]


@dataclass(frozen=True)
class Declared(Column):
    """A column as its line declares it.

    Attributes:
        line: where. former: what the records called it before. came_later: records from before do not have it.
    """

    line: int = 0
    former: tuple[str, ...] = ()
    came_later: bool = False


def _declared(columns, has_others: bool) -> tuple[dict[str, Declared], list[tuple[int, str]]]:
    """Return the columns of a list by their fields, and what is wrong with some, by line.

    Arguments:
        has_others: the list has columns without a type, of the change contract; declarations of version 0.5 had them.
    """
    declared, wrong = {}, []
    for node in columns.value:
        name, data_type = (_text(value_of(node, each)) or "" for each in ("name", "data_type"))
        if has_others and not data_type:
            continue
        called = plain_text(_text(value_of(node, "config", "meta", "field")) or name)
        line = node.start_mark.line + 1
        unit = _text(value_of(node, "config", "meta", "unit"))
        wrong += [(line, f"{problem}.") for problem in what_is_wrong(called, data_type.lower(), unit)]
        if called in declared:
            said = f"column {called!r} is declared in line {declared[called].line} already; take one out."
            wrong.append((line, said))
        former = tuple(plain_text(each) for each in names_of_key(value_of(node, "config", "meta", "former_fields")))
        came_later = _text(value_of(node, "config", "meta", "came_later")) == "true"
        declared[called] = Declared(name, called, data_type.lower(), unit, None, line, former, came_later)
    return declared, wrong


def _text(node) -> str | None:
    return node.value if isinstance(node, yaml.ScalarNode) else None


class _Files:
    """The newest files of a table, beside its declaration."""

    def __init__(
        self,
        entity: str,
        feed: Feed,
        told: Told,
        declared: dict[str, Declared],
        key: list[str],
        of_shards: Declared | None = None,
    ):
        self.entity, self.feed, self.told = entity, feed, told
        # the column of shards has what the record says of itself, and is none of its fields
        self.declared, self.of_shards = {field: c for field, c in declared.items() if c is not of_shards}, of_shards
        self.key = key
        self.values = self.told.values

    @property
    def compared(self) -> Compared:
        """What the table was compared with."""
        return Compared(self.entity, self.told.records, self.told.files, self._nothing())

    def _nothing(self) -> str | None:
        if self.values or self.told.types:
            return None
        if not FORMATS[self.feed.format].is_delivered:
            return f"{self.feed.name} is extracted from a database, and no files are delivered"
        if self.told.is_unnamed:
            return f"the files of {self.feed.name} do not name their columns"
        if not self.told.opened:
            return f"no file of {THESE} has come into {self.feed.root}/{self.feed.name}/ yet"
        return f"no record of {THESE} is in the newest {counted(self.told.opened, 'file')} of {self.feed.name}"

    def findings(self, path: Path, line: int) -> Iterator[Finding]:
        """Yield what differs between the files and the declaration, whose columns are listed from a line on."""
        yield from self._broken()
        named = [(line, problem) for problem in self._named()]
        for at, problem in [*named, *self._undeclared(line), *self._columns()]:
            yield Finding(path, at, f"{problem}.", is_error=False)
        if several := self.told.of_several_tables():
            yield Finding(path, line, f"{self.feed.name}: {several}.", is_error=False)

    def _named(self) -> Iterator[str]:
        """Yield which settings of the feed most records name otherwise."""
        for name, values in self.told.named.items():
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
        more = len(self.told.broken) - MOST_TOLD
        for number, each in enumerate(self.told.broken[:MOST_TOLD], 1):
            path = f"{self.feed.root}/{each.file}"
            if each.line:
                problem = f"{each.problem}. The record will be rejected; the others of the file are taken."
            else:
                problem = f"{each.problem}. A build stops there; take it away, or leave it out: {skipping(each.file)}"
            if number == MOST_TOLD and more > 0:
                problem += f" {more:,} more of these files are like that."
            yield Finding(path, each.line or 1, problem, is_error=False)

    def _undeclared(self, line: int) -> Iterator[tuple[int, str]]:
        by_letters, by_said = {name.lower(): (name, column) for name, column in self.declared.items()}, {}
        by_field, former = {}, {name for column in self.declared.values() for name in column.former}
        for name in [name for name in {**self.told.types, **self.values} if name not in {*self.declared, *former}]:
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
        data_type, unit = type_in(self.told, self.feed, field)
        return data_type + (f"[{unit}]" if unit else "")

    def _columns(self) -> Iterator[tuple[int, str]]:
        fields = {**self.told.types, **self.values}
        # a record that carries some columns only says nothing of the others
        is_whole = self.feed.format in DEBEZIUM or not FORMATS[self.feed.format].partial_images
        tells_all = fields and (self.told.types or (is_whole and "no_supplement" not in self.feed.settings))
        letters, types = {name.lower() for name in fields}, self.told.types
        for name, column in self.declared.items():
            is_known_to_lack = column.came_later or any(former.lower() in letters for former in column.former)
            if tells_all and name.lower() not in letters and not is_known_to_lack:
                problem = f"{self.told} of {self.feed.name} have no field {name!r}; records without it say NULL"
                yield column.line, f"column {column.name}: {problem}"
            elif name in types and not holds(column.data_type, types[name][0]):
                problem = f"column {column.name} is {column.data_type}, and the schema of {self.feed.name} says "
                told = types[name][0]
                yield column.line, f"{problem}{told}: what does not fit is rejected; {self._widen(column, told)}"
            elif problem := self._misfits(column):
                yield column.line, problem

    def _misfits(self, column: Declared) -> str | None:
        """Return what to say of the values that a column would reject; None: there are none."""
        there, odd = 0, []
        for row in self.told.rows:
            value = row.values.get(column.field)
            if value is None or (row.is_delete and column.name not in self.key):
                continue
            there += 1
            is_told = column.field in self.told.types or column.field in self.told.encoded
            if wrong := misfit(value, column, self.feed, is_told):
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
=======
>>>>>>> rules
