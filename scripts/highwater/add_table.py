"""Write the models of one table: staging, changes, merged, mart, and their YAML."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from jinja2 import Environment, PackageLoader

from highwater.columns import VERSIONED, Column, contract, in_docs, parse_columns
from highwater.errors import UsageError
from highwater.feeds import FAST_LOADER, FORMATS, NAME, declared_feeds, jinja_text, plain_text, sql_text
from highwater.formats import TABLE_IN_FOLDERS
from highwater.package import is_the_project
from highwater.printable import in_shell
from highwater.rebuild import log_of

LOGGED = ["verdict", "is_tied", "log_batch"]
FOLDED = ["column_orders", "deleted_order", "is_complete"]
NOT_MERGED = {"present_columns", "is_derived", "rejection_reason", "rejection_detail", "record"}
# what dbt, which renders texts in YAML, would change: Jinja's marks, and line ends
IN_JINJA = re.compile(r"\{[{%#]|[%#}]\}|\r|\n\Z")
NOT_IN_YAML = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
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


@dataclass(frozen=True)
class StagingOfFormat:
    """What the staging model of a format is made of.

    Attributes:
        macro: reads its records. by_table: the macro asks for the source table, to know the columns of its files.
        binary_encoding: of bytes in text. has_present: records may carry some columns only.
        has_old_key: updates may carry the key that they leave. has_place: what ties is told apart by its place.
        has_row_number: each row has its number in the file. truncates: it tells of truncates.
        names_fields: records name their fields.
    """

    macro: str
    by_table: bool = False
    binary_encoding: str = "base64"
    has_present: bool = False
    has_old_key: bool = False
    has_place: bool = False
    has_row_number: bool = False
    truncates: bool = False
    names_fields: bool = True

    @property
    def typed(self) -> str:
        """The arguments of typed_columns behind the entity."""
        encoding = f", binary_encoding='{self.binary_encoding}'" if self.binary_encoding != "base64" else ""
        return encoding + ", has_present=true" * self.has_present


STAGING = {
    "datastream-json": StagingOfFormat("datastream_records"),
    "csv": StagingOfFormat("exported_records"),
    "parquet": StagingOfFormat("exported_records"),
    "tungsten-csv": StagingOfFormat(
        "tungsten_records",
        by_table=True,
        binary_encoding="hex",
        has_place=True,
        has_row_number=True,
        names_fields=False,
    ),
    "arcion-json": StagingOfFormat("arcion_json_records", has_present=True, has_old_key=True, has_place=True),
    "arcion-csv": StagingOfFormat(
        "arcion_csv_records", by_table=True, has_present=True, has_old_key=True, has_place=True, names_fields=False
    ),
    "datastream-gcs-json": StagingOfFormat("datastream_file_records", binary_encoding="hex", has_place=True),
    "datastream-avro": StagingOfFormat("datastream_file_records", has_place=True),
    "debezium-json": StagingOfFormat(
        "debezium_records", has_present=True, has_old_key=True, has_place=True, truncates=True
    ),
    "dms-csv": StagingOfFormat("dms_records", by_table=True, has_old_key=True, has_place=True, names_fields=False),
    "dms-parquet": StagingOfFormat("dms_records", by_table=True, has_old_key=True, has_place=True),
    "changelog": StagingOfFormat("changelog_records", binary_encoding="hex", has_old_key=True, truncates=True),
}


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
    jinja.filters |= {"yaml": in_yaml, "sql": in_sql, "sql_text": sql_text, "jinja": jinja_text, "docs": in_docs}
    # generic tests of a package are called by its name, and those of the project as they are
    jinja.globals["of_package"] = lambda: "" if is_the_project() else "highwater."
    return jinja.get_template(name).render(**values)


def in_yaml(text: str) -> str:
    """Return a text as it stands in the YAML of a dbt project, so that dbt reads that text.

    It is quoted where YAML would read something else (`no`, `qty [kg]`), and put into Jinja where it holds its marks.
    """
    if IN_JINJA.search(text):
        text = f"{{{{ {jinja_text(text)} }}}}"
    is_read_so = not NOT_IN_YAML.search(text) and all(
        _read_yaml(form) == {"text": text} for form in (f"{{text: {text}}}", f"text: {text}")
    )
    quoted = json.dumps(text, ensure_ascii=False)
    return text if is_read_so else NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _read_yaml(text: str):
    try:
        return yaml.load(text, FAST_LOADER)
    except (yaml.YAMLError, ValueError):  # `0b_` looks like a number, `2024-99-99` like a date
        return None


def in_sql(text: str) -> str:
    """Return a text as it stands in the SQL of a model, in quotes."""
    quoted = sql_text(text)
    return f"{{{{ {jinja_text(quoted)} }}}}" if IN_JINJA.search(quoted) else quoted


def as_yaml_reads_it(value: str):
    """Return what YAML makes of the value of a setting as it was typed; the text itself where YAML cannot read it."""
    read = (_read_yaml(f"setting: {value}") or {}).get("setting")
    return value if read is None or (isinstance(read, str) and "|" in value) else read


def setting_in_yaml(value: str) -> str:
    """Return the value of a setting as it was typed, quoted where YAML would not read it (`|`)."""
    return in_yaml(value) if as_yaml_reads_it(value) == value else value


def _sources_of_logs() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every change log of the project with its (feed, table) as dbt names them, read from the models."""
    tables = []
    for path in sorted(Path("models/changes").glob("**/*_changes.sql"), key=lambda path: path.name):
        entity = path.stem.removesuffix("_changes")
        sources = []
        for feed in re.findall(rf"ref\('stg_(\w+?)__{entity}_changes'\)", path.read_text()):
            staging = Path(f"models/staging/{feed}/stg_{feed}__{entity}_changes.sql")
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


