"""Tables against exports of their source: what is equal, what differs, and what could not be checked.

A line of three: measure counts and finds the keys that differ, settle says which of them count, explain says what they
look like and what repairs them. Beside it against_log looks at the keys that the log has taken back. The SQL comes from
the macros of `macros/reconcile`, by one call of dbt; the tests of tables use the same ones. Nothing is written but the
results, which are appended to `<lake>/reconciliations`, so a build may run meanwhile.
"""

import sys
import time
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cache

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from highwater.catalog.entities import logged_tables
from highwater.catalog.feeds import declared_feeds
from highwater.catalog.models import models
from highwater.landing import new_files
from highwater.reconcile.against_log import AgainstLog, compare_with_log
from highwater.reconcile.explain import Explanation, explain
from highwater.reconcile.export import Doubts, flaws_of_records, rows_that_cannot_be_read, unreadable_in_words
from highwater.reconcile.measure import Measurement, measure, scratch
from highwater.reconcile.plan import Plan, Unplanned, plans
from highwater.reconcile.results import RUN, append_results
from highwater.reconcile.settle import Settlement, settle
from highwater.reconcile.subject import Request, Subject, subject_of
from highwater.reconcile.verdict import (
    EXIT_CODES,
    FAIL,
    INCONCLUSIVE,
    PASS,
    VERDICTS,
    Comparison,
    Count,
    Reconciliation,
    verdict_of,
)
from highwater.runtime.errors import UsageError
from highwater.upkeep.compact import newest_version

__all__ = [
    "EXIT_CODES",
    "FAIL",
    "INCONCLUSIVE",
    "PASS",
    "VERDICTS",
    "Comparison",
    "Reconciliation",
    "compare_rows",
    "reconcile",
]

WITHOUT_EXPORT = "no export of it is declared: give the model the test matches_export (docs/reconciliation.md says how)"
CHANGED = "the table changed while it was compared; run it again"


def reconcile(
    spark, tables: tuple[str, ...] = (), as_of: str | None = None, with_repairs: bool = False
) -> Reconciliation:
    """Compare tables with their newest exports, and append what was found to the results.

    Arguments:
        tables: models with the test matches_export; none: all of them, and every table without an export is named.
        as_of: position of the source to compare as of, in the place of those that the exports carry.
        with_repairs: say what repairs each difference.
    Raises: UsageError when a table is not there; CheckError when dbt fails.
    """
    from importlib.metadata import version

    asked = _asked(tables)
    run = datetime.now(timezone.utc).strftime(RUN)
    request = Request(run, as_of, with_repairs, _listing(spark))
    comparisons = [_compare_or_say_why(spark, plan, request) for plan in asked]
    found = Reconciliation(run, comparisons, spark.version, version("highwater"))
    append_results(spark, found)
    return found


def _asked(tables: tuple[str, ...]) -> list[Plan | Unplanned]:
    """Return what is asked of these tables, or of all; a table may have several tests, or none."""
    marts = models("marts")
    known = [entity for entity, _ in logged_tables() if entity in marts]
    planned = plans(tables)
    names = sorted({*known, *(plan.table for plan in planned)})
    for table in tables:
        if table not in names:
            raise UsageError(f"there is no table {table!r}; tables are: {', '.join(names)}.")
    return [plan for table in tables or names for plan in _of_table(table, planned)]


def _of_table(table: str, planned: list[Plan | Unplanned]) -> list[Plan | Unplanned]:
    return [plan for plan in planned if plan.table == table] or [Unplanned(table, WITHOUT_EXPORT)]


def _listing(spark):
    """Return what tells what waits in the folder of a feed, each feed once."""
    return cache(lambda name: new_files.what_waits(spark, declared_feeds()[name]))


def _compare_or_say_why(spark, plan: Plan | Unplanned, request: Request) -> Comparison:
    """Compare one table with its export; where that is not possible the others are compared all the same."""
    started = time.monotonic()
    if sys.stderr.isatty():
        print(f"comparing {plan.table} ...", file=sys.stderr)
    if isinstance(plan, Unplanned):
        found = Comparison(plan.table, not_checked=[plan.why])
    else:
        found = _compare_or_say_error(spark, plan, request)
    return replace(found, seconds=round(time.monotonic() - started, 1))


def _compare_or_say_error(spark, plan: Plan, request: Request) -> Comparison:
    try:
        return _compare(spark, plan, request)
    except (PySparkException, Py4JJavaError) as error:
        # the words of an error may quote values
        words = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        words = words if plan.sensitive else str(error).splitlines()[0]
        return Comparison(plan.table, export=plan.export, not_checked=[f"it could not be compared: {words}"])


def _compare(spark, plan: Plan, request: Request) -> Comparison:
    """Compare one table with its export; once more, where the table changed meanwhile."""
    for relation in (plan.lake, plan.export):
        if not spark.catalog.tableExists(relation):
            words = f"{relation} has not been built yet; run: highwater build"
            return Comparison(plan.table, export=plan.export, not_checked=[words])
    for _attempt in (1, 2):
        before = _versions(spark, plan)
        subject = subject_of(spark, plan, request)
        if not subject.is_comparable:
            return _without_rows(subject)
        found = compare_rows(spark, subject, request)
        differs = found.settled.differences or found.logged.differing
        is_stable = found.measured.adds_up and (not differs or _versions(spark, plan) == before)
        if is_stable:
            break
    return _concluded(spark, subject, found, is_stable)


