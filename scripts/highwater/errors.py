"""The two ways a command ends badly, with their exit codes. Needs nothing but Python: `make setup` uses it too."""

import sys


class UsageError(Exception):
    """Wrong use or environment: one sentence that says what is wrong and what to do. Exit code 2."""

    exit_code = 2


class CheckError(UsageError):
    """A file, a check or a model failed although the use was right. Exit code 1."""

    exit_code = 1


def leave_with_the_sentence(command) -> None:
    """Run a command; when it ends badly, print its sentence to standard error and exit with its code."""
    try:
        command()
    except UsageError as error:
        print(f"highwater: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
