"""Schemas of one shape as one table: the schema is a column of the key, and later schemas join by their name."""

import io
import json
import re

import pytest
from connect_files import avro_file, struct_of_connect
from highwater.catalog.feeds import declared_feeds, feed_of_settings
from highwater.formats import readers
from highwater.formats.formats import ReadOptions, Shards
from highwater.formats.records import CountedStream, TableNames, key_in_shards
from highwater.landing import table_names
from highwater.landing.deliveries import undeclared
from highwater.landing.feed_folders import undeclared_folders
from highwater.runtime.errors import CheckError, UsageError
from highwater.scaffold.add_table import add_table
from highwater.scaffold.check import check
from highwater.scaffold.found_columns import found_in_files
from highwater.upkeep.rebuild import rebuild_from_raw
from highwater.upkeep.resync import resync
from repository import PROJECT
from workshop import copy_empty_project

FEED = "debezium_tenants"
DMS = "dms_tenants"
SETTINGS = {"connector": "postgresql", "layout": "records"}
EMPLOYEES = "examples/landing/datastream_hr/public_employees/2026/03/02/09/18/77b0_postgresql-cdc_2_0_0.avro"
OF_TENANTS = {"column": "tenant", "schemas": ["tenant_*"]}


def change(schema: str, lsn: int, op: str = "c", table: str = "clients", server="shop", at=None, **row) -> dict:
    before, after = (row, None) if op == "d" else (None, row or None)
    source = {"connector": "postgresql", "name": server, "db": "shop", "schema": schema, "table": table, "lsn": lsn}
    return {"before": before, "after": after, "source": source | {"ts_ms": 1700000000000 + (at or lsn)}, "op": op}


def named(*tables, **options) -> list:
    names = TableNames(**{"shards": [Shards("clients", "tenant", ("tenant_*",))], **options})
    return [(str(name), getattr(name, "shard", None)) for name in (names.name_of(*table) for table in tables)]


def test_tables_of_shards_have_one_name_and_no_other_table_has_it():
    tables = [("public", "clients"), ("tenant_a", "clients"), ("TENANT_B", "CLIENTS"), ("tenant_a", "orders")]
    assert named(*tables) == [
        ("public.clients", None),
        ("clients", "tenant_a"),
        ("clients", "TENANT_B"),
        ("orders", None),
    ]
    # what raw has from before the declaration, and a record that names no schema
    assert named(("public", "clients"), owners={"clients": ("public", "clients")}) == [("public.clients", None)]
    assert named((None, "clients")) == [('"clients"', None)]
    assert named(("my_tenant_a", "clients"), ("tenant", "clients")) == [
        ("my_tenant_a.clients", None),
        ("tenant.clients", None),
    ]


@pytest.mark.parametrize("schema", ["a.b", "[x]", "(", "it's", '"q"', "a\nb", "{{ 1/0 }}", "täg*", "\\"])
def test_any_name_of_a_schema_is_a_name(schema):
    shards = [Shards("clients", "tenant", (schema,))]
    assert named((schema, "clients"), shards=shards) == [("clients", schema)]
    other = schema.replace("*", "").replace("a", "b") + "!"
    assert named((other, "clients"), shards=shards)[0][1] is (other if "*" in schema else None)


