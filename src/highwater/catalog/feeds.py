"""Feeds as the project declares them: `config.meta.feed` on a dbt source."""

import copy
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import yaml

from highwater.formats.declared import checked_change, declared_formats, with_order
from highwater.formats.formats import (
    CHOICES,
    DECLARED,
    FORMATS,
    TABLE_IN_FILE_NAMES,
    TABLE_IN_FOLDERS,
    TABLE_IN_RECORDS,
    TUNGSTEN_DIALECTS,
    Dialect,
    ReadOptions,
    Shards,
)
from highwater.runtime.errors import UsageError
from highwater.runtime.package import ITS_SCHEMAS
from highwater.runtime.printable import did_you_mean
from highwater.runtime.project import exports_root, landing_root

# what a field that is not declared does to a build: it stops it, it is told, it becomes a column
NEW_FIELDS = ("fail", "warn", "add")
# formats of records that are in tables alone
OF_RELATIONS = ("table", "delta-changes")
ROLES = ("changes", "baseline", "export")
DELIMITER = re.compile(r"""(?![\r\n"\\])[\x00-\x7f]""")
NAME = re.compile(r"[a-z][a-z0-9_]*")
# fields of a time, the largest first, with texts around them
PARTITIONS = re.compile("(?!/)(?!.*//)(?!.*/$)[^%]*%Y([^%]*%m([^%]*%d([^%]*%H)?)?)?[^%]*")
IN_JINJA = re.compile(r"\{\{ ('(?:[^'\\]|\\.)*') \}\}", re.DOTALL)


def sql_text(text: str) -> str:
    """Return a text as SQL has it, in quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def jinja_text(text: str) -> str:
    """Return a text as Jinja has it, in quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"


def plain_text(text: str) -> str:
    """Return what dbt makes of a text in YAML that was put into Jinja because it holds Jinja's own marks."""
    found = IN_JINJA.fullmatch(text)
    return text if found is None else found[1][1:-1].encode("ascii", "backslashreplace").decode("unicode-escape")


@dataclass(frozen=True)
class Feed:
    """One producer and source system: where its files are and what they hold.

    Attributes:
        name: the dbt source's name, the folder it lands in, and its raw table (`raw.<name>`).
        role: `changes`, `baseline` (rows as of the start) or `export` (rows to reconcile with).
        tables: its source tables, as dbt names them.
        layout: what tells a table, one of TABLE_IN_…: the folder `<name>/<table>/`, the file's name, or each record.
        options: what the reader of its files is told.
        source_schema: where the tables of a changelog are in their database; None: in `public`.
        positions: of exports, the feed whose positions they carry.
        retention_days: how long `highwater vacuum` keeps its records; None: for ever.
        endings: of the names of its files, beside those that are usual for its format.
        source_tables: what `raw` calls those of its tables that have another name there, by dbt's name.
        settings: as they are declared, by name.
        partitions: the folders below that of a table in which its producer delivers by time; None: none is known.
        relation: the table of the catalog that its records are in, as Spark's SQL names it, `{table}` in it being the
            source table; None: they are in files, or in a database.
    """

    name: str
    role: str
    tables: tuple[str, ...]
    layout: str
    options: ReadOptions
    source_schema: str | None = None
    positions: str | None = None
    retention_days: int | None = None
    source_tables: dict[str, str] = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    endings: tuple[str, ...] = ()
    partitions: str | None = None
    relation: str | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether its records come in files; otherwise in tables, or they are extracted from a database."""
        return FORMATS[self.format].is_delivered and self.relation is None

    def in_raw(self, table: str | None) -> str | None:
        """Return what `raw` calls a table by the name that a folder, a file or a record has for it."""
        return self.options.also_called.get(table, table)

    def source_table(self, table: str) -> str:
        """Return what `raw` calls one of its tables: the folder, or the name that files or records tell."""
        return self.source_tables.get(table, table)

    def shards_of(self, table: str) -> Shards | None:
        """Return the shards that one of its tables declares; None: it declares none."""
        return next((each for each in self.options.shards if each.table == self.source_table(table)), None)

    def table_of_file(self, source_file: str) -> str:
        """Return what `raw` calls the table of a file, where folders tell it."""
        folders = source_file.split("/")
        is_of_shards = len(folders) > 3 and any(each.has(*folders[1:3]) for each in self.options.shards)
        return self.in_raw(folders[2 if is_of_shards else 1])

    @property
    def format(self) -> str:
        """How its files are cut into records, one of FORMATS."""
        return self.options.format

    @property
    def epochs(self) -> list[dict]:
        """Its epochs, oldest first, as far as they are declared as mappings."""
        return [epoch for epoch in self.settings.get("epochs") or [] if isinstance(epoch, dict)]

    @property
    def root(self) -> str:
        """The folder or URI that holds this feed's folder."""
        return exports_root() if self.role == "export" else landing_root()

    @property
    def raw_table(self) -> str:
        """The Delta table that this feed lands in."""
        return f"raw.{self.name}"


