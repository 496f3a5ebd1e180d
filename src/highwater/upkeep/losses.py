"""What a table would lose: accepted records that would be rejected, existing keys that would be gone."""

from dataclasses import dataclass, field

from highwater.catalog.entities import declared_columns
from highwater.runtime.errors import CheckError
from highwater.runtime.printable import counted, printable
from highwater.spark.spark import quoted

SHOWN = 5
LONGEST_TEXT = 200
ACCEPT = "--accept-loss"

# A record is identified by file and line. One that arrived more than once is accepted if any of its arrivals is.
RECORDS = """
    select old.key, old.feed, old.source_file, old.source_line, count(*) over () as number,
        coalesce(new.reason, 'the models leave it out') as reason
    from (
        select feed, source_file, source_line, any_value({key}) filter (where rejection_reason is null) as key
        from {old}
        where not is_derived
        group by feed, source_file, source_line
        having count_if(rejection_reason is null) > 0
    ) as old
    {join} join (
        select feed, source_file, source_line, count_if(rejection_reason is null) as accepted,
            any_value(concat_ws(': ', rejection_reason, rejection_detail)) as reason
        from {new}
        where not is_derived
        group by feed, source_file, source_line
    ) as new
        on old.feed = new.feed and old.source_file <=> new.source_file and old.source_line <=> new.source_line
    where coalesce(new.accepted, 0) = 0
    order by old.feed, old.source_file, old.source_line
    limit {shown}
"""
# A key exists if its newest change is not a delete and no truncate ranks above it. A key that the source removed is not
# lost: the delete or truncate was rejected before, or ranks above the row now, for example because of an epoch.
KEYS = """
    with old as ({newest_of_old}),
    new as ({newest_of_new}),
    deletes as (
        select feed, source_file, source_line, is_derived, max(change_sequence_number) as change_sequence_number
        from {old}
        where rejection_reason is null and change_type = 'delete'
        group by feed, source_file, source_line, is_derived
    ),
    truncates as (
        select
            (select max(change_sequence_number) from {old} where {is_truncate}) as before,
            (select max(change_sequence_number) from {new} where {is_truncate}) as now
    )
    select to_json(struct({key_of_old})) as key, old.newest.feed, old.newest.source_file, old.newest.source_line,
        count(*) over () as number,
        case
            when new.newest is null then 'no record that is accepted has it'
            when new.newest.is_deleted
                then concat('it would be deleted by ', new.newest.source_file, ', line ', new.newest.source_line)
            else 'a truncate would stand above it'
        end as reason
    from old
    cross join truncates
    left join new on {same_key}
    left join deletes
        on
            deletes.feed = new.newest.feed
            and deletes.source_file <=> new.newest.source_file
            and deletes.source_line <=> new.newest.source_line
            and deletes.is_derived = new.newest.is_derived
    where
        not old.newest.is_deleted
        and old.newest.change_sequence_number >= coalesce(truncates.before, '')
        and case
            when new.newest is null then true
            when new.newest.change_sequence_number < truncates.now then truncates.now <= truncates.before
            else new.newest.is_deleted and deletes.change_sequence_number >= new.newest.change_sequence_number
        end
    order by key
    limit {shown}
"""
NEWEST = """
        select {key}, max_by(
            struct(change_sequence_number, is_deleted, feed, source_file, source_line, is_derived),
            struct(change_sequence_number, not is_deleted as is_live, change_hash)
        ) as newest
        from {log}
        where rejection_reason is null and change_type <> 'truncate'
        group by {names}
    """
IS_TRUNCATE = "rejection_reason is null and change_type = 'truncate'"
# rows of a base that would share a key
ALIKE = """
    select to_json(struct({key})) as key, rows, sum(rows - 1) over () as number
    from (
        select {key}, count(*) as rows from {base}
        where not is_deleted and change_type <> 'truncate' group by {key} having count(*) > 1
    )
    order by key
    limit {shown}
"""


