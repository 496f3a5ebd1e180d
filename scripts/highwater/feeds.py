"""Feeds as the project declares them: `config.meta.feed` on a dbt source."""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from highwater.errors import UsageError
from highwater.project import exports_root, landing_root

FORMATS = ("datastream-json", "csv")
ROLES = ("changes", "baseline", "export")
SETTINGS = {"format", "role", "order", "baseline"}
NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Feed:
    """One producer and source system: where its files are and what they hold.

    Attributes:
        name: the dbt source's name, the folder it lands in, and its raw table (`raw.<name>`).
        format: how its files are cut into records, one of FORMATS.
        role: `changes`, `baseline` (rows as of the start) or `export` (rows to reconcile with).
        tables: its source tables; table `t` lands in the folder `<name>/t/`.
    """

    name: str
    format: str
    role: str
    tables: tuple[str, ...]

    @property
    def root(self) -> str:
        """The folder or URI that holds this feed's folder."""
        return exports_root() if self.role == "export" else landing_root()

    @property
    def raw_table(self) -> str:
        """The Delta table that this feed lands in."""
        return f"raw.{self.name}"


class _LineLoader(yaml.SafeLoader):
    """Keeps the line of every mapping, for messages."""

    def construct_mapping(self, node, deep=False):
        mapping = super().construct_mapping(node, deep=True)
        mapping["__line__"] = node.start_mark.line + 1
        return mapping


def _choice(where: str, settings: dict, name: str, allowed: tuple, default: str | None = None) -> str:
    value = settings.get(name, default)
    if value not in allowed:
        raise UsageError(f"{where}: {name} is {value!r}; it must be one of: {', '.join(allowed)}.")
    return value


def declared_feeds() -> dict[str, Feed]:
    """Read every feed from models/staging.

    Returns: feeds by name, in the order of their files.
    Raises: UsageError naming the file, the line, the value and what is allowed.
    """
    feeds: dict[str, Feed] = {}
    for path in sorted(Path("models/staging").glob("**/*.yml")):
        try:
            document = yaml.load(path.read_text(), _LineLoader) or {}
        except yaml.YAMLError as error:
            raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}.") from error
        for source in document.get("sources") or []:
            settings = ((source.get("config") or {}).get("meta") or {}).get("feed")
            if settings is None:
                continue
            where = f"{path} line {settings['__line__']}: feed {source.get('name')!r}"
            unknown = settings.keys() - SETTINGS - {"__line__"}
            if unknown:
                raise UsageError(
                    f"{where}: unknown setting {sorted(unknown)[0]!r}; known are: {', '.join(sorted(SETTINGS))}."
                )
            tables = tuple(table["name"] for table in source.get("tables") or [])
            for name in (source.get("name"), *tables):
                if not NAME.fullmatch(str(name)):
                    raise UsageError(
                        f"{where}: {name!r} is no name for a feed or table; use lower-case letters, digits and _."
                    )
            format, role = (
                _choice(where, settings, "format", FORMATS),
                _choice(where, settings, "role", ROLES, "changes"),
            )
            if format == "csv" and role == "changes":
                raise UsageError(
                    f"{where}: csv files hold rows, not changes; declare `role: baseline` or `role: export`."
                )
            if source["name"] in feeds:
                raise UsageError(f"{where} is declared twice.")
            feeds[source["name"]] = Feed(
                name=source["name"],
                format=format,
                role=role,
                tables=tables,
            )
    return feeds