def numbers_of(epochs: list[dict]) -> list[int]:
    """Return the numbers of a feed's epochs: of each the one that it says, or one more than that before it."""
    numbers = []
    for epoch in epochs:
        numbers.append(epoch.get("number", (numbers or [0])[-1] + 1))
    return numbers


# the same as yaml.SafeLoader, twelve times as fast
FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _LineLoader(FAST_LOADER):
    """Keeps the line of every mapping, for messages."""

    def construct_mapping(self, node, deep=False):
        mapping = super().construct_mapping(node, deep=True)
        mapping["__line__"] = node.start_mark.line + 1
        return mapping


def _choice(where: str, settings: dict, name: str, allowed, default: str | None = None, instead: str = "") -> str:
    value = settings.get(name, default)
    if value not in tuple(allowed):
        raise UsageError(f"{where}: {name} is {value!r}; it must be one of: {', '.join(allowed)}{instead}.")
    return value


def _text(where: str, settings: dict, name: str, default: str | None, allowed: re.Pattern, meaning: str) -> str | None:
    value = settings.get(name, default)
    if name in settings and not (isinstance(value, str) and allowed.fullmatch(value)):
        raise UsageError(f"{where}: {name} is {value!r}; it must be {meaning}.")
    return value


def days(where: str, name: str, value) -> int | None:
    """Return a number of days as it was declared; None where nothing was.

    Raises: UsageError when it is no whole number above 0.
    """
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise UsageError(f"{where}: {name} is {value!r}; it must be a whole number of days, 1 or more.")
    return value


def _endings(where: str, settings: dict) -> tuple[str, ...]:
    value = settings.get("endings") or []
    if not isinstance(value, list) or not all(isinstance(ending, str) and ending.strip(".") for ending in value):
        raise UsageError(f"{where}: endings is {value!r}; it must be a list of endings of file names: [dat2, out].")
    return tuple(ending.strip(".") for ending in value)


def _truth(where: str, settings: dict, name: str, default: bool) -> bool:
    value = settings.get(name, default)
    if not isinstance(value, bool):
        raise UsageError(f"{where}: {name} is {value!r}; it must be true or false.")
    return value


def _dialect(where: str, settings: dict, format: str) -> Dialect | None:
    """Return how the feed's delimited files are written; None for other formats."""
    dialect = FORMATS[format].dialect
    if dialect is None:
        return None
    if format == "tungsten-csv":
        dialect = TUNGSTEN_DIALECTS[settings["dialect"]]
    header = _truth(where, settings, "header", dialect.header)
    delimiter = _text(
        where, settings, "delimiter", dialect.delimiter, DELIMITER, "one ASCII character, no quote and no backslash"
    )
    word = re.compile(rf"""\\?[^\r\n"\\{re.escape(delimiter)}]*""")
    return replace(
        dialect,
        quoted=_truth(where, settings, "rfc4180", dialect.quoted),
        delimiter=delimiter,
        escape=settings.get("escape", dialect.escape),
        null=_text(where, settings, "null", dialect.null, word, "a quoted text without quotes and delimiters in it"),
        header=header,
    )


