"""The changes that `highwater alter` can make to a table: their values, what they edit, and when they are refused."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from highwater.catalog.as_built import declared_shape, remembered, widens
from highwater.catalog.columns import Column, parse_columns, what_is_wrong
from highwater.catalog.declarations import (
    add_other_name,
    append_epochs,
    declare_truncates,
    epochs_of,
    in_columns,
    out_of_columns,
    set_in_column,
    set_key,
    set_type,
    sources_file,
)
from highwater.catalog.entities import declaration_of, declared_columns, logged_tables, sources_of_logs
from highwater.catalog.feeds import declared_feeds, numbers_of, sql_text
from highwater.catalog.yaml_files import file_of_model
from highwater.formats.formats import DEBEZIUM, TABLE_IN_FOLDERS
from highwater.runtime.errors import UsageError
from highwater.scaffold.add_table import FurtherFeed, further_feed
from highwater.scaffold.periods import add_column, has_periods
from highwater.scaffold.rename_table import renamed_files
from highwater.spark.lake_tables import newest_versions
from highwater.spark.spark import quoted, session
from highwater.upkeep.evolution import has_no_names

# what each takes, as the command's help has it
ACTIONS = {
    "add": "COLUMN:TYPE",
    "drop": "COLUMN",
    "rename": "OLD NEW",
    "type": "COLUMN TYPE",
    "unit": "COLUMN UNIT",
    "key": "COLUMN…",
    "name": "NAME",
    "feed": "FEED.TABLE",
}
EXAMPLES = {
    "add": "city:string",
    "drop": "city",
    "rename": "qty quantity",
    "type": "total 'decimal(14,2)'",
    "unit": "at millis",
    "key": "order_id line",
    "name": "purchases",
    "feed": "debezium_shop.orders",
}


@dataclass(frozen=True)
class Alteration:
    """A change to a table that is about to be made.

    Attributes:
        entity: the table. words: what the change does, as a sentence. files: those that it edits. edit: edits them.
        is_anew: it rebuilds log and base from raw; otherwise the change is handled like any edited declaration.
        fields: records with one of these fields are read again. name: the new name of the table; "": it keeps its own.
        further: another feed that delivers its records; None: there is none. called: another name of the table at the
            source, by feed; {}: there is none.
    """

    entity: str
    words: str
    files: list[Path]
    edit: Callable[[], None]
    is_anew: bool = False
    fields: tuple[str, ...] = ()
    name: str = ""
    further: FurtherFeed | None = None
    called: dict[str, str] = field(default_factory=dict)


def alteration(
    entity: str,
    action: str,
    values: tuple[str, ...],
    format: str | None = None,
    settings: dict[str, str] | None = None,
    source_table: str | None = None,
    resync: bool = False,
    at_source: bool = False,
) -> Alteration:
    """Return the change that the command line describes; nothing is done yet.

    Arguments:
        entity: the table. action: one of ACTIONS. values: its values. format, settings, source_table: for `feed`, as in
            add-table. resync: for `feed`, it begins with a full load, and keys missing from it are gone.
        at_source: for `name`, only the source renamed the table; its name in the lake stays.
    Raises: UsageError when something is missing, misspelt or impossible.
    """
    wanted = ACTIONS[action]
    if not values or (action != "key" and len(values) != len(wanted.split())):
        raise UsageError(f"{action} takes {wanted}, for example: highwater alter {entity} {action} {EXAMPLES[action]}")
    if action == "feed":
        return _feed(entity, further_feed(entity, *values, format, settings or {}, source_table), resync)
    if format or settings or source_table or resync:
        raise UsageError("--format, --setting, --source-table and --resync are for `feed` alone.")
    if at_source:
        if action != "name":
            raise UsageError("--at-source is for `name` alone.")
        return _name_at_source(entity, *values)
    made = {"add": _add, "drop": _drop, "rename": _rename, "type": _type, "unit": _unit, "key": _key, "name": _name}
    return made[action](entity, *values)


def _is_so(what: str) -> UsageError:
    return UsageError(f"{what}. If that change was interrupted, this finishes it or says how: highwater build")


def _add(entity: str, written: str) -> Alteration:
    columns = declared_columns(entity)[0]
    added = parse_columns(written, columns)
    for column in added:
        if other := next((c for c in columns if column.field in (c.field, c.name)), None):
            raise _is_so(f"{entity} has the column {other.name}, for the field {other.field!r}, already")
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
        raise _is_so(f"the column {column.name} of {entity} is read from the field {new!r} already")
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
        raise _is_so(f"{column.name} of {entity} is {column.data_type} already")
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
        raise _is_so(f"{column.name} of {entity} is in {unit} already")
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
    if sorted(key) == sorted(was):
        raise _is_so(f"the key of {entity} is {', '.join(was)} already")
    if len({*key}) < len(key):
        raise UsageError(f"the key of {entity} is {', '.join(was)}, and would be {', '.join(key)}.")
    words = f"makes {', '.join(key)} the key, which is {', '.join(was)} now"
    edit = lambda: set_key(entity, columns)  # noqa: E731
    return Alteration(entity, words, _files(entity), edit, is_anew=True)


def _name(entity: str, new: str) -> Alteration:
    files = [*renamed_files(entity, new)]
    return Alteration(entity, f"is called {new} from now on", files, lambda: None, name=new)


def _name_at_source(entity: str, new: str) -> Alteration:
    feeds, tables = declared_feeds(), [*dict.fromkeys(dict(sources_of_logs())[entity])]
    if others := [feed for feed, _ in tables if not feeds[feed].is_delivered]:
        raise UsageError(
            f"{others[0]} reads a table of a database by its name; take it out, and add it by its new one."
        )
    called = {}
    for feed, table in tables:
        in_folders = feeds[feed].layout == TABLE_IN_FOLDERS
        name = new if in_folders or '"' in new else new.lower()
        other = next((one for one in feeds[feed].tables if feeds[feed].source_table(one) == name), table)
        if other != table:
            raise UsageError(
                f"the records of {name!r} are those of the table {other} of {feed}. Take it out first: highwater "
                f"remove-table {feed}.{other}"
            )
        if feeds[feed].source_table(table) != name:
            called[feed] = name
    if not called:
        raise UsageError(f"the source calls {entity} so already.")

    def edit():
        for feed, table in tables:
            if feed in called:
                add_other_name(feed, table, called[feed])

    files = [sources_file(feed) for feed in called]
    words = f"takes in what the source calls {new} too, as one table with what it has been called"
    return Alteration(entity, words, files, edit, called=called)


def _feed(entity: str, further: FurtherFeed, resync: bool) -> Alteration:
    others = ", ".join(feed for feed in _feeds_before(entity) if feed != further.feed)
    words = f"takes in {further.feed}.{further.table} too, whose records count after all of {others or 'no other feed'}"
    if resync:
        words += ". Keys that its first full load lacks are gone"

    def edit():
        further.write(lambda: _let_count_after(entity, further, resync))

    return Alteration(entity, words, further.files, edit, further=further)


def _feeds_before(entity: str) -> list[str]:
    """Return the feeds that deliver records of a table, and those that delivered the records in its log."""
    was = remembered().get(entity, {}).get("sources") or []
    return [*dict.fromkeys(feed for feed, _ in [*was, *dict(logged_tables())[entity]])]


def _let_count_after(entity: str, further: FurtherFeed, resync: bool) -> None:
    """Give a feed an epoch that ranks above all other feeds of the table, and its own epochs higher numbers."""
    feeds, epochs = declared_feeds(), epochs_of(further.feed)[1]
    others = [feed for feed in _feeds_before(entity) if feed != further.feed]
    highest = max([0, *(n for feed in others if feed in feeds for n in numbers_of(feeds[feed].epochs))])
    if gone := [feed for feed in others if feed not in feeds]:
        highest = max(highest, _highest_in_log(entity, gone))
    own = [*zip(numbers_of(epochs), epochs, strict=True)]
    mine = [(number, epoch) for number, epoch in own if epoch.get("table", further.table) == further.table]
    if any(number > highest and "number" in epoch for number, epoch in mine):
        return  # written already, before a kill
    # leave room: the other feeds may still get epochs, and late records for them
    base = {"table": further.table, "number": (max([highest, *(number for number, _ in own)]) // 1000 + 1) * 1000}
    tables = dict(dict(sources_of_logs())[entity])
    later = (feed for feed in others if feed in feeds and feed in tables)
    if further.is_read and any("number" in e and e.get("table") == tables[f] for f in later for e in feeds[f].epochs):
        raise UsageError(
            f"{further.feed} brought records of {entity} before another feed did. Which of its records come after "
            f"those of that one, only you know. Append to `epochs` in {sources_file(further.feed)}, with a condition "
            f'in SQL: - {{table: {further.table}, number: {base["number"]}, when: "…"}}'
        )
    if resync:
        declare_truncates(entity)
        base["resync"] = True
    kept = [{name: epoch[name] for name in epoch if name not in ("table", "number")} for _, epoch in mine]
    again = [{"table": further.table} | epoch for epoch in kept if not epoch.get("baseline")]
    append_epochs(further.feed, [base, *again])


def _highest_in_log(entity: str, feeds: list[str]) -> int:
    if f"lake.{entity}_changes" not in newest_versions():
        return 0
    named = ", ".join(map(sql_text, feeds))
    highest = "max(cast(conv(substr(change_sequence_number, 1, 16), 16, 10) as bigint))"
    asked = f"select {highest} from lake.{quoted(f'{entity}_changes')} where rejection_reason is null"
    return session().sql(f"{asked} and feed in ({named})").first()[0] or 0


def _column(entity: str, name: str) -> Column:
    """Return a column by its name in the project, in the table, or in the records."""
    columns = declared_columns(entity)[0]
    for name_of in (lambda c: c.name, lambda c: c.field, lambda c: c.mart_name):
        if found := next((column for column in columns if name_of(column) == name), None):
            return found
    raise UsageError(f"{entity} has no column {name!r}; columns are: {', '.join(c.name for c in columns)}.")


def _former(entity: str, column: Column) -> list[str]:
    return declared_shape(entity)["columns"][column.name]["former_fields"]


def _files(entity: str) -> list[Path]:
    return [*dict.fromkeys(filter(None, [declaration_of(entity), file_of_model(entity)]))]
