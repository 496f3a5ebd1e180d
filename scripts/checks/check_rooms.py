"""Check that the modules of the command stand in rooms, and that imports go one way: to lower rooms, and in no circle.

Imports inside functions count too. Run in the project's folder. Prints a line per finding and exits with 1 when there
is one.
"""

import ast
import sys
from collections import deque
from importlib.util import resolve_name
from pathlib import Path

# lower ones first; a module may import those of its own room and of the rooms before it
ROOMS = (
    "runtime",
    "formats",
    "catalog",
    "spark",
    "landing",
    "scaffold",
    "databases",
    "builds",
    "upkeep",
    "status",
    "reconcile",
)
TOP = "cli"
HEIGHTS = {room: height for height, room in enumerate((*ROOMS, TOP))}


def findings(project: Path) -> list[str]:
    """Check the imports of a project's command; return a line per finding."""
    folder = project / "scripts/highwater"
    files = {_name(path.relative_to(folder)): path for path in sorted(folder.glob("**/*.py"))}
    imports = {name: _imports(name, path, files) for name, path in files.items() if name}
    found = [
        *_outside(imports),
        *_missing(imports),
        *_upward(imports),
        *_circles(imports),
        *_statements(files, imports),
    ]
    return [
        f"{files[name].relative_to(project) if name in files else folder.relative_to(project)}: {problem}"
        for name, problem in found
    ]


def _name(path: Path) -> str:
    """Return the name of a module below `highwater`, that of the room for its `__init__`; of the package nothing."""
    return ".".join(part for part in path.with_suffix("").parts if part != "__init__")


def _room(name: str) -> str:
    return name.partition(".")[0]


def _imports(name: str, path: Path, files) -> set[str]:
    """Return the modules of the command that one of them imports, anywhere in it."""
    package = ".".join(["highwater", *name.split(".")][: None if path.name == "__init__.py" else -1])
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            imported |= {f"{module}.{alias.name}" for alias in node.names}
    return {_module(whole, files) for whole in imported if whole.startswith("highwater.")} - {name}


def _module(imported: str, files) -> str:
    """Return the module that an imported name is, or that holds it."""
    name = imported.removeprefix("highwater.")
    return name if name in files else name.rpartition(".")[0] or name


def _outside(imports):
    for name in imports:
        if _room(name) not in HEIGHTS:
            yield name, f"is in no room; move it into one of: {', '.join(ROOMS)}."


def _missing(imports):
    for room in ROOMS:
        if room not in imports:
            yield room, f"has no room {room}, of which ROOMS in check_rooms.py tells; give it an __init__.py."


def _upward(imports):
    top = len(HEIGHTS)
    for name, imported in imports.items():
        for other in sorted(imported):
            if HEIGHTS.get(_room(other), top) > HEIGHTS.get(_room(name), top):
                yield name, f"imports {other}, which is above it; move what it needs down, or let the caller pass it."


def _circles(imports):
    for name in sorted(imports):
        way = _way_back(name, imports)
        if way and name == min(way):
            yield name, f"imports itself in a circle: {' -> '.join([*way, name])}."


def _way_back(name: str, imports) -> list[str] | None:
    """Return the modules of the shortest circle through one of them; None: there is none."""
    ways, seen = deque([[name]]), set()
    while ways:
        way = ways.popleft()
        for other in sorted(imports.get(way[-1], ())):
            if other == name:
                return way
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return None


def _statements(files, imports):
    """Check that a room says what it is for, and truly what it imports, and holds nothing else."""
    for room in (room for room in ROOMS if room in files):
        text = ast.parse(files[room].read_text())
        if len(text.body) != 1:
            yield room, "holds more than its docstring; put it into a module of the room."
        used = {_room(other) for name in imports if _room(name) == room for other in imports[name]} - {room}
        listed = ", ".join(sorted(used, key=lambda other: HEIGHTS.get(other, len(HEIGHTS))))
        line = f"Imports: {listed}." if used else "Imports no other room."
        if (ast.get_docstring(text) or "").split("\n")[-1] != line:
            yield room, f"its docstring does not end in the line `{line}`, which is what its modules do."


if __name__ == "__main__":
    lines = findings(Path("."))
    print("\n".join(lines) or "rooms: nothing found.")
    sys.exit(1 if lines else 0)