def _check_words(where: str, settings: dict, format: str) -> None:
    """Check the settings whose values are words, and that those are there which the format needs."""
    for name, allowed in {**CHOICES, **FORMATS[format].choices}.items():
        other, choice = FORMATS[format].instead.get(name, (None, None))
        instead = f". Of any other one declare `{other}: {choice}` in its place" if other else ""
        if name in settings and name in FORMATS[format].settings:
            _choice(where, settings, name, allowed, instead=instead)
        elif name in FORMATS[format].needed and (other is None or settings.get(other) != choice):
            raise UsageError(f"{where}: {format} needs the setting {name}, one of: {', '.join(allowed)}{instead}.")


def feed_of_settings(
    where: str,
    name: str,
    settings: dict,
    tables: dict[str, str],
    also_called: dict[str, str] | None = None,
    shards: dict[str, object] | None = None,
) -> Feed:
    """Return the feed that a source declares, its settings checked.

    Arguments:
        tables: what raw calls them, by dbt's name. also_called: what raw calls them, by other names at the source.
        shards: what tables declare of them, by dbt's name.
    """
    format = _choice(where, settings, "format", FORMATS)
    known = FORMATS[format].settings | {"format", "role", "retention_days", "new_fields"}
    known |= {"endings", "partitions"} if FORMATS[format].is_delivered else set()
    for setting in settings:
        if setting not in known:
            raise UsageError(
                f"{where}: unknown setting {setting!r}; {format} knows: {', '.join(sorted(known))}."
                f"{did_you_mean(setting, known)}"
            )
    _check_words(where, settings, format)
    role = _choice(where, settings, "role", ROLES, "changes")
    if role == "changes" and role not in FORMATS[format].roles:
        raise UsageError(f"{where}: {format} files hold rows, not changes; declare `role: baseline` or `role: export`.")
    _choice(where, settings, "role", FORMATS[format].roles, "changes")
    _choice(where, settings, "new_fields", NEW_FIELDS, "warn")
    if "new_fields" in settings and not FORMATS[format].names_fields:
        raise UsageError(f"{where}: new_fields is declared, and records of {format} do not name their fields.")
    layout = _choice(where, settings, "layout", FORMATS[format].layouts, TABLE_IN_FOLDERS)
    if "schema" in settings and layout == TABLE_IN_FOLDERS:
        raise UsageError(
            f"{where}: schema is {settings['schema']!r}, but folders tell the tables; "
            f"it needs `layout` to be one of: {', '.join(FORMATS[format].layouts[1:])}."
        )
    options = ReadOptions(
        format=format,
        dialect=_dialect(where, settings, format),
        table_in_records=layout == TABLE_IN_RECORDS,
        schema=_text(where, settings, "schema", None, re.compile(".+"), "the name of a source schema"),
        wrapping=_text(where, settings, "wrapping", None, re.compile(".+"), "the name of the field around documents"),
        change=_change(where, settings, format, layout),
        also_called=also_called or {},
        shards=tuple(
            _shards(where, format, layout, table, tables, also_called or {}, given)
            for table, given in (shards or {}).items()
        ),
    )
    _text(where, settings, "prefix", None, re.compile(".*"), "what names of metadata begin with, a quoted text")
    _text(where, settings, "no_supplement", None, re.compile(".+"), "the word of values that the log did not have")
    positions = _text(
        where, settings, "positions", None, NAME, "the name of the feed whose positions its exports carry"
    )
    source_schema = _text(where, settings, "source_schema", None, re.compile(".+"), "the name of a schema")
    retention_days = days(where, "retention_days", settings.get("retention_days"))
    others = {table: source for table, source in tables.items() if table != source}
    endings = _endings(where, settings)
    partitions = _text(
        where, settings, "partitions", None, PARTITIONS,
        "the folders by time below that of a table, of %Y, %m, %d and %H in this order, in quotes: "
        '"%Y/%m/%d/%H" or "year=%Y/month=%m/day=%d"',
    )  # fmt: skip
    if partitions and role == "export":
        raise UsageError(f"{where}: partitions is {partitions!r}, but exports are listed whole; take it out.")
    return Feed(
        name,
        role,
        (*tables,),
        layout,
        options,
        source_schema,
        positions,
        retention_days,
        others,
        settings,
        endings,
        partitions,
        _relation(where, settings, format, layout, tables, options.change),
    )


