"""Check what the project declares, as a compiler would: without Spark, against the newest files that are delivered."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import yaml

from highwater.catalog.columns import DECIMAL, what_is_wrong
from highwater.catalog.entities import declaration_of, known_table, logged_tables
from highwater.catalog.feeds import FAST_LOADER, FORMATS, Feed, declared_feeds, plain_text
from highwater.catalog.models import models, value_returned_in
from highwater.catalog.yaml_files import described_models, named, value_of
from highwater.runtime.printable import counted, in_shell, printable
from highwater.scaffold.found_columns import Told, told_of

WHOLE = ["tinyint", "smallint", "int", "bigint"]
DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, or may be.

    Attributes:
        path: the file to edit. line: in it, from 1. problem: what is wrong and what to do, in one sentence or two.
        is_error: the table cannot be right as it is declared; otherwise somebody should look.
    """

    path: Path
    line: int
    problem: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {'' if self.is_error else 'warning: '}{printable(self.problem)}"


def check(table: str | None = None) -> Iterator[Finding]:
    """Yield what is wrong with the declarations of all tables, or of one.

    Arguments:
        table: the name of a table; None: all, and the list of tables too.
    Raises: UsageError when a feed or a file of YAML cannot be read, or there is no such table.
    """
    feeds = declared_feeds()
    if table:
        known_table(table)
    written = models().keys()
    undescribed = written - described_models().keys()
    for entity, sources in logged_tables():
        if table in (None, entity):
            known = [(feeds[feed], name) for feed, name in sources if feed in feeds]
            yield from _check_table(entity, known, written, undescribed)
    listed = Path("macros/operations/logged_tables.sql")
    if table is None and _listed(listed) != [entity for entity, _ in logged_tables()]:
        problem = "is not what the models say, and builds read it. Take it from version control, or run any add-table."
        yield Finding(listed, 1, problem)


def _listed(path: Path) -> list[str] | None:
    """Return the names in the list of tables; None: there is no list."""
    listed = value_returned_in(path) if path.exists() else None
    # as add-table of version 0.5 wrote them, each is a mapping
    return listed and [table["entity"] if isinstance(table, dict) else table for table in listed]


