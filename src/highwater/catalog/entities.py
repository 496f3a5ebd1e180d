"""The tables of the project, as its models declare them: logs and what feeds them, columns, keys, publish groups."""

from pathlib import Path

import yaml

from highwater.catalog.columns import Column
from highwater.catalog.feeds import FAST_LOADER, declared_feeds, plain_text
from highwater.catalog.models import Model, models
from highwater.catalog.yaml_files import file_of_model
from highwater.runtime.errors import UsageError

# by the ending of a model's name, which layer of its table it is
LAYER_BY_ENDING = {"_changes": "log", "_merged": "base", "": "view", "_history": "history"}


def logged_tables() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every change log of the project with the (feed, source_table) that feed it, as raw has them."""
    feeds = declared_feeds()

    def in_raw(feed, table):
        return feed, feeds[feed].source_table(table) if feed in feeds else table

    return [(entity, [in_raw(*source) for source in sources]) for entity, sources in sources_of_logs()]


def models_of_tables() -> dict[str, tuple[str, str]]:
    """Return by the name of each model that a table has or may have its entity and the layer; see LAYER_BY_ENDING.

    What logs read is `staging`, and what compares the exports of the source with the table is `export`.
    """
    staging = models("staging")
    exports = [feed.name for feed in declared_feeds().values() if feed.role == "export"]
    found = {}
    for log in _logs():
        entity = entity_of_log(log)
        found |= {f"stg_{feed}__{entity}": (entity, "export") for feed in exports}
        found |= {f"{entity}{ending}": (entity, layer) for ending, layer in LAYER_BY_ENDING.items()}
        found |= {model.name: (entity, "staging") for model in _staging_of(log, staging)}
    return found


def sources_of_logs() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every change log of the project with its (feed, table) as dbt names them, read from the models.

    Raises: UsageError when a log reads a staging model that is not there.
    """
    staging = models("staging")
    return [(entity_of_log(log), [s for model in _staging_of(log, staging) for s in model.sources]) for log in _logs()]


def staging_of(entity: str) -> list[Model]:
    """Return the staging models that the log of an entity reads; see sources_of_logs."""
    return _staging_of(models("changes")[f"{entity}_changes"], models("staging"))


def _logs() -> list[Model]:
    return [model for model in models("changes").values() if model.name.endswith("_changes")]


def entity_of_log(log: Model) -> str:
    """Return the entity whose log a model is."""
    return log.name.removesuffix("_changes")


def _staging_of(log: Model, staging: dict[str, Model]) -> list[Model]:
    for name in log.refs:
        if name not in staging and name.startswith("stg_") and name.endswith(f"__{log.name}"):
            raise UsageError(
                f"{log.path} reads {name}, and {name}.sql is not there. Take it back from version control, or "
                "take its line out."
            )
    return [staging[name] for name in log.refs if name in staging]


def entities_of(feed: str) -> list[str]:
    """Return the entities that have a staging model of changes of this feed."""
    prefix = f"stg_{feed}__"
    found = (model for model in models("staging") if model.startswith(prefix) and model.endswith("_changes"))
    return [model.removeprefix(prefix).removesuffix("_changes") for model in found]


def has_history(entity: str) -> bool:
    """Return whether the versions of an entity's rows are kept."""
    return f"{entity}_history" in models("history")


def known_table(table: str) -> str:
    """Return the name of an entity as it was given.

    Raises: UsageError when there is no such entity; it says which ones there are.
    """
    known = sorted(entity for entity, _ in logged_tables())
    if table not in known:
        raise UsageError(f"there is no table {table!r}; tables are: {', '.join(known) or 'none'}.")
    return table


def publish_groups() -> dict[str, list[str]]:
    """Return the entities of each publish group, read from the models themselves."""
    return {
        name.removesuffix("_publications"): [log.removesuffix("_changes") for log in model.refs]
        for name, model in models("publications").items()
        if name.endswith("_publications")
    }


def declaration_of(entity: str) -> Path:
    """Return the file that declares an entity: `models/tables/<system>/<entity>.yml`, or beside its log."""
    found = [*Path("models/tables").glob(f"*/{entity}.yml"), *Path("models/changes").glob(f"*/{entity}_changes.yml")]
    path = found[0] if found else file_of_model(f"{entity}_changes")
    if path is None:
        raise UsageError(
            f"no YAML below models describes {entity}_changes, where its columns and its key are declared."
        )
    return path


def log_of(entity: str) -> dict:
    """Return the declaration of an entity's log, as its YAML has it."""
    models = yaml.load(declaration_of(entity).read_text(), FAST_LOADER)["models"]
    return next(model for model in models if model["name"] == f"{entity}_changes")


def settings_of(entity: str) -> dict:
    """Return what the log of an entity declares: its key, and what else its `meta` holds."""
    return log_of(entity)["config"]["meta"]


def key_of(entity: str) -> list[str]:
    """Return the columns that identify a row of an entity, as its log's YAML declares them."""
    return settings_of(entity).get("key", [])


def declared_columns(entity: str) -> tuple[list[Column], list[str]]:
    """Return the columns and the key of an entity, as the YAML of its log declares them."""
    declared = log_of(entity)
    columns = []
    for c in declared["columns"]:
        if "data_type" in c:
            meta = (c.get("config") or {}).get("meta", {})
            field = plain_text(str(meta.get("field", c["name"])))
            columns.append(Column(c["name"], field, c["data_type"], meta.get("unit")))
    return columns, declared["config"]["meta"].get("key", [])


def column_in_other_letters(entity: str, field: str) -> Column | None:
    """Return the column that is declared for a field of the same name in other letters, upper and lower case."""
    return next((c for c in declared_columns(entity)[0] if c.field.lower() == field.lower()), None)
