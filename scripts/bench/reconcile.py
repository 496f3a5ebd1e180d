"""Measure the comparison with exports against a full outer join of all values with counts per column.

    .venv/bin/python scripts/bench/reconcile.py [--rows 10000000] [--rounds 3]

Both compare two Delta tables of six columns, in turns, in one session: equal ones, and ones of which 2 500 keys differ.
Beside them all values of both sides are read and hashed, which no comparison of values can do without. Prints ratios of
the medians of wall time and of CPU time.
"""

import io
import json
import os
import tempfile
from contextlib import redirect_stdout
from dataclasses import fields

import click
from formats import measured, print_ratio
from highwater.reconcile.export import Export
from highwater.reconcile.plan import Plan
from highwater.reconcile.position import LakeRows, Window
from highwater.reconcile.reconcile import compare_rows
from highwater.reconcile.subject import Request, Subject
from highwater.spark.spark import session

COLUMNS = {
    "k": "id",
    "a": "concat('customer ', cast(id % 1000003 as string))",
    "b": "if(id % 11 = 0, null, cast(xxhash64(id) % 100000000 / 100 as decimal(12,2)))",
    "c": "timestamp_micros(1600000000000000 + id * 1000003)",
    "d": "cast(xxhash64(id, 7) % 1000 as int)",
    "e": "if(id % 7 = 0, null, concat('text of a usual length ', cast(xxhash64(id, 9) as string)))",
}
# missing, extra, changed, and twice: 500, 500, 1 000 and 500 keys
# 500 keys are missing, 500 extra, 1 000 have another value, and 500 are there twice
FAULTS = """
    select
        case when k % {step} = 1 then k + {rows} * 10 else k end as k,
        a,
        case when k % {step} in (2, 3) then cast(coalesce(b, 0) + 0.01 as decimal(12, 2)) else b end as b,
        c, d, e
    from bench.lake
    where k % {step} <> 0
    union all
    select * from bench.lake where k % {step} = 4
"""
VALUES = [name for name in COLUMNS if name != "k"]


def plan_of(spark, export: str) -> Plan:
    """Return what `highwater reconcile` would ask of the two tables, from the same macros."""
    from dbt.cli.main import dbtRunner

    sides = f"'bench.lake', '{export}'"
    parts = {
        "buckets": f"differing_buckets('{{lake_rows}}', '{export}', ['k'], columns)",
        "keys": "differing_keys('{lake_part}', '{export_part}', ['k'], columns)",
        "verdicts": "row_verdicts('{lake_part}', '{export_part}', ['k'], columns)",
        "verdicts_of_unique_keys": "row_verdicts('{lake_part}', '{export_part}', ['k'], columns, has_unique_keys=true)",
        "lake_bucket": "bucket_of_key('lake', ['k'], columns)",
        "export_bucket": "bucket_of_key('export', ['k'], columns)",
    }
    rendered = ", ".join(f"'{name}': {macro}" for name, macro in parts.items())
    text = (
        f"{{% set columns = comparable_columns({sides}, {list(COLUMNS)}) %}}"
        f"{{{{ tojson({{{rendered}, 'columns': columns}}) }}}}"
    )
    with redirect_stdout(io.StringIO()):
        result = dbtRunner().invoke(["compile", "--quiet", "--inline", text])
    if not result.success:
        raise SystemExit(f"dbt failed: {result.exception or result.result}")
    line = json.loads(result.result.results[0].node.compiled_code)
    names = {"table": "bench", "lake": "bench.lake", "readable": export, "key": ["k"], "sensitive": [], "log_key": {}}
    nothing = dict.fromkeys(field.name for field in fields(Plan))
    return Plan.of(nothing | line | names)


def ours(spark, plan: Plan) -> dict:
    """Compare as `highwater reconcile` does: checksums, rows of buckets that differ, columns, samples, causes."""
    window = Window(sequences=("",))
    subject = Subject(plan, Export(), [], window, LakeRows(plan.lake), None)
    found = compare_rows(spark, subject, Request("", None, False, list))
    if not found.measured.adds_up:
        raise SystemExit("the counts do not add up")
    return {verdict: counts.keys for verdict, counts in found.settled.counts.items()}


def theirs(spark, export: str) -> dict:
    """A full outer join of all values, with counts per column; it does not see what is there twice."""
    differ = ", ".join(
        f"count_if(l.k is not null and e.k is not null and not l.{name} <=> e.{name}) as {name}" for name in VALUES
    )
    row = spark.sql(
        f"select count_if(l.k is null) as missing, count_if(e.k is null) as extra, {differ} "
        f"from bench.lake as l full outer join {export} as e on l.k <=> e.k"
    ).first()
    return row.asDict()


def hashing(spark, export: str) -> list:
    """Read and hash every value of both sides: less than this nobody can do."""
    return [
        spark.sql(f"select sum(shiftright(xxhash64({', '.join(COLUMNS)}), 32)) from {table}").first()
        for table in ("bench.lake", export)
    ]


@click.command()
@click.option("--rows", default=10_000_000)
@click.option("--rounds", default=3)
def main(rows, rounds):
    """Measure in a lake of its own, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as temporary:
        os.environ |= {"HIGHWATER_LAKE": f"{temporary}/lake", "HIGHWATER_LANDING": f"{temporary}/landing"}
        os.environ.setdefault("DBT_PROFILES_DIR", "profiles")
        spark = session(spark__master="local[2]", spark__driver__memory="4g")
        spark.sql("create schema bench")
        row = ", ".join(f"{value} as {name}" for name, value in COLUMNS.items())
        spark.sql(f"create table bench.lake using delta as select {row} from range({rows})")
        spark.sql("create table bench.equal using delta as select * from bench.lake")
        step = rows // 500
        spark.sql(f"create table bench.different using delta as {FAULTS.format(rows=rows, step=step)}")
        figures: dict = {}
        for export in ("bench.equal", "bench.different"):
            plan = plan_of(spark, export)
            for _ in range(rounds + 1):
                for way in (ours, theirs, hashing):
                    figure, _ = measured(
                        lambda way=way, plan=plan, export=export: way(spark, plan if way is ours else export)
                    )
                    figures.setdefault((export, way), []).append(figure)
                    print(f"  {export}, {way.__name__}: {figure[0]:.1f} s, CPU {figure[1]:.1f} s", flush=True)
            print(export, "ours:", ours(spark, plan), "theirs:", theirs(spark, export), flush=True)
        for export, wanted in (("bench.equal", 0.3), ("bench.different", 1.3)):
            what = f"comparing {rows:,} rows, {export.partition('.')[2]}"
            print_ratio(what, figures[export, ours], figures[export, theirs], f"at most {wanted}x of CPU")
            print_ratio(f"{what}, hashing alone", figures[export, hashing], figures[export, theirs], "the least")
        spark.stop()


if __name__ == "__main__":
    main()
