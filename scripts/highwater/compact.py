"""Compact a merged table: its pending rows become base rows."""

from highwater import dbt
from highwater.errors import CheckError
from highwater.project import require_space
from highwater.rebuild import PENDING, key_of, merged_table, size_of
from highwater.spark import quoted

FOLDED = "column_orders"


def compact(
    spark,
    table: str,
    threshold: int = 1,
    method: str = "in-place",
    stop_before_rewrite: bool = False,
    retain_previous: bool = False,
) -> str:
    """Move the pending rows of an entity into the base; what the view shows stays the same.

    Where rows are written anew, those before and after are compared, tombstones included, and the table is
    put back as it was when they differ. What a compaction replaces stays on disk until `highwater vacuum` removes it.

    Arguments:
        table: the entity, for example `customers`. threshold: with fewer pending rows nothing is done.
        method: `in-place`, see the macro compact_pending; `full`, the table written anew by one commit;
        `partitions`, those partitions that have pending rows, each by one commit.
        stop_before_rewrite: say what would be done, and do nothing. retain_previous: keep a copy of
        the table as it was, `<entity>_merged_previous`.
    Returns: a sentence with the number of rows.
    Raises: UsageError when there is no such entity or nothing has been built yet; CheckError when dbt fails or the
        rows are not the same.
    """
    merged = merged_table(spark, table)
    pending = spark.sql(f"select count(*) from lake.{merged} where {PENDING}").first()[0]
    rows = f"{pending:,} pending row{'s'[: pending != 1]}"
    if pending < max(threshold, 1):
        few = f", fewer than the threshold of {threshold:,}" if pending else ""
        return f"{merged}: {rows}{few}; nothing was done."
    if stop_before_rewrite:
        return f"{merged}: {rows} would become base rows ({method}); stopped before the rewrite, nothing was done."
    if method == "full":
        require_space(size_of(spark, f"lake.{merged}"), f"compacting {table} in full")
    before = newest_version(spark, f"lake.{merged}")
    operation = ["run-operation", "compact_merged", "--args", f"{{entity: {table}, method: {method}}}", "--quiet"]
    if dbt.run(operation):
        done = "it is as it was" if newest_version(spark, f"lake.{merged}") == before else "run it again to finish it"
        raise CheckError(f"{merged} was not compacted; {done}.")
    if method != "in-place" and differing_rows(spark, table, before):
        spark.sql(f"restore table lake.{merged} to version as of {before}")
        raise CheckError(f"{merged}: its rows were not the same after compaction. It was put back as it was.")
    kept = ""
    if retain_previous:
        previous = f"lake.{merged}_previous"
        spark.sql(
            f"create or replace table {previous} using delta as select * from lake.{merged} version as of {before}"
        )
        kept = f" The table as it was is {previous}."
    return f"{merged}: {rows} became base rows.{kept}"


def newest_version(spark, table: str) -> int:
    """Return the number of a table's newest version."""
    return spark.sql(f"describe history {table} limit 1").first()["version"]


def differing_rows(spark, table: str, version: int) -> int:
    """Return how many rows of an entity's merged table, its layers overlaid, are not what they were in a version.

    Both directions, NULL-safe, every column but those of the layers; tombstones count as rows.
    """
    merged = f"lake.{table}_merged"
    columns = [name for name in spark.table(merged).columns if name not in ("is_pending", "is_new")]
    compared = ", ".join(f"array_sort(map_entries({FOLDED}))" if name == FOLDED else quoted(name) for name in columns)
    same_key = " and ".join(f"`pending rows`.{quoted(name)} = `base rows`.{quoted(name)}" for name in key_of(table))

    def rows(at=""):
        return f"""(
            select {compared} from {merged}{at} where is_pending
            union all
            select {compared} from {merged}{at} as `base rows` where not is_pending and not exists (
                select 1 from {merged}{at} as `pending rows` where is_pending and {same_key}
            )
        )"""

    now, then = rows(), rows(f" version as of {version}")
    question = (
        f"select (select count(*) from ({now} except all {then})) + (select count(*) from ({then} except all {now}))"
    )
    return spark.sql(question).first()[0]
