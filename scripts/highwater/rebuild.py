"""Rebuild a merged table from its log."""

from pathlib import Path

import yaml

from highwater import dbt
from highwater.errors import CheckError, UsageError
from highwater.feeds import FAST_LOADER

# truncates wait with the pending rows for ever, and are no rows of the table
PENDING = "is_pending and change_type <> 'truncate'"


def merged_table(spark, table: str) -> str:
    """Return the name of the merged table of an entity.

    Raises: UsageError when there is no such entity or nothing has been built yet.
    """
    merged = f"{table}_merged"
    if not list(Path("models/merged").glob(f"**/{merged}.sql")):
        known = sorted(path.stem.removesuffix("_merged") for path in Path("models/merged").glob("**/*_merged.sql"))
        raise UsageError(f"there is no merged table of {table!r}; tables are: {', '.join(known) or 'none'}.")
    if not spark.catalog.tableExists(f"lake.{merged}"):
        raise UsageError(f"{merged} has not been built yet; run: highwater build")
    return merged


def declaration_of(entity: str) -> Path:
    """Return the file that declares an entity's log."""
    (path,) = Path("models/changes").glob(f"*/{entity}_changes.yml")
    return path


def log_of(entity: str) -> dict:
    """Return the declaration of an entity's log, as its YAML has it."""
    return yaml.load(declaration_of(entity).read_text(), FAST_LOADER)["models"][0]


def settings_of(entity: str) -> dict:
    """Return what the log of an entity declares: its key, and what else its `meta` holds."""
    return log_of(entity)["config"]["meta"]


def key_of(entity: str) -> list[str]:
    """Return the columns that identify a row of an entity, as its log's YAML declares them."""
    return settings_of(entity).get("key", [])


def rebuild(spark, table: str) -> str:
    """Write the merged table of an entity again from its log, swapped in by one commit.

    Arguments:
        table: the entity, for example `customers`.
    Returns: a sentence with the number of rows.
    Raises: UsageError when there is no such entity or nothing has been built yet; CheckError when dbt fails.
    """
    merged = merged_table(spark, table)
    status = dbt.run(["run-operation", "rebuild_merged", "--args", f"{{entity: {table}}}", "--quiet"])
    if status:
        raise CheckError(f"{merged} was not rebuilt; it is as it was.")
    rows = spark.table(f"lake.{merged}").count()
    return f"{merged}: {rows:,} keys, rebuilt from {table}_changes."
