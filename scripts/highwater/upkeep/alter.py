"""Change a table by one command: its declaration, and whatever of its tables and records that touches."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

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
from highwater.catalog.entities import (
    declaration_of,
    declared_columns,
    has_history,
    logged_tables,
    settings_of,
    sources_of_logs,
)
from highwater.catalog.feeds import FORMATS, declared_feeds, numbers_of, sql_text
from highwater.catalog.tables import LISTS
from highwater.catalog.yaml_files import file_of_model
from highwater.formats.formats import DEBEZIUM, TABLE_IN_FOLDERS
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import counted, printable
from highwater.scaffold.add_table import FurtherFeed, further_feed
from highwater.scaffold.periods import add_column, has_periods
from highwater.scaffold.rename_table import left_in, renamed_files
from highwater.spark import dbt
from highwater.spark.lake_tables import folders_of_tables, newest_commit_in
from highwater.spark.spark import quoted, session
from highwater.upkeep import renaming
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
    "name": "NAME",
    "feed": "FEED.TABLE",
}


@dataclass(frozen=True)
class Alteration:
    """A change of a table that is about to be made.

    Attributes:
        entity: the table. words: what it does, as a sentence. files: that are edited. edit: which edits them.
        is_anew: log and table are made anew from raw by it; otherwise they are met like any edited declaration.
        fields: by which records are read again; none: no record is. name: that the table gets; "": it keeps its own.
        further: the feed that brings its records too; None: none does. called: what the source calls the table too, by
            feed; {}: nothing else.
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
    """Return a change of a table, as the command line says it; nothing is done yet.

    Arguments:
        entity: the table. action: one of ACTIONS. values: what it takes. format, settings, source_table: of `feed`, as
            add-table has them. resync: of `feed`, it begins with a full load, and keys that this lacks are gone.
        at_source: of `name`, the source calls the table so, and the lake does not.
    Raises: UsageError when something is missing, misspelt or cannot be.
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


# records of a table that its log has not, and lie before what it takes in next
PASSED = """
    select count(*)
    from raw.{feed} as raw
    where
        entry = 'record'
        and source_table = {table}
        and landing_batch <= (select max(landing_batch) from lake.`{entity}_changes` where feed = '{feed}')
        and not exists (
            select 1
            from lake.`{entity}_changes` as log
            where
                log.feed = '{feed}'
                and log.source_file <=> raw.source_file
                and log.source_line <=> raw.source_line
                and log.landing_batch = raw.landing_batch
        )
