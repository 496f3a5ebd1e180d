"""Where the files of a feed go, in words."""

import unicodedata

from highwater.catalog.feeds import Feed
from highwater.catalog.names import declaring, name_inside
from highwater.catalog.tables import named
from highwater.formats.formats import FORMATS, TABLE_IN_FOLDERS
from highwater.landing.landings import Landing
from highwater.runtime.printable import in_shell, printable


def folder_of(feed: Feed, table: str) -> str:
    """Return the folder that the files of one of its tables go into; with other tables' where they tell their table."""
    below = f"{feed.source_table(table)}/" if feed.layout == TABLE_IN_FOLDERS else ""
    return printable(f"{feed.root}/{feed.name}/{below}")


def has_own_folders(feed: Feed, tables: list[str]) -> bool:
    """Return whether some of its tables have folders that are not called as they are inside the project."""
    return (
        FORMATS[feed.format].is_delivered
        and feed.layout == TABLE_IN_FOLDERS
        and any(feed.source_table(table) != table for table in tables)
    )


def what_is_next(feed: Feed, tables: list[str]) -> str:
    """Return what to do when these tables of a feed have been declared."""
    if not FORMATS[feed.format].is_delivered:
        return f"Now: highwater extract {feed.name}.{tables[0] if len(tables) == 1 else 'TABLE'} --enable"
    beside = ""
    if feed.role == "export":
        beside = (
            f", name each in _exports.yml beside it with where the source stood (`{tables[0]}-1.csv: {{position: "
            "unknown}` where nobody knows)"
        )
    return f"Now deliver {where_files_go(feed, tables)}{beside} and run: highwater build"


def where_files_go(feed: Feed, tables: list[str]) -> str:
    """Return which files go into which folder, of a feed whose files are delivered."""
    if feed.layout != TABLE_IN_FOLDERS or len(tables) == 1:
        return f"files into {folder_of(feed, tables[0])}"
    if has_own_folders(feed, tables):
        return f"the files of each table into its folder, letter by letter, of {printable(f'{feed.root}/{feed.name}/')}"
    return f"the files of each table into {printable(f'{feed.root}/{feed.name}')}/<table>/"


def nothing_landed(feeds: list[Feed]) -> str:
    """Return where to deliver the files of feeds of which nothing has ever landed; at least one is delivered."""
    if len(feeds) == 1:
        return f"deliver {where_files_go(feeds[0], [*feeds[0].tables])}"
    return f"deliver their files into {printable(feeds[0].root)}/<feed>/"


def all_empty(feeds: list[Feed], newest: dict[str, Landing]) -> list[str]:
    """Return what to say at the end of a build when nothing has ever landed of what tables are made of, a line.

    Arguments:
        feeds: that are declared. newest: the newest landing of each; (0, 0): there is none.
    """
    of_tables = [feed for feed in feeds if feed.role != "export" and feed.tables]
    if not of_tables or any(any(newest[feed.name]) for feed in of_tables):
        return []
    delivered = [feed for feed in of_tables if is_delivered_to(feed)]
    if not delivered:
        return [
            "Nothing has landed yet, so every table is empty. Land it with highwater extract; then: highwater build"
        ]
    return [
        f"Nothing has landed yet, so every table is empty. For {named([feed.name for feed in delivered])}, "
        f"{nothing_landed(delivered)}; then: highwater build"
    ]


def is_delivered_to(feed: Feed) -> bool:
    """Return whether tables are made of files that somebody delivers for a feed."""
    return FORMATS[feed.format].is_delivered and feed.role != "export" and bool(feed.tables)


def undeclared(feed: Feed, folder: str) -> str:
    """Return what to say of a folder that is no declared table of its feed."""
    said = f"{feed.name}/{printable(folder)}/ is no declared table of the feed; its files are not read. "
    meant = tables_called_like(feed, folder)
    if not meant:
        return f"{said}Declare it with: {declaring_another(feed, folder)}"
    own = " and ".join(f"{feed.name}/{printable(feed.source_table(table))}/" for table in meant)
    declared = f"the declared table{'s'[: len(meant) != 1]} {' and '.join(meant)}"
    return (
        f"{said}Folders tell tables letter by letter, and the files of {declared} go into {own}: "
        f"deliver them there. If they are those of another table: {declaring_another(feed, folder)}"
    )


def tables_called_like(feed: Feed, folder: str) -> list[str]:
    """Return the tables of a feed whose folders are called like another one but for upper and lower case."""
    return [table for table in feed.tables if _letters(feed.source_table(table)) == _letters(folder)]


def declaring_another(feed: Feed, source_table: str) -> str:
    """Return the command that declares one more table of a feed, under a name that none of its tables has."""
    name, number = name_inside(source_table), 2
    if name not in feed.tables:
        return declaring(feed.name, source_table)
    while (another := f"{name[:60]}_{number}") in feed.tables:
        number += 1
    return f"highwater add-table {feed.name}.{another} --source-table {in_shell(source_table)}"


def _letters(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