def test_every_reader_of_records_tells_the_shard():
    options = {"table_in_records": True, "shards": (Shards("clients", "tenant", ("tenant_*",)),)}
    row = struct_of_connect(id="int32")
    source = struct_of_connect(schema="string", table="string")
    schema = struct_of_connect(before=row, after=row, source=source, op="string")
    payloads = [
        {"before": None, "after": {"id": 1}, "source": {"schema": name, "table": "clients"}, "op": "c"}
        for name in ("tenant_a", "public")
    ]
    lines = "".join(json.dumps(each) + "\n" for each in [payloads[0], {"value": payloads[0], "offset": 1}, payloads[1]])
    for format, content, shards in (
        ("debezium-json", lines.encode(), ["tenant_a", "tenant_a", None]),
        ("debezium-avro", avro_file(schema, payloads), ["tenant_a", None]),
    ):
        opened = CountedStream(io.BytesIO(content))
        found = [r for batch in readers.read(opened, ReadOptions(format, **options)) for r in batch.to_pylist()]
        assert [dict(r["fields"] or ()).get("shard") for r in found] == shards
        assert [r["source_table"] for r in found] == ["clients" if name else "public.clients" for name in shards]
    avro = (PROJECT / EMPLOYEES).read_bytes()
    of_datastream = ReadOptions(
        "datastream-avro", table_in_records=True, shards=(Shards("employees", "tenant", ("pub*",)),)
    )
    found = [r for b in readers.read(CountedStream(io.BytesIO(avro)), of_datastream) for r in b.to_pylist()]
    assert {(r["source_table"], *r["fields"]) for r in found} == {("employees", ("shard", "public"))}


@pytest.mark.parametrize(
    "told, settings",
    [
        ("tenant_*", {}),
        ({"column": "tenant"}, {}),
        ({"column": "tenant", "schemas": []}, {}),
        ({"column": "tenant", "schemas": "x", "more": 1}, {}),
        ({"column": 3, "schemas": "x"}, {}),
        (OF_TENANTS, {"format": "tungsten-csv", "dialect": "mysql", "layout": "files", "connector": None}),
        (OF_TENANTS, {"format": "csv", "role": "export", "layout": None, "connector": None}),
    ],
)
def test_a_wrong_declaration_is_a_sentence(told, settings):
    settings = {"format": "debezium-json", "connector": "mysql", "layout": "records"} | settings
    settings = {name: value for name, value in settings.items() if value is not None}
    with pytest.raises(UsageError, match=r"clients declares shards|shards of clients are"):
        feed_of_settings("test", "feed", settings, {"clients": "clients"}, shards={"clients": told})


def test_a_table_of_its_own_is_no_shard():
    settings = {"format": "debezium-json", "connector": "mysql", "layout": "records"}
    tables = {"clients": "clients", "first": "tenant_a.clients"}
    with pytest.raises(UsageError, match="take first out, or leave tenant_a out of the schemas of clients"):
        feed_of_settings("test", "feed", settings, tables, shards={"clients": OF_TENANTS})
    with pytest.raises(UsageError, match="clients declares shards and also_called"):
        feed_of_settings(
            "test", "feed", settings, {"clients": "clients"}, {"guests": "clients"}, {"clients": OF_TENANTS}
        )


def in_a_project(folder, monkeypatch):
    copy_empty_project(PROJECT, folder)
    monkeypatch.chdir(folder)
    for name in ("LANDING", "EXPORTS"):
        monkeypatch.setenv(f"HIGHWATER_{name}", str(folder / name.lower()))
    monkeypatch.setenv("DBT_PROJECT_DIR", str(folder))


def test_folders_that_are_no_tables_are_named(tmp_path, monkeypatch):
    in_a_project(tmp_path, monkeypatch)
    add_table(f"{DMS}.trips", "id:int", "name:string", "dms-csv", shards=OF_TENANTS)
    for folder in ("tenant_a/trips", "tenant_a/orders", "tenant_b/orders", "Trips", "public/trips", "_tmp"):
        (tmp_path / "landing" / DMS / folder).mkdir(parents=True)
    feed = declared_feeds()[DMS]
    found = {folder: undeclared(feed, folder) for folder in undeclared_folders(feed)}
    assert list(found) == ["Trips", "public", "tenant_a/orders"]
    assert "the declared table trips go into dms_tenants/<schema>/trips/" in found["Trips"]
    command = "highwater add-table dms_tenants.orders --shards 'tenant_*' --shard-column tenant"
    assert found["tenant_a/orders"].endswith(f"Declare it with: {command}")
    # as it says
    add_table(f"{DMS}.orders", "id:int", shards=OF_TENANTS)
    assert undeclared_folders(declared_feeds()[DMS]) == ["Trips", "public"]
    assert declared_feeds()[DMS].table_of_file(f"{DMS}/tenant_a/orders/LOAD00000001.csv") == "orders"
    assert declared_feeds()[DMS].table_of_file(f"{DMS}/public/orders/LOAD00000001.csv") == "public"


