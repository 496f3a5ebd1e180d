"""Rebuild a merged table from its log."""

from pathlib import Path

from highwater import dbt
from highwater.errors import CheckError, UsageError

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
