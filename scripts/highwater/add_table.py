"""Write the models of one table: staging, changes, merged, mart, and their YAML."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from jinja2 import Environment, PackageLoader

from highwater.errors import UsageError
from highwater.feeds import FORMATS, NAME, declared_feeds
from highwater.rebuild import log_of

LOGGED = ["verdict", "is_tied", "is_new_key", "log_batch"]
LAYERS = ["is_pending", "is_new"]
VERSIONED = ["valid_from_sequence", "valid_to_sequence", "valid_from", "valid_to", "is_current", "log_batch"]
FOLDED = ["column_orders", "deleted_order", "is_complete"]
NOT_MERGED = {"present_columns", "is_derived", "rejection_reason", "rejection_detail", "record"}
TYPE = re.compile(
    r"string|boolean|tinyint|smallint|int|bigint|float|double|date|timestamp|timestamp_ntz|binary|decimal\(\d+, ?\d+\)"
)


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


@dataclass(frozen=True)
class Column:
    """A column of an entity.

    Attributes:
        name: inside the project. field: in the vendor's record. data_type: in Spark's words.
        mart_name: in the mart.
    """

    name: str
    field: str
    data_type: str
    mart_name: str

    @property
    def description(self) -> str:
        """The description that is written until somebody writes a better one."""
        return f"{self.field} at the source."

    @property
    def version_name(self) -> str:
        """Its name in the history, which has columns of its own."""
        return f"source_{self.mart_name}" if self.mart_name in VERSIONED else self.mart_name


def parse_columns(text: str) -> list[Column]:
    """Read `name:type,name:type`; commas inside a type's brackets are part of it.

    Returns: the columns, with lower-case names; a name that the project uses itself gets the prefix `source_`.
    Raises: UsageError naming the part that is wrong.
    """
    columns, wrong = [], []
    for part in re.split(r",(?![^(]*\))", text):
        field, _, data_type = (piece.strip() for piece in part.partition(":"))
        data_type = data_type.lower()
        if not field or not data_type:
            wrong.append(f"column {part.strip()!r} is not written as name:type, for example total:decimal(12,2)")
        elif not TYPE.fullmatch(data_type):
            wrong.append(f"column {field!r} has the unknown type {data_type!r}")
        elif re.search(r"['\\]", field):
            wrong.append(f"column {field!r} has a quote or a backslash in its name, which SQL could not name")
        mart_name = re.sub(r"\W", "_", field).lower()
        taken = stored_columns()
        columns.append(Column(f"source_{mart_name}" if mart_name in taken else mart_name, field, data_type, mart_name))
    if wrong:
        raise UsageError(
            f"{'; '.join(wrong)}. Types are: string, boolean, tinyint, smallint, int, bigint, float, double, "
            "decimal(p,s), date, timestamp, timestamp_ntz, binary."
        )
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"column {twice!r} is given twice.")
    return columns


def contract() -> list[str]:
    """Return the columns of the change contract, in their order, as the macro contract_columns has them."""
    return _names_in("contract_columns")


def stored_columns() -> set[str]:
    """Return the names that the project stores beside a table's own columns."""
    return {*contract(), *_names_in("stored_columns")}


def _names_in(macro: str) -> list[str]:
    return re.findall(r"'(\w+)'", Path(f"macros/staging/{macro}.sql").read_text())


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
    jinja.filters["yaml"] = in_yaml
    return jinja.get_template(name).render(**values)


def in_yaml(text: str) -> str:
    """Return a text as it stands in YAML, quoted where YAML would read something else (`no`, `qty [kg]`)."""
    try:
        is_read_so = yaml.safe_load(f"{{text: {text}}}") == {"text": text}
    except yaml.YAMLError:
        is_read_so = False
    return text if is_read_so else json.dumps(text, ensure_ascii=False)