def _versions(spark, plan: Plan) -> list:
    tables = [plan.log, f"{plan.lake}_merged"] if plan.log else []
    tables += [plan.raw] if plan.raw else []
    return [newest_version(spark, table) for table in tables if spark.catalog.tableExists(table)]


@dataclass(frozen=True)
class Found:
    """What was measured, settled and explained of one table, and what its log says."""

    measured: Measurement
    settled: Settlement
    doubts: Doubts
    explained: Explanation
    logged: AgainstLog


def compare_rows(spark, subject: Subject, request: Request) -> Found:
    """Return what comparing the rows of both sides finds.

    Raises: PySparkException when a side cannot be read.
    """
    with scratch() as new_folder:
        measured = measure(spark, subject, new_folder)
        settled = settle(spark, subject, measured, request.run)
        doubts = _doubts(spark, subject, measured, settled)
        explained = explain(spark, subject, measured, settled, doubts, request.with_repairs)
        return Found(measured, settled, doubts, explained, compare_with_log(spark, subject, request.with_repairs))


def _without_rows(subject: Subject) -> Comparison:
    """Return what is said of a table whose rows cannot be compared."""
    return Comparison(
        table=subject.plan.table,
        not_checked=subject.not_checked,
        notes=subject.notes,
        export=subject.plan.export,
        export_file=subject.export.file,
        export_parts=subject.export.parts,
        export_records=subject.export.records,
        taken_at=subject.export.taken_at,
        age=subject.export.age,
        position=subject.window.position,
        sequence=subject.window.sequence,
        compared=subject.lake.compared,
        rules=subject.plan.rules,
        newest_log_batch=subject.lake.newest_log_batch,
    )


def _concluded(spark, subject: Subject, found: Found, is_stable: bool) -> Comparison:
    """Return what was found of a table, with its verdict."""
    doubts, settled, logged = found.doubts, found.settled, found.logged
    not_checked = subject.not_checked + settled.not_checked + ([] if is_stable else [CHANGED])
    not_checked += unreadable_in_words(doubts.unreadable) + doubts.flaws
    not_checked += subject.lake.lag.doubts if settled.differences else []
    not_checked += _nothing_compared(subject, settled)
    may_be_late = subject.may_be_late or bool(doubts.flaws) or not is_stable
    counts = settled.counts | logged.counts
    return replace(
        _without_rows(subject),
        verdict=verdict_of(counts, not_checked, may_be_late, sum(doubts.unreadable.values()), is_stable),
        not_checked=list(dict.fromkeys(not_checked)),
        notes=subject.notes + settled.notes + logged.notes,
        compared_with=_compared_with(subject, found),
        lake_rows=found.measured.lake_rows,
        export_rows=found.measured.export_rows,
        counts=counts,
        columns=found.explained.columns,
        samples=found.explained.samples + logged.samples,
        causes=found.explained.causes,
        queries=found.explained.queries,
        repairs=found.explained.repairs + logged.repairs,
    )


def _nothing_compared(subject: Subject, settled: Settlement) -> list[str]:
    """Return why no row of the lake has met one of the export, where no difference says so."""
    in_flight = settled.counts.get("in_flight", Count())
    if settled.differences or settled.keys("equal", "stale") or in_flight.export_rows:
        return []
    if in_flight.keys:
        return [
            f"no row was compared with the export: it has none of {in_flight.keys:,} that changed while it was taken; "
            "take one between closer positions"
        ]
    if not subject.window.sequences:
        return ["no row was compared: both sides are empty, and no position says whether they should be"]
    return []


def _compared_with(subject: Subject, found: Found) -> str:
    """Return how many rows were compared with the export, and how many keys with the log."""
    counts, since = found.settled.counts, subject.lake.changes_since
    in_flight, keys = counts.get("in_flight", Count()), found.logged.keys
    of_export = sum(count.export_rows for count in counts.values())
    words = f"compared: {of_export:,} row{'s'[: of_export != 1]} of the export"
    if since and since.keys is None:
        words += (
            "; the table has been truncated since, so all of them with the log as of the position, and the table as it "
            f"is now, {keys:,} key{'s'[: keys != 1]}, with the log alone"
        )
    elif since:
        words += (
            f"; {keys:,} key{'s'[: keys != 1]} {'has' if keys == 1 else 'have'} changed since: what the log had of "
            "them then with the export, what the table has of them now with the log alone"
        )
    alone = in_flight.keys - in_flight.export_rows if subject.window.sequences else 0
    return f"{words}; {alone:,} that changed while it was taken with the log alone" if alone else words


def _doubts(spark, subject: Subject, measured: Measurement, settled: Settlement) -> Doubts:
    """Return what of the export cannot be read; of one that is equal, with all of its rows, nothing is looked for."""
    plan, has_all = subject.plan, subject.export.records == measured.export_rows
    unreadable = rows_that_cannot_be_read(spark, plan) if plan.raw and (plan.where or not has_all) else {}
    may_be_cut = plan.raw and plan.log and (settled.differences or not has_all)
    return Doubts(unreadable, flaws_of_records(spark, plan, subject.export) if may_be_cut else [])
