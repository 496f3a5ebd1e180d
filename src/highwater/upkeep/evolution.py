"""Schema evolution: before a build writes anything, apply declarations that differ from the built tables.

Safe changes are made: a new column is added and filled from raw, a type is widened, a column that is no longer declared
is hidden. All others are refused, with the command that makes them. The recorded declaration of a table (as_built) is
updated only when everything is done, so a step that was killed is done again.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import click
import yaml

from highwater.catalog.as_built import (
    Differences,
    declared_shape,
    differences,
    file_of,
    remember,
    remembered,
    shape_of_table,
)
from highwater.catalog.declarations import set_in_column
from highwater.catalog.entities import declared_columns, has_history, logged_tables, settings_of, staging_of
from highwater.catalog.feeds import FORMATS, declared_feeds, sql_text
from highwater.catalog.pending import size_of
from highwater.catalog.tables import Trouble, by_itself, of_each, tables_in
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import printable
from highwater.runtime.project import require_space
from highwater.spark import dbt
from highwater.spark.spark import quoted
from highwater.upkeep import renaming
from highwater.upkeep.losses import Losses, WouldBeLostError
from highwater.upkeep.rebuild import allow_types, held_by, lost, rebuild, rebuild_from_raw, swap_in

PLAIN = re.compile(r"[\x20-\x7e]*")

# a record that may carry a field: it contains its name
CARRYING = """
    select 1
    from raw.{feed}
    where
        entry = 'record'
        and source_table = {table}
        and (
            map_contains_key(fields, {field})
            or contains(coalesce(fields['document'], cast(record as string)), {field})
        )
    limit 1
"""

# records as today's models read them; raw no longer has all records of the log
STAGED = """
    select feed, landing_batch, source_file, source_line, is_derived, change_hash, rejection_reason {columns}
    from lake.`{staging}`
"""
SAME_CHANGE = """
    log.feed = staged.feed
    and log.landing_batch = staged.landing_batch
    and log.source_file <=> staged.source_file
    and log.source_line <=> staged.source_line
    and log.is_derived = staged.is_derived
"""
FILLED = f"""
    create table {{new}} using delta as
    select {{kept}}
    from lake.`{{entity}}_changes` as log
    left join ({{staged}}) as staged
        on {SAME_CHANGE}
"""
REFUSED_NOW = f"""
    select count(*) as records, min_by(struct(log.source_file, log.source_line), log.source_line) as first
    from lake.`{{entity}}_changes` as log
    inner join ({{staged}}) as staged
        on {SAME_CHANGE}
    where log.rejection_reason is null and staged.rejection_reason is not null
