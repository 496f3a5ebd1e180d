"""Compact a merged table: merge the pending changes of its log into the base."""

from highwater.catalog.pending import merged_table, pending_changes, size_of
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.project import require_space
from highwater.spark import dbt
from highwater.spark.spark import quoted

FOLDED = "column_orders"
# columns of version 0.5, which disappear when a table is rewritten
NO_LONGER = ("is_pending", "is_new")


def compact(
    spark,
    table: str,
    threshold: int = 1,
    method: str = "in-place",
    stop_before_rewrite: bool = False,
    retain_previous: bool = False,
) -> str:
    """Write the pending changes of an entity into the base; the view shows the same rows.

    If rows are rewritten, those before and after are compared, including tombstones, and the table is restored if they
    differ. Replaced files stay on disk until `highwater vacuum` removes them.

    Arguments:
        table: the entity, for example `customers`. threshold: do nothing if fewer changes are pending.
        method: `in-place`: one merge. `full`: then rewrite the table in one commit. `partitions`: then rewrite the
            partitions that received rows, each in one commit.
        stop_before_rewrite: say what would be done, and do nothing. retain_previous: keep a copy of the table as it was
            before, `<entity>_merged_previous`.
    Returns: a sentence with the number of rows.
    Raises: UsageError when there is no such entity or nothing has been built yet; CheckError when dbt fails or the
        rows are not the same.
    """
    merged = merged_table(spark, table)
    pending = pending_changes(spark, table)
    rows = f"{pending:,} pending change{'s'[: pending != 1]}"
    if pending < max(threshold, 1):
        few = f", fewer than the threshold of {threshold:,}" if pending else ""
        return f"{merged}: {rows}{few}; nothing was done."
    if stop_before_rewrite:
        return f"{merged}: {rows} would be written into the base ({method}); nothing was done."
    if method == "partitions" and not _partition_columns(spark, table):
        raise UsageError(
            f"{merged} is not partitioned. Declare partition_by of the model, for example [region], and rebuild it, "
            "or compact it in full."
        )
    if method == "full":
        require_space(size_of(spark, f"lake.{merged}"), f"compacting {table} in full")
    before = newest_version(spark, f"lake.{merged}")
    applied = spark.sql(f"select coalesce(max(log_batch), 0) from lake.{merged}").first()[0]
    if dbt.run(["run-operation", "highwater.compact_merged", "--args", f"{{entity: {table}}}", "--quiet"]):
        done = "it is as it was" if newest_version(spark, f"lake.{merged}") == before else "run it again to finish it"
        raise CheckError(f"{merged} was not compacted; {done}.")
    if method != "in-place":
        _rewrite(spark, table, applied if method == "partitions" else None)
    kept = ""
    if retain_previous:
        previous = f"lake.{merged}_previous"
        spark.sql(
            f"create or replace table {previous} using delta as select * from lake.{merged} version as of {before}"
        )
        kept = f" The table as it was is {previous}."
    return f"{merged}: {rows} written into the base.{kept}"


def _partition_columns(spark, table: str) -> list[str]:
    columns = spark.sql(f"describe detail lake.{table}_merged").first().partitionColumns
    return [name for name in columns if name not in NO_LONGER]


def _rewrite(spark, table: str, since: int | None) -> None:
    """Rewrite the merged table, or the partitions with rows of later batches; restore it if rows differ."""
    merged = f"lake.{table}_merged"
    before = newest_version(spark, merged)
    arguments = f"{{entity: {table}, since: {'null' if since is None else since}}}"
    if dbt.run(["run-operation", "highwater.rewrite_merged", "--args", arguments, "--quiet"]):
        raise CheckError(f"{table}_merged was compacted and not written anew; its rows are right.")
    if differing_rows(spark, table, before):
        spark.sql(f"restore table {merged} to version as of {before}")
        raise CheckError(f"{table}_merged: its rows were not the same when written anew. It was put back as it was.")


def newest_version(spark, table: str) -> int:
    """Return the number of a table's newest version."""
    return spark.sql(f"describe history {table} limit 1").first()["version"]


def differing_rows(spark, table: str, version: int) -> int:
    """Return how many rows of an entity's merged table differ from those in a version.

    Compares in both directions, NULL-safe, every column; tombstones count as rows.
    """
    merged = f"lake.{table}_merged"
    columns = [name for name in spark.table(merged).columns if name not in NO_LONGER]
    compared = ", ".join(f"array_sort(map_entries({FOLDED}))" if name == FOLDED else quoted(name) for name in columns)
    now, then = f"select {compared} from {merged}", f"select {compared} from {merged} version as of {version}"
    question = (
        f"select (select count(*) from ({now} except all {then})) + (select count(*) from ({then} except all {now}))"
    )
    return spark.sql(question).first()[0]
