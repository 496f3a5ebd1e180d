"""Changes of what the project declares in YAML: one entry goes in, and all else stays as it was written."""

import json
from pathlib import Path

import yaml

from highwater.catalog.entities import declaration_of, settings_of
from highwater.catalog.feeds import FAST_LOADER, plain_text
from highwater.catalog.yaml_files import (
    IN_JINJA,
    NOT_IN_YAML,
    behind_last,
    behind_line,
    end_of,
    in_yaml,
    model_node,
    named,
    value_of,
    with_item,
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
    epochs = epochs_of(feed)[1]
    if epoch in epochs:
        return None
    path = sources_file(feed)
    text = path.read_text()
    source = named(value_of(yaml.compose(text, FAST_LOADER), "sources"), feed)
    settings = value_of(source, "config", "meta", "feed")
    entry = _in_flow(epoch)
    listed = value_of(settings, "epochs")
    if listed is None or not epochs:
        changed = _with_setting(text, settings, f"epochs: [{entry}]" if settings.flow_style else "epochs:", entry)
    else:
        changed = with_item(text, listed, f"- {entry}")
    write_entry(path, text, changed, lambda: epochs_of(feed)[1] == [*epochs, epoch], f"- {entry}")
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
