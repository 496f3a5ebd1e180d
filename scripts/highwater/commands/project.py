"""Commands that make a project ready: init, install."""

import os
from pathlib import Path

import click

from highwater.commands.group import commands
from highwater.runtime.printable import in_shell, printable


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
