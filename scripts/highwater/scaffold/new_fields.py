"""Make columns of new fields, for tables that declare it: `meta: {new_fields: add}` on has_declared_fields."""

from pathlib import Path

import click
import yaml

from highwater.catalog.columns import named_columns, what_is_wrong
from highwater.catalog.entities import column_in_other_letters, declaration_of, declared_columns
from highwater.catalog.feeds import FAST_LOADER
from highwater.catalog.rendering import column_line
from highwater.catalog.yaml_files import (
    file_of_model,
    in_yaml,
    model_node,
    named,
    value_of,
    with_item,
    write_entry,
    yaml_below,
)
from highwater.runtime.printable import printable
from highwater.spark import dbt, untold
from highwater.spark.spark import quoted


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
        told = f"{row['entity']}: the new field {printable(row['field'])} of {printable(row['source_file'])}"
        if wrong := what_is_wrong(row["field"], "string", None):
            click.echo(f"warning: {told} is left in raw: {printable(wrong[0])}", err=True)
            continue
        added = True
        _add(spark, row["entity"], row["field"])
        click.echo(f"{told} is a column (string) now.")
    if added:
        click.echo("Commit the changed files under models/.")


def _of_declared_fields(test: dict):
    return test.get("has_declared_fields") or test.get("highwater.has_declared_fields")


def _tests_that_add() -> list[str]:
    selected = []
    for path in yaml_below(Path("models")):
        text = path.read_text()
        for model in ((yaml.load(text, FAST_LOADER) or {}).get("models") or []) if "new_fields" in text else ():
            for test in model.get("data_tests") or []:
                settings = _of_declared_fields(test) if isinstance(test, dict) else None
                if ((settings or {}).get("config") or {}).get("meta", {}).get("new_fields") == "add":
                    selected.append(f"{model['name']},test_name:has_declared_fields")
    return selected


def _add(spark, entity: str, field: str) -> None:
    (column,) = named_columns([(field, "string", None)], declared_columns(entity)[0])
    _list(declaration_of(entity), f"{entity}_changes", column_line(column))
    mart = file_of_model(entity)
    # the history's build makes its column, from the log
    if mart and _lists_columns_of_its_own(mart.read_text(), entity):
        _list(mart, entity, f"- name: {in_yaml(column.mart_name)}")
    for table in (f"lake.{entity}_changes", f"lake.{entity}_merged"):
        if spark.catalog.tableExists(table):
            spark.sql(f"alter table {table} add columns ({quoted(column.name)} string)")


def _lists_columns_of_its_own(text: str, entity: str) -> bool:
    """Return whether a mart does not take its columns from those of the log by an alias."""
    models = value_of(yaml.compose(text, FAST_LOADER), "models")
    columns = value_of(named(models, entity), "columns")
    return columns is not None and columns is not value_of(named(models, f"{entity}_changes"), "columns")


def _list(path: Path, model: str, column: str) -> None:
    """Let a model list one more column."""
    text = path.read_text()
    columns = value_of(model_node(text, model), "columns")

    def is_listed():
        return len(value_of(model_node(path.read_text(), model), "columns").value) == len(columns.value) + 1

    write_entry(path, text, with_item(text, columns, column), is_listed, column)
