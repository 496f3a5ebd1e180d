"""`highwater resync`: take a new full load as the truth from then on.

It writes an epoch into the YAML of the feed. The condition of the epoch matches the rows of the load and the changes
after it, so that these changes do not lose to the load.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from highwater.catalog.declarations import append_epoch, declare_truncates, epochs_of
from highwater.catalog.entities import key_of, known_table, logged_tables
from highwater.catalog.feeds import Feed, declared_feeds, numbers_of, sql_text
from highwater.formats.formats import DEBEZIUM
from highwater.landing import landing, new_files
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import printable
from highwater.runtime.project import landing_root
from highwater.spark import dbt

DATE = re.compile(r"(?<!\d)(20\d\d)-?([01]\d)-?([0-3]\d)(?!\d)")
LOWEST = "0" * 16
IS_BASELINE = f"substr(change_sequence_number, 17) = '/{LOWEST}'"
DIGITS = "%Y%m%d%H%M%S%f"  # of times in the names of DMS's files and in its sequence

FIGURES = """
    select
        count_if({is_load}) as rows,
        min(changed_at) filter (where {is_load}) as read_at,
        min(landing_batch) filter (where {is_load}) as first_batch,
        max(landing_batch) filter (where {is_load}) as last_batch
    from lake.`{staging}`
    where rejection_reason is null
"""

CHANGES = """
    select
        max({moment}) filter (where landing_batch < {first_batch}) as before,
        max({moment}) filter (where landing_batch between {first_batch} and {last_batch}) as beside,
        count_if(landing_batch between {first_batch} and {last_batch}) as count_beside,
        count_if({moment} >= {from_} and {moment} < {upto}) as count_within
    from lake.`{staging}`
    where rejection_reason is null and not {is_baseline}
