"""Cases that producers' users met, by their ids: files as the producers write them, and the rows that are right.

The files are in fixtures/cases/<id>/<feed>/<table>/. One landing and one build carry all of them; tables that are
declared alike are in one feed.
"""

import functools
import re
from datetime import date, datetime
from decimal import Decimal

import pytest
from highwater.builds.landing_report import land_and_tell
from highwater.catalog.entities import declared_columns
from highwater.catalog.feeds import declared_feeds
from highwater.landing import feed_folders, landing
from highwater.runtime.errors import CheckError
from highwater.upkeep.rebuild import rebuild_from_raw
from repository import FIXTURES
from test_shards import MORE_CLIENTS, ROWS_OF_SHARDS, declare_and_deliver_shards
from workshop import IN_ORDER, rows_in_the_end

FILES = FIXTURES / "cases"
POSTGRES = {"connector": "postgresql"}
MYSQL = {"connector": "mysql"}
FLATTENED = {**POSTGRES, "form": "flattened"}
NEVER_NULL = "b:binary,n:decimal(5,2),note:string"
UNSIGNED = ("id:bigint unsigned", "total:bigint unsigned")
SQL_WORDS = (
    "left,right,on,full,order,group,select,from,case,end,interval,date,timestamp,user,table,values,union,exists,not,2fa,"
    "current_date,array,key,value,entry"
)
WORDS = SQL_WORDS.split(",")


def strings(*names) -> str:
    return ",".join(f"{name}:string" for name in names)


def at(*moment) -> datetime:
    return datetime(*moment)


