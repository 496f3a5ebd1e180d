"""Take a table out of the project: its models, its place in the feed's declaration and in the list of tables."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from highwater.catalog.declarations import sources_file
from highwater.catalog.entities import logged_tables
from highwater.catalog.feeds import FAST_LOADER, declared_feeds
from highwater.catalog.models import Model, models, without_ref
from highwater.catalog.names import split_name
from highwater.catalog.yaml_files import file_of_model, model_node, named, value_of, without_item
from highwater.runtime.errors import UsageError
from highwater.scaffold.add_table import write_logged_tables

# what an entity's model is called, by layer
LAYERS = {"marts": "{}", "changes": "{}_changes", "merged": "{}_merged", "history": "{}_history"}


@dataclass
class Removal:
    """What goes.

    Attributes:
        relations: models, as dbt names them. files: that are removed. texts: what remains of others, by file.
    """

    relations: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    texts: dict[Path, str] = field(default_factory=dict)

    def text_of(self, path: Path) -> str:
        """Return what remains of a file so far."""
        return self.texts.get(path) or path.read_text()

    def take_file(self, path: Path) -> None:
        """Let a file go of which nothing remains."""
        self.texts.pop(path, None)
        self.files.append(path)


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
        entity = staging.name.removeprefix(f"stg_{feed}__").removesuffix("_changes")
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


def _staging_of(feed: str, table: str) -> Model:
    for name, model in models("staging").items():
        if name.startswith(f"stg_{feed}__") and (feed, table) in model.sources:
            return model
    raise UsageError(f"no model in models/staging reads source('{feed}', '{table}').")


def _take(removal: Removal, model: Model) -> None:
    """Let a model go, and what describes it."""
    removal.relations.append(model.name)
    removal.files.append(model.path)
    described = file_of_model(model.name)
    if described is not None and described not in removal.files:
        text = removal.text_of(described)
        described_models = value_of(yaml.compose(text, FAST_LOADER), "models")
        if len(described_models.value) > 1:
            removal.texts[described] = without_item(text, named(described_models, model.name))
        else:
            removal.take_file(described)


def _take_staging(removal: Removal, staging: Model) -> None:
    """Let a staging model go, and its table out of the declaration of the feed."""
    feed, table = staging.sources[0]
    _take(removal, staging)
    path = sources_file(feed)
    text = removal.text_of(path)
    tables = value_of(named(value_of(yaml.compose(text, FAST_LOADER), "sources"), feed), "tables")
    if len(tables.value) > 1:
        removal.texts[path] = without_item(text, named(tables, table))
    else:
        removal.take_file(path)


def _take_line(removal: Removal, entity: str, staging: Model) -> None:
    """Let a staging model out of the list that a log reads."""
    log = models("changes")[f"{entity}_changes"]
    removal.texts[log.path] = without_ref(log, staging.name)


def _take_entity(removal: Removal, entity: str) -> None:
    """Let everything of an entity go; its declaration with the log, whatever else it describes."""
    for name, model in models("staging").items():
        if name.startswith("stg_") and name.endswith(f"__{entity}"):
            _take_staging(removal, model)
    for layer, name in LAYERS.items():
        if model := models(layer).get(name.format(entity)):
            _take(removal, model)


def _take_comparison(removal: Removal, staging: Model) -> None:
    """Let the test go that compares a mart with an export."""
    entity = staging.name.partition("__")[2]
    path = file_of_model(entity)
    text = removal.text_of(path) if path else ""
    tests = value_of(model_node(text, entity), "data_tests") if path else None
    for test in tests.value if tests else ():
        if f"ref('{staging.name}')" in text[test.start_mark.index : test.end_mark.index]:
            removal.texts[path] = without_item(text, test)
            return


def _refuse_readers(removal: Removal) -> None:
    """Refuse what something else in the project still reads."""
    for path, text in removal.texts.items():
        try:
            yaml.load(text, FAST_LOADER) if path.suffix == ".yml" else None
        except yaml.YAMLError as error:
            raise UsageError(
                f"nothing was removed: {path} describes something else with an alias (`*`) of what would go. "
                "Write it out there first."
            ) from error
    gone = re.compile(rf"ref\(\s*['\"]({'|'.join(removal.relations)})['\"]\s*\)")
    readers = []
    for folder in ("models", "snapshots", "tests", "analyses"):
        for path in sorted(Path(folder).glob("**/*")):
            if path.suffix in (".sql", ".yml", ".yaml") and path not in removal.files:
                text = removal.texts.get(path) if path in removal.texts else path.read_text()
                readers += [f"{path} ({found[1]})" for found in [gone.search(text)] if found]
    if readers:
        raise UsageError(f"nothing was removed, for others read it: {'; '.join(readers)}. Change them first.")
