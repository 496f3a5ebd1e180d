"""Tables against exports of their source: what is equal, what differs, and what could not be checked.

The SQL comes from the macros of `macros/reconcile`, by one call of dbt; the tests of tables use the same ones. Nothing
is written but the results, which are appended to `<lake>/reconciliations`, so a build may run meanwhile.
"""

import json
import re
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from highwater.catalog.entities import declared_columns, logged_tables, publish_groups
from highwater.catalog.feeds import declared_feeds, sql_text
from highwater.catalog.pending import newest_batch_shown
from highwater.formats.formats import TABLE_IN_FOLDERS
from highwater.landing import landing
from highwater.reconcile.repair import LAST, repairs
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import in_shell
from highwater.runtime.project import lake
from highwater.spark import dbt
from highwater.spark.spark import quoted
from highwater.status.status import WAITING
from highwater.upkeep.compact import newest_version
from highwater.upkeep.retention import retention_of

PASS, FAIL, INCONCLUSIVE = "PASS", "FAIL", "INCONCLUSIVE"
EXIT_CODES = {PASS: 0, FAIL: 1, INCONCLUSIVE: 3}
VERDICTS = (
    "equal",
    "value_differs",
    "missing_in_lake",
    "extra_in_lake",
    "duplicate_in_lake",
    "duplicate_in_export",
    "in_flight",
    "stale",
)
RUN = "%Y-%m-%d %H:%M:%S.%f"
MASK = "•••"
SAMPLES = 5
# what the texts of a row say, the strictest first
CAUSES_IN_TEXTS = [
    ("trailing blank", "rtrim(lake) = rtrim(export)", "are equal without blanks at the end"),
    ("case", "lower(lake) = lower(export)", "are equal in lower case"),
    ("empty text and NULL", "coalesce(lake, '') = coalesce(export, '')", "are empty on one side and NULL on the other"),
    ("truncated text", "lake <> '' and startswith(export, lake)", "are the beginning of what the export has"),
    ("truncated text", "export <> '' and startswith(lake, export)", "are longer than what the export has"),
]
# more differences than this are no tail that is on its way
MOST_IN_FLIGHT = 100_000
SHOWN_LETTERS = 200
BETWEEN = " .. "
PLAN = "reconciliation plan: "
DIFFERENCES = "highwater_differences"
# with fewer buckets that differ only their rows are joined
FEW_BUCKETS = 0.5
# a larger share of the rows is joined by keys that are taken for unique at first: to gather rows by key costs more
MANY_ROWS = 0.25
SCRATCH = "reconcile-"
WITHOUT_EXPORT = "no export of it is declared: give the model the test matches_export (docs/reconciliation.md says how)"


@dataclass
class Comparison:
    """What comparing one table with its export found.

    Attributes:
        verdict: PASS, FAIL or INCONCLUSIVE. not_checked: why it is no PASS, apart from differences.
        export_file: the file of the export, or the folder that its parts are in. export_parts: each with its SHA-256.
        position: of the export, as it was declared. sequence: the same as a change_sequence_number.
        taken_at: of the export, as declared, or when its file was last changed; UTC. age: at the run, in words.
        compared: which rows of the lake were compared.
        counts: by verdict of rows, the keys and the rows of both sides; they add up to lake_rows and export_rows.
        columns: by name, the values that differ: both there, NULL in the export, NULL in the lake; and the rows that a
            declared rule made equal.
        samples: a few differences of each kind. causes: what probably happened, with the number of rows that say so.
        queries: to see more of them, by verdict. repairs: what mends them, where that was asked for.
        seconds: what it took.
    """

    table: str
    verdict: str = INCONCLUSIVE
    not_checked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    export: str | None = None
    export_file: str | None = None
    export_parts: dict = field(default_factory=dict)
    export_records: int | None = None
    taken_at: str | None = None
    age: str | None = None
    position: str | None = None
    sequence: str | None = None
    compared: str | None = None
    lake_rows: int | None = None
    export_rows: int | None = None
    counts: dict = field(default_factory=dict)
    columns: dict = field(default_factory=dict)
    rules: dict = field(default_factory=dict)
    samples: list = field(default_factory=list)
    causes: list = field(default_factory=list)
    queries: dict = field(default_factory=dict)
    repairs: list = field(default_factory=list)
    newest_log_batch: int | None = None
    seconds: float = 0.0

    def keys(self, *verdicts: str) -> int:
        """Return how many keys have one of these verdicts."""
        return sum(self.counts.get(verdict, {}).get("keys", 0) for verdict in verdicts)

    @property
    def differences(self) -> int:
        """How many keys differ; those in flight, and stale ones that are equal, are not counted."""
        return self.keys(*(verdict for verdict in VERDICTS if verdict not in ("equal", "in_flight", "stale")))


@dataclass
class Reconciliation:
    """One run: its time, the verdict over all tables, what was found in each, and with which versions."""

    run: str
    comparisons: list[Comparison]
    spark: str
    highwater: str

    @property
    def verdict(self) -> str:
        """FAIL when a table differs, INCONCLUSIVE when one could not be checked, PASS otherwise."""
        found = {comparison.verdict for comparison in self.comparisons}
        return next((verdict for verdict in (FAIL, INCONCLUSIVE) if verdict in found), PASS)

    @property
    def headline(self) -> str:
        """The first line of every report."""
        counts = [
            f"{sum(each.verdict == verdict for each in self.comparisons)} {words}"
            for verdict, words in ((PASS, "passed"), (FAIL, "failed"), (INCONCLUSIVE, "inconclusive"))
        ]
        tables = f"{len(self.comparisons)} table{'s'[: len(self.comparisons) != 1]}"
        return f"{self.verdict}: {tables}, {', '.join(counts)}; {self.run[:19]} UTC"


def reconcile(
    spark, tables: tuple[str, ...] = (), as_of: str | None = None, with_repairs: bool = False
) -> Reconciliation:
    """Compare tables with their newest exports, and append what was found to the results.

    Arguments:
        tables: models with the test matches_export; none: all of them, and every table without an export is named.
        as_of: position of the source to compare as of, in the place of those that the exports carry.
        with_repairs: say what mends each difference.
    Raises: UsageError when a table is not there; CheckError when dbt fails.
    """
    from importlib.metadata import version

    known = [entity for entity, _ in logged_tables() if list(Path("models/marts").glob(f"**/{entity}.sql"))]
    plans: dict[str, list] = {}
    for plan in _plans(tables):
        plans.setdefault(plan["table"], []).append(plan)
    for table in tables:
        if table not in plans and table not in known:
            raise UsageError(f"there is no table {table!r}; tables are: {', '.join(sorted({*known, *plans}))}.")
    run = datetime.now(timezone.utc).strftime(RUN)
    comparisons, listed = [], {}
    for table in tables or sorted({*known, *plans}):
        for plan in plans.get(table, [{"table": table, "error": WITHOUT_EXPORT}]):
            started = time.monotonic()
            if sys.stderr.isatty():
                print(f"comparing {table} ...", file=sys.stderr)
            plan |= {"with_repairs": with_repairs, "listed": listed}
            comparison = _compare_or_say_why(spark, plan, as_of, run)
            comparison.seconds = round(time.monotonic() - started, 1)
            comparisons.append(comparison)
    found = Reconciliation(run, comparisons, spark.version, version("highwater"))
    _append(spark, found)
    return found


