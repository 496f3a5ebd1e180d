"""The project's YAML files: texts as dbt reads them, and changes by which all else stays as it was written."""

import json
import os
import re
from functools import lru_cache
from pathlib import Path

import yaml

from highwater.catalog.feeds import FAST_LOADER, jinja_text
from highwater.catalog.models import text_of
from highwater.runtime.errors import UsageError

# what dbt, which renders texts in YAML, would change: Jinja's marks, and line ends
IN_JINJA = re.compile(r"\{[{%#]|[%#}]\}|\r|\n\Z")
NOT_IN_YAML = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
ALIAS = re.compile(r"^[ -]*\w+: \*\w+", re.MULTILINE)


def in_yaml(text: str) -> str:
    """Return a text as it stands in the YAML of a dbt project, so that dbt reads that text.

    It is quoted where YAML would read something else (`no`, `qty [kg]`), and put into Jinja where it holds its marks.
    """
    if IN_JINJA.search(text):
        text = f"{{{{ {jinja_text(text)} }}}}"
    is_read_so = not NOT_IN_YAML.search(text) and all(
        _read_yaml(form) == {"text": text} for form in (f"{{text: {text}}}", f"text: {text}")
    )
    quoted = json.dumps(text, ensure_ascii=False)
    return text if is_read_so else NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _read_yaml(text: str):
    try:
        return yaml.load(text, FAST_LOADER)
    except (yaml.YAMLError, ValueError):  # `0b_` looks like a number, `2024-99-99` like a date
        return None


def as_yaml_reads_it(value: str):
    """Return what YAML makes of the value of a setting as it was typed; the text itself where YAML cannot read it."""
    read = (_read_yaml(f"setting: {value}") or {}).get("setting")
    return value if read is None or (isinstance(read, str) and "|" in value) else read


def setting_in_yaml(value: str) -> str:
    """Return the value of a setting as it was typed, quoted where YAML would not read it (`|`)."""
    return in_yaml(value) if as_yaml_reads_it(value) == value else value


def value_of(mapping, *names: str):
    """Return the node below a mapping that these names lead to; None: there is none."""
    for name in names:
        if not isinstance(mapping, yaml.MappingNode):
            return None
        mapping = next((value for key, value in mapping.value if key.value == name), None)
    return mapping


def word_of(node) -> str | None:
    """Return what stands in a node that is a single value; None: it is none."""
    return node.value if isinstance(node, yaml.ScalarNode) else None


def words_in(node) -> list[str]:
    """Return what stands in the entries of a node that is a list; of anything else none."""
    return [each.value for each in node.value] if isinstance(node, yaml.SequenceNode) else []


def named(sequence, name: str):
    """Return the entry of that name in a sequence of mappings; None: there is none."""
    for node in sequence.value if isinstance(sequence, yaml.SequenceNode) else ():
        called = value_of(node, "name")
        if called is not None and called.value == name:
            return node
    return None


def model_node(text: str, model: str):
    """Return the node of a model in the text of a file; None: it does not describe it."""
    document = yaml.compose(text, FAST_LOADER)
    return named(value_of(document, "models"), model) if document else None


def yaml_below(folder: Path) -> list[Path]:
    """Return the files of YAML below a folder, sorted, by both endings that dbt reads."""
    return sorted([*folder.glob("**/*.yml"), *folder.glob("**/*.yaml")])


def described_models() -> dict[str, Path]:
    """Return the models that some file below `models` describes, each with its file; what is no YAML describes none."""
    described = {}
    for path in yaml_below(Path("models")):
        state = path.stat()
        for model in _models_in(path.absolute(), state.st_mtime_ns, state.st_size):
            described.setdefault(model, path)
    return described


@lru_cache(maxsize=10_000)
def _models_in(path: Path, _written_at: int, _size: int) -> list[str]:
    try:
        models = (yaml.load(path.read_text(encoding="utf-8"), FAST_LOADER) or {}).get("models") or []
    except (yaml.YAMLError, AttributeError, ValueError):  # a date that is none is a ValueError too
        return []
    if not isinstance(models, list):
        return []
    return [model["name"] for model in models if isinstance(model, dict) and isinstance(model.get("name"), str)]


def file_of_model(model: str) -> Path | None:
    """Return the file that describes a model; None: there is none.

    Raises: UsageError when it may be one that is no YAML.
    """
    found = described_models().get(model)
    for path in yaml_below(Path("models")) if found is None else ():
        if model in (text := text_of(path)):
            try:
                yaml.load(text, FAST_LOADER)
            except (yaml.YAMLError, ValueError) as error:
                raise UsageError(f"{path} is no YAML: {' '.join(str(error).split())}.") from None
    return found


def with_item(text: str, sequence, item: str) -> str:
    """Return a file with one more entry at the end of a list.

    Arguments:
        sequence: the node of the list; it has an entry. item: its lines, without the indent of the list.
    """
    if sequence.flow_style:
        return behind_last(text, sequence, item.removeprefix("- ").rstrip("\n"))
    # that of the dashes: an anchor stands in another column
    last = text.split("\n")[sequence.value[-1].start_mark.line]
    indent = last[: len(last) - len(last.lstrip())]
    lines = "\n".join(indent + line if line else line for line in item.rstrip("\n").split("\n"))
    return behind_line(text, _end_of_item(text, sequence.value[-1]), lines)


def behind_last(text: str, node, entry: str) -> str:
    """Return a file with one more entry at the end of a list or mapping in brackets; it has an entry."""
    end = node.end_mark.index - 1
    return f"{text[:end].rstrip().rstrip(',')}, {entry}{text[end:]}"


def without_item(text: str, item) -> str:
    """Return a file without an entry of a list; comments above the next one stay."""
    start = text.rfind("\n", 0, item.start_mark.index) + 1
    end = text.find("\n", _end_of_item(text, item))
    return text[:start] + (text[end + 1 :] if end >= 0 else "")


def _end_of_item(text: str, item) -> int:
    aliases = list(ALIAS.finditer(text, end_of(item), item.end_mark.index))
    end = aliases[-1].end() if aliases else end_of(item)
    return len(text[:end].rstrip())  # a block of text ends where the next line begins


def end_of(node) -> int:
    """Return where the text of a node ends; a block ends with the last of its values."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return node.end_mark.index
    # an alias has the place of what it stands for
    return max(end_of(value[1] if isinstance(value, tuple) else value) for value in node.value)


def behind_line(text: str, at: int, lines: str) -> str:
    """Return a text with some lines behind the line in which a place is."""
    end = text.find("\n", at)
    return f"{text}\n{lines}\n" if end < 0 else f"{text[:end]}\n{lines}{text[end:]}"


def write_entry(path: Path, before: str, text: str, is_right, entry: str) -> None:
    """Write a file by one step, and see that an entry got in; otherwise put it back.

    Raises: UsageError when it did not.
    """
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
