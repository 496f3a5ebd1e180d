"""A real MariaDB with Debezium's own MySQL connector: exports while the application writes, compared as of theirs."""

import csv
import random
import re
import threading

import postgres
import pytest
from debezium_engine import capturing
from highwater.databases import live_export, source_tables
from highwater.reconcile.reconcile import reconcile as reconciliation
from highwater.reconcile.verdict import FAIL, PASS
from highwater.runtime.errors import CheckError, UsageError
from mariadb import MariaDB, serving

pytestmark = pytest.mark.soak
FEED = "debezium_market"
TABLE = f"{FEED}.stalls"
KEY = "id:bigint"
COLUMNS = (
    "tiny:int,small:int,large:bigint,amount:decimal(20,4),padded:bigint,ratio:float,exact:double,bits:boolean,"
    "name:string,note:string,latin:string,kind:string,marks:string,raw:binary,picture:binary,born:date,"
    "at:timestamp,seen:timestamp,written:int"
)
STALLS = """
    create table stalls (
        id bigint primary key, tiny tinyint, small smallint unsigned, large bigint unsigned, amount decimal(20, 4),
        padded int(8) unsigned zerofill, ratio float, exact double, bits bit(1), name varchar(100), note text,
        latin varchar(50) character set latin1, kind enum('a', 'b"c'), marks set('x', 'y'), raw varbinary(20),
        picture blob, born date, at datetime(6), seen timestamp(3) null, written year
    );
    insert into stalls (id, name) select seq, concat('stall ', seq) from seq_1_to_400;
    -- those that no writer touches
    insert into stalls values
        (-1, -128, 65535, 9223372036854775807, -1234567890123456.7891, 42, 0.1, 1e300, b'1', 'größe 名前 😀',
         'a "quote", a \\\\ and a\\nline ', 'café', 'b"c', 'x,y', x'00ff', x'', '1000-01-01',
         '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07.999', 2155),
        (-2, 0, 0, 0, 0, 0, -0.0, -1e-300, b'0', '', '', '', 'a', '', x'', null, '2024-02-29', '1970-01-01 00:00:00',
         '1970-01-01 00:00:01', 1901),
        (-3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
         null);
"""
WRITES = [
    "insert ignore into stalls (id, name, amount) values ({new}, 'new {salt}', {salt}.25)",
    "update stalls set name = 'name {salt}', amount = coalesce(amount, 0) + 0.01 where id = {old}",
    "update stalls set note = null where id = {old}; update stalls set note = 'line\\nend ' where id = {old}",
    "delete from stalls where id = {old}",
    "begin; update stalls set small = 1 where id = {old}; do sleep(0.02); commit",
    "begin; update stalls set small = 2 where id = {old}; do sleep(0.01); rollback",
]
LATE = "begin; update stalls set note = '{note}' where id = {id}; select 'begun';\n"


class Writer(threading.Thread):
    """An application that writes all the time, keys that no other one writes."""

    def __init__(self, server, number: int):
        super().__init__(daemon=True)
        self.session, self.picks, self.number = server.session(), random.Random(number), number
        self.is_to_stop, self.written = threading.Event(), 0

    def run(self):
        while not self.is_to_stop.wait(0.002):
            self.written += 1
            values = {
                "new": self.number * 1_000_000 + self.written,
                "old": self.picks.randrange(100) * 3 + self.number,
                "salt": self.picks.randrange(1000),
            }
            self.session.stdin.write(self.picks.choice(WRITES).format(**values) + ";\n")
            self.session.stdin.flush()

    def stop(self):
        self.is_to_stop.set()
        self.join()
        printed, _ = self.session.communicate()
        assert self.session.returncode == 0, printed


