"""Give a table of the project another name: the files of its models, and whatever in the project calls them."""

import re
from pathlib import Path

import yaml
from jinja2 import TemplateSyntaxError

from highwater.catalog.entities import declaration_of, logged_tables
from highwater.catalog.feeds import FAST_LOADER
from highwater.catalog.models import JINJA, calls_of, models, text_of
from highwater.catalog.names import split_name
from highwater.catalog.yaml_files import value_of
from highwater.runtime.errors import UsageError

LAYERS = ("changes", "merged", "history")
CALLING = ("models", "snapshots", "tests", "analyses", "macros")
REF = re.compile(r"(\bref\((?:\s*(?:'[^']*'|\"[^\"]*\")\s*,)?\s*)(['\"])(\w+)(['\"]\s*\))")
EATING = re.compile(r"\{[{%#][-+]|[-+][}%#]\}")
# arguments of tests that name a table, not a model
NAMING = {"entity", "view"}


def names_of_layers(entity: str, new: str) -> dict[str, str]:
    """Return the tables and views that a table has in the lake, each with its name when the table is called `new`."""
    return {entity: new} | {f"{entity}_{layer}": f"{new}_{layer}" for layer in LAYERS}


def renamed_files(entity: str, new: str) -> dict[Path, str | None]:
    """Return the files that change when a table gets another name, with their new texts; None: the file goes.

    Nothing is done yet. The names of tables at the source stay.

    Raises: UsageError when it cannot be called so, or something calls it in a way that cannot be changed here.
    """
    if new == entity:
        raise UsageError(f"{entity} is called so already.")
    for feed, _ in dict(logged_tables())[entity]:
        split_name(f"{feed}.{new}")
    there = models()
    names = names_of_layers(entity, new) | {
        name: name.removesuffix(f"__{entity}{end}") + f"__{new}{end}"
        for name in there
        for end in ("", "_changes")
        if name.startswith("stg_") and name.partition("__")[2] == f"{entity}{end}"
    }
    others = {path.stem for path in [*Path("snapshots").glob("**/*.sql"), *Path("seeds").glob("**/*.csv")]}
    if taken := sorted((there.keys() | others) & {*names.values()}):
        raise UsageError(f"{entity} cannot be called {new}: the project has {', '.join(taken)} already.")
    texts = {}
    for path in _calling():
        text = text_of(path)
        changed = _in_yaml(text, names, entity, new, path) if path.suffix != ".sql" else _in_sql(text, names, path)
        target = path.with_name(f"{names[path.stem]}{path.suffix}") if _is_own(path, names, entity) else path
        if target != path:
            texts[path] = None
        if target != path or changed != text:
            texts[target] = changed
    return texts


def left_in(texts: dict[Path, str | None], entity: str) -> list[str]:
    """Return where the project would still say the old name: in SQL that names the lake's tables, and in settings."""
    of_lake = re.compile(rf"\blake\.`?{entity}(_({'|'.join(LAYERS)}))?\b")
    of_settings = re.compile(rf"^\s*{entity}(_({'|'.join(LAYERS)}))?\s*:")
    found = []
    for path in [*_calling(), Path("dbt_project.yml")]:
        text = texts.get(path, text_of(path)) or ""
        pattern = of_settings if path.name == "dbt_project.yml" else of_lake
        found += [f"{path} line {n}" for n, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
    return found


def _calling() -> list[Path]:
    paths = (path for folder in CALLING for path in sorted(Path(folder).glob("**/*")))
    yaml_of = {".yml", ".yaml"}
    return [path for path in paths if path.suffix == ".sql" or (path.suffix in yaml_of and path.parts[0] != "macros")]


def _is_own(path: Path, names: dict[str, str], entity: str) -> bool:
    """Return whether a file has its name from the table: its models, and what describes them."""
    is_yaml = path.suffix != ".sql"
    return path.parts[0] == "models" and path.stem in names and (not is_yaml or path == declaration_of(entity))


def _in_sql(text: str, names: dict[str, str], path: Path) -> str:
    """Return SQL with the new names in calls of `ref` and of macros of highwater; a name of the source stays."""
    # without the marks that eat blanks, tokens have the places that they have in the text
    lexed = EATING.sub(lambda found: found[0].replace("-", " ").replace("+", " "), text)
    try:
        tokens = [*JINJA.overlay(keep_trailing_newline=True).lex(lexed)]
    except TemplateSyntaxError:
        tokens = []
    if "".join(value for _, _, value in tokens) != lexed:
        return _require_no_ref(REF.sub(lambda found: _renamed(found, names), text), names, path)
    changed, calls, before, at = [], [], [], 0
    for _, kind, value in tokens:
        was, at = text[at : at + len(value)], at + len(value)
        if kind == "operator" and value in "([{":
            calls.append(_called(before) if value == "(" else (calls or [""])[-1])
        elif kind == "operator" and value in ")]}" and calls:
            calls.pop()
        if kind == "string" and value[1:-1] in names and calls and calls[-1]:
            was = f"{value[0]}{names[value[1:-1]]}{value[-1]}"
        changed.append(was)
        before = [*before[-2:], value] if kind in ("name", "operator") else before
    return _require_no_ref("".join(changed), names, path)


def _called(before: list[str]) -> str:
    """Return what is called behind these words: `ref`, `highwater` for one of its macros that takes tables, or ``."""
    if before[-1:] == ["ref"]:
        return "ref"
    is_of_package = before[-3:-1] == ["highwater", "."] and before[-1] != "publication"
    return "highwater" if is_of_package else ""


def _renamed(found: re.Match, names: dict[str, str]) -> str:
    return f"{found[1]}{found[2]}{names.get(found[3], found[3])}{found[4]}"


def _require_no_ref(text: str, names: dict[str, str], path: Path) -> str:
    try:
        left = [call for call in calls_of(text, path) if call.function == "ref" and call.names[-1] in names]
    except UsageError:
        left = []
    if left:
        raise UsageError(f"{path} line {left[0].line} reads {left[0].names[-1]}; change it there by hand first.")
    return text


def _in_yaml(text: str, names: dict[str, str], entity: str, new: str, path: Path) -> str:
    """Return YAML with the new names: of described models, of tests' tables, and in calls of `ref`."""
    try:
        document = yaml.compose(text, FAST_LOADER)
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is no YAML: {' '.join(str(error).split())}.") from None
    places, seen = {}, set()

    def put(node, value: str):
        if value != (old := text[node.start_mark.index : node.end_mark.index]):
            places[node.start_mark.index] = (node.end_mark.index, old, value)

    def walk(node):
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for each in node.value:
                walk(each)
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value in NAMING and value.value == entity:
                    put(value, new)
                else:
                    walk(value)
        elif isinstance(node, yaml.ScalarNode):
            raw = text[node.start_mark.index : node.end_mark.index]
            put(node, REF.sub(lambda found: _renamed(found, names), raw).replace(f"of {entity} as", f"of {new} as"))

    walk(document)
    for kind in ("models", "unit_tests"):
        for model in getattr(value_of(document, kind), "value", None) or ():
            named = value_of(model, "name" if kind == "models" else "model")
            if named is not None and named.value in names:
                put(named, names[named.value])
    for start, (end, _, value) in sorted(places.items(), reverse=True):
        text = text[:start] + value + text[end:]
    return text
