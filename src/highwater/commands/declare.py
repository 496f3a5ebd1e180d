"""Commands about what is declared: add-table, add-tables, alter, check, remove-table."""

import sys
from pathlib import Path

import click

from highwater.catalog.source_types import DIALECTS
from highwater.commands.group import commands, known, settings_given
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import printable


def finish_renaming() -> tuple[str, str] | None:
    """Finish a renaming that was killed; return its old and new name."""
    from highwater.spark import dbt
    from highwater.spark.lease import lease
    from highwater.spark.spark import session
    from highwater.upkeep import alter, renaming

    if half := renaming.under_way():
        with lease("highwater alter"):
            renaming.finish_project()
            dbt.begin(is_same=False)
            for line in alter.rename(session(), *half):
                click.echo(line)
    return half


@commands.command()
@click.argument("table")
@click.argument("action", type=click.Choice(["add", "drop", "rename", "type", "unit", "key", "name", "feed"]))
@click.argument("values", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Show what would be edited, read and written; change nothing.")
@click.option("--accept-loss", is_flag=True, help="Continue even if existing records or keys are lost.")
@click.option("--format", help="With `feed`: the format, if that feed is not declared yet.")
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="With `feed`: a setting of the feed, if it is not declared yet.",
)
@click.option("--source-table", metavar="NAME", help="With `feed`: its name for the table, if it differs.")
@click.option(
    "--resync", is_flag=True, help="With `feed`: the feed begins with a full load; keys missing from it are gone."
)
@click.option(
    "--at-source", is_flag=True, help="With `name`: the source renamed the table; its name in the lake stays."
)
def alter(table, action, values, dry_run, accept_loss, format, settings, source_table, resync, at_source):
    """Change TABLE: its declaration and its tables in the lake. Landed records are read again if needed.

    Actions and their VALUES: add COLUMN:TYPE, drop COLUMN, rename OLD NEW (the field in the records), type COLUMN TYPE,
    unit COLUMN UNIT, key COLUMN…, name NAME (of the table, in the project and in the lake), feed FEED.TABLE (another
    feed that delivers records of the table from now on).
    """
    from highwater.builds import last_build
    from highwater.spark import dbt
    from highwater.spark.lease import lease
    from highwater.spark.spark import reading_session, session
    from highwater.upkeep import alter as altering
    from highwater.upkeep import alterations
    from highwater.upkeep.dry_run import what_it_would_touch

    if finish_renaming() == (table, *values) and action == "name" and not at_source:
        return
    options = {
        "format": format,
        "settings": settings_given(settings),
        "source_table": source_table,
        "resync": resync,
        "at_source": at_source,
    }
    alteration = alterations.alteration(known(None, None, table), action, values, **options)
    if dry_run:
        with reading_session() as spark:
            for line in what_it_would_touch(spark, alteration):
                click.echo(line)
        return
    with lease("highwater alter"):
        spark = session()
        last_build.forget()
        dbt.begin(is_same=False)
        for line in altering.alter(spark, alteration, accept_loss):
            click.echo(line)


DIALECT = click.option(
    "--dialect", type=click.Choice(DIALECTS), help="The database that wrote the DDL, if the feed does not say."
)
FORMAT = click.option("--format", "form", metavar="FORMAT", help="The format of the feed, if it is not declared yet.")
SETTING = click.option(
    "--setting",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of the feed, if it is not declared yet, for example dialect=mysql.",
)
DDL = "a dump of the schema (pg_dump --schema-only, mysqldump --no-data, …), or DDL of your own."