# case -> tables: (feed.table, folder or files of the case, key, columns, format, settings)
TABLES = {
    "dbz-avro-json-unions": [
        ("update_pk", "debezium_unions/update_pk", "f1:int", "f2:string", "debezium-json", POSTGRES),
        ("never", "required", "k:decimal(5,0)", NEVER_NULL, "debezium-json", POSTGRES),
        (
            "never_said",
            "required",
            "k:decimal(5,0)",
            NEVER_NULL,
            "debezium-json",
            {**POSTGRES, "decimals": "precise", "binary": "bytes"},
        ),
    ],
    "dbz-cloudevents": [("tickets", "debezium_cloud/tickets", "id:int", "v:string", "debezium-json", POSTGRES)],
    "dbz-connectors": [
        ("of_db2", "db2", "ID:int", "V:string", "debezium-json", {"connector": "db2"}),
        ("of_informix", "informix", "id:int", "v:string", "debezium-json", {"connector": "informix"}),
        ("of_spanner", "spanner", "id:int", "v:string", "debezium-json", {"connector": "spanner"}),
        ("of_tablets", "yugabytedb", "id:int", "v:string", "debezium-json", {"connector": "yugabytedb"}),
        (
            "of_yugabytedb",
            "yugabytedb_logical",
            "id:int",
            "v:string",
            "debezium-json",
            {"connector": "yugabytedb"},
        ),
        (
            "of_mongodb",
            "mongodb",
            "_id:string",
            "n:int",
            "debezium-json",
            {"connector": "mongodb", "form": "flattened"},
        ),
    ],
    "dbz-order-of-kafka": [
        ("by_names", "names", "id:int", "v:string", "debezium-json", {"order": "kafka"}),
        ("by_fields", "beside", "id:int", "v:string,offset:int", "debezium-json", {"order": "kafka"}),
    ],
    "dbz-flat-usual-metadata": [
        (table, f"debezium_flat2/{table}", "id:int", "amt:int", "debezium-json", FLATTENED)
        for table in ("bids", "asks", "calls")
    ]
    + [
        (
            table,
            f"debezium_flat2/{table.removesuffix('2')}",
            "id:int",
            "amt:int",
            "debezium-json",
            {**FLATTENED, "prefix": "_dbz_", "connector": "mysql"},
        )
        for table in ("calls2", "asks2")
    ],
    "dbz-mysql-unsigned-bigint-long-mode": [
        ("sensors", "debezium_bigs/sensors", *UNSIGNED, "debezium-json", MYSQL),
        ("signless", "debezium_bigs/sensors", "id:bigint", "total:decimal(20,0)", "debezium-json", MYSQL),
        ("typed", "typed", "id:int", "n:decimal(20,0)", "debezium-json", MYSQL),
    ],
    "dbz-binary-hex": [
        ("blobs", "debezium_bank/blobs", "id:int", "b:binary", "debezium-json", POSTGRES),
        (
            "hex_blobs",
            "debezium_bank/blobs",
            "id:int",
            "b:binary",
            "debezium-json",
            {**POSTGRES, "binary": "hex"},
        ),
    ],
    "dbz-flat-with-schema": [
        (
            "flat_items",
            "debezium_flat/items",
            "id:int",
            "name:string",
            "debezium-json",
            {**POSTGRES, "form": "flattened"},
        )
    ],
    "dbz-mysql-compressed-transaction": [
        ("seats", "debezium_shop/seats", "id:bigint", "state:string", "debezium-json", MYSQL)
    ],
    "dbz-mysql-datetime-millis": [
        (
            "visits",
            "debezium_shop/visits",
            "id:int",
            "at0:timestamp,at6:timestamp,ts:timestamp",
            "debezium-json",
            MYSQL,
        )
    ],
    "dbz-oracle-number-variable-scale": [
        (
            "accounts",
            "debezium_oracle1/accounts",
            "ID:bigint",
            "RATE:decimal(20,6)",
            "debezium-json",
            {"connector": "oracle"},
        )
    ],
    "dbz-pg-decimal-mode-changed": [
        ("prices", "debezium_bank/prices", "id:int", "units:decimal(10,0)", "debezium-json", POSTGRES)
    ],
    "dbz-pg-incremental-snapshot": [
        ("balances", "debezium_bank/accounts", "id:bigint", "balance:int", "debezium-json", POSTGRES)
    ],
    "dbz-pg-odd-times": [
        (
            "periods",
            "debezium_bank/periods",
            "id:int",
            "tz:timestamp,us:timestamp,d:date",
            "debezium-json",
            {**POSTGRES, "times": "microseconds"},
        ),
        (
            "ended_periods",
            "debezium_bank/periods",
            "id:int",
            "tz:timestamp,us:timestamp,d:date",
            "debezium-json",
            {**POSTGRES, "times": "microseconds", "infinity": "end_of_range"},
        ),
    ],
    "dbz-pg-toast-placeholders": [
        (
            "docs",
            "debezium_bank/docs",
            "id:int",
            strings("title", "body", "numbers", "attrs", "ids", "words"),
            "debezium-json",
            POSTGRES,
        )
    ],
    "dms-csv-cut-while-downloading": [
        ("seen_visits", "input/dms_dates/visits", "id:int", "note:string", "dms-csv", None)
    ],
    "dms-no-supplement": [
        ("parts", "dms_nosup/parts", "id:int", strings("a", "b"), "dms-csv", {"no_supplement": "<absent>"})
    ],
    "dms-without-quotes": [
        ("sayings", "dms_noquotes/sayings", "id:int", "said:string", "dms-csv", {"rfc4180": "false"})
    ],
    "dms-oracle-number-decimal38": [
        ("rated", "dms_ora3/accounts", "ACCOUNT_ID:bigint", "QTY:int,RATE:decimal(10,2)", "dms-parquet", None)
    ],
    "dms-own-op-column": [("machines", "dms_ora3/machines", "id:int", "op:string", "dms-parquet", None)],
    "odd-column-names-not-ascii": [
        (
            "sizes",
            "debezium_odd/sizes",
            "id:int",
            "größe:int,名前:string,a b.c:string",
            "debezium-json",
            POSTGRES,
        )
    ],
    "odd-column-names-sql-words": [
        ("words", "debezium_odd/words", "id:int", strings(*WORDS), "debezium-json", POSTGRES),
        ("words2", "dms_odd2/words2", "id:int", strings(*WORDS), "dms-csv", None),
    ],
    "ordinary-table-31-columns": [
        (
            "bills",
            "debezium_wide/invoices",
            "id:bigint",
            ",".join(
                [f"text{n}:string" for n in range(20)]
                + [f"amount{n}:decimal(12,2)" for n in range(6)]
                + [f"at{n}:timestamp" for n in range(4)]
            ),
            "debezium-json",
            {**POSTGRES, "times": "microseconds"},
        )
    ],
    "repro-2": [
        (
            "wide",
            "wide.json",
            "id:bigint",
            ",".join(f"c{n:02}:bigint" for n in range(1, 41)),
            "debezium-json",
            POSTGRES,
        )
    ],
    "repro-3": [
        (
            "workers",
            "insert.jsonl",
            "EMPLOYEE_ID:bigint",
            "LAST_NAME:string",
            "datastream-gcs-json",
            {"order": "oracle_sort_keys"},
        ),
        (
            "mates",
            "sqlserver.jsonl",
            "EMPLOYEE_ID:bigint",
            "LAST_NAME:string",
            "datastream-gcs-json",
            {"order": "sqlserver_sort_keys"},
        ),
    ],
    "repro-4": [
        (
            "flat_orders",
            ["flat.json", "flat-with-schema.json"],
            "id:int",
            "order_date:date,quantity:int",
            "debezium-json",
            {**POSTGRES, "form": "flattened"},
        )
    ],
    "repro-6": [("seq_items", "shop-items-7.csv", "id:bigint", "v:string", "tungsten-csv", {"dialect": "mysql"})],
    "repro-7": [
        ("numt", "numbers.json", "id:bigint", "n:decimal(10,0)", "debezium-json", MYSQL),
        (
            "numst",
            "numbers.json",
            "id:bigint",
            "n:decimal(10,0),big:decimal(38,10)",
            "debezium-json",
            {**MYSQL, "decimals": "string"},
        ),
    ],
}

