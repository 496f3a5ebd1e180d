"""Changes of what the project declares in YAML: one entry goes in, and all else stays as it was written."""

import json
from pathlib import Path

import yaml

from highwater.catalog.columns import Column
from highwater.catalog.entities import declaration_of, declared_columns, settings_of
from highwater.catalog.feeds import FAST_LOADER, declared_feeds, plain_text
from highwater.catalog.rendering import column_line
from highwater.catalog.yaml_files import (
    IN_JINJA,
    NOT_IN_YAML,
    behind_last,
    behind_line,
    end_of,
    file_of_model,
    in_yaml,
    model_node,
    named,
    value_of,
    with_item,
    without_item,
    words_in,
    write_entry,
    yaml_below,
)
from highwater.runtime.errors import UsageError


def sources_file(feed: str) -> Path:
    """Return the file that declares a feed.

    Raises: UsageError when there is none.
    """
    for path in yaml_below(Path("models/staging")):
        document = yaml.load(path.read_text(), FAST_LOADER) or {}
        if any(source.get("name") == feed for source in document.get("sources") or []):
            return path
    raise UsageError(f"no source declares the feed {feed}.")


def epochs_of(feed: str) -> tuple[dict, list[dict]]:
    """Return the settings of a feed as its source declares them, and its epochs."""
    document = yaml.load(sources_file(feed).read_text(), FAST_LOADER)
    (source,) = (source for source in document["sources"] if source["name"] == feed)
    settings = source["config"]["meta"]["feed"]
    epochs = settings.get("epochs") or []
    return settings, [{name: plain_text(v) if isinstance(v, str) else v for name, v in each.items()} for each in epochs]


def append_epoch(feed: str, epoch: dict) -> Path | None:
    """Append an epoch to those of a feed.

    Returns: the file that was written; None: the feed has this epoch already.
    Raises: UsageError when it does not get in.
    """
    return None if epoch in epochs_of(feed)[1] else append_epochs(feed, [epoch])


def append_epochs(feed: str, epochs: list[dict]) -> Path:
    """Append epochs to those of a feed, by one step; return the file that was written.

    Raises: UsageError when they do not get in.
    """
    path, there = sources_file(feed), epochs_of(feed)[1]
    text = changed = path.read_text()
    for number, epoch in enumerate(epochs):
        source = named(value_of(yaml.compose(changed, FAST_LOADER), "sources"), feed)
        settings = value_of(source, "config", "meta", "feed")
        entry = _in_flow(epoch)
        listed = value_of(settings, "epochs")
        if listed is None or not (there or number):
            begun = f"epochs: [{entry}]" if settings.flow_style else "epochs:"
            changed = _with_setting(changed, settings, begun, entry)
        else:
            changed = with_item(changed, listed, f"- {entry}")
    written = "`, `".join(f"- {_in_flow(epoch)}" for epoch in epochs)
    write_entry(path, text, changed, lambda: epochs_of(feed)[1] == [*there, *epochs], written)
    return path


def add_other_name(feed: str, table: str, name: str) -> Path | None:
    """Declare what else the source calls a table of a feed, in its `also_called`.

    Returns: the file that was written; None: it is declared already.
    Raises: UsageError when it does not get in, or another table is called so.
    """
    path = sources_file(feed)
    text = path.read_text()

    def node_in(text: str):
        source = named(value_of(yaml.compose(text, FAST_LOADER), "sources"), feed)
        return named(value_of(source, "tables"), table)

    there = value_of(node_in(text), "config", "meta", "also_called")
    if there is not None and name in [each.value for each in there.value]:
        return None
    if there is None:
        changed = _with_nested(text, node_in(text), ["config", "meta"], f"also_called: [{in_yaml(name)}]")
    else:
        changed = with_item(text, there, f"- {in_yaml(name)}")

    def is_right():
        return declared_feeds()[feed].in_raw(name) == declared_feeds()[feed].source_table(table)

    write_entry(path, text, changed, is_right, f"also_called: [{name}]")
    return path