@dataclass(frozen=True)
class Losses:
    """What a table would lose; of each kind, the first ones.

    Attributes:
        records: accepted records that would be rejected. keys: existing keys that would be gone. alike: keys that
            several rows of the base would share.
    """

    records: list = field(default_factory=list)
    keys: list = field(default_factory=list)
    alike: list = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.records or self.keys or self.alike)

    def __str__(self) -> str:
        """Return how many there are, and the first ones, one line each."""
        counts = [
            f"{counted(self.records[0].number, 'record')} that {_were(self.records)} accepted would be rejected"
            if self.records
            else "",
            f"{counted(self.keys[0].number, 'key')} that {_are(self.keys)} there would be gone" if self.keys else "",
            f"{counted(self.alike[0].number, 'row')} would be gone, for others have the same key" if self.alike else "",
        ]
        lines = [f"{_place(row)}{_key(row)}: {_short(row.reason)}" for row in self.records]
        lines += [f"key {_short(row.key)} (last in {_place(row)}): {_short(row.reason)}" for row in self.keys]
        lines += [f"key {_short(row.key)}: {counted(row.rows, 'row')}" for row in self.alike]
        return "\n".join([f"{' and '.join(filter(None, counts))}:", *(f"  {line}" for line in lines)])


def losses(spark, entity: str, old: str, new: str, is_rebuilt: bool = True) -> Losses:
    """Compare two logs of an entity, or a log with what the staging models make of the same records now.

    Arguments:
        entity: for example `customers`. old, new: the relations. is_rebuilt: the new one is a log that replaces the old
            one; otherwise it is a staging model, and only records that it has are compared.
    Returns: the keys and records of the old one that the new one would lose.
    """
    columns, key = declared_columns(entity)
    types = {column.name: column.data_type for column in columns}
    there = set(spark.table(old).columns)
    names = ", ".join(map(quoted, key))
    shown_key = f"to_json(struct({names}))" if key and there.issuperset(key) else "cast(null as string)"
    records = RECORDS.format(old=old, new=new, key=shown_key, join="left" if is_rebuilt else "inner", shown=SHOWN)
    found = Losses(records=spark.sql(records).collect())
    if not is_rebuilt or not key or not there.issuperset(key):
        return found
    in_new_types = ", ".join(f"try_cast({quoted(name)} as {types[name]}) as {quoted(name)}" for name in key)
    keys = KEYS.format(
        old=old,
        new=new,
        newest_of_old=NEWEST.format(key=in_new_types, names=", ".join(str(n) for n in range(1, len(key) + 1)), log=old),
        newest_of_new=NEWEST.format(key=names, names=names, log=new),
        key_of_old=", ".join(f"old.{quoted(name)}" for name in key),
        same_key=" and ".join(f"old.{quoted(name)} <=> new.{quoted(name)}" for name in key),
        is_truncate=IS_TRUNCATE,
        shown=SHOWN,
    )
    return Losses(found.records, spark.sql(keys).collect(), _alike(spark, f"lake.`{entity}_merged`", key, names))


class WouldBeLostError(CheckError):
    """What a command would lose, and what to do.

    Attributes:
        found: the losses.
    """

    def __init__(self, words: str, found: Losses):
        super().__init__(words)
        self.found = found


def refuse_losses(found: Losses, doing: str, command: str, is_accepted: bool) -> list[str]:
    """Refuse to continue if something would be lost, unless that is accepted.

    Arguments:
        found: what would be lost. doing: what is refused, for example `rebuilding orders`. command: the one that
            accepts the loss. is_accepted: the user has accepted it.
    Returns: what to report about an accepted loss.
    Raises: WouldBeLostError with what would be lost and what to do.
    """
    if not found:
        return []
    if is_accepted:
        return [f"{ACCEPT}: {found}"]
    raise WouldBeLostError(
        f"{doing} would lose what the table has: {found}\nNothing was changed. Mend what is declared, so that they "
        f"stay (docs/operation.md, Rebuild), or take the loss: {command} {ACCEPT}",
        found,
    )


def _alike(spark, base: str, key: list[str], names: str) -> list:
    try:
        if not spark.catalog.tableExists(base) or not set(spark.table(base).columns).issuperset(key):
            return []
        return spark.sql(ALIKE.format(key=names, base=base, shown=SHOWN)).collect()
    except Exception:  # it is damaged, and is rebuilt for that reason
        return []


def _were(rows: list) -> str:
    return "was" if rows[0].number == 1 else "were"


def _are(rows: list) -> str:
    return "is" if rows[0].number == 1 else "are"


def _place(row) -> str:
    return _short(f"{row.source_file or 'no file'}, line {row.source_line}")


def _key(row) -> str:
    return f", key {_short(row.key)}" if row.key else ""


def _short(words: str | None) -> str:
    words = words or ""
    return printable(words if len(words) <= LONGEST_TEXT else f"{words[:LONGEST_TEXT]}…")
