"""Real Debezium: a live PostgreSQL captured while it is written to; what has landed is reconciled with it."""

import random
import threading

import debezium_shop
import pytest
import yaml
from debezium_engine import capturing
from highwater.databases import live_export
from highwater.reconcile import reconcile as reconciliation
from highwater.reconcile.reconcile import FAIL, PASS
from postgres import serving

pytestmark = pytest.mark.soak
FEED = "debezium_live"
SIGNAL = """insert into debezium_signal values ('{name}', 'execute-snapshot',
  '{{"data-collections": ["public.orders", "public.moved_keys", "public.every_type"], "type": "{kind}"}}');"""
WRITES = [
    "insert into orders values ({new}, 'new {salt}', {salt}.25, now())",
    "update orders set total = {salt}, customer = 'customer {salt}' where id = {old}",
    "delete from orders where id = {old}",
    "update orders set id = {new} where id = {old}",
    "begin; update orders set total = -1 where id = {old}; select pg_sleep(0.1); commit",
    "begin; delete from orders where id = {old}; select pg_sleep(0.05); rollback",
    "begin; delete from orders where id = {old}; insert into orders values ({old}, 'again', {salt}, null); commit",
    "update moved_keys set b = 'b{salt}' where a = {old}",
    "insert into moved_keys values ({new} % 500, 'new', '{salt}') on conflict do nothing",
]


def write(server, seed: int, is_to_stop):
    """What an application does all the time: of {old} ids some are there."""
    session, picks, new = server.session(), random.Random(seed), seed * 1_000_000
    session.stdin.write("\\set ON_ERROR_STOP 0\n")  # a key may be there by now
    while not is_to_stop.wait(0.02):
        new += 1
        values = {"new": new, "old": picks.randrange(1, 40), "salt": picks.randrange(1000)}
        session.stdin.write(picks.choice(WRITES).format(**values) + ";\n")
        session.stdin.flush()
    session.communicate()


def written_while(server, engine):
    """Applications write, and snapshots of both later kinds are taken among that."""
    is_to_stop = threading.Event()
    writers = [threading.Thread(target=write, args=(server, seed, is_to_stop)) for seed in (1, 2, 3)]
    for writer in writers:
        writer.start()
    try:
        for number, kind in enumerate(("incremental", "blocking", "incremental")):
            server.sql(SIGNAL.format(name=f"{kind}-{number}", kind=kind))
            engine.wait_for(f"end of snapshot {number}", lambda records, n=number: completed(records) == n + 2)
    finally:
        is_to_stop.set()
        for writer in writers:
            writer.join()


def completed(records: list[dict]) -> int:
    """How many snapshots have ended, by the engine's own notifications."""
    return sum(record["topic"] == "notifications" and '"COMPLETED"' in record["value"] for record in records)


def marked(server, engine, name: str):
    """Wait until everything that was committed so far has been written."""
    server.sql(f"select pg_logical_emit_message(true, '{name}', '')")
    engine.wait_for_text(f'"prefix":"{name}"')


def delivered(workshop, engine, name: str, first: int) -> int:
    """Put what came behind the first records into one file; return how many there are now."""
    records = engine.records()
    values = [record["value"] for record in records[first:] if record["value"] is not None]
    workshop.deliver(FEED, name, "\n".join(values) + "\n")
    return len(records)


def exported(workshop, server):
    position = server.sql("select pg_current_wal_insert_lsn()")[0]
    for table in debezium_shop.TABLES:
        feed = f"exports_live.{table.entity}"
        workshop.add_table(feed, None, None, "csv", {"role": "export", "positions": FEED})
        if table.entity == "orders":
            # by the command, whose position is two
            (line,) = live_export.export(workshop.spark, f"{FEED}.orders")
            assert " rows as of " in line
            continue
        workshop.deliver(feed, "1.csv", debezium_shop.rows(server, table), root=workshop.exports)
        declared = yaml.safe_dump({"1.csv": {"position": position}})
        workshop.deliver(feed, "_exports.yml", declared, root=workshop.exports)


@pytest.fixture(scope="module")
def shop(workshop, tmp_path_factory):
    settings = {"connector": "postgresql", "layout": "records", "schema": "public"}
    for table in debezium_shop.TABLES:
        workshop.add_table(
            f"{FEED}.{table.entity}", *table.declared(), "debezium-json", settings, source_table=table.source_table
        )
    options = {
        "signal_data_collection": "public.debezium_signal",
        "incremental_snapshot_chunk_size": "4",
        "notification_enabled_channels": "sink",
        "notification_sink_topic_name": "notifications",
        "provide_transaction_metadata": "true",
        "heartbeat_interval_ms": "500",
    }
    with serving("live") as server:
        debezium_shop.fill(server)
        with capturing(server, tmp_path_factory.mktemp("engine"), **options) as engine:
            engine.wait_for_snapshot()
            debezium_shop.change(server)
            marked(server, engine, "changed")
            first = delivered(workshop, engine, "1.json", 0)
            workshop.land(FEED)
            written_while(server, engine)
            exported(workshop, server)
            # a change behind the export tells that everything before it has come
            server.sql("insert into orders values (99000000, 'behind the export', 1, now())")
            marked(server, engine, "exported")
            delivered(workshop, engine, "2.json", first)
        yield server


@pytest.fixture(scope="module")
def built(workshop, shop):
    workshop.land(FEED, "exports_live")
    names = [table.entity for table in debezium_shop.TABLES]
    workshop.build(*(f"+{name}" for name in names), *(f"stg_exports_live__{name}" for name in names), command="run")


def reconciled(workshop, *entities: str) -> dict:
    return {found.table: found for found in reconciliation.reconcile(workshop.spark, entities).comparisons}


@pytest.fixture(scope="module")
def compared(workshop, built):
    return reconciled(workshop, *(table.entity for table in debezium_shop.TABLES))


@pytest.mark.parametrize("table", debezium_shop.TABLES, ids=lambda table: table.entity)
def test_a_table_is_as_in_the_database(workshop, compared, table):
    rejected = workshop.rows(
        f"select rejection_reason, rejection_detail, count(*) from {table.entity}_changes"
        " where rejection_reason is not null group by all"
    )
    assert rejected == []
    found = compared[table.entity]
    assert (found.verdict, found.not_checked) == (PASS, []), (found.columns, found.samples)
    assert found.export_rows > 1


FAULTS = {
    "value_differs": "update {table} set total = total + 0.01 where id = {key}",
    "missing_in_lake": "delete from {table} where id = {key}",
}


def test_faults_are_found(workshop, compared):
    table = "lake.orders_merged"
    keys = [key for (key,) in workshop.rows("select id from orders where total is not null order by id limit 2")]
    version = workshop.version(table)
    for fault, key in zip(FAULTS.values(), keys, strict=True):
        workshop.spark.sql(fault.format(table=table, key=key))
    found = reconciled(workshop, "orders")["orders"]
    workshop.spark.sql(f"restore table {table} to version as of {version}")
    assert (found.verdict, found.differences) == (FAIL, 2)
    assert {verdict: found.keys(verdict) for verdict in FAULTS} == dict.fromkeys(FAULTS, 1)