LONG = "2222222222222222300000001111.1234567890"
# table -> rows that are right
ROWS = {
    "update_pk": [(2, None)],
    "tickets": [(1, "a2")],
    "bids": [(1, 7)],
    "asks": [(1, 7)],
    "calls": [(1, 7)],
    "sensors": [(Decimal(5), Decimal(7)), (Decimal(6), Decimal(2**64 - 2)), (Decimal(2**64 - 1), Decimal(10))],
    "signless": [(-1, Decimal(10)), (5, Decimal(7))],
    "typed": [(1, Decimal(2**64 - 1)), (2, Decimal(-1)), (3, Decimal(5))],
    "never": [(Decimal(390), b"\x00\xff", Decimal("0.05"), "ä")],
    "never_said": [
        (Decimal(2), b"abcd", Decimal("0.05"), "x"),
        (Decimal(390), b"\x00\xff", Decimal("0.05"), "ä"),
        (Decimal(12594), b"\xff", Decimal("0.05"), "x"),
    ],
    "of_db2": [(1, "c"), (3, "x")],
    "of_informix": [(1, "c")],
    "of_spanner": [(1, "d")],
    "of_tablets": [(1, "c")],
    "of_yugabytedb": [(1, "b")],
    "of_mongodb": [("b", 1)],
    "by_names": [(1, "c"), (3, "a")],
    "by_fields": [(1, "c", 99)],
    "calls2": [],
    "asks2": [],
    "blobs": [(3, b"\x01\x02\xff")],
    "hex_blobs": [(1, b"\xde\xad\xbe\xef"), (2, b"\xca\xfe"), (3, b"\x01\x02\xff")],
    "flat_items": [(1, "a2")],
    "seats": [(1, "held"), (2, "sold")],
    "visits": [
        (1, at(2018, 6, 20, 6, 37, 3), at(2018, 6, 20, 6, 37, 3, 123456), at(2018, 6, 20, 13, 37, 3)),
        (2, *[at(1969, 12, 31)] * 3),
    ],
    "accounts": [(3, Decimal("12.345")), (4, Decimal(100))],
    "prices": [(1, Decimal(77)), (4, Decimal(12345))],
    "balances": [(1, 175), (2, 60), (3, 2)],
    "periods": [
        (1, *[at(2024, 1, 5, 10, 0, 0, 123456)] * 2, date(2024, 1, 5)),
        (5, *[at(1500, 3, 1)] * 2, date(1500, 3, 1)),
        (6, *[at(1, 1, 1)] * 2, date(1, 1, 1)),
        (7, *[at(9999, 12, 31, 23, 59, 59, 999999)] * 2, date(9999, 12, 31)),
    ],
    "ended_periods": [
        (1, *[at(2024, 1, 5, 10, 0, 0, 123456)] * 2, date(2024, 1, 5)),
        (2, *[at(9999, 12, 31, 23, 59, 59, 999999)] * 2, date(9999, 12, 31)),
        (3, *[at(1, 1, 1)] * 2, date(1, 1, 1)),
        (5, *[at(1500, 3, 1)] * 2, date(1500, 3, 1)),
        (6, *[at(1, 1, 1)] * 2, date(1, 1, 1)),
        (7, *[at(9999, 12, 31, 23, 59, 59, 999999)] * 2, date(9999, 12, 31)),
    ],
    "docs": [(1, "t2", "long text", "[1,2,3]", '{"a":"1"}', '["0e37df36-f698-11e6-8dd4-cb9ced3df976"]', '["x"]')],
    "seen_visits": [(4, "jan2")],
    "parts": [(1, "a2", "b"), (2, "c", None)],
    "sayings": [(1, 'say "hi"'), (2, '"')],
    "rated": [(101, 9, Decimal("0.75")), (102, 8, Decimal("1.25")), (103, None, Decimal("2.00"))],
    "machines": [(1, "D"), (2, "MUL"), (3, "I"), (4, None)],
    "sizes": [(1, 5, "x", "y")],
    "words": [(1, *[word.upper() + "2" for word in WORDS])],
    "words2": [(1, *[word.upper() for word in WORDS])],
    "bills": [(1, *[f"t{n}" for n in range(20)], *[Decimal("12.34")] * 6, *[at(2024, 1, 5, 10, 0, 0, 123456)] * 4)],
    "wide": [(1, *range(40))],
    "workers": [(210, "x")],
    "mates": [(101, "Doe")],
    "flat_orders": [(10003, date(2016, 2, 19), 2), (10004, date(2016, 2, 19), 2)],
    "seq_items": [(1, "newer, and lost")],
    "numt": [(1, Decimal(123))],
    "numst": [(1, Decimal(123), Decimal(LONG))],
}
NO_FILE = (
    "it has no file or pos under __source_ or __ and _dbz_: let the producer add source.file,source.pos (add.fields)"
)
# what is rejected, by table: where, and words of the reason
REJECTED = {
    "never": [
        (2, "digits or bytes, declare `decimals`: 12"),
        (3, "bytes, hex or base64, declare `binary`: abcd"),
        (4, "1684300900"),
    ],
    "never_said": [(4, "k = [")],
    "of_db2": [(8, "commit_lsn not an LSN")],
    "of_spanner": [(7, "ts_us absent")],
    "of_mongodb": [(5, "it has no ts_ms or ord under __source_ or __: let the producer add source.ts_ms,source.ord")],
    "by_names": [(1, "neither the name of the file"), (2, "a truncate has no order")],
    "by_fields": [(6, "neither the name of the file")],
    "calls2": [(1, NO_FILE), (2, NO_FILE)],
    "asks2": [(1, NO_FILE), (2, NO_FILE), (3, NO_FILE), (4, NO_FILE)],
    "signless": [(3, "declare the unit unsigned or the type bigint: -2")],
    "blobs": [(1, "hex or base64, declare `binary`"), (2, "hex or base64, declare `binary`")],
    "prices": [(2, "digits or base64, declare `decimals`"), (3, "digits or base64, declare `decimals`")],
    "periods": [(2, "infinity"), (3, "-infinity"), (4, "BC"), (8, "+10000")],
    "ended_periods": [(4, "BC"), (8, "+10000")],
    "seq_items": [(2, "sequence is")],
}
# several schemas as one table, in each format: what test_shards.py has of them costs no landing of its own
ROWS |= ROWS_OF_SHARDS
REJECTED["tenant_clients"] = [
    (MORE_CLIENTS.index(each) + 1, "truncate of tenant_a") for each in MORE_CLIENTS if each["op"] == "t"
]
CASE_OF_TABLE = dict.fromkeys(ROWS_OF_SHARDS, "shards") | {
    table: case for case, tables in TABLES.items() for table, *_ in tables
}
# these are built, as users build them: names of any letters in all layers, images without some columns, a wide row, a
# second delivery; of the others staging is asked, and the total order says which rows are left
BUILT = ["words", "sizes", "wide", "seen_visits"]


