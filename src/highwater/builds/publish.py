"""Publish groups: tables that move together, and builds that hold them until their checks have passed."""

import click

from highwater.catalog.entities import publish_groups
from highwater.runtime.errors import UsageError
from highwater.scaffold.new_fields import types_of_fields
from highwater.spark import dbt

CANDIDATE = ["--vars", "{candidate: true}"]
SELECTING = {"--select", "-s", "--models", "-m", "--exclude", "--selector", "--vars"}


def build_held(spark, arguments: list[str]) -> tuple[int, list[str]]:
    """Build everything, but publish a group only when the checks of what it would show have passed.

    The logs are built first. The views of each group are then built in the schema `lake_candidate`, as they would
    be after publishing, and their tests run there. Readers of `lake` see the old rows all the while.

    Arguments:
        spark: the session. arguments: options of dbt for each step; no selection.
    Returns: 0 done, 1 a model or test outside the groups failed, 2 dbt could not do it; and what to say of groups that
        keep their old rows.
    Raises: UsageError when there is no group, one has not been built yet, or the arguments select.
    """
    groups = publish_groups()
    if not groups:
        raise UsageError("no publish group is declared, so there is nothing to hold; see docs/publishing.md.")
    selecting = [word for word in arguments if word.partition("=")[0] in SELECTING]
    if selecting:
        raise UsageError(f"--hold builds everything in its own order and takes no {selecting[0]}.")
    unbuilt = [
        f"{entity}_merged"
        for entities in groups.values()
        for entity in entities
        if not spark.catalog.tableExists(f"lake.{entity}_merged")
    ]
    if unbuilt:
        raise UsageError(
            f"{', '.join(unbuilt)}: not built yet, so there is no old state that readers could keep. "
            "Build once without --hold."
        )
    options = [*dbt.WITHOUT_UNIT_TESTS, *arguments]
    leave = dbt.without_tests_of_macros()
    behind = {group: f"{group}_publications+" for group in groups}
    first = dbt.run(["build", *options, *leave, *behind.values()], types_of_fields())
    if first == 2:
        return first, []
    failed = [group for group, entities in groups.items() if not _passes(options, group, entities)]
    passed = [behind[group] for group in groups if group not in failed]
    last = (
        dbt.run(["build", *options, "--select", *passed, *leave, *(behind[group] for group in failed)]) if passed else 0
    )
    withheld = [
        f"not published: {', '.join(failed)}. A model or a check of the candidate failed, so readers see what they "
        "saw before. The candidate's rows are in lake_candidate. Mend what is wrong and build again with --hold, "
        "or publish them as they are with: highwater build"
    ]
    return first or last, withheld if failed else []


def _passes(options: list[str], group: str, entities: list[str]) -> bool:
    click.echo(f"{group}: checking what would be published of {', '.join(entities)}")
    # a failed check of a log keeps dbt from publishing in any build
    if dbt.run(["test", *options, "--select", f"+{group}_publications", *dbt.without_tests_of_macros()]):
        return False
    return not dbt.run(["build", *options, "--select", *entities, *CANDIDATE])
