"""What the log of a table has and its base does not, as far as readers may see it."""

from highwater.catalog.entities import publish_groups
from highwater.catalog.models import models
from highwater.runtime.errors import UsageError

# applied, and not in the base yet; truncates are no rows of a table
PENDING = """
    verdict = 'applied'
    and change_type <> 'truncate'
    and log_batch > (select coalesce(max(log_batch), 0) from lake.`{entity}_merged`)
"""


def merged_table(spark, table: str) -> str:
    """Return the name of the merged table of an entity.

    Raises: UsageError when there is no such entity or nothing has been built yet.
    """
    merged = f"{table}_merged"
    known = models("merged")
    if merged not in known:
        known = [name.removesuffix("_merged") for name in known]
        raise UsageError(f"there is no merged table of {table!r}; tables are: {', '.join(known) or 'none'}.")
    if not spark.catalog.tableExists(f"lake.{merged}"):
        raise UsageError(f"{merged} has not been built yet; run: highwater build")
    return merged


def _published_batches(spark, entity: str) -> list[str]:
    """Return questions for the newest batch of its log that each publish group of an entity has published."""
    groups = (f"lake.{group}_publications" for group, entities in publish_groups().items() if entity in entities)
    return [
        f"(select coalesce(max_by(log_batches, publication)['{entity}'], 0) from {publications})"
        for publications in groups
        if spark.catalog.tableExists(publications)
    ]


def are_pending(spark, entity: str) -> str:
    """Return the condition on an entity's log of what the base does not have yet, as far as readers may see it."""
    published = [f"and log_batch <= {published}" for published in _published_batches(spark, entity)]
    return " ".join([PENDING.format(entity=entity), *published])


def newest_batch_shown(spark, entity: str) -> int:
    """Return the newest batch of its log that the view of an entity shows.

    The view of a base that every build writes reads that alone; any other one reads the log too.
    """
    ends = [f"(select coalesce(max(log_batch), 0) from lake.`{entity}_merged`)", "0"]
    described = {row.col_name: row.data_type for row in spark.sql(f"describe table extended lake.`{entity}`").collect()}
    if f"{entity}_changes" in described["View Text"]:
        logged = f"(select coalesce(max(log_batch), 0) from lake.`{entity}_changes`)"
        ends += _published_batches(spark, entity) or [logged]
    return spark.sql(f"select greatest({', '.join(ends)})").first()[0]


def pending_changes(spark, entity: str) -> int:
    """Return how many applied changes of an entity its base does not have yet, as far as readers may see them."""
    return spark.sql(f"select count(*) from lake.`{entity}_changes` where {are_pending(spark, entity)}").first()[0]


def log_went_back(table: str, in_log: int | None, applied: int | None) -> str | None:
    """Return what to say of a log that lacks batches which its merged table has applied; None: it has them.

    Arguments:
        table: the entity. in_log, applied: the newest batch of the log, in the log and in the merged table.
    """
    if (applied or 0) <= (in_log or 0):
        return None
    return (
        f"{table}_changes has up to batch {in_log or 0} of the log, and {table}_merged has applied batch {applied}: "
        "the log went back (was it restored alone, or did a power cut take a commit?). highwater build classifies what "
        "raw has behind it again, under numbers that are new: rows stay right, and what they have already counts as a "
        f"duplicate. To have verdicts and history as they were, after that: highwater rebuild {table} --from raw"
    )


def size_of(spark, table: str) -> int:
    """Return the bytes of a table's newest version, which writing it anew takes once more."""
    return spark.sql(f"describe detail {table}").first()["sizeInBytes"]