def feeds() -> dict[str, str]:
    """Return by table the feed that delivers it: one for all tables that are declared alike."""
    alike, feeds = {}, {}
    for tables in TABLES.values():
        for table, _, _, _, form, settings in tables:
            number = alike.setdefault(f"{form} {settings}", len(alike))
            feeds[table] = f"{form.partition('-')[0]}_users{number}"
    return feeds


FEEDS = feeds()


def declare_and_deliver(workshop, case: str):
    for table, source, key, columns, form, settings in TABLES[case]:
        workshop.add_table(f"{FEEDS[table]}.{table}", key, columns, form, settings)
        names = source if isinstance(source, list) else [source]
        for path in [FILES / case / name for name in names]:
            for file in sorted(path.glob("*")) if path.is_dir() else [path]:
                workshop.deliver(f"{FEEDS[table]}.{table}", file.name, file.read_bytes())


def contents(frame, columns: list[str]) -> list:
    """Rows of a frame, with these columns; Python has no moment before the year 1, which a zone makes of that day."""
    moments = [name for name in columns if frame.schema[name].dataType.typeName() == "timestamp"]
    return frame.withColumns({name: frame[f"`{name}`"].cast("timestamp_ntz") for name in moments}).collect()


@pytest.fixture(scope="module")
def cases(workshop):
    for case in TABLES:
        declare_and_deliver(workshop, case)
    of_shards = declare_and_deliver_shards(workshop)
    workshop.land(*of_shards, *dict.fromkeys(FEEDS.values()))
    workshop.build(*(f"+{table}" for table in BUILT), command="run")
    workshop.staged_of_users = workshop.staged(*(table for table in ROWS if table not in BUILT))
    return workshop


