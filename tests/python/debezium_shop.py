"""A database with a column of every type that Debezium captures, what happens in it, and how its tables are declared.

Run as a script it records what Debezium writes about it in several settings: the files of fixtures/debezium.
"""

import gzip
import json
import re
import sys
import tempfile
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path
from uuid import UUID

import repository

FIXTURES = repository.FIXTURES / "debezium"
# what a type's values look like in an export, where they do not stand there as PostgreSQL writes them
SCHEMALESS = {"key_converter_schemas_enable": "false", "value_converter_schemas_enable": "false"}
REWRITTEN = {
    "transforms": "unwrap",
    "transforms_unwrap_type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms_unwrap_add_fields": "op,schema,table,lsn,source.sequence",
    "transforms_unwrap_delete_tombstone_handling_mode": "rewrite",
}
JSON = "to_json({})"
HEX = "encode({}, 'hex')"
MICROS = "(extract(epoch from {}) * 1000000)::bigint"
MILLIS = "(extract(epoch from {}) * 1000)::bigint"


@dataclass(frozen=True)
class Table:
    """A table of the shop: the columns of its key and the others, each with its type at the source and in the lake.

    Attributes:
        name: schema and table at the source. entity: its name in the project.
        exported: by column, what stands in an export. source_table: what records are declared by, if not the entity.
    """

    name: str
    entity: str
    key: dict[str, str]
    columns: dict[str, str]
    exported: dict[str, str] = field(default_factory=dict)
    source_table: str | None = None

    def declared(self, units: dict[str, str] | None = None) -> tuple[str, str]:
        """Return key and columns as `add-table` takes them, with units where records do not say them."""
        return tuple(
            ",".join(f"{name}:{data_type}" + (units or {}).get(name, "") for name, data_type in names.items())
            for names in (self.key, self.columns)
        )

    def query(self, cast: str = "") -> str:
        """Return a query of its rows, as they stand in an export, or as texts (`cast` is ::text)."""
        columns = (
            f"({self.exported.get(name, '{}').format(quoted(name))}){cast} as {quoted(name)}"
            for name in {**self.key, **self.columns}
        )
        return f"select {', '.join(columns)} from {self.source}"

    @property
    def source(self) -> str:
        """Its name as SQL has it."""
        return ".".join(map(quoted, self.name.split(".", 1)))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Type:
    """A type at the source and in the lake; texts of an ordinary value, of the least, of the greatest.

    Attributes:
        exported: how a value stands in an export, where it does not as PostgreSQL writes it.
    """

    source: str
    lake: str
    values: tuple[str, str, str]
    exported: str = "{}"


