"""What one comparison compares: an export, and the rows of the lake as of its position."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from highwater.reconcile.export import Export, exports_that_wait, newest_export
from highwater.reconcile.plan import Plan
from highwater.reconcile.position import LakeRows, Window, rows_of_lake, window_of
from highwater.spark.spark import quoted


@dataclass(frozen=True)
class Request:
    """What was asked of a run.

    Attributes:
        run: its time. as_of: position of the source to compare as of; None: those that the exports carry.
        with_repairs: say what repairs each difference. listing: returns what waits in the folder of a feed.
    """

    run: str
    as_of: str | None
    with_repairs: bool
    listing: Callable


@dataclass(frozen=True)
class Subject:
    """What is compared with what.

    Attributes:
        export: that the table is compared with. waiting: why another one may have to be compared in its place.
        window: the positions that it was taken between. lake: the rows of the lake at the end of them.
        stale: select of the keys whose newest change was rejected; None: no change of a key was.
    """

    plan: Plan
    export: Export
    waiting: list[str]
    window: Window
    lake: LakeRows
    stale: str | None

    @property
    def is_comparable(self) -> bool:
        """Whether both sides are there."""
        return self.lake.relation is not None

    @property
    def rows(self) -> str:
        """Relation with the rows of the lake that are compared."""
        rows, where = self.lake.relation, self.plan.where
        return f"(select * from {rows} where {where})" if where else rows

    @property
    def not_checked(self) -> list[str]:
        """Why the comparison says nothing of some rows, columns or changes."""
        export = self.export.flaws + self.export.doubts + self.waiting
        return self.plan.left_out + export + self.lake.not_checked + self.lake.lag.not_checked

    @property
    def notes(self) -> list[str]:
        """What else is to be said of both sides."""
        return self.export.notes + self.window.notes

    @property
    def may_be_late(self) -> bool:
        """Whether what differs may be of an export or a lake that is not whole yet."""
        lag = self.lake.lag
        return bool(lag.not_checked or lag.doubts or self.waiting or self.export.doubts) or self.export.is_empty


def subject_of(spark, plan: Plan, request: Request) -> Subject:
    """Return what is compared with what; where no export has landed, or it is too old, that is not comparable.

    Raises: UsageError when the position that was asked for is none of the feed.
    """
    export = newest_export(spark, plan, request.run) if plan.raw else Export()
    waiting = exports_that_wait(plan, request.listing) if plan.raw else []
    if export is None:
        nothing = Export(flaws=[f"no export has landed in {plan.raw} yet"])
        return Subject(plan, nothing, waiting, Window(), LakeRows(), None)
    window = window_of(spark, plan, export.position, request.as_of)
    if window.flaw:
        words = f"{window.flaw}. Write the lower one first ({export.entry}), and run: highwater build"
        return Subject(plan, replace(export, flaws=[*export.flaws, words]), waiting, window, LakeRows(), None)
    lake = rows_of_lake(spark, plan, window, request.listing)
    return Subject(plan, export, waiting, window, lake, _stale_keys(spark, plan, window) if lake.relation else None)


def _stale_keys(spark, plan: Plan, window: Window) -> str | None:
    """Return a select of the keys whose newest change was rejected; None: no change of a key was.

    The row of such a key is an older one, whatever it equals. A rejected record without an order counts by its arrival.
    """
    if not plan.is_keyed_as_its_log:
        return None
    until = f"and (change_sequence_number is null or change_sequence_number < '{window.end}0')" if window.end else ""
    is_known = " and ".join(f"{quoted(log)} is not null" for log in plan.log_key.values())
    names = plan.key_of_log
    rejected = f"select distinct {names} from {plan.log} where rejection_reason is not null and {is_known} {until}"
    if spark.sql(f"{rejected} limit 1").isEmpty():
        return None
    return f"""
        select {plan.own_key_of_log}
        from {plan.log}
        left semi join ({rejected}) using ({names})
        where true {until}
        group by {names}
        having
            max(change_sequence_number) filter (where rejection_reason is not null)
            > coalesce(max(change_sequence_number) filter (where rejection_reason is null), '')
            or max(log_batch) filter (where rejection_reason is not null and change_sequence_number is null)
            >= coalesce(max(log_batch) filter (where rejection_reason is null), 0)
    """