@functools.cache
def answer(cases, table: str) -> tuple[list[tuple], list[tuple]]:
    """Return the rows of a table, and line and detail of what is rejected."""
    if table in BUILT:
        frame = cases.spark.table(table)
        rows = map(tuple, contents(frame, frame.columns))
        changes = cases.spark.sql(f"select * from {table}_changes where rejection_reason is not null").collect()
    else:
        columns, key = declared_columns(table)
        columns = [column.name for column in columns]
        # of what is rejected the values do not count, and may be of years that Python has not
        accepted = [f"if(rejection_reason is null, `{name}`, null) as `{name}`" for name in columns]
        told = [*IN_ORDER, "source_line", "rejection_reason", "rejection_detail"]
        changes = contents(cases.staged_of_users[table].selectExpr(*accepted, *told), columns)
        rows = rows_in_the_end([each for each in changes if each.rejection_reason is None], columns, key)
    rejected = [(each.source_line, each.rejection_detail) for each in changes if each.rejection_reason is not None]
    return sorted(rows), sorted(rejected)


@pytest.mark.parametrize("table", ROWS)
def test_rows_are_right(cases, table):
    assert answer(cases, table)[0] == ROWS[table], CASE_OF_TABLE[table]


@pytest.mark.parametrize("table", ROWS)
def test_what_is_rejected_says_what_was_found(cases, table):
    found = answer(cases, table)[1]
    assert [line for line, _ in found] == [line for line, _ in REJECTED.get(table, [])], found
    for (_, detail), (_, words) in zip(found, REJECTED.get(table, []), strict=True):
        assert words in detail


def test_a_schema_that_no_pattern_has_is_a_table_of_its_own(cases):
    """shards"""
    tables = "select distinct source_table from raw.debezium_of_tenants where entry = 'record' order by 1"
    assert cases.rows(tables) == [("public.tenant_clients",), ("tenant_clients",)]