"""
NEXT = "Commit the changed files under models/. Now: highwater build"
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


def _name(entity: str, new: str) -> Alteration:
    files = [*renamed_files(entity, new)]
    return Alteration(entity, f"is called {new} from now on", files, lambda: None, name=new)


def _name_at_source(entity: str, new: str) -> Alteration:
    feeds, tables = declared_feeds(), [*dict.fromkeys(dict(sources_of_logs())[entity])]
    if others := [feed for feed, _ in tables if not FORMATS[feeds[feed].format].is_delivered]:
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


def _take_in_renamed(spark, alteration: Alteration, is_again: bool) -> list[str]:
    """Give records that landed under another name of a table to it; those that its log has passed by are read again.

    Arguments:
        is_again: the name was declared before, and a kill may have come between raw and log.
    """
    entity, said, passed = alteration.entity, [], 0
    for feed, table in dict(logged_tables())[entity]:
        if feed not in alteration.called or not spark.catalog.tableExists(f"raw.{feed}"):
            continue
        of_name = f"source_table = {sql_text(alteration.called[feed])}"
        records = spark.sql(f"select count(*) from raw.{feed} where {of_name} and entry = 'record'").first()[0]
        if spark.catalog.tableExists("lake.unassigned_records"):
            spark.sql(f"delete from lake.unassigned_records where feed = {sql_text(feed)} and {of_name}")
        if records:
            spark.sql(f"update raw.{feed} set source_table = {sql_text(table)} where {of_name}")
            said.append(f"raw.{feed}: {counted(records, 'record')} had landed under that name already")
        if records or is_again:
            passed += spark.sql(PASSED.format(entity=entity, feed=feed, table=sql_text(table))).first()[0]
    if passed:
        said.append(rebuild_from_raw(spark, entity))
    return said


def _feed(entity: str, further: FurtherFeed, resync: bool) -> Alteration:
    others = ", ".join(feed for feed in _feeds_before(entity) if feed != further.feed)
    words = f"takes in {further.feed}.{further.table} too, whose records count after all of {others or 'no other feed'}"
    if resync:
        words += ". Keys that its first full load lacks are gone"

    def edit():
        further.write(lambda: _let_count_after(entity, further, resync))

    return Alteration(entity, words, further.files, edit, further=further)


def _feeds_before(entity: str) -> list[str]:
    """Return the feeds that bring records of a table, or have brought those that its log was made of."""
    was = remembered().get(entity, {}).get("sources") or []
    return [*dict.fromkeys(feed for feed, _ in [*was, *dict(logged_tables())[entity]])]


def _let_count_after(entity: str, further: FurtherFeed, resync: bool) -> None:
    """Give the records of a feed an epoch above those of all others, and to its own epochs numbers above that."""
    feeds, epochs = declared_feeds(), epochs_of(further.feed)[1]
    others = [feed for feed in _feeds_before(entity) if feed != further.feed]
    highest = max([0, *(n for feed in others if feed in feeds for n in numbers_of(feeds[feed].epochs))])
    if gone := [feed for feed in others if feed not in feeds]:
        highest = max(highest, _highest_in_log(entity, gone))
    own = [*zip(numbers_of(epochs), epochs, strict=True)]
    mine = [(number, epoch) for number, epoch in own if epoch.get("table", further.table) == further.table]
    if any(number > highest and "number" in epoch for number, epoch in mine):
        return  # a kill came behind it
    # the others may get epochs of their own yet, of which late records are
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
    if f"lake.{entity}_changes" not in folders_of_tables():
        return 0
    named = ", ".join(map(sql_text, feeds))
    highest = "max(cast(conv(substr(change_sequence_number, 1, 16), 16, 10) as bigint))"
    asked = f"select {highest} from lake.{quoted(f'{entity}_changes')} where rejection_reason is null"
    return session().sql(f"{asked} and feed in ({named})").first()[0] or 0


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
    for feed, called in alteration.called.items():
        if spark.catalog.tableExists(f"raw.{feed}"):
            of_name = f"source_table = {sql_text(called)} and entry = 'record'"
            records = spark.sql(f"select count(*) from raw.{feed} where {of_name}").first()[0]
            lines.append(f"raw.{feed}: {counted(records, 'record')} under that name, which would be taken in")
    if alteration.further:
        lines += _taken_in(spark, alteration.further)
    if alteration.name:
        lines += [f"would go on to say lake.{entity}, change it there: {place}" for place in _left(alteration)]
        lines += [f"lake.{entity}: the view is gone, who reads it has to read lake.{alteration.name}"]
        for name in sorted(({"ledger"} | LISTS) & {table.removeprefix("lake.") for table in there}):
            rows = spark.sql(f"select count(*) from lake.{name} where table_name = {sql_text(entity)}").first()[0]
            lines.append(f"lake.{name}: {counted(rows, 'row')} of {entity} would be of {alteration.name}")
    for layer in ("changes", "merged", *(["history"] if has_history(entity) else [])):
        if folder := there.get(f"lake.{entity}_{layer}"):
            rows = spark.table(f"lake.{quoted(f'{entity}_{layer}')}").count()
            version = int(newest_commit_in(folder).stem)
            stays = f"renamed to lake.{alteration.name}_{layer}" if alteration.name else "which stays until vacuum"
            lines.append(f"lake.{entity}_{layer}: {counted(rows, 'row')}, version {version}, {stays}")
    return [printable(line) for line in lines]


def _taken_in(spark, further: FurtherFeed) -> list[str]:
    if not spark.catalog.tableExists(f"raw.{further.feed}"):
        return [f"raw.{further.feed}: nothing has landed"]
    of_table = f"entry = 'record' and source_table = {sql_text(further.source_table)}"
    records = spark.sql(f"select count(*) from raw.{further.feed} where {of_table}").first()[0]
    return [f"raw.{further.feed}: {counted(records, 'record')} of it, which the next build would take in"]


def _classified_before(spark, further: FurtherFeed) -> list[str]:
    """Return what to run where a log has classified records of a feed before they were to count after others."""
    log = f"lake.{quoted(f'{further.entity}_changes')}"
    of_feed = f"select count(*) from {log} where feed = {sql_text(further.feed)} and rejection_reason is null"
    above = max(numbers_of(declared_feeds()[further.feed].epochs)) // 1000 * 1000
    records = spark.sql(f"{of_feed} and change_sequence_number < '{above:016x}'").first()[0]
    if not records:
        return []
    return [
        f"The log of {further.entity} has classified {counted(records, 'record')} of {further.feed} already, without "
        f"that. Now run: highwater rebuild {further.entity} --from raw"
    ]


def _left(alteration: Alteration) -> list[str]:
    return left_in(renamed_files(alteration.entity, alteration.name), alteration.entity)


def alter(spark, alteration: Alteration, accept_loss: bool = False) -> list[str]:
    """Make a change of a table; return what was done, a line each.

    Arguments:
        alteration: the change. accept_loss: records and keys that are there may be lost by it.
    Raises: UsageError or CheckError when it cannot be; the declaration is as it was then.
    """
    entity = alteration.entity
    if alteration.name:
        return rename(spark, entity, alteration.name)
    before = {path: path.read_text() if path.exists() else None for path in alteration.files}
    is_built = f"lake.{entity}_changes" in folders_of_tables()
    said = [f"{entity}: {alteration.words}."]
    try:
        alteration.edit()
        if is_built and (alteration.is_anew or accept_loss):
            said.append(rebuild_from_raw(spark, entity, accept_loss))
        elif is_built:
            if alteration.called:
                is_again = all(path.read_text() == text for path, text in before.items())
                said += _take_in_renamed(spark, alteration, is_again)
            for met in meet(spark, [entity]):
                if met.is_refused:
                    raise CheckError(met.sentence)
                said.append(met.sentence)
    except (UsageError, CheckError, yaml.YAMLError) as error:
        for path, text in before.items():
            path.unlink(missing_ok=True) if text is None else path.write_text(text)
        hint = " `highwater alter` takes --accept-loss too." if "--accept-loss" in str(error) else ""
        raise type(error)(f"{error} The declaration is as it was.{hint}") from None
    said += [f"{'changed' if text else 'wrote'} {p}" for p, text in before.items() if p.read_text() != text]
    if is_built and alteration.further:
        said += _classified_before(spark, alteration.further)
    if is_built:
        _view_anew(entity)
    return [*said, NEXT]


def rename(spark, entity: str, new: str) -> list[str]:
    """Give a table another name, or do the rest of that after a kill; return what was done, a line each."""
    if renaming.under_way() is None:
        renaming.begin(spark, entity, new, renamed_files(entity, new))
    said = [f"{entity}: is called {new} from now on.", *renaming.finish(spark)]
    if f"lake.{new}_changes" in folders_of_tables():
        _view_anew(new)
    return [*said, NEXT]


def _view_anew(entity: str) -> None:
    if settings_of(entity).get("key") and dbt.run(["run", "--select", entity, "--quiet"]):
        raise CheckError(f"the view of {entity} could not be made anew; run: highwater build")
