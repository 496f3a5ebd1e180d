"""dbt in this process, on the session that landing uses too."""

import os
from pathlib import Path

WITHOUT_SPARK = {"parse", "ls", "list", "deps", "clean"}

# Unit tests and tests of macros are about the project; `make test` runs them, and they cost seconds in every build.
CHECKS_OF_DATA_ONLY = ["--exclude-resource-types", "unit_test", "--exclude", "path:tests/macros"]


def set_defaults() -> None:
    """Set dbt's environment where the user has not: the project's profile, and dbt-expectations if it is here."""
    os.environ.setdefault("DBT_PROFILES_DIR", "profiles")
    os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    if "HIGHWATER_DBT_EXPECTATIONS" not in os.environ and Path("dbt_packages/dbt_expectations").exists():
        os.environ["HIGHWATER_DBT_EXPECTATIONS"] = "installed"


def run(arguments: list[str]) -> int:
    """Run one dbt command.

    Arguments:
        arguments: as typed behind `dbt`.
    Returns: 0 done, 1 a model or test failed, 2 dbt could not do it.
    """
    from dbt.cli.main import dbtRunner

    set_defaults()
    result = dbtRunner().invoke(arguments)
    if result.exception is not None:
        return 2
    return 0 if result.success else 1
