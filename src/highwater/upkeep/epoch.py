"""`highwater epoch`: declare the epoch that begins where positions fall while the clock of the source moves on."""

import json

from highwater.catalog.declarations import append_epoch, epochs_of, sources_file
from highwater.catalog.entities import key_of, logged_tables
from highwater.catalog.feeds import declared_feeds, numbers_of, sql_text
from highwater.catalog.pending import are_pending
from highwater.catalog.tables import named
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import counted
from highwater.spark import dbt
from highwater.spark.spark import quoted

# length of the positions of rows as Debezium has read them, which have no ordinal: is_timed_change has the same
READ = {"postgresql": 33, "yugabytedb": 33, "mysql": 50, "mariadb": 50, "informix": 50, "kafka": 50}
READ |= {"oracle": 67, "sqlserver": 67, "db2": 84}
# superseded changes that are newer, by the clock of the source, than the row they lost to; as in falling_positions
FALLEN = """
    select count(*) as fallen, min(lost.changed_at) as fallen_since
    from lake.`{entity}_changes` as lost
    inner join (
        select {key}, feed, max(struct(change_sequence_number, changed_at)) as held
        from (
            select {key}, feed, change_sequence_number, changed_at
            from lake.`{entity}_merged`
            union all
            select {key}, feed, change_sequence_number, changed_at
            from lake.`{entity}_changes`
            where {pending}
        )
        group by {key}, feed
    ) as present
        on {same} and lost.feed = present.feed
    where
        lost.feed = {feed}
        and lost.verdict = 'superseded'
        and length(lost.change_sequence_number) > {digits}
        and substr(lost.change_sequence_number, 17) not in ('/{lowest}', '/{lowest}/{lowest}')
        and lost.change_sequence_number < present.held.change_sequence_number
        and substr(lost.change_sequence_number, 1, 16)
        in (substr(present.held.change_sequence_number, 1, 16), '{lowest}')
        and unix_seconds(lost.changed_at) - unix_seconds(present.held.changed_at) > 2
"""
# undeclared failovers; more than this must be something else
MOST = 20
CLASSIFIED = """
    select count(*) as records
    from lake.`stg_{feed}__{entity}_changes`
    where
        rejection_reason is null
        and change_sequence_number like '{number:016x}/%'
        and landing_batch <= (select coalesce(max(landing_batch), 0) from lake.`{entity}_changes` where feed = '{feed}')
"""
JUDGED = "select 1 from lake.`{entity}_changes` where change_sequence_number like '{number:016x}/%' limit 1"


def declare_epochs(spark, feed: str) -> list[str]:
    """Declare the epochs that falling positions show, in all tables of a feed and everything that has landed.

    Each is appended to `epochs`. Its condition uses what the records show: the identity of the source, if it has
    changed, and the clock. Running it again, even after a kill, results in the same file.

    Arguments:
        feed: for example `debezium_shop`.
    Returns: sentences: which positions fall where, what was written, what to run.
    Raises: UsageError when no position of the feed falls, or it has no tables; CheckError when dbt fails.
    """
    entities = [entity for entity, sources in logged_tables() if feed in dict(sources)]
    if not entities:
        raise UsageError(f"no table of changes is declared for {feed}.")
    said, numbers = [], []
    for _ in range(MOST):
        found = _falls(feed, entities)
        if not found:
            break
        # the one that begins first holds for every table
        fall = min(found, key=lambda each: (not each["other"], each["ended_at"], each["began_at"]))
        epoch = {"when": fall["when"]}
        if append_epoch(feed, epoch) is None:
            raise CheckError(
                f"{feed}: positions of {named([each['entity'] for each in found])} fall inside of an epoch that is "
                f"declared already: {epoch['when']}. Declare by hand where the next one begins: {sources_file(feed)}"
            )
        numbers.append(numbers_of(epochs_of(feed)[1])[-1])
        said += [*map(_in_words, found), f"wrote {sources_file(feed)}: epoch {numbers[-1]} of {feed}: {epoch['when']}"]
    if not numbers:
        raise UsageError(
            f"no position of {feed} falls while the clock of its source goes on, in any of {named(entities)}. An epoch "
            "of another kind is written by hand: docs/formats.md, Epochs."
        )
    return [*said, *_next_steps(spark, feed, entities, numbers)]


def fallen_in_log(spark, entity: str) -> dict:
    """Return how many changes of an entity lost by position to a row that is older by the clock, and since when.

    Returns: `fallen` and `fallen_since`, the time of the first of them at the source; {} if no feed has a clock.
    """
    key, found = [quoted(column) for column in key_of(entity)], []
    for feed in (declared_feeds()[name] for name, _ in dict(logged_tables())[entity]):
        if not key or feed.role != "changes" or feed.format == "changelog" or feed.settings.get("clock") == "ignore":
            continue
        asked = FALLEN.format(
            entity=entity, feed=sql_text(feed.name), key=", ".join(key), pending=are_pending(spark, entity),
            same=" and ".join(f"lost.{column} = present.{column}" for column in key), lowest="0" * 16,
            digits=READ.get("kafka" if feed.settings.get("order") == "kafka" else feed.settings.get("connector"), 0),
        )  # fmt: skip
        found.append(spark.sql(asked).first().asDict())
    since = [row["fallen_since"] for row in found if row["fallen"]]
    return {"fallen": sum(row["fallen"] for row in found), "fallen_since": min(since, default=None)} if found else {}


def _falls(feed: str, entities: list[str]) -> list[dict]:
    """Return where positions in the tables of a feed fall, given the present declarations."""
    if dbt.run(["run", "--select", *(f"stg_{feed}__{entity}_changes" for entity in entities), "--quiet"]):
        raise CheckError(f"the staging models of {feed} could not be built; repair them and run the command again.")
    dbt.falls.clear()
    arguments = json.dumps({"feed": feed, "entities": entities})
    if dbt.run(["run-operation", "highwater.falls_of_feed", "--args", arguments, "--quiet"]):
        raise CheckError(f"the positions of {feed} could not be compared; nothing was declared.")
    return list(dbt.falls)


def _in_words(fall: dict) -> str:
    newer, older = fall["newer"], fall["older"]
    return (
        f"{fall['entity']}: {counted(fall['changes'], 'change')} of {counted(fall['keys'], 'key')}, the first in "
        f"{newer['source_file']}, line {newer['source_line']}, stand below older ones, such as "
        f"{older['source_file']}, line {older['source_line']}"
        + "".join(f"; the {fact['words']} was {fact['was']} and is {fact['is']}" for fact in fall["other"].values())
    )


def _next_steps(spark, feed: str, entities: list[str], numbers: list[int]) -> list[str]:
    """Return what to run: records that a log classified without the epochs must be classified again."""
    steps = []
    for entity in (entity for entity in entities if spark.catalog.tableExists(f"lake.`{entity}_changes`")):
        late = sum(
            spark.sql(CLASSIFIED.format(feed=feed, entity=entity, number=number)).first().records
            for number in numbers
            if not spark.sql(JUDGED.format(entity=entity, number=number)).count()
        )
        if late:
            steps.append(
                f"The log of {entity} has classified {counted(late, 'record')} of them already, without the epoch. Now "
                f"run: highwater rebuild {entity} --from raw"
            )
    return [*steps, f"{'Then' if steps else 'Now'} run: highwater build"]
