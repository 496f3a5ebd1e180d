"""Names of tables inside the project, and what the source calls them."""

import re

from highwater.catalog.feeds import NAME
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import in_shell

LONGEST_NAME = 200


def split_name(table: str) -> tuple[str, str]:
    """Return feed and table of `<feed>.<table>`.

    Raises: UsageError when it is not written so, or a name is no name inside the project; it says what to type.
    """
    feed, _, name = table.partition(".")
    if not NAME.fullmatch(feed) or not name or "_" not in feed or "__" in feed:
        raise UsageError(
            f"{table!r} is not <vendor>_<system>.<table> in lower-case letters, digits and _, "
            "for example datastream_user1.orders."
        )
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name of a table inside the project: lower-case letters, digits and _, a letter first. "
            f"Give it one, and say what the source calls it: {declaring(feed, name)}"
        )
    if len(f"stg_{feed}__{name}_changes") > LONGEST_NAME:
        raise UsageError(
            f"{name!r} is too long: its models would have names of more than {LONGEST_NAME} characters. "
            "Give it a shorter one, and say with --source-table what the source calls it."
        )
    return feed, name


def name_inside(source_table: str) -> str:
    """Return the name that a table gets inside the project; it is its own where that is one."""
    name = re.sub("[^a-z0-9]+", "_", source_table.lower()).strip("_")
    return (name if NAME.fullmatch(name) else f"t_{name}".rstrip("_"))[:63]


def declaring(feed: str, source_table: str) -> str:
    """Return the command that declares a table which the source calls so, but for its columns."""
    name = name_inside(source_table)
    option = "" if name == source_table else f" --source-table {in_shell(source_table)}"
    return f"highwater add-table {feed}.{name}{option}"
