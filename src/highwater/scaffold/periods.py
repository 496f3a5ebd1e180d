"""Periods of the columns of files without names: which columns their lines had, from some time on."""

from pathlib import Path

import yaml

from highwater.catalog.declarations import sources_file
from highwater.catalog.feeds import FAST_LOADER, declared_feeds, plain_text
from highwater.catalog.yaml_files import end_of, in_yaml, named, value_of, with_item, write_entry
from highwater.formats.formats import FORMATS
from highwater.runtime.errors import UsageError


def has_periods(feed: str) -> bool:
    """Return whether the columns of a feed's files are declared as they stand there, so that they may have periods."""
    format = FORMATS[declared_feeds()[feed].format]
    return format.names_columns and not format.names_fields


def periods_of(feed: str, table: str) -> list[dict]:
    """Return the periods of the columns of a source table, oldest first: each has `columns`, and may have `when`.

    Arguments:
        feed, table: as dbt names the source and its table.
    Raises: UsageError when the table is not declared, or not which columns its files have.
    """
    path = sources_file(feed)
    columns = _columns_node(path.read_text(), feed, table)
    if columns is None:
        raise UsageError(f"{path}: {feed}.{table} does not say in `config.meta.columns` which columns its files have.")
    document = yaml.load(path.read_text(), FAST_LOADER)
    (source,) = (source for source in document["sources"] if source["name"] == feed)
    (declared,) = (each for each in source["tables"] if each["name"] == table)
    listed = declared["config"]["meta"]["columns"]
    if not any(isinstance(each, dict) for each in listed):
        return [{"columns": [plain_text(str(name)) for name in listed]}]
    return [each | {"columns": [plain_text(str(name)) for name in each["columns"]]} for each in listed]


def lacks_own_column(column: str, setting: str) -> str:
    """Return what to say of a source table whose `columns` lack one that the producer adds.

    Arguments:
        setting: of the feed, which names it.
    """
    where = "DMS writes it behind the operation, before the columns of the row"
    return (
        f"`columns` lacks {column!r}, the {setting} of the feed. Write it where it stands in the files"
        f"{f' ({where})' if setting == 'timestamp_column' else ''}, then: highwater build"
    )


def period_with(feed: str, table: str, fields: list[str], at: int | None = None) -> dict:
    """Return the newest period of a table with further columns, behind its own, before what the producer adds.

    Arguments:
        fields: the columns, as the source calls them. at: the place of the first one among the columns, from 0 on.
    """
    columns = periods_of(feed, table)[-1]["columns"]
    if at is None:
        settings = declared_feeds()[feed].settings
        own = {settings.get("sequence_column"), settings.get("timestamp_column")}
        prefix = settings.get("before_prefix", "BI_") if declared_feeds()[feed].format.startswith("dms-") else None
        at = len(columns)
        while at and (columns[at - 1] in own or (prefix and columns[at - 1].startswith(prefix))):
            at -= 1
    return {"columns": [*columns[:at], *fields, *columns[at:]]}


def add_column(feed: str, table: str, field: str, at: int | None = None) -> Path | None:
    """Declare a period in which the lines of a source table have one column more.

    Lines that are shorter stay in the periods before it, and have NULL for the column.

    Arguments:
        feed, table: as dbt names the source and its table. field: the column, as the source calls it.
        at: its place among the columns, from 0 on; by default the last one, before what the producer adds at the end.
    Returns: the file that was written; None: records of the feed name their fields, or the column is declared already.
    Raises: UsageError when it does not get in.
    """
    if not has_periods(feed):
        return None
    periods = periods_of(feed, table)
    if any(field in period["columns"] for period in periods):
        return None
    period, path = period_with(feed, table, [field], at), sources_file(feed)
    text = path.read_text()
    node = _columns_node(text, feed, table)
    if isinstance(node.value[0], yaml.MappingNode):
        changed = with_item(text, node, f"- {in_flow(period)}")
    else:
        changed = _as_periods(text, node, [*periods, period])
    write_entry(path, text, changed, lambda: periods_of(feed, table) == [*periods, period], in_flow(period))
    return path


def in_flow(period: dict) -> str:
    """Return a period as it stands in YAML, in one line."""
    when = f", when: {in_yaml(period['when'])}" if period.get("when") else ""
    return f"{{columns: [{', '.join(map(_name, period['columns']))}]{when}}}"


def in_block(periods: list[dict]) -> str:
    """Return periods as they stand in YAML, a line each, ready to paste in the place of `columns`."""
    return "\n".join(["columns:", *(f"  - {in_flow(period)}" for period in periods)])


def _name(name: str) -> str:
    plain = in_yaml(name)
    return plain if yaml.load(f"[{plain}]", FAST_LOADER) == [name] or plain.startswith('"') else f'"{name}"'


def _columns_node(text: str, feed: str, table: str):
    source = named(value_of(yaml.compose(text, FAST_LOADER), "sources"), feed)
    node = value_of(named(value_of(source, "tables"), table), "config", "meta", "columns")
    return node if isinstance(node, yaml.SequenceNode) and node.value else None


def _as_periods(text: str, node, periods: list[dict]) -> str:
    """Return a file with the periods in the place of a plain list of columns."""
    start, end = node.start_mark.index, end_of(node)
    line = text.rfind("\n", 0, start) + 1
    key = text[line:start]
    if not node.flow_style:  # its dashes begin a line of their own, perhaps as far left as its key
        indent = key
    elif key.strip() == "columns:":
        indent = f"{key[: len(key) - len(key.lstrip())]}  "
    else:
        return f"{text[:start]}[{', '.join(map(in_flow, periods))}]{text[end:]}"
    lines = "\n".join(f"{indent}- {in_flow(period)}" for period in periods)
    return f"{text[:start].rstrip()}\n{lines}{text[end:]}" if node.flow_style else f"{text[:line]}{lines}{text[end:]}"
