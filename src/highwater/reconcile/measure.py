"""Measure: count what is equal and what differs. Checksums of buckets first, then the rows of those that differ."""

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from highwater.catalog.feeds import sql_text
from highwater.reconcile.plan import Plan
from highwater.reconcile.subject import Subject
from highwater.reconcile.verdict import Count
from highwater.runtime.project import stored
from highwater.runtime.state import files
from highwater.spark.spark import quoted

DIFFERENCES = "highwater_differences"
DIFFERING_KEYS = "highwater_differing_keys"
# with fewer buckets that differ only their rows are joined
FEW_BUCKETS = 0.5
# a larger share of the rows is joined by keys that are taken for unique at first: to gather rows by key costs more
MANY_ROWS = 0.25
SCRATCH = "reconcile-"
A_DAY = 86_400


@dataclass(frozen=True)
class Measurement:
    """What was counted.

    Attributes:
        lake_rows, export_rows: that were compared. equal: those that are. equal_by_rule: rows that a declared rule
            made equal, by column. differences: view of the keys that differ; None: none does.
        adds_up: whether the counts add up to the rows of both sides; they do not when a side changed meanwhile.
    """

    lake_rows: int
    export_rows: int
    equal: Count
    equal_by_rule: dict[str, int] = field(default_factory=dict)
    differences: str | None = None
    adds_up: bool = True


@dataclass(frozen=True)
class Buckets:
    """The checksums of both sides, by hash of the key."""

    all: list

    @property
    def differing(self) -> list:
        """Those in which something differs."""
        return [bucket for bucket in self.all if bucket.differs]

    @property
    def are_few(self) -> bool:
        """Whether so few differ that their rows alone are joined."""
        return len(self.differing) < FEW_BUCKETS * len(self.all)

    @property
    def joined(self) -> list:
        """Those whose rows are joined."""
        return self.differing if self.are_few else self.all

    @property
    def equal(self) -> Count:
        """The rows of the others, all of them equal."""
        rows = sum(bucket.lake_rows for bucket in self.all if not bucket.differs)
        return Count(rows, rows, rows)

    @property
    def have_a_frequent_key(self) -> bool:
        """Whether one is so large that a key may be there very often, which would be joined with itself."""
        most = max(max(bucket.lake_rows, bucket.export_rows) for bucket in self.all)
        return most >= 1000 + 10 * max(rows_of(self.all)) / len(self.all)

    @property
    def are_many_rows(self) -> bool:
        """Whether a large share of all rows is joined."""
        return sum(rows_of(self.joined)) > MANY_ROWS * sum(rows_of(self.all))


def rows_of(buckets: list) -> tuple[int, int]:
    """Return how many rows these have in the lake and in the export."""
    return sum(bucket.lake_rows for bucket in buckets), sum(bucket.export_rows for bucket in buckets)


@dataclass(frozen=True)
class Seen:
    """What was counted while the rows that differ were written: rows of both sides, equal keys and their rows."""

    lake_rows: int
    export_rows: int
    equal: int
    equal_lake_rows: int
    equal_by_rule: dict[str, int]

    def and_equal(self, keys: int, rows: int) -> "Seen":
        """Return this with further keys that are equal."""
        return Seen(
            self.lake_rows + rows,
            self.export_rows + rows,
            self.equal + keys,
            self.equal_lake_rows + rows,
            self.equal_by_rule,
        )