def logged_tables() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every change log of the project with the sources that feed it, read from the models themselves."""
    tables = []
    for path in sorted(Path("models/changes").glob("**/*_changes.sql"), key=lambda path: path.name):
        entity = path.stem.removesuffix("_changes")
        sources = []
        for feed in re.findall(rf"ref\('stg_(\w+?)__{entity}_changes'\)", path.read_text()):
            staging = Path(f"models/staging/{feed}/stg_{feed}__{entity}_changes.sql")
            sources += re.findall(r"source\('(\w+)', '(\w+)'\)", staging.read_text())
        tables.append((entity, sources))
    return tables


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
    path.write_text(render("logged_tables.sql", tables=logged_tables()))
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
    Returns: the files that were written or changed.
    Raises: UsageError when something is missing, misspelt or there already; nothing is written then.
    """
    feed, dot, name = table.partition(".")
    if not dot or not NAME.fullmatch(feed) or not NAME.fullmatch(name) or "_" not in feed or "__" in feed:
        raise UsageError(
            f"{table!r} is not <vendor>_<system>.<table> in lower-case letters, digits and _, "
            "for example datastream_user1.orders."
        )
    declared = declared_feeds().get(feed)
    if declared is None and format not in FORMATS:
        raise UsageError(f"the feed {feed} is not declared yet; say its format with --format {'|'.join(FORMATS)}.")
    format = declared.format if declared else format
    system = feed.partition("_")[2]
    log = Path(f"models/changes/{system}/{name}_changes.sql")
    if not log.exists() and list(Path("models").glob(f"**/{name}.sql")):
        log = Path(f"models/changes/{system}/{system}_{name}_changes.sql")
    entity = log.stem.removesuffix("_changes")
    staging = Path(f"models/staging/{feed}/stg_{feed}__{entity}_changes.sql")
    if history and log.exists() and not (key or columns):
        return _add_history(system, entity)
    if _is_export(declared, settings):
        return _add_export(feed, name, entity, format, declared, settings, log, key or columns)
    if staging.exists():
        raise UsageError(f"{staging} is there already; edit it, or remove the models of {entity} first.")
    if log.exists():
        return _add_feed(feed, name, entity, format, staging, log, declared, key or columns, settings)
    if without_key and key:
        raise UsageError("--without-key and --key exclude each other.")
    if without_key and history:
        raise UsageError("--without-key and --history exclude each other: rows without a key have no versions.")
    if not key and not without_key:
        raise UsageError(
            "say which columns identify a row, for example --key order_id:bigint. A table that has no key can have a "
            "log, but no merged table: --without-key."
        )
    key_columns = parse_columns(key) if key else []
    every = parse_columns(",".join(filter(None, [key, columns])))
    values = _values(feed, name, entity, format, every) | {
        "key": [column.name for column in key_columns],
        "mart_key": [column.mart_name for column in key_columns],
        "insert_only": insert_only,
    }
    written = [_declare_source(feed, name, format, declared, settings, every)]
    models = [(staging, "staging"), (log, "changes")]
    if not without_key:
        models.append((Path(f"models/merged/{system}/{entity}_merged.sql"), "merged"))
        models.append((Path(f"models/marts/{system}/{entity}.sql"), "mart"))
    if history:
        models.append((Path(f"models/history/{system}/{entity}_history.sql"), "history"))
    for path, template in models:
        written += _write_model(path, template, values)
    return [*written, write_logged_tables()]


def _values(feed, table, entity, format, columns) -> dict:
    staging = STAGING[format]
    arguments = ["'records'", f"'{feed}'", *([f"'{table}'"] if staging.by_table else []), f"'{entity}'"]
    return {
        "feed": feed,
        "table": table,
        "entity": entity,
        "records": f"{staging.macro}({', '.join(arguments)})",
        "format": staging,
        "columns": columns,
        "contract": contract(),
        "logged": LOGGED,
        "layers": LAYERS,
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


def _declare_source(feed: str, table: str, format: str, declared, settings, columns: list[Column]) -> Path:
    path = Path(f"models/staging/{feed}/_{feed}__sources.yml")
    if declared and table in declared.tables:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    delivered = [column.field for column in columns] if STAGING[format].by_table else []
    text = path.read_text() if path.exists() else ""
    is_export = _is_export(declared, settings)
    holds_baseline = not is_export and "changes" not in FORMATS[format].roles
    values = {"feed": feed, "format": format, "settings": settings or {}, "is_export": is_export}
    opening = text or render("sources.yml", holds_baseline=holds_baseline, **values)
    entry = render("source_table.yml", feed=feed, table=table, delivered=delivered, is_export=is_export)
    path.write_text(opening.rstrip("\n") + "\n" + entry)
    try:
        feeds = declared_feeds()
    except UsageError:
        path.write_text(text) if text else path.unlink()
        raise
    if table not in feeds[feed].tables:
        raise UsageError(
            f"{path}: the list of tables must be the last thing in the file; the new table did not get in."
        )
    return path


def _add_feed(feed, table, entity, format, staging, log, declared, given, settings) -> list[Path]:
    """A further feed of a table that is there: its staging model, and its place in the change log."""
    if given:
        raise UsageError(f"{entity} is there already, with its key and columns; leave --key and --columns out.")
    text = log.read_text()
    opening = f"arriving_batches('{entity}', [\n"
    if opening not in text:
        raise UsageError(f"{log} has no list of staging models behind arriving_batches; add {staging.stem} by hand.")
    columns, _ = declared_columns(entity)
    written = [_declare_source(feed, table, format, declared, settings, columns)]
    written += _write_model(staging, "staging", _values(feed, table, entity, format, columns))
    log.write_text(text.replace(opening, f"{opening}    ref('{staging.stem}'),\n"))
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


def _add_export(feed, table, entity, format, declared, settings, log, given) -> list[Path]:
    """Exports of a table that is there: their staging model, and the test of the mart that compares with them."""
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
    written = [_declare_source(feed, table, format, declared, settings, columns)]
    # what databases write for bytes into text
    encoding = ", binary_encoding='hex'" if format == "csv" else ""
    values = _values(feed, table, entity, format, columns) | {"encoding": encoding}
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
    taken = stored_columns()
    columns = []
    for c in declared["columns"]:
        if "data_type" in c:
            name, own = c["name"], c["name"].removeprefix("source_")
            field = (c.get("config") or {}).get("meta", {}).get("field", name)
            columns.append(Column(name, field, c["data_type"], own if own in taken else name))
    return columns, declared["config"]["meta"].get("key", [])
