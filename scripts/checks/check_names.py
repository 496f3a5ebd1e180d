"""Check that files, models and macros are named as the design says.

Run in the project's folder. Prints a line per finding and exits with 1 when there is one.
"""

import importlib.util
import re
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from definitions import COMMENT, Definition, definitions, entries, feed_of

WORDS = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
LAYERS = ("staging", "changes", "publications", "merged", "marts", "history", "operations")
OF_TABLES = ("staging", "changes", "merged", "marts", "history")
BLOCK = re.compile(r"{{.*?}}|{%.*?%}", re.DOTALL)
DEFINED = re.compile(r"{%-?\s*(?:macro|test|data_test|materialization)\s+\w+")
TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
CALL = re.compile(r"(?<![\w.])(highwater\.)?(\w+)\s*\(")
PRIVATE = re.compile(r"\bhighwater\.(_\w+)")
ADAPTER = re.compile(r"^(default|spark)__")


def findings(project: Path) -> list[str]:
    """Check the names of a project; return a line per finding."""
    found = [
        *_macros(project),
        *_generic_tests(project),
        *_models(project),
        *_descriptions(project),
        *_duplicates(project),
        *_calls(project),
        *_private_macros(project),
    ]
    return [f"{path.relative_to(project)}: {problem}" for path, problem in found]


def dbt_macros() -> set[str]:
    """Return the names of the macros in dbt's and dbt-spark's own packages."""
    names = set()
    for package in ("dbt.include.global_project", "dbt.include.spark"):
        folder = Path(importlib.util.find_spec(package).submodule_search_locations[0])
        names |= {definition.name for definition in definitions(folder / "macros")}
    return names


def _macros(project):
    dbts = dbt_macros()
    dispatched = dbts | {ADAPTER.sub("", name) for name in dbts}
    by_file = defaultdict(list)
    for macro in definitions(project / "macros"):
        # what a project gives to the package is dispatched by this name
        name = macro.name if ADAPTER.sub("", macro.name) in dispatched else macro.name.removeprefix("default__")
        by_file[macro.path].append(replace(macro, name=name))
    for path in sorted((project / "macros").glob("**/*.sql")):
        yield from _names_of_file(path, [macro.name for macro in by_file[path]])
        is_override_folder = path.parent == project / "macros" / "dbt"
        for macro in by_file[path]:
            yield from _override(macro, dispatched, is_override_folder)


def _names_of_file(path: Path, names: list[str]):
    if path.stem not in names:
        yield path, f"holds no macro named {path.stem}; name the file like its macro."
    for name in names:
        if name.startswith("_") or name == path.stem:
            continue
        if path.stem.startswith("_"):
            yield path, f"is a private file and holds the public macro {name}; give it a file of its own."
        else:
            yield path, f"holds a second public macro, {name}; give it a file of its own, or begin its name with _."


def _override(macro: Definition, dispatched: set[str], is_override_folder: bool):
    is_dbts = ADAPTER.sub("", macro.name) in dispatched
    if is_dbts and not is_override_folder:
        yield macro.path, f"{macro.name} takes the place of a macro of dbt; move it to macros/dbt, or rename it."
    if is_override_folder and not is_dbts and not macro.name.startswith("_"):
        yield macro.path, f"{macro.name} is no macro of dbt; macros/dbt holds overrides only, so move it."
    if not is_dbts and not WORDS.fullmatch(macro.name.removeprefix("_")):
        yield macro.path, f"{macro.name} is not lower-case words joined by single underscores; rename it."


def _generic_tests(project):
    for test in definitions(project / "tests" / "generic"):
        if test.name != test.path.stem:
            yield test.path, f"holds the test {test.name}; a file of its own, named like the test, is its place."
        elif not WORDS.fullmatch(test.name):
            yield test.path, f"{test.name} is not lower-case words joined by single underscores; rename it."


def _models(project):
    models = project / "models"
    exports = {source["name"] for _, source in entries(models, "sources") if feed_of(source).get("role") == "export"}
    for path in sorted(models.glob("**/*.sql")):
        layer, *folders = path.relative_to(models).parent.parts or ("",)
        if layer not in LAYERS:
            yield path, f"is in no layer; layers are: {', '.join(LAYERS)}."
        elif layer == "staging":
            yield from _staging_model(path, folders, exports)
        elif not WORDS.fullmatch(path.stem):
            yield path, "is not lower-case words joined by single underscores; rename the model."
        elif layer in ("changes", "merged", "history"):
            if not path.stem.endswith(f"_{layer}"):
                yield path, f"is not named <entity>_{layer}; rename it, or move it to its layer."
            if len(folders) != 1:
                yield path, f"is not in a folder of its system, as models/{layer}/<system>/{path.name}; move it."


