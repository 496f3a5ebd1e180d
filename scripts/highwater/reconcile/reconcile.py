"""Tables against exports of their source: what is equal, what differs, and what could not be checked.

A line of three: measure counts and finds the keys that differ, settle says which of them count, explain says what they
look like and what repairs them. The SQL comes from the macros of `macros/reconcile`, by one call of dbt; the tests of
tables use the same ones. Nothing is written but the results, which are appended to `<lake>/reconciliations`, so a build
may run meanwhile.
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
from highwater.landing import landing
from highwater.reconcile.explain import Explanation, explain
from highwater.reconcile.export import flaws_of_records, rows_that_cannot_be_read, unreadable_in_words
from highwater.reconcile.measure import Measurement, measure, scratch
from highwater.reconcile.plan import Plan, Unplanned, plans
from highwater.reconcile.results import RUN, append_results, results
from highwater.reconcile.settle import Settlement, settle
from highwater.reconcile.subject import Request, Subject, subject_of
from highwater.reconcile.verdict import (
    EXIT_CODES,
    FAIL,
    INCONCLUSIVE,
    PASS,
    VERDICTS,
    Comparison,
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
    "results",
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
    """Return what lists the new and the changed files of a feed, each feed once."""
    return cache(lambda name: landing.new_and_changed(spark, declared_feeds()[name]))


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
        is_stable = found.measured.adds_up and (not found.settled.differences or _versions(spark, plan) == before)
        if is_stable:
            break
    return _concluded(spark, subject, found, is_stable)


def _versions(spark, plan: Plan) -> list:
    tables = [plan.log, f"{plan.lake}_merged"] if plan.log else []
    tables += [plan.raw] if plan.raw else []
    return [newest_version(spark, table) for table in tables if spark.catalog.tableExists(table)]


@dataclass(frozen=True)
class Found:
    """What was measured, settled and explained of one table."""

    measured: Measurement
    settled: Settlement
    explained: Explanation


def compare_rows(spark, subject: Subject, request: Request) -> Found:
    """Return what comparing the rows of both sides finds.

    Raises: PySparkException when a side cannot be read.
    """
    with scratch() as new_folder:
        measured = measure(spark, subject, new_folder)
        settled = settle(spark, subject, measured, request.run)
        return Found(measured, settled, explain(spark, subject, measured, settled, request.with_repairs))


def _without_rows(subject: Subject) -> Comparison:
    """Return what is said of a table whose rows cannot be compared."""
    return Comparison(
        table=subject.plan.table,
        not_checked=subject.not_checked,
        notes=subject.window.notes,
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
    unreadable = _unreadable(spark, subject, found)
    flaws = _flaws(spark, subject, found)
    words = [] if is_stable else [CHANGED]
    not_checked = subject.not_checked + found.settled.not_checked + words + unreadable_in_words(unreadable) + flaws
    may_be_late = subject.may_be_late or bool(flaws) or not is_stable
    return replace(
        _without_rows(subject),
        verdict=verdict_of(found.settled.counts, not_checked, may_be_late, sum(unreadable.values())),
        not_checked=not_checked,
        notes=subject.window.notes + found.settled.notes,
        lake_rows=found.measured.lake_rows,
        export_rows=found.measured.export_rows,
        counts=found.settled.counts,
        columns=found.explained.columns,
        samples=found.explained.samples,
        causes=found.explained.causes,
        queries=found.explained.queries,
        repairs=found.explained.repairs,
    )


def _unreadable(spark, subject: Subject, found: Found) -> dict[str, int]:
    """Return how many rows of the export could not be read, by reason; where all were compared none is looked for."""
    if not subject.plan.raw or (_has_all_records(subject, found) and not subject.plan.where):
        return {}
    return rows_that_cannot_be_read(spark, subject.plan)


def _flaws(spark, subject: Subject, found: Found) -> list[str]:
    """Return why an export that differs may be no whole one; of one that is equal nothing is looked for."""
    if not subject.plan.raw or not subject.plan.log:
        return []
    is_equal = not found.settled.differences and _has_all_records(subject, found)
    return [] if is_equal else flaws_of_records(spark, subject.plan, subject.export)


def _has_all_records(subject: Subject, found: Found) -> bool:
    return subject.export.records == found.measured.export_rows
