"""What the last build was made of, and what it ended in: `<lake>/last_build.json`."""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

from highwater.builds.account import VERDICTS, account_of, in_words
from highwater.builds.rejections import QUERY, Rejected, lines_of
from highwater.catalog.entities import logged_tables
from highwater.catalog.feeds import Feed
from highwater.catalog.pending import pending_changes
from highwater.catalog.tables import LISTS, Trouble, by_itself, named, of_each, tables_in
from highwater.landing.landings import Landing
from highwater.runtime.deployment import place
from highwater.runtime.package import is_the_project, package
from highwater.runtime.printable import counted as number_of
from highwater.runtime.project import utc_now
from highwater.runtime.state import forget_state, read_state, write_state
from highwater.spark.dbt import source_selector
from highwater.spark.lake_tables import newest_versions

NEWER = """
    select
        count_if(not is_derived) as read,
        count_if(is_tied) as tied,
        count_if(verdict = 'applied' and not is_derived) as applied,
        count_if(verdict = 'superseded' and not is_derived) as superseded,
        count_if(verdict = 'duplicate' and not is_derived) as duplicate,
        count_if(rejection_reason is not null and not is_derived) as rejected
    from lake.`{table}_changes` where {newer}
"""

# of more rows the build that merges them counts: to look at each costs more than to take a batch in
LARGE = 1_000_000
NOTHING_NEWER = dict.fromkeys(["read", "tied", *VERDICTS], 0)
RECORDED = {"fingerprint": str, "at": str, "summary": str, "landings": dict, "versions": dict, "counts": dict}
# of 0.6.0, which recorded builds that succeeded alone
LACKED = {"left": [], "selections": {}, "is_whole": True}
RECORDED |= {name: type(value) for name, value in LACKED.items()}
SELECTING = ("--select", "-s", "--models", "--model", "-m")
# as dbt calls what these, and those that leave something out, give
SELECTIONS = {"select", "exclude", "selector", "resource_types", "exclude_resource_types"}
OPERATIONS = ["ledger", "unassigned_records", "rejection_reasons", *sorted(LISTS)]
INPUTS = ["dbt_project.yml", "conf", "macros", "models", "profiles", "seeds", "snapshots", "tests"]


