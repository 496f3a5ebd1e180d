"""Compact a merged table: its pending rows become base rows."""

from highwater import dbt
from highwater.errors import CheckError
from highwater.rebuild import PENDING, merged_table


def compact(spark, table: str, threshold: int = 1) -> str:
    """Move the pending rows of an entity into the base, by one commit; what the view shows stays the same.

    Arguments:
        table: the entity, for example `customers`. threshold: with fewer pending rows nothing is done.
    Returns: a sentence with the number of rows.
    Raises: UsageError when there is no such entity or nothing has been built yet; CheckError when dbt fails.
    """
    merged = merged_table(spark, table)
    pending = spark.sql(f"select count(*) from lake.{merged} where {PENDING}").first()[0]
    rows = f"{pending:,} pending row{'s'[: pending != 1]}"
    if pending < max(threshold, 1):
        few = f", fewer than the threshold of {threshold:,}" if pending else ""
        return f"{merged}: {rows}{few}; nothing was done."
    if dbt.run(["run-operation", "compact_merged", "--args", f"{{entity: {table}}}", "--quiet"]):
        raise CheckError(f"{merged} was not compacted; it is as it was.")
    return f"{merged}: {rows} became base rows."
