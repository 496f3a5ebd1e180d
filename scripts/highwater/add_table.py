"""Write a table: its declaration, and the models of its layers: staging, changes, merged, mart."""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from jinja2 import Environment, PackageLoader

from highwater.columns import Column, in_docs, parse_columns
from highwater.errors import UsageError
from highwater.feeds import FAST_LOADER, FORMATS, NAME, declared_feeds, jinja_text, plain_text, sql_text
from highwater.formats import TABLE_IN_FOLDERS
from highwater.package import is_the_project
from highwater.printable import in_shell
from highwater.rebuild import declaration_of, log_of
from highwater.yaml_files import (
    file_of_model,
    in_yaml,
    model_node,
    setting_in_yaml,
    value_of,
    with_item,
    write_entry,
)

LONGEST_NAME = 200


@dataclass(frozen=True)
class FoundColumns:
    """The columns of a table, in the order of the source.

    Attributes:
        columns: all of them. key: the fields that identify a row, in their order; none: it has no key.
    """

    columns: list[Column]
    key: list[str]

    @property
    def key_columns(self) -> list[Column]:
        """The columns of the key."""
        by_field = {column.field: column for column in self.columns}
        return [by_field[field] for field in self.key]


def render(name: str, **values) -> str:
    """Return a file of the folder `templates` with these values in it."""
    jinja = Environment(
        loader=PackageLoader("highwater"),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters |= {"yaml": in_yaml, "sql_text": sql_text, "jinja": jinja_text, "docs": in_docs}
    jinja.globals["column_line"] = column_line
    # generic tests of a package are called by its name, and those of the project as they are
    jinja.globals["of_package"] = lambda: "" if is_the_project() else "highwater."
    return jinja.get_template(name).render(**values)


def column_line(column: Column) -> str:
    """Return the entry of a column in a declaration; a long description stands in a line of its own."""
    parts = [f"name: {in_yaml(column.name)}", f"data_type: {in_yaml(column.data_type)}"]
    if column.settings:
        settings = ", ".join(f"{name}: {in_yaml(value)}" for name, value in column.settings.items())
        parts.append(f"config: {{meta: {{{settings}}}}}")
    line = f"- {{{', '.join(parts)}"
    if not column.comment:
        return f"{line}}}"
    described = f"description: {in_yaml(column.description)}}}"
    return f"{line}, {described}" if len(line) + len(described) < 100 else f"{line},\n   {described}"


def _sources_of_logs() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every change log of the project with its (feed, table) as dbt names them, read from the models."""
    tables = []
    for path in sorted(Path("models/changes").glob("**/*_changes.sql"), key=lambda path: path.name):
        entity = path.stem.removesuffix("_changes")
        sources = []
        for feed in re.findall(rf"ref\('stg_(\w+?)__{entity}_changes'\)", path.read_text()):
            staging = Path(f"models/staging/{feed}/stg_{feed}__{entity}_changes.sql")
            if not staging.exists():
                raise UsageError(
                    f"{path} reads {staging.stem}, and {staging} is not there. Take it back from version control, or "
                    "take its line out."
                )
            sources += re.findall(r"source\('(\w+)', '(\w+)'\)", staging.read_text())
        tables.append((entity, sources))
    return tables


def logged_tables() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every change log of the project with the (feed, source_table) that feed it, as raw has them."""
    feeds = declared_feeds()

    def in_raw(feed, table):
        return feed, feeds[feed].source_table(table) if feed in feeds else table

    return [(entity, [in_raw(*source) for source in sources]) for entity, sources in _sources_of_logs()]


def known_table(table: str) -> str:
    """Return the name of an entity as it was given.

    Raises: UsageError when there is no such entity; it says which ones there are.
    """
    known = sorted(entity for entity, _ in logged_tables())
    if table not in known:
        raise UsageError(f"there is no table {table!r}; tables are: {', '.join(known) or 'none'}.")
    return table


def logged_tables_text() -> str:
    """Return the list of change logs as dbt reads it."""
    tables = logged_tables()
    names = {
        in_raw: table
        for (_, in_dbt), (_, sources) in zip(_sources_of_logs(), tables, strict=True)
        for (_, table), in_raw in zip(in_dbt, sources, strict=True)
    }
    return render("logged_tables.sql", tables=tables, names=names)


def write_logged_tables() -> Path:
    """Write the list of change logs that ledger, rejected_changes and sequence_ties read."""
    return _write(Path("macros/operations/logged_tables.sql"), logged_tables_text())


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
    source = (feed, name, format, declared, settings, source_table)
    if _is_export(declared, settings):
        return _add_export(source, entity, log, key or columns)
    if staging.exists():
        raise UsageError(f"{staging} is there already; edit it, or remove the models of {entity} first.")
    if log.exists():
        return _add_feed(source, entity, staging, log, key or columns)
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
    every, key_columns = found.columns, [] if without_key else found.key_columns
    if format != "debezium-json" and (with_unit := next((column for column in every if column.unit), None)):
        raise UsageError(
            f"column {with_unit.field!r} has the unit {with_unit.unit!r}, but only in debezium-json may a number stand "
            "for a time; leave the unit out."
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


def is_known(feed: str, name: str, settings: dict[str, str]) -> bool:
    """Return whether a table of a feed, or of another feed of its system, is declared, or is to be of exports."""
    system = feed.partition("_")[2]
    return _is_export(declared_feeds().get(feed), settings) or any(
        Path(f"models/changes/{system}/{entity}_changes.sql").exists() for entity in (name, f"{system}_{name}")
    )


def split_name(table: str) -> tuple[str, str]:
    """Return feed and table of `<feed>.<table>`.

    Raises: UsageError when it is not written so, or a name is no name inside the project; it says what to type.
    """
    feed, _, name = table.partition(".")
    if not NAME.fullmatch(feed) or not name or "_" not in feed or "__" in feed:
        raise UsageError(
            f"{table!r} is not <vendor>_<system>.<table> in lower-case letters, digits and _, "
            "for example datastream_user1.orders."
        )
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name of a table inside the project: lower-case letters, digits and _, a letter first. "
            f"Give it one, and say what the source calls it: {declaring(feed, name)}"
        )
    if len(f"stg_{feed}__{name}_changes") > LONGEST_NAME:
        raise UsageError(
            f"{name!r} is too long: its models would have names of more than {LONGEST_NAME} characters. "
            "Give it a shorter one, and say with --source-table what the source calls it."
        )
    return feed, name


def name_inside(source_table: str) -> str:
    """Return the name that a table gets inside the project; it is its own where that is one."""
    name = re.sub("[^a-z0-9]+", "_", source_table.lower()).strip("_")
    return (name if NAME.fullmatch(name) else f"t_{name}".rstrip("_"))[:63]


def declaring(feed: str, source_table: str) -> str:
    """Return the command that declares a table which the source calls so, but for its columns."""
    name = name_inside(source_table)
    told = "" if name == source_table else f" --source-table {in_shell(source_table)}"
    return f"highwater add-table {feed}.{name}{told}"


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


def _values(source, entity) -> dict:
    feed, table, format, declared, settings, source_table = source
    # without supplemental logging, images carry the columns that changed
    is_partial = "no_supplement" in {**(declared.settings if declared else {}), **(settings or {})}
    return {
        "feed": feed,
        "table": table,
        "source_table": source_table,
        "entity": entity,
        "format": FORMATS[format],
        "macro": FORMATS[format].macro,
        "partial_images": is_partial or FORMATS[format].partial_images,
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


def _declare_source(source, columns: list[Column]) -> Path:
    feed, table, format, declared, settings, source_table = source
    path = Path(f"models/staging/{feed}/_{feed}__sources.yml")
    if declared and table in declared.tables:
        return path
    is_export = _is_export(declared, settings)
    holds_baseline = not is_export and "changes" not in FORMATS[format].roles
    meta = {"source_table": in_yaml(source_table)} if source_table != table else {}
    if FORMATS[format].names_columns:
        meta["columns"] = f"[{', '.join(in_yaml(column.field) for column in columns)}]"
    given = {name: setting_in_yaml(value) for name, value in (settings or {}).items()}
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
    text = log.read_text()
    opening = re.search(rf"(?:change_log|arriving_batches)\('{entity}', \[\n", text)
    if opening is None:
        raise UsageError(f"{log} has no list of staging models behind change_log; add {staging.stem} by hand.")
    columns, _ = declared_columns(entity)
    values = _values(source, entity)
    written = [_declare_source(source, columns), _write(staging, render("staging.sql", **values))]
    written.append(_describe(declaration_of(entity), "staging", values))
    log.write_text(f"{text[: opening.end()]}    ref('{staging.stem}'),\n{text[opening.end() :]}")
    return [*written, log, write_logged_tables()]


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


def column_in_other_letters(entity: str, field: str) -> Column | None:
    """Return the column that is declared for a field of the same name in other letters, upper and lower case."""
    return next((c for c in declared_columns(entity)[0] if c.field.lower() == field.lower()), None)


def declared_columns(entity: str) -> tuple[list[Column], list[str]]:
    """Return the columns and the key of an entity, as the YAML of its log declares them."""
    declared = log_of(entity)
    columns = []
    for c in declared["columns"]:
        if "data_type" in c:
            meta = (c.get("config") or {}).get("meta", {})
            field = plain_text(str(meta.get("field", c["name"])))
            columns.append(Column(c["name"], field, c["data_type"], meta.get("unit")))
    return columns, declared["config"]["meta"].get("key", [])
