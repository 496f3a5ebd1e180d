"""Explain: which columns differ, samples of what differs, what probably happened, and what to do next."""

from dataclasses import dataclass, field, replace

from highwater.catalog.feeds import sql_text
from highwater.reconcile.causes import causes_of
from highwater.reconcile.export import Doubts
from highwater.reconcile.measure import DIFFERENCES, Measurement
from highwater.reconcile.plan import Column, Plan
from highwater.reconcile.repair import Repair, repairs
from highwater.reconcile.settle import Settlement
from highwater.reconcile.subject import Subject
from highwater.reconcile.verdict import VERDICTS, Cause, Sample
from highwater.runtime.printable import in_shell
from highwater.spark.spark import quoted

MASK = "•••"
SAMPLES = 5
SHOWN_LETTERS = 200
WHOLE_NUMBERS = ("bigint", "int", "smallint", "tinyint")


@dataclass(frozen=True)
class Explanation:
    """What is told of differences; nothing, where there are none.

    Attributes:
        columns: by name, how many values differ, and how. samples: a few differences of each kind.
        causes: what probably happened. queries: commands that show more, by verdict. repairs: what repairs them.
    """

    columns: dict[str, dict] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    queries: dict[str, str] = field(default_factory=dict)
    repairs: list[Repair] = field(default_factory=list)


def explain(
    spark, subject: Subject, measured: Measurement, settled: Settlement, doubts: Doubts, with_repairs: bool
) -> Explanation:
    """Return what is told of the differences that were measured and settled.

    Arguments:
        doubts: what of the export cannot be read. with_repairs: also what repairs the differences.
    """
    if not measured.differences:
        return Explanation()
    columns = _columns(spark, subject.plan, measured, settled)
    chosen = _chosen(spark, subject.plan)
    return Explanation(
        columns,
        sorted((each.sample for each in chosen), key=lambda sample: VERDICTS.index(sample.verdict)),
        # of what the export does not tell nobody knows a cause
        [] if subject.export.doubts or doubts.flaws else causes_of(spark, subject, settled, columns, doubts.unreadable),
        _queries(subject.plan, chosen),
        repairs(spark, subject, doubts) if with_repairs else [],
    )


def _columns(spark, plan: Plan, measured: Measurement, settled: Settlement) -> dict[str, dict]:
    """Return for each column how many values differ, and how many a rule made equal."""
    by_rule = {name: _equal_by_rule(rows) for name, rows in measured.equal_by_rule.items() if rows}
    compared = [column.name for column in plan.columns_but(plan.key)] if plan.key else []
    if not compared or not settled.keys("value_differs"):
        return by_rule
    row = spark.sql(
        f"select {', '.join(map(_counts_of_column, compared))} from {DIFFERENCES} where `row verdict` = 'value_differs'"
    ).first()
    counts = {name: row[3 * place : 3 * place + 3] for place, name in enumerate(compared)}
    return by_rule | {
        name: by_rule.get(name, {"equal_by_rule": 0}) | _of_differing(*own) for name, own in counts.items() if own[0]
    }


def _equal_by_rule(rows: int) -> dict[str, int]:
    return {"value": 0, "null_in_export": 0, "null_in_lake": 0, "equal_by_rule": rows}


def _of_differing(differs: int, lake_null: int, export_null: int) -> dict[str, int]:
    values = differs - lake_null - export_null
    return {"null_in_lake": lake_null, "null_in_export": export_null, "value": values}


def _counts_of_column(name: str) -> str:
    """Return SQL of three counts: rows that differ in a column, those with NULL in the lake, in the export."""
    of_lake, of_export = f"`lake values`[0].{quoted(name)}", f"`export values`[0].{quoted(name)}"
    where = f"array_contains(`differing columns`, {sql_text(name)})"
    counts = [
        f"count_if({where})",
        f"count_if({where} and `lake rows` = 1 and {of_lake} is null)",
        f"count_if({where} and `lake rows` = 1 and {of_export} is null)",
    ]
    return ", ".join(counts)


@dataclass(frozen=True)
class Chosen:
    """A sample, and its key in texts that are not cut."""

    sample: Sample
    whole_key: list[str | None]


def _keys(plan: Plan) -> list[str]:
    """Return the columns that tell rows apart: of a table without a key, all."""
    return plan.key or [column.name for column in plan.columns]


def _chosen(spark, plan: Plan, differences: str = DIFFERENCES, other: str = "export") -> list[Chosen]:
    """Return a few differences of each verdict and column, in the order of their keys, sensitive values masked."""
    rows = spark.sql(_select_of_samples(plan, differences)).collect()
    found = [Chosen(replace(_sample(plan, row), other=other), row.whole_key) for row in rows]
    # one that differs in several columns is there for each
    samples = [each.sample for each in found]
    return [each for place, each in enumerate(found) if each.sample not in samples[:place]]


def _values(plan: Plan) -> list[Column]:
    """Return the columns whose values are shown; by rules keys that are equal may look otherwise."""
    return list(plan.columns) if plan.rules else plan.columns_but(_keys(plan))


