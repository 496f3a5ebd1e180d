"""What is wrong with the declaration of a table, in itself and beside the project."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from highwater.catalog import as_built
from highwater.catalog.columns import VERSIONED, stored_columns, what_is_wrong
from highwater.catalog.entities import declaration_of, staging_of
from highwater.catalog.feeds import FAST_LOADER, plain_text
from highwater.catalog.models import calls_of
from highwater.catalog.yaml_files import named, value_of, word_of, words_in
from highwater.runtime.deployment import is_here
from highwater.runtime.printable import did_you_mean
from highwater.scaffold.check_files import Files
from highwater.scaffold.checked import Compared, Declared, Finding, Project
from highwater.scaffold.misspelt import layers_in, misspelt_in_source, misspelt_in_table, tests_of


def check_table(
    entity: str, sources: list[tuple[str, str]], project: Project, compared: list[Compared]
) -> Iterator[Finding]:
    """Look at the declaration of a table, and at its newest files where nothing is wrong with it in itself.

    Arguments:
        sources: feeds and tables that it is made of. compared: gets what it was compared with.
    """
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
            files = Files(entity, project.feeds[feed], project.observed[feed, name], declared, words_in(key), column)
            compared.append(files.compared)
            yield from files.findings(path, columns.start_mark.line + 1)


def _check_tables(entity: str, path: Path, line: int, wrong: list) -> Iterator[Finding]:
    """Look for what the declaration has that its tables were not made by, as far as a build has written that down.

    A lake at a URI is reached by Spark alone, which a check does not start; a build compares them.
    """
    was = as_built.remembered().get(entity) if is_here() and not wrong else None
    if not was:
        return
    types = {name: column["type"] for name, column in was["columns"].items()}
    differs = as_built.differences(entity, was, as_built.declared_shape(entity), types, None)
    if differs.is_unsafe:
        do = f"{differs.what_to_do()}. Until then it is not built"
        yield Finding(path, line, f"differs from its tables: {differs.in_words()}. {do}.")
    elif differs:
        said = f"differs from its tables: {differs.in_words()}; the next highwater build sees to it"
        yield Finding(path, line, f"{said}.", is_error=False)


def _check_sources(entity: str, sources: list[tuple[str, str]], project: Project) -> Iterator[Finding]:
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


def _check_references(entity: str, document, path: Path, declared: dict, project: Project) -> Iterator[Finding]:
    """Look for what the tests of a table's layers name and is not there: tables, feeds, columns, models."""
    every = {name for column in declared.values() for name in (column.name, column.mart_name, column.version_name)}
    every |= stored_columns() | {*VERSIONED}
    for model in layers_in(document, entity):
        columns = value_of(model, "columns")
        # somebody's own columns of a mart are listed there
        listed = {word_of(value_of(node, "name")) for node in columns.value} if columns else set()
        names = every | (listed - {None})
        for test, settings in tests_of(model):
            arguments = value_of(settings, "arguments")
            for name, node in arguments.value if isinstance(arguments, yaml.MappingNode) else ():
                for word, known in _named_by(name.value, node, test, names, project, path):
                    said = f"the test {test} names {word!r} as {name.value}, which is not there."
                    yield Finding(path, node.start_mark.line + 1, f"{said}{did_you_mean(word, known)}")


def _named_by(
    argument: str, node, test: str, columns: set[str], project: Project, path: Path
) -> Iterator[tuple[str, set]]:
    """Yield the words of a test's argument that name nothing, each with what they may name."""
    known = {"column_name": columns}
    if test.rpartition(".")[2] in project.tests:
        tables = {table for feed in project.feeds.values() for table in feed.tables}
        known |= {"entity": {*project.entities}, "feed": {*project.feeds}, "table": tables, "key": columns}
        known |= {"view": project.models, "export": project.models}
    for each in (node.value if isinstance(node, yaml.SequenceNode) else [node]) if argument in known else ():
        word = plain_text(word_of(each) or "")
        for name in _staging_in(word, path) if argument == "export" else [word]:
            if name and name not in known[argument]:
                yield name, known[argument]


def _staging_in(text: str, path: Path) -> list[str]:
    """Return the staging models that a text of Jinja refers to; another export may be a seed or a snapshot."""
    return [name for call in calls_of(f"{{{{ {text} }}}}", path) for name in call.names[-1:] if name.startswith("stg_")]


def _declared(columns, has_others: bool) -> tuple[dict[str, Declared], list[tuple[int, str]]]:
    """Return the columns of a list by their fields, and what is wrong with some, by line.

    Arguments:
        has_others: the list has columns without a type, of the change contract; declarations of version 0.5 had them.
    """
    declared, wrong = {}, []
    for node in columns.value:
        name, data_type = (word_of(value_of(node, each)) or "" for each in ("name", "data_type"))
        if has_others and not data_type:
            continue
        called = plain_text(word_of(value_of(node, "config", "meta", "field")) or name)
        line = node.start_mark.line + 1
        unit = word_of(value_of(node, "config", "meta", "unit"))
        wrong += [(line, f"{problem}.") for problem in what_is_wrong(called, data_type.lower(), unit)]
        if called in declared:
            said = f"column {called!r} is declared in line {declared[called].line} already; take one out."
            wrong.append((line, said))
        former = tuple(plain_text(each) for each in words_in(value_of(node, "config", "meta", "former_fields")))
        came_later = word_of(value_of(node, "config", "meta", "came_later")) == "true"
        declared[called] = Declared(name, called, data_type.lower(), unit, None, line, former, came_later)
    return declared, wrong
