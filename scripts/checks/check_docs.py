"""Check that models, seeds, snapshots, sources, macros and generic tests are described, with columns and arguments.

Run in the project's folder. Prints a line per finding and exits with 1 when there is one.
"""

import csv
import re
import sys
from pathlib import Path

from definitions import definitions, entries

CONTRACT = Path("macros/staging/contract_columns.sql")
TEST_ARGUMENT = re.compile(r"^\s*- `(\w+)` \([^)]+\): *\S", re.MULTILINE)


def findings(project: Path) -> list[str]:
    """Check the descriptions of a project; return a line per finding."""
    found = [
        *_models(project),
        *_seeds_and_snapshots(project),
        *_sources_and_exposures(project),
        *_columns_of_entities(project),
        *_macros(project),
    ]
    return [f"{path.relative_to(project)}: {problem}" for path, problem in found]


def _is_empty(entry: dict) -> bool:
    return not str(entry.get("description") or "").strip()


def _described(path: Path, kind: str, entry: dict):
    """Check an entry and its columns."""
    if _is_empty(entry):
        yield path, f"{kind} {entry['name']} has no description; write one."
    for column in entry.get("columns") or []:
        if _is_empty(column):
            yield path, f"column {column['name']} of {kind} {entry['name']} has no description; write one."


def _models(project):
    described = dict((entry["name"], (path, entry)) for path, entry in entries(project / "models", "models"))
    for path in sorted((project / "models").glob("**/*.sql")):
        if path.stem not in described:
            yield path, f"model {path.stem} has no entry in YAML; add one."
    for path, entry in described.values():
        yield from _described(path, "model", entry)
        if not entry.get("columns"):
            yield path, f"model {entry['name']} lists no columns; list them."


def _seeds_and_snapshots(project):
    described = {entry["name"]: (path, entry) for path, entry in entries(project / "seeds", "seeds")}
    for path in sorted((project / "seeds").glob("**/*.csv")):
        if path.stem not in described:
            yield path, f"seed {path.stem} has no entry in YAML; add one."
            continue
        file, entry = described[path.stem]
        yield from _described(file, "seed", entry)
        with path.open(newline="") as lines:
            header = next(csv.reader(lines))
        yield from _missing(file, "seed", entry, header, path.name)
    for path, entry in entries(project / "snapshots", "snapshots"):
        yield from _described(path, "snapshot", entry)


def _sources_and_exposures(project):
    for path, source in entries(project / "models", "sources"):
        yield from _described(path, "source", source)
        for table in source.get("tables") or []:
            yield from _described(path, "source table", table)
    for path, exposure in entries(project / "models", "exposures"):
        yield from _described(path, "exposure", exposure)


def _missing(path: Path, kind: str, entry: dict, wanted: list[str], origin: str):
    listed = {column["name"] for column in entry.get("columns") or []}
    for name in wanted:
        if name not in listed:
            yield path, f"{kind} {entry['name']} does not list the column {name} (of {origin}); describe it."


def _columns_of_entities(project):
    """Staging and changes list the contract; staging and merged list the columns that the entity declares."""
    contract = re.findall(r"'(\w+)'", (project / CONTRACT).read_text())
    models = {entry["name"]: entry for _, entry in entries(project / "models", "models")}
    for path, entry in entries(project / "models", "models"):
        layer = path.relative_to(project / "models").parts[0]
        if layer in ("staging", "changes"):
            yield from _missing(path, "model", entry, contract, CONTRACT.name)
        if layer in ("staging", "merged"):
            entity = entry["name"].rpartition("__")[2].removesuffix("_changes").removesuffix("_merged")
            declared = models.get(f"{entity}_changes", {}).get("columns") or []
            own = [column["name"] for column in declared if column.get("data_type")]
            yield from _missing(path, "model", entry, own, f"{entity}_changes")


def _macros(project):
    described = {}
    for folder in ("macros", "tests"):
        described |= {entry["name"]: (path, entry) for path, entry in entries(project / folder, "macros")}
    defined = {}
    for definition in [*definitions(project / "macros"), *definitions(project / "tests" / "generic")]:
        name = definition.macro_name
        defined[name] = definition
        if name not in described:
            yield definition.path, f"{name} has no entry in a YAML file beside it; describe it and its arguments."
            continue
        path, entry = described[name]
        if path.parent != definition.path.parent:
            yield path, f"describes {name}, which is in {definition.path.parent.relative_to(project)}; move the entry."
        yield from _described(path, "macro", entry)
        yield from _arguments(path, name, entry, definition)
    for name, (path, _) in described.items():
        if name not in defined:
            yield path, f"describes {name}, which is not there; remove the entry, or correct its name."


def _arguments(path, name, entry, definition):
    if definition.is_test:
        # dbt 1.11 takes `arguments:` of a generic test for a mistake, so they are a list in its description
        given = TEST_ARGUMENT.findall(str(entry.get("description")))
    else:
        given = [argument["name"] for argument in entry.get("arguments") or []]
    wanted = list(definition.arguments)
    if given != wanted:
        shown = ", ".join(wanted) or "none"
        yield path, f"describes the arguments of {name} as: {', '.join(given) or 'none'}; its signature has: {shown}."
    for argument in entry.get("arguments") or []:
        if _is_empty(argument) or not argument.get("type"):
            yield path, f"argument {argument['name']} of {name} needs a type and a description; write them."


if __name__ == "__main__":
    lines = findings(Path("."))
    print("\n".join(lines) or "docs: nothing found.")
    sys.exit(1 if lines else 0)