TYPES = {
    "c_smallint": Type("smallint", "smallint", ("7", "-32768", "32767")),
    "c_int": Type("int", "int", ("7", "-2147483648", "2147483647")),
    "c_bigint": Type("bigint", "bigint", ("7", "-9223372036854775808", "9223372036854775807")),
    "c_numeric_10_2": Type("numeric(10,2)", "decimal(10,2)", ("1.50", "-99999999.99", "99999999.99")),
    "c_numeric": Type("numeric", "decimal(38,10)", ("3.1400", "-1234567890123456789012345678.0123456789", "1e20")),
    "c_numeric_38_10": Type(
        "numeric(38,10)", "decimal(38,10)", ("0", "-0.0000000001", "9999999999999999999999999999.9999999999")
    ),
    "c_numeric_5": Type("numeric(5)", "decimal(5,0)", ("0", "-99999", "99999")),
    "c_real": Type("real", "float", ("0.1", "-Infinity", "NaN")),
    "c_double": Type("double precision", "double", ("0.1", "-1.7976931348623157e308", "Infinity")),
    "c_boolean": Type("boolean", "boolean", ("true", "false", "true")),
    "c_text": Type("text", "string", ("größe 名前 😀", "", 'line\nend\ttab "q" \\ ')),
    "c_varchar": Type("varchar(40)", "string", ("plain", " ", "null")),
    "c_char": Type("char(8)", "string", ("ab", "", " a"), "rpad({}, 8)"),
    "c_bytea": Type("bytea", "binary", ("\\x00ff10deadbeef", "\\x", "\\xff"), HEX),
    "c_date": Type("date", "date", ("2024-02-29", "0001-01-01", "9999-12-31")),
    "c_timestamp": Type(
        "timestamp",
        "timestamp_ntz",
        ("2024-02-29 12:34:56.789012", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    ),
    "c_timestamp_0": Type(
        "timestamp(0)", "timestamp_ntz", ("2024-02-29 12:34:57", "1969-12-31 23:59:59", "9999-12-31 23:59:59")
    ),
    "c_timestamp_3": Type(
        "timestamp(3)", "timestamp_ntz", ("2024-02-29 12:34:56.789", "1582-10-10 00:00:00", "1969-12-31 23:59:59.999")
    ),
    "c_timestamp_4": Type(
        "timestamp(4)", "timestamp_ntz", ("2024-02-29 12:34:56.7891", "1900-01-01 00:00:00", "1969-12-31 23:59:59.9999")
    ),
    "c_timestamptz": Type(
        "timestamptz",
        "timestamp",
        ("2024-02-29 12:34:56.789012+02", "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"),
    ),
    "c_timestamptz_3": Type(
        "timestamptz(3)",
        "timestamp",
        ("2024-02-29 12:34:56.789+02", "1582-10-10 00:00:00+00", "1969-12-31 23:59:59.999+00"),
    ),
    "c_time": Type("time", "bigint", ("12:34:56.789012", "00:00:00", "23:59:59.999999"), MICROS),
    "c_time_3": Type("time(3)", "bigint", ("12:34:56.789", "00:00:00", "23:59:59.999"), MILLIS),
    # a month is no number of microseconds
    "c_interval": Type("interval", "bigint", ("3 days 04:05:06.789012", "-1 days -00:00:00.000001", "0"), MICROS),
    "c_uuid": Type(
        "uuid",
        "string",
        ("0193a1d8-7d34-7aaa-8000-0123456789ab", f"{UUID(int=0)}", f"{UUID(int=2**128 - 1)}"),
    ),
    "c_json": Type("json", "string", ('{"b": 1.0, "a":  [1, 2]}', "null", '"s"')),
    "c_jsonb": Type("jsonb", "string", ('{"b": 1.0, "a": [1, 2]}', "null", "1e40")),
    "c_ints": Type("int[]", "string", ("{1,NULL,3}", "{}", "{2147483647}"), JSON),
    "c_bigints": Type("bigint[]", "string", ("{1,NULL,3}", "{}", "{9223372036854775807}"), JSON),
    "c_texts": Type("text[]", "string", ('{a,NULL,"b,c","\\"q\\""}', "{}", '{""}'), JSON),
    "c_uuids": Type("uuid[]", "string", ("{0193a1d8-7d34-7aaa-8000-0123456789ab}", "{}", "{NULL}"), JSON),
    "c_booleans": Type("boolean[]", "string", ("{t,f,NULL}", "{}", "{t}"), JSON),
    "c_enum": Type("mood", "string", ("it's happy", "sad", "ok")),
    "c_inet": Type("inet", "string", ("192.168.0.1/24", "10.0.0.1", "2001:db8::1/64"), "abbrev({})"),
    "c_cidr": Type("cidr", "string", ("10.0.0.0/8", "::/0", "192.168.0.0/24")),
    "c_macaddr": Type("macaddr", "string", ("08:00:2b:01:02:03", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff")),
    "c_bit": Type("bit(1)", "boolean", ("1", "0", "1"), "{}::int::boolean"),
    "c_money": Type(
        "money", "decimal(19,2)", ("1234.56", "-92233720368547758.08", "92233720368547758.07"), "{}::numeric"
    ),
    "c_tsvector": Type("tsvector", "string", ("fat:2 cat:1", "", "'a'")),
    "c_int4range": Type("int4range", "string", ("[1,10)", "empty", "(,5]")),
    "c_oid": Type("oid", "bigint", ("7", "0", "4294967295")),
    "c_price": Type("price", "decimal(12,3)", ("12.345", "0", "999999999.999")),
    "c_short_text": Type("short_text", "string", ("short", "", "x")),
}
TOASTED = ["c_text", "c_varchar", "c_bytea", "c_json", "c_jsonb", "c_ints", "c_bigints", "c_texts", "c_uuids"]
EXPORTED = {name: types.exported for name, types in TYPES.items()}
# what numbers of time count, where the records have no schema
UNITS = {
    name: "[millis]" if re.fullmatch(r"timestamp\([0-3]\)", types.source) else "[micros]"
    for name, types in TYPES.items()
    if types.lake == "timestamp_ntz"
}


def _of_types(names) -> dict[str, str]:
    return {name: TYPES[name].lake for name in names}


ORDERS = {"customer": "string", "total": "decimal(10,2)", "placed_at": "timestamp"}
TABLES = [
    Table("public.every_type", "every_type", {"id": "bigint"}, _of_types(TYPES), EXPORTED),
    Table("public.every_type_full", "every_type_full", {"id": "bigint"}, _of_types(TYPES), EXPORTED),
    Table("public.toasted", "toasted", {"id": "int"}, {"n": "int"} | _of_types(TOASTED), EXPORTED),
    Table("public.toasted_full", "toasted_full", {"id": "int"}, {"n": "int"} | _of_types(TOASTED), EXPORTED),
    Table("public.orders", "orders", {"id": "int"}, ORDERS),
    Table("archive.orders", "archive_orders", {"id": "int"}, ORDERS, source_table="archive.orders"),
    Table(
        "public.Order Details",
        "order_details",
        {"Order ID": "int", "Product-Nr.": "int"},
        {"Unit Price": "decimal(8,2)", "Größe": "string"},
        source_table="Order Details",
    ),
    Table("public.loose_keys", "loose_keys", {"key": "decimal(38,10)"}, {"note": "string"}),
    Table("public.moved_keys", "moved_keys", {"a": "int", "b": "string"}, {"note": "string"}),
    Table("public.truncated", "truncated", {"id": "int"}, {"note": "string"}),
]

SCHEMA = f"""
create schema archive;
create type mood as enum ('sad', 'ok', 'it''s happy');
create domain price as numeric(12, 3) check (value >= 0);
create domain short_text as varchar(20);
create table every_type (id bigint primary key, {", ".join(f"{name} {types.source}" for name, types in TYPES.items())});
create table every_type_full (like every_type including all);
alter table every_type_full replica identity full;
create table toasted (id int primary key, n int, {", ".join(f"{name} {TYPES[name].source}" for name in TOASTED)});
alter table toasted alter c_varchar type varchar, {", ".join(f"alter {name} set storage external" for name in TOASTED)};
create table toasted_full (like toasted including all);
alter table toasted set (toast_tuple_target = 128);
alter table toasted_full set (toast_tuple_target = 128);
alter table toasted_full replica identity full;
create table orders (id int primary key, customer text, total numeric(10, 2), placed_at timestamptz);
create table archive.orders (like orders including all);
create table "Order Details" ("Order ID" int, "Product-Nr." int, "Unit Price" numeric(8, 2), "Größe" text,
  primary key ("Order ID", "Product-Nr."));
create table loose_keys (key numeric primary key, note text);
create table moved_keys (a int, b text, note text, primary key (a, b));
create table truncated (id int primary key, note text);
create table debezium_signal (id text primary key, type text not null, data text);
"""


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _row(table: str, number: int, values: list[str]) -> str:
    return f"insert into {table} values ({number}, {', '.join(map(_literal, values))})"


def _rows_of_every_type(table: str, first: int) -> list[str]:
    rows = [_row(table, first + at, [types.values[at] for types in TYPES.values()]) for at in range(3)]
    return [*rows, f"insert into {table} (id) values ({first + 3})"]


def _toasted(salt: str) -> list[str]:
    """Values of TOASTED, each too long to stay in its row."""
    text, numbers = 20 * md5(salt.encode()).hexdigest(), ",".join(map(str, range(150)))
    uuids = ",".join(str(UUID(int=number)) for number in range(40))
    document = f'{{"j": "{text}"}}'
    texts = ",".join([text[:100]] * 7)
    return [
        text, f"v{text}", f"\\x{text}", document, document,
        *(f"{{{items}}}" for items in (numbers, numbers, texts, uuids)),
    ]  # fmt: skip


def _rows_of_toasted(table: str) -> list[str]:
    return [_row(table, number, ["0", *_toasted(f"{table} {number}")]) for number in range(1, 5)]


# what is there before Debezium begins
ROWS = [
    *_rows_of_every_type("every_type", 1),
    *_rows_of_every_type("every_type_full", 1),
    *_rows_of_toasted("toasted"),
    *_rows_of_toasted("toasted_full"),
    """insert into "Order Details" values (1, 1, 9.99, 'L'), (1, 2, 19.99, null), (2, 1, 0, 'XL')""",
    "insert into orders select n, 'customer ' || n, n * 10.5, timestamptz '2024-01-01 00:00Z' + n * interval '1 h 1 us'"
    " from generate_series(1, 10) n",
    "insert into archive.orders select n, 'archived ' || n, n * 1.5, null from generate_series(1, 5) n",
    "insert into loose_keys values (1, 'one'), (1.50, 'one and a half'), (100, 'hundred'), (1e20, 'large'),"
    " (0.000001, 'small'), (-7.25, 'minus')",
    "insert into moved_keys values (1, 'x', 'stays'), (2, 'y', 'moves'), (3, 'z', 'goes')",
    "insert into truncated values (1, 'a'), (2, 'b')",
]

# what happens while it captures
CHANGES = [
    *_rows_of_every_type("every_type", 101),
    *_rows_of_every_type("every_type_full", 101),
    "update every_type set c_int = 8, c_text = 'changed', c_date = null where id in (1, 101)",
    "update every_type_full set c_int = 8, c_text = null where id in (1, 101)",
    "delete from every_type where id = 102; delete from every_type_full where id = 102",
    "update every_type set id = 200 where id = 3",
    # values that stay out of their row, that change, that go
    "update toasted set n = n + 1 where id in (1, 2)",
    f"update toasted set c_text = {_literal(_toasted('new')[0])} where id = 2",
    "update toasted set c_text = null, c_ints = null where id = 3; update toasted set n = n + 1 where id = 3",
    "update toasted_full set n = n + 1 where id in (1, 2)",
    "update toasted_full set id = 40 where id = 4; delete from toasted_full where id = 3",
    # names
    """insert into "Order Details" values (3, 1, 1)""",
    """update "Order Details" set "Unit Price" = 8.88 where "Order ID" = 1""",
    """delete from "Order Details" where "Order ID" = 2""",
    "begin; update orders set total = 7 where id <= 3; update archive.orders set total = 0 where id = 1; commit",
    "begin; insert into orders values (12, 'rolled back', 1.1); rollback",
    "begin; insert into orders values (13, 'a', 1); savepoint s; update orders set total = 2 where id = 13",
    "rollback to s; delete from orders where id = 13; insert into orders values (13, 'b'); commit",
    "delete from archive.orders where id = 5",
    "copy orders from stdin;\n21\tcopied\t1.25\t2024-06-01 00:00Z\n22\tcopied\t\\N\t\\N\n\\.\n",
    # keys
    "update loose_keys set note = 'changed' where key = 1.5; delete from loose_keys where key = 100",
    "insert into loose_keys values (12345678901234567890.5, 'long'), (2.50, 'with a zero')",
    "update loose_keys set key = -8 where key = -7.25",
    "update moved_keys set a = 20 where a = 2; update moved_keys set b = 'zz', note = 'moved' where a = 3",
    "update moved_keys set a = 30 where a = 3; delete from moved_keys where a = 30",
    "begin; update moved_keys set a = 21 where a = 20; insert into moved_keys values (20, 'y', 'again'); commit",
    # truncates and messages
    "update truncated set note = 'c' where id = 1; truncate truncated; insert into truncated values (2, 'b'), (3, 'c')",
    "select pg_logical_emit_message(true, 'audit', 'inside'), pg_logical_emit_message(false, 'audit', 'outside')",
]


def fill(server):
    """Make the tables, and the rows that are there before Debezium begins."""
    server.sql(SCHEMA + ";\n".join(ROWS) + ";\ncreate publication highwater for all tables;")


def change(server):
    """Do what happens while Debezium captures."""
    server.sql("".join(f"{statement};\n" if not statement.startswith("copy") else statement for statement in CHANGES))


def rows(server, table: Table) -> str:
    """Return the rows of a table as CSV, and nothing besides."""
    session = server.session()
    printed, _ = session.communicate(
        f"set timezone = 'UTC';\ncopy ({table.query()}) to stdout (format csv, header, force_quote *);\n"
    )
    assert session.returncode == 0, printed
    return printed


def texts(server, table: Table) -> list[dict]:
    """Return the rows of a table: names to texts, as PostgreSQL writes them."""
    query = f"select row_to_json(r) from ({table.query('::text')} order by 1, 2) as r"
    return [json.loads(line) for line in server.sql(f"set timezone = 'UTC'; {query}")]


# by the name of a fixture: what the engine is told
RECORDED = {
    "with_schema": {},
    "without_schema": SCHEMALESS,
    "as_texts": SCHEMALESS
    | {
        "decimal_handling_mode": "string",
        "binary_handling_mode": "base64-url-safe",
        "time_precision_mode": "isostring",
    },
    "as_numbers": SCHEMALESS | {"binary_handling_mode": "hex", "time_precision_mode": "microseconds"},
    "flattened": SCHEMALESS | REWRITTEN,
    "flattened_with_schema": REWRITTEN,
}


def record(name: str, folder: Path):
    """Record one fixture, and the rows that are there in the end."""
    from debezium_engine import capturing
    from postgres import serving

    with serving("shop") as server, tempfile.TemporaryDirectory() as working:
        fill(server)
        with capturing(server, Path(working), **RECORDED[name]) as engine:
            engine.wait_for("end of the snapshot", lambda records: any("truncated" in r["topic"] for r in records))
            change(server)
            server.sql("insert into truncated values (99, 'the end')")
            engine.wait_for_text("the end")
            values = [each["value"] for each in engine.records() if each["value"] is not None]
        with gzip.GzipFile(folder / f"{name}.jsonl.gz", "w", mtime=0) as file:
            file.write("".join(f"{value}\n" for value in values).encode())
        found = {table.entity: texts(server, table) for table in TABLES}
        (folder / "rows.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or RECORDED:
        record(name, FIXTURES)
