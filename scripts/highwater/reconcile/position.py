"""The position that a table is compared as of, and the rows that the lake had there."""

from dataclasses import dataclass, field

from highwater.catalog.entities import logged_tables, publish_groups
from highwater.catalog.feeds import declared_feeds, sql_text
from highwater.catalog.pending import newest_batch_shown
from highwater.formats.formats import TABLE_IN_FOLDERS
from highwater.reconcile.plan import Plan
from highwater.reconcile.repair import LAST
from highwater.runtime.errors import UsageError
from highwater.spark.spark import quoted
from highwater.status.status import WAITING
from highwater.upkeep.retention import retention_of

BETWEEN = " .. "
ROWS = "highwater_rows_of_lake"
NOW = "as it is now"


@dataclass(frozen=True)
class Window:
    """The positions that an export was taken between, or the one it was taken at.

    Attributes:
        position: as declared. sequences: the same as sequences; none: nobody knows them, and notes say why.
    """

    position: str | None = None
    sequences: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def sequence(self) -> str | None:
        """The sequences as one text."""
        return BETWEEN.join(self.sequences) or None

    @property
    def end(self) -> str | None:
        """The sequence that the lake is compared as of."""
        return self.sequences[-1] if self.sequences else None


def window_of(spark, plan: Plan, declared: str | None, as_of: str | None) -> Window:
    """Return the positions that the export was taken between, or at.

    Arguments:
        declared: position of the export. as_of: one to compare as of in its place.
    Raises: UsageError when as_of is no position of the feed.
    """
    position = as_of or declared
    if not position:
        return Window(position, notes=["the export has no position, so what differs now may be in flight"])
    if not plan.positions:
        words = (
            f"the position {position} is not comparable: the feed {plan.feed} does not declare `positions:`, "
            "the feed whose positions its exports carry"
        )
        return Window(position, notes=[words])
    sequences = _sequences(spark, plan, position)
    if None in sequences:
        return Window(position, notes=[_unknown(plan, position, as_of)])
    if not plan.rows_at_position:
        return Window(position, notes=[f"{plan.table} has no log of changes, so it is compared as it is now"])
    return Window(position, sequences)


def _sequences(spark, plan: Plan, position: str) -> tuple[str | None, ...]:
    given = position.split(BETWEEN)
    frame = spark.createDataFrame([(each,) for each in given], "position string").coalesce(1)
    return tuple(row.s for row in frame.selectExpr(f"{plan.sequence} as s").collect())


def _unknown(plan: Plan, position: str, as_of: str | None) -> str:
    words = (
        f"the position {position} is none that {plan.positions} has; write it as its records do, or as "
        "sequence:<change_sequence_number>"
    )
    if as_of:
        raise UsageError(f"--as-of: {words}.")
    return words


@dataclass(frozen=True)
class LakeRows:
    """The rows of the lake that are compared.

    Attributes:
        relation: that has them; None: the log does not go back as far as the position.
        compared: which rows they are, in words. newest_log_batch: the newest one of the log that they show.
        not_checked: why they may not be all; none: they are.
    """

    relation: str | None = None
    compared: str | None = None
    newest_log_batch: int | None = None
    not_checked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LogFacts:
    """Up to where changes have been applied, and what comes behind a position.

    Attributes:
        applied: the highest sequence that has been applied. is_whole: nothing waits to be applied; lowest: of what
            does. first: the lowest of all. later: accepted changes behind the position. truncates: those among them.
    """

    applied: str | None
    is_whole: bool
    lowest: str | None
    first: str | None
    later: int
    truncates: int


def rows_of_lake(spark, plan: Plan, window: Window) -> LakeRows:
    """Return the rows of the lake at the end of the window."""
    newest = _newest_log_batch(spark, plan)
    if not window.sequences:
        return LakeRows(plan.lake, NOW, newest)
    facts = _facts_of_log(spark, plan, window.end, newest or 0)
    lag = _lag(spark, plan, facts, window.end)
    if not facts.later:
        return LakeRows(plan.lake, f"{NOW}: nothing has changed since the position of the export", newest, lag)
    too_old = _too_old(spark, plan, facts, window.end)
    if too_old:
        words = f"the export is too old to be compared: {too_old}; deliver a newer one"
        return LakeRows(None, None, newest, [*lag, words])
    select, compared = _taken_back(spark, plan, facts, window.end)
    spark.sql(select).createOrReplaceTempView(ROWS)
    return LakeRows(ROWS, compared, newest, lag)


def _newest_log_batch(spark, plan: Plan) -> int | None:
    """Return the newest batch of the log that the table shows: the log may be ahead of it."""
    if not plan.log:
        return None
    if spark.catalog.tableExists(f"{plan.lake}_merged"):
        return newest_batch_shown(spark, plan.table)
    return spark.sql(f"select max(log_batch) from {plan.log}").first()[0]


def _taken_back(spark, plan: Plan, facts: LogFacts, end: str) -> tuple[str, str]:
    """Return a select of the rows as of a position, and which rows they are."""
    if facts.truncates:
        return plan.log_as_of(end), "as of the position, from the log alone: the table has been truncated since"
    compared = f"as of the position, {facts.later:,} later changes taken back"
    held = _held_otherwise(spark, plan, end) if facts.is_whole else None
    if not held:
        return plan.lake_as_of(end), compared
    return (
        f"select * from ({plan.lake_as_of(end)}) left anti join ({held}) using ({plan.own_names_of_log_key}) "
        f"union all select * from {plan.lake} left semi join ({held}) using ({plan.own_names_of_log_key})",
        f"{compared}; rows that the table does not have as the log says are compared as the table has them",
    )


