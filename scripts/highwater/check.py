"""Check what the project declares, as a compiler would: without Spark, against the newest files that are delivered."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from highwater.add_table import known_table, logged_tables, logged_tables_text
from highwater.columns import what_is_wrong
from highwater.feeds import FAST_LOADER, FORMATS, Feed, declared_feeds, plain_text
from highwater.found_columns import Told, told_of
from highwater.printable import in_shell, printable
from highwater.rebuild import declaration_of
from highwater.yaml_files import file_of_model, named, value_of

WHOLE = ["tinyint", "smallint", "int", "bigint"]
DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")


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
    for entity, sources in logged_tables():
        if table in (None, entity):
            yield from _check_table(entity, [(feeds[feed], name) for feed, name in sources if feed in feeds])
    listed = Path("macros/operations/logged_tables.sql")
    if table is None and (not listed.exists() or _logs(listed.read_text()) != _logs(logged_tables_text())):
        problem = "is not what the models say, and builds read it. Take it from version control, or run any add-table."
        yield Finding(listed, 1, problem)


def _logs(text: str) -> list[str]:
    return re.findall(r"'entity': .*?\]\]", text)


def _check_table(entity: str, sources: list[tuple[Feed, str]]) -> Iterator[Finding]:
    path = declaration_of(entity)
    try:
        document = yaml.compose(path.read_text(), FAST_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        yield Finding(path, mark.line + 1 if mark else 1, f"is not YAML: {getattr(error, 'problem', error)}.")
        return
    log = named(value_of(document, "models"), f"{entity}_changes")
    declared, lines, found = {}, {}, []
    columns = value_of(log, "columns")
    for node in columns.value if columns else ():
        name, data_type = (_text(value_of(node, each)) for each in ("name", "data_type"))
        if data_type is None and path.parts[1] == "changes":  # a declaration of an earlier version lists others too
            continue
        field = plain_text(_text(value_of(node, "config", "meta", "field")) or name or "")
        unit, line = _text(value_of(node, "config", "meta", "unit")), node.start_mark.line + 1
        found += [(line, wrong) for wrong in what_is_wrong(field, (data_type or "").lower(), unit)]
        if field in declared:
            found.append((line, f"column {field!r} is declared in line {lines[field]} already; take one out"))
        declared[field], lines[field] = (name, (data_type or "").lower(), unit), line
    for line, wrong in found:
        yield Finding(path, line, f"{wrong}.")
    key = value_of(log, "config", "meta", "key")
    names = [name for name, *_ in declared.values()]
    for node in key.value if isinstance(key, yaml.SequenceNode) else ():
        if node.value not in names:
            yield Finding(
                path,
                node.start_mark.line + 1,
                f"the key names {node.value!r}, which is no column. Columns are: {', '.join(names)}.",
            )
    yield from _check_models(entity, path, log, bool(key and key.value), sources)
    # what is wrong in itself is mended first
    for feed, name in sources if not found else ():
        yield from _check_files(feed, name, path, columns or log, declared, lines)


def _text(node) -> str | None:
    return node.value if isinstance(node, yaml.ScalarNode) else None


def _check_models(entity, path: Path, log, has_key: bool, sources) -> Iterator[Finding]:
    """Look for models that are not there or that nothing describes."""
    models = [f"stg_{feed.name}__{entity}_changes" for feed, _ in sources]
    models += [f"{entity}_merged", entity] if has_key else []
    for model in models:
        if not list(Path("models").glob(f"**/{model}.sql")):
            yield Finding(path, log.start_mark.line + 1, f"the model {model} is not there; write {model}.sql again.")
        elif file_of_model(model) is None:
            yield Finding(path, log.start_mark.line + 1, f"nothing describes the model {model}; its tests do not run.")


def _check_files(feed: Feed, table: str, path: Path, columns, declared: dict, lines: dict) -> Iterator[Finding]:
    """Compare the columns of a table with what the newest files of a feed tell."""
    told = told_of(feed, table) if FORMATS[feed.format].is_delivered else Told()
    fields = {**told.types, **told.values}
    by_letters = {field.lower(): field for field in declared}
    for field in fields:
        if field in declared:
            continue
        other = by_letters.get(field.lower())
        line = lines[other] if other else columns.start_mark.line + 1
        do = (
            f"the column {declared[other][0]} is declared for {other!r}: give it config: {{meta: {{field: {field}}}}}"
            if other
            else "add it to the columns, or its values stay in raw alone"
        )
        yield Finding(
            path, line, f"{told} of {feed.name} have the field {field!r}, which is not declared; {do}.", False
        )
    for field, (name, data_type, _) in declared.items() if fields else ():
        if field not in fields and field.lower() not in {each.lower() for each in fields}:
            if not FORMATS[feed.format].partial_images or told.types:
                problem = f"column {name}: {told} of {feed.name} have no field {field!r}; records that lack it say NULL"
                yield Finding(path, lines[field], f"{problem}.", False)
        elif field in told.types and not holds(data_type, told.types[field][0]):
            problem = f"column {name} is {data_type}, and the schema of {feed.name} says {told.types[field][0]}"
            yield Finding(path, lines[field], f"{problem}: what does not fit is rejected; {_widen(table)}.", False)


def _widen(table: str) -> str:
    return f"declare that type, then: highwater rebuild {in_shell(table)} --from raw, where records have been taken in"


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