def test_an_export_has_no_shards(tmp_path, monkeypatch):
    in_a_project(tmp_path, monkeypatch)
    export = ("exports_tenants.clients", None, None, "csv", {"role": "export"})
    with pytest.raises(UsageError, match="one export has the rows of all of them, with the column 'tenant'"):
        add_table(*export, shards=OF_TENANTS)


def test_what_landed_under_other_names_is_found():
    """Of each table once, when it has come to shards or there are none any more, whatever its files called it."""
    settings = {"format": "debezium-json", **SETTINGS}

    def moves(shards, *told):
        feed = feed_of_settings("test", "feed", settings, {"clients": "clients"}, shards=shards)
        tables = {key: json.dumps(table) for key, table in told}
        found = table_names.moves_of(feed, [tables])
        return [(each.name, each.shard, each.new_name, each.new_shard) for each in found]

    a, b, public = ("tenant_a", "clients"), ("tenant_b", "clients"), ("public", "clients")
    before = [("clients", a), ("tenant_b.clients", b), ("public.clients", public), ("orders", ("tenant_a", "orders"))]
    shards = {"clients": OF_TENANTS}
    found = [("clients", None, "clients", "tenant_a"), ("tenant_b.clients", None, "clients", "tenant_b")]
    assert moves(shards, *before) == found
    after = [(key_in_shards("clients", a), a), (key_in_shards("clients", b), b), *before[2:]]
    assert moves(shards, *after) == moves(None, *before) == []
    assert moves({"clients": OF_TENANTS | {"schemas": ["tenant_b", "public"]}}, *after) == [
        ("public.clients", None, "clients", "public"),
    ]
    assert moves(None, *after) == [
        ("clients", "tenant_a", "clients", None),
        ("clients", "tenant_b", "tenant_b.clients", None),
    ]
    # the bare name of another schema is free for its shards
    assert moves(shards, ("clients", public)) == [("clients", None, "public.clients", None)]


def deliver_trips(workshop, schema: str, name: str, content: str, table: str = "dms_tenants.trips"):
    feed, _, folder = table.partition(".")
    workshop.deliver(f"{feed}.{schema}.{folder}", name, content)


def of_datastream(schema: str, table: str, row: dict) -> dict:
    source = {"table": table, "database": schema, "change_type": "INSERT"}
    keys = [1700000000000, "mysql-bin.000001", 7]
    return {"read_method": "mysql-cdc-binlog", "sort_keys": keys, "source_metadata": source, "payload": row}


def of_arcion(schema: str, table: str, row: dict) -> dict:
    texts = {name: str(value) for name, value in row.items()}
    return {
        "tableName": {"namespace": {"catalog": schema, "schema": "default_schema"}, "name": table},
        "opType": "I",
        "cursor": json.dumps({"timestamp": 1700000000000, "log": "log-bin.000001", "position": 7}),
        "before": dict.fromkeys(texts, "null"),
        "after": texts,
        "exists": dict.fromkeys(texts, "1"),
    }


def of_flattened(schema: str, table: str, row: dict) -> dict:
    told = {"op": "c", "table": table, "source_schema": schema, "source_lsn": 7, "source_ts_ms": 7}
    return row | {f"__{name}": value for name, value in told.items()}


def of_debezium(schema: str, table: str, row: dict) -> dict:
    return change(schema, 7, table=table, **row)