@commands.command("add-table")
@click.argument("table", metavar="FEED.TABLE")
@click.option(
    "--key",
    metavar="NAME:TYPE,…",
    help="The columns that identify a row. Give only NAME with --ddl, or without --columns.",
)
@click.option(
    "--columns",
    metavar="NAME:TYPE,…",
    help="The other columns. By default, if --key gives no type, those of delivered files.",
)
@click.option(
    "--ddl",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"Read columns and key from this file: {DDL}",
)
@DIALECT
@FORMAT
@SETTING
@click.option(
    "--source-table",
    metavar="NAME",
    help="The name of the table in folders or records, if it is not TABLE: archive.orders, 'Order Details'.",
)
@click.option("--without-key", is_flag=True, help="The table has no key: it gets a log, but no base and no view.")
@click.option("--history", is_flag=True, help="Add a history of every version of every row, to an existing table too.")
@click.option(
    "--shards",
    metavar="PATTERN",
    multiple=True,
    help="Combine the tables of this name in all schemas (or databases) that match: 'tenant_*'.",
)
@click.option("--shard-column", metavar="NAME", help="The column for the schema, which comes first in the key.")
def add_table_command(
    table, key, columns, ddl, dialect, form, settings, source_table, without_key, history, shards, shard_column
):
    """Write the models of a table (staging, log, base and view).

    Their YAML declares the table. NAME is a field, spelt exactly as in the records; put it in double quotes if it
    contains a comma or a colon. A unit of time follows the type: `at:timestamp[millis]`.
    """
    from highwater.catalog.columns import parse_columns
    from highwater.catalog.feeds import FORMATS, declared_feeds
    from highwater.catalog.names import split_name
    from highwater.landing.deliveries import what_is_next
    from highwater.scaffold.add_delivered import TYPED, found_for
    from highwater.scaffold.add_table import add_table, is_known
    from highwater.scaffold.add_tables import add_tables
    from highwater.scaffold.decisions import Addition, decisions
    from highwater.scaffold.new_feed import check_feed
    from highwater.scaffold.periods import periods_of
    from highwater.status.query import show_table

    given, (feed, name) = settings_given(settings), split_name(table)
    check_feed(feed, form, given)
    if bool(shards) != bool(shard_column):
        raise UsageError(
            "--shards says which schemas are one table, and --shard-column what tells them apart in it: give both, for "
            "example --shards 'tenant_*' --shard-column tenant."
        )
    shards = {"column": shard_column, "schemas": [*shards]} if shards else None
    if ddl:
        if columns or history or shards:
            raise UsageError("--ddl says the columns; leave --columns, --history and --shards out.")
        if key and without_key:
            raise UsageError("--without-key and --key exclude each other.")
        _report(feed, add_tables(feed, ddl, form, given, dialect, source_table or name, name, key, without_key))
        return
    found, doubts, evidence = None, [], None
    # a further feed of a table, its history and its exports need no columns
    if not (columns or is_known(feed, name, given) or (key and TYPED.search(key))):
        found, doubts, evidence = found_for(table, key, without_key, form, given, source_table, shards)
        key_from = "as --key says" if key else "none, as --without-key says" if without_key else "as the records tell"
        key = None
    written = add_table(
        table,
        key,
        columns,
        form,
        given,
        without_key,
        history=history,
        source_table=source_table,
        found=found,
        shards=shards,
    )
    if found:
        click.echo(f"Columns as {evidence} of {feed} tell them:")
        show_table(["column", "type", "field"], [[c.name, c.written_type, c.field] for c in found.columns])
    for doubt in doubts:
        click.echo(f"{table}: {printable(str(doubt))}", err=True)
    for path in written:
        click.echo(f"wrote {path}")
    if found:
        said = {"key_from": key_from, "units_from": f"as {evidence} tell"}
        addition = Addition(table, len(found.columns), found.key, written, found=found, **said)
        for line in decisions(declared_feeds()[feed], [addition]):
            click.echo(line)
    system = feed.partition("_")[2]
    if any(path.name == f"{system}_{name}_changes.sql" for path in written):
        click.echo(f"A model called {name} is there already, so this table is {system}_{name}.")
    for column in found.columns if found else parse_columns(",".join(filter(None, [key, columns]))):
        if column.is_numbered:
            click.echo(f"The column {column.field!r} is called {column.name}: another one has the name without number.")
    sources = next((path for path in written if path.name == f"_{feed}__sources.yml"), None)
    declared = declared_feeds()[feed]
    if sources and FORMATS[declared.format].names_columns:
        listed = ", ".join(printable(column) for column in periods_of(feed, name)[-1]["columns"])
        click.echo(f"Where files have no header, these are their columns, in this order: {listed}. If not: {sources}")
    # a history is of what is delivered already
    click.echo(what_is_next(declared, [name]) if sources and not found else "Now: highwater build")