class Market:
    """The server, the engine that captures it, and how much of what it wrote was delivered."""

    def __init__(self, workshop, server: MariaDB, engine):
        self.workshop, self.server, self.engine, self.delivered = workshop, server, engine, 0
        self.sql = server.sql

    def built(self):
        """Everything that was committed so far is in the lake, and exports too."""
        self.sql(f"create table if not exists marks (id int primary key); replace marks values ({self.delivered})")
        self.engine.wait_for(
            "mark", lambda found: any(f'"after":{{"id":{self.delivered}}}' in (r["value"] or "") for r in found)
        )
        records = self.engine.records()
        lines = [each["value"] for each in records[self.delivered :] if each["value"] is not None]
        self.workshop.deliver(FEED, f"{self.delivered}.json", "\n".join(lines) + "\n")
        self.delivered = len(records)
        self.workshop.land(FEED, "exports_market")
        self.workshop.build("+stalls", "stg_exports_market__stalls", command="run")

    def written_behind(self):
        """A change of the table tells that everything before it has come."""
        self.sql("update stalls set name = concat('behind an export ', uuid()) where id = 400")

    def reconciled(self):
        (found,) = reconciliation.reconcile(self.workshop.spark, ("stalls",)).comparisons
        return found


@pytest.fixture(scope="module")
def market(workshop, tmp_path_factory):
    settings = {"connector": "mysql", "layout": "records"}
    workshop.add_table(TABLE, KEY, COLUMNS, "debezium-json", settings)
    workshop.add_table("exports_market.stalls", None, None, "csv", {"role": "export", "positions": FEED})
    folder = tmp_path_factory.mktemp("engine")
    with serving("market") as server:
        server.sql(STALLS)
        with capturing(server, folder) as engine:
            engine.wait_for_snapshot()
            yield Market(workshop, server, engine)


def exported(workshop, name: str = TABLE, **arguments):
    """Export a table; return the line that says so, and the rows as the file has them."""
    (line,) = live_export.export(workshop.spark, name, **arguments)
    with open(line.partition(".csv: ")[0] + ".csv", encoding="utf-8", newline="") as file:
        return line, list(csv.reader(file))


def without_snapshot_status(monkeypatch):
    """MySQL does not tell where the binary log stood when a snapshot was taken, as MariaDB does."""
    begin = source_tables.MySqlTable._begin
    monkeypatch.setattr(source_tables.MySqlTable, "_begin", lambda self: begin(self) and None)


@pytest.mark.parametrize("is_mysql", [False, True], ids=["MariaDB", "as MySQL"])
def test_an_export_while_the_application_writes(workshop, market, monkeypatch, is_mysql):
    if is_mysql:
        without_snapshot_status(monkeypatch)
    writers = [Writer(market.server, number) for number in (1, 2, 3)]
    for writer in writers:
        writer.start()
    try:
        lines = []
        for _ in range(3):
            before = sum(writer.written for writer in writers)
            lines.append(exported(workshop)[0])
            assert sum(writer.written for writer in writers) > before
        assert any("rows as of somewhere between binlog." in line for line in lines) == is_mysql, lines
    finally:
        for writer in writers:
            writer.stop()
    market.written_behind()
    market.built()
    rejected = "select rejection_reason, rejection_detail from stalls_changes where rejection_reason is not null"
    assert workshop.rows(rejected) == []
    found = market.reconciled()
    assert (found.verdict, found.not_checked) == (PASS, []), (found.columns, found.samples)
    # as of its newest change the lake is ahead of the export: the control
    newest = workshop.value("select max(change_sequence_number) from stalls_changes")
    (found,) = reconciliation.reconcile(workshop.spark, ("stalls",), f"sequence:{newest}").comparisons
    assert found.verdict == FAIL


