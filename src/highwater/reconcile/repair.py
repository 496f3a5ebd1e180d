"""What repairs the differences that a comparison has found: commands, and statements for the source. Nothing is run."""

from dataclasses import dataclass

from highwater.catalog.entities import declared_columns, logged_tables
from highwater.catalog.feeds import declared_feeds
from highwater.databases.captures import names_of
from highwater.databases.database import quoted as quoted_in_postgres
from highwater.databases.database import text_in_postgres
from highwater.reconcile.export import Doubts
from highwater.reconcile.measure import DIFFERENCES
from highwater.reconcile.plan import Plan
from highwater.reconcile.subject import Subject
from highwater.spark.spark import quoted

# keys that one statement names
KEYS_IN_STATEMENT = 1000
# behind every position
LAST = "ffffffffffffffff"


@dataclass(frozen=True)
class Repair:
    """What repairs a class of differences: its verdict, how many keys have it, why this repairs it, and what to run."""

    verdict: str
    keys: int
    why: str
    run: list[str]


def repairs(spark, subject: Subject, doubts: Doubts) -> list[Repair]:
    """Return what repairs each class of differences; nothing is repaired at the source that may be on its way.

    Arguments:
        doubts: what of the export cannot be read.
    """
    classes = _classes(spark, subject.plan, DIFFERENCES, subject.stale, subject.window.end)
    return [Repair(verdict, keys, *_way(spark, subject, doubts, verdict, by)) for verdict, by, keys in classes]


def _way(spark, subject: Subject, doubts: Doubts, verdict: str, mended_by: str) -> tuple[str, list[str]]:
    """Return why something repairs a class of differences, and what is to be run; nothing, while it is waited for."""
    lag, table = subject.lake.lag, subject.plan.table
    if subject.export.doubts or doubts.flaws or (verdict == "extra_in_lake" and doubts.unreadable):
        return "the export cannot be read as a whole", ["take the export again, as `not checked` says"]
    if subject.waiting:
        return "another export may have to be compared", ["do first what `not checked` says"]
    if lag.awaits and lag.next_step and mended_by != "export":
        return lag.awaits, [*lag.next_step, f"highwater reconcile {table}"]
    if lag.awaits and mended_by in ("source", "unknown"):
        return lag.awaits, []
    return _ways(spark, subject.plan, verdict, mended_by)


def _classes(spark, plan: Plan, differences: str, stale: str | None, end: str | None) -> list:
    """Return verdict, what repairs it, and number of keys; the keys are kept in the view `highwater_repairs`."""
    names = plan.names_of_key
    if not plan.key or not plan.rows_of_log or not plan.is_keyed_as_its_log:
        spark.sql(f"select *, 'unknown' as `repaired by` from {differences}").createOrReplaceTempView(
            "highwater_repairs"
        )
    else:
        parts = {
            "lake": f"(select * from ({plan.log_as_of(end or LAST)}) left semi join {differences} using ({names}))",
            "export": f"(select * from {plan.readable} left semi join {differences} using ({names}))",
        }
        none = f"select {names} from {differences} where false"
        rejected = f"select {names}, true as `is stale` from ({stale or none})"
        verdicts = plan.compare("verdicts", parts)
        spark.sql(
            f"""
            select
                differences.*,
                case
                    when `row verdict` = 'duplicate_in_export' then 'export'
                    when rejected.`is stale` then 'replay'
                    when `row verdict` = 'duplicate_in_lake' then 'rebuild'
                    -- where neither has it, the log and the export agree
                    when coalesce(`log verdict`, 'equal') = 'equal' then 'rebuild'
                    else 'source'
                end as `repaired by`
            from {differences} as differences
            left join (select {names}, `row verdict` as `log verdict` from ({verdicts})) as logged using ({names})
            left join ({rejected}) as rejected using ({names})
            """
        ).createOrReplaceTempView("highwater_repairs")
    return spark.sql(
        "select `row verdict`, `repaired by`, count(*) from highwater_repairs where `row verdict` <> 'in_flight' "
        "group by `row verdict`, `repaired by` order by `row verdict`, `repaired by`"
    ).collect()


def _ways(spark, plan: Plan, verdict: str, mended_by: str) -> tuple[str, list[str]]:
    """Return why something repairs a class of differences, and what is to be run."""
    table = plan.table
    if mended_by == "export":
        return "the export has these keys twice", ["take the export again, of a table whose keys are unique"]
    if mended_by == "rebuild":
        return f"the log has what the export has, and {table}_merged has not", [f"highwater rebuild {table}"]
    if mended_by == "replay":
        return (
            "their newest change was rejected; repair the model or declaration that rejects it first",
            [
                f"highwater query \"select * from rejected_changes where table_name = '{table}'\"",
                f"highwater replay {table}",
            ],
        )
    return _ways_at_the_source(spark, plan, verdict)


def _ways_at_the_source(spark, plan: Plan, verdict: str) -> tuple[str, list[str]]:
    feeds = [(declared_feeds().get(feed), source) for feed, source in dict(logged_tables()).get(plan.table, [])]
    captured = [(feed, source) for feed, source in feeds if feed and feed.format == "changelog"]
    if not captured:
        return (
            "the log does not have what the export has",
            [f"deliver the table whole once more, and: highwater resync {plan.table} --from FILE"],
        )
    ((feed, source),) = captured[:1]
    if verdict == "extra_in_lake" or set(plan.sensitive) & set(plan.key):
        again = f"highwater extract {{}}{feed.name}.{source}"
        return "the capture has missed their change", [
            again.format(""),
            *map(again.format, ("--disable ", "--enable ")),
        ]
    return "the capture has missed their change; each statement records the rows once more", [
        *_statements(spark, plan, names_of(feed, source).source),
        f"highwater extract {feed.name}.{source} && highwater build --select +{plan.table}",
    ]


def _statements(spark, plan: Plan, source: str) -> list[str]:
    """Return the statements that write rows of the source as they are, so that they are captured."""
    columns, _ = declared_columns(plan.table)
    fields = {column.mart_name: column.field for column in columns}
    key = [quoted_in_postgres(fields[name]) for name in plan.key]
    texts = ", ".join(f"cast({quoted(name)} as string)" for name in plan.key)
    rows = spark.sql(
        f"select {texts} from highwater_repairs "
        f"where `repaired by` = 'source' and `row verdict` <> 'extra_in_lake' order by {texts}"
    ).collect()
    literals = [f"({', '.join(map(text_in_postgres, row))})" for row in rows]
    return [
        f"update {source} set {key[0]} = {key[0]} where ({', '.join(key)}) in "
        f"({', '.join(literals[first : first + KEYS_IN_STATEMENT])});"
        for first in range(0, len(literals), KEYS_IN_STATEMENT)
    ]
