"""Change a table with one command: its declaration, its tables and, where needed, its records."""

import yaml

from highwater.catalog.entities import logged_tables, settings_of
from highwater.catalog.feeds import declared_feeds, numbers_of, sql_text
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import counted
from highwater.scaffold.add_table import FurtherFeed
from highwater.scaffold.rename_table import renamed_files
from highwater.spark import dbt
from highwater.spark.lake_tables import newest_versions
from highwater.spark.spark import quoted
from highwater.upkeep import renaming
from highwater.upkeep.alterations import Alteration
from highwater.upkeep.evolution import meet
from highwater.upkeep.losses import ACCEPT, WouldBeLostError
from highwater.upkeep.rebuild import rebuild_from_raw

# records of a table that its log lacks, in batches that it has already read past
PASSED = """
    select count(*)
    from raw.{feed} as raw
    where
        entry = 'record'
        and source_table = {table}
        and landing_batch <= (select max(landing_batch) from lake.`{entity}_changes` where feed = '{feed}')
        and not exists (
            select 1
            from lake.`{entity}_changes` as log
            where
                log.feed = '{feed}'
                and log.source_file <=> raw.source_file
                and log.source_line <=> raw.source_line
                and log.landing_batch = raw.landing_batch
        )
"""

NEXT = "Commit the changed files under models/. Now: highwater build"


def _take_in_renamed(spark, alteration: Alteration, is_again: bool) -> list[str]:
    """Assign records that landed under another name to the table; rebuild the log if it has already read past them.

    Arguments:
        is_again: the name was declared before, and a kill may have come between the updates of raw and log.
    """
    entity, said, passed = alteration.entity, [], 0
    for feed, table in dict(logged_tables())[entity]:
        if feed not in alteration.called or not spark.catalog.tableExists(f"raw.{feed}"):
            continue
        of_name = f"source_table = {sql_text(alteration.called[feed])}"
        records = spark.sql(f"select count(*) from raw.{feed} where {of_name} and entry = 'record'").first()[0]
        if spark.catalog.tableExists("lake.unassigned_records"):
            spark.sql(f"delete from lake.unassigned_records where feed = {sql_text(feed)} and {of_name}")
        if records:
            spark.sql(f"update raw.{feed} set source_table = {sql_text(table)} where {of_name}")
            said.append(f"raw.{feed}: {counted(records, 'record')} had landed under that name already")
        if records or is_again:
            passed += spark.sql(PASSED.format(entity=entity, feed=feed, table=sql_text(table))).first()[0]
    if passed:
        said.append(rebuild_from_raw(spark, entity))
    return said


def _classified_before(spark, further: FurtherFeed) -> list[str]:
    """Return what to run if the log classified records of a feed before they were declared to rank above the others."""
    log = f"lake.{quoted(f'{further.entity}_changes')}"
    of_feed = f"select count(*) from {log} where feed = {sql_text(further.feed)} and rejection_reason is null"
    above = max(numbers_of(declared_feeds()[further.feed].epochs)) // 1000 * 1000
    records = spark.sql(f"{of_feed} and change_sequence_number < '{above:016x}'").first()[0]
    if not records:
        return []
    return [
        f"The log of {further.entity} has classified {counted(records, 'record')} of {further.feed} already, without "
        f"that. Now run: highwater rebuild {further.entity} --from raw"
    ]


def alter(spark, alteration: Alteration, accept_loss: bool = False) -> list[str]:
    """Apply a change to a table; return what was done, one line per step.

    Arguments:
        alteration: the change. accept_loss: it may lose existing records and keys.
    Raises: UsageError or CheckError when it is refused; the declaration is restored then.
    """
    entity = alteration.entity
    if alteration.name:
        return rename(spark, entity, alteration.name)
    before = {path: path.read_text() if path.exists() else None for path in alteration.files}
    is_built = f"lake.{entity}_changes" in newest_versions()
    said = [f"{entity}: {alteration.words}."]
    try:
        alteration.edit()
        if is_built and (alteration.is_anew or accept_loss):
            said.append(rebuild_from_raw(spark, entity, accept_loss))
        elif is_built:
            if alteration.called:
                is_again = all(path.read_text() == text for path, text in before.items())
                said += _take_in_renamed(spark, alteration, is_again)
            for met in meet(spark, [entity]):
                if met.is_refused:
                    raise WouldBeLostError(met.sentence, met.lost) if met.lost else CheckError(met.sentence)
                said.append(met.sentence)
    except (UsageError, CheckError, yaml.YAMLError) as error:
        for path, text in before.items():
            path.unlink(missing_ok=True) if text is None else path.write_text(text)
        if isinstance(error, WouldBeLostError):
            raise CheckError(
                f"a change by which {entity} {alteration.words} would lose what the table has: {error.found}\nNothing "
                f"was changed, and the declaration is as it was. To take the loss, type it again with {ACCEPT}"
            ) from None
        raise type(error)(f"{error} The declaration is as it was.") from None
    said += [f"{'changed' if text else 'wrote'} {p}" for p, text in before.items() if p.read_text() != text]
    if is_built and alteration.further:
        said += _classified_before(spark, alteration.further)
    if is_built:
        _view_anew(entity)
    return [*said, NEXT]


def rename(spark, entity: str, new: str) -> list[str]:
    """Rename a table, or finish a renaming that was killed; return what was done, one line per step."""
    if renaming.under_way() is None:
        renaming.begin(spark, entity, new, renamed_files(entity, new))
    said = [f"{entity}: is called {new} from now on.", *renaming.finish(spark)]
    if f"lake.{new}_changes" in newest_versions():
        _view_anew(new)
    return [*said, NEXT]


def _view_anew(entity: str) -> None:
    if settings_of(entity).get("key") and dbt.run(["run", "--select", entity, "--quiet"]):
        raise CheckError(f"the view of {entity} could not be made anew; run: highwater build")
