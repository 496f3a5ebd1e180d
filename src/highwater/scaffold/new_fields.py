"""Make columns of new fields: `new_fields: add` of a feed, or in the `meta` of a test has_declared_fields."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import click
import yaml

from highwater.catalog.columns import named_columns, what_is_wrong
from highwater.catalog.declarations import in_columns
from highwater.catalog.entities import column_in_other_letters, declared_columns
from highwater.catalog.feeds import FAST_LOADER, declared_feeds
from highwater.catalog.yaml_files import yaml_below
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import printable
from highwater.scaffold.found_columns import observed_of, type_in
from highwater.spark import dbt, untold


def add_new_fields(spark) -> None:
    """Declare a column for every field that has landed and is not declared, where its feed or its table asks for it.

    It happens before the build that takes the records in, which adds the column to the tables and fills it. Its type is
    what the records' schema says, or their values, where the feed asks for it; `string` where the table does.
    """
    tests = _tests_that_add()
    if not tests:
        return
    from dbt.cli.main import dbtRunner

    dbt.set_defaults()
    untold.tell_macros()
    result = dbtRunner(callbacks=[dbt.hear]).invoke(
        ["test", "--quiet", "--warn-error-options", "{}", "--select", *(f"{test},{NAME}" for test in tests)]
    )
    seen, added = set(), False
    for row in list(dbt.failing_rows(result, "has_declared_fields")):
        # a second column of one name cannot be; the build says what to do about it
        is_new = row["problem"] == "is not declared" and not column_in_other_letters(row["entity"], row["field"])
        if not is_new or (row["entity"], row["field"]) in seen:
            continue
        seen.add((row["entity"], row["field"]))
        new_field = f"{row['entity']}: the new field {printable(row['field'])} of {printable(row['source_file'])}"
        if wrong := what_is_wrong(row["field"], "string", None):
            click.echo(f"warning: {new_field} is left in raw: {printable(wrong[0])}", err=True)
            continue
        added = True
        data_type, unit = tests[f"stg_{row['feed']}__{row['entity']}_changes"](row["table"], row["field"])
        (column,) = named_columns([(row["field"], data_type, unit)], declared_columns(row["entity"])[0])
        in_columns(row["entity"], column)
        click.echo(f"{new_field} is a column ({column.written_type}) now.")
    if added:
        click.echo("Commit the changed files under models/.")


def types_of_fields() -> Callable[[dict], str | None]:
    """Return what tells the type of a field that is not declared, with its unit, by what has been delivered newest.

    It is given a row of has_declared_fields, see dbt.failing_rows, and returns None where the files of its table cannot
    be looked at. These are read once, if at all.
    """
    told = _observed_types()

    def type_of(row: dict) -> str | None:
        try:
            data_type, unit = told(row["feed"], row["table"], row["field"])
        except (UsageError, OSError):  # said where they are landed
            return None
        return f"{data_type}[{unit}]" if unit else data_type

    return type_of


def _observed_types() -> Callable[[str, str, str], tuple[str, str | None]]:
    """Return what tells type and unit of a field, given its feed and table; the files of a table are read once."""
    feeds = cache(declared_feeds)
    observed = cache(lambda feed, table: observed_of(feeds()[feed], feeds()[feed].source_table(table)))
    return lambda feed, table, field: type_in(observed(feed, table), feeds()[feed], field)


NAME = "test_name:has_declared_fields"


def _of_declared_fields(test: dict):
    return test.get("has_declared_fields") or test.get("highwater.has_declared_fields")


def _tests_that_add() -> dict:
    """Return the staging models whose new fields become columns, each with what tells the type of one."""
    feeds = {name: feed for name, feed in declared_feeds().items() if feed.settings.get("new_fields") == "add"}
    selected, told = {}, _observed_types()
    for path in yaml_below(Path("models")):
        text = path.read_text()
        may_ask = "new_fields" in text or (feeds and "has_declared_fields" in text)
        for model in ((yaml.load(text, FAST_LOADER) or {}).get("models") or []) if may_ask else ():
            for test in model.get("data_tests") or []:
                settings = (_of_declared_fields(test) if isinstance(test, dict) else None) or {}
                if (settings.get("config") or {}).get("meta", {}).get("new_fields") == "add":
                    selected[model["name"]] = lambda *_: ("string", None)
                elif feed := feeds.get((settings.get("arguments") or {}).get("feed")):
                    selected[model["name"]] = lambda table, field, feed=feed: told(feed.name, table, field)
    return selected
