"""Where the files of a feed go, in words."""

import json
import shlex
import unicodedata
from collections.abc import Iterator

from highwater.catalog.entities import logged_tables
from highwater.catalog.feeds import Feed, sql_text
from highwater.catalog.names import declaring, name_inside
from highwater.catalog.tables import named
from highwater.formats.formats import TABLE_IN_FOLDERS
from highwater.landing.file_names import is_archive, usual_endings
from highwater.landing.landings import Landing
from highwater.runtime.printable import in_shell, printable


def folder_of(feed: Feed, table: str) -> str:
    """Return the folder that the files of one of its tables go into; with other tables' where they tell their table."""
    schema = "<schema>/" if feed.shards_of(table) else ""
    below = f"{schema}{feed.source_table(table)}/" if feed.layout == TABLE_IN_FOLDERS else ""
    return printable(f"{feed.root}/{feed.name}/{below}")


def has_own_folders(feed: Feed, tables: list[str]) -> bool:
    """Return whether some of its tables have folders that are not called as they are inside the project."""
    return (
        feed.is_delivered
        and feed.layout == TABLE_IN_FOLDERS
        and any(feed.source_table(table) != table for table in tables)
    )


def what_is_next(feed: Feed, tables: list[str]) -> str:
    """Return what to do when these tables of a feed have been declared."""
    if feed.relation:
        return "Now run: highwater build"
    if not feed.is_delivered:
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
    return feed.is_delivered and feed.role != "export" and bool(feed.tables)


def undeclared(feed: Feed, folder: str) -> str:
    """Return what to say of a folder that is no declared table of its feed."""
    said = f"{feed.name}/{printable(folder)}/ is no declared table of the feed; its files are not read. "
    schema, _, table = folder.rpartition("/")
    if shards := next((each for each in feed.options.shards if schema and each.has(schema, each.table)), None):
        patterns = " ".join(f"--shards {in_shell(pattern)}" for pattern in shards.schemas)
        return f"{said}Declare it with: {declaring(feed.name, table)} {patterns} --shard-column {shards.column}"
    meant = tables_called_like(feed, folder)
    if not meant:
        return f"{said}Declare it with: {declaring_another(feed, folder)}"
    own = " and ".join(folder_of(feed, table).removeprefix(f"{printable(feed.root)}/") for table in meant)
    declared = f"the declared table{'s'[: len(meant) != 1]} {' and '.join(meant)}"
    return (
        f"{said}Folders tell tables letter by letter, and the files of {declared} go into {own}: "
        f"deliver them there. If they are those of another table: {declaring_another(feed, folder)}"
    )


def left_in_words(feed: Feed, left: dict[str, str]) -> str:
    """Return what to say of files that are not looked into, as their names tell.

    Arguments:
        left: their names, and what each is in words.
    """
    in_words = [f"{printable(name)} ({words})" for name, words in left.items()]
    what = "1 file is" if len(left) == 1 else f"{len(left):,} files are"
    return (
        f"{feed.name}: {what} left alone by name: {named(in_words)}. "
        "What is whole lands under its own name; what nothing writes any more, deliver again"
    )


def odd_in_words(feed: Feed, odd: list[str]) -> Iterator[str]:
    """Yield what to say of files that are not called as those of a feed are, by what to do about them.

    Arguments:
        odd: their names.
    """
    usual = usual_endings(feed.format) if odd else []  # what is extracted has no files
    for names in ([name for name in odd if not is_archive(name)], [name for name in odd if is_archive(name)]):
        if not names:
            continue
        it, what = ("it", "1 file is") if len(names) == 1 else ("them", f"{len(names):,} files are")
        ending, declaration = printable(names[0].rpartition(".")[2]), f"_{feed.name}__sources.yml"
        do = f"Unpack {it}, and deliver what is inside"
        if not is_archive(names[0]):
            do = (
                f"Rename {it} to end in {usual[0]}; or declare the ending in "
                f"models/staging/{feed.name}/{declaration} (`endings: [{ending}]`)"
            )
        yield (
            f"{feed.name}: {what} not read, for files of {feed.format} end in {', '.join(usual)} and the like, or have "
            f"no ending: {named([*map(printable, names)])}. {do}; or leave {it} out on record: {skipping(names[0])}"
        )


def cut_in_words(feed: Feed, source_file: str) -> str:
    """Return what to say of a file that ends within a line."""
    name, path = printable(source_file), f"{feed.root}/{source_file}"
    end_it = "" if "://" in path else f"end its last line (echo >> {in_shell(path)}), or "
    return (
        f"{name} is cut: it ends within a line, and the producer of {feed.format} ends every line. Nothing of it has "
        "landed. It lands when it is whole: deliver it again where nothing writes it any more. Where this is all that "
        f"there is, {end_it}leave it out on record: {skipping(source_file)}"
    )


def begun_in_words(feed: Feed, source_file: str, before: str) -> str:
    """Return what to do about a file whose beginning had landed under the name that it had while it was written.

    Arguments:
        source_file: of the whole one. before: that name.
    """
    folder = feed.table_of_file(source_file)
    tables = [
        entity
        for entity, sources in logged_tables()
        if any(
            (name == feed.name and feed.layout != TABLE_IN_FOLDERS) or (name, table) == (feed.name, folder)
            for name, table in sources
        )
    ]
    return (
        f"{printable(source_file)} begins with all that landed before as {printable(before)}, while it was written. "
        "Both count now, and the last line of the beginning may be cut. To leave the beginning out, add to `epochs` of "
        f"the feed in models/staging/{feed.name}/_{feed.name}__sources.yml, as the last: "
        f"{{when: {json.dumps(f'source_file = {sql_text(before)}')}, ignore: true}}. "
        f"Then run: {' && '.join(f'highwater rebuild {table} --from raw --accept-loss' for table in tables)}, which "
        "says what it takes out"
    )


def skipping(source_file: str) -> str:
    """Return the command that leaves a file out, as it can be typed into a shell."""
    return f"highwater land --skip {shlex.quote(printable(source_file))}"


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
