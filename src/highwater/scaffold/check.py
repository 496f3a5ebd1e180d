"""Check what the project declares, as a compiler would: without Spark, against the newest files that are delivered."""

from collections.abc import Iterator
from pathlib import Path

from highwater.catalog.entities import known_table, logged_tables, publish_groups
from highwater.catalog.feeds import Feed, declared_feeds
from highwater.catalog.models import models, value_returned_in
from highwater.catalog.yaml_files import described_models
from highwater.landing.feed_folders import Delivered, look
from highwater.landing.new_files import has_all_landed
from highwater.runtime.errors import UsageError
from highwater.runtime.package import package
from highwater.runtime.printable import did_you_mean
from highwater.scaffold.add_table import list_of_tables
from highwater.scaffold.check_feeds import check_feed, check_folder
from highwater.scaffold.check_tables import check_table
from highwater.scaffold.checked import Checked, Finding, Project
from highwater.scaffold.found_columns import RECORDS_AT_MOST, Observed, observed_of_tables

# so that it takes about a second, however many tables there are
RECORDS_OF_ALL, RECORDS_AT_LEAST, LOOKED_AT_MOST = 10_000, 20, 40_000


def check(*chosen: str) -> Checked:
    """Return what is wrong with the declarations of all tables, or of some.

    Arguments:
        chosen: the names of tables; none: all, and the list of tables too.
    Raises: UsageError when a feed or a file of YAML cannot be read, or there is no such table.
    """
    feeds, found = declared_feeds(), Checked()
    for table in chosen:
        known_table(table)
    written, described = models().keys(), described_models().keys()
    tests = {path.stem for path in (package() / "tests/generic").glob("*.sql")}
    tables, findings, of_check = logged_tables(), [], set()
    checked = [(entity, sources) for entity, sources in tables if not chosen or entity in chosen]
    observed = _observed([source for _, sources in checked for source in sources], feeds)
    project = Project(feeds, observed, [entity for entity, _ in tables], written, written - described, tests)
    for entity, sources in checked:
        findings += check_table(entity, sources, project, found.compared)
        of_check |= {feed for feed, _ in sources if feed in feeds}
    of_tables = [feed for name, feed in feeds.items() if not chosen or name in of_check]
    lying = {feed.name: _lying(feed) for feed in of_tables}
    for feed in of_tables:
        findings += check_feed(feed, project, not chosen, lying[feed.name])
    findings += check_folder(of_tables)
    if not chosen:
        findings += [*_check_groups(project), *_check_list_of_logs()]
    found.findings = [*{(str(each)): each for each in findings}.values()]
    found.waiting = [feeds[name] for name in sorted(of_check) if not has_all_landed(feeds[name], lying[name])]
    return found


def _lying(feed: Feed) -> Delivered:
    """Return what lies in the folders of a feed; nothing where an export has no position, which landing says."""
    try:
        return look(feed)
    except UsageError:
        return Delivered()


def _observed(sources: list[tuple[str, str]], feeds: dict[str, Feed]) -> dict[tuple[str, str], Observed]:
    """Return what the newest files tell of some tables, from fewer records of each where they are many."""
    records = min(RECORDS_AT_MOST, max(RECORDS_AT_LEAST, RECORDS_OF_ALL // max(1, len(sources))))
    observed = {source: Observed() for source in sources}
    for feed in [feeds[name] for name in dict.fromkeys(name for name, _ in sources) if name in feeds]:
        if feed.is_delivered:
            tables = [table for name, table in sources if name == feed.name]
            of_feed = observed_of_tables(feed, tables, records, LOOKED_AT_MOST)
            observed |= {(feed.name, table): found for table, found in of_feed.items()}
    return observed


def _check_list_of_logs() -> Iterator[Finding]:
    listed = list_of_tables()
    if (_listed(listed) or []) != [entity for entity, _ in logged_tables()]:
        problem = "is not what the models say, and builds read it. Take it from version control, or run any add-table."
        yield Finding(listed, 1, problem)


def _check_groups(project: Project) -> Iterator[Finding]:
    """Look for tables of publish groups that are not there."""
    for group, entities in publish_groups().items():
        for entity in entities:
            if entity not in project.entities:
                path = models("publications")[f"{group}_publications"].path
                said = f"the group {group} has the table {entity}, which is not there."
                yield Finding(path, 1, f"{said}{did_you_mean(entity, project.entities)}")


def _listed(path: Path) -> list[str] | None:
    """Return the names in the list of tables; None: there is no list."""
    listed = value_returned_in(path) if path.exists() else None
    # as add-table of version 0.5 wrote them, each is a mapping
    return listed and [table["entity"] if isinstance(table, dict) else table for table in listed]
