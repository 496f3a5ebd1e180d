"""The two ways a command ends badly, with their exit codes."""

import click


class UsageError(click.ClickException):
    """Wrong use or environment: one sentence that says what is wrong and what to do. Exit code 2."""

    exit_code = 2

    def show(self, file=None):
        """Print the message to standard error, without click's own prefix."""
        click.echo(f"highwater: {self.format_message()}", err=True)


class CheckError(UsageError):
    """A file, a check or a model failed although the use was right. Exit code 1."""

    exit_code = 1
