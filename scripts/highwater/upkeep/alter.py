"""Change a table by one command: its declaration, and whatever of its tables and records that touches."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from highwater.catalog.as_built import declared_shape, widens
from highwater.catalog.columns import Column, parse_columns, what_is_wrong
from highwater.catalog.declarations import (
    in_columns,
    out_of_columns,
    set_in_column,
    set_key,
    set_type,
    sources_file,
)
from highwater.catalog.entities import (
    declaration_of,
    declared_columns,
    has_history,
    logged_tables,
    settings_of,
    sources_of_logs,
)
from highwater.catalog.feeds import declared_feeds, sql_text
from highwater.catalog.yaml_files import file_of_model
from highwater.formats.formats import DEBEZIUM
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import counted, printable
from highwater.scaffold.periods import add_column, has_periods
from highwater.spark import dbt
from highwater.spark.lake_tables import folders_of_tables, newest_commit_in
from highwater.spark.spark import quoted
from highwater.upkeep.evolution import has_no_names, meet
from highwater.upkeep.rebuild import rebuild_from_raw

# what each takes, as the command's help has it
ACTIONS = {
    "add": "COLUMN:TYPE",
    "drop": "COLUMN",
    "rename": "OLD NEW",
    "type": "COLUMN TYPE",
    "unit": "COLUMN UNIT",
    "key": "COLUMN…",
}


@dataclass(frozen=True)
class Alteration:
    """A change of a table that is about to be made.

    Attributes:
        entity: the table. words: what it does, as a sentence. files: that are edited. edit: which edits them.
        is_anew: log and table are made anew from raw by it; otherwise they are met like any edited declaration.
        fields: by which records are read again; none: no record is.
    """

    entity: str
    words: str
    files: list[Path]
    edit: Callable[[], None]
    is_anew: bool = False
    fields: tuple[str, ...] = ()


def alteration(entity: str, action: str, values: tuple[str, ...]) -> Alteration:
    """Return a change of a table, as the command line says it; nothing is done yet.

    Arguments:
        entity: the table. action: one of ACTIONS. values: what it takes.
    Raises: UsageError when something is missing, misspelt or cannot be.
    """
    wanted = ACTIONS[action]
    if not values or (action != "key" and len(values) != len(wanted.split())):
        raise UsageError(f"{action} takes {wanted}, for example: highwater alter {entity} {action} {EXAMPLES[action]}")
    return {"add": _add, "drop": _drop, "rename": _rename, "type": _type, "unit": _unit, "key": _key}[action](
        entity, *values
    )


EXAMPLES = {
    "add": "city:string",
    "drop": "city",
    "rename": "qty quantity",
    "type": "total 'decimal(14,2)'",
    "unit": "at millis",
    "key": "order_id line",
}


def _add(entity: str, written: str) -> Alteration:
    columns = declared_columns(entity)[0]
    added = parse_columns(written, columns)
    for column in added:
        if other := next((c for c in columns if column.field in (c.field, c.name)), None):
            raise UsageError(f"{entity} has the column {other.name}, for the field {other.field!r}, already.")
    sources = dict(sources_of_logs())[entity]

    def edit():
        for column in added:
            in_columns(entity, column)
            for feed, table in sources:  # lines of files without names get one more period
                add_column(feed, table, column.field)

    names = ", ".join(f"{column.name} {column.written_type}" for column in added)
    files = [*_files(entity), *(sources_file(feed) for feed, _ in sources if has_periods(feed))]
    return Alteration(entity, f"adds {names}", files, edit, fields=tuple(c.field for c in added))


def _drop(entity: str, name: str) -> Alteration:
    column, key = _column(entity, name), declared_columns(entity)[1]
    if column.name in key:
        raise UsageError(f"{column.name} is in the key of {entity}; first: highwater alter {entity} key COLUMN…")
    if len(declared_columns(entity)[0]) == 1:
        raise UsageError(f"{column.name} is the only column of {entity}.")
    return Alteration(entity, f"drops {column.name}", _files(entity), lambda: out_of_columns(entity, column))


def _rename(entity: str, old: str, new: str) -> Alteration:
    columns = declared_columns(entity)[0]
    column = _column(entity, old)
    if wrong := what_is_wrong(new, "string", None):
        raise UsageError(f"{wrong[0]}.")
    if other := next((c for c in columns if new == c.field and c != column), None):
        raise UsageError(f"the column {other.name} of {entity} is the field {new!r} already.")
    if new == column.field:
        raise UsageError(f"the column {column.name} of {entity} is read from the field {new!r} already.")
    if all(has_no_names(feed) for feed, _ in dict(logged_tables())[entity]):
        raise UsageError(f"the files of {entity} do not name their columns, so there is no name that could change.")
    former = [each for each in [column.field, *_former(entity, column)] if each != new]

    def edit():
        set_in_column(entity, column.name, "field", new)
        set_in_column(entity, column.name, "former_fields", former)

    words = f"reads {column.name} from the field {new!r}, and from {', '.join(map(repr, former))} in records without it"
    return Alteration(entity, words, [declaration_of(entity)], edit, fields=(new,))


def _type(entity: str, name: str, data_type: str) -> Alteration:
    column = _column(entity, name)
    (parsed,) = parse_columns(f'"{column.field}":{data_type}')
    if parsed.unit:
        raise UsageError(f"the unit is another change: highwater alter {entity} unit {name} {parsed.unit}")
    if parsed.data_type == column.data_type:
        raise UsageError(f"{column.name} of {entity} is {column.data_type} already.")
    is_wider = widens(column.data_type.replace(" ", ""), parsed.data_type.replace(" ", ""))
    words = f"makes {column.name} {parsed.data_type}, which is {column.data_type} now"
    edit = lambda: set_type(entity, column.name, parsed.data_type)  # noqa: E731
    return Alteration(entity, words, [declaration_of(entity)], edit, is_anew=not is_wider)


def _unit(entity: str, name: str, unit: str) -> Alteration:
    column = _column(entity, name)
    if wrong := what_is_wrong(column.field, column.data_type, unit):
        raise UsageError(f"{wrong[0]}.")
    feeds = declared_feeds()
    if others := [feed for feed, _ in dict(logged_tables())[entity] if feeds[feed].format not in DEBEZIUM]:
        raise UsageError(
            f"only in records of Debezium may a number stand for a time, and {others[0]} is another format."
        )
    if unit == column.unit:
        raise UsageError(f"{column.name} of {entity} is in {unit} already.")
    words = f"reads {column.name} in {unit}, and not in {column.unit or 'what its feed says'}"
    edit = lambda: set_in_column(entity, column.name, "unit", unit)  # noqa: E731
    return Alteration(entity, words, [declaration_of(entity)], edit, is_anew=True)


def _key(entity: str, *names: str) -> Alteration:
    columns = [_column(entity, name) for each in names for name in each.split(",") if name]
    was = declared_columns(entity)[1]
    key = [column.name for column in columns]
    if not was:
        raise UsageError(
            f"{entity} has no key, so it has a log alone; add it as a table with a key: remove-table, add-table."
        )
    if sorted(key) == sorted(was) or len({*key}) < len(key):
        raise UsageError(f"the key of {entity} is {', '.join(was)}, and would be {', '.join(key)}.")
    words = f"makes {', '.join(key)} the key, which is {', '.join(was)} now"
    edit = lambda: set_key(entity, columns)  # noqa: E731
    return Alteration(entity, words, _files(entity), edit, is_anew=True)


def _column(entity: str, name: str) -> Column:
    """Return a column by its name in the project, in the table, or in the records."""
    columns = declared_columns(entity)[0]
    for told in (lambda c: c.name, lambda c: c.field, lambda c: c.mart_name):
        if found := next((column for column in columns if told(column) == name), None):
            return found
    raise UsageError(f"{entity} has no column {name!r}; columns are: {', '.join(c.name for c in columns)}.")


def _former(entity: str, column: Column) -> list[str]:
    return declared_shape(entity)["columns"][column.name]["former_fields"]


def _files(entity: str) -> list[Path]:
    return [*dict.fromkeys(filter(None, [declaration_of(entity), file_of_model(entity)]))]


def what_it_would_touch(spark, alteration: Alteration) -> list[str]:
    """Return what a change would edit, read and write, a line each; nothing is done."""
    entity, there = alteration.entity, folders_of_tables()
    lines = [f"{entity}: {alteration.words}.", *(f"would edit {path}" for path in alteration.files)]
    if f"lake.{entity}_changes" not in there:
        return [*lines, f"{entity} is not built yet: the next build makes it so."]
    for feed, table in dict(logged_tables())[entity]:
        of_table = f"raw.{feed} where entry = 'record' and source_table = {sql_text(table)}"
        records = spark.sql(f"select count(*) from {of_table}").first()[0]
        if alteration.fields:
            has = " or ".join(
                f"map_contains_key(fields, {sql_text(f)}) or contains(coalesce(fields['document'], "
                f"cast(record as string)), {sql_text(f)})"
                for f in alteration.fields
            )
            carrying = spark.sql(f"select count(*) from {of_table} and ({has})").first()[0]
            lines.append(
                f"raw.{feed}: {carrying:,} of {counted(records, 'record')} may carry it"
                + (", all are read again" if carrying else ", so none is read again")
            )
        elif alteration.is_anew:
            lines.append(f"raw.{feed}: {counted(records, 'record')} would be read again")
    for layer in ("changes", "merged", *(["history"] if has_history(entity) else [])):
        if folder := there.get(f"lake.{entity}_{layer}"):
            rows = spark.table(f"lake.{quoted(f'{entity}_{layer}')}").count()
            version = int(newest_commit_in(folder).stem)
            lines.append(f"lake.{entity}_{layer}: {counted(rows, 'row')}, version {version}, which stays until vacuum")
    return [printable(line) for line in lines]


def alter(spark, alteration: Alteration, accept_loss: bool = False) -> list[str]:
    """Make a change of a table; return what was done, a line each.

    Arguments:
        alteration: the change. accept_loss: records and keys that are there may be lost by it.
    Raises: UsageError or CheckError when it cannot be; the declaration is as it was then.
    """
    entity = alteration.entity
    before = {path: path.read_text() for path in alteration.files}
    is_built = f"lake.{entity}_changes" in folders_of_tables()
    said = [f"{entity}: {alteration.words}."]
    try:
        alteration.edit()
        if is_built and (alteration.is_anew or accept_loss):
            said.append(rebuild_from_raw(spark, entity, accept_loss))
        elif is_built:
            for met in meet(spark, [entity]):
                if met.is_refused:
                    raise CheckError(met.sentence)
                said.append(met.sentence)
    except (UsageError, CheckError, yaml.YAMLError) as error:
        for path, text in before.items():
            path.write_text(text)
        hint = " `highwater alter` takes --accept-loss too." if "--accept-loss" in str(error) else ""
        raise type(error)(f"{error} The declaration is as it was.{hint}") from None
    said += [f"changed {path}" for path, text in before.items() if path.read_text() != text]
    if is_built and settings_of(entity).get("key") and dbt.run(["run", "--select", entity, "--quiet"]):
        raise CheckError(f"the view of {entity} could not be made anew; run: highwater build")
    return [*said, "Commit the changed files under models/. Now: highwater build"]
