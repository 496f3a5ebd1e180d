"""Write a table: its declaration, and the models of its layers: staging, changes, merged, mart."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import yaml

from highwater.catalog.columns import UNSIGNED, Column, FoundColumns, named_columns, parse_columns
from highwater.catalog.declarations import sources_file
from highwater.catalog.entities import declaration_of, declared_columns, sources_of_logs
from highwater.catalog.feeds import FAST_LOADER, FORMATS, Feed, declared_feeds
from highwater.catalog.models import Model, models, with_ref
from highwater.catalog.names import split_name
from highwater.catalog.rendering import render
from highwater.catalog.yaml_files import (
    file_of_model,
    in_yaml,
    model_node,
    setting_in_yaml,
    value_of,
    with_item,
    write_entry,
)
from highwater.formats.declared import carries_parts, tells_truncates
from highwater.formats.formats import DEBEZIUM, TABLE_IN_FOLDERS
from highwater.runtime.errors import UsageError


def logged_tables_text() -> str:
    """Return the list of change logs as dbt reads it."""
    return render("logged_tables.sql", entities=[entity for entity, _ in sources_of_logs()])


def write_logged_tables() -> Path:
    """Write the list of change logs that ledger, rejected_changes and sequence_ties read."""
    path = list_of_tables()
    if not path.exists():
        # dbt reads only files anew that changed, and not those whose macro of a package this one now replaces
        (Path(os.environ.get("DBT_TARGET_PATH", "target")) / "partial_parse.msgpack").unlink(missing_ok=True)
    return _write(path, logged_tables_text())


def list_of_tables() -> Path:
    """Return the file of that list; dbt finds it wherever it is below `macros`."""
    found = sorted(Path("macros").glob("**/logged_tables.sql"))
    return found[0] if found else Path("macros/operations/logged_tables.sql")


def add_table(
    table: str,
    key: str | None = None,
    columns: str | None = None,
    format: str | None = None,
    settings: dict[str, str] | None = None,
    without_key: bool = False,
    insert_only: bool = False,
    history: bool = False,
    source_table: str | None = None,
    found: FoundColumns | None = None,
    shards: dict | None = None,
) -> list[Path]:
    """Write the models of one table.

    Arguments:
        table: `<feed>.<table>`.
        key: `name:type,...`, the columns that identify a row.
        columns: `name:type,...`, the other columns.
        format: the format of a feed that is not declared yet. settings: further settings of that feed, by name.
        without_key: the table has none; it gets a log and nothing behind it.
        insert_only: its keys are inserted and never change.
        history: it gets a history of its rows; of a table that is there already, the history alone is written.
        source_table: what the folder, the files or the records call the table, where that is another name.
        found: its columns and its key where something else than `key` and `columns` says them.
        shards: `column` and `schemas`: it is the tables of that name in several schemas, and the column tells which.
    Returns: the files that were written or changed.
    Raises: UsageError when something is missing, misspelt or there already; nothing is written then.
    """
    feed, name = split_name(table)
    declared = declared_feeds().get(feed)
    if declared is None and format not in FORMATS:
        raise UsageError(f"the feed {feed} is not declared yet; say its format with --format {'|'.join(FORMATS)}.")
    format = declared.format if declared else format
    system = feed.partition("_")[2]
    log = _log_path(feed, system, name)
    entity = log.stem.removesuffix("_changes")
    staging = Path(f"models/staging/{feed}/stg_{feed}__{entity}_changes.sql")
    if history and log.exists() and not (key or columns):
        return _add_history(system, entity)
    source_table = _name_in_raw(source_table or name, name, feed, declared, settings)
    given_shards, shards = shards, {**shards, "column": _column_of_shards(shards).name} if shards else None
    source = Source(feed, name, format, declared, settings or {}, source_table, shards)
    if shards and _is_export(declared, settings):
        raise UsageError(
            f"exports have no shards: one export has the rows of all of them, with the column {shards['column']!r}. "
            "Leave --shards and --shard-column out."
        )
    if _is_export(declared, settings):
        return _add_export(source, entity, log, key or columns)
    if staging.exists():
        raise UsageError(
            f"{staging} is there already. To change the table: highwater alter {entity} (see highwater alter --help); "
            f"to add it anew, first: highwater remove-table {feed}.{name}"
        )
    if log.exists():
        return _add_feed(source, entity, staging, log, key or columns)
    if shards and without_key:
        raise UsageError("--without-key and --shards exclude each other: rows of shards are told apart by their key.")
    if without_key and key:
        raise UsageError("--without-key and --key exclude each other.")
    if without_key and history:
        raise UsageError("--without-key and --history exclude each other: rows without a key have no versions.")
    if not (found.key if found else key) and not without_key:
        raise UsageError(
            "say which columns identify a row, for example --key order_id:bigint. A table that has no key can have a "
            "log, but no merged table: --without-key."
        )
    if found is None:
        every = parse_columns(",".join(filter(None, [key, columns])))
        found = FoundColumns(every, [column.field for column in every[: len(parse_columns(key)) if key else 0]])
    if format not in DEBEZIUM:  # nobody else writes them with a sign
        signless = [replace(each, unit=None) if each.unit == UNSIGNED else each for each in found.columns]
        found = replace(found, columns=signless)
    if shards:
        found = _with_shards(found, given_shards)
    every, key_columns = found.columns, [] if without_key else found.key_columns
    if format not in DEBEZIUM and (with_unit := next((column for column in every if column.unit), None)):
        raise UsageError(
            f"column {with_unit.field!r} has the unit {with_unit.unit!r}, but only in records of Debezium may a number "
            "stand for another value; leave the unit out."
        )
    declaration = Path(f"models/tables/{system}/{entity}.yml")
    if declaration.exists():
        raise UsageError(f"{declaration} is there already; edit it, or remove it first.")
    values = _values(source, entity) | {
        "columns": every,
        "own_names": any(column.mart_name != column.name for column in every),
        "key": [column.name for column in key_columns],
        "mart_key": [column.mart_name for column in key_columns],
        "insert_only": insert_only,
    }
    written = [_declare_source(source, every)]
    models = [(staging, "staging"), (log, "changes")]
    if not without_key:
        models.append((Path(f"models/merged/{system}/{entity}_merged.sql"), "merged"))
        models.append((Path(f"models/marts/{system}/{entity}.sql"), "mart"))
    _write(declaration, render("table.yml", **values))
    _describe(declaration, "staging", values)
    if history:
        models.append((Path(f"models/history/{system}/{entity}_history.sql"), "history"))
        _describe(declaration, "history", values)
    for path, template in models:
        _write(path, render(f"{template}.sql", **values))
    return [*written, declaration, *(path for path, _ in models), write_logged_tables()]


def _column_of_shards(shards: dict) -> Column:
    """Return the column that tells the shard of a row."""
    return named_columns([(shards["column"], "string", None)])[0]


def _with_shards(found: FoundColumns, shards: dict) -> FoundColumns:
    """Return the columns of a table and its key with that of its shards before them."""
    column = _column_of_shards(shards)
    others = named_columns([(each.field, each.data_type, each.unit) for each in found.columns], [column])
    if [each.name for each in others] != [each.name for each in found.columns]:
        raise UsageError(
            f"the table has a column {column.name!r} itself; give the column of its shards another name with "
            "--shard-column."
        )
    return replace(found, columns=[column, *found.columns], key=[column.field, *found.key])


def is_known(feed: str, name: str, settings: dict[str, str]) -> bool:
    """Return whether a table of a feed, or of another feed of its system, is declared, or is to be of exports."""
    system = feed.partition("_")[2]
    return _is_export(declared_feeds().get(feed), settings) or any(
        Path(f"models/changes/{system}/{entity}_changes.sql").exists() for entity in (name, f"{system}_{name}")
    )


def _log_path(feed: str, system: str, name: str) -> Path:
    """Return where the log of a table of some system is, or where it can be: no two models have one name.

    Raises: UsageError when another table has the names of its models.
    """
    there = {path.stem for folder in ("models", "snapshots") for path in Path(folder).glob("**/*.sql")}
    there |= {path.stem for path in Path("seeds").glob("**/*.csv")}
    for entity in (name, f"{system}_{name}"):
        log = Path(f"models/changes/{system}/{entity}_changes.sql")
        models = {entity, *(f"{entity}_{layer}" for layer in ("changes", "merged", "history"))}
        if log.exists() or not (there & models or f"stg_{feed}__{entity}_changes" in there):
            return log
    raise UsageError(
        f"models called {name} and {system}_{name} are there already; give the table another name, and say with "
        "--source-table what the source calls it."
    )


def _name_in_raw(source_table: str, table: str, feed: str, declared, settings) -> str:
    """Return what raw calls a table: the folder as it is, what files and records tell in lower case but for quotes.

    Raises: UsageError when no folder can be called so, or another table of the feed reads these records.
    """
    layout = declared.layout if declared else (settings or {}).get("layout", TABLE_IN_FOLDERS)
    if layout == TABLE_IN_FOLDERS:
        if re.search(r"[/\x00]|^\.{1,2}$", source_table) or len(source_table.encode()) > 255:
            raise UsageError(f"no folder can be called {source_table!r}, and folders tell the tables of {feed}.")
    elif '"' not in source_table:
        source_table = source_table.lower()
    for other in declared.tables if declared else ():
        if other != table and declared.source_table(other) == source_table:
            raise UsageError(f"the records of {source_table!r} are those of the table {other} of {feed} already.")
    return source_table


class Source(NamedTuple):
    """A table of a feed that is to be declared.

    Attributes:
        feed, table: as dbt will name them. format, settings: of the feed; settings are those that are given now.
        declared: the feed, where it is declared already. source_table: what raw calls the table.
        shards: `column` and `schemas`; None: it has none.
    """

    feed: str
    table: str
    format: str
    declared: Feed | None
    settings: dict[str, str]
    source_table: str
    shards: dict | None = None

    @property
    def every_setting(self) -> dict:
        """The settings of the feed, declared or given."""
        return {**(self.declared.settings if self.declared else {}), **self.settings}


def _values(source: Source, entity: str) -> dict:
    format = FORMATS[source.format]
    return {
        "feed": source.feed,
        "table": source.table,
        "source_table": source.source_table,
        "entity": entity,
        "format": format,
        "macro": format.macro,
        "shards": source.shards,
        "partial_images": carries_parts(source.format, source.every_setting),
        "truncates": tells_truncates(source.format, source.every_setting),
    }


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _describe(path: Path, template: str, values: dict) -> Path:
    """Let a declaration describe one more model."""
    entry = render(f"{template}.yml", **values)
    text = path.read_text()
    models = value_of(yaml.compose(text, FAST_LOADER), "models")
    model = yaml.load(entry, FAST_LOADER)[0]["name"]
    write_entry(path, text, with_item(text, models, entry), lambda: model_node(path.read_text(), model), model)
    return path


def _declare_source(source: Source, columns: list[Column]) -> Path:
    feed, table, format, declared, settings, source_table, shards = source
    path = sources_file(feed) if declared else _sources_path(feed)
    if declared and table in declared.tables:
        if shards and not declared.shards_of(table):
            raise UsageError(f"{path} declares {table} without shards; take it out there first.")
        return path
    is_export = _is_export(declared, settings)
    holds_baseline = not is_export and "changes" not in FORMATS[format].roles
    meta = {"source_table": in_yaml(source_table)} if source_table != table else {}
    if shards:
        schemas = [in_yaml(pattern) for pattern in shards["schemas"]]
        patterns = schemas[0] if len(schemas) == 1 else f"[{', '.join(schemas)}]"
        meta["shards"] = f"{{column: {in_yaml(shards['column'])}, schemas: {patterns}}}"
    if FORMATS[format].names_columns:
        delivered = [column.field for column in columns if not shards or column.name != shards["column"]]
        # DMS writes it behind the operation, before the row
        time = source.every_setting.get("timestamp_column")
        delivered = [*([time] if time and time not in delivered else []), *delivered]
        meta["columns"] = f"[{', '.join(map(in_yaml, delivered))}]"
    given = {name: setting_in_yaml(value) for name, value in settings.items()}
    opening = render(
        "sources.yml",
        feed=feed,
        format=format,
        settings=given,
        is_export=is_export,
        holds_baseline=holds_baseline,
    )
    entry = render(
        "source_table.yml", feed=feed, table=table, source_table=source_table, meta=meta, is_export=is_export
    )
    _write_source(path, (path.read_text() if path.exists() else opening).rstrip("\n") + "\n" + entry, feed, table)
    return path


def _sources_path(feed: str) -> Path:
    return Path(f"models/staging/{feed}/_{feed}__sources.yml")


def _write_source(path: Path, text: str, feed: str, table: str) -> None:
    """Write the declaration of a feed; what was there stays when the new one is wrong.

    Raises: UsageError saying what is wrong with it.
    """
    before, folder_was_there = path.read_text() if path.exists() else None, path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    try:
        if table not in declared_feeds()[feed].tables:
            raise UsageError(
                f"{path}: the list of tables must be the last thing in the file; the new table did not get in."
            )
    except UsageError:
        path.write_text(before) if before is not None else path.unlink()
        if not folder_was_there:
            path.parent.rmdir()
        raise


def _add_feed(source, entity, staging, log, given) -> list[Path]:
    """A further feed of a table that is there: its staging model, and its place in the change log."""
    if given:
        raise UsageError(f"{entity} is there already, with its key and columns; leave --key and --columns out.")
    with_ref(Model(log), staging.stem)  # before anything is written
    shards = source.shards
    if shards and shards["column"] not in declared_columns(entity)[1]:
        raise UsageError(
            f"{entity} is there already, and its key has no column {shards['column']!r}, by which shards could be told "
            "apart. Remove the table, and add it with --shards."
        )
    further = FurtherFeed(entity, source, is_read=False)
    further.write(lambda: None)
    return further.files


@dataclass(frozen=True)
class FurtherFeed:
    """A feed that is to bring records of a table that is there, whatever it and its system are called.

    Attributes:
        entity: the table. source: that brings its records. is_read: its log reads it already.
    """

    entity: str
    source: Source
    is_read: bool

    @property
    def feed(self) -> str:
        """The feed, as dbt will name it."""
        return self.source.feed

    @property
    def table(self) -> str:
        """Its table, as dbt will name it."""
        return self.source.table

    @property
    def source_table(self) -> str:
        """What raw calls the table."""
        return self.source.source_table

    @property
    def staging(self) -> Path:
        """The file of its staging model."""
        return Path(f"models/staging/{self.feed}/stg_{self.feed}__{self.entity}_changes.sql")

    @property
    def log(self) -> Path:
        """The file of the log that reads it."""
        return models("changes")[f"{self.entity}_changes"].path

    @property
    def files(self) -> list[Path]:
        """The files that are written or changed."""
        declared = sources_file(self.feed) if self.feed in declared_feeds() else _sources_path(self.feed)
        return [declared, declaration_of(self.entity), self.staging, self.log, list_of_tables()]

    def write(self, before_it_counts: Callable[[], None]) -> None:
        """Write what is not there yet of its declaration, so that it may be done again after a kill.

        Arguments:
            before_it_counts: called when all is there but for its place in the log.
        """
        values = _values(self.source, self.entity)
        _declare_source(self.source, declared_columns(self.entity)[0])
        if not self.staging.exists():
            _write(self.staging, render("staging.sql", **values))
        if file_of_model(self.staging.stem) is None:
            _describe(declaration_of(self.entity), "staging", values)
        before_it_counts()
        if not self.is_read:
            _write(self.log, with_ref(Model(self.log), self.staging.stem))
        write_logged_tables()


def further_feed(
    entity: str, table: str, format: str | None, settings: dict[str, str], source_table: str | None = None
) -> FurtherFeed:
    """Return the feed that is to bring records of a table too; nothing is written yet.

    Arguments:
        entity: the table. table: `<feed>.<table>`. format, settings: of a feed that is not declared yet.
        source_table: what the source calls the table, where that is another name.
    Raises: UsageError when something is missing or misspelt, or another table has these records.
    """
    feed, name = split_name(table)
    declared = declared_feeds().get(feed)
    if declared is None and format not in FORMATS:
        raise UsageError(f"the feed {feed} is not declared yet; say its format with --format {'|'.join(FORMATS)}.")
    if declared and (format or settings):
        raise UsageError(
            f"the feed {feed} is declared already, in {sources_file(feed)}; leave --format and --setting out."
        )
    if _is_export(declared, settings):
        raise UsageError(f"{feed} holds exports; they are compared with a table, and are none of its changes.")
    reading = {sources: other for other, of_log in sources_of_logs() for sources in of_log}
    if (other := reading.get((feed, name), entity)) != entity:
        raise UsageError(
            f"{table} brings the records of {other} already. Take that out first: highwater remove-table {table}"
        )
    mine = [one for of_feed, one in dict(sources_of_logs())[entity] if of_feed == feed]
    if mine and mine != [name]:
        raise UsageError(f"{feed} brings records of {entity} already, as {feed}.{mine[0]}.")
    in_raw = _name_in_raw(source_table or name, name, feed, declared, settings)
    format = declared.format if declared else format
    in_raw = declared.source_table(name) if declared and mine else in_raw
    return FurtherFeed(entity, Source(feed, name, format, declared, settings, in_raw), bool(mine))


def _is_export(declared, settings) -> bool:
    """Return whether a feed holds exports, as it is declared or about to be."""
    return (settings or {}).get("role") == "export" or bool(declared and declared.role == "export")


def _add_history(system, entity) -> list[Path]:
    """The history of a table that is there."""
    path = Path(f"models/history/{system}/{entity}_history.sql")
    if path.exists():
        raise UsageError(f"{path} is there already; edit it.")
    columns, key = declared_columns(entity)
    if not key:
        raise UsageError(f"{entity} has no key, so its rows have no versions.")
    values = {"entity": entity, "columns": columns, "key": key}
    return [_write(path, render("history.sql", **values)), _describe(declaration_of(entity), "history", values)]


def _add_export(source, entity, log, given) -> list[Path]:
    """Exports of a table that is there: their staging model, and the test of the mart that compares with them."""
    feed, table, *_ = source
    if not log.exists():
        raise UsageError(f"there is no table {table} of that system to compare with; add it first.")
    if given:
        raise UsageError(f"{entity} is there already, with its key and columns; leave --key and --columns out.")
    staging = Path(f"models/staging/{feed}/stg_{feed}__{entity}.sql")
    if staging.exists():
        raise UsageError(f"{staging} is there already; edit it.")
    mart = file_of_model(entity)
    text = mart.read_text() if mart else ""
    tests = value_of(model_node(text, entity), "data_tests") if mart else None
    if tests is None:
        raise UsageError(f"the YAML of {entity} has no data_tests, among which matches_export would stand.")
    columns, key = declared_columns(entity)
    by_name = {column.name: column for column in columns}
    values = _values(source, entity) | {"mart_key": [by_name[name].mart_name for name in key]}
    written = [_declare_source(source, columns), _write(staging, render("export.sql", **values))]
    test = render("matches_export.yml", **values)
    write_entry(mart, text, with_item(text, tests, test), lambda: staging.stem in mart.read_text(), test)
    declaration = _describe(declaration_of(entity), "export", values)
    return [*written, *dict.fromkeys([mart, declaration])]
