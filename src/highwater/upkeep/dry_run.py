"""`highwater alter --dry-run`: what a change to a table would edit, read and write, in words."""

from highwater.catalog.entities import has_history, logged_tables
from highwater.catalog.feeds import sql_text
from highwater.catalog.tables import LISTS
from highwater.runtime.printable import counted, printable
from highwater.scaffold.add_table import FurtherFeed
from highwater.scaffold.rename_table import left_in, renamed_files
from highwater.spark.lake_tables import newest_versions
from highwater.spark.spark import quoted
from highwater.upkeep.alterations import Alteration


def what_it_would_touch(spark, alteration: Alteration) -> list[str]:
    """Return what a change would edit, read and write, one line each; nothing is done."""
    entity, there = alteration.entity, newest_versions()
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
        if (version := there.get(f"lake.{entity}_{layer}")) is not None:
            rows = spark.table(f"lake.{quoted(f'{entity}_{layer}')}").count()
            stays = f"renamed to lake.{alteration.name}_{layer}" if alteration.name else "which stays until vacuum"
            lines.append(f"lake.{entity}_{layer}: {counted(rows, 'row')}, version {version}, {stays}")
    return [printable(line) for line in lines]


def _taken_in(spark, further: FurtherFeed) -> list[str]:
    if not spark.catalog.tableExists(f"raw.{further.feed}"):
        return [f"raw.{further.feed}: nothing has landed"]
    of_table = f"entry = 'record' and source_table = {sql_text(further.source_table)}"
    records = spark.sql(f"select count(*) from raw.{further.feed} where {of_table}").first()[0]
    return [f"raw.{further.feed}: {counted(records, 'record')} of it, which the next build would take in"]


def _left(alteration: Alteration) -> list[str]:
    return left_in(renamed_files(alteration.entity, alteration.name), alteration.entity)