FLATTENED = {"connector": "postgresql", "form": "flattened"}
# formats whose records name a schema
IN_RECORDS = {
    "debezium_of_tenants.tenant_clients": ("debezium-json", {"connector": "postgresql"}, of_debezium),
    "debezium_flat_tenants.tenant_walks": ("debezium-json", FLATTENED, of_flattened),
    "datastream_of_tenants.tenant_visits": ("datastream-gcs-json", {"order": "mysql_sort_keys"}, of_datastream),
    "arcion_of_tenants.tenant_stays": ("arcion-json", {}, of_arcion),
}
IN_FOLDERS = "dms_of_tenants.tenant_trips"
# of each shard: a full load, and changes
TRIPS = [
    ("tenant_a", "1,a\n2,a 2\n", "U,1,a new\nD,2,\n"),
    ("tenant_b", "1,b\n2,b 2\n", "I,3,b 3\n"),
    ("public", "1,none of them\n", "I,3,none of them\n"),
]
ROWS_OF_TRIPS = [("tenant_a", 1, "a new"), ("tenant_b", 1, "b"), ("tenant_b", 2, "b 2"), ("tenant_b", 3, "b 3")]
OF_BOTH = [("tenant_a", 1, "a"), ("tenant_b", 1, "b")]
# table -> rows that are right, of shards in every format
ROWS_OF_SHARDS = {table.partition(".")[2]: OF_BOTH for table in IN_RECORDS} | {"tenant_trips": ROWS_OF_TRIPS}
# a delete and a truncate of one shard, and changes of another server, whose clock goes on and whose positions are lower
MORE_CLIENTS = [
    change("tenant_b", 20, table="tenant_clients", id=2, name="and gone"),
    change("tenant_a", 20, table="tenant_clients", id=2, name="not gone"),
    change("tenant_b", 30, "d", table="tenant_clients", id=2, name="and gone"),
    change("tenant_a", 40, "t", table="tenant_clients"),
    *(change("tenant_c", n, at=90_000, server="shop2", table="tenant_clients", id=n, name="c") for n in range(1, 5)),
]
ROWS_OF_SHARDS["tenant_clients"] = [
    ("tenant_a", 1, "a"),
    ("tenant_a", 2, "not gone"),
    ("tenant_b", 1, "b"),
    *(("tenant_c", n, "c") for n in range(1, 5)),
]


def declare_and_deliver_shards(workshop) -> list[str]:
    """Declare a table with shards for each of some formats, deliver files of it, and return their feeds."""
    for table, (format, settings, record) in IN_RECORDS.items():
        workshop.add_table(table, "id:int", "name:string", format, settings | {"layout": "records"}, shards=OF_TENANTS)
        feed, _, name = table.partition(".")
        records = [record(f"tenant_{which}", name, {"id": 1, "name": which}) for which in "ab"]
        workshop.deliver(feed, "1.json", [*records, record("public", name, {"id": 1, "name": "none of them"})])
    workshop.deliver("debezium_of_tenants", "2.json", MORE_CLIENTS)
    workshop.add_table(IN_FOLDERS, "id:int", "name:string", "dms-csv", shards=OF_TENANTS)
    for schema, load, changes in TRIPS:
        deliver_trips(workshop, schema, "LOAD00000001.csv", load, IN_FOLDERS)
        deliver_trips(workshop, schema, "20260302-091600000.csv", changes, IN_FOLDERS)
    return [table.partition(".")[0] for table in (*IN_RECORDS, IN_FOLDERS)]