def _plans(tables) -> list[dict]:
    """Return what has to be asked of each table; where dbt cannot tell, an `error` in its place."""
    plans, words = _ask_dbt(tables)
    if plans is None and len(tables) == 1:
        return [{"table": tables[0], "error": words}]
    if plans is None:
        # one of them has an error: find out which
        names = tables or sorted(entity for entity, _ in logged_tables())
        return [plan for name in names for plan in _plans((name,))]
    return plans


def _ask_dbt(tables) -> tuple[list[dict] | None, str]:
    from dbt.cli.main import dbtRunner

    told, errors = [], []

    def listen(event):
        words = str(getattr(event.data, "msg", ""))
        if words.startswith(PLAN):
            told.extend(json.loads(words.removeprefix(PLAN)))
        if event.info.name == "RunningOperationCaughtError":
            errors.append(" ".join(str(event.data.exc).split()).removeprefix("Runtime Error "))

    dbt.set_defaults()
    arguments = ["run-operation", "highwater.reconciliation_plan", "--args", json.dumps({"tables": list(tables)})]
    result = dbtRunner(callbacks=[listen]).invoke([*arguments, "--quiet", "--log-level", "none"])
    if result.exception:
        raise CheckError(" ".join(str(result.exception).split()))
    if not result.success:
        words = re.search(r"(?:Compilation Error (?:in macro \S+ \(\S+\) )?)?([^>]*)", " ".join(errors))[1].strip()
        return None, words or "dbt could not say how to compare it"
    return told, ""


def _compare_or_say_why(spark, plan: dict, as_of: str | None, run: str) -> Comparison:
    """Compare one table with its export; where that is not possible the others are compared all the same."""
    if "error" in plan:
        return Comparison(plan["table"], not_checked=[plan["error"]])
    try:
        return _compare(spark, plan, as_of, run)
    except (PySparkException, Py4JJavaError) as error:
        # the words of an error may quote values
        words = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        words = words if plan["sensitive"] else str(error).splitlines()[0]
        return Comparison(plan["table"], export=plan["export"], not_checked=[f"it could not be compared: {words}"])


def _compare(spark, plan: dict, as_of: str | None, run: str) -> Comparison:
    """Compare one table with its export."""
    found = Comparison(plan["table"], export=plan["export"])
    for name in ("lake", "export"):
        if not spark.catalog.tableExists(plan[name]):
            found.not_checked.append(f"{plan[name]} has not been built yet; run: highwater build")
            return found
    found.rules = {column["name"]: column["rules"] for column in plan["columns"] if column["rules"]}
    if plan["not_compared"]:
        found.not_checked.append(f"columns left out: {', '.join(plan['not_compared'])}")
    if plan["where"]:
        found.not_checked.append(f"rows left out: only those with {plan['where']} are compared")
    known = list(found.not_checked), list(found.notes)
    for _attempt in (1, 2):
        found.not_checked, found.notes = list(known[0]), list(known[1])
        before = _versions(spark, plan)
        if plan["raw"] and not _export_facts(spark, plan, found, run):
            found.not_checked += _exports_that_wait(spark, plan)
            return found
        found.repairs = []
        waiting = _exports_that_wait(spark, plan) if plan["raw"] else []
        found.not_checked += waiting
        window = _positions(spark, plan, found, as_of)
        rows, is_behind = _rows_of_lake(spark, plan, found, window)
        if rows is None:
            return found
        plan["stale"] = _stale_keys(spark, plan, window)
        adds_up = count(spark, plan, found, rows, window, run)
        is_stable = adds_up and (found.differences == 0 or _versions(spark, plan) == before)
        if is_stable:
            break
    if not is_stable:
        found.not_checked.append("the table changed while it was compared; run it again")
    is_empty = not all(plan["part_sizes"]) if plan["raw"] else False
    unreadable, flaws = _unreadable(spark, plan, found), _flaws_of_export(spark, plan, found)
    found.not_checked += flaws
    _conclude(found, bool(is_behind or waiting or flaws) or is_empty or not is_stable, unreadable)
    return found


def _export_facts(spark, plan: dict, found: Comparison, run: str) -> bool:
    """Say which export is compared, the same as the staging model reads, and return whether there is one."""
    exports = f"select *, cast(taken_at as string) as taken from ({plan['exports']}) order by place desc limit 2"
    newest, *others = spark.sql(exports).collect() or [None]
    if newest is None:
        found.not_checked.append(f"no export has landed in {plan['raw']} yet")
        return False
    found.export_file, found.position = newest.export, newest.source_position
    found.export_parts = {part.source_file: part.file_hash for part in newest.parts}
    found.export_records = plan["file_records"] = newest.records
    plan["part_sizes"] = [part.file_size for part in newest.parts]
    found.taken_at = newest.taken[:19]
    found.age = age_in_words(datetime.strptime(run, RUN) - datetime.fromisoformat(found.taken_at))
    found.not_checked += [
        f"{row.source_file} is a part of the export and was left out by `highwater land --skip`"
        for row in spark.sql(
            f"select distinct source_file from {plan['raw']} where entry = 'skipped' "
            f"and startswith(source_file, {sql_text(newest.export + '/')})"
        ).collect()
        if row.source_file not in found.export_parts
    ]
    found.not_checked += [
        f"{part.source_file} has no byte; take the export again" for part in newest.parts if not part.file_size
    ]
    for other in others:
        if other.place[:2] == newest.place[:2]:
            found.not_checked.append(
                f"nothing says which export is the newest: {other.export} has the position and the time of "
                f"{newest.export}, which is compared; declare `taken_at` of both in _exports.yml under new names"
            )
    return True


