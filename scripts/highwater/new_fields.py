"""Make columns of new fields, for tables that declare it: `meta: {new_fields: add}` on has_declared_fields."""

from pathlib import Path

import click
import yaml

from highwater import dbt, untold
from highwater.add_table import column_in_other_letters, declared_columns, in_yaml
from highwater.columns import named_columns, what_is_wrong
from highwater.feeds import FAST_LOADER
from highwater.printable import printable
from highwater.spark import quoted

FIRST_OF_CONTRACT = "      - name: change_sequence_number\n"
FIRST_OF_VERSION = "      - name: valid_from_sequence\n"


def add_new_fields(spark) -> None:
    """Add a column of type string for every field that has landed and is not declared, where a table asks for it.

    It happens before the build that takes the records in, so no value is lost. The YAML of the table is edited and its
    log and merged table get the column; widening the type is left to a person.
    """
    tests = _tests_that_add()
    if not tests:
        return
    from dbt.cli.main import dbtRunner

    dbt.set_defaults()
    untold.tell_macros()
    result = dbtRunner(callbacks=[dbt.hear]).invoke(
        ["test", "--quiet", "--warn-error-options", "{}", "--select", *tests]
    )
    seen, added = set(), False
    for row in list(dbt.failing_rows(result, "has_declared_fields")):
        # a second column of one name cannot be; the build says what to do about it
        is_new = row["problem"] == "is not declared" and not column_in_other_letters(row["entity"], row["field"])
        if not is_new or (row["entity"], row["field"]) in seen:
            continue
        seen.add((row["entity"], row["field"]))
        named = f"{row['entity']}: the new field {printable(row['field'])} of {printable(row['source_file'])}"
        if wrong := what_is_wrong(row["field"], "string", None):
            click.echo(f"warning: {named} is left in raw: {printable(wrong[0])}", err=True)
            continue
        added = True
        _add(spark, row["entity"], row["field"])
        click.echo(f"{named} is a column (string) now.")
    if added:
        click.echo("Commit the changed files under models/.")


def _of_declared_fields(test: dict):
    return test.get("has_declared_fields") or test.get("highwater.has_declared_fields")


def _tests_that_add() -> list[str]:
    selected = []
    for path in sorted(Path("models/staging").glob("*/*.yml")):
        for model in (yaml.load(path.read_text(), FAST_LOADER) or {}).get("models") or []:
            for test in model.get("data_tests") or []:
                settings = _of_declared_fields(test) if isinstance(test, dict) else None
                if ((settings or {}).get("config") or {}).get("meta", {}).get("new_fields") == "add":
                    selected.append(f"{model['name']},test_name:has_declared_fields")
    return selected


def _add(spark, entity: str, field: str) -> None:
    (column,) = named_columns([(field, "string", None)], declared_columns(entity)[0])
    described = f"        description: {in_yaml(column.description)}\n"
    own = f"        config: {{meta: {{field: {in_yaml(field)}}}}}\n" if field != column.name else ""
    (log,) = Path("models/changes").glob(f"*/{entity}_changes.yml")
    _insert(log, f"      - name: {in_yaml(column.name)}\n        data_type: string\n{described}{own}")
    for path in [*Path("models/staging").glob(f"*/stg_*__{entity}_changes.yml"), *_merged(entity)]:
        _insert(path, f"      - name: {in_yaml(column.name)}\n{described}")
    for path in Path("models/marts").glob(f"*/{entity}.yml"):
        path.write_text(path.read_text().rstrip("\n") + f"\n      - name: {in_yaml(column.mart_name)}\n{described}")
    # the history's build makes its column, from the log
    for path in Path("models/history").glob(f"*/{entity}_history.yml"):
        _insert(path, f"      - name: {in_yaml(column.version_name)}\n{described}", FIRST_OF_VERSION)
    for table in (f"lake.{entity}_changes", f"lake.{entity}_merged"):
        if spark.catalog.tableExists(table):
            spark.sql(f"alter table {table} add columns ({quoted(column.name)} string)")


def _merged(entity: str):
    return Path("models/merged").glob(f"*/{entity}_merged.yml")


def _insert(path: Path, text: str, first_behind: str = FIRST_OF_CONTRACT) -> None:
    before, first, after = path.read_text().partition(first_behind)
    path.write_text(before + text + first + after)