def _staging_model(path: Path, folders: list[str], exports: set[str]):
    if len(folders) != 1:
        yield path, f"is not in a folder of its feed, as models/staging/<feed>/{path.name}; move it."
        return
    feed = folders[0]
    prefix = f"stg_{feed}__"
    entity = path.stem.removeprefix(prefix)
    ending = "" if feed in exports else "_changes"
    if not path.stem.startswith(prefix) or not WORDS.fullmatch(entity):
        yield path, f"is not named {prefix}<entity>{ending}; rename it, or move it to the folder of its feed."
    elif feed in exports and entity.endswith("_changes"):
        yield path, f"holds no changes but an export; name it {path.stem.removesuffix('_changes')}."
    elif feed not in exports and not entity.endswith("_changes"):
        yield path, f"belongs to a feed of changes; name it {path.stem}_changes, or declare `role: export`."


def _descriptions(project):
    models = project / "models"
    described = defaultdict(set)
    for path, model in entries(models, "models"):
        described[path].add(model["name"])
    logged = {path.stem.removesuffix("_changes") for path in models.glob("changes/**/*.sql")}
    for path in sorted(models.glob("**/*.sql")):
        layer, *folders = path.relative_to(models).parent.parts or ("",)
        own = path.with_suffix(".yml")
        shared = path.parent / f"{path.parent.name}.yml"
        if layer in OF_TABLES and (layer != "marts" or path.stem in logged):
            entity = re.sub(r"_(changes|merged|history)$", "", path.stem.partition("__")[2] or path.stem)
            system = folders[0].partition("_")[2] if layer == "staging" and folders else "/".join(folders)
            wanted = models / "tables" / system / f"{entity}.yml"
            if path.stem not in described[wanted]:
                yield path, f"is not described in {wanted.relative_to(project)}, which declares its table; do it there."
        elif own.exists():
            if path.stem not in described[own]:
                yield own, f"does not describe the model {path.stem}; add it, or rename the file."
        elif path.stem not in described[shared]:
            yield path, f"has no YAML beside it; describe it in {own.name} or {shared.name}."
    for path in sorted(project.glob("models/**/*.yml")):
        if "__" not in path.stem or path.stem.startswith("_") or path.stem.endswith("__exposures"):
            continue
        if not path.with_suffix(".sql").exists():
            yield path, "has a double underscore, but is named like no staging model; rename it."
    for path, source in entries(models, "sources"):
        wanted = models / "staging" / source["name"] / f"_{source['name']}__sources.yml"
        if path != wanted:
            yield path, f"declares the source {source['name']}; its place is {wanted.relative_to(project)}."


def _duplicates(project):
    """Names of everything that is built into the lake's schema: models, seeds, snapshots."""
    places = defaultdict(list)
    given = {}
    for folder, kind in (("models", "models"), ("seeds", "seeds"), ("snapshots", "snapshots")):
        for path, entry in entries(project / folder, kind):
            given[entry["name"]] = (entry.get("config") or {}).get("alias")
            if kind == "snapshots":
                places[given[entry["name"]] or entry["name"]].append(path)
    for path in sorted([*project.glob("models/**/*.sql"), *project.glob("seeds/**/*.csv")]):
        alias = re.search(r"\balias\s*=\s*['\"](\w+)['\"]", path.read_text()) if path.suffix == ".sql" else None
        places[alias[1] if alias else given.get(path.stem) or path.stem].append(path)
    for name, paths in places.items():
        for path in paths[1:]:
            first = paths[0].relative_to(project)
            yield path, f"is called {name}, and so is {first}; name one of them <system>_{name}."


def _calls(project):
    """Calls by bare names, which dbt looks up in the project of whoever uses the package, and calls of nothing."""
    names = {macro.name for macro in definitions(project / "macros")}
    for path in _files_that_call(project):
        for block in BLOCK.findall(COMMENT.sub("", path.read_text())):
            head = DEFINED.match(block)
            for package, name in CALL.findall(TEXT.sub("''", block[head.end() if head else 0 :])):
                if package and name not in names:
                    yield path, f"calls highwater.{name}, which is not there; correct the name."
                elif not package and name in names and not ADAPTER.match(name):
                    yield path, f"calls {name} by its bare name; write highwater.{name}, as other projects must."


def _private_macros(project):
    """Private macros that a file other than their own names, called or handed on."""
    own = {macro.name: macro.path for macro in definitions(project / "macros")}
    for path in _files_that_call(project):
        for name in sorted(set(PRIVATE.findall(COMMENT.sub("", path.read_text())))):
            if own.get(name, path) != path:
                yield path, f"uses {name}, which is private to {own[name].name}; move it here, or make it public."


def _files_that_call(project):
    folders = ("macros", "models", "tests/generic", "tests/macros")
    return [path for folder in folders for path in sorted((project / folder).glob("**/*.sql"))]


if __name__ == "__main__":
    lines = findings(Path("."))
    print("\n".join(lines) or "names: nothing found.")
    sys.exit(1 if lines else 0)