def _sample(plan: Plan, row) -> Sample:
    return Sample(
        verdict=row.verdict,
        key=dict(zip(_keys(plan), row.key, strict=True)),
        lake_rows=row.lake_rows,
        export_rows=row.export_rows,
        columns=row.differing_columns,
        lake=_in_declared_order(plan, row.lake),
        export=_in_declared_order(plan, row.export),
    )


def _in_declared_order(plan: Plan, texts: dict | None) -> dict | None:
    return texts and {column.name: texts[column.name] for column in _values(plan)}


def samples_of(spark, plan: Plan, differences: str, other: str) -> list[Sample]:
    """Return a few of the differences that a relation has, from another side than the export."""
    return [each.sample for each in _chosen(spark, plan, differences, other)]


def _select_of_samples(plan: Plan, differences: str) -> str:
    columns = {column.name: column for column in plan.columns}
    keys = [columns[name] for name in _keys(plan)]
    in_order = ", ".join(f"{quoted(column.name)} asc nulls first" for column in keys)
    return f"""
        select
            `row verdict` as verdict,
            `lake rows` as lake_rows,
            `export rows` as export_rows,
            array({", ".join(_shown(plan, quoted(column.name), column) for column in keys)}) as key,
            array({", ".join(_text(quoted(column.name), column.data_type) for column in keys)}) as whole_key,
            {_side(plan, "`lake values`")} as lake,
            {_side(plan, "`export values`")} as export,
            `differing columns` as differing_columns
        from (
            select
                *,
                row_number() over (partition by `row verdict`, `differing column` order by {in_order}) as `its place`
            from {differences} lateral view outer explode(`differing columns`) as `differing column`
        )
        where `its place` <= {SAMPLES}
        order by `row verdict`, {in_order}
        """


def _side(plan: Plan, values: str) -> str:
    """Return the SQL of one side of a difference: a map of texts; NULL, where it has no row."""
    pairs = ", ".join(
        f"{sql_text(column.name)}, {_shown(plan, f'{values}[0].{quoted(column.name)}', column)}"
        for column in _values(plan)
    )
    return f"if({values} is null, null, map({pairs}))" if pairs else "cast(null as map<string, string>)"


def _shown(plan: Plan, value: str, column: Column) -> str:
    """Return the SQL of a value as people see it."""
    if column.name in plan.sensitive:
        return f"if({value} is null, null, '{MASK}')"
    text = _text(value, column.data_type)
    return f"if(length({text}) > {SHOWN_LETTERS}, concat(left({text}, {SHOWN_LETTERS}), '…'), {text})"


def _text(value: str, data_type: str) -> str:
    """Return the SQL of a value as text, to the last digit."""
    if data_type == "binary":
        return f"hex({value})"
    if "<" in data_type:
        return f"to_json({value}, map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))"
    return f"cast({value} as string)"


def _queries(plan: Plan, chosen: list[Chosen]) -> dict[str, str]:
    """Return a command by verdict that shows rows of both sides; none, where their keys are not to be named."""
    nested = [column for column in plan.columns if column.name in plan.key and "<" in column.data_type]
    if not plan.key or set(plan.key) & set(plan.sensitive) or nested:
        return {}
    keys: dict = {}
    for each in chosen:
        keys.setdefault(each.sample.verdict, []).append(each.whole_key)
    return {verdict: _query(plan, of_verdict) for verdict, of_verdict in keys.items()}


def _query(plan: Plan, keys: list) -> str:
    """Return a command that shows the rows of these keys."""
    shown = ", ".join(quoted(column.name) for column in plan.columns if column.name not in plan.sensitive)
    condition = _is_one_of(plan, keys)
    sides = [
        f"select '{side}' as `which side`, {shown} from {relation} where {condition}"
        for side, relation in (("lake", plan.lake), ("export", plan.readable))
    ]
    sql = f"{' union all '.join(sides)} order by {plan.names_of_key}, `which side` desc"
    return f"highwater query {in_shell(sql)}"


def _is_one_of(plan: Plan, keys: list) -> str:
    """Return the condition that a row has one of these keys."""
    types = {column.name: column.data_type for column in plan.columns}
    literals = [[_literal(value, types[name]) for name, value in zip(plan.key, key, strict=True)] for key in keys]
    if len(plan.key) == 1 and [None] not in keys:
        return f"{quoted(plan.key[0])} in ({', '.join(literal for (literal,) in literals)})"

    def same(key: list[str]) -> str:
        return " and ".join(f"{quoted(name)} <=> {literal}" for name, literal in zip(plan.key, key, strict=True))

    return " or ".join(f"({same(key)})" for key in literals)


def _literal(value: str | None, data_type: str) -> str:
    if value is None:
        return "null"
    if data_type in WHOLE_NUMBERS:
        return value
    if data_type == "string":
        return sql_text(value)
    return f"unhex('{value}')" if data_type == "binary" else f"cast({sql_text(value)} as {data_type})"