def _check_table(
    entity: str, sources: list[tuple[Feed, str]], written: set[str], undescribed: set[str]
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
    names, key = [column.name for column in declared.values()], value_of(log, "config", "meta", "key")
    for node in key.value if isinstance(key, yaml.SequenceNode) else ():
        if node.value not in names:
            problem = f"the key names {node.value!r}, which is no column. Columns are: {', '.join(names)}."
            yield Finding(path, node.start_mark.line + 1, problem)
    if not (key and key.value) and f"{entity}_merged" in written:
        problem = f"declares no key (`config: {{meta: {{key: […]}}}}`), and {entity}_merged is there, which needs one."
        yield Finding(path, log.start_mark.line + 1, problem)
    layers = [f"stg_{feed.name}__{entity}_changes" for feed, _ in sources]
    layers += [f"{entity}_merged", entity] if key and key.value else []
    for model in layers:
        if model not in written:
            yield Finding(path, log.start_mark.line + 1, f"the model {model} is not there; write {model}.sql again.")
        elif model in undescribed:
            yield Finding(path, log.start_mark.line + 1, f"nothing describes the model {model}; its tests do not run.")
    # what is wrong in itself is repaired first
    for feed, name in sources if not wrong else ():
        yield from _check_files(feed, name, path, columns.start_mark.line + 1, declared)


@dataclass(frozen=True)
class Declared:
    """A column as its line declares it."""

    name: str
    data_type: str
    line: int


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
        field = plain_text(_text(value_of(node, "config", "meta", "field")) or name)
        line = node.start_mark.line + 1
        unit = _text(value_of(node, "config", "meta", "unit"))
        wrong += [(line, f"{problem}.") for problem in what_is_wrong(field, data_type.lower(), unit)]
        if field in declared:
            wrong.append((line, f"column {field!r} is declared in line {declared[field].line} already; take one out."))
        declared[field] = Declared(name, data_type.lower(), line)
    return declared, wrong


def _text(node) -> str | None:
    return node.value if isinstance(node, yaml.ScalarNode) else None


def _check_files(feed: Feed, table: str, path: Path, line: int, declared: dict[str, Declared]) -> Iterator[Finding]:
    """Compare the columns of a table, which are listed from a line on, with what the newest files of a feed tell."""
    told = told_of(feed, table) if FORMATS[feed.format].is_delivered else Told()
    fields = {**told.types, **told.values}
    by_letters = {field.lower(): (field, column) for field, column in declared.items()}
    for field in [field for field in fields if field not in declared]:
        do, at = "add it to the columns, or its values stay in raw alone", line
        if other := by_letters.get(field.lower()):
            do = (
                f"the column {other[1].name} is declared for {other[0]!r}: give it config: {{meta: {{field: {field}}}}}"
            )
            at = other[1].line
        said = counted(len(told.values[field]), "record") if field in told.values else "the schema"
        has = "has" if said in ("1 record", "the schema") else "have"
        problem = f"{said} of {feed.name} {has} the field {field!r}, which is not declared; {do}."
        yield Finding(path, at, problem, is_error=False)
    if several := told.of_several_tables():
        yield Finding(path, line, f"{feed.name}: {several}.", is_error=False)
    # a record that carries some columns only says nothing of the others
    is_whole = feed.format == "debezium-json" or not FORMATS[feed.format].partial_images
    tells_all = fields and (told.types or (is_whole and "no_supplement" not in feed.settings))
    letters = {field.lower() for field in fields}
    for field, column in declared.items():
        problem = None
        if tells_all and field.lower() not in letters:
            problem = (
                f"column {column.name}: {told} of {feed.name} have no field {field!r}; records without it say NULL."
            )
        elif field in told.types and not holds(column.data_type, told.types[field][0]):
            problem = f"column {column.name} is {column.data_type}, and the schema of {feed.name} says "
            problem += f"{told.types[field][0]}: what does not fit is rejected; {_widen(table)}."
        elif odd := [value for value in told.values.get(field, ()) if not fits(value, column.data_type)]:
            problem = f"column {column.name} is {column.data_type}, and {counted(len(odd), 'record')} of {feed.name} "
            problem += f"{'has' if len(odd) == 1 else 'have'} what does not fit, {odd[0]} for example; {_widen(table)}."
        if problem:
            yield Finding(path, column.line, problem, is_error=False)


def _widen(table: str) -> str:
    return f"declare that type, then: highwater rebuild {in_shell(table)} --from raw, where records have been applied"


def fits(value, declared: str) -> bool:
    """Return whether a number fits a declared type of numbers; whatever else it is may have a way of its own.

    Example: `fits(300, "tinyint")` is False, `fits("x", "tinyint")` is True.
    """
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return True
    number, decimal = Decimal(value), DECIMAL.fullmatch(declared)
    if declared not in WHOLE and not decimal:
        return True
    if not number or number.adjusted() > 40:
        return not number
    _, digits, exponent = number.as_tuple()
    behind = max(0, -exponent - (len(digits) - len("".join(map(str, digits)).rstrip("0"))))
    if declared in WHOLE:
        bits = 8 * 2 ** WHOLE.index(declared)
        return not behind and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
    return behind <= int(decimal[2]) and abs(number) < 10 ** (int(decimal[1]) - int(decimal[2]))


def holds(declared: str, told: str) -> bool:
    """Return whether a declared type holds every value of the type that a schema tells.

    Example: `holds("decimal(12,2)", "int")` is True, `holds("int", "bigint")` is False.
    """
    if declared in (told, "string"):
        return True
    if told in WHOLE and declared in WHOLE:
        return WHOLE.index(declared) >= WHOLE.index(told)
    mine, other = DECIMAL.fullmatch(declared), DECIMAL.fullmatch(told)
    if mine and (other or told in WHOLE):
        digits, scale = (int(other[1]), int(other[2])) if other else (DIGITS[told], 0)
        return int(mine[1]) - int(mine[2]) >= digits - scale and int(mine[2]) >= scale
    moments = ("timestamp", "timestamp_ntz")
    return (declared, told) == ("double", "float") or (declared in moments and told in (*moments, "date"))
