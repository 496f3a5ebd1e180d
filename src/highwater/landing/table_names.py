"""The names that tables go by in the raw table: whose a name is, and what lands under another one from now on."""

import json
from dataclasses import dataclass
from datetime import datetime

from highwater.catalog.feeds import Feed, sql_text
from highwater.formats import readers
from highwater.formats.records import InShards, Table, TableNames, key_in_shards, names_of_table, owner_of, place_of_key
from highwater.landing.file_entries import FileEntries
from highwater.landing.raw_table import append, entry_of_file, micros


def owners_of(spark, feed: Feed, entries: FileEntries) -> tuple[dict[str, Table], bool]:
    """Return which table goes by each name of the feed: the one whose record landed first, by batch, file and line.

    Arguments:
        entries: what the raw table holds about files.
    Returns: the tables by name, and whether they are to be kept with the next batch: files that landed before names
        were kept tell nothing, and what their first records say is asked once.
    """
    if not entries.has_files:
        return {}, False
    if not entries.fields():
        return _owners_by_first_records(spark, feed), True
    owners: dict[str, Table] = {}
    newest, _ = entries.newest
    for fields in entries.fields(before=newest):
        _take_in_owners(feed, fields, owners)
    # which a kill may have kept from happening
    repair_names(spark, feed, newest, entries.of_batch(newest), owners)
    return owners, False


def _take_in_owners(feed: Feed, fields: dict[str, str], owners: dict[str, Table]) -> None:
    """Add the tables of a file to the owners of their names, but names that the feed would not give them any more."""
    _take_in(feed, {name: tuple(json.loads(table)) for name, table in fields.items()}, owners)


def _take_in(feed: Feed, tables: dict[str, Table], owners: dict[str, Table]) -> None:
    for name, table in tables.items():
        if name in names_of_table(*table, feed.options.schema):
            owner_of(owners, name, table)


def _owners_by_first_records(spark, feed: Feed) -> dict[str, Table]:
    rows = spark.sql(
        f"""
        select source_table, min_by(record, struct(landing_batch, source_file, source_line)) as record
        from {feed.raw_table}
        where entry = 'record' and source_table is not null
        group by source_table
        """
    ).collect()
    return {row.source_table: readers.named_table(feed.options, bytes(row.record)) for row in rows}


def repair_names(spark, feed: Feed, number: int, files: list[dict], owners: dict[str, Table]) -> None:
    """Add the tables of a batch to the owners; repair the names of its records where its files disagree about one.

    Files are read side by side. Within a file the first table has the bare name; among files it is the first file's.

    Arguments:
        files: entries of the files of the batch that have fields, by name.
    """
    named = [(name, table) for file in files for name, table in file["fields"].items()]
    disagree = len(set(named)) > len(dict(named))
    for file in files:
        if disagree:
            names = TableNames(feed.options.schema, owners, shards=feed.options.shards)
            renamed = {name: names.name_of(*json.loads(table)) for name, table in file["fields"].items()}
            renamed = {name: new for name, new in renamed.items() if not isinstance(new, InShards)}
            _take_in(feed, names.seen, owners)
            if any(name != new for name, new in renamed.items()):
                _rename(spark, feed, number, file["source_file"], renamed, names.seen)
        else:
            _take_in_owners(feed, file["fields"], owners)


def _rename(spark, feed, number: int, source_file: str, renamed: dict[str, str], seen: dict[str, Table]) -> None:
    """Write the names of one file's tables anew, and which table each one is, by one commit."""
    cases = " ".join(f"when {sql_text(name)} then {sql_text(new)}" for name, new in renamed.items())
    tables = ", ".join(f"{sql_text(name)}, {sql_text(json.dumps(table))}" for name, table in seen.items())
    spark.sql(
        f"""
        update {feed.raw_table}
        set
            source_table = case source_table {cases} else source_table end,
            fields = case entry when 'file' then map({tables}) else fields end
        where landing_batch = {number} and source_file = {sql_text(source_file)}
        """
    )