@pytest.fixture(scope="module")
def tenants(workshop):
    """What has landed before the shards are declared, and what comes then."""
    workshop.add_table(f"{FEED}.places", "id:int", "name:string", "debezium-json", SETTINGS)
    before = [change(schema, 10 * n, id=1, name=f"{schema} 1") for n, schema in enumerate(["public", "tenant_a"], 1)]
    before += [change("tenant_b", 30, id=1, name="b 1"), change("public", 35, table="places", id=1, name="here")]
    workshop.deliver(FEED, "1.json", before)
    workshop.land(FEED)
    workshop.build("+places", "unassigned_records", command="run")
    workshop.before = unassigned(workshop)
    found = found_in_files(declared_feeds()[FEED], "clients")[0]
    workshop.add_table(f"{FEED}.clients", found=type(found)(found.columns, ["id"]), shards=OF_TENANTS)
    after = [
        change("tenant_a", 40, "u", id=1, name="a 1, new", tenant="a field of the record"),
        # its position is lower than that of another shard's row of the same key
        change("tenant_b", 25, "u", id=1, name="older"),
        change("tenant_c", 50, id=7, name="joined"),
        change("tenant_a", 80, "t"),
        change("public", 90, id=2, name="none of them"),
        # of another server, whose positions are lower, though its clock goes on
        *(change("tenant_d", n, at=90_000 + n, server="shop2", id=n, name="elsewhere") for n in range(1, 5)),
    ]
    workshop.deliver(FEED, "2.json", after)
    workshop.add_table(f"{DMS}.trips", "id:int", "name:string", "dms-csv", shards=OF_TENANTS)
    for schema, load, changes in TRIPS:
        deliver_trips(workshop, schema, "LOAD00000001.csv", load)
        deliver_trips(workshop, schema, "20260302-091600000.csv", changes)
    workshop.landed = workshop.land(FEED, DMS)
    workshop.statuses = workshop.build("+clients", "+trips", "places", "unassigned_records")
    # without its test: other modules take records out of raw
    workshop.build("ledger", command="run")
    return workshop


def unassigned(workshop) -> set:
    return set(workshop.rows(f"select source_table, records from unassigned_records where feed = '{FEED}'"))


ROWS = {("tenant_a", 1, "a 1, new"), ("tenant_b", 1, "b 1"), ("tenant_c", 7, "joined")}
ROWS |= {("tenant_d", n, "elsewhere") for n in range(1, 5)}


@pytest.mark.long
def test_shards_are_one_table_with_what_landed_before(tenants):
    assert tenants.before == {("clients", 1), ("tenant_a.clients", 1), ("tenant_b.clients", 1)}
    assert sorted(tenants.rows("select tenant, id, name from clients")) == sorted(ROWS)
    # of all tables only those that are no shards are left, one row for each batch
    assert {name for name, _ in unassigned(tenants)} == {"public.clients"}
    verdicts = tenants.rows("select verdict, count(*) from clients_changes group by all")
    assert dict(verdicts) == {"applied": 8, "superseded": 1, "rejected": 1}, verdicts
    raw = f"select count(*) from raw.{FEED} where entry = 'record' and source_table = 'clients'"
    assert tenants.value("select sum(read) from ledger where table_name = 'clients'") == tenants.value(raw) == 10
    judged = "applied + superseded + duplicate + rejected"
    assert tenants.value(f"select sum({judged}) from ledger where table_name = 'clients'") == 10


@pytest.mark.long
def test_folders_of_schemas_tell_shards(tenants):
    assert sorted(tenants.rows("select tenant, id, name from trips")) == ROWS_OF_TRIPS
    assert tenants.landed[DMS].undeclared == ["public"]
    sources = tenants.folder / f"models/staging/{DMS}/_{DMS}__sources.yml"
    assert "columns: [id, name]" in sources.read_text()


@pytest.mark.long
def test_a_truncate_of_one_shard_hides_nothing_and_is_told(tenants):
    rejected = tenants.rows("select rejection_reason, rejection_detail from clients_changes where verdict = 'rejected'")
    assert rejected == [("truncated_shard", "it is a truncate of tenant_a")]


@pytest.mark.long
def test_a_field_of_the_name_of_the_column_is_another_one(tenants):
    """The record's own field is told, and never in the column."""
    told = [
        status for name, status in tenants.statuses.items() if name.startswith("has_declared_fields_stg_debezium_ten")
    ]
    assert "warn" in told, told
    (finding,) = check("clients").findings
    assert "has the field 'tenant'; to read it, first give the column tenant of the shards a field" in finding.problem


