"""Commands about built tables: compact, epoch, rebuild, recover, replay, resync, vacuum."""

import click

from highwater.commands.group import commands, feeds_named, known
from highwater.runtime.errors import CheckError


@commands.command()
@click.argument("table", callback=known)
@click.option(
    "--from",
    "origin",
    type=click.Choice(["log", "raw"]),
    default="log",
    help="Rebuild the base from the log (the default), or log, base, history and ledger from raw, with today's models.",
)
@click.option("--accept-loss", is_flag=True, help="Continue even if records or keys of the table are lost.")
def rebuild(table, origin, accept_loss):
    """Rebuild the base of TABLE, and swap it in with one commit."""
    from highwater.builds import last_build
    from highwater.spark.lease import lease
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
def recover():
    """Quarantine half-written commits, and register lost tables.

    Tables that the metastore has lost are registered from their folders in the lake; the next build creates the views.
    """
    from highwater.catalog.tables import gather_anew
    from highwater.spark.lease import lease
    from highwater.spark.spark import session
    from highwater.upkeep import recover as recovering

    with lease("highwater recover", recovering=True):
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
@click.argument("table", callback=known)
@click.option(
    "--from",
    "files",
    metavar="FILES",
    multiple=True,
    required=True,
    help="The files of the load, relative to the landing folder; quote wildcards (`*`).",
)
@click.option("--read-at", metavar="TIME", help="When the load was read, in UTC, if its files do not say.")
def resync(table, files, read_at):
    """Take a new full load of TABLE as the truth from then on. Keys missing from it are gone."""
    from highwater.spark.lease import lease
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
    """Declare an epoch where the positions of FEED fall. They fall while its clock moves on, as after a failover."""
    from highwater.spark.lease import lease
    from highwater.spark.spark import session
    from highwater.upkeep.epoch import declare_epochs

    feeds_named((feed,))
    with lease("highwater epoch"):
        for line in declare_epochs(session(), feed):
            click.echo(line)


@commands.command()
@click.argument("table", callback=known)
@click.option("--threshold", type=click.IntRange(1), default=1, help="Do nothing if fewer changes are pending.")
@click.option(
    "--method",
    type=click.Choice(["in-place", "full", "partitions"]),
    default="in-place",
    help="in-place (the default): one MERGE. `full` then rewrites the table, `partitions` those that got rows.",
)
@click.option("--stop-before-rewrite", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--retain-previous", is_flag=True, help="Keep a copy of the table as it was before.")
def compact(table, threshold, method, stop_before_rewrite, retain_previous):
    """Write the pending changes of TABLE into its base. Queries see no difference."""
    from highwater.spark.lease import lease
    from highwater.spark.spark import session
    from highwater.upkeep.compact import compact as compact_table

    with lease("highwater compact"):
        click.echo(compact_table(session(), table, threshold, method, stop_before_rewrite, retain_previous))


@commands.command()
@click.argument("table", required=False, callback=known)
def vacuum(table):
    """Drop rows that are older than a declared retention.

    TABLE limits this to one table. It also combines small files, and deletes files that no version of the last week
    needs.
    """
    from highwater.spark.lease import lease
    from highwater.spark.spark import session
    from highwater.upkeep.retention import vacuum as vacuum_tables

    with lease("highwater vacuum"):
        for line in vacuum_tables(session(), table):
            click.echo(line)


@commands.command()
@click.argument("table", callback=known)
@click.option("--accept-loss", is_flag=True, help="Continue even if models reject records that the log has accepted.")
def replay(table, accept_loss):
    """Replay rejected records of TABLE that are accepted now. Fix models or declarations first."""
    from highwater.spark.lease import lease
    from highwater.spark.spark import session
    from highwater.upkeep.replay import replay as replay_table

    with lease("highwater replay"):
        click.echo(replay_table(session(), table, accept_loss))