def test_every_value_is_as_in_the_database(workshop, market):
    _, rows = exported(workshop)
    market.written_behind()
    market.built()
    found = market.reconciled()
    assert (found.verdict, found.not_checked) == (PASS, []), (found.columns, found.samples)
    assert found.counts["equal"].keys == found.export_rows == int(market.sql("select count(*) from stalls")[0])
    by_key = {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]}
    assert by_key["-1"]["large"] == "9223372036854775807" and by_key["-1"]["padded"] == "42"
    assert by_key["-1"]["raw"] == "00ff" and by_key["-1"]["name"] == "größe 名前 😀"
    version = workshop.version("stalls_merged")
    workshop.spark.sql("update lake.stalls_merged set ratio = 0.10000001 where id = -1")
    found = market.reconciled()
    workshop.spark.sql(f"restore table lake.stalls_merged to version as of {version}")
    assert (found.verdict, found.keys("value_differs")) == (FAIL, 1)


def test_writers_are_waited_for(workshop, market, monkeypatch):
    """MySQL: what is in the binary log and is not seen yet would be before the position, and not in the export."""
    without_snapshot_status(monkeypatch)
    late = market.server.session()
    late.stdin.write(LATE.format(note="late", id=-2))
    late.stdin.flush()
    assert late.stdout.readline().strip() == "begun"
    with monkeypatch.context() as impatient:
        impatient.setattr(source_tables, "SECONDS_FOR_WRITERS", 1)
        with pytest.raises(CheckError, match=r"has been open for more than .* the position of an export is not known"):
            live_export.export(workshop.spark, TABLE)
    wait, waited = source_tables.wait_for, []

    def ended_meanwhile(whom, are_gone):
        assert not are_gone()
        # another one writes, and is not kept from it
        market.sql("set lock_wait_timeout = 2; update stalls set note = 'beside' where id = -3")
        late.communicate("commit;\n")
        waited.append(whom)
        wait(whom, are_gone)

    monkeypatch.setattr(source_tables, "wait_for", ended_meanwhile)
    _, rows = exported(workshop)
    assert waited and [row[10] for row in rows if row[0] in ("-2", "-3")] == ["beside", "late"]
    market.written_behind()
    market.built()
    found = market.reconciled()
    assert (found.verdict, found.not_checked) == (PASS, []), (found.not_checked, found.samples)


def test_a_truncate_waits_for_an_export(workshop, market, monkeypatch):
    written, sessions = live_export._write, []

    def write(*arguments):
        session = market.server.session()
        session.stdin.write("create table emptied like stalls; truncate stalls; select 'emptied';\n")
        session.stdin.flush()
        sessions.append(session)
        states = "select count(*) from information_schema.processlist where state like 'Waiting for table metadata%'"
        while market.sql(states) == ["0"]:
            assert session.poll() is None
        return written(*arguments)

    before = market.sql("select count(*) from stalls")[0]
    market.sql("create table kept select * from stalls")
    monkeypatch.setattr(live_export, "_write", write)
    _, rows = exported(workshop)
    assert len(rows) - 1 == int(before)
    assert "emptied" in sessions[0].communicate()[0]
    market.sql("insert into stalls select * from kept; drop table kept; drop table emptied")
    monkeypatch.undo()
    exported(workshop)
    market.written_behind()
    market.built()
    found = market.reconciled()
    assert (found.verdict, found.not_checked) == (PASS, []), (found.not_checked, found.samples)


ODD = """
    create table `odd ``table"?` (
        `a?` int, `b"c` varchar(40) collate utf8mb4_general_ci, `d``e` decimal(9, 2), `f,g` datetime(3),
        `h\\i` varbinary(9), `value 名` text,
        primary key (`a?`, `b"c`, `d``e`, `f,g`, `h\\i`)
    );
    insert into `odd ``table"?`
    select seq % 7, concat(elt(seq % 5 + 1, 'Ä', 'b''?', 'C"', 'd\\\\', '名'), seq % 50), seq / 4,
        '2024-01-01' + interval seq % 40 second, unhex(hex(seq)), concat('"', seq, '\\n?')
    from seq_1_to_500;
"""


