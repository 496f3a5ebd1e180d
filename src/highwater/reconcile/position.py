"""The position that a table is compared as of, and the rows that the lake had there."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from highwater.catalog.entities import logged_tables, publish_groups
from highwater.catalog.feeds import declared_feeds, sql_text
from highwater.catalog.pending import log_went_back, newest_batch_shown
from highwater.formats.formats import TABLE_IN_FOLDERS
from highwater.landing import new_files
from highwater.reconcile.plan import Plan
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import printable
from highwater.status.status import WAITING
from highwater.upkeep.retention import retention_of

BETWEEN = " .. "
ROWS = "highwater_rows_of_lake"
NOW = "as it is now"
WAITS = "changes wait for a build"
BUILD = ["highwater build"]
CHANGED = "a file with changes is another one than it was when it landed"


@dataclass(frozen=True)
class Window:
    """The positions that an export was taken between, or the one it was taken at.

    Attributes:
        position: as declared. sequences: the same as sequences; none: nobody knows them, and notes say why.
        flaw: why nothing can be compared as of them; None: it can.
    """

    position: str | None = None
    sequences: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    flaw: str | None = None

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
    if sequences[0] > sequences[-1]:
        words = f"the positions {position} are written backwards: the first is behind the second"
        if as_of:
            raise UsageError(f"--as-of: {words}.")
        return Window(position, flaw=words)
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
class Lag:
    """Why the lake may lack what the export has.

    Attributes:
        not_checked: said in any case: the changes up to the position have not all been applied.
        doubts: said where something differs. awaits: what a difference waits for, in words; None: for nothing.
        next_step: commands that end it; none: there is nothing to be done yet.
    """

    not_checked: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    awaits: str | None = None
    next_step: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LakeRows:
    """The rows of the lake that are compared.

    Attributes:
        relation: that has them; None: the log does not go back as far as the position.
        compared: which rows they are, in words. newest_log_batch: the newest one of the log that they show.
        not_checked: why they may not be all; none: they are. lag: what may be on its way to them.
        changes_since: what has changed behind the position, where something has.
    """

    relation: str | None = None
    compared: str | None = None
    newest_log_batch: int | None = None
    not_checked: list[str] = field(default_factory=list)
    lag: Lag = Lag()
    changes_since: "ChangesSince | None" = None


@dataclass(frozen=True)
class ChangesSince:
    """What has changed behind a position: of these keys the past was compared with the export, by the log.

    So what the table has of them now is to be compared with the log.

    Attributes:
        position: of the keys that changed behind this sequence; None: of all, for the table was truncated.
        keys: how many they are; None: all. log_batch: the newest of the log that the table shows.
    """

    position: str | None
    keys: int | None
    log_batch: int


@dataclass(frozen=True)
class LogFacts:
    """Up to where changes have been applied, and what comes behind a position.

    Attributes:
        newest: batch of the log. applied: the highest sequence that has been applied. is_whole: nothing waits to be
            applied; lowest: of what does. first: the lowest of all. later: accepted changes behind the position.
        truncates: those among them. has_baseline: whether rows without a position are the start of the position's
            epoch; first_change: the first behind them.
    """

    newest: int
    applied: str | None
    is_whole: bool
    lowest: str | None
    first: str | None
    later: int
    truncates: int
    has_baseline: bool
    first_change: str | None


def rows_of_lake(spark, plan: Plan, window: Window, listing: Callable) -> LakeRows:
    """Return the rows of the lake at the end of the window.

    Arguments:
        listing: returns what waits in the folder of a feed.
    """
    waiting, changed = files_that_wait(plan, listing)
    found = _rows_of_lake(spark, plan, window, waiting)
    if not changed:
        return found
    lag = replace(found.lag, doubts=found.lag.doubts + changed, awaits=found.lag.awaits or CHANGED)
    return replace(found, lag=lag)


def _rows_of_lake(spark, plan: Plan, window: Window, waiting: list[str]) -> LakeRows:
    newest = _newest_log_batch(spark, plan)
    if not window.sequences:
        records = records_that_wait(spark, plan)
        lag = Lag(doubts=waiting, awaits=WAITS, next_step=BUILD) if waiting or records else Lag()
        return LakeRows(plan.lake, NOW, newest, lag=lag)
    facts = _facts_of_log(spark, plan, window.end, newest or 0)
    lag = _lag(spark, plan, facts, window.end, waiting)
    if not facts.later:
        return LakeRows(plan.lake, f"{NOW}: nothing has changed since the position of the export", newest, lag=lag)
    too_old = _too_old(spark, plan, facts, window.end)
    if too_old:
        words = f"the export is too old to be compared: {too_old}; deliver a newer one"
        return LakeRows(None, None, newest, [words], lag)
    if went_back := log_went_back(plan.table, facts.newest, newest):
        return LakeRows(None, None, newest, [went_back], lag)
    select, compared, since = _taken_back(spark, plan, facts, window.end, newest or 0)
    spark.sql(select).createOrReplaceTempView(ROWS)
    return LakeRows(ROWS, compared, newest, [], lag, since)


def _newest_log_batch(spark, plan: Plan) -> int | None:
    """Return the newest batch of the log that the table shows: the log may be ahead of it."""
    if not plan.log:
        return None
    if spark.catalog.tableExists(f"{plan.lake}_merged"):
        return newest_batch_shown(spark, plan.table)
    return spark.sql(f"select max(log_batch) from {plan.log}").first()[0]


def _taken_back(spark, plan: Plan, facts: LogFacts, end: str, shown: int) -> tuple[str, str, ChangesSince]:
    """Return a select of the rows as of a position, which rows they are, and what has changed since."""
    if facts.truncates:
        compared = "as of the position, from the log alone: the table has been truncated since"
        return plan.log_as_of(end), compared, ChangesSince(None, None, shown)
    keys = spark.sql(f"select count(*) from ({plan.keys_changed_since(end)})").first()[0]
    compared = f"as of the position, {facts.later:,} later changes taken back"
    return plan.lake_as_of(end), compared, ChangesSince(end, keys, shown)


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


def _lag(spark, plan: Plan, facts: LogFacts, end: str, waiting: list[str]) -> Lag:
    """Return why the table may lack changes up to a position."""
    records = records_that_wait(spark, plan)
    if records:
        words = f"{records:,} records have landed and wait for a build; run: highwater build"
        return Lag([words], waiting, WAITS, BUILD)
    if facts.lowest and (facts.lowest < f"{end}0" or not _is_published(plan)):
        # behind the position too: what a base does not have that should have it nobody has compared
        upto = "up to" if facts.lowest < f"{end}0" else "behind"
        words = f"changes {upto} the position are in the log and wait to be applied; run: highwater build"
        return Lag([words], waiting, WAITS, BUILD)
    applied = _applied(spark, plan, facts)
    if not applied or applied < end:
        return _behind(plan, applied, end, waiting)
    if waiting:
        return Lag([], waiting, WAITS, BUILD)
    if facts.has_baseline and (facts.first_change is None or facts.first_change >= f"{end}0"):
        behind = f" ({facts.first_change})" if facts.first_change else ""
        words = (
            f"the position of the export ({end}) is before the first change that {plan.log} has behind the "
            f"baseline{behind}, and a baseline has no position: nothing says which of them is the newer one. Compare "
            "with an export that was taken later"
        )
        return Lag([], [words], "the export may be older than the baseline that the table began with")
    return Lag()


def _is_published(plan: Plan) -> bool:
    """Return whether the view shows what its group has published, which the log may be ahead of for long."""
    return any(plan.table in entities for entities in publish_groups().values())


def _behind(plan: Plan, applied: str | None, end: str, waiting: list[str]) -> Lag:
    """Return what is said where the changes that have been applied end before the position of the export."""
    words = (
        f"the changes that have been applied end at {applied or 'nothing'}, before the position of the export ({end})"
    )
    if waiting:
        return Lag([words, *waiting], [], WAITS, BUILD)
    captured = [
        f"{feed}.{source}"
        for feed, source in dict(logged_tables()).get(plan.table, [])
        if feed in declared_feeds() and declared_feeds()[feed].format == "changelog"
    ]
    if captured:
        steps = [f"highwater extract {captured[0]}", *BUILD]
        return Lag(
            [f"{words}; run: {' && '.join(steps)}"], [], "the changes up to the position have to be captured", steps
        )
    words += (
        ", and nothing waits to be landed. Compare again when changes behind it have been delivered and built, or with "
        "an export of the position where they end"
    )
    return Lag([words], [], "the changes up to the position of the export have not been delivered yet")


def files_that_wait(plan: Plan, listing: Callable) -> tuple[list[str], list[str]]:
    """Return what is said of files with changes of a table that have not landed, and of those that changed since."""
    problems, changed = [], []
    for name, source in dict(logged_tables()).get(plan.table, []) if plan.log else []:
        feed = declared_feeds().get(name)
        if feed is None or not feed.is_delivered:
            continue
        try:
            found = listing(name)
        except (UsageError, OSError) as error:
            problems.append(f"what lies in the folder of {name} cannot be listed, so changes may wait there: {error}")
            continue
        # where records tell their table, any file may hold one of this
        new = [file.source_file for file in found.new if file.table in (None, source)]
        changed += [
            new_files.changed_file(feed, file.source_file) for file in found.changed if file.table in (None, source)
        ]
        if new:
            more = f" and {len(new) - 1:,} more" if len(new) > 1 else ""
            problems.append(
                f"{printable(new[0])}{more} with changes lies in the landing folder and has not landed; "
                "run: highwater build"
            )
    return problems, changed


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
    accepted = "rejection_reason is null"
    in_epoch = f"startswith(change_sequence_number, '{end.partition('/')[0]}/')"
    batches = spark.sql(
        f"""
        select
            log_batch,
            max(change_sequence_number) filter (where {accepted}) as highest,
            min(change_sequence_number) filter (where {accepted}) as first,
            min(change_sequence_number) filter (where verdict = 'applied') as lowest,
            count_if(verdict = 'applied') as applied,
            count_if({accepted} and change_sequence_number >= '{end}0') as later,
            count_if({accepted} and change_sequence_number >= '{end}0' and change_type = 'truncate') as truncates,
            count_if({accepted} and {in_epoch} and {plan.is_baseline}) as of_baseline,
            min(change_sequence_number) filter (where {accepted} and {in_epoch} and not {plan.is_baseline})
                as first_change
        from {plan.log} group by log_batch
        """
    ).collect()
    waiting = [batch for batch in batches if batch.applied and batch.log_batch > shown]
    return LogFacts(
        newest=max((batch.log_batch for batch in batches), default=0),
        applied=max((batch.highest for batch in batches if batch.highest and batch not in waiting), default=None),
        is_whole=not waiting,
        lowest=min((batch.lowest for batch in waiting), default=None),
        first=min((batch.first for batch in batches if batch.first), default=None),
        later=sum(batch.later for batch in batches),
        truncates=sum(batch.truncates for batch in batches),
        has_baseline=any(batch.of_baseline for batch in batches),
        first_change=min((batch.first_change for batch in batches if batch.first_change), default=None),
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
