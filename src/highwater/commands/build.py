"""Commands that load changes into tables: land, build, dbt."""

import sys

import click

from highwater.commands.declare import finish_renaming
from highwater.commands.group import commands, feeds_named
from highwater.runtime.errors import CheckError


@commands.command()
@click.argument("feeds", nargs=-1, metavar="[FEED]...")
@click.option("--skip", metavar="FILE", help="Skip this delivered file, and record that.")
def land(feeds, skip):
    """Load new files of all feeds, or of FEEDS, into raw.<feed>. Every file lands exactly once."""
    from highwater.builds.landing_report import land_and_tell
    from highwater.landing import feed_folders, landing
    from highwater.spark.lease import lease
    from highwater.spark.spark import session

    declared = feeds_named(feeds)
    feed_folders.require_landing_folder(declared.values())
    with lease("highwater land"):
        if skip:
            click.echo(landing.skip(session(), declared, skip))
        else:
            landed = land_and_tell(session(), declared)
            if landed.refused or landed.failures:
                raise CheckError("\n".join(landed.refused + landed.failures))


@commands.command(context_settings={"ignore_unknown_options": True})
@click.option("--hold", is_flag=True, help="Publish a group of tables only if its checks have passed.")
@click.option("--verbose", is_flag=True, help="Print dbt's own log.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def build(hold, verbose, arguments):
    """Land new files, then run `dbt build`, in one Spark process.

    ARGUMENTS are passed to dbt, for example `--select +orders+`; `highwater dbt build --help` lists them. With
    --select, the ledger and the lists of rejected records are built too.

    If the project has not changed since the last build, only tables with new records or earlier failures are built, and
    what depends on them. If there are none, dbt does not start. `highwater dbt build` always builds everything.
    """
    from highwater.builds.build import build as build_tables
    from highwater.upkeep.evolution import meet

    finish_renaming()
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
