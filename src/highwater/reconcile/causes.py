"""What probably happened, where at least half of the differences of a kind say so."""

from highwater.catalog.feeds import sql_text
from highwater.reconcile.measure import DIFFERENCES
from highwater.reconcile.plan import Column, Plan
from highwater.reconcile.position import landed_sources, records_that_wait
from highwater.reconcile.settle import Settlement
from highwater.reconcile.subject import Subject
from highwater.reconcile.verdict import Cause
from highwater.spark.spark import quoted

# what the texts of a row say, the strictest first
CAUSES_IN_TEXTS = [
    ("trailing blank", "rtrim(lake) = rtrim(export)", "are equal without blanks at the end"),
    ("case", "lower(lake) = lower(export)", "are equal in lower case"),
    ("empty text and NULL", "coalesce(lake, '') = coalesce(export, '')", "are empty on one side and NULL on the other"),
    ("truncated text", "lake <> '' and startswith(export, lake)", "are the beginning of what the export has"),
    ("truncated text", "export <> '' and startswith(lake, export)", "are longer than what the export has"),
]
CAUSES_IN_NUMBERS = [
    ("rounded", f"round(lake, {n}) <=> export or round(export, {n}) <=> lake", f"are equal to {n} digits")
    for n in range(5)
]


def causes_of(
    spark, subject: Subject, settled: Settlement, columns: dict[str, dict], unreadable: dict[str, int]
) -> list[Cause]:
    """Return what probably happened.

    Arguments:
        columns: by name, how many values differ, and how. unreadable: rows of the export that cannot be read, by
            reason: a row that the export seems to lack may be one of these.
    """
    return [
        *_in_values(spark, subject.plan, columns),
        *_records_on_their_way(spark, subject.plan, settled),
        *_rejected_changes(spark, subject, settled),
        *_in_log(spark, subject.plan, settled, has_all_rows=not unreadable),
        *_missing_tail(spark, subject.plan, settled),
    ]


def _in_values(spark, plan: Plan, columns: dict[str, dict]) -> list[Cause]:
    """Return causes that the two values of a row tell."""
    differing = {name: _values_that_differ(counts) for name, counts in columns.items()}
    return [
        cause
        for column in plan.columns
        if differing.get(column.name)
        for cause in _in_column(spark, column, differing[column.name])
    ]


def _values_that_differ(counts: dict) -> int:
    return sum(counts.get(what, 0) for what in ("value", "null_in_export", "null_in_lake"))


def _in_column(spark, column: Column, differing: int) -> list[Cause]:
    pairs = _pairs_of(column.name)
    if column.data_type == "string":
        return _first_that_fits(spark, column.name, pairs, differing, CAUSES_IN_TEXTS)
    if column.data_type.startswith("decimal") or column.data_type in ("double", "float"):
        return _first_that_fits(spark, column.name, pairs, differing, CAUSES_IN_NUMBERS)
    if column.data_type in ("timestamp", "timestamp_ntz"):
        return _constant_offset(spark, column.name, pairs, differing)
    return []


def _pairs_of(name: str) -> str:
    """Return a select of the values of a column in rows where it differs."""
    return f"""
            select `lake values`[0].{quoted(name)} as lake, `export values`[0].{quoted(name)} as export
            from {DIFFERENCES}
            where
                `row verdict` = 'value_differs'
                and `lake rows` = 1
                and array_contains(`differing columns`, {sql_text(name)})
        """


def _first_that_fits(spark, column: str, pairs: str, differing: int, asked: list[tuple]) -> list[Cause]:
    """Return the first cause that half of the pairs fit: of several it says most."""
    counted = ", ".join(f"count_if({sql})" for _, sql, _ in asked)
    rows = spark.sql(f"select {counted} from ({pairs})").first()
    return [
        Cause(cause, column, count, differing, evidence)
        for (cause, _, evidence), count in zip(asked, rows, strict=True)
        if count and count >= differing / 2
    ][:1]


