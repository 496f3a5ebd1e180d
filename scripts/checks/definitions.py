"""What the project's files define: macros and generic tests with their arguments, and the entries of YAML files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from highwater.catalog.feeds import FAST_LOADER

BLOCK = re.compile(
    r"{%-?\s*(macro|test|data_test|materialization)\s+(\w+)\s*(?:,[^%]*?)?(?:\((.*?)\))?\s*-?%}", re.DOTALL
)
COMMENT = re.compile(r"{#.*?#}", re.DOTALL)
NESTED = re.compile(r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\[[^\[\]]*\]|{[^{}]*}")


@dataclass(frozen=True)
class Definition:
    """A macro or a generic test.

    Attributes:
        name: as written. arguments: their names, in order.
        path: the file. is_test: a generic test. macro_name: what dbt calls it, for example `test_<name>`.
    """

    name: str
    arguments: tuple[str, ...]
    path: Path
    is_test: bool
    macro_name: str


def definitions(folder: Path) -> list[Definition]:
    """Return the macros and generic tests of every SQL file below the folder."""
    found = []
    for path in sorted(folder.glob("**/*.sql")):
        for kind, name, signature in BLOCK.findall(COMMENT.sub("", path.read_text())):
            is_test = kind in ("test", "data_test")
            macro_name = {"macro": name, "materialization": f"materialization_{name}_spark"}.get(kind, f"test_{name}")
            found.append(Definition(name, _arguments(signature), path, is_test, macro_name))
    return found


def _arguments(signature: str) -> tuple[str, ...]:
    while signature != (plain := NESTED.sub("", signature)):
        signature = plain
    return tuple(part.partition("=")[0].strip() for part in signature.split(",") if part.strip())


def entries(folder: Path, kind: str) -> Iterator[tuple[Path, dict]]:
    """Yield every entry of that kind (`models`, `macros`, …) below the folder, with the file that it stands in."""
    for path in sorted(folder.glob("**/*.yml")):
        for entry in (yaml.load(path.read_text(), FAST_LOADER) or {}).get(kind) or []:
            yield path, entry


def feed_of(source: dict) -> dict:
    """Return what a source declares as its feed."""
    return ((source.get("config") or {}).get("meta") or {}).get("feed") or {}
