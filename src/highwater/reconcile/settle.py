"""Settle: which differences count. Those in flight and the rows of stale keys are set apart."""

import json
from dataclasses import dataclass, field

from highwater.reconcile.measure import DIFFERENCES, Measurement
from highwater.reconcile.plan import Plan
from highwater.reconcile.position import Window
from highwater.reconcile.results import append
from highwater.reconcile.subject import Subject
from highwater.reconcile.verdict import Count, Counted
from highwater.runtime.project import stored
from highwater.spark.lake_tables import OPEN_DIFFERENCES, is_table
from highwater.spark.spark import quoted

# more differences than this are no tail that is on its way
MOST_IN_FLIGHT = 100_000
SCHEMA = (
    "run string, table_name string, export_file string, log_batch bigint, "
    "differences array<struct<key_hash: bigint, content_hash: bigint>>"
)


@dataclass(frozen=True)
class Settlement(Counted):
    """What was counted by verdict of rows, and what is to be said of it."""

    counts: dict[str, Count]
    notes: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class InFlight:
    """What is to be said of the differences that may be on their way."""

    notes: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)


def settle(spark, subject: Subject, measured: Measurement, run: str) -> Settlement:
    """Return the counts by verdict, with what is in flight and what is stale apart; the view of differences has them.

    Arguments:
        run: its time, by which the next one finds what this one has seen.
    """
    in_flight = _set_in_flight_apart(spark, subject, run) if measured.differences else InFlight()
    counts = {"equal": measured.equal} | (_counts(spark) if measured.differences else {})
    stale = _stale_rows(spark, subject, measured)
    if not stale.keys:
        return Settlement(counts, in_flight.notes, in_flight.not_checked)
    counts |= {"stale": stale, "equal": counts["equal"].minus(stale)}
    return Settlement(counts, in_flight.notes, [*in_flight.not_checked, _stale_in_words(subject.plan.table, stale)])


def _counts(spark) -> dict[str, Count]:
    """Return how many keys and rows have each verdict but `equal`."""
    rows = spark.sql(
        "select `row verdict` as verdict, count(*) as keys, sum(`lake rows`) as lake_rows, "
        f"sum(`export rows`) as export_rows from {DIFFERENCES} group by `row verdict`"
    ).collect()
    return {row.verdict: Count(row.keys, row.lake_rows, row.export_rows) for row in rows}


def _stale_rows(spark, subject: Subject, measured: Measurement) -> Count:
    """Return how many rows of stale keys are equal."""
    if not subject.stale:
        return Count()
    names = subject.plan.names_of_key
    others = f"left anti join {measured.differences} using ({names})" if measured.differences else ""
    keys, rows = spark.sql(
        f"select count(distinct {names}), count(*) from {subject.rows} "
        f"left semi join ({subject.stale}) using ({names}) {others}"
    ).first()
    return Count(keys, rows, rows)


def _stale_in_words(table: str, stale: Count) -> str:
    return (
        f"{stale.keys:,} row{'s'[: stale.keys != 1]} of keys whose newest change was rejected: what the lake has is "
        f"older. See stale_rows and rejected_changes of {table}, repair what rejects them, "
        f"and: highwater replay {table}"
    )


def _set_in_flight_apart(spark, subject: Subject, run: str) -> InFlight:
    """Find out which differences are in flight, and give them that verdict in the view of the differences."""
    window = subject.window.sequences
    if len(window) == 2 and subject.plan.versions:
        return _set_valid_versions_apart(spark, subject.plan, subject.window)
    return InFlight() if window else _set_new_differences_apart(spark, subject, run)


def _set_valid_versions_apart(spark, plan: Plan, window: Window) -> InFlight:
    """A key that changed while the export was taken may be there as any version of it that was valid meanwhile.

    The lake has to have what it had at the end, whatever the export has.
    """
    start, end = window.sequences
    spark.sql(plan.versions_between(start, end)).createOrReplaceTempView("highwater_versions")
    spark.sql(plan.log_as_of(end)).createOrReplaceTempView("highwater_rows_at_end")
    spark.sql(_with_valid_versions(plan)).createOrReplaceTempView(DIFFERENCES)
    moved = spark.sql(f"select count(*) from {DIFFERENCES} where `row verdict` = 'in_flight'").first()[0]
    if not moved:
        return InFlight()
    words = "key has a version" if moved == 1 else "keys have versions"
    return InFlight([f"{moved:,} {words} that were valid while the export was taken ({', '.join(plan.key)})"])


def _with_valid_versions(plan: Plan) -> str:
    """Return a select of the differences, in flight where the export has a version that was valid meanwhile."""

    def same(side: str) -> str:
        return " and ".join(f"differences.{quoted(name)} <=> {side}.{quoted(name)}" for name in plan.key)

    # by rules a value stands for others, so that no version is known to be the one of the export
    has_valid_version = "array_contains(`valid versions`, `export values`)"
    equals = has_valid_version if plan.columns_but(plan.key) and not plan.rules else "false"
    return f"""
        select
            differences.* except (`row verdict`),
            case
                when
                    coalesce(`has moved`, false)
                    and `lake rows` = if(`is there`, 1, 0)
                    and (`lake rows` = 0 or `lake values` <=> `should be`)
                    and ((`export rows` = 1 and {equals}) or (`export rows` = 0 and `may be gone`))
                    then 'in_flight'
                else `row verdict`
            end as `row verdict`
        from {DIFFERENCES} as differences
        left join ({_versions_by_key(plan)}) as versions on {same("versions")}
        left join (select true as `is there`, * from ({_rows_at_end(plan)})) as at_end on {same("at_end")}
        """


