"""Check that models, seeds, snapshots, sources, macros and generic tests are described, with columns and arguments.

A private macro is not: its entry keeps it out of the docs site, and that is all. Check too that what pages name and
link to is there: tests, other pages and their headings.

Run in the project's folder. Prints a line per finding and exits with 1 when there is one.
"""

import csv
import re
import sys
from pathlib import Path

from definitions import definitions, entries

STAGING = Path("macros/staging")
CONTRACT = STAGING / "contract"
READERS = Path("src/highwater/formats")
REASONS = Path("models/operations/rejection_reasons.sql")
# macros that give a record its reason, or a problem without what was found
GIVE_CODES = ("change_contract", "unknown_source")
# models whose columns are listed; those of the other layers are the table's own, and what docs.md describes
LISTED = ("marts", "operations", "publications")
TEST_MODULE = re.compile(r"(?:[\w.]+/)*\btest_\w+\.py\b")
TEST_OF_MODULE = re.compile(r"\b(test_\w+\.py)::(test_\w+)")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
TEST_ARGUMENT = re.compile(r"^\s*- `(\w+)` \([^)]+\): *\S", re.MULTILINE)


def findings(project: Path) -> list[str]:
    """Check the descriptions of a project; return a line per finding."""
    found = [
        *_models(project),
        *_seeds_and_snapshots(project),
        *_sources_and_exposures(project),
        *_columns_of_layers(project),
        *_columns_of_marts(project),
        *_rejection_reasons(project),
        *_macros(project),
        *_named_tests(project),
        *_links(project),
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
            continue
        file, entry = described[path.stem]
        if path.relative_to(project / "models").parts[0] in LISTED and not entry.get("columns"):
            yield file, f"model {path.stem} lists no columns; list them."
    for path, entry in described.values():
        yield from _described(path, "model", entry)


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


def _columns_of_layers(project):
    """Columns that every table has are described in the tables of docs.md, in the words of their own blocks.

    Lists take the blocks, and declarations that an earlier version wrote.
    """
    path = project / "models/docs.md"
    described = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", path.read_text(), re.MULTILINE))
    for name, text in re.findall(r"{% docs (\w+) %}\n(.*?){% enddocs %}", path.read_text(), re.DOTALL):
        if name in described and name != "log_batch" and " ".join(text.split()) != described[name]:
            yield path, f"describes the column {name} in a table and in its block by other words; say the same."
    for origin in (project / CONTRACT / "contract_columns.sql", project / CONTRACT / "stored_columns.sql"):
        for name in re.findall(r"'(\w+)'", origin.read_text()):
            if name not in described:
                yield path, f"no table describes the column {name} of {origin.name}; describe it."


def _columns_of_marts(project):
    """A mart lists the columns that the log declares, by the names that it shows them by."""
    models = {entry["name"]: (path, entry) for path, entry in entries(project / "models", "models")}
    for path in sorted((project / "models/marts").glob("**/*.sql")):
        _, log = models.get(f"{path.stem}_changes", (None, {}))
        file, mart = models.get(path.stem, (path, {}))
        listed = {column["name"] for column in mart.get("columns") or []}
        for name in [column["name"] for column in log.get("columns") or []]:
            if not {name, name.removeprefix("source_")} & listed:
                yield file, f"model {path.stem} does not list the column {name} (of {path.stem}_changes); describe it."


def _rejection_reasons(project):
    """Macros and readers write the reasons that are listed, and no others."""
    listed = set(re.findall(r"\(\n +'(\w+)',", (project / REASONS).read_text()))
    written = {code: path for path in _writers(project) for code in _codes(path)}
    for code in sorted(written.keys() - listed):
        yield written[code], f"writes the rejection reason {code}, which {REASONS.name} does not list; add it there."
    for code in sorted(listed - written.keys()):
        yield project / REASONS, f"lists the rejection reason {code}, which nothing writes; take it out."


def _writers(project):
    return [*sorted((project / STAGING).glob("**/*.sql")), *sorted((project / READERS).glob("**/*.py"))]


def _codes(path: Path) -> list[str]:
    """Return the codes of `code: what was found`, and those that stand alone."""
    text = path.read_text()
    with_detail = re.findall(r"'(\w+): " if path.suffix == ".sql" else r"\"(\w+): ", text)
    return with_detail + (re.findall(r"then '(\w+)'", text) if path.stem in GIVE_CODES else [])


def _macros(project):
    described = {}
    for folder in ("macros", "tests"):
        described |= {entry["name"]: (path, entry) for path, entry in entries(project / folder, "macros")}
    defined = {}
    for definition in [*definitions(project / "macros"), *definitions(project / "tests" / "generic")]:
        name = definition.macro_name
        defined[name] = definition
        if name not in described:
            missing = f"add {_hidden(name)}." if name.startswith("_") else "describe it and its arguments."
            yield definition.path, f"{name} has no entry in a YAML file beside it; {missing}"
            continue
        path, entry = described[name]
        if path.parent != definition.path.parent:
            yield path, f"describes {name}, which is in {definition.path.parent.relative_to(project)}; move the entry."
        if name.startswith("_"):
            yield from _private(path, entry)
        else:
            yield from _described(path, "macro", entry)
            yield from _arguments(path, name, entry, definition)
    for name, (path, _) in described.items():
        if name not in defined:
            yield path, f"describes {name}, which is not there; remove the entry, or correct its name."


def _hidden(name: str) -> str:
    return f"- {{name: {name}, config: {{docs: {{show: false}}}}}}"


def _private(path: Path, entry: dict):
    """dbt has no setting that hides a macro by its name, so each private one has a line."""
    if entry != {"name": entry["name"], "config": {"docs": {"show": False}}}:
        line = _hidden(entry["name"])
        yield path, f"describes {entry['name']}, which is private; write {line}, and comments in its code."


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
    if "Raises: nothing" in str(entry.get("description")):
        yield path, f"says of {name} that it raises nothing, which is so of every macro that says no more; take it out."


def _named_tests(project):
    """A page names a test module by its path, or by its file's name alone, whatever folder it is in.

    Behind it may stand a test of it: `test_values.py::test_value`.
    """
    modules = {path.relative_to(project).as_posix(): path for path in project.glob("tests/python/**/test_*.py")}
    modules |= {path.name: path for path in modules.values()}
    for page in _pages(project):
        text = page.read_text()
        for name in sorted({*TEST_MODULE.findall(text)} - modules.keys()):
            yield page, f"names {name}, which is not there; correct its name or folder."
        for module, test in sorted({*TEST_OF_MODULE.findall(text)}):
            if module in modules and f"\ndef {test}(" not in modules[module].read_text():
                yield page, f"names {test}, which {module} does not have; correct its name."


def _pages(project):
    return sorted([*project.glob("*.md"), *project.glob("docs/**/*.md")])


def _links(project):
    """A link leads to a file that is there, and to one of its headings, written as GitHub writes anchors."""
    for page in _pages(project):
        for path, heading in LINK.findall(page.read_text()):
            file = page.parent / path if path else page
            headings = HEADING.findall(file.read_text()) if file.suffix == ".md" and file.exists() else []
            if not file.exists() or (heading and heading not in map(_anchor, headings)):
                yield page, f"links to {path}{'#' * bool(heading)}{heading}, which is not there; correct the link."


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    lines = findings(Path("."))
    print("\n".join(lines) or "docs: nothing found.")
    sys.exit(1 if lines else 0)