"""


# up to version 0.5, pending rows were in the base, next to the rows that they replace
PENDING_OF_05 = "select 1 from lake.`{entity}_merged` where is_pending and change_type <> 'truncate' limit 1"
OF_05 = (
    "{entity}: its base was written by highwater 0.5 and holds pending rows, which this version does not read. Nothing "
    "of {entity} was built. To make its base anew from its log: highwater rebuild {entity}"
)


@dataclass(frozen=True)
class Met:
    """The outcome for a declaration that differs from its tables.

    Attributes:
        entity: the table. sentence: what was done, or why not and what to do. is_refused: nothing was done, and a build
            skips the table. lost: what would be lost, if it was refused for that.
    """

    entity: str
    sentence: str
    is_refused: bool = False
    lost: Losses | None = None

    @property
    def models(self) -> list[str]:
        """The models of the table, which a build skips while its declaration is refused."""
        layers = [f"{self.entity}_{layer}" for layer in ("changes", "merged", "history")]
        return [*(model.name for model in staging_of(self.entity)), *layers, self.entity]


def meet(spark, given: list[str] | None = None) -> Iterator[Met]:
    """Apply every declaration that differs from its tables; yield the outcome of each.

    Arguments:
        given: entities; None: all that are declared.
    """
    shapes = {entity: shape for entity, sources in logged_tables() if (shape := _shape(entity, sources))}
    for was, new in renaming.renamed_by_hand(shapes, tables_in(spark, "lake")):
        renaming.begin(spark, was, new, {})
        yield Met(new, f"{new}: it was called {was}. {'; '.join(renaming.finish(spark))}.")
    there = tables_in(spark, "lake")
    shapes = {entity: shape for entity, shape in shapes.items() if given is None or entity in given}
    built = [entity for entity in shapes if f"{entity}_changes" in there]
    was = remembered()

    def found(entity: str) -> tuple[Differences, dict, bool]:
        types = _types(spark, f"{entity}_changes")
        base = _types(spark, f"{entity}_merged") if f"{entity}_merged" in there else None
        before = was.get(entity) or shape_of_table(types, shapes[entity])
        is_older = "is_pending" in (base or ()) and bool(spark.sql(PENDING_OF_05.format(entity=entity)).take(1))
        return differences(entity, before, shapes[entity], types, base), before, is_older

    refused = set()
    ask = by_itself(found, "the columns of {}")
    for answer in of_each(built, ask, "comparing tables with their declarations"):
        if isinstance(answer, Trouble):  # its models say what is wrong with it
            continue
        differs, before, is_older = answer
        if is_older:
            refused.add(differs.entity)
            yield Met(differs.entity, OF_05.format(entity=differs.entity), is_refused=True)
            continue
        if not (differs or differs.later):
            continue
        # after a kill the tables may no longer show what they were built from
        remember({differs.entity: before})
        try:
            yield Met(differs.entity, _done(spark, differs))
            shapes[differs.entity] = declared_shape(differs.entity)
        except (UsageError, CheckError) as error:
            refused.add(differs.entity)
            would_be = error.found if isinstance(error, WouldBeLostError) else None
            yield Met(differs.entity, _refusal(differs, str(error)), is_refused=True, lost=would_be)
    remember({entity: shape for entity, shape in shapes.items() if entity not in refused})


def _shape(entity: str, sources: list[tuple[str, str]]) -> dict | None:
    """Return the shape that an entity declares; None if its YAML cannot be read, which dbt reports better."""
    try:
        return declared_shape(entity, sources)
    except (UsageError, yaml.YAMLError, KeyError, StopIteration, TypeError, AttributeError):
        return None


def _types(spark, table: str) -> dict[str, str]:
    return dict(spark.table(f"lake.{quoted(table)}").dtypes)


def _refusal(differs: Differences, why: str) -> str:
    said = f"{differs.entity}: " + (f"{differs.in_words()}, in {file_of(differs.entity)}. " if differs else "")
    return printable(f"{said}Nothing of {differs.entity} was built. {why}")


def _done(spark, differs: Differences) -> str:
    """Make the safe changes; return what was done.

    Raises: UsageError or CheckError that says why nothing was done, and what to do.
    """
    entity = differs.entity
    if differs.is_unsafe:
        raise UsageError(f"{differs.what_to_do()}. To leave them as they are: take the declaration back")
    is_empty = spark.table(f"lake.{quoted(f'{entity}_changes')}").isEmpty()
    written = [] if is_empty else _let_them_come_later(differs)
    said = []
    if differs.renamed or (differs.added and not is_empty and _may_be_carried(spark, differs)):
        said.append(_read_again(spark, differs))
        if differs.types:
            _alter(spark, differs)
    elif differs:
        _alter(spark, differs)
        if differs.types and (again := _take_rejected_again(spark, differs)):
            said.append(again)
        if differs.dropped and settings_of(entity).get("key"):
            said.append(rebuild(spark, entity))
        if differs.dropped and has_history(entity):
            _history_anew(entity)
    words = differs.in_words() or f"`came_later: true` of {', '.join(differs.later)} was gone"
    if differs.dropped:
        words += ". Its log keeps what it has of it, new records leave it NULL there, and the table has it no more"
    commit = f"`came_later: true` was written into {file_of(entity)} for {', '.join(written)}; commit it."
    return printable(" ".join(filter(None, [f"{entity}: {words}.", *said, commit * bool(written)])))


def _let_them_come_later(differs: Differences) -> list[str]:
    """Declare `came_later` for new columns that lack it, so that earlier records mean NULL; return these columns."""
    entity, written = differs.entity, []
    shape = declared_shape(entity)
    for name in [*differs.added, *differs.later]:
        if shape["columns"][name]["came_later"] or name in differs.moved:
            continue
        try:
            set_in_column(entity, name, "came_later", True)
        except OSError as error:
            raise UsageError(
                f"{file_of(entity)} cannot be written ({error.strerror}). Give the column {name} "
                "config: {meta: {came_later: true}} there, for records from before have no such field, then build again"
            ) from None
        written.append(name)
    return written


def _may_be_carried(spark, differs: Differences) -> bool:
    """Return whether a record in raw may have a new column, so that it must be backfilled."""
    columns = declared_shape(differs.entity)["columns"]
    if settings_of(differs.entity).get("partial_images"):
        return True
    for name in differs.added:
        for field in [columns[name]["field"], *columns[name]["former_fields"]]:
            # other characters may be escaped in a record
            if not PLAIN.fullmatch(field) or re.search(r'["\\/]', field):
                return True
            for feed, table in dict(logged_tables())[differs.entity]:
                asked = CARRYING.format(feed=feed, table=sql_text(table), field=sql_text(field))
                if has_no_names(feed) or spark.sql(asked).take(1):
                    return True
    return False


def has_no_names(feed: str) -> bool:
    """Return whether the files of a feed do not name their columns, which are then known by their place."""
    declared = declared_feeds()[feed]
    return FORMATS[declared.format].names_columns and not declared.options.dialect.header


def _read_again(spark, differs: Differences) -> str:
    """Read the records of a table again with its new declaration: all of them, or those that raw still has."""
    if group := held_by(spark, differs.entity):
        raise UsageError(
            f"It has changes that {group} has not published yet. Take the declaration back, build, so that they are "
            "published, then change it again"
        )
    click.echo(f"{printable(f'{differs.entity}: {differs.in_words()}')}; its records are read again ...")
    if lost(spark, differs.entity, dict(logged_tables())[differs.entity]) is None:
        return rebuild_from_raw(spark, differs.entity).replace("\n", " ")
    return _fill(spark, differs)


def _fill(spark, differs: Differences) -> str:
    """Fill new columns of a log from the records that raw still has; the rest of the log stays."""
    entity = differs.entity
    log, new = f"lake.`{entity}_changes`", f"lake_rebuilt.`{entity}_changes`"
    if dbt.run(["run", "--select", f"stg_*__{entity}_changes", "--quiet"]):
        raise CheckError(f"The staging models of {entity} could not be built; nothing was changed")
    read = [*differs.added, *differs.renamed]
    columns = "".join(f", {quoted(name)}" for name in read)
    staged = " union all ".join(STAGED.format(staging=m.name, columns=columns) for m in staging_of(entity))
    refused = spark.sql(REFUSED_NOW.format(entity=entity, staged=staged)).first()
    if refused.records:
        raise CheckError(
            f"{refused.records:,} of its records that were applied would be rejected now, the first in "
            f"{refused.first.source_file}, line {refused.first.source_line}. Declare what holds their values, for "
            "example data_type: string, and build again"
        )
    require_space(size_of(spark, log), f"filling {entity}")
    there = spark.table(log).columns
    kept = []
    for name in [*there, *(name for name in differs.added if name not in there)]:
        kept_as = differs.moved.get(name, name)
        old = f"log.{quoted(kept_as)}" if kept_as in there else "null"
        is_read = name in read or name == "change_hash"
        kept.append(f"coalesce(staged.{quoted(name)}, {old}) as {quoted(name)}" if is_read else old)
    spark.sql("create schema if not exists lake_rebuilt")
    spark.sql(f"drop table if exists {new}")
    spark.sql(FILLED.format(new=new, kept=", ".join(kept), entity=entity, staged=staged))
    records = swap_in(spark, entity)
    if settings_of(entity).get("key"):
        rebuild(spark, entity)
    if has_history(entity):
        _history_anew(entity)
    spark.sql(f"drop table {new}")
    return (
        f"{entity}_changes: {records:,} changes, their new columns filled from the records that raw still has; the "
        "others have NULL there."
    )


def _history_anew(entity: str) -> None:
    if dbt.run(["run", "--full-refresh", "--select", f"{entity}_history", "--quiet"]):
        raise CheckError(f"The history of {entity} could not be made anew; build again")


def _alter(spark, differs: Differences) -> None:
    """Add columns that no record has had, and widen types, in place."""
    entity, columns = differs.entity, declared_shape(differs.entity)["columns"]
    allow_types(spark, entity)
    history = {column.name: column.version_name for column in declared_columns(entity)[0]}
    for layer in ("changes", "merged", "history"):
        table = f"lake.{quoted(f'{entity}_{layer}')}"
        if not spark.catalog.tableExists(f"lake.{entity}_{layer}"):
            continue
        there = dict(spark.table(table).dtypes)
        if layer != "history":  # the history adds its own columns, from the log
            for name in [name for name in differs.added if name not in there]:
                spark.sql(f"alter table {table} add columns ({quoted(name)} {columns[name]['type']})")
        for name, (_, data_type) in differs.types.items():
            own = history[name] if layer == "history" else name
            if there.get(own, data_type) != data_type:
                spark.sql(f"alter table {table} set tblproperties ('delta.enableTypeWidening' = 'true')")
                spark.sql(f"alter table {table} alter column {quoted(own)} type {data_type}")


def _take_rejected_again(spark, differs: Differences) -> str | None:
    """Read records again if some were rejected because a value did not fit a type that is wider now."""
    fields = " or ".join(f"contains(rejection_detail, {sql_text(name + ' = [')})" for name in differs.types)
    rejected = spark.sql(
        f"select 1 from lake.{quoted(f'{differs.entity}_changes')} "
        f"where rejection_reason = 'value_does_not_fit' and ({fields}) limit 1"
    ).take(1)
    if not rejected:
        return None
    try:
        return rebuild_from_raw(spark, differs.entity).replace("\n", " ")
    except UsageError as error:
        return (
            f"Its rejected records were not read again: {error}. Those that raw has: highwater replay {differs.entity}."
        )