def age_in_words(age) -> str:
    """Return how old something is, in its largest unit."""
    seconds = int(age.total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return f"{seconds // length:,} {unit}{'s'[: seconds // length != 1]} old"
    return "less than a minute old"


def _exports_that_wait(spark, plan: dict) -> list[str]:
    """Return why what lies in the folder of a table's exports is not what has landed; nothing: it is."""
    feed = declared_feeds().get(plan["feed"])
    if feed is None or feed.role != "export":
        return []
    # each feed is listed once a run
    listed = plan.setdefault("listed", {})
    try:
        if feed.name not in listed:
            listed[feed.name] = landing.new_and_changed(spark, feed)
    except (UsageError, OSError) as error:
        return [f"what lies in the folder of {feed.name} cannot be listed, so a newer export may wait there: {error}"]
    new, changed = listed[feed.name]
    waiting = [file.source_file for file in new if file.table == plan["source_table"]]
    words = [landing.changed_file(feed, file.source_file) for file in changed if file.table == plan["source_table"]]
    if waiting:
        more = f" and {len(waiting) - 1:,} more" if len(waiting) > 1 else ""
        words.append(
            f"{waiting[0]}{more} lies in the folder and has not landed; run: highwater build. To leave it out on "
            f"record: {landing.skipping(waiting[0])}"
        )
    return words


def _positions(spark, plan: dict, found: Comparison, as_of: str | None) -> list[str]:
    """Return the positions that the export was taken between, or at, as sequences; none: nobody knows."""
    if as_of:
        found.position = as_of
    if not found.position:
        found.notes.append("the export has no position, so what differs now may be in flight")
        return []
    if not plan["positions"]:
        found.notes.append(
            f"the position {found.position} is not comparable: the feed {plan['feed']} does not declare `positions:`, "
            "the feed whose positions its exports carry"
        )
        return []
    given = found.position.split(BETWEEN)
    frame = spark.createDataFrame([(each,) for each in given], "position string").coalesce(1)
    sequences = [row.s for row in frame.selectExpr(f"{plan['sequence']} as s").collect()]
    if None in sequences:
        words = (
            f"the position {found.position} is none that {plan['positions']} has; write it as its records do, or as "
            "sequence:<change_sequence_number>"
        )
        if as_of:
            raise UsageError(f"--as-of: {words}.")
        found.notes.append(words)
        return []
    if not plan["rows_at_position"]:
        found.notes.append(f"{plan['table']} has no log of changes, so it is compared as it is now")
        return []
    found.sequence = BETWEEN.join(sequences)
    return sequences


def _versions(spark, plan: dict) -> list:
    tables = [plan["log"], f"{plan['lake']}_merged"] if plan["log"] else []
    tables += [plan["raw"]] if plan["raw"] else []
    return [newest_version(spark, table) for table in tables if spark.catalog.tableExists(table)]


def _rows_of_lake(spark, plan: dict, found: Comparison, window: list[str]) -> tuple[str | None, bool]:
    """Return a relation with the rows of the lake at the end of the window, and whether some are still to come.

    None in the place of the relation: the log does not go back as far as the position.
    """
    found.compared = "as it is now"
    # what the table shows: the log may be ahead of it
    if plan["log"] and spark.catalog.tableExists(f"{plan['lake']}_merged"):
        found.newest_log_batch = newest_batch_shown(spark, plan["table"])
    elif plan["log"]:
        found.newest_log_batch = spark.sql(f"select max(log_batch) from {plan['log']}").first()[0]
    if not window:
        return plan["lake"], False
    end = window[-1]
    facts = _facts_of_log(spark, plan, end, found.newest_log_batch or 0)
    lag = _lag(spark, plan, facts, end)
    if lag:
        found.not_checked.append(lag)
    if not facts["later"]:
        found.compared = "as it is now: nothing has changed since the position of the export"
        return plan["lake"], bool(lag)
    too_old = _too_old(spark, plan, facts, end)
    if too_old:
        found.compared = None
        found.not_checked.append(f"the export is too old to be compared: {too_old}; deliver a newer one")
        return None, True
    select, words = "rows_at_position", f"as of the position, {facts['later']:,} later changes taken back"
    if facts["truncates"]:
        select, words = "rows_of_log", "as of the position, from the log alone: the table has been truncated since"
    found.compared = words
    view, taken_back = "highwater_rows_of_lake", plan[select].replace(plan["marks"]["position"], end)
    held = _held_otherwise(spark, plan, end) if facts["is_whole"] and not facts["truncates"] else None
    if held:
        found.compared += "; rows that the table does not have as the log says are compared as the table has them"
        keys = ", ".join(map(quoted, plan["log_key"]))
        taken_back = (
            f"select * from ({taken_back}) left anti join ({held}) using ({keys}) "
            f"union all select * from {plan['lake']} left semi join ({held}) using ({keys})"
        )
    spark.sql(taken_back).createOrReplaceTempView(view)
    return view, bool(lag)


def _held_otherwise(spark, plan: dict, end: str) -> str | None:
    """Return a select of the keys that changed behind a position whose rows are not as the log says they are now.

    None: there are none. What the log takes back says nothing of a row that the table has lost or spoilt.
    """
    if any(plan["table"] in entities for entities in publish_groups().values()):
        return None  # the view shows what was published
    own = ", ".join(f"{quoted(log)} as {quoted(name)}" for name, log in plan["log_key"].items())
    keys = ", ".join(map(quoted, plan["log_key"]))
    changed = (
        f"select distinct {own} from {plan['log']} where rejection_reason is null and change_type <> 'truncate' "
        f"and change_sequence_number >= '{end}0'"
    )
    of_log = plan["rows_of_log"].replace(plan["marks"]["position"], LAST)
    names = ", ".join(map(quoted, spark.sql(of_log).columns))
    sides = [
        f"select {names} from {rows} left semi join ({changed}) using ({keys})"
        for rows in (f"({of_log})", plan["lake"])
    ]
    held = " union all ".join(f"({one} except all {other})" for one, other in (sides, sides[::-1]))
    held = f"select distinct {keys} from ({held})"
    return None if spark.sql(f"{held} limit 1").isEmpty() else held


def _too_old(spark, plan: dict, facts: dict, end: str) -> str | None:
    """Return why later changes cannot be taken back to a position; None: they can."""
    if facts["first"] >= f"{end}0":
        return (
            f"its position {end} is before the first change that {plan['log']} has ({facts['first']}), so nothing "
            "says what the rows were then"
        )
    kept = _position_that_is_kept(spark, plan)
    if kept and kept >= f"{end}0":
        return (
            f"its position {end} is before {kept}, and of what was there until then `retention_days` of "
            f"{plan['table']}_changes has kept the last version of each key alone"
        )
    return None


def _position_that_is_kept(spark, plan: dict) -> str | None:
    """Return the highest position of which an earlier state may have been dropped by a retention; None: nothing was."""
    kept_for = retention_of(plan["table"]).get("changes")
    if not kept_for or not spark.catalog.tableExists("lake.ledger"):
        return None
    return spark.sql(
        f"""
        select max(change_sequence_number)
        from {plan["log"]}
        where
            rejection_reason is null
            and landed_at < now() - interval {kept_for} days
            and (select coalesce(sum(applied + superseded), 0) from lake.ledger where table_name = '{plan["table"]}')
            > (select count_if(verdict in ('applied', 'superseded') and not is_derived) from {plan["log"]})
        """
    ).first()[0]


def _lag(spark, plan: dict, facts: dict, end: str) -> str | None:
    """Return why the table may lack changes up to a position; None: it has them all."""
    waiting = _waiting(spark, plan)
    if waiting:
        return f"{waiting:,} records have landed and wait for a build"
    if facts["lowest"] and facts["lowest"] < f"{end}0":
        return "changes up to the position are in the log and wait to be taken in; build"
    applied = facts["applied"]
    if facts["is_whole"]:
        applied = max(filter(None, [applied, _applied_of_stream(spark, plan)]), default=None)
    if applied and applied >= end:
        return None
    return (
        f"the changes that have been applied end at {applied or 'nothing'}, before the position of the export "
        f"({end}); land what comes after, and build"
    )


def _facts_of_log(spark, plan: dict, end: str, shown: int) -> dict:
    """Return up to where changes have been applied, and how many accepted ones are later than a position.

    Arguments:
        shown: the newest batch of the log that the table shows.
    """
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
        from {plan["log"]} where rejection_reason is null group by log_batch
        """
    ).collect()
    waiting = {batch.log_batch for batch in batches if batch.applied and batch.log_batch > shown}
    return {
        "applied": max((batch.highest for batch in batches if batch.log_batch not in waiting), default=None),
        "is_whole": not waiting,
        "lowest": min((batch.lowest for batch in batches if batch.log_batch in waiting), default=None),
        "first": min((batch.first for batch in batches), default=None),
        "later": sum(batch.later for batch in batches),
        "truncates": sum(batch.truncates for batch in batches),
    }


def _applied_of_stream(spark, plan: dict) -> str | None:
    """Return up to where changes of any table are in the logs, where one stream delivers all of them in order."""
    feed = declared_feeds().get(plan["positions"])
    if feed is None or feed.layout == TABLE_IN_FOLDERS:
        return None
    logs = [
        f"select max(change_sequence_number) as s from lake.{entity}_changes "
        f"where feed = '{feed.name}' and rejection_reason is null"
        for entity, sources in logged_tables()
        if feed.name in {name for name, _ in sources} and spark.catalog.tableExists(f"lake.{entity}_changes")
    ]
    return spark.sql(f"select max(s) from ({' union all '.join(logs)})").first()[0] if logs else None


@contextmanager
def _scratch():
    """A folder for the rows that differ; nothing of it stays, nor of one that a killed run left a day ago."""
    for left in lake().glob(f"{SCRATCH}*"):
        if time.time() - left.stat().st_mtime > 86_400:
            shutil.rmtree(left, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=SCRATCH, dir=lake())
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def count(spark, plan: dict, found: Comparison, rows: str, window=("",), run: str = "") -> bool:
    """Compare checksums, then the rows of buckets that differ, and describe what is found.

    Arguments:
        plan: what the macro reconciliation_plan says of the table. rows: relation with the rows of the lake.
        window: the positions that the export was taken between, or at; none: nobody knows them. run: name of the run.
    Returns: whether the counts add up to the rows of both sides; they do not when a side changed meanwhile.
    """
    if plan["where"]:
        rows = f"(select * from {rows} where {plan['where']})"
    buckets = spark.sql(plan["buckets"].replace("{lake_rows}", rows)).collect()
    differing = [bucket for bucket in buckets if bucket.differs]
    found.lake_rows = sum(bucket.lake_rows for bucket in buckets)
    found.export_rows = sum(bucket.export_rows for bucket in buckets)
    equal = sum(bucket.lake_rows for bucket in buckets if not bucket.differs)
    found.counts = {"equal": {"keys": equal, "lake_rows": equal, "export_rows": equal}}
    found.columns, found.samples, found.causes, found.queries = {}, [], [], {}
    if not differing:
        _set_stale_apart(spark, plan, found, rows, None)
        return True
    with _scratch() as folder:
        return _count_rows(spark, plan, found, rows, window, run, buckets, differing, folder)


def _count_rows(spark, plan, found, rows, window, run, buckets, differing, folder) -> bool:
    parts = {"lake": rows, "export": plan["readable"]}
    if len(differing) < FEW_BUCKETS * len(buckets):
        parts = {side: _rows_of_buckets(part, plan[f"{side}_bucket"], differing) for side, part in parts.items()}
        counted = differing
    else:
        found.counts = {}
        counted = buckets
    there = tuple(sum(bucket[f"{side}_rows"] for bucket in counted) for side in parts)
    equal_before = found.counts.get("equal", {"keys": 0})["keys"]
    many = sum(there) > MANY_ROWS * (found.lake_rows + found.export_rows)
    # a key that is there very often would be joined with itself
    most = max(max(bucket.lake_rows, bucket.export_rows) for bucket in buckets)
    average = max(found.lake_rows, found.export_rows) / len(buckets)
    ways = [_write_differing_keys if plan["key"] else _write_differences]
    if plan["key"] and many and most < 1000 + 10 * average:
        ways.insert(0, _write_differences_of_unique_keys)
    if not many:
        parts = _kept(spark, plan, parts, folder)
    for write in ways:
        seen = write(spark, plan, parts, folder)
        # with a key that is there twice more pairs are joined than there are rows
        adds_up = (seen["lake_rows"], seen["export_rows"]) == there
        if adds_up:
            break
    spark.read.parquet(f"{folder}/{DIFFERENCES}").createOrReplaceTempView(DIFFERENCES)
    _settle(spark, plan, found, window, run)
    equal = {"keys": seen["equal"], "lake_rows": seen["equal_lake_rows"], "export_rows": seen["equal_lake_rows"]}
    found.counts["equal"] = {name: value + equal_before for name, value in equal.items()}
    for row in spark.sql(
        "select `row verdict` as verdict, count(*) as keys, sum(`lake rows`) as lake_rows, "
        f"sum(`export rows`) as export_rows from {DIFFERENCES} group by `row verdict`"
    ).collect():
        found.counts[row.verdict] = {"keys": row.keys, "lake_rows": row.lake_rows, "export_rows": row.export_rows}
    found.columns = {column: _column_counts(seen, column) for column in found.rules if seen[f"rule_{column}"]}
    _set_stale_apart(spark, plan, found, rows, DIFFERENCES)
    _describe(spark, plan, found)
    if plan.get("with_repairs"):
        found.repairs = repairs(spark, plan, DIFFERENCES, plan.get("stale"), window[-1] if window else None)
    return adds_up


def _stale_keys(spark, plan: dict, window: list[str]) -> str | None:
    """Return a select of the keys whose newest change was rejected; None: no change of a key was.

    The row of such a key is an older one, whatever it equals. A rejected record without an order counts by its arrival.
    """
    if not plan["log_key"] or set(plan["log_key"]) != set(plan["key"]):
        return None
    until = f"and (change_sequence_number is null or change_sequence_number < '{window[-1]}0')" if window else ""
    own = ", ".join(f"{quoted(log)} as {quoted(name)}" for name, log in plan["log_key"].items())
    names = ", ".join(map(quoted, plan["log_key"].values()))
    is_known = " and ".join(f"{quoted(log)} is not null" for log in plan["log_key"].values())
    rejected = f"select distinct {names} from {plan['log']} where rejection_reason is not null and {is_known} {until}"
    if spark.sql(f"{rejected} limit 1").isEmpty():
        return None
    return f"""
        select {own}
        from {plan["log"]}
        left semi join ({rejected}) using ({names})
        where true {until}
        group by {names}
        having
            max(change_sequence_number) filter (where rejection_reason is not null)
            > coalesce(max(change_sequence_number) filter (where rejection_reason is null), '')
            or max(log_batch) filter (where rejection_reason is not null and change_sequence_number is null)
            >= coalesce(max(log_batch) filter (where rejection_reason is null), 0)
    """


def _set_stale_apart(spark, plan: dict, found: Comparison, rows: str, differences: str | None) -> None:
    """Count the rows of stale keys that are equal as what they are: not compared."""
    stale = plan.get("stale")
    if not stale:
        return
    names = ", ".join(map(quoted, plan["key"]))
    others = f"left anti join {differences} using ({names})" if differences else ""
    keys, count = spark.sql(
        f"select count(distinct {names}), count(*) from {rows} left semi join ({stale}) using ({names}) {others}"
    ).first()
    if keys:
        found.counts["stale"] = {"keys": keys, "lake_rows": count, "export_rows": count}
        equal = found.counts["equal"]
        for name, value in found.counts["stale"].items():
            equal[name] -= value
        found.not_checked.append(
            f"{keys:,} row{'s'[: keys != 1]} of keys whose newest change was rejected: what the lake has is older. See "
            f"stale_rows and rejected_changes of {plan['table']}, mend what rejects them, and: "
            f"highwater replay {plan['table']}"
        )


def _rows_of_buckets(rows: str, bucket: str, differing: list) -> str:
    """Return SQL for the rows whose keys are in these buckets."""
    numbers = [found.bucket for found in differing]
    return (
        f"(select /*+ broadcast(differing) */ * from {rows} "
        f"left semi join (select explode(from_json('{numbers}', 'array<bigint>')) as `differing bucket`) as differing "
        f"on {bucket} = `differing bucket`)"
    )


def _column_counts(seen: dict, column: str) -> dict:
    return {"value": 0, "null_in_export": 0, "null_in_lake": 0, "equal_by_rule": seen[f"rule_{column}"]}


def _kept(spark, plan: dict, parts: dict, folder: str) -> dict:
    """Put the rows of parts aside, to be read again and again; to persist them in memory takes longer."""
    names = ", ".join(quoted(column["name"]) for column in plan["columns"])
    for side, part in parts.items():
        spark.sql(f"select {names} from {part}").write.parquet(f"{folder}/{side}")
        spark.read.parquet(f"{folder}/{side}").createOrReplaceTempView(f"highwater_part_of_{side}")
    return {side: f"highwater_part_of_{side}" for side in parts}


def _of_parts(sql: str, parts: dict) -> str:
    return sql.replace("{lake_part}", parts["lake"]).replace("{export_part}", parts["export"])


def _write_differences_of_unique_keys(spark, plan: dict, parts: dict, folder: str) -> dict:
    return _write_differences(spark, plan, parts, folder, "verdicts_of_unique_keys")


def _write_differing_keys(spark, plan: dict, parts: dict, folder: str) -> dict:
    """Find the keys that differ by hashes, and gather the rows of these alone: to gather rows costs most."""
    keys = [f"`differing key {number}`" for number, _ in enumerate(plan["key"])]
    counted = {"keys": "count_if(not `is different`)", "rows": "sum(if(`is different`, 0, `lake rows`))"}
    frame, observation = _observed(spark.sql(_of_parts(plan["keys"], parts)), counted)
    chosen = [f"{quoted(name)} as {own}" for name, own in zip(plan["key"], keys, strict=True)]
    frame.where("`is different`").selectExpr(*chosen).write.mode("overwrite").parquet(f"{folder}/keys")
    spark.read.parquet(f"{folder}/keys").createOrReplaceTempView("highwater_differing_keys")
    columns = {column["name"]: column for column in plan["columns"]}

    def of_these(side: str, part: str) -> str:
        same = [f"{columns[name][f'{side}_by_rules']} <=> {own}" for name, own in zip(plan["key"], keys, strict=True)]
        return f"(select * from {part} left semi join highwater_differing_keys on {' and '.join(same)})"

    narrow = {side: of_these(side, part) for side, part in parts.items()}
    seen = _write_differences(spark, plan, narrow, folder)
    equal = observation.get
    for name in ("lake_rows", "export_rows", "equal_lake_rows"):
        seen[name] += equal["rows"]
    return seen | {"equal": seen["equal"] + equal["keys"]}


def _observed(frame, counted: dict):
    """Return a frame with these sums taken by the way, and where they are to be found afterwards; no rows sum to 0."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    sums = (f.expr(f"coalesce({what}, 0)").alias(name) for name, what in counted.items())
    return frame.observe(observation, *sums), observation


def _write_differences(spark, plan: dict, parts: dict, folder: str, form: str = "verdicts") -> dict:
    """Write the keys that are not equal to a folder; return the counts of all, taken in the same pass."""
    observed = {
        "lake_rows": "sum(`lake rows`)",
        "export_rows": "sum(`export rows`)",
        "equal": "count_if(`row verdict` = 'equal')",
        "equal_lake_rows": "sum(if(`row verdict` = 'equal', `lake rows`, 0))",
    }
    for column in plan["columns"]:
        if column["rules"]:
            name = column["name"]
            observed[f"rule_{name}"] = f"count_if(array_contains(`columns equal by rule`, {sql_text(name)}))"
    frame, observation = _observed(spark.sql(_of_parts(plan[form], parts)), observed)
    frame.where("`row verdict` <> 'equal'").write.mode("overwrite").parquet(f"{folder}/{DIFFERENCES}")
    return observation.get


def _settle(spark, plan: dict, found: Comparison, window: list[str], run: str) -> None:
    """Find out which differences are in flight, and give them that verdict in the view of the differences."""
    differences = spark.table(DIFFERENCES)
    if len(window) == 2 and plan["versions"]:
        _settle_window(spark, plan, found, window)
    elif not window:
        _settle_by_the_last_run(spark, plan, found, run, differences)


def _settle_window(spark, plan: dict, found: Comparison, window: list[str]) -> None:
    """A key that changed while the export was taken may be there as any version of it that was valid meanwhile.

    The lake has to have what it had at the end, whatever the export has.
    """
    select = plan["versions"].replace(plan["marks"]["start"], window[0]).replace(plan["marks"]["position"], window[1])
    spark.sql(select).createOrReplaceTempView("highwater_versions")
    spark.sql(plan["rows_of_log"].replace(plan["marks"]["position"], window[1])).createOrReplaceTempView(
        "highwater_rows_at_end"
    )
    key = [column for column in plan["columns"] if column["name"] in plan["key"]]
    values = [column for column in plan["columns"] if column["name"] not in plan["key"]]
    keys = ", ".join(f"{column['lake_by_rules']} as {quoted(column['name'])}" for column in key)
    names = ", ".join(plan["key"])
    form = ", ".join(f"{column['lake_by_rules']} as {quoted(column['name'])}" for column in values)
    compared = "`export values`" if not found.rules else None
    group = ", ".join(column["lake_by_rules"] for column in key)
    whole = f"collect_list(if(`is gone` or not `is whole`, null, array(struct({form}))))" if values else "array()"
    versions = f"""
        select
            {keys},
            {whole} as `valid versions`,
            max(`is gone` or `is truncated`) or not bool_or(`is before`) as `may be gone`,
            bool_or(`is truncated` or not `is before`) as `has moved`
        from highwater_versions group by {group}
    """
    held = ", ".join(
        f"{column['lake']} as {quoted(column['name'])}" for column in (plan["columns"] if found.rules else values)
    )
    at_end = f"""
        select {keys}, {f"any_value(array(struct({held})))" if held else "cast(null as array<string>)"} as `should be`
        from highwater_rows_at_end group by {group}
    """

    def same(side: str) -> str:
        return " and ".join(f"differences.{quoted(name)} <=> {side}.{quoted(name)}" for name in plan["key"])

    equals = f"array_contains(`valid versions`, {compared})" if values and compared else "false"
    spark.sql(
        f"""
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
        left join ({versions}) as versions on {same("versions")}
        left join (select true as `is there`, * from ({at_end})) as at_end on {same("at_end")}
        """
    ).createOrReplaceTempView(DIFFERENCES)
    moved = spark.sql(f"select count(*) from {DIFFERENCES} where `row verdict` = 'in_flight'").first()[0]
    if moved:
        words = "key has a version" if moved == 1 else "keys have versions"
        found.notes.append(f"{moved:,} {words} that were valid while the export was taken ({names})")


def _settle_by_the_last_run(spark, plan: dict, found: Comparison, run: str, differences) -> None:
    """Without a position a difference counts when two runs have seen it, with something landed between them."""
    from pyspark.sql import functions as f

    # a model may have several tests, each with a memory of its own
    compared = json.dumps([found.table, found.export, plan["where"], plan["not_compared"]])
    content = "xxhash64(`row verdict`, to_json(struct(`lake values` as lake_values, `export values` as export_values)))"
    keys = ", ".join(f"cast({quoted(name)} as string)" for name in plan["key"]) or "to_json(struct(*))"
    if differences.count() > MOST_IN_FLIGHT:
        return
    own = differences.selectExpr(f"xxhash64(array({keys})) as key_hash", f"{content} as content_hash").collect()
    path, now = open_differences(), {(row.key_hash, row.content_hash) for row in own}
    before, moved_on = set(), False
    if (path / "_delta_log").exists():
        last = (
            spark.read.format("delta")
            .load(str(path))
            .where((f.col("table_name") == compared) & (f.col("run") < run))
            .selectExpr("max_by(struct(*), run) as last")
            .first()
            .last
        )
        if last:
            before = {(row.key_hash, row.content_hash) for row in last.differences}
            moved_on = (last.export_file, last.log_batch) != (found.export_file, found.newest_log_batch)
    persistent = [key for key, content in now if moved_on and (key, content) in before]
    cleared = len({key for key, _ in before} - {key for key, _ in now})
    if cleared:
        found.notes.append(f"{cleared:,} that differed in the run before {'is' if cleared == 1 else 'are'} equal now")
    kept = ", ".join(f"{key}L" for key in persistent)
    still = f"xxhash64(array({keys})) in ({kept})" if kept else "false"
    spark.sql(
        f"select * except (`row verdict`), if({still}, `row verdict`, 'in_flight') as `row verdict` from {DIFFERENCES}"
    ).createOrReplaceTempView(DIFFERENCES)
    if len(now) > len(persistent):
        found.not_checked.append(
            f"{len(now) - len(persistent):,} differences may be in flight, for the export has no position that can be "
            "compared; land and build what has come since, and run it again"
        )
    rows = [(run, compared, found.export_file, found.newest_log_batch, [list(pair) for pair in sorted(now)])]
    schema = (
        "run string, table_name string, export_file string, log_batch bigint, "
        "differences array<struct<key_hash: bigint, content_hash: bigint>>"
    )
    spark.createDataFrame(rows, schema).coalesce(1).write.format("delta").mode("append").save(str(path))


def _causes(spark, plan: dict, found: Comparison) -> list[dict]:
    """Return what probably happened, where at least half of the differences of a kind say so."""
    causes = _causes_in_values(spark, plan, found)
    missing, extra = found.keys("missing_in_lake"), found.keys("extra_in_lake")
    waiting = _waiting(spark, plan)
    if waiting and (missing or found.keys("value_differs")):
        causes.append(_cause("late tail", None, waiting, None, "records have landed and wait for a build"))
    if plan.get("stale"):
        of = missing + found.keys("value_differs")
        rows = spark.sql(
            f"select count(*) from {DIFFERENCES} left semi join ({plan['stale']}) "
            f"using ({', '.join(map(quoted, plan['key']))}) "
            "where `row verdict` in ('missing_in_lake', 'value_differs')"
        ).first()[0]
        if rows:
            causes.append(_cause("change rejected", None, rows, of, "have a newest change that was rejected"))
    if (missing or extra) and plan["log_key"] and set(plan["log_key"]) == set(plan["key"]):
        causes += _causes_in_log(spark, plan, missing, extra)
    if missing and len(plan["key"]) == 1:
        (key,) = plan["key"]
        beyond = spark.sql(
            f"select count_if({quoted(key)} > (select max({quoted(key)}) from {plan['lake']})) from {DIFFERENCES} "
            "where `row verdict` = 'missing_in_lake'"
        ).first()[0]
        if beyond >= missing / 2:
            causes.append(_cause("late tail", key, beyond, missing, "missing keys are above every key of the lake"))
    return causes


def _cause(name: str, column: str | None, rows: int, of: int | None, evidence: str) -> dict:
    return {"cause": name, "column": column, "rows": rows, "of": of, "evidence": evidence}


def _causes_in_values(spark, plan: dict, found: Comparison) -> list[dict]:
    """Return causes that the two values of a row tell."""
    causes = []
    for column in plan["columns"]:
        name, data_type = column["name"], column["data_type"]
        counts = found.columns.get(name, {})
        differing = sum(counts.get(what, 0) for what in ("value", "null_in_export", "null_in_lake"))
        if not differing:
            continue
        pairs = f"""
            select `lake values`[0].{quoted(name)} as lake, `export values`[0].{quoted(name)} as export
            from {DIFFERENCES}
            where
                `row verdict` = 'value_differs'
                and `lake rows` = 1
                and array_contains(`differing columns`, {sql_text(name)})
        """
        asked = []
        if data_type == "string":
            asked = CAUSES_IN_TEXTS
        elif data_type.startswith("decimal") or data_type in ("double", "float"):
            asked = [
                ("rounded", f"round(lake, {n}) <=> export or round(export, {n}) <=> lake", f"are equal to {n} digits")
                for n in range(5)
            ]
        elif data_type in ("timestamp", "timestamp_ntz"):
            offset = "unix_micros(cast(lake as timestamp)) - unix_micros(cast(export as timestamp))"
            most = spark.sql(
                f"select {offset} as micros, count(*) as rows from ({pairs}) "
                "where lake is not null and export is not null group by all order by rows desc, micros limit 1"
            ).first()
            if most and most.rows >= differing / 2 and most.rows > 1:
                ahead = f"{abs(most.micros) / 1e6:g} s {'later' if most.micros > 0 else 'earlier'}"
                causes.append(_cause("constant time offset", name, most.rows, differing, f"are {ahead} in the lake"))
        if asked:
            counted = ", ".join(f"count_if({sql})" for _, sql, _ in asked)
            rows = spark.sql(f"select {counted} from ({pairs})").first()
            # of several that fit the first one says most
            for (cause, _, evidence), count in zip(asked, rows, strict=True):
                if count and count >= differing / 2:
                    causes.append(_cause(cause, name, count, differing, evidence))
                    break
    return causes


def _waiting(spark, plan: dict) -> int:
    """Return how many records of the table's feeds have landed and are not in its log yet."""
    feeds = dict(logged_tables()).get(plan["table"], []) if plan["log"] else []
    counts = [
        WAITING.format(entity=plan["table"], feed=feed, table=sql_text(table))
        for feed, table in feeds
        if spark.catalog.tableExists(f"raw.{feed}")
    ]
    return sum(row.waiting for row in spark.sql(" union all ".join(counts)).collect()) if counts else 0


def _causes_in_log(spark, plan: dict, missing: int, extra: int) -> list[dict]:
    """Return causes that the last change of a key in the log tells."""
    keys = ", ".join(f"{quoted(log)} as {quoted(own)}" for own, log in plan["log_key"].items())
    row = spark.sql(
        f"""
        select
            count_if(`row verdict` = 'extra_in_lake' and `last change`.is_deleted) as not_deleted,
            count_if(`row verdict` = 'extra_in_lake' and not `last change`.is_deleted) as never_deleted,
            count_if(`row verdict` = 'missing_in_lake' and not `last change`.is_deleted) as not_applied,
            count_if(`row verdict` = 'missing_in_lake' and `last change`.is_deleted) as deleted,
            count_if(`row verdict` = 'missing_in_lake' and `last change` is null) as never_delivered
        from {DIFFERENCES}
        left join (
            select {keys}, max_by(struct(is_deleted), change_sequence_number) as `last change`
            from {plan["log"]}
            where rejection_reason is null
            group by {", ".join(map(quoted, plan["log_key"].values()))}
        ) using ({", ".join(map(quoted, plan["key"]))})
        """
    ).first()
    blind = any(
        "/rows-" in (row[0] or "")
        for feed, _ in dict(logged_tables()).get(plan["table"], [])
        if spark.catalog.tableExists(f"raw.{feed}")
        for row in spark.sql(
            f"select max_by(source_file, landing_batch) from raw.{feed} where entry = 'file'"
        ).collect()
    )
    why = "; row-version extraction sees no deletes" if blind else ""
    told = [
        ("delete not applied", row.not_deleted, extra, "are deleted by their last change in the log"),
        ("delete not delivered", row.never_deleted, extra, f"have no delete in the log{why}"),
        ("change not applied", row.not_applied, missing, "have a change in the log that is not in the table"),
        ("deleted by the log", row.deleted, missing, "are deleted by their last change in the log"),
        ("change not delivered", row.never_delivered, missing, "have no change in the log"),
    ]
    return [_cause(name, None, rows, of, evidence) for name, rows, of, evidence in told if rows and rows >= of / 2]


def _text(value: str, data_type: str) -> str:
    """Return the SQL of a value as text, to the last digit."""
    if data_type == "binary":
        return f"hex({value})"
    if "<" in data_type:
        return f"to_json({value}, map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))"
    return f"cast({value} as string)"


def _describe(spark, plan: dict, found: Comparison) -> None:
    """Add what is told of differences: columns, samples, causes, queries."""
    names = [column["name"] for column in plan["columns"]]
    keys = plan["key"] or names
    values = [column for column in plan["columns"] if column["name"] not in keys or found.rules]
    compared = [column["name"] for column in plan["columns"] if column["name"] not in keys]
    _describe_columns(spark, found, compared)
    found.causes = _causes(spark, plan, found)
    _describe_samples(spark, plan, found, keys, values)


def _describe_columns(spark, found: Comparison, compared: list[str]) -> None:
    if not compared or not found.keys("value_differs"):
        return
    sums = []
    for name in compared:
        of_lake, of_export = f"`lake values`[0].{quoted(name)}", f"`export values`[0].{quoted(name)}"
        where = f"array_contains(`differing columns`, {sql_text(name)})"
        sums += [
            f"count_if({where})",
            f"count_if({where} and `lake rows` = 1 and {of_lake} is null)",
            f"count_if({where} and `lake rows` = 1 and {of_export} is null)",
        ]
    row = spark.sql(f"select {', '.join(sums)} from {DIFFERENCES} where `row verdict` = 'value_differs'").first()
    for place, name in enumerate(compared):
        differs, lake_null, export_null = row[3 * place : 3 * place + 3]
        if not differs:
            continue
        counts = found.columns.setdefault(name, {"equal_by_rule": 0})
        counts["null_in_lake"], counts["null_in_export"] = lake_null, export_null
        counts["value"] = differs - lake_null - export_null


def _describe_samples(spark, plan: dict, found: Comparison, keys: list[str], values: list[dict]) -> None:
    """Take a few differences of each verdict and column, in the order of their keys, sensitive values masked."""
    types = {column["name"]: column["data_type"] for column in plan["columns"]}

    def shown(value: str, name: str) -> str:
        text = _text(value, types[name])
        if name in plan["sensitive"]:
            return f"if({value} is null, null, '{MASK}')"
        return f"if(length({text}) > {SHOWN_LETTERS}, concat(left({text}, {SHOWN_LETTERS}), '…'), {text})"

    def side(which: str) -> str:
        own = [each["name"] for each in values]
        pairs = ", ".join(f"{sql_text(name)}, {shown(which + '[0].' + quoted(name), name)}" for name in own)
        return f"if({which} is null, null, map({pairs}))" if pairs else "cast(null as map<string, string>)"

    def in_declared_order(texts: dict | None) -> dict | None:
        return texts and {each["name"]: texts[each["name"]] for each in values}

    in_order = ", ".join(f"{quoted(name)} asc nulls first" for name in keys)
    rows = spark.sql(
        f"""
        select
            `row verdict` as verdict,
            `lake rows` as lake_rows,
            `export rows` as export_rows,
            array({", ".join(shown(quoted(name), name) for name in keys)}) as key,
            array({", ".join(_text(quoted(name), types[name]) for name in keys)}) as whole_key,
            {side("`lake values`")} as lake,
            {side("`export values`")} as export,
            `differing columns` as differing_columns
        from (
            select
                *,
                row_number() over (partition by `row verdict`, `differing column` order by {in_order}) as `its place`
            from {DIFFERENCES} lateral view outer explode(`differing columns`) as `differing column`
        )
        where `its place` <= {SAMPLES}
        order by `row verdict`, {in_order}
        """
    ).collect()
    asked: dict = {}
    for row in rows:
        sample = {
            "verdict": row.verdict,
            "key": dict(zip(keys, row.key, strict=True)),
            "lake_rows": row.lake_rows,
            "export_rows": row.export_rows,
            "columns": row.differing_columns,
            "lake": in_declared_order(row.lake),
            "export": in_declared_order(row.export),
        }
        if sample not in found.samples:
            found.samples.append(sample)
            asked.setdefault(row.verdict, []).append(row.whole_key)
    found.samples.sort(key=lambda sample: VERDICTS.index(sample["verdict"]))
    if not set(keys) & set(plan["sensitive"]) and plan["key"] and not any("<" in types[name] for name in keys):
        found.queries = {verdict: _query(plan, keys, types, chosen) for verdict, chosen in asked.items()}


def _query(plan: dict, keys: list[str], types: dict, chosen: list) -> str:
    """Return a command that shows rows of both sides."""

    def literal(value, name) -> str:
        if value is None:
            return "null"
        if types[name] in ("bigint", "int", "smallint", "tinyint"):
            return value
        if types[name] == "string":
            return sql_text(value)
        return f"unhex('{value}')" if types[name] == "binary" else f"cast({sql_text(value)} as {types[name]})"

    def same(key) -> str:
        return " and ".join(f"{quoted(name)} <=> {literal(value, name)}" for name, value in zip(keys, key, strict=True))

    condition = " or ".join(f"({same(key)})" for key in chosen)
    if len(keys) == 1 and [None] not in chosen:
        condition = f"{quoted(keys[0])} in ({', '.join(literal(value, keys[0]) for (value,) in chosen)})"
    shown = ", ".join(quoted(column["name"]) for column in plan["columns"] if column["name"] not in plan["sensitive"])
    sides = [
        f"select '{side}' as `which side`, {shown} from {relation} where {condition}"
        for side, relation in (("lake", plan["lake"]), ("export", plan["readable"]))
    ]
    sql = f"{' union all '.join(sides)} order by {', '.join(map(quoted, keys))}, `which side` desc"
    return f"highwater query {in_shell(sql)}"


def _unreadable(spark, plan: dict, found: Comparison) -> int:
    """Return how many rows of the export could not be read, and say why."""
    if not plan["raw"] or (plan["file_records"] == found.export_rows and not plan["where"]):
        return 0
    rows = spark.sql(
        f"select rejection_reason, count(*) as rows from {plan['export']} where rejection_reason is not null "
        "group by rejection_reason order by rejection_reason"
    ).collect()
    if rows:
        reasons = ", ".join(f"{row.rows:,} {row.rejection_reason}" for row in rows)
        found.not_checked.append(f"rows of the export that cannot be read: {reasons}")
    return sum(row.rows for row in rows)


def _flaws_of_export(spark, plan: dict, found: Comparison) -> list[str]:
    """Return why an export that differs may be no whole export of the table: columns that it lacks, a file cut off."""
    if not plan["raw"] or not plan["log"] or not (found.differences or plan["file_records"] != found.export_rows):
        return []
    files = ", ".join(map(sql_text, found.export_parts))
    records = f"{plan['raw']} where entry = 'record' and source_file in ({files})"
    declared, _ = declared_columns(plan["table"])
    compared = {column["name"].lower() for column in plan["columns"]}
    fields = [column.field for column in declared if column.mart_name.lower() in compared]
    names = f"array({', '.join(map(sql_text, fields))})"
    lacking = spark.sql(
        f"select distinct explode(array_except({names}, map_keys(fields))) as field from {records} "
        "and fields is not null"
    ).collect()
    words = []
    if lacking:
        lacking = ", ".join(name for name in fields if name in {row.field for row in lacking})
        words.append(
            f"the export has no column {lacking}; take one of all columns of {plan['table']}, or name those to compare "
            "with `columns` of matches_export"
        )
    words += [
        f"the last record of {row.source_file} cannot be read ({row.problem}): the file was cut off, or something "
        "stands behind its rows; take the export again"
        for row in spark.sql(
            f"select source_file, max_by(problem, source_line) as problem from {records} group by source_file "
            "having problem like 'malformed_record%' or problem like 'wrong_column_count%' order by source_file"
        ).collect()
    ]
    return words


def _conclude(found: Comparison, may_be_late: bool, unreadable: int) -> None:
    """Give the verdict.

    Arguments:
        may_be_late: the lake has not applied all changes up to the position of the export, or changed meanwhile, or
            another export waits to be compared in the place of this one, or this one is not whole.
        unreadable: rows of the export that could not be read; as many rows of the lake may be theirs.
    """
    unexplained = found.differences - min(unreadable, found.keys("extra_in_lake"))
    if unexplained and not may_be_late:
        found.verdict = FAIL
    elif found.not_checked or found.differences:
        found.verdict = INCONCLUSIVE
    else:
        found.verdict = PASS


def results() -> Path:
    """Return where the results of all runs are: a Delta table."""
    return lake().resolve() / "reconciliations"


def open_differences() -> Path:
    """Return where it is kept which keys differed, of exports without a position: a Delta table of hashes."""
    return lake().resolve() / "open_differences"


def _append(spark, found: Reconciliation) -> None:
    rows = [
        (
            datetime.strptime(found.run, RUN).replace(tzinfo=timezone.utc),
            each.table,
            each.verdict,
            each.not_checked,
            each.export_file,
            each.position,
            each.sequence,
            each.lake_rows,
            each.export_rows,
            {verdict: each.keys(verdict) for verdict in VERDICTS},
            each.seconds,
            json.dumps(asdict(each), ensure_ascii=False),
        )
        for each in found.comparisons
    ]
    schema = (
        "run timestamp, table_name string, verdict string, not_checked array<string>, export_file string, "
        "position string, sequence string, lake_rows bigint, export_rows bigint, keys map<string, bigint>, "
        "seconds double, details string"
    )
    spark.createDataFrame(rows, schema).coalesce(1).write.format("delta").mode("append").save(str(results()))
