"""The `highwater` command."""

import os
import sys
from datetime import datetime
from pathlib import Path

import click

from highwater.catalog.source_types import DIALECTS
from highwater.runtime.endings import leave_with_the_sentence
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.faults import doing, keep_the_terminal_clean
from highwater.runtime.printable import ShownStream, in_shell, printable

# what `highwater status` says of each
OF_EVERY_TABLE = ["table", "rows", "waiting", "pending", "read", "applied", "rejected", "stale"]
OF_EVERY_TABLE += ["changed_at", "landed_at"]


class Command(click.Command):
    """A command that works in a project; what it does it tells anywhere."""

    def parse_args(self, context, args):
        """Take the arguments of a call, inside of the project that it is about."""
        if self.name != "init" and not (context.resilient_parsing or self._is_asked_for_help(context, args)):
            from highwater.runtime.package import link_package
            from highwater.runtime.project import enter_project

            enter_project()
            link_package()
        return super().parse_args(context, args)

    def _is_asked_for_help(self, context, args) -> bool:
        if not context.help_option_names:  # of dbt, which has its own
            return bool({"-h", "--help"} & {*args})
        given, *_ = self.make_parser(context).parse_args([*args])
        return bool(given.get("help"))


class Commands(click.Group):
    """The commands; what goes wrong in one of them knows its name."""

    command_class = Command

    def invoke(self, context):
        """Run the command of a context."""
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise UsageError("nobody reads the output any more.") from None
        except Exception:
            with doing(f"highwater {context.invoked_subcommand}"):
                raise


@click.group("highwater", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="highwater")
def commands():
    """Exact current-state tables from any change feed, on dbt, Spark and Delta Lake."""


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder):
    """Write a dbt project of your own into FOLDER, which is new or empty; it is called like the folder."""
    from highwater.scaffold.new_project import begin_project

    for path in begin_project(folder):
        click.echo(f"wrote {printable(os.path.relpath(path))}")
    enter = "" if folder.resolve() == Path.cwd() else f"cd {in_shell(str(folder))}, then "
    click.echo(f"\nNow: {enter}highwater add-tables --help, or add-table; README.md has the next commands.")


@commands.command()
def install():
    """Fetch what Spark needs into the project, for plain dbt before any other command; each command does it itself."""
    from highwater.spark.jars import resolve

    resolve()
    click.echo("The jars of Spark and the macros of this version are there.")


def _known(context, parameter, value):
    """Refuse a table that is not there before Spark starts, which takes a while."""
    from highwater.catalog.entities import known_table
    from highwater.upkeep.renaming import refuse_half

    refuse_half()
    return value and known_table(value)


def _feeds(names: tuple[str, ...]):
    from highwater.catalog.feeds import declared_feeds

    feeds = declared_feeds()
    for name in names:
        if name not in feeds:
            raise UsageError(f"no feed {name!r} is declared; declared are: {', '.join(feeds) or 'none'}.")
    return {name: feed for name, feed in feeds.items() if not names or name in names}


@commands.command()
@click.argument("feeds", nargs=-1)
@click.option("--skip", metavar="FILE", help="Leave this delivered file out, on record.")
def land(feeds, skip):
    """Read new files of the declared feeds (or of FEEDS) into raw.<feed>, every file exactly once."""
    from highwater.builds.told_landing import land_and_tell
    from highwater.landing import feed_folders, landing
    from highwater.runtime.project import lease
    from highwater.spark.spark import session

    declared = _feeds(feeds)
    feed_folders.require_landing_folder(declared.values())
    with lease("highwater land"):
        if skip:
            click.echo(landing.skip(session(), declared, skip))
        else:
            landed = land_and_tell(session(), declared)
            if landed.refused or landed.failures:
                raise CheckError("\n".join(landed.refused + landed.failures))


def _finish_renaming() -> tuple[str, str] | None:
    """Do the rest of a renaming that was killed; return its names."""
    from highwater.runtime.project import lease
    from highwater.spark import dbt
    from highwater.spark.spark import session
    from highwater.upkeep import alter, renaming

    if half := renaming.under_way():
        with lease("highwater alter"):
            renaming.finish_project()
            dbt.begin(is_same=False)
            for line in alter.rename(session(), *half):
                click.echo(line)
    return half


