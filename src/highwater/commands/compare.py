"""The command that compares tables with their source: reconcile."""

import sys

import click

from highwater.commands.group import commands
from highwater.runtime.errors import CheckError, UsageError


@commands.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--as-of", metavar="POSITION", help="Compare as of this source position, in the notation of the feed.")
@click.option("--format", "form", type=click.Choice(["table", "json", "junit", "html"]), default="table")
@click.option("--repair", "with_repairs", is_flag=True, help="Show how to repair each difference; change nothing.")
def reconcile(tables, as_of, form, with_repairs):
    """Compare every table, or TABLES, with its newest export.

    The report says what differs and what could not be checked. Exit code 0: PASS, all rows are equal. 1: FAIL, some
    differ. 3: INCONCLUSIVE, something could not be checked.
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