def test_a_file_that_was_landed_while_it_was_downloaded(cases):
    """dms-csv-cut-while-downloading: the whole file, under its own name"""
    feed = FEEDS["seen_visits"]
    left = cases.landing / feed / "seen_visits/20260103-000500456.csv.6E5fAbCd"
    whole = FILES / "dms-csv-cut-while-downloading/second/input/dms_dates/visits" / left.name.removesuffix(".6E5fAbCd")
    left.unlink()
    cases.deliver(f"{feed}.seen_visits", whole.name, whole.read_bytes())
    cases.land_and_run(feed, "+seen_visits")
    assert cases.rows("select id, note from seen_visits order by 1") == [
        (4, "jan2 bis"), (5, "jan3 and more"), (6, "six"),
    ]  # fmt: skip


@pytest.mark.soak
def test_what_an_earlier_version_landed_while_it_was_downloaded_is_told_and_taken_out(workshop, monkeypatch):
    """dms-csv-cut-while-downloading, in a lake of 0.6.0: what the sentence says to do is done, letter by letter."""
    files = FILES / "dms-csv-cut-while-downloading"
    workshop.add_table("dms_begun.begun_visits", "id:int", "note:string", "dms-csv")
    for file in sorted(files.glob("input/dms_dates/visits/*")):
        workshop.deliver("dms_begun.begun_visits", file.name, file.read_bytes())
    with monkeypatch.context() as earlier:
        earlier.setattr(feed_folders, "left_alone", lambda *names, **of_feed: None)
        earlier.setattr(feed_folders, "is_called_so", lambda *names, **of_feed: True)
        earlier.setattr(landing, "cut_files", lambda *files: [])
        workshop.land_and_run("dms_begun", "+begun_visits")
    cut = workshop.landing / "dms_begun/begun_visits/20260103-000500456.csv.6E5fAbCd"
    assert workshop.rows("select * from begun_visits where note = 'jan3 and mo'"), "as 0.6.0 had it"
    cut.unlink()
    whole = files / "second/input/dms_dates/visits" / cut.name.removesuffix(".6E5fAbCd")
    workshop.deliver("dms_begun.begun_visits", whole.name, whole.read_bytes())
    feeds = {"dms_begun": declared_feeds()["dms_begun"]}
    (told,) = land_and_tell(workshop.spark, feeds).changed
    name = f"dms_begun/begun_visits/{whole.name}"
    assert told.startswith(f"{name} begins with all that landed before as {name}.6E5fAbCd, while it was written.")
    assert land_and_tell(workshop.spark, feeds).changed == [told], "until something is done about it"
    workshop.build("+begun_visits", command="run")
    entry, path, table = re.search(
        r"in (\S+), as the last: (\{.*\})\. Then run: highwater rebuild (\S+) --", told
    ).group(2, 1, 3)
    declaration = workshop.folder / path
    text = declaration.read_text().replace(
        "format: dms-csv\n", f"format: dms-csv\n          epochs:\n            - {entry}\n"
    )
    declaration.write_text(text)
    with pytest.raises(CheckError, match=r"2 records that were accepted would be rejected"):
        rebuild_from_raw(workshop.spark, table)
    assert "classified again from raw" in rebuild_from_raw(workshop.spark, table, accept_loss=True)
    assert workshop.rows("select id, note from begun_visits order by 1") == [
        (4, "jan2 bis"), (5, "jan3 and more"), (6, "six"),
    ]  # fmt: skip
    feeds = {"dms_begun": declared_feeds()["dms_begun"]}
    assert land_and_tell(workshop.spark, feeds).changed == []


@pytest.mark.long
def test_a_text_of_21_million_characters_is_whole(workshop):
    """dbz-value-of-21-mb"""
    lengths = {1: 1000, 2: 21_000_000}
    workshop.add_table("debezium_big.papers", "id:int", "body:string", "debezium-json", POSTGRES)
    source = {"connector": "postgresql", "name": "bank", "snapshot": "false", "schema": "public", "table": "papers"}
    records = [
        {"before": None, "after": {"id": key, "body": "x" * length}, "op": "c", "source": source | {"lsn": 100 * key}}
        for key, length in lengths.items()
    ]
    workshop.deliver("debezium_big.papers", "0001.json", records)
    workshop.land_and_run("debezium_big", "+papers")
    assert dict(workshop.rows("select id, length(body) from papers")) == lengths
