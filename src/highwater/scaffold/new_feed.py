"""What somebody says of a feed on the command line, before a table of it is declared."""

from dataclasses import replace

from highwater.catalog.declarations import sources_file
from highwater.catalog.feeds import FORMATS, NAME, Feed, declared_feeds, feed_of_settings
from highwater.catalog.tables import named
from highwater.catalog.yaml_files import as_yaml_reads_it, setting_in_yaml
from highwater.runtime.errors import UsageError


def check_feed(feed: str, format: str | None, settings: dict[str, str]) -> None:
    """Check the name of a feed, and its format and settings as they were typed, before anything is written.

    Raises: UsageError naming the first thing that is wrong, and what it may be.
    """
    if "." in feed:
        raise UsageError(f"{feed!r} is a table; all tables are added to its feed, and one with: highwater add-table")
    if not NAME.fullmatch(feed) or "_" not in feed or "__" in feed:
        raise UsageError(
            f"{feed!r} is no name of a feed: <vendor>_<system> in lower-case letters, digits and _, "
            "for example debezium_shop."
        )
    feeds = declared_feeds()
    typed = {name: as_yaml_reads_it(value) for name, value in settings.items()}
    if declared := feeds.get(feed):
        if format not in (None, declared.format):
            raise UsageError(
                f"the feed {feed} is declared already, with the format {declared.format}, and a feed has one format. "
                f"Leave --format out, or give what is delivered as {format} to a feed of another name."
            )
        feed_of_settings(f"the feed {feed}", feed, declared.settings | typed, {})
        for name in [name for name, value in typed.items() if declared.settings.get(name) != value]:
            raise UsageError(_setting_of_declared(declared, name, settings[name]))
        return
    if format is None:
        raise UsageError(
            f"the feed {feed} is not declared yet; say its format with --format {'|'.join(FORMATS)}. "
            f"Declared are: {named([*feeds]) or 'none'}."
        )
    if format not in FORMATS:
        raise UsageError(f"--format is {format!r}; it must be one of: {', '.join(FORMATS)}.")
    given_feed(feed, format, settings, {})


def _setting_of_declared(feed: Feed, name: str, value: str) -> str:
    """Return what to say of a setting that was given for a feed which is declared without it, or otherwise."""
    has_it = name in feed.settings
    now = f"with `{name}: {feed.settings[name]}`" if has_it else f"without `{name}`"
    place = "in its place" if has_it else "beside `format`"
    return (
        f"the feed {feed.name} is declared already, {now}. --setting is for new feeds, so nothing was changed. Write "
        f"`{name}: {setting_in_yaml(value)}` {place} in {sources_file(feed.name)}, and leave --setting out. The next "
        "build reads new records by it; highwater replay TABLE takes rejected ones again, and highwater rebuild TABLE "
        "--from raw reads all of them anew."
    )


def given_feed(
    feed: str, format: str | None, settings: dict[str, str], tables: dict[str, str], shards: dict | None = None
) -> Feed:
    """Return a feed as it is declared, or as it is about to be, with these tables alone, and the shards of others.

    Arguments:
        format, settings: as they were typed, of a feed that is not declared. tables: what raw calls them, by name.
        shards: what tables are about to declare of them, by name.
    Raises: UsageError naming the setting, its value and what is allowed.
    """
    declared = declared_feeds().get(feed)
    if declared:
        given = declared.settings
    else:
        role = {} if "changes" in FORMATS[format].roles else {"role": "baseline"}
        given = {"format": format} | role | {name: as_yaml_reads_it(value) for name, value in settings.items()}
    found = feed_of_settings(f"the feed {feed}", feed, given, tables, shards)
    others = [each for each in declared.options.shards if each.table not in tables.values()] if declared else []
    return replace(found, options=replace(found.options, shards=(*found.options.shards, *others)))
