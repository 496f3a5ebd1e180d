"""Where the results of runs are kept: two Delta tables beside the lake's own."""

import json
from dataclasses import asdict
from datetime import datetime, timezone

from highwater.reconcile.verdict import VERDICTS, Comparison, Reconciliation
from highwater.runtime.project import stored
from highwater.spark.lake_tables import RECONCILIATIONS

RUN = "%Y-%m-%d %H:%M:%S.%f"
SCHEMA = (
    "run timestamp, table_name string, verdict string, not_checked array<string>, export_file string, "
    "position string, sequence string, lake_rows bigint, export_rows bigint, keys map<string, bigint>, "
    "seconds double, details string"
)


def append(spark, rows: list[tuple], schema: str, name: str) -> None:
    """Append a few rows to a Delta table of the lake that is none of the metastore."""
    spark.createDataFrame(rows, schema).coalesce(1).write.format("delta").mode("append").save(stored(name))


def append_results(spark, found: Reconciliation) -> None:
    """Append what a run has found to the results."""
    run = datetime.strptime(found.run, RUN).replace(tzinfo=timezone.utc)
    append(spark, [(run, *_row(each)) for each in found.comparisons], SCHEMA, RECONCILIATIONS)


def _row(found: Comparison) -> tuple:
    return (
        found.table,
        found.verdict,
        found.not_checked,
        found.export_file,
        found.position,
        found.sequence,
        found.lake_rows,
        found.export_rows,
        {verdict: found.keys(verdict) for verdict in VERDICTS},
        found.seconds,
        json.dumps(asdict(found), ensure_ascii=False),
    )