def _relation(
    where: str, settings: dict, format: str, layout: str, tables: dict[str, str], change: dict | None
) -> str | None:
    """Return the table of the catalog that holds a feed's records; None: files do."""
    example = "`relation: bronze.orders`, or `relation: bronze.{table}` where each table has one of its own"
    relation = _text(where, settings, "relation", None, re.compile(r"\S.*"), f"the name of a table: {example}")
    if format in OF_RELATIONS and relation is None:
        raise UsageError(f"{where}: {format} needs the setting relation, the table that it reads: {example}.")
    if relation is not None and change and change["order"][-1] == "place":
        raise UsageError(
            f"{where}: relation is {relation!r}, and rows of a table have no places, by which this feed would order "
            "changes of one position. Choose an order of positions, or `kafka`."
        )
    if relation is not None and format in ("debezium-avro", "debezium-parquet"):
        raise UsageError(
            f"{where}: relation is {relation!r}, and rows of a table are read as JSON, which {format} is not. Declare "
            "`format: debezium-json`; a column of Avro's bytes has to be decoded by the job that writes the table."
        )
    if relation is not None and layout == TABLE_IN_FOLDERS and len(tables) > 1 and "{table}" not in relation:
        raise UsageError(
            f"{where}: relation is {relation!r}, and {len(tables)} tables are declared. Where its rows name their "
            "tables, declare `layout: records`; where each table has one of its own, write `{table}` for its name."
        )
    return relation


def _change(where: str, settings: dict, format: str, layout: str) -> dict | None:
    """Return what is declared of the records of a feed, by itself or by the package; None: the format knows."""
    if FORMATS[format].macro != "declared_changes":
        return None
    if format in DECLARED:
        change = with_order(declared_formats()[format], settings["order"])
    else:
        change = checked_change(where, settings.get("change"))
    if layout == TABLE_IN_RECORDS and "table" not in change:
        raise UsageError(
            f"{where}: layout is 'records', and change does not say where a record names its table: `table: $.table`, "
            "and `schema: $.schema` where tables of several schemas are delivered."
        )
    return change


def _shards(
    where: str, format: str, layout: str, table: str, tables: dict[str, str], also_called: dict[str, str], given
) -> Shards:
    """Return the shards that a table declares; `tables` has what raw calls all of the feed's."""
    if layout == TABLE_IN_FILE_NAMES or not FORMATS[format].has_shards:
        others = "names of files" if layout == TABLE_IN_FILE_NAMES else f"files of {format}"
        raise UsageError(
            f"{where}: {table} declares shards, which folders tell (<feed>/<schema>/<table>/) or records of changes "
            f"(`layout: records`), and no {others}. Declare each of its tables by itself."
        )
    given = {name: value for name, value in given.items() if name != "__line__"} if isinstance(given, dict) else given
    patterns = given.get("schemas") if isinstance(given, dict) else None
    patterns = [patterns] if isinstance(patterns, str) else patterns
    column = given.get("column") if isinstance(given, dict) else None
    is_right = isinstance(patterns, list) and patterns and all(isinstance(each, str) and each for each in patterns)
    if not (is_right and isinstance(column, str) and column and given.keys() == {"column", "schemas"}):
        raise UsageError(
            f"{where}: shards of {table} are {given!r}; they must have a column and a pattern of schemas, or several: "
            '{column: tenant, schemas: "tenant_*"}.'
        )
    shards = Shards(tables[table], column, tuple(map(plain_text, patterns)))
    if shards.table in also_called.values():
        raise UsageError(
            f"{where}: {table} declares shards and also_called; tables of shards go by one name. Take also_called out, "
            "and declare the tables of the other name by themselves."
        )
    for other, called in tables.items():
        schema, _, inside = called.partition(".")
        if layout == TABLE_IN_RECORDS and inside and shards.has(schema, inside):
            raise UsageError(
                f"{where}: the records of {called!r}, which {other} reads, are those of a shard of {table} as well; "
                f"take {other} out, or leave {schema} out of the schemas of {table}."
            )
    return shards