@commands.command(context_settings={"ignore_unknown_options": True})
@click.option("--hold", is_flag=True, help="Publish a group of tables only when its checks have passed.")
@click.option("--verbose", is_flag=True, help="Print dbt's own log, a line for everything that it begins and ends.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def build(hold, verbose, arguments):
    """Land, then `dbt build` with any further dbt ARGUMENTS, in one Spark process.

    ARGUMENTS are for example `--select +orders+`; `highwater dbt build --help` lists them. The ledger, and the lists of
    what was rejected, are built with every --select.

    When nothing in the project has changed since the last build, only tables for which something has landed, or of
    which something failed, are built, with what is made of them; when there are none, dbt is not started. `highwater
    dbt build` builds everything in any case.
    """
    from highwater.builds.build import build as build_tables
    from highwater.upkeep.evolution import meet

    _finish_renaming()
    if status := build_tables(list(arguments), hold, verbose, meet):
        sys.exit(status)


@commands.command("dbt", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dbt_command(arguments):
    """Run any dbt command in the project's environment."""
    from highwater.builds.build import run_dbt
    from highwater.upkeep.renaming import refuse_half

    refuse_half()
    sys.exit(run_dbt(list(arguments)))


@commands.command()
@click.argument("sql")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table")
@click.option("--unsafe", is_flag=True, help="Run it whatever it does. Nothing keeps another command from writing too.")
def query(sql, form, unsafe):
    """Ask the lake: run SQL that reads tables and views, and print its rows."""
    from highwater.spark.spark import reading_session
    from highwater.status.query import show

    with reading_session() as spark:
        show(spark, sql, form, unsafe)


@commands.command()
@click.argument("table", callback=_known)
@click.option(
    "--from",
    "origin",
    type=click.Choice(["log", "raw"]),
    default="log",
    help="What it is made from: its log (the default), or its raw records, which today's models classify again.",
)
@click.option("--accept-loss", is_flag=True, help="Go on although records or keys of the table would be lost.")
def rebuild(table, origin, accept_loss):
    """Write the merged TABLE again, swapped in by one commit."""
    from highwater.builds import last_build
    from highwater.runtime.project import lease
    from highwater.spark.spark import session
    from highwater.upkeep.rebuild import rebuild as rebuild_table
    from highwater.upkeep.rebuild import rebuild_from_raw

    with lease("highwater rebuild"):
        if origin == "raw":
            last_build.take_again(last_build.remembered(), [f"+{table}_changes+"])
            click.echo(rebuild_from_raw(session(), table, accept_loss))
        else:
            click.echo(rebuild_table(session(), table))


@commands.command()
@click.argument("table")
@click.argument("action", type=click.Choice(["add", "drop", "rename", "type", "unit", "key", "name", "feed"]))
@click.argument("values", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Say what it would edit, read and write, and do nothing.")
@click.option("--accept-loss", is_flag=True, help="Go on where records or keys that are there would be lost.")
@click.option("--format", help="Of `feed`: the format of a feed that is not declared yet.")
@click.option("--setting", "settings", multiple=True, metavar="NAME=VALUE", help="Of `feed`: a setting of such a feed.")
@click.option("--source-table", metavar="NAME", help="Of `feed`: what it calls the table, where that is another name.")
@click.option(
    "--resync", is_flag=True, help="Of `feed`: it begins with a full load, and keys that this lacks are gone."
)
@click.option("--at-source", is_flag=True, help="Of `name`: the source calls it so; its name in the lake stays.")
def alter(table, action, values, dry_run, accept_loss, format, settings, source_table, resync, at_source):
    """Change TABLE: its declaration, its tables, and what has landed of it, which is read again where that matters.

    ACTION and VALUES are: add COLUMN:TYPE, drop COLUMN, rename OLD NEW (of the field in the records), type COLUMN TYPE,
    unit COLUMN UNIT, key COLUMN…, name NAME (of the table, in the project and in the lake),
    feed FEED.TABLE (another feed that brings its records from now on).
    """
    from highwater.builds import last_build
    from highwater.runtime.project import lease
    from highwater.spark import dbt
    from highwater.spark.spark import reading_session, session
    from highwater.upkeep import alter as altering
    from highwater.upkeep import alterations, dry_run

    if _finish_renaming() == (table, *values) and action == "name" and not at_source:
        return
    of_feed = {
        "format": format,
        "settings": _settings_given(settings),
        "source_table": source_table,
        "resync": resync,
        "at_source": at_source,
    }
    alteration = alterations.alteration(_known(None, None, table), action, values, **of_feed, at_source=at_source)
    if dry_run:
        with reading_session() as spark:
            for line in dry_run.what_it_would_touch(spark, alteration):
                click.echo(line)
        return
    with lease("highwater alter"):
        spark = session()
        last_build.forget()
        dbt.begin(is_same=False)
        for line in altering.alter(spark, alteration, accept_loss):
            click.echo(line)


@commands.command()
def recover():
    """Put aside what a power cut has left in half, and register tables that the metastore has lost.

    Tables are registered from their folders below the lake; the next build makes the views.
    """
    from highwater.catalog.tables import gather_anew
    from highwater.runtime.project import lease
    from highwater.spark.spark import session
    from highwater.upkeep import recover as recovering

    with lease("highwater recover"):
        aside = recovering.put_aside()
        for line in aside:
            click.echo(line)
        spark = session(recovering=True)
        said, failures = recovering.recover(spark)
        if aside:
            gather_anew(spark)
        for line in said:
            click.echo(line)
        done = aside or said
        click.echo("Now run: highwater build" if done else "Every table is whole, and the metastore knows it.")
        if failures:
            raise CheckError("\n".join(failures))


@commands.command()
@click.argument("table", callback=_known)
@click.option(
    "--from",
    "files",
    metavar="FILES",
    multiple=True,
    required=True,
    help="The files of the load, below the landing folder; in quotes, `*` stands for anything.",
)
@click.option("--read-at", metavar="TIME", help="When the load was read, UTC, where its files do not tell.")
def resync(table, files, read_at):
    """Take a new full load of TABLE as the truth from then on; keys that it lacks are gone."""
    from highwater.runtime.project import lease
    from highwater.spark.spark import session
    from highwater.upkeep.resync import parse_time
    from highwater.upkeep.resync import resync as resync_table

    moment = read_at and parse_time(read_at)
    with lease("highwater resync"):
        for line in resync_table(session(), table, files, moment):
            click.echo(line)


@commands.command()
@click.argument("feed")
def epoch(feed):
    """Declare the epoch that begins where positions of FEED fall while the clock of its source goes on."""
    from highwater.runtime.project import lease
    from highwater.spark.spark import session
    from highwater.upkeep.epoch import declare_epochs

    _feeds((feed,))
    with lease("highwater epoch"):
        for line in declare_epochs(session(), feed):
            click.echo(line)


@commands.command()
@click.argument("table", required=False, callback=_known)
@click.option("--format", "form", type=click.Choice(["table", "json", "html"]), default="table")
def status(table, form):
    """Say where every table stands, or TABLE: its rows, what waits or is pending, read, applied, rejected, stale."""
    import json

    from highwater.spark.spark import reading_session
    from highwater.status.query import show_table
    from highwater.status.status import status as status_of
    from highwater.status.status_page import page

    with reading_session() as spark:
        found = status_of(spark, table)
        if form == "html":
            click.echo(page(spark, found))
    if form == "json":
        for row in found:
            click.echo(json.dumps(row, default=str, ensure_ascii=False))
    elif form == "table" and table:
        show_table(["what", table], [(name, value) for name, value in found[0].items() if name != "table"])
    elif form == "table":
        if found and found[0]["step"]:
            click.echo(found[0]["step"])
        if found:
            at = found[0]["last_build"]
            click.echo(f"The last build came to its end at {at} UTC." if at else "No build has come to its end yet.")
        show_table(OF_EVERY_TABLE, [[_to_the_second(row[name]) for name in OF_EVERY_TABLE] for row in found])
        for told in dict.fromkeys(row["gone_back"] for row in found if row["gone_back"]):
            click.echo(told)
        for row in found:
            if row["fallen"]:
                click.echo(
                    f"{row['fallen']:,} of the changes of {row['table']} that were superseded are newer than what they "
                    f"lost to, by the clock of the source, since {row['fallen_since']} UTC: "
                    f"highwater epoch {row['feeds'][0]}"
                )
            if row["patched_since"]:
                click.echo(f"a patch of {row['table']} is open since {row['patched_since']} UTC")
            if row["disabled_since"]:
                click.echo(f"the changes of {row['table']} are not captured since {row['disabled_since']} UTC")
    troubles = {}
    for row in filter(lambda row: row["trouble"], found):
        troubles.setdefault(row["trouble"], []).append(row["table"])
    if troubles:
        raise CheckError("\n".join(f"{', '.join(tables)}: {trouble}" for trouble, tables in troubles.items()))


def _to_the_second(value):
    return value.replace(microsecond=0) if isinstance(value, datetime) else value


@commands.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--as-of", metavar="POSITION", help="Compare as of this position of the source, as its feed writes it.")
@click.option("--format", "form", type=click.Choice(["table", "json", "junit", "html"]), default="table")
@click.option("--repair", "with_repairs", is_flag=True, help="Write what repairs each difference; nothing is changed.")
def reconcile(tables, as_of, form, with_repairs):
    """Compare every table, or TABLES, with its newest export, and say what differs and what could not be checked.

    Exit code 0: PASS, all rows are equal. 1: FAIL, some differ. 3: INCONCLUSIVE, something could not be checked.
    """
    from highwater.reconcile import page as reconcile_page
    from highwater.reconcile.reconcile import EXIT_CODES
    from highwater.reconcile.reconcile import reconcile as reconcile_tables
    from highwater.spark.spark import reading_session

    with reading_session() as spark:
        try:
            found = reconcile_tables(spark, tables, as_of, with_repairs)
        except CheckError as error:  # 1 says that rows differ
            raise UsageError(str(error)) from error
        if form == "html":
            click.echo(reconcile_page.page(spark, found))
    if form == "json":
        click.echo(reconcile_page.as_json(found))
    elif form == "junit":
        click.echo(reconcile_page.as_junit(found))
    elif form == "table":
        reconcile_page.show(found)
    sys.exit(EXIT_CODES[found.verdict])


@commands.command()
@click.argument("table", callback=_known)
@click.option("--threshold", type=click.IntRange(1), default=1, help="With fewer pending changes nothing is done.")
@click.option(
    "--method",
    type=click.Choice(["in-place", "full", "partitions"]),
    default="in-place",
    help="One merge (the default), after it the table written anew, or each partition that rows came into.",
)
@click.option("--stop-before-rewrite", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--retain-previous", is_flag=True, help="Keep a copy of the table as it was.")
def compact(table, threshold, method, stop_before_rewrite, retain_previous):
    """Write the pending changes of TABLE into its base; queries see no difference."""
    from highwater.runtime.project import lease
    from highwater.spark.spark import session
    from highwater.upkeep.compact import compact as compact_table

    with lease("highwater compact"):
        click.echo(compact_table(session(), table, threshold, method, stop_before_rewrite, retain_previous))


@commands.command()
@click.argument("table", required=False, callback=_known)
def vacuum(table):
    """Drop rows (of TABLE, or of all) that are older than a declared retention; gather small files.

    Files that no version of the last week needs are removed.
    """
    from highwater.runtime.project import lease
    from highwater.spark.spark import session
    from highwater.upkeep.retention import vacuum as vacuum_tables

    with lease("highwater vacuum"):
        for line in vacuum_tables(session(), table):
            click.echo(line)


@commands.command()
@click.argument("table", callback=_known)
@click.option("--accept-loss", is_flag=True, help="Go on although models reject what the log has accepted.")
def replay(table, accept_loss):
    """Take rejected records of TABLE again that are accepted now, after models or declarations were repaired."""
    from highwater.runtime.project import lease
    from highwater.spark.spark import session
    from highwater.upkeep.replay import replay as replay_table

    with lease("highwater replay"):
        click.echo(replay_table(session(), table, accept_loss))


@commands.command()
@click.argument("tables", metavar="FEED[.TABLE]…", nargs=-1, required=True)
@click.option("--enable", is_flag=True, help="Capture its changes from now on, and land the rows that it has.")
@click.option("--disable", is_flag=True, help="Remove what captures its changes.")
@click.option(
    "--method",
    type=click.Choice(["changelog", "changelog-insert", "row-version"]),
    default="changelog",
    help="How changes are found: triggers (the default), triggers for a table whose rows never change, or the "
    "transactions that wrote the rows (which sees no deletes).",
)
@click.option("--key", metavar="NAME,…", help="The columns that identify a row, where there is no primary key.")
@click.option("--export", is_flag=True, help="Export the table, to reconcile with, with its position; of MySQL too.")
@click.option(
    "--throttle",
    metavar="PERCENT",
    type=click.IntRange(1, 100),
    default=100,
    help="Of an export: ask the database for at most this share of the time.",
)
def extract(tables, enable, disable, method, key, export, throttle):
    """Land the changes that a PostgreSQL database has captured, and remove them there.

    Several tables, or FEED for all of them, are extracted as of one moment.
    """
    from highwater.catalog.feeds import declared_feeds
    from highwater.catalog.names import split_name
    from highwater.databases import capturing
    from highwater.databases import extract as extraction
    from highwater.databases.database import POSTGRES, connection_settings
    from highwater.databases.live_export import export as take_export
    from highwater.databases.live_export import kinds_of
    from highwater.runtime.project import lease
    from highwater.spark.spark import session

    if enable + disable + export > 1:
        raise UsageError("--enable, --disable and --export exclude each other.")
    if len(tables) > 1 and (enable or disable or export):
        raise UsageError("--enable, --disable and --export take one table at a time.")
    table = tables[0]
    # before Spark starts
    if enable or disable or export:
        feeds = [split_name(table)[0]]
    else:
        feeds = [feed.name for feed, _ in extraction.chosen_tables(tables)]
    for feed in feeds:
        connection_settings(feed, kinds_of(declared_feeds().get(feed)) if export else (POSTGRES,))
    with lease("highwater extract"):
        if export:
            lines = take_export(session(), table, throttle)
        elif enable:
            lines = capturing.enable(session(), table, method, key)
        elif disable:
            lines = [capturing.disable(session(), table)]
        else:
            lines = extraction.extract(session(), *tables)
    for line in lines:
        click.echo(line)


@commands.command()
@click.argument("table", metavar="FEED.TABLE")
@click.option("--where", metavar="CONDITION", help="Which rows of the lake, in Spark's SQL.")
@click.option("--end", is_flag=True, help="Remove the view again.")
def patch(table, where, end):
    """Load rows of the lake behind a view in PostgreSQL; what is changed there is extracted like any change."""
    from highwater.databases import patch as patching
    from highwater.databases.database import connection_settings
    from highwater.runtime.project import lease
    from highwater.spark.spark import session

    if where and end:
        raise UsageError("--where and --end exclude each other.")
    # before Spark starts
    feed, _, _ = patching.patchable(table)
    connection_settings(feed.name)
    with lease("highwater patch"):
        lines = [patching.end(session(), table)] if end else patching.patch(session(), table, where)
    for line in lines:
        click.echo(line)


DDL = "DDL of the database: what it dumps (pg_dump --schema-only, mysqldump --no-data, …), or what you wrote."


@commands.command("add-table")
@click.argument("table", metavar="FEED.TABLE")
@click.option(
    "--key",
    metavar="NAME:TYPE,…",
    help="The columns that identify a row; by NAME alone with --ddl, or without --columns.",
)
@click.option("--columns", metavar="NAME:TYPE,…", help="The other columns; without it delivered files tell all.")
@click.option("--ddl", type=click.Path(exists=True, dir_okay=False, path_type=Path), help=f"All of it from this. {DDL}")
@click.option("--dialect", type=click.Choice(DIALECTS), help="Which database wrote it, where the feed does not say it.")
@click.option("--format", "form", metavar="FORMAT", help="Format of a feed that is not declared yet.")
@click.option(
    "--setting",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Setting of that feed, for example dialect=mysql.",
)
@click.option(
    "--source-table",
    metavar="NAME",
    help="What its folder or its records call the table, where it is not TABLE: archive.orders, 'Order Details'.",
)
@click.option("--without-key", is_flag=True, help="The table has no key: it gets a log and no merged table.")
@click.option("--history", is_flag=True, help="Also every version of every row; of a table that is there, this alone.")
@click.option(
    "--shards",
    metavar="PATTERN",
    multiple=True,
    help="It is the tables of that name in all schemas, or databases, that are called so: 'tenant_*'.",
)
@click.option("--shard-column", metavar="NAME", help="The column that tells the schema, the first of the key.")
def add_table_command(
    table, key, columns, ddl, dialect, form, settings, source_table, without_key, history, shards, shard_column
):
    """Write the staging, changes, merged and mart models of a table, and their YAML.

    NAME is a field as the records have it, letter by letter; one that holds a comma or a colon stands in double quotes.
    A unit of time stands behind its type: `at:timestamp[millis]`.
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

    given, (feed, name) = _settings_given(settings), split_name(table)
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
        _tell_additions(feed, add_tables(feed, ddl, form, given, dialect, source_table or name, name, key, without_key))
        return
    found, doubts, told = None, [], None
    # a further feed of a table, its history and its exports need no columns
    if not (columns or is_known(feed, name, given) or (key and TYPED.search(key))):
        found, doubts, told = found_for(table, key, without_key, form, given, source_table, shards)
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
        click.echo(f"Columns as {told} of {feed} tell them:")
        show_table(["column", "type", "field"], [[c.name, c.written_type, c.field] for c in found.columns])
    for doubt in doubts:
        click.echo(f"{table}: {printable(str(doubt))}", err=True)
    for path in written:
        click.echo(f"wrote {path}")
    if found:
        said = {"key_from": key_from, "units_from": f"as {told} tell"}
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
@click.option("--ddl", type=click.Path(exists=True, dir_okay=False, path_type=Path), help=f"All from this. {DDL}")
@click.option("--dialect", type=click.Choice(DIALECTS), help="Which database wrote it, where the feed does not say it.")
@click.option("--format", "form", metavar="FORMAT", help="Format of a feed that is not declared yet.")
@click.option("--setting", "settings", metavar="NAME=VALUE", multiple=True, help="Setting of that feed.")
def add_tables_command(feed, ddl, dialect, form, settings):
    """Write the models of every table that a file of DDL creates and FEED does not have yet.

    What is there already is compared with the file, and never overwritten. Without --ddl, of every table of which files
    are delivered; their columns are what the files tell.
    """
    from highwater.scaffold.add_delivered import add_delivered_tables
    from highwater.scaffold.add_tables import add_tables
    from highwater.scaffold.new_feed import check_feed

    given = _settings_given(settings)
    check_feed(feed, form, given)
    if not ddl and dialect:
        raise UsageError("--dialect says which database wrote the file of --ddl; give that too.")
    adding = add_tables(feed, ddl, form, given, dialect) if ddl else add_delivered_tables(feed, form, given)
    _tell_additions(feed, adding, are_delivered=not ddl)


@commands.command("check")
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
def check_command(tables):
    """Say what is wrong with the declarations of all tables, or of TABLES, beside the newest delivered files.

    It starts no Spark. A finding is a line: file, line, what is wrong and what to do. Warnings do not fail.
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
    """Take a table out of the project: its models, and its place in the feed; refused while other models read it.

    Without --drop-data its tables stay in the lake, and go on where they were when the table is added again.
    """
    from highwater.catalog import as_built
    from highwater.catalog.tables import tables_in
    from highwater.runtime.project import lease
    from highwater.scaffold.remove_table import removal_of, remove
    from highwater.spark.spark import quoted, session

    removal = removal_of(table)
    if drop_data:
        with lease("highwater remove-table"):
            spark = session()
            kinds = {each.name: each.tableType for each in spark.catalog.listTables("lake")}
            for name in tables_in(spark, "lake") & set(removal.relations):
                kind = "view" if kinds.get(name) == "VIEW" else "table"
                spark.sql(f"drop {kind} lake.{quoted(name)}")
                click.echo(f"dropped lake.{name}")
            as_built.forget(name.removesuffix("_changes") for name in removal.relations)
    for path in remove(removal):
        click.echo(f"{'removed' if not path.exists() else 'changed'} {path}")
    if not drop_data:
        click.echo("What it has in the lake and in the landing folder stays; added again, it goes on where it was.")


def _tell_additions(feed, adding, are_delivered=False) -> None:
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


def _settings_given(settings) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in settings]
    for name, equals, value in pairs:
        if not equals or not value:
            raise UsageError(f"--setting {name!r} is not written as NAME=VALUE, for example dialect=mysql.")
    return {name: value for name, _, value in pairs}


def main() -> None:
    """Run the command line."""
    keep_the_terminal_clean()
    if sys.stdout.isatty():
        sys.stdout = ShownStream(sys.stdout)
    leave_with_the_sentence(_run)


def _run() -> None:
    try:
        sys.exit(commands(standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        raise KeyboardInterrupt from None


if __name__ == "__main__":
    main()
