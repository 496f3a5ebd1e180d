"""Take a table out of the project: its models, its place in the feed's declaration and in the list of tables."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from highwater.add_table import logged_tables, split_name, write_logged_tables
from highwater.errors import UsageError
from highwater.feeds import FAST_LOADER, declared_feeds

LAYERS = ("changes", "merged", "history")


@dataclass
class Removal:
    """What goes.

    Attributes:
        relations: models, as dbt names them. files: that are removed. texts: what remains of others, by file.
        described: files that describe some of the models beside others, and stay as they are.
    """

    relations: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    texts: dict[Path, str] = field(default_factory=dict)
    described: list[Path] = field(default_factory=list)


def removal_of(table: str) -> Removal:
    """Return what goes with a table; nothing is done yet.

    Arguments:
        table: `<feed>.<table>`. Where another feed of changes brings records of the same entity, only the staging model
            goes; else the log, the merged table, the mart and the history go too, and the exports to compare with.
    Raises: UsageError when there is no such table, or something else in the project reads it.
    """
    feed, name = split_name(table)
    feeds = declared_feeds()
    if feed not in feeds or name not in feeds[feed].tables:
        known = sorted(f"{each.name}.{one}" for each in feeds.values() for one in each.tables)
        raise UsageError(f"{table} is not declared; declared are: {', '.join(known) or 'none'}.")
    staging = _staging_of(feed, name)
    removal = Removal()
    if feeds[feed].role == "export":
        _take_staging(removal, staging)
        _take_comparison(removal, staging)
    else:
        entity = staging.stem.removeprefix(f"stg_{feed}__").removesuffix("_changes")
        sources = dict(logged_tables())[entity]
        _take_staging(removal, staging)
        if len(sources) > 1:
            _take_line(removal, entity, staging)
        else:
            _take_entity(removal, entity)
    _refuse_readers(removal)
    return removal


def remove(removal: Removal) -> list[Path]:
    """Do it; return the files that went or were changed."""
    for path, text in removal.texts.items():
        path.write_text(text)
    for path in removal.files:
        path.unlink()
    for folder in {path.parent for path in removal.files}:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return [*removal.files, *removal.texts, write_logged_tables()]


def _staging_of(feed: str, table: str) -> Path:
    for path in sorted(Path(f"models/staging/{feed}").glob(f"stg_{feed}__*.sql")):
        if f"source('{feed}', '{table}')" in path.read_text():
            return path
    raise UsageError(f"no model in models/staging/{feed} reads source('{feed}', '{table}').")


def _take(removal: Removal, path: Path) -> None:
    """Let a model and its YAML go."""
    removal.relations.append(path.stem)
    removal.files += [each for each in (path, path.with_suffix(".yml")) if each.exists()]
    if not path.with_suffix(".yml").exists():
        entry = re.compile(rf"^ *- name: {path.stem}$", re.MULTILINE)
        removal.described += [each for each in path.parent.glob("*.yml") if entry.search(each.read_text())]


def _take_staging(removal: Removal, staging: Path) -> None:
    """Let a staging model go, and its table out of the declaration of the feed."""
    _take(removal, staging)
    feed, table = re.search(r"source\('(\w+)', '(\w+)'\)", staging.read_text()).groups()
    path = next(path for path in sorted(staging.parent.glob("*.yml")) if _tables_node(path, feed) is not None)
    text = removal.texts.get(path, path.read_text())
    tables = _tables_node(path, feed, text)
    nodes = [node for node in tables.value if _name(node) != table]
    if not nodes:
        removal.files.append(path)
        removal.texts.pop(path, None)
        return
    gone = next(node for node in tables.value if _name(node) == table)
    lines = text.split("\n")
    # from the dash of the entry to the next one, or to the end of the list
    after = [node.start_mark.line for node in tables.value if node.start_mark.line > gone.start_mark.line]
    end = min(after) if after else gone.end_mark.line if gone.end_mark.column == 0 else gone.end_mark.line + 1
    removal.texts[path] = "\n".join(lines[: gone.start_mark.line] + lines[end:])


def _tables_node(path: Path, feed: str, text: str | None = None):
    document = yaml.compose(path.read_text() if text is None else text, FAST_LOADER)
    sources = _value(document, "sources") if document else None
    source = next((node for node in (sources.value if sources else []) if _name(node) == feed), None)
    return _value(source, "tables") if source else None


def _value(mapping, name: str):
    return next((value for key, value in mapping.value if key.value == name), None)


def _name(node) -> str:
    return _value(node, "name").value


def _take_line(removal: Removal, entity: str, staging: Path) -> None:
    """Let a staging model out of the list that a log reads."""
    (log,) = Path("models/changes").glob(f"*/{entity}_changes.sql")
    line = re.compile(rf"^ *ref\('{staging.stem}'\),?\n", re.MULTILINE)
    removal.texts[log] = line.sub("", log.read_text())


def _take_entity(removal: Removal, entity: str) -> None:
    """Let everything of an entity go."""
    for layer in LAYERS:
        for path in Path(f"models/{layer}").glob(f"*/{entity}_{layer}.sql"):
            _take(removal, path)
    for path in Path("models/marts").glob(f"*/{entity}.sql"):
        _take(removal, path)
    for path in Path("models/staging").glob(f"*/stg_*__{entity}.sql"):
        _take_staging(removal, path)


def _take_comparison(removal: Removal, staging: Path) -> None:
    """Let the test go that compares a mart with an export."""
    entity = staging.stem.partition("__")[2]
    test = re.compile(
        rf" +- (?:highwater\.)?matches_export:\n(?: {{8,}}.*\n)*?.*ref\('{staging.stem}'\).*\n(?: {{8,}}.*\n)*"
    )
    for path in Path("models/marts").glob(f"*/{entity}.yml"):
        removal.texts[path] = test.sub("", path.read_text())


def _refuse_readers(removal: Removal) -> None:
    """Refuse what something else in the project still reads."""
    gone = re.compile(rf"ref\(\s*['\"]({'|'.join(removal.relations)})['\"]\s*\)")
    readers = []
    for folder in ("models", "snapshots", "tests", "analyses"):
        for path in sorted(Path(folder).glob("**/*")):
            if path.suffix in (".sql", ".yml", ".yaml") and path not in removal.files:
                text = removal.texts.get(path) if path in removal.texts else path.read_text()
                readers += [f"{path} ({found[1]})" for found in [gone.search(text)] if found]
    if readers:
        raise UsageError(f"nothing was removed, for others read it: {'; '.join(readers)}. Change them first.")
