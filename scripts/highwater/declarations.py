"""Changes of what the project declares in YAML: one entry goes in, and all else stays as it was written."""

import json
import os
from pathlib import Path

import yaml

from highwater.add_table import IN_JINJA, NOT_IN_YAML, in_yaml
from highwater.errors import UsageError
from highwater.feeds import FAST_LOADER, plain_text
from highwater.rebuild import declaration_of


def sources_file(feed: str) -> Path:
    """Return the file that declares a feed.

    Raises: UsageError when there is none.
    """
    for path in sorted(Path("models/staging").glob("**/*.yml")):
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
    sources = _value(yaml.compose(text, FAST_LOADER), "sources")
    (source,) = (node for node in sources.value if _value(node, "name").value == feed)
    settings = _value(_value(_value(source, "config"), "meta"), "feed")
    entry = _in_flow(epoch)
    listed = _value(settings, "epochs")
    if listed is None or not epochs:
        changed = _with_setting(text, settings, f"epochs: [{entry}]" if settings.flow_style else "epochs:", entry)
    elif listed.flow_style:
        end = listed.end_mark.index - 1
        changed = f"{text[:end].rstrip().rstrip(',')}, {entry}{text[end:]}"
    else:
        changed = _behind_line(text, _end(listed.value[-1]), f"{' ' * listed.start_mark.column}- {entry}")
    _write(path, text, changed, lambda: epochs_of(feed)[1] == [*epochs, epoch], f"- {entry}")
    return path


def declare_truncates(entity: str) -> Path | None:
    """Declare `truncates: true` for a table, without which an epoch cannot empty it.

    Returns: the file that was written; None: it is declared already.
    Raises: UsageError when it does not get in.
    """
    path = declaration_of(entity)
    text = path.read_text()

    def declared():
        return yaml.load(path.read_text(), FAST_LOADER)["models"][0]["config"]["meta"].get("truncates")

    if declared():
        return None
    model = _value(yaml.compose(text, FAST_LOADER), "models").value[0]
    meta = _value(_value(model, "config"), "meta")
    _write(path, text, _with_setting(text, meta, "truncates: true"), lambda: declared() is True, "truncates: true")
    return path


def _value(mapping, name: str):
    return next((value for key, value in mapping.value if key.value == name), None)


def _in_flow(epoch: dict) -> str:
    def text(value):
        if IN_JINJA.search(str(value)) or NOT_IN_YAML.search(str(value)):
            return in_yaml(value)
        return json.dumps(value, ensure_ascii=False) if value is True or not str(value).isidentifier() else value

    return "{" + ", ".join(f"{name}: {text(value)}" for name, value in epoch.items()) + "}"


def _with_setting(text: str, mapping, setting: str, item: str | None = None) -> str:
    """Return a file with one more setting in a mapping, behind its first one."""
    if mapping.flow_style:
        end = mapping.end_mark.index - 1
        return f"{text[:end].rstrip().rstrip(',')}, {setting}{text[end:]}"
    key, value = mapping.value[0]
    indent = " " * key.start_mark.column
    lines = f"{indent}{setting}" + (f"\n{indent}  - {item}" if item else "")
    return _behind_line(text, _end(value), lines)


def _end(node) -> int:
    """Return where the text of a node ends; a block ends with the last of its values."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return node.end_mark.index
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _behind_line(text: str, at: int, lines: str) -> str:
    end = text.find("\n", at)
    return f"{text}\n{lines}\n" if end < 0 else f"{text[:end]}\n{lines}{text[end:]}"


def _write(path: Path, before: str, text: str, is_right, entry: str) -> None:
    """Write a file by one step, and see that the entry got in; otherwise put it back."""
    for content in (text, before):
        beside = path.with_suffix(".yml.tmp")
        beside.write_text(content)
        os.replace(beside, path)
        try:
            if is_right():
                return
        except (yaml.YAMLError, KeyError, TypeError, AttributeError):
            continue
    raise UsageError(f"{path}: the entry `{entry}` did not get in; write it there by hand.")