@pytest.mark.long
def test_what_comes_later(tenants):
    """A wider pattern takes what landed before, though the log has read behind it; a schema joins with a full load."""
    path = tenants.folder / f"models/staging/{FEED}/_{FEED}__sources.yml"
    text = path.read_text()
    assert "{column: tenant, schemas: tenant_*}" in text
    wider = text.replace("schemas: tenant_*", "schemas: [tenant_*, public]")
    path.write_text(wider)
    # what is said of a truncate: a delete of each row, at its position
    tenants.deliver(FEED, "3.json", [change("tenant_a", 80, "d", id=1, name="a 1, new")])
    deliver_trips(tenants, "tenant_c", "LOAD00000001.csv", "1,c\n")
    tenants.land(FEED, DMS)
    tenants.build("+clients", "+trips", "unassigned_records", "ledger", command="run")
    public = {("public", 1, "public 1"), ("public", 2, "none of them")}
    assert set(tenants.rows("select tenant, id, name from clients")) == public | ROWS - {("tenant_a", 1, "a 1, new")}
    assert unassigned(tenants) == set()
    assert tenants.rows("select id, name from trips where tenant = 'tenant_c'") == [(1, "c")]
    # nothing more happens
    assert tenants.land(FEED)[FEED].files == 0
    assert tenants.value(f"select count(*) from raw.{FEED} where entry = 'replayed'") == 2
    # out again, as the page says: what the table has stays, until it is taken out
    out = "{table: clients, when: \"fields['shard'] = 'public'\", ignore: true}"
    path.write_text(
        text.replace("          layout: records\n", f"          layout: records\n          epochs: [{out}]\n")
    )
    assert tenants.land(FEED)[FEED].files == 0
    with pytest.raises(CheckError, match="2 records that were accepted would be rejected"):
        rebuild_from_raw(tenants.spark, "clients")
    rebuild_from_raw(tenants.spark, "clients", accept_loss=True)
    assert set(tenants.rows("select tenant, id, name from clients")) == ROWS - {("tenant_a", 1, "a 1, new")}


@pytest.mark.long
def test_a_later_full_load_of_one_shard_waits_and_empties_none(tenants):
    """What the sentence says to do is done; keys that the load lacks stay."""
    deliver_trips(tenants, "tenant_b", "20260401-000000000/LOAD00000001.csv", "1,b again\n")
    tenants.land_and_run(DMS, "+trips")
    before = tenants.rows("select id, name from trips where tenant = 'tenant_b' order by id")
    assert before == [(1, "b"), (2, "b 2"), (3, "b 3")]
    said = resync(tenants.spark, "trips", (f"{DMS}/tenant_b/trips/20260401-000000000/LOAD00000001.csv",))
    assert said[0] == "trips has shards: rows that the load lacks stay until a delete of each is delivered", said
    tenants.build("+trips", command="run")
    after = tenants.rows("select id, name from trips where tenant = 'tenant_b' order by id")
    assert after == [(1, "b again"), (2, "b 2"), (3, "b 3")]
    assert tenants.rows("select name from trips where tenant = 'tenant_a'") == [("a new",)]


@pytest.mark.long
def test_an_epoch_that_empties_is_refused(tenants):
    path = tenants.folder / f"models/staging/{FEED}/_{FEED}__sources.yml"
    text = path.read_text()
    epochs = "          layout: records\n          epochs: [{when: lsn > 1000, resync: true}]\n"
    without = re.sub(r" *epochs: .*\n", "", text)  # which an earlier test has declared
    path.write_text(without.replace("          layout: records\n", epochs))
    try:
        with pytest.raises(AssertionError, match="has several shards"):
            tenants.build("clients_changes", command="run")
    finally:
        path.write_text(text)