def _versions_by_key(plan: Plan) -> str:
    form = ", ".join(f"{column.lake_by_rules} as {quoted(column.name)}" for column in plan.columns_but(plan.key))
    whole = f"collect_list(if(`is gone` or not `is whole`, null, array(struct({form}))))" if form else "array()"
    return f"""
        select
            {_key_by_rules(plan)},
            {whole} as `valid versions`,
            max(`is gone` or `is truncated`) or not bool_or(`is before`) as `may be gone`,
            bool_or(`is truncated` or not `is before`) as `has moved`
        from highwater_versions group by {_group_by_rules(plan)}
    """


def _rows_at_end(plan: Plan) -> str:
    columns = plan.columns if plan.rules else plan.columns_but(plan.key)
    held = ", ".join(f"{column.lake} as {quoted(column.name)}" for column in columns)
    should_be = f"any_value(array(struct({held})))" if held else "cast(null as array<string>)"
    return f"""
        select {_key_by_rules(plan)}, {should_be} as `should be`
        from highwater_rows_at_end group by {_group_by_rules(plan)}
    """


def _key_by_rules(plan: Plan) -> str:
    return ", ".join(f"{column.lake_by_rules} as {quoted(column.name)}" for column in _columns_of_key(plan))


def _group_by_rules(plan: Plan) -> str:
    return ", ".join(column.lake_by_rules for column in _columns_of_key(plan))


def _columns_of_key(plan: Plan) -> list:
    return [column for column in plan.columns if column.name in plan.key]


@dataclass(frozen=True)
class Memory:
    """What the run before has seen: hashes of key and content, and whether something has landed since."""

    differences: frozenset = frozenset()
    has_moved_on: bool = False


def _set_new_differences_apart(spark, subject: Subject, run: str) -> InFlight:
    """Without a position a difference counts when two runs have seen it, with something landed between them."""
    if spark.table(DIFFERENCES).count() > MOST_IN_FLIGHT:
        return InFlight()
    now = _hashes_of_differences(spark, subject.plan)
    before = _seen_before(spark, subject, run)
    persistent = [key for key, content in now if before.has_moved_on and (key, content) in before.differences]
    spark.sql(_with_verdict_of(subject.plan, persistent)).createOrReplaceTempView(DIFFERENCES)
    _remember(spark, subject, run, now)
    cleared = len({key for key, _ in before.differences} - {key for key, _ in now})
    waits = subject.lake.lag.next_step
    return InFlight(_cleared_in_words(cleared), _open_in_words(len(now) - len(persistent), waits))


def _hashes_of_differences(spark, plan: Plan) -> set[tuple[int, int]]:
    content = "xxhash64(`row verdict`, to_json(struct(`lake values` as lake_values, `export values` as export_values)))"
    hashes = spark.table(DIFFERENCES).selectExpr(f"{_key_hash(plan)} as key_hash", f"{content} as content_hash")
    return {(row.key_hash, row.content_hash) for row in hashes.collect()}


def _key_hash(plan: Plan) -> str:
    keys = ", ".join(f"cast({quoted(name)} as string)" for name in plan.key) or "to_json(struct(*))"
    return f"xxhash64(array({keys}))"


def _seen_before(spark, subject: Subject, run: str) -> Memory:
    from pyspark.sql import functions as f

    if not is_table(OPEN_DIFFERENCES):
        return Memory()
    of_table = (f.col("table_name") == _name_in_memory(subject.plan)) & (f.col("run") < run)
    kept = spark.read.format("delta").load(stored(OPEN_DIFFERENCES)).where(of_table)
    last = kept.selectExpr("max_by(struct(*), run) as last").first().last
    if not last:
        return Memory()
    has_moved_on = (last.export_file, last.log_batch) != (subject.export.file, subject.lake.newest_log_batch)
    return Memory(frozenset((row.key_hash, row.content_hash) for row in last.differences), has_moved_on)


def _name_in_memory(plan: Plan) -> str:
    """Return what the differences of a test are remembered by: a model may have several, each with a memory."""
    return json.dumps([plan.table, plan.export, plan.where, plan.not_compared])


def _with_verdict_of(plan: Plan, persistent: list[int]) -> str:
    """Return a select of the differences, in flight but for these keys."""
    kept = ", ".join(f"{key}L" for key in persistent)
    still = f"{_key_hash(plan)} in ({kept})" if kept else "false"
    return (
        f"select * except (`row verdict`), if({still}, `row verdict`, 'in_flight') as `row verdict` from {DIFFERENCES}"
    )


def _remember(spark, subject: Subject, run: str, now: set) -> None:
    seen = [list(pair) for pair in sorted(now)]
    row = (run, _name_in_memory(subject.plan), subject.export.file, subject.lake.newest_log_batch, seen)
    append(spark, [row], SCHEMA, OPEN_DIFFERENCES)


def _cleared_in_words(cleared: int) -> list[str]:
    are = "is" if cleared == 1 else "are"
    return [f"{cleared:,} that differed in the run before {are} equal now"] if cleared else []


def _open_in_words(differences: int, next_step: list[str]) -> list[str]:
    if not differences:
        return []
    words = f"{differences:,} differences may be in flight, for the export has no position that can be compared; "
    if next_step:
        return [f"{words}run: {' && '.join(next_step)}, and compare once more"]
    return [f"{words}what is still there when something has come into the table is a fault then"]