def declare_truncates(entity: str) -> Path | None:
    """Declare `truncates: true` for a table, without which an epoch cannot empty it.

    Returns: the file that was written; None: it is declared already.
    Raises: UsageError when it does not get in.
    """
    path = declaration_of(entity)
    text = path.read_text()
    if settings_of(entity).get("truncates"):
        return None
    meta = value_of(model_node(text, f"{entity}_changes"), "config", "meta")
    changed = _with_setting(text, meta, "truncates: true")
    write_entry(path, text, changed, lambda: settings_of(entity).get("truncates") is True, "truncates: true")
    return path


def set_in_column(entity: str, column: str, setting: str, value) -> Path:
    """Give a column of a table a setting in its `config.meta`; another value of it is replaced.

    Arguments:
        entity: the table. column: its name inside the project. value: a text, a truth value or a list of texts.
    Returns: the file that was written.
    Raises: UsageError when it does not get in.
    """
    path = declaration_of(entity)
    text = path.read_text()
    node = _column_node(text, entity, column)
    written = _in_flow_value(value)
    there = value_of(node, "config", "meta", setting)
    if there is not None:
        changed = text[: there.start_mark.index] + written + text[end_of(there) :]
    else:
        changed = _with_nested(text, node, ["config", "meta"], f"{setting}: {written}")

    def is_right():
        meta = value_of(_column_node(path.read_text(), entity, column), "config", "meta", setting)
        return yaml.load(path.read_text()[meta.start_mark.index : end_of(meta)], FAST_LOADER) == (
            yaml.load(written, FAST_LOADER)
        )

    write_entry(path, text, changed, is_right, f"config: {{meta: {{{setting}: {written}}}}}")
    return path


def set_type(entity: str, column: str, data_type: str) -> Path:
    """Declare another type of a column; return the file that was written.

    Raises: UsageError when it does not get in.
    """
    path = declaration_of(entity)
    text = path.read_text()
    there = value_of(_column_node(text, entity, column), "data_type")
    changed = text[: there.start_mark.index] + in_yaml(data_type) + text[there.end_mark.index :]

    def is_right():
        return value_of(_column_node(path.read_text(), entity, column), "data_type").value == data_type

    write_entry(path, text, changed, is_right, f"data_type: {data_type}")
    return path


def in_columns(entity: str, column: Column) -> None:
    """Let a table list one more column, and its mart too where that lists columns of its own.

    Raises: UsageError when it does not get in.
    """
    _list(declaration_of(entity), f"{entity}_changes", column_line(column))
    mart = file_of_model(entity)
    # the history's build makes its column, from the log
    if mart and _own_columns(mart.read_text(), entity) is not None:
        _list(mart, entity, f"- name: {in_yaml(column.mart_name)}")


def _list(path: Path, model: str, column: str) -> None:
    text = path.read_text()
    columns = value_of(model_node(text, model), "columns")

    def is_listed():
        return len(value_of(model_node(path.read_text(), model), "columns").value) == len(columns.value) + 1

    write_entry(path, text, with_item(text, columns, column), is_listed, column)


def out_of_columns(entity: str, column: Column) -> None:
    """Take a column out of the lists of a table.

    Raises: UsageError when it does not get out.
    """
    _take_out(declaration_of(entity), f"{entity}_changes", column.name)
    mart = file_of_model(entity)
    own = _own_columns(mart.read_text(), entity) if mart else None
    if own is not None and named(own, column.mart_name) is not None:
        _take_out(mart, entity, column.mart_name)


def _take_out(path: Path, model: str, name: str) -> None:
    text = path.read_text()
    columns = value_of(model_node(text, model), "columns")
    item = next((each for each in columns.value if plain_text(value_of(each, "name").value) == name), None)
    if columns.flow_style or item is None:
        raise UsageError(f"{path}: take the column {name} of {model} out by hand, then build.")

    def is_out():
        return len(value_of(model_node(path.read_text(), model), "columns").value) == len(columns.value) - 1

    write_entry(path, text, without_item(text, item), is_out, f"without {name}")