def write_logged_tables() -> Path:
    """Write the list of change logs that ledger, rejected_changes and sequence_ties read."""
    path = Path("macros/operations/logged_tables.sql")
    names = {
        in_raw: table
        for (_, in_dbt), (_, sources) in zip(_sources_of_logs(), logged_tables(), strict=True)
        for (_, table), in_raw in zip(in_dbt, sources, strict=True)
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render("logged_tables.sql", tables=logged_tables(), names=names))
    return path


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
    values = _values(source, entity, every) | {
        "key": [column.name for column in key_columns],
        "mart_key": [column.mart_name for column in key_columns],
        "insert_only": insert_only,
    }
    written = [_declare_source(source, every)]
    models = [(staging, "staging"), (log, "changes")]
    if not without_key:
        models.append((Path(f"models/merged/{system}/{entity}_merged.sql"), "merged"))
        models.append((Path(f"models/marts/{system}/{entity}.sql"), "mart"))
    if history:
        models.append((Path(f"models/history/{system}/{entity}_history.sql"), "history"))
    for path, template in models:
        written += _write_model(path, template, values)
    return [*written, write_logged_tables()]


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


def _values(source, entity, columns) -> dict:
    feed, table, format, declared, settings, source_table = source
    staging = STAGING[format]
    if "no_supplement" in {**(declared.settings if declared else {}), **(settings or {})}:
        staging = replace(staging, has_present=True)
    arguments = ["'records'", f"'{feed}'", *([f"'{table}'"] if staging.by_table else []), f"'{entity}'"]
    return {
        "feed": feed,
        "table": table,
        "source_table": source_table,
        "entity": entity,
        "records": f"highwater.{staging.macro}({', '.join(arguments)})",
        "format": staging,
        "columns": columns,
        "contract": contract(),
        "logged": LOGGED,
        "versioned": VERSIONED,
        "merged": [name for name in contract() if name not in NOT_MERGED]
        + ["log_batch"]
        + FOLDED * staging.has_present,
    }


def _write_model(path: Path, template: str, values: dict) -> list[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(f"{template}.sql", **values))
    description = path.with_suffix(".yml")
    description.write_text(render(f"{template}.yml", **values))
    return [path, description]


def _declare_source(source, columns: list[Column]) -> Path:
    feed, table, format, declared, settings, source_table = source
    path = Path(f"models/staging/{feed}/_{feed}__sources.yml")
    if declared and table in declared.tables:
        return path
    is_export = _is_export(declared, settings)
    holds_baseline = not is_export and "changes" not in FORMATS[format].roles
    meta = {"source_table": in_yaml(source_table)} if source_table != table else {}
    if STAGING[format].by_table:
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
    opening = re.search(rf"arriving_batches\('{entity}', \[\n", text)
    if opening is None:
        raise UsageError(f"{log} has no list of staging models behind arriving_batches; add {staging.stem} by hand.")
    columns, _ = declared_columns(entity)
    written = [_declare_source(source, columns)]
    written += _write_model(staging, "staging", _values(source, entity, columns))
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
    values = {"entity": entity, "columns": columns, "key": key, "versioned": VERSIONED}
    return _write_model(path, "history", values)


def _add_export(source, entity, log, given) -> list[Path]:
    """Exports of a table that is there: their staging model, and the test of the mart that compares with them."""
    feed, table, format, *_ = source
    if not log.exists():
        raise UsageError(f"there is no table {table} of that system to compare with; add it first.")
    if given:
        raise UsageError(f"{entity} is there already, with its key and columns; leave --key and --columns out.")
    staging = Path(f"models/staging/{feed}/stg_{feed}__{entity}.sql")
    if staging.exists():
        raise UsageError(f"{staging} is there already; edit it.")
    mart = next(iter(Path("models/marts").glob(f"*/{entity}.yml")), None)
    text = mart.read_text() if mart else ""
    key = re.search(r"has_unique_key:\s+arguments:\s+key: (\[.*\])\n", text)
    if not key:
        raise UsageError(f"the YAML of {entity} has no test has_unique_key, behind which matches_export would stand.")
    columns = declared_columns(entity)[0]
    written = [_declare_source(source, columns)]
    # what databases write for bytes into text
    encoding = ", binary_encoding='hex'" if format == "csv" else ""
    values = _values(source, entity, columns) | {"encoding": encoding}
    written += _write_model(staging, "export", values)
    test = render("matches_export.yml", feed=feed, entity=entity, key=key[1])
    mart.write_text(text[: key.end()] + test + text[key.end() :])
    return [*written, mart]


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
