"""Tables of live databases as exports read them: the rows as of one moment, in parts, and where the log stood then.

They only read: a user who may do nothing else can use them, and no writer waits for them.
"""

import re
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from highwater.catalog.feeds import Feed
from highwater.databases.capture_sql import WRITTEN_BY, texts_of
from highwater.databases.captures import Capture, Names, capture_of, columns_of, landed_number
from highwater.databases.database import Database, quoted
from highwater.runtime.errors import CheckError, UsageError

# so many snapshots are looked at for one that no number is missing in
SNAPSHOTS = 50
SECONDS_FOR_WRITERS = 600
SECONDS_OF_INNODB_TRX = 0.2
UNKNOWN = "unknown"
KEY_OF_POSTGRES = """
    select
        attname,
        format_type(atttypid, atttypmod),
        -- what decides what comes first: the type (an enum may be made anew), the collation, and its version, which an
        -- upgrade of the system changes
        concat_ws(
            ' ', atttypid, nullif(attcollation, 0)::regcollation, pg_collation_actual_version(nullif(attcollation, 0)),
            (select datcollate from pg_database where datname = current_database())
        )
    from pg_index
    cross join unnest(indkey) with ordinality as part (attribute, place)
    inner join pg_attribute on attrelid = indrelid and attnum = attribute
    where indrelid = to_regclass(?) and indisprimary
    order by place
"""
# partitions can be written by their own names
WRITERS = """
    select virtualtransaction from pg_locks
    where
        mode = 'RowExclusiveLock'
        and (relation = to_regclass(?) or relation in (select relid from pg_partition_tree(to_regclass(?))))
"""
COLUMNS_OF_MYSQL = """
    select column_name, data_type, column_type, collation_name
    from information_schema.columns where table_schema = ? and table_name = ? order by ordinal_position
"""
KEY_OF_MYSQL = """
    select column_name, coalesce(sub_part, '') from information_schema.statistics
    where table_schema = ? and table_name = ? and index_name = 'PRIMARY' order by seq_in_index
"""
# transactions that have changed something; one that is being committed is among them until its rows are seen
WRITERS_OF_MYSQL = """
    select concat(trx_id, ' ', trx_started) from information_schema.innodb_trx
    where trx_rows_modified > 0 and trx_mysql_thread_id <> connection_id()
"""
NUMBERS = frozenset(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal"))
TEXTS = frozenset(("char", "varchar"))
TIMES = frozenset(("date", "datetime", "timestamp"))
BYTES = frozenset(("binary", "varbinary"))
LONG_BYTES = frozenset((
    "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point", "linestring", "polygon", "multipoint",
    "multilinestring", "multipolygon", "geometrycollection",
))  # fmt: skip


@dataclass
class SourceTable:
    """A table of a live database.

    Attributes:
        database: what its rows are read with, in one transaction. others: sees what is committed meanwhile.
        feed: whose records it is compared with. names: how it is called.
    """

    database: Database
    others: Database
    feed: Feed
    names: Names

    @property
    def shown(self) -> str:
        """Its name, ready for SQL."""
        return self.names.source

    @property
    def origin(self) -> str:
        """What its positions are of: those of another origin cannot be compared with them."""
        return self.database.kind.name

    @property
    def columns(self) -> list[str]:
        """Its columns, in their order."""
        raise NotImplementedError

    @cached_property
    def key(self) -> list[list[str]]:
        """Name, type, and what else decides the order, of each column that it is read in parts by."""
        raise NotImplementedError

    def snapshot(self) -> tuple[str, str]:
        """Fix which rows are seen; return the positions that they are of, one twice, or two that they are between.

        Raises: CheckError when the position cannot be known, or the database says no.
        """
        raise NotImplementedError

    def between(self, after: list[str] | None, last: list[str] | None) -> str:
        """Return the condition of a part, ready to stand behind the table in a query."""
        raise NotImplementedError

    def last_of_part(self, where: str, rows: int) -> list[str] | None:
        """Return the key of the row in this place of a part, as literals; None: it has fewer rows."""
        raise NotImplementedError

    def checksum(self, where: str) -> list[int]:
        """Return number and checksum of the rows of a part, which the database computes."""
        raise NotImplementedError

    def write(self, where: str, path: Path, has_header: bool) -> int:
        """Write rows behind what a CSV file has; return how many."""
        raise NotImplementedError


class PostgresTable(SourceTable):
    """A table of PostgreSQL; its positions are those of the write-ahead log."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        kinds = "select 1 from pg_class where oid = to_regclass(?) and relkind not in ('r', 'p')"
        if self.database.rows(kinds, self.shown):
            raise UsageError(f"{self.shown} is no table: who writes what it shows is not known, so it has no position.")
        self.texts = self._texts()

    @property
    def columns(self):
        """See SourceTable."""
        return [column for column, _, _ in self.texts]

    @cached_property
    def key(self):
        """See SourceTable."""
        return [list(column) for column in self.database.rows(KEY_OF_POSTGRES, self.shown)]

    def _texts(self) -> list[tuple[str, str, str]]:
        """Return the text of each column, as it is captured; bytes without the sign before their hex digits."""
        kinds = {column: kind for column, kind, _ in columns_of(self.database, self.names)}
        return [
            (column, is_json, f"substr({value}, 3)" if kinds[column] == "bytea" else value)
            for column, is_json, value in texts_of(self.database, self.names, "source")
        ]

    def snapshot(self):
        """See SourceTable."""
        log = "case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end"
        # a change that begins right here is not in it
        ((start,),) = self.others.rows(f"select '0/0'::pg_lsn + ({log} - '0/0'::pg_lsn - 1)")
        # in a statement behind it, so that nobody can have begun and written in between
        ((after, is_standby),) = self.others.rows("select pg_snapshot_xmax(pg_current_snapshot()), pg_is_in_recovery()")
        # what they have written is before the start, though they have not committed it
        wait_for_writers(self.others, self.shown, after if is_standby == "t" else None)
        self.begin()
        ((end,),) = self.database.rows(f"select {log}")
        return start, end

    def begin(self) -> None:
        """Begin the transaction in which the rows are read."""
        self.database.rollback()
        self.database.run("set transaction isolation level repeatable read, read only")
        # a truncate, which snapshots do not see, waits until the export has ended
        self.database.run(f"lock table {self.shown} in access share mode")

    def between(self, after, last):
        """See SourceTable."""
        columns = _listed(f"source.{quoted(column)}" for column, *_ in self.key)
        bounds = [f"({columns}) {than} ({_listed(values)})" for than, values in ((">", after), ("<=", last)) if values]
        return f" where {' and '.join(bounds)}" if bounds else ""

    def last_of_part(self, where, rows):
        """See SourceTable."""
        columns = _listed(f"source.{quoted(column)}" for column, *_ in self.key)
        literals = _listed(f"quote_literal(source.{quoted(column)}::text)" for column, *_ in self.key)
        found = self.database.rows(
            f"select {literals} from {self.shown} as source{where} order by {columns} offset {rows - 1} limit 1"
        )
        return [f"{value}::{kind}" for value, (_, kind, _) in zip(found[0], self.key, strict=True)] if found else None

    def checksum(self, where):
        """See SourceTable."""
        fields = (f"""coalesce('"' || replace(({value})::text, '"', '""') || '"', '')""" for _, _, value in self.texts)
        halves = (f"coalesce(sum(('x' || substr(digest, {start}, 16))::bit(64)::bigint), 0)" for start in (1, 17))
        record = " || ',' || ".join(fields)
        ((*found,),) = self.database.rows(
            f"select count(*), {_listed(halves)} from "
            f"(select md5(convert_to({record}, 'UTF8')) as digest from {self.shown} as source{where}) as records"
        )
        return [int(number) for number in found]

    def write(self, where, path, has_header):
        """See SourceTable."""
        shown = _listed(f"{value} as {quoted(column)}" for column, _, value in self.texts)
        copy = (
            f"copy (select {shown} from {self.shown} as source{where}) "
            f"to stdout (format csv{', header' if has_header else ''}, force_quote *)"
        )
        java = self.database.java
        with self.database.errors():
            stream = java.java.io.FileOutputStream(str(path), True)
            try:
                return java.org.postgresql.copy.CopyManager(self.database.connection).copyOut(copy, stream)
            finally:
                stream.close()


class CapturedTable(PostgresTable):
    """A table that `highwater extract` captures; its positions are numbers of its changes."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.capture = self._capture()
        self._refuse_older_capture()

    @property
    def origin(self):
        """See SourceTable."""
        return f"capture {self.capture.number}"

    @property
    def called(self) -> str:
        """What it is called by on a command line."""
        return f"{self.feed.name}.{self.names.table}"

    def _capture(self) -> Capture:
        capture = capture_of(self.database, self.names)
        if capture is None or not capture.is_running or capture.method != "changelog":
            raise UsageError(
                f"{self.called} is not captured by the method changelog, so the export would have no position."
            )
        return capture

    def _refuse_older_capture(self) -> None:
        """Raise UsageError where triggers of an older version record JSON otherwise than an export has it."""
        question = "select prosrc not like '%image_of%' from pg_proc where oid = to_regproc(?)"
        has_json = any(is_json == "t" for _, is_json, _ in self.texts)
        if has_json and self.database.rows(question, self.names.function) == [("t",)]:
            raise UsageError(
                f"{self.called} is captured by triggers of an older version, which record JSON in another form than it "
                f"has; every such value would differ. Capture it anew: highwater extract {self.called}, then "
                "--disable, then --enable."
            )

    def snapshot(self):
        """See SourceTable."""
        for left in reversed(range(SNAPSHOTS)):
            self.begin()
            ((after, oldest, is_standby),) = self.database.rows(
                "select pg_snapshot_xmax(pg_current_snapshot()), pg_snapshot_xmin(pg_current_snapshot()), "
                "pg_is_in_recovery()"
            )
            end = self._highest_number(is_standby == "t")
            recent = (
                f"select change_number from {self.names.changelog} where change_number <= {end} "
                f"and {WRITTEN_BY} >= {oldest}"
            )
            seen = set(self.database.rows(recent))
            wait_for_writers(self.others, self.names.changelog, after if is_standby == "t" else None)
            missing = [int(number) for (number,) in set(self.others.rows(recent)) - seen]
            self.others.rollback()
            if not missing or not left:
                start = min(missing) - 1 if missing else end
                return f"{self.capture.number}/{start}", f"{self.capture.number}/{end}"
        raise AssertionError

    def _highest_number(self, is_standby: bool) -> int:
        """Return the highest number of a change that the snapshot has, whether it waits or has landed."""
        ((waiting,),) = self.database.rows(f"select max(change_number) from {self.names.changelog}")
        landed = landed_number(self.database, self.names)
        if landed is None and is_standby:
            raise UsageError(
                f"{self.called} is captured by an older version, so a standby does not tell up to where its changes "
                f"have landed. Export from the primary, or there: highwater extract {self.called}, then --disable, "
                "then --enable."
            )
        landed = self._landed() if landed is None else landed
        return max(int(waiting or 0), int(landed))

    def _landed(self) -> int:
        """Return the number of the last change that has landed."""
        folder = f"{self.feed.name}/{self.names.table}/capture-{self.capture.number:03}/"
        return self.database.spark.sql(
            f"select coalesce(max(cast(source_position as bigint)), 0) from {self.feed.raw_table} "
            f"where entry = 'file' and startswith(source_file, '{folder}')"
        ).first()[0]


class MySqlTable(SourceTable):
    """A table of MySQL or MariaDB; its positions are file and offset of the binary log."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.of = (self.names.schema, self.names.table)
        self.types = {name: tuple(kinds) for name, *kinds in self.database.rows(COLUMNS_OF_MYSQL, *self.of)}
        ((engine,),) = self.database.rows(
            "select engine from information_schema.tables where table_schema = ? and table_name = ?", *self.of
        )
        if engine != "InnoDB":
            raise UsageError(
                f"{self.shown} is {f'a table of {engine}' if engine else 'a view'}, which knows no snapshots; only "
                "tables of InnoDB can be exported."
            )

    @property
    def shown(self):
        """See SourceTable."""
        return ".".join(_in_backticks(name) for name in (self.names.schema, self.names.table))

    @property
    def columns(self):
        """See SourceTable."""
        return [*self.types]

    @cached_property
    def key(self):
        """See SourceTable."""
        parts = self.database.rows(KEY_OF_MYSQL, *self.of)
        # others are compared with a literal in another order than their own
        if any(length or self.types[name][0] not in NUMBERS | TEXTS | TIMES | BYTES for name, length in parts):
            return []
        return [[name, self.types[name][0], " ".join(each or "" for each in self.types[name][1:])] for name, _ in parts]

    def snapshot(self):
        """See SourceTable."""
        exact = self._begin()
        if not exact:
            start = self._position()
            # the server answers from a copy that is up to 0.1 s old (MySQL documentation, INNODB_TRX)
            time.sleep(SECONDS_OF_INNODB_TRX)
            wait_for(f"a transaction that may have written {self.shown}", self._writers_are_gone())
            self._begin()
        # it is locked against a truncate from here on
        self.database.rows(f"select 1 from {self.shown} limit 0")
        return (exact, exact) if exact else (start, self._position())

    def _begin(self) -> str | None:
        """Begin the transaction in which the rows are read; return its position, where the server tells it."""
        self.database.rollback()
        self.database.run("start transaction with consistent snapshot, read only")
        positions = dict(self.database.rows("show status like 'binlog\\_snapshot\\_%'"))
        positions = {name.lower(): value for name, value in positions.items()}
        file = positions.get("binlog_snapshot_file")
        return _before(file, positions["binlog_snapshot_position"]) if file else None

    def _position(self) -> str:
        """Return where the binary log ends."""
        ((version,),) = self.others.rows("select version()")
        major, minor = (int(number) for number in re.match(r"(\d+)\.(\d+)", version).groups())
        is_renamed = "mariadb" not in version.lower() and (major, minor) >= (8, 2)
        found = self.others.rows(f"show {'binary log' if is_renamed else 'master'} status")
        self.others.rollback()
        if not found:
            raise UsageError(f"the server of {self.shown} writes no binary log, so an export would have no position.")
        return _before(*found[0][:2])

    def _writers_are_gone(self):
        """Return a question: whether those have ended who are writing now."""
        writing = set(self.others.rows(WRITERS_OF_MYSQL))
        self.others.rollback()

        def are_gone() -> bool:
            left = writing & set(self.others.rows(WRITERS_OF_MYSQL))
            self.others.rollback()
            return not left

        return are_gone

    def between(self, after, last):
        """See SourceTable."""
        names = [_in_backticks(column) for column, *_ in self.key]
        bounds = [_bound(names, than, values) for than, values in ((">", after), ("<", last)) if values]
        return f" where {' and '.join(bounds)}" if bounds else ""

    def last_of_part(self, where, rows):
        """See SourceTable."""
        literals = _listed(_literal(_in_backticks(column), kind) for column, kind, _ in self.key)
        order = _listed(_in_backticks(column) for column, *_ in self.key)
        found = self.database.rows(f"select {literals} from {self.shown}{where} order by {order} limit {rows - 1}, 1")
        return list(found[0]) if found else None

    @property
    def _record(self) -> str:
        """SQL of a row as a record of CSV."""
        fields = ", ',', ".join(_field(_in_backticks(name), *kinds[:2]) for name, kinds in self.types.items())
        # no concat_ws, and no coalesce: both would pass over a value that is too long for the server
        return f"concat({fields}, '')"

    def checksum(self, where):
        """See SourceTable."""
        halves = (
            f"coalesce(sum(cast(cast(conv(substr(digest, {start}, 16), 16, 10) as unsigned) as signed)), 0)"
            for start in (1, 17)
        )
        ((*found,),) = self.database.rows(
            f"select count(*), {_listed(halves)} from "
            f"(select md5({self._record}) as digest from {self.shown}{where}) as records"
        )
        return [int(number) for number in found]

    def write(self, where, path, has_header):
        """See SourceTable."""
        lines = self.database.texts(f"select {self._record} from {self.shown}{where}")
        if None in lines:
            raise CheckError(
                f"a row of {self.shown} is longer than the server's max_allowed_packet, so it cannot be read; raise it."
            )
        with path.open("a", encoding="utf-8", newline="") as file:
            if has_header:
                file.write(",".join('"' + name.replace('"', '""') + '"' for name in self.columns) + "\n")
            file.writelines(f"{line}\n" for line in lines)
        return len(lines)


def _listed(texts) -> str:
    return ", ".join(texts)


def _in_backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(column: str, kind: str, declared: str) -> str:
    """Return the text of a column of MySQL: its value exactly, bytes as hex digits."""
    if kind in NUMBERS or (kind, declared) == ("bit", "bit(1)"):
        return f"({column} + 0)"  # without the zeros of zerofill
    if kind == "float":
        return f"cast({column} as double)"  # a float has six digits as text
    if kind in BYTES | LONG_BYTES or kind == "bit":
        return f"lower(hex({column}))"
    return f"convert({column} using utf8mb4)"


def _before(file: str, offset: str) -> str:
    """Return the position before the next transaction; MariaDB, from 11.4 on, says of it where the log ends now."""
    return f"{file} {int(offset) - 1}"


def _field(column: str, kind: str, declared: str) -> str:
    """Return the field of CSV of a column of MySQL; NULL is nothing, and not an empty text."""
    text = _text(column, kind, declared)
    return f"""if({column} is null, '', concat('"', replace({text}, '"', '""'), '"'))"""


def _literal(column: str, kind: str) -> str:
    """Return SQL of the literal of a key's column."""
    if kind in NUMBERS:
        return f"({column} + 0)"
    if kind in BYTES:
        return f"concat('x''', hex({column}), '''')"
    return f"quote(convert({column} using utf8mb4))"


def _bound(names: list[str], than: str, values: list[str]) -> str:
    """Return the condition that a key is above, or not above, another; row constructors would use no index."""
    equal, cases = [], []
    for name, value in zip(names, values, strict=True):
        cases.append(" and ".join([*equal, f"{name} {than} {value}"]))
        equal.append(f"{name} = {value}")
    if than == "<":
        cases.append(" and ".join(equal))
    return f"{names[0]} {than}= {values[0]} and ({' or '.join(f'({case})' for case in cases)})"


def wait_for_writers(others: Database, relation: str, after: str | None) -> None:
    """Wait until those have ended who write a table of PostgreSQL now.

    Arguments:
        after: of a standby, which does not know who writes which table: the first transaction behind the snapshot.
    """
    writing = set() if after else set(others.rows(WRITERS, relation, relation))

    def are_gone() -> bool:
        if not after:
            return not writing & set(others.rows(WRITERS, relation, relation))
        others.rollback()
        ((oldest,),) = others.rows("select pg_snapshot_xmin(pg_current_snapshot())")
        return int(oldest) >= int(after)

    wait_for(f"a transaction that may have written {relation}", are_gone)


def wait_for(whom: str, are_gone) -> None:
    """Wait for transactions to end.

    Raises: CheckError when they have been open for too long.
    """
    began, is_said = time.monotonic(), False
    while not are_gone():
        waited = time.monotonic() - began
        if waited > SECONDS_FOR_WRITERS:
            raise CheckError(
                f"{whom} has been open for more than {SECONDS_FOR_WRITERS // 60} minutes, so the position of an export "
                "is not known; nothing was written. End it (pg_stat_activity or information_schema.innodb_trx names "
                "it), or export again when it has ended."
            )
        if waited > 5 and not is_said:
            is_said = True
            print(f"waiting for {whom} to end", file=sys.stderr, flush=True)
        time.sleep(0.01 if waited < 1 else 0.2)