@commands.command("add-tables")
@click.argument("feed")
@click.option(
    "--ddl", type=click.Path(exists=True, dir_okay=False, path_type=Path), help=f"Read tables from this file: {DDL}"
)
@DIALECT
@FORMAT
@SETTING
def add_tables_command(feed, ddl, dialect, form, settings):
    """Write the models of all tables in a DDL file.

    Tables that FEED does not have yet are added. Existing tables are compared with the file, and never overwritten.
    Without --ddl, every table with delivered files is added, with the columns of these files.
    """
    from highwater.scaffold.add_delivered import add_delivered_tables
    from highwater.scaffold.add_tables import add_tables
    from highwater.scaffold.new_feed import check_feed

    given = settings_given(settings)
    check_feed(feed, form, given)
    if not ddl and dialect:
        raise UsageError("--dialect says which database wrote the file of --ddl; give that too.")
    adding = add_tables(feed, ddl, form, given, dialect) if ddl else add_delivered_tables(feed, form, given)
    _report(feed, adding, are_delivered=not ddl)


@commands.command("check")
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
def check_command(tables):
    """Check the declarations of all tables, or of TABLES.

    They are also compared with the newest delivered files. Spark does not start. Each finding is one line: file, line,
    what is wrong, what to do. Warnings alone do not change the exit code.
    """
    from highwater.catalog.tables import named
    from highwater.scaffold.check import check

    checked = check(*tables)
    for line in [*map(str, checked.findings), *checked.compared_with()]:
        click.echo(line)
    if errors := sum(finding.is_error for finding in checked.findings):
        raise CheckError(f"{errors:,} of the {len(checked.findings):,} findings must be repaired before a build.")
    click.echo(checked.outcome)
    if checked.waiting:
        feeds = named([feed.name for feed in checked.waiting])
        click.echo(f"Not all files of {feeds} are known to have landed. Next: highwater build")


@commands.command("remove-table")
@click.argument("table", metavar="FEED.TABLE")
@click.option("--drop-data", is_flag=True, help="Also drop its tables in the lake; raw records stay.")
def remove_table_command(table, drop_data):
    """Remove a table from the project.

    Its models and its entry in the feed are deleted, unless other models read the table. Without --drop-data its tables
    stay in the lake, and continue where they stopped if the table is added again.
    """
    from highwater.catalog import as_built
    from highwater.catalog.tables import tables_in
    from highwater.runtime.state import files
    from highwater.scaffold.remove_table import removal_of, remove
    from highwater.spark.lease import lease
    from highwater.spark.spark import quoted, session

    removal = removal_of(table)
    if drop_data:
        with lease("highwater remove-table"):
            spark = session()
            kinds = {each.name: each.tableType for each in spark.catalog.listTables("lake")}
            for name in tables_in(spark, "lake") & set(removal.relations):
                kind = "view" if kinds.get(name) == "VIEW" else "table"
                spark.sql(f"drop {kind} lake.{quoted(name)}")
                if kind == "table":  # one that was registered by `recover` leaves its files
                    files().remove(f"tables/lake.db/{name}")
                click.echo(f"dropped lake.{name}")
            as_built.forget(name.removesuffix("_changes") for name in removal.relations)
    for path in remove(removal):
        click.echo(f"{'removed' if not path.exists() else 'changed'} {path}")
    if not drop_data:
        click.echo("What it has in the lake and in the landing folder stays; added again, it goes on where it was.")


def _report(feed, adding, are_delivered=False) -> None:
    from highwater.catalog.feeds import declared_feeds
    from highwater.landing.deliveries import folder_of, has_own_folders, what_is_next
    from highwater.scaffold.decisions import decisions, doubts, without_keys
    from highwater.status.query import show_table

    additions = []
    for addition in adding:
        additions.append(addition)
        if sys.stderr.isatty():
            click.echo(f"{addition.table}", err=True)
    rows = [[each.table, each.columns, ", ".join(each.key), each.outcome] for each in additions]
    titles, declared = ["table", "columns", "key", "outcome"], declared_feeds().get(feed)
    tables = [each.name for each in additions if not each.refused]
    if declared and has_own_folders(declared, tables):
        titles.append("files go into")
        for row, each in zip(rows, additions, strict=True):
            row.append("" if each.refused else folder_of(declared, each.name))
    show_table(titles, rows)
    for each in additions:
        for note in each.notes:
            click.echo(f"{each.table}: {printable(note)}", err=True)
    for line in [*doubts(additions), *without_keys(additions)]:
        click.echo(line, err=True)
    for line in decisions(declared, additions) if declared else ():
        click.echo(line)
    added = [each.name for each in additions if each.written]
    following = "Now: highwater build" if are_delivered or not added else what_is_next(declared, added)
    click.echo(f"{len(added):,} of {len(additions):,} tables added." + f" {following}" * bool(added))
    if refused := sum(each.refused for each in additions):
        raise CheckError(f"{refused:,} not added; the lines above say why.")