def test_parts_of_odd_names_and_values(workshop, market, monkeypatch, capsys):
    market.sql(ODD)
    odd = 'shop.odd `table"?'
    workshop.add_table(f"{FEED}.odd_table", "a:int", "b:string", "debezium-json", {}, source_table=odd)
    workshop.add_table("exports_market.odd_table", None, None, "csv", {})
    name, folder = f"{FEED}.odd_table", workshop.exports / "exports_market/odd_table"
    whole = exported(workshop, name)[1]
    assert len(whole) == 501 and whole[0] == ["a?", 'b"c', "d`e", "f,g", "h\\i", "value 名"]

    def forgotten():
        for record in folder.glob("_*.parts.json"):
            record.unlink()

    forgotten()
    monkeypatch.setattr(live_export, "PART_ROWS", 30)
    line, rows = exported(workshop, name)
    assert sorted(rows[1:]) == sorted(whole[1:]) and "have not changed" not in line
    # a part is as it was, one has changed, one is empty, one is new; each time as an export that reads everything
    table = 'shop.`odd ``table"?`'
    for change in (
        "do 1",
        f"update {table} set `value 名` = null where `a?` = 3 and `d``e` = 0.75",
        f"update {table} set `value 名` = '' where `a?` = 3 and `d``e` = 0.75",
        f"delete from {table} where `a?` = 2",
        f"insert into {table} select -`a?`, `b\"c`, `d``e`, `f,g`, `h\\i`, 'new' from {table} where `a?` in (1, 5)",
        f'update {table} set `b"c` = lower(`b"c`) where `a?` = 4',
    ):
        market.sql(change)
        line, rows = exported(workshop, name)
        assert "parts have not changed since" in line
        record = next(folder.glob("_*.parts.json"))
        text = record.read_text()
        record.unlink()
        assert sorted(exported(workshop, name)[1]) == sorted(rows), change
        forgotten()
        record.write_text(text)
    # the control: a checksum that always agrees
    market.sql(f"update {table} set `value 名` = 'unseen' where `a?` = 6")
    with monkeypatch.context() as planted:
        planted.setattr(live_export, "_has_not_changed", lambda *_: True)
        assert not any("unseen" in row for row in exported(workshop, name)[1])
    forgotten()
    assert any("unseen" in row for row in exported(workshop, name)[1])
    # interrupted, and gone on with
    forgotten()
    write, calls = source_tables.MySqlTable.write, []

    def ended(self, *arguments, **named):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return write(self, *arguments, **named)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(source_tables.MySqlTable, "write", ended)
        with pytest.raises(KeyboardInterrupt):
            live_export.export(workshop.spark, name)
    market.sql(f"update {table} set `value 名` = 'meanwhile' where `a?` = 6")
    line, rows = exported(workshop, name)
    assert "going on with" in capsys.readouterr().err and "as of somewhere between binlog." in line
    forgotten()
    assert sorted(exported(workshop, name)[1]) == sorted(rows)


def refused(workshop, table: str, words: str, error=UsageError):
    with pytest.raises(error, match=words):
        live_export.export(workshop.spark, f"{FEED}.{table}")


