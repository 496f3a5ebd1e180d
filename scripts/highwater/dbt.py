"""dbt in this process, on the session that landing uses too."""

import os
import re
from pathlib import Path

import click

WITHOUT_SPARK = {"parse", "ls", "list", "deps", "clean"}

# Unit tests and tests of macros are about the project; `make test` runs them, and they cost seconds in every build.
WITHOUT_UNIT_TESTS = ["--exclude-resource-types", "unit_test"]
TESTS_OF_MACROS = "path:tests/macros"
CHECKS_OF_DATA_ONLY = [*WITHOUT_UNIT_TESTS, "--exclude", TESTS_OF_MACROS]

# what the logs of this process have said of tables that wait for a declaration, by table
waiting: dict[str, str] = {}


def hear(event) -> None:
    """Keep the warning of a log, one of dbt's events, that its table waits (macro later_baselines)."""
    said = event.info.name == "JinjaLogWarning" and re.match(r"(\w+) waits: ", event.data.msg)
    if said:
        waiting[said[1]] = event.data.msg


def set_defaults() -> None:
    """Set dbt's environment where the user has not: the project's profile, and dbt-expectations if it is here."""
    os.environ.setdefault("DBT_PROFILES_DIR", "profiles")
    os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    if "HIGHWATER_DBT_EXPECTATIONS" not in os.environ and Path("dbt_packages/dbt_expectations").exists():
        os.environ["HIGHWATER_DBT_EXPECTATIONS"] = "installed"


def run(arguments: list[str]) -> int:
    """Run one dbt command.

    Arguments:
        arguments: as typed behind `dbt`.
    Returns: 0 done, 1 a model or test failed, 2 dbt could not do it.
    """
    from dbt.cli.main import dbtRunner

    set_defaults()
    result = dbtRunner(callbacks=[hear]).invoke(arguments)
    if result.exception is not None:
        return 2
    for row in failing_rows(result, "has_declared_fields"):
        message = f"{row['source_file']}: the field {row['field']} {row['problem']}{_where(row)}.{_what_to_do(row)}"
        click.echo(message, err=True)
    return 0 if result.success else 1


def failing_rows(result, test: str):
    """Yield the rows that a generic test found, each with the `entity` that the test was declared for.

    Arguments:
        result: what dbtRunner returned. test: name of the generic test.
    """
    from highwater.spark import session

    for run in getattr(result.result, "results", None) or []:
        metadata = getattr(getattr(run, "node", None), "test_metadata", None)
        if metadata and metadata.name == test and run.failures:
            for row in session().sql(run.node.compiled_code).collect():
                yield row.asDict() | {"entity": metadata.kwargs.get("entity")}


def _where(row: dict) -> str:
    if not row["records"]:
        return ""
    noun = "record" if row["records"] == 1 else "records"
    return f" ({row['records']:,} {noun}, the first in line {row['first_line']})"


def _what_to_do(row: dict) -> str:
    from highwater.add_table import column_in_other_letters

    column = column_in_other_letters(row["entity"], row["field"])
    if column is None or not row["records"]:
        return ""
    return (
        f" {column.field} is: in {row['entity']}_changes.yml, give the column {column.name} "
        f"config: {{meta: {{field: {row['field']}}}}}, then: highwater replay {row['entity']}"
    )