def _meta(table: dict) -> dict:
    return (table.get("config") or {}).get("meta") or {}


def _source_table(where: str, table: dict) -> str:
    """Return what raw calls a table of a source."""
    given = _meta(table).get("source_table", table["name"])
    if not isinstance(given, str) or not given:
        raise UsageError(f"{where}: source_table of {table['name']} is {given!r}; it must be a quoted text.")
    return plain_text(given)


def _also_called(where: str, table: dict) -> list[str]:
    """Return what else the source calls a table, as `also_called` beside its `source_table` says."""
    given = _meta(table).get("also_called") or []
    if not isinstance(given, list) or not all(isinstance(name, str) and name for name in given):
        raise UsageError(
            f"{where}: also_called of {table['name']} is {given!r}; it must be a list of texts: [purchases]."
        )
    return [plain_text(name) for name in given]


def _sources_in(path: Path, text: str) -> list[dict]:
    """Return the sources that a file declares."""
    try:
        return copy.deepcopy(_parsed_sources(text))
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}.") from error


@lru_cache(maxsize=1000)
def _parsed_sources(text: str) -> list[dict]:
    return (yaml.load(text, _LineLoader) or {}).get("sources") or []


def declared_feeds() -> dict[str, Feed]:
    """Read every feed from models/staging.

    Returns: feeds by name, in the order of their files.
    Raises: UsageError naming the file, the line, the value and what is allowed.
    """
    feeds: dict[str, Feed] = {}
    for path in sorted([*Path("models/staging").glob("**/*.yml"), *Path("models/staging").glob("**/*.yaml")]):
        for source in _sources_in(path, path.read_text()):
            settings = ((source.get("config") or {}).get("meta") or {}).get("feed")
            if settings is None:
                continue
            where = f"{path} line {settings.pop('__line__')}: feed {source.get('name')!r}"
            if source.get("schema", "raw") != "raw":
                raise UsageError(f"{where}: schema is {source['schema']!r}; {ITS_SCHEMAS}")
            if None in settings:  # what YAML makes of a bare `null:`
                settings["null"] = settings.pop(None)
            tables = {str(table["name"]): _source_table(where, table) for table in source.get("tables") or []}
            for name in (source.get("name"), *tables):
                if not NAME.fullmatch(str(name)):
                    raise UsageError(
                        f"{where}: {name!r} is no name for a feed or table; use lower-case letters, digits and _."
                    )
            others = [(o, tables[str(t["name"])]) for t in source.get("tables") or [] for o in _also_called(where, t)]
            every = [*tables.values(), *(other for other, _ in others)]
            twice = [one for one in every if every.count(one) > 1]
            if twice:
                raise UsageError(f"{where}: two of its tables read the records of {twice[0]!r}.")
            if source["name"] in feeds:
                raise UsageError(f"{where} is declared twice.")
            declared = [(str(table["name"]), _meta(table)) for table in source.get("tables") or []]
            shards = {table: meta["shards"] for table, meta in declared if "shards" in meta}
            feeds[source["name"]] = feed_of_settings(where, source["name"], settings, tables, dict(others), shards)
    return feeds