def test_tables_of_postgresql_that_others_capture(workshop, market, monkeypatch):
    """Odd schema and name, partitions that are written by their own names, a view, which nobody is known to write."""
    workshop.add_table("debezium_depot.depots", "id:int", "name:string", "debezium-json", {"connector": "postgresql"})
    for name, source in (("odd_depots", 'The "Big" depot.Bays & co'), ("depot_view", "depot_view")):
        workshop.add_table(f"debezium_depot.{name}", "id:int", "name:string", "debezium-json", {}, source_table=source)
    for name in ("depots", "odd_depots", "depot_view"):
        settings = {"role": "export", "positions": "debezium_depot"}
        workshop.add_table(f"exports_depot.{name}", None, None, "csv", settings)
    with postgres.serving("depot") as server:
        server.sql(
            """
            create table depots (id int primary key, name text) partition by range (id);
            create table depots_low partition of depots for values from (0) to (100);
            create table depots_high partition of depots for values from (100) to (200);
            insert into depots select n, 'depot ' || n from generate_series(1, 199) as n;
            create schema "The ""Big"" depot";
            create table "The ""Big"" depot"."Bays & co" (id int primary key, "a,""b" text);
            insert into "The ""Big"" depot"."Bays & co" values (1, e'x"\ny'), (2, null);
            create view depot_view as select * from depots;
            """
        )
        assert exported(workshop, "debezium_depot.odd_depots")[1] == [["id", 'a,"b'], ["1", 'x"\ny'], ["2", ""]]
        with pytest.raises(UsageError, match="is no table: who writes what it shows is not known"):
            live_export.export(workshop.spark, "debezium_depot.depot_view")
        late = server.session()
        late.stdin.write("begin; update depots_high set name = 'late' where id = 150; select 'begun';\n")
        late.stdin.flush()
        assert late.stdout.readline().strip() == "begun"
        with monkeypatch.context() as impatient:
            impatient.setattr(source_tables, "SECONDS_FOR_WRITERS", 1)
            with pytest.raises(CheckError, match=r"has been open for more than "):
                live_export.export(workshop.spark, "debezium_depot.depots")
        late.communicate("commit;\n")
        line, rows = exported(workshop, "debezium_depot.depots")
        assert ["150", "late"] in rows and len(rows) == 200
        assert re.search(r" rows as of somewhere between [0-9A-F]+/[0-9A-F]+ and [0-9A-F]+/[0-9A-F]+$", line)


def test_what_has_no_position_is_refused(workshop, market, monkeypatch):
    for table in ("absent", "old_engine", "shown"):
        workshop.add_table(f"{FEED}.{table}", "id:int", "name:string", "debezium-json", {})
        workshop.add_table(f"exports_market.{table}", None, None, "csv", {})
    market.sql("create table old_engine (id int) engine=MyISAM; create view shown as select id, name from stalls")
    refused(workshop, "absent", r"has no table absent in shop, or its user may not read it")
    refused(workshop, "old_engine", r"`old_engine` is a table of MyISAM, which knows no snapshots")
    refused(workshop, "shown", r"`shown` is a view, which knows no snapshots")
    with serving("market", "--skip-log-bin") as other:
        other.sql(STALLS)
        refused(workshop, "stalls", r"writes no binary log, so an export would have no position")
    market.sql("create user poor@'127.0.0.1' identified by 'p'; grant select on shop.* to poor@'127.0.0.1'")
    monkeypatch.setenv("HIGHWATER_MARKET_USER", "poor")
    monkeypatch.setenv("HIGHWATER_MARKET_PASSWORD", "p")
    # it may only read, and that is enough
    assert "rows as of binlog." in exported(workshop)[0]
    without_snapshot_status(monkeypatch)
    refused(workshop, "stalls", "the database of debezium_market says: .*(REPLICATION|BINLOG MONITOR)", CheckError)


def test_a_row_that_is_too_long_is_not_left_out(workshop, market, monkeypatch):
    market.sql("create table long_rows (id int primary key, a longtext, b longtext)")
    workshop.add_table(f"{FEED}.long_rows", "id:int", "a:string,b:string", "debezium-json", {})
    workshop.add_table("exports_market.long_rows", None, None, "csv", {})
    market.sql("set global max_allowed_packet = 16777216")
    market.sql("insert into long_rows values (1, repeat('a', 9000000), repeat('b', 9000000)), (2, 'a', 'b')")
    refused(workshop, "long_rows", "is longer than the server's max_allowed_packet", CheckError)
    market.sql("delete from long_rows where id = 1")
    assert len(exported(workshop, f"{FEED}.long_rows")[1]) == 2