def _own_columns(text: str, entity: str):
    """Return the list of columns of a mart that does not take those of the log by an alias; None: it has none."""
    models = value_of(yaml.compose(text, FAST_LOADER), "models")  # an alias is the node that it stands for
    columns = value_of(named(models, entity), "columns")
    return None if columns is value_of(named(models, f"{entity}_changes"), "columns") else columns


def set_key(entity: str, columns: list[Column]) -> None:
    """Declare another key of a table, and give it to the tests of its layers.

    Raises: UsageError when it does not get in.
    """
    was = {column.name: column for column in declared_columns(entity)[0]}
    old = [was[name] for name in declared_columns(entity)[1]]
    layers = [f"{entity}_{layer}" for layer in ("changes", "merged", "history")]
    for path in {path: None for model in [*layers, entity] if (path := file_of_model(model))}:
        text = changed = path.read_text()
        found = []
        for model in [*layers, entity]:
            names = [each.mart_name if model == entity else each.name for each in old]
            new = [each.mart_name if model == entity else each.name for each in columns]
            node = model_node(text, model)
            keys = [value_of(node, "config", "meta", "key")] if model == layers[0] else []
            for test in getattr(value_of(node, "data_tests"), "value", []):
                settings = test.value[0][1] if isinstance(test, yaml.MappingNode) else None
                keys.append(value_of(settings, "arguments", "key"))
            found += [(key, new) for key in keys if words_in(key) == names]
        for key, new in sorted(found, key=lambda each: each[0].start_mark.index, reverse=True):
            written = f"[{', '.join(map(in_yaml, new))}]"
            if not key.flow_style:  # a list of lines stands behind its word
                start = changed.rindex(":", 0, key.start_mark.index) + 1
                written = f" {written}"
            else:
                start = key.start_mark.index
            changed = changed[:start] + written + changed[end_of(key) :]
        if changed != text:
            write_entry(path, text, changed, lambda: model_node(path.read_text(), entity) is not None, "key")  # noqa: B023
    if declared_columns(entity)[1] != [column.name for column in columns]:
        raise UsageError(f"{declaration_of(entity)}: write the key {', '.join(c.name for c in columns)} by hand.")


def _column_node(text: str, entity: str, column: str):
    """Return the entry of a column in the text of a declaration.

    Raises: UsageError when there is none.
    """
    columns = value_of(model_node(text, f"{entity}_changes"), "columns")
    node = named(columns, column)
    if node is None:
        known = ", ".join(value_of(each, "name").value for each in columns.value if value_of(each, "data_type"))
        raise UsageError(f"{entity} has no column {column!r}; columns are: {known}.")
    return node


def _in_flow_value(value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(in_yaml(each) for each in value)}]"
    return str(value).lower() if isinstance(value, bool) else in_yaml(value)


def _with_nested(text: str, mapping, names: list[str], setting: str) -> str:
    """Return a file with one more setting below a mapping, in mappings of these names that are made where they lack."""
    for number, name in enumerate(names):
        inner = value_of(mapping, name)
        if not isinstance(inner, yaml.MappingNode) or not inner.value:
            missing = names[number:]
            entry = "".join(f"{each}: {{" for each in missing) + setting + "}" * len(missing)
            if inner is None:
                return _with_setting(text, mapping, entry)
            return text[: inner.start_mark.index] + entry.partition(": ")[2] + text[inner.end_mark.index :]
        mapping = inner
    return _with_setting(text, mapping, setting)


def _in_flow(epoch: dict) -> str:
    def text(value):
        if IN_JINJA.search(str(value)) or NOT_IN_YAML.search(str(value)):
            return in_yaml(value)
        return json.dumps(value, ensure_ascii=False) if value is True or not str(value).isidentifier() else value

    return "{" + ", ".join(f"{name}: {text(value)}" for name, value in epoch.items()) + "}"


def _with_setting(text: str, mapping, setting: str, item: str | None = None) -> str:
    """Return a file with one more setting in a mapping, behind its first one."""
    if mapping.flow_style:
        return behind_last(text, mapping, setting)
    key, value = mapping.value[0]
    indent = " " * key.start_mark.column
    lines = f"{indent}{setting}" + (f"\n{indent}  - {item}" if item else "")
    return behind_line(text, end_of(value), lines)
