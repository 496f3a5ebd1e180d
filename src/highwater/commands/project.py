"""Commands that set up a project: init, install, doctor."""

import os
from pathlib import Path

import click

from highwater.commands.group import commands
from highwater.runtime.errors import CheckError
from highwater.runtime.printable import in_shell, printable


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder):
    """Create a dbt project in FOLDER. The folder must be new or empty; the project is named after it."""
    from highwater.scaffold.new_project import begin_project

    for path in begin_project(folder):
        click.echo(f"wrote {printable(os.path.relpath(path))}")
    enter = "" if folder.resolve() == Path.cwd() else f"cd {in_shell(str(folder))}, then "
    click.echo(f"\nNow: {enter}highwater add-tables --help, or add-table; README.md has the next commands.")


@commands.command()
def install():
    """Download the jars that Spark needs, and link the macros. Every other command does this by itself."""
    from highwater.spark.jars import resolve

    resolve()
    click.echo("The jars of Spark and the macros of this version are there.")


@commands.command()
@click.option("--make-schema", is_flag=True, help="Make the schema of a shared metastore that has none.")
def doctor(make_schema):
    """Try the deployment that HIGHWATER_TARGET names: Java, jars, metastore, Spark, executors, lake, landing."""
    from highwater.status.doctor import examine

    wrong = []
    for found in examine(make_schema):
        click.echo(f"{'ok   ' if found.is_well else 'WRONG'}  {found.part:<10} {found.words}")
        wrong += [] if found.is_well else [found.part]
    if wrong:
        raise CheckError(f"{', '.join(wrong)}: see above.")