"""


@dataclass(frozen=True)
class Clock:
    """Where changes of a feed show when they were made.

    Attributes:
        moment: SQL over a staging model, comparable with what `text` returns. condition: SQL over the record, with
            `{after}`. tells_load: the same field of the rows of a load shows when they were read.
        digits: how times of DMS are written, see `after`; "": as timestamps.
    """

    moment: str
    condition: str
    tells_load: bool = False
    digits: str = ""

    def text(self, moment) -> str:
        """Return a time, or a value of `moment`, as an SQL literal."""
        if self.digits:
            digits = moment.strftime(DIGITS)[:17] if isinstance(moment, datetime) else str(moment)
            return f"'{digits}'"
        return f"timestamp '{moment}'"

    def after(self, moment, sign: str) -> str:
        """Return the condition for records made after a moment: `>=` a time, `>` the last change before it."""
        text = self.text(moment)
        if self.digits == "name":
            text = f"'{text[1:9]}-{text[9:]}"
        elif self.digits == "sequence":
            text = f"'{text[1:17]}'"
        return self.condition.format(after=f"{sign} {text}")


def clock_of(feed: Feed, settings: dict) -> Clock | None:
    """Return where changes of a feed show when they were made; None: nowhere.

    Arguments:
        settings: those of the feed.
    """
    millis = "timestamp_millis(try_cast(metadata.{field} as bigint)) {{after}}"
    if feed.format in ("datastream-gcs-json", "datastream-avro"):
        return Clock("changed_at", "try_cast(metadata.source_timestamp as timestamp) {after}", tells_load=True)
    if feed.format == "datastream-json":
        return Clock("changed_at", millis.format(field="source_timestamp"), tells_load=True)
    if feed.format in DEBEZIUM:
        return Clock("changed_at", millis.format(field="ts_ms"), tells_load=True)
    if feed.format.startswith("arcion"):
        return Clock("changed_at", millis.format(field="timestamp"))
    if feed.options.change is not None:
        has_time = "time" in feed.options.change
        return Clock("changed_at", "metadata.changed_at {after}", tells_load=True) if has_time else None
    if feed.format.startswith("dms"):
        kind = "sequence" if settings.get("sequence_column") else "name"
        return Clock("conv(substr(change_sequence_number, 18, 16), 16, 10)", "metadata.sequence {after}", digits=kind)
    return None


def resync(spark, entity: str, patterns: tuple[str, ...], read_at: datetime | None = None) -> list[str]:
    """Take a new full load of an entity as the truth from then on: keys missing from it are gone.

    Lands new files, and changed files of the load. Declares `truncates: true` for the table, and appends the epoch to
    its feed. Running it again, even after a kill, results in the same files.

    Arguments:
        entity: for example `orders`. patterns: the files of the load, relative to the landing folder; may contain `*`.
        read_at: when the load was read, in UTC, if its files do not say.
    Returns: sentences: what landed, what was written, what to run.
    Raises: UsageError when the files match nothing or hold no full load, when the table has several feeds or no key,
        and when nothing tells which changes came after the load; CheckError when dbt fails.
    """
    feed, table = _feed_of(entity)
    said = _land(spark, feed, entity, table, patterns)
    staging = f"stg_{feed.name}__{entity}_changes"
    _build_staging(entity)
    files = _files_of_load(spark, feed, table, patterns)
    load = _load(spark, staging, files)
    settings = epochs_of(feed.name)[0]
    when = _condition(spark, feed, clock_of(feed, settings), staging, files, load, read_at)
    declared = next(name for name in feed.tables if feed.source_table(name) == table)
    epoch = {"table": declared, "when": when, "resync": True}
    if feed.shards_of(declared):
        # the load is of one shard, and removes no rows
        said.append(f"{entity} has shards: rows that the load lacks stay until a delete of each is delivered")
        written = [append_epoch(feed.name, {"table": declared, "when": when})]
    else:
        written = [declare_truncates(entity), append_epoch(feed.name, epoch)]
    said += [f"wrote {path}" for path in written if path]
    epochs = epochs_of(feed.name)[1]
    number = next(n for n, epoch in zip(numbers_of(epochs), epochs, strict=True) if epoch.get("when") == when)
    said.append(f"{entity}: epoch {number} of {feed.name} begins with {load.rows:,} rows of a full load: {when}")
    _build_staging(entity)
    return [line for line in [*said, _next_step(spark, entity, feed, staging, number)] if line]


def _feed_of(entity: str) -> tuple[Feed, str]:
    known_table(entity)
    sources = dict(logged_tables())[entity]
    if len(sources) > 1:
        names = ", ".join(feed for feed, _ in sources)
        raise UsageError(
            f"{entity} has several feeds ({names}); an epoch of one would beat all that the others have. "
            "Declare the epochs of each by hand: docs/formats.md, Epochs."
        )
    if not key_of(entity):
        raise UsageError(f"{entity} has no key, so a full load cannot say which rows are gone.")
    feed = declared_feeds()[sources[0][0]]
    if feed.relation:
        raise UsageError(f"{feed.name} reads a table, and a resync takes files.")
    if not feed.is_delivered:
        raise UsageError(f"{feed.name} is extracted from a database; its capture begins anew with: highwater extract")
    return feed, sources[0][1]


def _build_staging(entity: str) -> None:
    if dbt.run(["run", "--select", f"stg_*__{entity}_changes", "--quiet"]):
        raise CheckError(f"the staging model of {entity} could not be built; repair it and run the command again.")


def _matches(source_file: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a file, with whatever content, matches one of the patterns."""
    name = new_files.name_of_content(source_file)
    own = [pattern.removeprefix(f"{landing_root()}/").removeprefix("./").rstrip("/") for pattern in patterns]
    return any(
        fnmatchcase(path, pattern)
        for path in (name, source_file, printable(name))
        for one in own
        for pattern in (one, f"{one}/*")
    )


def _land(spark, feed: Feed, entity: str, table: str, patterns: tuple[str, ...]) -> list[str]:
    """Land new files, and changed files of the load; return one line for each of the two."""
    landed = landing.land(spark, feed)
    again = [name for name in landed.changed if _matches(name, patterns)]
    classified = _classified(spark, entity, feed)
    batches = _landed_files(spark, feed, table, patterns)
    if again or any(batch > classified for batch in batches.values()):
        # files that the load left unchanged belong to it too
        again += [name for name, batch in batches.items() if batch <= classified and name not in again]
    said = [str(landed)] if landed.files else []
    if again:
        number = landing.land_again(spark, feed, again)
        said.append(f"{feed.name}: {', '.join(again)} landed once more, as batch {number}")
    return said


def _classified(spark, entity: str, feed: Feed) -> int:
    """Return the newest batch of a feed that the log of an entity has."""
    log = f"lake.`{entity}_changes`"
    if not spark.catalog.tableExists(log):
        return 0
    return spark.sql(f"select coalesce(max(landing_batch), 0) from {log} where feed = '{feed.name}'").first()[0]


def _landed_files(spark, feed: Feed, table: str, patterns: tuple[str, ...]) -> dict[str, int]:
    """Return the newest batch of each landed file of the load, by the name under which it was delivered."""
    batches = {}
    question = f"""
        select source_file, max(landing_batch) as batch from {feed.raw_table}
        where entry = 'record' and source_table = {sql_text(table)} and source_file is not null
        group by source_file
    """
    for name, batch in spark.sql(question).collect():
        if _matches(name, patterns):
            own = new_files.name_of_content(name)
            batches[own] = max(batch, batches.get(own, 0))
    return batches