def _held_otherwise(spark, plan: Plan, end: str) -> str | None:
    """Return a select of the keys that changed behind a position whose rows are not as the log says they are now.

    None: there are none. What the log takes back says nothing of a row that the table has lost or spoilt.
    """
    if any(plan.table in entities for entities in publish_groups().values()):
        return None  # the view shows what was published
    keys = plan.own_names_of_log_key
    changed = (
        f"select distinct {plan.own_key_of_log} from {plan.log} where rejection_reason is null "
        f"and change_type <> 'truncate' and change_sequence_number >= '{end}0'"
    )
    of_log = plan.log_as_of(LAST)
    names = ", ".join(map(quoted, spark.sql(of_log).columns))
    sides = [
        f"select {names} from {rows} left semi join ({changed}) using ({keys})" for rows in (f"({of_log})", plan.lake)
    ]
    held = " union all ".join(f"({one} except all {other})" for one, other in (sides, sides[::-1]))
    held = f"select distinct {keys} from ({held})"
    return None if spark.sql(f"{held} limit 1").isEmpty() else held


def _too_old(spark, plan: Plan, facts: LogFacts, end: str) -> str | None:
    """Return why later changes cannot be taken back to a position; None: they can."""
    if facts.first >= f"{end}0":
        return (
            f"its position {end} is before the first change that {plan.log} has ({facts.first}), so nothing "
            "says what the rows were then"
        )
    kept = _position_that_is_kept(spark, plan)
    if kept and kept >= f"{end}0":
        return (
            f"its position {end} is before {kept}, and of what was there until then `retention_days` of "
            f"{plan.table}_changes has kept the last version of each key alone"
        )
    return None


def _position_that_is_kept(spark, plan: Plan) -> str | None:
    """Return the highest position of which an earlier state may have been dropped by a retention; None: nothing was."""
    kept_for = retention_of(plan.table).get("changes")
    if not kept_for or not spark.catalog.tableExists("lake.ledger"):
        return None
    return spark.sql(
        f"""
        select max(change_sequence_number)
        from {plan.log}
        where
            rejection_reason is null
            and landed_at < now() - interval {kept_for} days
            and (select coalesce(sum(applied + superseded), 0) from lake.ledger where table_name = '{plan.table}')
            > (select count_if(verdict in ('applied', 'superseded') and not is_derived) from {plan.log})
        """
    ).first()[0]


def _lag(spark, plan: Plan, facts: LogFacts, end: str) -> list[str]:
    """Return why the table may lack changes up to a position; nothing: it has them all."""
    waiting = records_that_wait(spark, plan)
    if waiting:
        return [f"{waiting:,} records have landed and wait for a build"]
    if facts.lowest and facts.lowest < f"{end}0":
        return ["changes up to the position are in the log and wait to be applied; build"]
    applied = _applied(spark, plan, facts)
    if applied and applied >= end:
        return []
    return [
        f"the changes that have been applied end at {applied or 'nothing'}, before the position of the export "
        f"({end}); land what comes after, and build"
    ]


def records_that_wait(spark, plan: Plan) -> int:
    """Return how many records of the table's feeds have landed and are not in its log yet."""
    counts = [
        WAITING.format(entity=plan.table, feed=feed, table=sql_text(source))
        for feed, source in (landed_sources(spark, plan.table) if plan.log else [])
    ]
    return sum(row.waiting for row in spark.sql(" union all ".join(counts)).collect()) if counts else 0


def landed_sources(spark, table: str) -> list[tuple[str, str]]:
    """Return the feeds of a table of which something has landed, each with what it calls the table."""
    sources = dict(logged_tables()).get(table, [])
    return [(feed, source) for feed, source in sources if spark.catalog.tableExists(f"raw.{feed}")]


def _facts_of_log(spark, plan: Plan, end: str, shown: int) -> LogFacts:
    """Return what the log says of a position; shown: its newest batch that the table shows."""
    batches = spark.sql(
        f"""
        select
            log_batch,
            max(change_sequence_number) as highest,
            min(change_sequence_number) as first,
            min(change_sequence_number) filter (where verdict = 'applied') as lowest,
            count_if(verdict = 'applied') as applied,
            count_if(change_sequence_number >= '{end}0') as later,
            count_if(change_sequence_number >= '{end}0' and change_type = 'truncate') as truncates
        from {plan.log} where rejection_reason is null group by log_batch
        """
    ).collect()
    waiting = [batch for batch in batches if batch.applied and batch.log_batch > shown]
    return LogFacts(
        applied=max((batch.highest for batch in batches if batch not in waiting), default=None),
        is_whole=not waiting,
        lowest=min((batch.lowest for batch in waiting), default=None),
        first=min((batch.first for batch in batches), default=None),
        later=sum(batch.later for batch in batches),
        truncates=sum(batch.truncates for batch in batches),
    )


def _applied(spark, plan: Plan, facts: LogFacts) -> str | None:
    """Return up to where changes have been applied; what a stream has for other tables counts when nothing waits."""
    if not facts.is_whole:
        return facts.applied
    return max(filter(None, [facts.applied, _applied_of_stream(spark, plan)]), default=None)


def _applied_of_stream(spark, plan: Plan) -> str | None:
    """Return up to where changes of any table are in the logs, where one stream delivers all of them in order."""
    feed = declared_feeds().get(plan.positions)
    if feed is None or feed.layout == TABLE_IN_FOLDERS:
        return None
    logs = [
        f"select max(change_sequence_number) as s from lake.{entity}_changes "
        f"where feed = '{feed.name}' and rejection_reason is null"
        for entity, sources in logged_tables()
        if feed.name in {name for name, _ in sources} and spark.catalog.tableExists(f"lake.{entity}_changes")
    ]
    return spark.sql(f"select max(s) from ({' union all '.join(logs)})").first()[0] if logs else None