def fingerprint(arguments: Mapping) -> str:
    """Return a hash of everything that a build depends on, beside what has landed and what is selected.

    Arguments:
        arguments: those of dbt that select nothing; see split.
    """
    digest = hashlib.sha256()
    versions = [version(package) for package in ("pyspark", "dbt-core", "dbt-spark")]
    given = [arguments, versions, os.environ.get("HIGHWATER_DBT_EXPECTATIONS")]
    digest.update(json.dumps(given, sort_keys=True, default=str).encode())
    for name in INPUTS if is_the_project() else [*INPUTS, package().resolve()]:
        paths = [Path(name)] if Path(name).is_file() else sorted(Path(name).glob("**/*"))
        for path in paths:
            # dbt writes profiles/.user.yml in the middle of a build
            if path.is_file() and path.suffix != ".pyc" and not path.name.startswith("."):
                digest.update(f"{path}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def split(command: str, arguments: list[str]) -> tuple[dict, dict]:
    """Return what arguments of dbt select, and the others, each by the name that dbt has for it.

    What dbt does not understand is no selection; it refuses it itself.

    Arguments:
        command: of dbt. arguments: as typed behind it.
    """
    import click
    from dbt.cli.main import cli

    try:
        context = cli.commands[command].make_context(command, [*arguments])
    except click.ClickException:
        return {}, {"arguments": arguments}
    typed = click.core.ParameterSource.COMMANDLINE
    given = {name: value for name, value in context.params.items() if context.get_parameter_source(name) == typed}
    chosen = {name: value for name, value in given.items() if name in SELECTIONS}
    return chosen, {name: value for name, value in given.items() if name not in SELECTIONS}


def remembered() -> dict:
    """Return the record of the last build; an empty one where there is none, or none that is whole.

    All that the project makes is in the lake as of the record's `landings`, but for what it names as `left`; where it
    is not `is_whole`, builds of a selection alone have been recorded.
    """
    record = LACKED | read_state("last_build.json")
    return record if all(isinstance(record.get(name), kind) for name, kind in RECORDED.items()) else {}


def remember(
    mark: str,
    landings: dict[str, Landing],
    summary: str,
    counts: dict[str, dict],
    left: Iterable[str] = (),
    selections: Mapping[str, dict] | None = None,
    is_whole: bool = True,
) -> None:
    """Record a build that came to its end.

    Arguments:
        mark: see fingerprint. landings: by feed, number and time of what landed last: a raw table that went back gives
            a number again, and never with its time. summary, counts: see summary. left: what it did not build, or what
            failed a test, as dbt selects it. selections: by selection, the landings that a build of it came to.
            is_whole: whether everything else is built.
    """
    values = (mark, utc_now(), summary, landings, newest_versions(), counts, sorted(left), selections or {}, is_whole)
    _write(dict(zip(RECORDED, values, strict=True)) | {"by": version("highwater")})


def take_again(record: dict, left: Iterable[str]) -> None:
    """Let the next build take these too; what a record says beside it stays. Without a record it takes everything.

    Arguments:
        record: see remembered. left: as dbt selects it.
    """
    if record:
        _write(record | {"left": sorted({*record["left"], *left})})


def _write(record: dict) -> None:
    write_state("last_build.json", record)


def other_version(record: dict) -> str | None:
    """Return a sentence when another version of highwater made the last build; None: this one, or one before 0.6.0."""
    by, own = record.get("by"), version("highwater")
    if by in (None, own):
        return None
    return f"the last build of the lake {place()} was by highwater {by}, and this is {own}; everything is built once"


def has_all_tables(record: dict) -> bool:
    """Return whether every table that a build left is still there."""
    return record["versions"].keys() <= newest_versions().keys()


def has_same_layers(record: dict) -> bool:
    """Return whether every log and base is at the version that a build left it at."""
    now = newest_versions()
    layers = [f"lake.{entity}_{layer}" for entity, _ in logged_tables() for layer in ("changes", "merged")]
    return all(record["versions"].get(name) == now.get(name) for name in layers)


def news(spark, feeds: dict[str, Feed], record: dict, landings: dict[str, Landing]) -> dict[str, list[str]] | None:
    """Return by feed the tables of which something has landed since a build; None: that cannot be told.

    Arguments:
        feeds: that are declared. record: of that build. landings: the newest of each feed now.
    """
    found = {}
    for name, landing in landings.items():
        was = record["landings"].get(name, [0, 0])
        if list(landing) == was:
            continue
        if landing[0] <= was[0]:
            return None
        rows = spark.sql(f"select distinct source_table from raw.{name} where landing_batch > {was[0]}").collect()
        landed, feed = {row.source_table for row in rows}, feeds[name]
        # of exports a file without rows is news too, and its records name no table
        found[name] = [t for t in feed.tables if feed.role == "export" or feed.source_table(t) in landed]
    return found


def selection(tables: dict[str, list[str]], left: Iterable[str] = ()) -> list[str]:
    """Return what dbt is to select: some tables, all that is made of them, and the records that no table has.

    Arguments:
        tables: by feed, as dbt names them. left: what the last build has left, as dbt selects it.
    """
    sources = [source_selector(feed, table) for feed, names in tables.items() for table in names]
    return [*dict.fromkeys([*sources, *left, "unassigned_records"])]


def with_operations(arguments: list[str]) -> list[str]:
    """Return the arguments of a build that selects models, selecting the models about all tables too.

    They are no ancestors of a table and take what its log has got, so nobody has to name them.

    Arguments:
        arguments: those of dbt; without a selection, which builds everything, they stay as they are.
    Example: `["--select", "+orders+"]` becomes `["--select", "ledger", …, "+orders+"]`.
    """
    split = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--") else [word])]
    selects = next((at for at, word in enumerate(split, 1) if word in SELECTING), None)
    return [*split[:selects], *OPERATIONS, *split[selects:]] if selects else arguments


def gone_back(record: dict) -> str | None:
    """Return what to say of tables that are older than the last build left them; None: none is.

    Arguments:
        record: of that build.
    """
    versions, now = record.get("versions", {}), newest_versions()
    older = [f"{name} from {was} to {now[name]}" for name, was in versions.items() if name in now and now[name] < was]
    if not older:
        return None
    return (
        f"{named(older)}: tables have gone back to an older version since the last build (were they restored alone, or "
        "did a power cut take commits?). What raw and the logs have is classified and applied again, and what the "
        "ledger and the lists lack is counted"
    )


def forget() -> None:
    """Remove the record: a build of everything is under way, or something else changed the tables."""
    forget_state("last_build.json")


def what_the_first_does(tables: int) -> str | None:
    """Return what to say before the first build of a lake, which takes long; None: it is not the first.

    Arguments:
        tables: how many are declared.
    """
    if not tables or any(name.startswith("lake.") for name in newest_versions()):
        return None
    return (
        f"The first build of {number_of(tables, 'table')} takes minutes: Spark starts, delivered files land, and every "
        "model is built and tested. Later builds take up only what has landed since."
    )


def summary(
    spark,
    rejected_now: Iterable[Rejected] = (),
    record: dict | None = None,
    left_pending: Mapping[str, int] | None = None,
    is_recorded: bool = False,
    empty: Collection[str] = (),
) -> tuple[str, list[str], dict[str, dict], dict[str, int]]:
    """Return what is where after a build, a line for each entity, what became of all records, and what to type next.

    Arguments:
        rejected_now: what the build rejected; lines below its entity's say it.
        record: of the last build of the same project; tables that are as it left them are not counted again.
        left_pending: what the build has said of that, by entity. is_recorded: the ledger has what the logs have.
        empty: lists that the build has found to have no row.
    Returns: the words, which of their lines say that something could not be asked, a damaged table for example,
        what was counted, by entity, and the account of all records; {}: some could not be counted.
    """
    there, declared = tables_in(spark, "lake"), dict(logged_tables())
    tables = {entity: feeds for entity, feeds in declared.items() if entity in there}
    if not declared:
        return "No table is declared yet; see: highwater add-table --help", [], {}, {}
    if not tables:
        return f"None of the {len(declared)} declared tables is built yet; run: highwater build", [], {}, {}
    untold = {}

    def asked(name: str, columns: str, rest: str) -> list:
        answer = by_itself(lambda name: _asked(spark, name, columns, rest), "lake.{}")(name)
        if isinstance(answer, Trouble):
            untold[name] = answer.sentence
            return []
        return answer

    sums = ", ".join(f"sum({name}) as {name}" for name in NOTHING_NEWER)
    figures = f"table_name, feed, {sums}, max(landed_at) as newest, max(landing_batch) as batch"
    ledger = defaultdict(list)
    for row in asked("ledger", figures, "group by table_name, feed"):
        ledger[row.table_name].append(row)

    def counted_now(table: str) -> dict[str, int]:
        told, before = (left_pending or {}).get(table), (record or {}).get("counts", {}).get(table, {})
        if told and before.get("now", 0) > LARGE:
            now = {"now": before["now"], "is_older": True}
        else:
            now = {"now": spark.sql(f"select count(*) from lake.`{table}`").first()[0]}
        newer = NOTHING_NEWER if is_recorded else _newer(spark, table, tables[table], ledger.get(table, []))
        return now | {"pending": pending_changes(spark, table) if told is None else told} | newer

    count = by_itself(counted_now, "the rows of {}")
    counts = _unchanged_counts(record) if record else {}
    others = [table for table in tables if table not in counts]
    counts |= dict(zip(others, of_each(others, count, "counting rows"), strict=True))
    rejected, stale = (
        defaultdict(int, [] if name in empty else asked(name, "table_name, count(*)", "group by table_name"))
        for name in ("rejected_changes", "stale_rows")
    )
    details = {found.entity: [f"    {line}" for line in lines_of(found)] for found in rejected_now}
    replayed = _replayed(spark, {feed for feeds in tables.values() for feed, _ in feeds})
    width = max(len(table) for table in tables)
    became = {}
    lines = []
    for table in tables:
        counted = counts[table]
        troubles = [replayed[feed] for feed, _ in tables[table] if isinstance(replayed[feed], Trouble)]
        troubles += [counted] if isinstance(counted, Trouble) else []
        if troubles:
            untold[table] = " ".join(dict.fromkeys(trouble.sentence for trouble in troubles))
            lines += [f"  {table:<{width}}  {untold[table]}", *details.get(table, [])]
            continue
        now, pending, tied = counted["now"], counted["pending"], 0
        came_from = ""
        if table in ledger:
            of_table = {name: sum(row[name] for row in [*ledger[table], counted]) for name in NOTHING_NEWER}
            of_table["replayed"] = sum(replayed[feed].get(source, 0) for feed, source in tables[table])
            became[table], tied = of_table, of_table["tied"]
            listed = rejected[table] + counted["rejected"] if "rejected_changes" in there else None
            came_from = f"   from {_became(of_table, listed)}"
        lines.append(
            f"  {table:<{width}}  {now:>9,} rows {'when last counted' if counted.get('is_older') else 'now'}{came_from}"
            + (f", {pending:,} pending" if pending else "")
            + (f", {stale[table]:,} stale (see stale_rows)" if stale[table] else "")
            + (f", {tied:,} tied (see sequence_ties)" if tied else "")
        )
        lines += details.get(table, [])
    totals = [(0,)] if "unassigned_records" in empty else asked("unassigned_records", "coalesce(sum(records), 0)", "")
    unassigned = next((total for (total,) in totals), None)
    if unassigned:
        noun = "record belongs" if unassigned == 1 else "records belong"
        lines.append(f"  {unassigned:,} {noun} to no declared table (see unassigned_records)")
    lines += [f"  {name}: {sentence}" for name, sentence in untold.items() if name not in tables]
    account = account_of(became.values(), unassigned) if became else {}
    lacking = [table for table in tables if table in untold or (table not in ledger and counts[table]["read"])]
    if account:
        without = f", without {named(lacking)}, which could not be counted" if lacking else ""
        lines.append(f"  {in_words(account)}{without}")
    hints = []
    if ledger:
        hints.append('  highwater query "select * from ledger order by landed_at"      what became of every record')
    if account.get("rejected"):
        hints.append(f"  {QUERY}      why records were rejected")
    if unassigned:
        hints.append(
            '  highwater query "select feed, source_table, source_file, records from unassigned_records"      '
            "records of no declared table"
        )
    if any(
        table not in ledger and "ledger" not in untold and table not in untold and counted["now"]
        for table, counted in counts.items()
    ):
        hints.append("  highwater build      every model, also the ledger of what became of every record")
    latest = max(tables, key=lambda table: max((row.newest.timestamp() for row in ledger.get(table, [])), default=0))
    words = "\n".join(
        [
            f"Tables in {place()}:",
            *lines,
            "",
            "Next:",
            f'  highwater query "select * from {latest} limit 10"',
            *hints,
            "  highwater status      where every table stands",
            "  highwater dbt docs generate --static      lineage and columns, for a browser: target/static_index.html",
        ]
    )
    counted = {table: counts[table] for table in tables if isinstance(counts[table], dict)}
    return (
        words,
        [f"{name} could not be asked; its line says why." for name in untold],
        counted,
        {} if lacking else account,
    )


def _became(records: Mapping[str, int], listed: int | None) -> str:
    """Return what became of the records of a table: every verdict, and of duplicates only whether there are some.

    Arguments:
        listed: how many rejected_changes has; None: that list has not been built.
    """
    read, again = records["read"] - records["replayed"], records["replayed"]
    told = [f"{records[name]:,} {name}" for name in VERDICTS if records[name] or name != "duplicate"]
    there = "see rejected_changes" if listed in (None, records["rejected"]) else f"{listed:,} still in rejected_changes"
    return (
        number_of(read, "record")
        + (f" and {again:,} replayed" if again else "")
        + f": {', '.join(told)}"
        + (f" ({there})" if records["rejected"] else "")
    )


def _unchanged_counts(record: dict) -> dict[str, dict]:
    """Return what was counted of the entities whose tables are as a build left them."""
    was, now = record["versions"], newest_versions()

    def is_unchanged(table: str) -> bool:
        names = [f"lake.{table}_changes", f"lake.{table}_merged"]
        return all(was.get(name) == now.get(name) for name in names)

    # what a publication lets be seen may change while the tables do not
    if any(was.get(name) != version for name, version in now.items() if name.endswith("_publications")):
        return {}
    return {table: NOTHING_NEWER | counted for table, counted in record["counts"].items() if is_unchanged(table)}


def _asked(spark, table: str, columns: str, rest: str) -> list:
    """Return the rows of a question to a table that a build of a part may not have made yet."""
    if not spark.catalog.tableExists(f"lake.{table}"):
        return []
    return spark.sql(f"select {columns} from lake.{table} {rest}").collect()


def _newer(spark, table: str, feeds: list[tuple[str, str]], recorded: list) -> dict[str, int]:
    """Return what an entity's log has and the ledger not yet."""
    newest = {feed: 0 for feed, _ in feeds} | {row.feed: row.batch for row in recorded}
    newer = " or ".join(f"(feed = '{feed}' and landing_batch > {batch})" for feed, batch in newest.items())
    return spark.sql(NEWER.format(table=table, newer=newer)).first().asDict()


def _replayed(spark, feeds: set[str]) -> dict[str, dict[str, int] | Trouble]:
    """Return by feed how many records were read once more, by source table."""

    def of_feed(feed: str) -> dict:
        rows = spark.sql(
            f"select source_table, sum(file_records) from raw.{feed} where entry = 'replayed' group by source_table"
        ).collect()
        return dict(map(tuple, rows))

    feeds = sorted(feeds)
    return dict(zip(feeds, of_each(feeds, by_itself(of_feed, "raw.{}"), "asking for replays"), strict=True))