@dataclass(frozen=True)
class Move:
    """Records of a table that raw has under another name than the feed gives it as it is declared now.

    Attributes:
        key: what the table goes by among those that files have named; new_key: what it is to go by.
        name, shard: what raw says of its records. new_name, new_shard: what it is to say.
    """

    key: str
    new_key: str
    name: str
    shard: str | None
    new_name: str
    new_shard: str | None

    @property
    def condition(self) -> str:
        """Which records of raw they are, in SQL."""
        shard = f"= {sql_text(self.shard)}" if self.shard is not None else "is null"
        return f"source_table = {sql_text(self.name)} and fields['shard'] {shard}"


def moves_of(feed: Feed, told: list[dict[str, str]]) -> list[Move]:
    """Return the tables that have come to shards since their records landed, or whose shards are declared no more.

    What a table with shards has of a schema stays when no pattern has it any more: the log has it too.

    Arguments:
        told: the tables that files have named, as entries of files have them.
    """
    named = {(key, tuple(json.loads(value))) for fields in told for key, value in fields.items()}
    if not feed.options.shards and not any(place_of_key(*each)[1] for each in named):
        return []
    owners: dict[str, Table] = {}
    _take_in(feed, dict(named), owners)
    names = TableNames(feed.options.schema, owners, shards=feed.options.shards)
    of_shards, moves = {shards.table.lower() for shards in feed.options.shards}, []
    for key, table in sorted(named, key=repr):
        place, new = place_of_key(key, table), names.name_of(*table)
        new_place = (str(new), new.shard if isinstance(new, InShards) else None)
        is_next = new_place[1] or key.lower() in of_shards if place[1] is None else place[0].lower() not in of_shards
        if place != new_place and is_next:
            new_key = key_in_shards(new_place[0], table) if new_place[1] else new_place[0]
            moves.append(Move(key, new_key, *place, *new_place))
    return moves


def move_records(spark, feed: Feed, moves: list[Move], number: int, at: datetime) -> None:
    """Let records that have landed arrive again, as a batch, under the names that they have now.

    So the log of a table that they come to takes them, whatever it has read. Killed on the way, all of it happens
    again.
    """
    append(entry_of_file(spark, "replayed", None, None, file_records=0), feed, number, at)
    names = " ".join(f"when {move.condition} then {sql_text(move.new_name)}" for move in moves)
    shards = " ".join(
        f"when {move.condition} then {sql_text(move.new_shard)}" for move in moves if move.new_shard is not None
    )
    shard = f"case {shards} end" if shards else "cast(null as string)"
    none = "cast(map() as map<string, string>)"
    others = f"map_filter(coalesce(fields, {none}), (name, value) -> name <> 'shard')"
    spark.sql(
        f"""
        update {feed.raw_table}
        set
            source_table = case {names} end,
            fields = map_concat({others}, if({shard} is null, {none}, map('shard', {shard}))),
            landing_batch = {number},
            landed_at = timestamp_micros({micros(at)})
        where entry = 'record' and ({" or ".join(f"({move.condition})" for move in moves)})
        """
    )
    keys = " ".join(f"when {sql_text(move.key)} then {sql_text(move.new_key)}" for move in moves)
    moved = ", ".join(sql_text(move.key) for move in moves)
    spark.sql(
        f"""
        update {feed.raw_table}
        set fields = transform_keys(fields, (name, value) -> case name {keys} else name end)
        where entry = 'file' and exists(map_keys(fields), name -> name in ({moved}))
        """
    )


def second_tables(feed: Feed, owners: dict[str, Table]) -> dict[str, tuple[Table, Table]]:
    """Return the tables that are not declared but for their bare name, which another table has."""
    declared, second = {feed.source_table(table) for table in feed.tables}, {}
    for name, (schema, table) in owners.items():
        bare = names_of_table(schema, table, feed.options.schema)[0]
        if name not in declared and bare in declared and bare in owners and bare != name:
            second[name] = ((schema, table), owners[bare])
    return second