def _files_of_load(spark, feed: Feed, table: str, patterns: tuple[str, ...]) -> list[str]:
    """Return the files of the load as they landed, each with its newest content."""
    newest = {}
    question = f"""
        select distinct source_file from {feed.raw_table} where entry = 'record' and source_table = {sql_text(table)}
    """
    for (name,) in spark.sql(question).collect():
        if name is not None and _matches(name, patterns):
            own = new_files.name_of_content(name)
            newest[own] = max(name, newest.get(own, ""), key=new_files.number_of_content)
    if not newest:
        raise UsageError(
            f"no record of {feed.name}.{table} is of a file that matches {' '.join(patterns)}. Files are named as "
            f"below the landing folder, {feed.name}/…; in quotes, `*` stands for anything."
        )
    return sorted(newest.values())


def _in(files: list[str]) -> str:
    return f"source_file in ({', '.join(map(sql_text, files))})"


def _load(spark, staging: str, files: list[str]):
    load = spark.sql(FIGURES.format(staging=staging, is_load=f"({_in(files)} and {IS_BASELINE})")).first()
    if not load.rows:
        raise UsageError(
            f"{', '.join(files)}: no row of a full load that the staging model accepts. What a full load is, the "
            "format says, or `baseline` of the feed (docs/formats.md)."
        )
    return load


def _condition(spark, feed: Feed, clock: Clock | None, staging: str, files: list[str], load, read_at) -> str:
    """Return the condition of the epoch: it matches the load, and the changes that were made after it."""
    # without a clock of the changes no moment says which of them are later
    moment = read_at or (load.read_at if clock else None)
    if clock and clock.tells_load and load.read_at and not read_at:
        return clock.after(moment, ">=")
    if moment and not clock:
        raise UsageError(
            f"changes of {feed.format} do not tell when they were made, so --read-at says nothing of them."
        )
    if moment:
        return f"{_in(files)} or {clock.after(moment, '>=')}"
    date = _date_of(files) if clock else None
    found = _changes(spark, clock, staging, load, date)
    if date and not found.count_within:
        return f"{_in(files)} or {clock.after(date, '>=')}"
    if found.count_beside and not (clock and found.before and found.beside <= found.before):
        ask = (
            "Say when the load was read: --read-at '2024-02-01 06:00:00' (UTC)"
            if clock
            else ("Declare the epoch by hand: docs/formats.md, Epochs")
        )
        raise UsageError(
            f"{found.count_beside:,} changes landed together with the load, and nothing tells which of them came after "
            f"it. {ask}."
        )
    if clock and found.before:
        return f"{_in(files)} or {clock.after(found.before, '>')}"
    return f"landing_batch >= {load.first_batch}"


def _date_of(files: list[str]) -> datetime | None:
    """Return the date in the names of the load's folders; None: there is none, or several."""
    days = {match.groups() for file in files for match in DATE.finditer(file.rpartition("/")[0])}
    try:
        return datetime(*map(int, days.pop())) if len(days) == 1 else None
    except ValueError:
        return None


def _changes(spark, clock: Clock | None, staging: str, load, date: datetime | None):
    from_ = clock.text(date) if date else "null"
    upto = clock.text(date + timedelta(days=1)) if date else "null"
    return spark.sql(
        CHANGES.format(
            moment=clock.moment if clock else "cast(null as string)",
            first_batch=load.first_batch,
            last_batch=load.last_batch,
            from_=from_,
            upto=upto,
            staging=staging,
            is_baseline=IS_BASELINE,
        )
    ).first()


def _next_step(spark, entity: str, feed: Feed, staging: str, number: int) -> str:
    """Return what to run: records that the log classified without the epoch must be classified again."""
    classified = _classified(spark, entity, feed)
    late = spark.sql(
        f"select count(*) from lake.`{staging}` where landing_batch <= {classified} and rejection_reason is null "
        f"and change_sequence_number like '{number:016x}/%'"
    ).first()[0]
    done = (
        classified
        and spark.sql(
            f"select count(*) from lake.`{entity}_changes` where change_sequence_number like '{number:016x}/%'"
        ).first()[0]
    )
    if late and not done:
        return (
            f"The log has classified {late:,} of its records already, without the epoch. Now run: "
            f"highwater rebuild {entity} --from raw"
        )
    return "Now run: highwater build"


def parse_time(text: str) -> datetime:
    """Parse a time; return it in UTC.

    Raises: UsageError when it is not a time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time; write it as 2024-02-01 06:00:00, in UTC.") from None
    return moment.replace(tzinfo=None) if moment.tzinfo is None else (moment - moment.utcoffset()).replace(tzinfo=None)
