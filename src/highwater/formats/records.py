"""What a reader yields: records with exact bytes and true line numbers, in batches of bounded size."""

import hashlib
import io
import json
from collections.abc import Iterable

import pyarrow

from highwater.formats.formats import Shards

BLOCK_BYTES = 1024 * 1024
RECORD_BYTES_AT_MOST = 64 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

RECORDS = pyarrow.schema(
    [
        ("source_line", pyarrow.int32()),
        ("record", pyarrow.binary()),
        ("fields", pyarrow.map_(pyarrow.string(), pyarrow.string())),
        ("problem", pyarrow.string()),
        ("source_table", pyarrow.string()),
    ]
)


class UnreadableFile(Exception):
    """The file as a whole cannot be read; the message says why, without the file's name."""


class CountedStream(io.RawIOBase):
    """Passes a stream's bytes on, counting and hashing them."""

    def __init__(self, stream):
        self._stream = stream
        self._hash = hashlib.sha256()
        self.size = 0

    def readable(self):
        """Return True: this is a stream to read from."""
        return True

    def readinto(self, buffer):
        """Fill `buffer` from the stream; return the number of bytes read."""
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._hash.update(data)
        self.size += len(data)
        return len(data)

    def digest(self) -> str:
        """Return the SHA-256 of the bytes that passed, in hex."""
        return self._hash.hexdigest()


def without_line_end(record: bytes) -> bytes:
    """Return the record without the carriage return that a line end in CRLF leaves."""
    return record[:-1] if record.endswith(b"\r") else record


def too_long(what: str) -> UnreadableFile:
    """Return the error that `what` is longer than a record may be."""
    return UnreadableFile(f"{what} is longer than {RECORD_BYTES_AT_MOST >> 20} MiB, the most that one record may have")


def table_name(schema, table, own_schema: str | None) -> str | None:
    """Return the name that a table of the source has among the feed's tables, in lower case.

    Arguments:
        schema, table: as the source names them; anything but text names nothing.
        own_schema: the schema whose tables go by their bare names; None: those of every schema do.
    """
    if not isinstance(table, str) or not table:
        return None
    if own_schema and isinstance(schema, str) and schema.lower() != own_schema.lower():
        return f"{schema}.{table}".lower()
    return table.lower()


Table = tuple[str | None, str]


class InShards(str):
    """The name of a table that several schemas have together.

    Attributes:
        shard: the schema that a record names.
    """

    shard: str

    def __new__(cls, table: str, shard: str):
        """Return the name of the table, with the schema."""
        name = super().__new__(cls, table)
        name.shard = shard
        return name


class TableNames:
    """Gives the tables that records name their names among the feed's tables.

    A table goes by its bare name in lower case; where another table has that name already, because it came first, by
    `<schema>.<table>`, and where the two differ by upper and lower case only, by its exact text in double quotes. The
    tables of shards go by the one name that is declared for them, and no other table has it.

    Arguments:
        own_schema: see `table_name`. owners: (schema, table) by name, of what has landed before.
        keeps_owners: they count as seen. shards: as they are declared.
    Attributes:
        seen: the tables that records of this file have named, by name; those of shards by `key_in_shards`.
    """

    def __init__(
        self,
        own_schema: str | None = None,
        owners: dict[str, Table] | None = None,
        keeps_owners=False,
        shards: Iterable[Shards] = (),
    ):
        self._own_schema, self._owners, self._shards = own_schema, dict(owners or {}), tuple(shards)
        self._names: dict[tuple, str | None] = {}
        self.seen: dict[str, Table] = dict(self._owners) if keeps_owners else {}

    def name_of(self, schema, table) -> str | None:
        """Return the name of a table that the source calls so; None where `table` is no name."""
        try:
            return self._names[schema, table]
        except (KeyError, TypeError):
            pass
        if not isinstance(table, str) or not table:
            return None
        found = (schema if isinstance(schema, str) and schema else None, table)
        if shards := next((each for each in self._shards if each.has(*found)), None):
            name = self._names[schema, table] = InShards(shards.table, found[0])
            self.seen[key_in_shards(shards.table, found)] = found
            return name
        bare, qualified, exact = names_of_table(*found, self._own_schema)
        reserved = {each.table.lower() for each in self._shards}
        first = found if bare in reserved else owner_of(self._owners, bare, found)
        if bare in reserved:
            is_first = qualified not in reserved and is_same_table(owner_of(self._owners, qualified, found), found)
            name = qualified if is_first else exact
        elif is_same_table(first, found):
            name = bare
        elif is_one_schema(first, found):
            name = exact
        else:
            name = qualified if is_same_table(owner_of(self._owners, qualified, found), found) else exact
        self._names[schema, table], self.seen[name] = name, owner_of(self._owners, name, found)
        return name


def key_in_shards(name: str, table: Table) -> str:
    """Return what the table of one shard goes by among those that a file has named."""
    return f"{name}\t{json.dumps(table)}"


def place_of_key(key: str, table: Table) -> tuple[str, str | None]:
    """Return the name that raw has for the records of a table that a file has named, and their shard."""
    name = key.partition("\t")[0]
    return (name, table[0]) if key == key_in_shards(name, table) else (key, None)


def owner_of(owners: dict[str, Table], name: str, table: Table) -> Table:
    """Return the table that goes by a name; `table` does where none did, or one whose schema no record has told."""
    owner = owners.get(name)
    if owner is None or (owner[0] is None and owner[1] == table[1]):
        owners[name] = owner = table
    return owner


def is_one_schema(one: Table, other: Table) -> bool:
    """Tell whether two tables are of schemas that differ by upper and lower case at most."""
    return (one[0] or "").lower() == (other[0] or "").lower()


def is_same_table(one: Table, other: Table) -> bool:
    """Tell whether two records name one table; a record that names no schema may mean any."""
    return one[1] == other[1] and (None in (one[0], other[0]) or one[0] == other[0])


def names_of_table(schema: str | None, table: str, own_schema: str | None) -> list[str]:
    """Return the names that a table may go by: its bare one, one with its schema, and its exact text in quotes."""
    bare = table_name(schema, table, own_schema)
    return [bare, f"{schema}.{table}".lower() if schema else bare, f'"{schema}"."{table}"' if schema else f'"{table}"']


def with_shards(fields: list | pyarrow.Array | None, tables: list | None) -> list | pyarrow.Array | None:
    """Return the fields of records with the shard that each one is of, where the names of their tables say it."""
    if not any(isinstance(table, InShards) for table in tables or ()):
        return fields
    fields = fields.to_pylist() if isinstance(fields, pyarrow.Array) else fields
    return [
        [*(own or ()), ("shard", table.shard)] if isinstance(table, InShards) else own
        for own, table in zip(fields or [None] * len(tables), tables, strict=True)
    ]


def record_batch(numbers, records, *, fields=None, problems=None, tables=None) -> pyarrow.RecordBatch:
    """Return a batch with the schema RECORDS; a column that is not given is NULL."""
    fields = with_shards(fields, tables)
    columns = {
        "source_line": numbers,
        "record": records,
        "fields": fields,
        "problem": problems,
        "source_table": tables,
    }

    def column(kind):
        values = columns.get(kind.name)
        if values is None:
            return pyarrow.nulls(len(records), kind.type)
        return values if isinstance(values, pyarrow.Array) else pyarrow.array(values, kind.type)

    return pyarrow.record_batch([column(kind) for kind in RECORDS], schema=RECORDS)
