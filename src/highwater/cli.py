"""The `highwater` command."""

import sys

import click

from highwater.commands import ask, build, compare, databases, declare, project, upkeep  # noqa: F401
from highwater.commands.group import commands
from highwater.runtime.endings import leave_with_the_sentence
from highwater.runtime.faults import keep_the_terminal_clean
from highwater.runtime.printable import ShownStream


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
