"""Commands that connect to a source database: extract, patch."""

import click

from highwater.commands.group import commands
from highwater.runtime.errors import UsageError


@commands.command()
@click.argument("tables", metavar="FEED[.TABLE]…", nargs=-1, required=True)
@click.option("--enable", is_flag=True, help="Capture changes from now on, and land the existing rows.")
@click.option("--disable", is_flag=True, help="Stop capturing: remove the triggers and the changelog.")
@click.option(
    "--method",
    type=click.Choice(["changelog", "changelog-insert", "row-version"]),
    default="changelog",
    help="How to capture changes: with triggers (the default), with triggers for an insert-only table, or by the "
    "transaction that last wrote each row (misses deletes).",
)
@click.option("--key", metavar="NAME,…", help="The columns that identify a row, if there is no primary key.")
@click.option(
    "--export", is_flag=True, help="Export the table with its position, for `highwater reconcile`; from MySQL too."
)
@click.option(
    "--throttle",
    metavar="PERCENT",
    type=click.IntRange(1, 100),
    default=100,
    help="With --export: query the database for at most this share of the time.",
)
def extract(tables, enable, disable, method, key, export, throttle):
    """Land the changes captured in a PostgreSQL database.

    Landed changes are removed from the changelog there. Several tables, or FEED for all of its tables, are extracted as
    of one moment.
    """
    from highwater.catalog.feeds import declared_feeds
    from highwater.catalog.names import split_name
    from highwater.databases import capturing
    from highwater.databases import extract as extraction
    from highwater.databases.database import POSTGRES, connection_settings
    from highwater.databases.live_export import export as take_export
    from highwater.databases.live_export import kinds_of
    from highwater.spark.lease import lease
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
@click.option("--where", metavar="CONDITION", help="Which rows of the lake to load: a condition in Spark SQL.")
@click.option("--end", is_flag=True, help="Remove the view.")
def patch(table, where, end):
    """Load rows of the lake into PostgreSQL, behind a view. Changes made to the view are extracted like any others."""
    from highwater.databases import patch as patching
    from highwater.databases.database import connection_settings
    from highwater.spark.lease import lease
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
