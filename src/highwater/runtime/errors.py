"""The ways a command ends badly, with their exit codes. Needs nothing but Python: `make setup` uses it too."""


class UsageError(Exception):
    """Wrong use or environment: one sentence that says what is wrong and what to do. Exit code 2."""

    exit_code = 2


class CheckError(UsageError):
    """A file, a check or a model failed although the use was right. Exit code 1."""

    exit_code = 1
