"""Declare the tables that a file of DDL creates: columns, types, units, keys and descriptions come from it."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from highwater.catalog.columns import UNSIGNED, Column, FoundColumns, named_columns, what_is_wrong
from highwater.catalog.entities import declared_columns, logged_tables
from highwater.catalog.feeds import declared_feeds
from highwater.catalog.names import name_inside
from highwater.catalog.source_types import DIALECTS, source_type
from highwater.formats.formats import DEBEZIUM
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import in_shell
from highwater.scaffold.add_table import add_table
from highwater.scaffold.ddl import DdlTable, tables_of_ddl
from highwater.scaffold.decisions import Addition, Doubt

# what a feed says of its database
TELLS = {"mariadb": "mysql", **{name: name for name in DIALECTS}, **{f"{name}_sort_keys": name for name in DIALECTS}}


def dialect_of(feed: str, format: str | None, settings: dict[str, str], chosen: str | None) -> str:
    """Return which database wrote the DDL of a feed.

    Arguments:
        format, settings: of a feed that is not declared yet. chosen: what the user says; None: nothing.
    Raises: UsageError when neither the user nor the feed says it.
    """
    if chosen:
        return chosen
    declared = declared_feeds().get(feed)
    given = declared.settings if declared else settings
    for name in ("connector", "order", "dialect"):
        if found := TELLS.get(str(given.get(name))):
            return found
    if (declared.format if declared else format) == "changelog":
        return "postgresql"
    raise UsageError(f"say which database wrote the DDL: --dialect {'|'.join(DIALECTS)}.")


def found_columns(table: DdlTable, dialect: str, format: str, settings: dict) -> tuple[FoundColumns, list[Doubt]]:
    """Return the columns of a table of DDL, and what could not be told of them.

    Arguments:
        format, settings: of its feed; only Debezium writes times as numbers, in units that its setting `times` may say.
    Raises: UsageError when a column can be none here.
    """
    parts, doubts = [], []
    is_adaptive = settings.get("times", "adaptive") == "adaptive"
    for name, written in table.columns:
        found = source_type(written, dialect)
        has_unit = format in DEBEZIUM and (is_adaptive or found.unit == UNSIGNED)
        parts.append((name, found.spark, found.unit if has_unit else None))
        if wrong := what_is_wrong(*parts[-1]):
            raise UsageError("; ".join(wrong) + ".")
        if found.doubt:
            doubts.append(Doubt(name, found.doubt))
    return FoundColumns(named_columns(parts, comments=table.comments), table.key), doubts


@dataclass(frozen=True)
class _Given:
    """What the user says of all tables: the arguments of add_tables, and `wrote`, the database that wrote the DDL."""

    ddl: Path
    format: str | None
    settings: dict[str, str]
    dialect: str | None
    wrote: str
    key: str | None
    without_key: bool


def add_tables(
    feed: str,
    ddl: Path,
    format: str | None,
    settings: dict[str, str],
    dialect: str | None,
    only: str | None = None,
    inside: str | None = None,
    key: str | None = None,
    without_key: bool = False,
) -> Iterator[Addition]:
    """Declare every table of a file of DDL that the feed does not have yet.

    Arguments:
        feed: its name. ddl: the file. format, settings: of a feed that is not declared yet.
        dialect: which database wrote the file; None: the feed says it. only: the one table to add, as the source
            calls it, in letters of any case; None: all. inside: the name that it gets; None: see name_inside.
        key: `name,name`, the columns that identify its rows; None: the DDL says it. without_key: nothing does.
    Yields: what became of each, when it is done; what is there already is compared, and nothing of it is written.
    Raises: UsageError when the file cannot be read, or has no table of that name.
    """
    given = _Given(ddl, format, settings, dialect, dialect_of(feed, format, settings, dialect), key, without_key)
    tables = tables_of_ddl(ddl, given.wrote)
    if only is not None:
        names = ", ".join(table.name for table in tables)
        # letter by letter where there is one: Customers and customers are two tables
        exact = [table for table in tables if only in (table.name, whole_name(table))]
        tables = exact or [table for table in tables if only.lower() in _names_of(table)]
        if not tables:
            raise UsageError(f"{ddl} creates no table {only!r}; it creates: {names}.")
    seen = set()
    for table in tables:
        name = f"{feed}.{inside or name_inside(table.name)}"
        try:
            if name in seen:
                another = name_inside(whole_name(table))
                another += "_2" if f"{feed}.{another}" in seen else ""
                raise UsageError(
                    f"a table before it in {ddl} has its name inside the project. Give it another one: "
                    f"{_command(f'{feed}.{another}', whole_name(table), given)}"
                )
            seen.add(name)
            called = whole_name(table) if only is not None and only.lower() == whole_name(table).lower() else table.name
            yield _add(name, table, called, given)
        except UsageError as error:
            yield Addition(name, len(table.columns), table.key, [], [f"not added: {error}"], True)


def whole_name(table: DdlTable) -> str:
    """Return the name of a table with its schema, as `--source-table` has it."""
    return f"{table.schema}.{table.name}" if table.schema else table.name


def _names_of(table: DdlTable) -> tuple[str, ...]:
    return table.name.lower(), name_inside(table.name), whole_name(table).lower()


def _command(name: str, called: str, given: _Given) -> str:
    """Return the command that adds one table of the file; `called` is what raw calls it."""
    feed, _, inside = name.partition(".")
    options = [] if called == inside else ["--source-table", called]
    options += ["--ddl", str(given.ddl)] + (["--dialect", given.dialect] if given.dialect else [])
    options += options_of_new(feed, given.format, given.settings)
    return f"highwater add-table {name} {' '.join(map(in_shell, options))}"


def options_of_new(feed: str, format: str | None, settings: dict[str, str]) -> list[str]:
    """Return the options of a command that say format and settings of a feed; none when it is declared."""
    if not format or feed in declared_feeds():
        return []
    return ["--format", format, *(part for pair in settings.items() for part in ("--setting", "=".join(pair)))]


def _add(name: str, table: DdlTable, called: str, given: _Given) -> Addition:
    """Declare a table; `called` is what raw calls it."""
    feed, _, inside = name.partition(".")
    declared = declared_feeds().get(feed)
    known, settings = (declared.format, declared.settings) if declared else (given.format, given.settings)
    found, doubts = found_columns(table, given.wrote, known, settings)
    if given.key or given.without_key:
        found = FoundColumns(found.columns, chosen_key(given.key, found.columns) if given.key else [])
    if declared and inside in declared.tables:
        notes = differences(entity_of(feed, inside), found, "--key" if given.key else "the DDL")
        return Addition(name, len(found.columns), found.key, [], notes)
    if not found.key and not given.without_key:
        raise UsageError(
            f"it has no primary key in line {table.line}. Where nothing identifies a row it gets a log and no merged "
            f"table: {_command(name, called, given)} --without-key   (where columns do, --key NAME,… in its place)"
        )
    written = add_table(
        name,
        format=None if declared else given.format,
        settings=given.settings,
        without_key=given.without_key,
        source_table=None if called == inside else called,
        found=found,
    )
    key_from = (
        "none, as --without-key says" if given.without_key else "as --key says" if given.key else "as the DDL says"
    )
    units_from = "by the digits behind the second in the DDL (`times` of the feed may say otherwise)"
    columns = len(found.columns)
    return Addition(
        name, columns, found.key, written, found=found, doubts=doubts, key_from=key_from, units_from=units_from
    )


def chosen_key(key: str, columns: list[Column]) -> list[str]:
    """Return the fields of a key that is given by names, as the source has them.

    Arguments:
        key: `name,name`; one that holds a comma stands in double quotes. Letters of any case do where one column is
            meant.
    Raises: UsageError naming what is no column.
    """
    fields, chosen = [column.field for column in columns], []
    for name in next(csv.reader([key], skipinitialspace=True), []):
        alike = [name] if name in fields else [field for field in fields if field.lower() == name.strip().lower()]
        if len(alike) != 1:
            hint = " Names alone, for the DDL has the types." if ":" in name else ""
            raise UsageError(f"--key: {name!r} is no column of it.{hint} Its columns are: {', '.join(fields)}")
        chosen += alike
    if not chosen or len(set(chosen)) < len(chosen):
        raise UsageError(f"--key {key!r} must name one column or more, each once.")
    return chosen


def entity_of(feed: str, table: str) -> str:
    """Return the entity of a declared table."""
    in_raw = declared_feeds()[feed].source_table(table)
    return next(entity for entity, sources in logged_tables() if (feed, in_raw) in sources)


def differences(entity: str, found: FoundColumns, key_from: str = "the DDL") -> list[str]:
    """Return what DDL says otherwise than the declaration of an entity, a sentence each; `key_from` says the key."""
    columns, key = declared_columns(entity)
    declared, sought = {c.field: c for c in columns}, {c.field: c for c in found.columns}
    lines = [f"{field} {column.data_type} is not declared" for field, column in sought.items() if field not in declared]
    lines += [f"{field} is declared and not in the DDL" for field in declared if field not in sought]
    lines += [
        f"{field} is declared as {declared[field].written_type}, and the DDL says {column.written_type}"
        for field, column in sought.items()
        if field in declared and _differ(declared[field], column)
    ]
    names = [column.name for column in columns if column.name in key]
    # what the DDL has no key for may have been given one
    if found.key and names and sorted(names) != sorted(column.name for column in found.key_columns):
        lines.append(f"its key is declared as {', '.join(key)}, and {key_from} says {', '.join(found.key)}")
    return lines


def _differ(declared: Column, found: Column) -> bool:
    # where the DDL tells no unit, a declared one is what somebody knows better
    return declared.data_type != found.data_type or found.unit not in (None, declared.unit)