@contextmanager
def scratch():
    """Give what makes a folder for the rows that differ; nothing of it stays behind."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(_folder())


@contextmanager
def _folder():
    """A folder in the lake while it is needed; what a killed run left a day ago goes with it."""
    for left in files().names(""):
        begun = left.removeprefix(SCRATCH).partition("-")[0]
        if left.startswith(SCRATCH) and begun.isdecimal() and time.time() - int(begun) > A_DAY:
            _remove(left)
    folder = f"{SCRATCH}{int(time.time())}-{uuid.uuid4().hex[:8]}"
    try:
        yield stored(folder)
    finally:
        _remove(folder)


def _remove(folder: str) -> None:
    """Remove a folder where that can be done; the next run tries again, and another may have done so meanwhile."""
    with suppress(Exception):
        files().remove(folder)


def measure(spark, subject: Subject, new_folder: Callable[[], str]) -> Measurement:
    """Return what of a table and its export is equal, and the keys that are not.

    Arguments:
        new_folder: makes a folder for the rows that differ, where some do; the view of them reads it.
    """
    buckets = Buckets(spark.sql(subject.plan.buckets.replace("{lake_rows}", subject.rows)).collect())
    if not buckets.differing:
        return Measurement(*rows_of(buckets.all), buckets.equal)
    return _measure_rows(spark, subject, buckets, new_folder())


def _measure_rows(spark, subject: Subject, buckets: Buckets, folder: str) -> Measurement:
    parts = _parts(spark, subject, buckets, folder)
    seen, adds_up = _written(spark, subject.plan, buckets, parts, folder)
    spark.read.parquet(f"{folder}/{DIFFERENCES}").createOrReplaceTempView(DIFFERENCES)
    equal = Count(seen.equal, seen.equal_lake_rows, seen.equal_lake_rows)
    return Measurement(
        *rows_of(buckets.all),
        equal.plus(buckets.equal) if buckets.are_few else equal,
        seen.equal_by_rule,
        DIFFERENCES,
        adds_up,
    )


def _parts(spark, subject: Subject, buckets: Buckets, folder: str) -> dict[str, str]:
    """Return relations with the rows of both sides that are joined."""
    plan = subject.plan
    parts = {"lake": subject.rows, "export": plan.readable}
    if buckets.are_few:
        of_side = {"lake": plan.lake_bucket, "export": plan.export_bucket}
        parts = {side: _rows_of_buckets(part, of_side[side], buckets.differing) for side, part in parts.items()}
    return parts if buckets.are_many_rows else _kept(spark, plan, parts, folder)


def _rows_of_buckets(rows: str, bucket: str, differing: list) -> str:
    """Return SQL for the rows whose keys are in these buckets."""
    numbers = [found.bucket for found in differing]
    return (
        f"(select /*+ broadcast(differing) */ * from {rows} "
        f"left semi join (select explode(from_json('{numbers}', 'array<bigint>')) as `differing bucket`) as differing "
        f"on {bucket} = `differing bucket`)"
    )


def _kept(spark, plan: Plan, parts: dict, folder: str) -> dict:
    """Put the rows of parts aside, to be read again and again; to persist them in memory takes longer."""
    names = ", ".join(quoted(column.name) for column in plan.columns)
    for side, part in parts.items():
        spark.sql(f"select {names} from {part}").write.parquet(f"{folder}/{side}")
        spark.read.parquet(f"{folder}/{side}").createOrReplaceTempView(f"highwater_part_of_{side}")
    return {side: f"highwater_part_of_{side}" for side in parts}


def _written(spark, plan: Plan, buckets: Buckets, parts: dict, folder: str) -> tuple[Seen, bool]:
    """Write the keys that differ; return what was counted, and whether it adds up."""
    for write in _ways(plan, buckets):
        seen = write(spark, plan, parts, folder)
        # with a key that is there twice more pairs are joined than there are rows
        adds_up = (seen.lake_rows, seen.export_rows) == rows_of(buckets.joined)
        if adds_up:
            break
    return seen, adds_up


def _ways(plan: Plan, buckets: Buckets) -> list[Callable]:
    """Return the ways to write the keys that differ, the one to be tried first first."""
    if not plan.key:
        return [_write_differences]
    if buckets.are_many_rows and not buckets.have_a_frequent_key:
        return [_write_differences_of_unique_keys, _write_differing_keys]
    return [_write_differing_keys]


def _write_differences_of_unique_keys(spark, plan: Plan, parts: dict, folder: str) -> Seen:
    return _write_differences(spark, plan, parts, folder, "verdicts_of_unique_keys")


def _write_differing_keys(spark, plan: Plan, parts: dict, folder: str) -> Seen:
    """Find the keys that differ by hashes, and gather the rows of these alone: to gather rows costs most."""
    keys = [f"`differing key {number}`" for number, _ in enumerate(plan.key)]
    counted = {"keys": "count_if(not `is different`)", "rows": "sum(if(`is different`, 0, `lake rows`))"}
    frame, observation = _observed(spark.sql(plan.compare("keys", parts)), counted)
    chosen = [f"{quoted(name)} as {own}" for name, own in zip(plan.key, keys, strict=True)]
    frame.where("`is different`").selectExpr(*chosen).write.mode("overwrite").parquet(f"{folder}/keys")
    spark.read.parquet(f"{folder}/keys").createOrReplaceTempView(DIFFERING_KEYS)
    seen = _write_differences(spark, plan, _parts_of_keys(plan, parts, keys), folder)
    return seen.and_equal(**observation.get)


def _parts_of_keys(plan: Plan, parts: dict, keys: list[str]) -> dict:
    """Return the rows of both sides whose keys differ."""
    columns = {column.name: column for column in plan.columns}

    def of_these(side: str, part: str) -> str:
        by_rules = [getattr(columns[name], f"{side}_by_rules") for name in plan.key]
        same = " and ".join(f"{value} <=> {own}" for value, own in zip(by_rules, keys, strict=True))
        return f"(select * from {part} left semi join {DIFFERING_KEYS} on {same})"

    return {side: of_these(side, part) for side, part in parts.items()}


def _observed(frame, counted: dict):
    """Return a frame with these sums taken by the way, and where they are to be found afterwards; no rows sum to 0."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    sums = (f.expr(f"coalesce({what}, 0)").alias(name) for name, what in counted.items())
    return frame.observe(observation, *sums), observation


def _write_differences(spark, plan: Plan, parts: dict, folder: str, form: str = "verdicts") -> Seen:
    """Write the keys that are not equal to a folder; return the counts of all, taken in the same pass."""
    counted = {
        "lake_rows": "sum(`lake rows`)",
        "export_rows": "sum(`export rows`)",
        "equal": "count_if(`row verdict` = 'equal')",
        "equal_lake_rows": "sum(if(`row verdict` = 'equal', `lake rows`, 0))",
    }
    of_rules = {
        f"rule_{name}": f"count_if(array_contains(`columns equal by rule`, {sql_text(name)}))" for name in plan.rules
    }
    frame, observation = _observed(spark.sql(plan.compare(form, parts)), counted | of_rules)
    frame.where("`row verdict` <> 'equal'").write.mode("overwrite").parquet(f"{folder}/{DIFFERENCES}")
    sums = observation.get
    return Seen(*(sums[name] for name in counted), {name: sums[f"rule_{name}"] for name in plan.rules})