def _constant_offset(spark, column: str, pairs: str, differing: int) -> list[Cause]:
    offset = "unix_micros(cast(lake as timestamp)) - unix_micros(cast(export as timestamp))"
    most = spark.sql(
        f"select {offset} as micros, count(*) as rows from ({pairs}) "
        "where lake is not null and export is not null group by all order by rows desc, micros limit 1"
    ).first()
    if not most or most.rows < differing / 2 or most.rows == 1:
        return []
    ahead = f"{abs(most.micros) / 1e6:g} s {'later' if most.micros > 0 else 'earlier'}"
    return [Cause("constant time offset", column, most.rows, differing, f"are {ahead} in the lake")]


def _records_on_their_way(spark, plan: Plan, settled: Settlement) -> list[Cause]:
    waiting = records_that_wait(spark, plan)
    if not waiting or not settled.keys("missing_in_lake", "value_differs"):
        return []
    return [Cause("late tail", None, waiting, None, "records have landed and wait for a build")]


def _rejected_changes(spark, subject: Subject, settled: Settlement) -> list[Cause]:
    if not subject.stale:
        return []
    rows = spark.sql(
        f"select count(*) from {DIFFERENCES} left semi join ({subject.stale}) "
        f"using ({subject.plan.names_of_key}) "
        "where `row verdict` in ('missing_in_lake', 'value_differs')"
    ).first()[0]
    of = settled.keys("missing_in_lake", "value_differs")
    return [Cause("change rejected", None, rows, of, "have a newest change that was rejected")] if rows else []


def _in_log(spark, plan: Plan, settled: Settlement, has_all_rows: bool) -> list[Cause]:
    """Return causes that the last change of a key in the log tells."""
    missing, extra = settled.keys("missing_in_lake"), settled.keys("extra_in_lake") if has_all_rows else 0
    if not (missing or extra) or not plan.is_keyed_as_its_log:
        return []
    row = _last_changes(spark, plan)
    why = "; row-version extraction sees no deletes" if _sees_no_deletes(spark, plan) else ""
    measured = [
        ("delete not applied", row.not_deleted, extra, "are deleted by their last change in the log"),
        ("delete not delivered", row.never_deleted, extra, f"have no delete in the log{why}"),
        ("change not applied", row.not_applied, missing, "have a change in the log that is not in the table"),
        ("deleted by the log", row.deleted, missing, "are deleted by their last change in the log"),
        ("change not delivered", row.never_delivered, missing, "have no change in the log"),
    ]
    return [
        Cause(name, None, rows, of, evidence) for name, rows, of, evidence in measured if of and rows and rows >= of / 2
    ]


def _last_changes(spark, plan: Plan):
    """Return how many keys that are missing or extra have which last change."""
    return spark.sql(
        f"""
        select
            count_if(`row verdict` = 'extra_in_lake' and `last change`.is_deleted) as not_deleted,
            count_if(`row verdict` = 'extra_in_lake' and not `last change`.is_deleted) as never_deleted,
            count_if(`row verdict` = 'missing_in_lake' and not `last change`.is_deleted) as not_applied,
            count_if(`row verdict` = 'missing_in_lake' and `last change`.is_deleted) as deleted,
            count_if(`row verdict` = 'missing_in_lake' and `last change` is null) as never_delivered
        from {DIFFERENCES}
        left join (
            select {plan.own_key_of_log}, max_by(struct(is_deleted), change_sequence_number) as `last change`
            from {plan.log}
            where rejection_reason is null
            group by {plan.key_of_log}
        ) using ({plan.names_of_key})
        """
    ).first()


def _sees_no_deletes(spark, plan: Plan) -> bool:
    """Return whether a feed of the table is extracted by the versions of rows."""
    return any(
        "/rows-" in (row[0] or "")
        for feed, _ in landed_sources(spark, plan.table)
        for row in spark.sql(
            f"select max_by(source_file, landing_batch) from raw.{feed} where entry = 'file'"
        ).collect()
    )


def _missing_tail(spark, plan: Plan, settled: Settlement) -> list[Cause]:
    missing = settled.keys("missing_in_lake")
    if not missing or len(plan.key) != 1:
        return []
    (key,) = plan.key
    beyond = spark.sql(
        f"select count_if({quoted(key)} > (select max({quoted(key)}) from {plan.lake})) from {DIFFERENCES} "
        "where `row verdict` = 'missing_in_lake'"
    ).first()[0]
    if beyond < missing / 2:
        return []
    return [Cause("late tail", key, beyond, missing, "missing keys are above every key of the lake")]
