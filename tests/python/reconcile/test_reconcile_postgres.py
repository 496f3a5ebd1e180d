"""A real PostgreSQL: exports in a snapshot transaction while the application writes, compared as of their positions."""

import csv
import random
import re
import threading
from pathlib import Path

import pytest
from highwater.databases import capture_sql, captures, capturing, live_export, source_tables
from highwater.databases import extract as extraction
from highwater.reconcile.reconcile import reconcile as reconciliation
from highwater.reconcile.verdict import FAIL, PASS
from highwater.runtime.errors import CheckError, UsageError
from postgres import serving

pytestmark = pytest.mark.soak
TABLE = "changelog_harbour.berths"

WRITES = [
    "insert into berths values ({new}, 'new {salt}', {salt}.25, now(), 'x')",
    "update berths set name = 'name {salt}', weight = weight + 0.01 where id = {old}",
    "update berths set note = null where id = {old}; update berths set note = e'line\\nend ' where id = {old}",
    "delete from berths where id = {old}",
    "begin; update berths set weight = -1 where id = {old}; select pg_sleep(0.02); commit",
    "begin; update berths set weight = -2 where id = {old}; select pg_sleep(0.01); rollback",
    "update berths set id = {new} where id = {old}",
]


class Writer(threading.Thread):
    """An application that writes all the time."""

    def __init__(self, server, seed: int):
        super().__init__(daemon=True)
        self.session, self.picks = server.session(), random.Random(seed)
        self.is_to_stop, self.written, self.seed = threading.Event(), 0, seed

    def run(self):
        new = self.seed * 1_000_000
        while not self.is_to_stop.wait(0.002):
            new += 1
            values = {"new": new, "old": self.picks.randrange(1, 400), "salt": self.picks.randrange(1000)}
            self.session.stdin.write(self.picks.choice(WRITES).format(**values) + ";\n")
            self.session.stdin.flush()
            self.written += 1

    def stop(self):
        self.is_to_stop.set()
        self.join()
        printed, _ = self.session.communicate()
        assert self.session.returncode == 0, printed


@pytest.fixture(scope="module")
def harbour(workshop):
    with serving("harbour") as server:
        server.sql("create role reader login password 's3cret-of-the-app'")
        server.sql(
            """
            create table berths (id bigint primary key, name text, weight numeric(12, 2), seen timestamptz, note text);
            insert into berths
            select n, 'berth ' || n, n / 4.0, timestamptz '2024-01-01 12:00Z' + n * interval '1 us', null
            from generate_series(1, 400) as n;
            -- those that no writer touches
            insert into berths (id, weight) select -n, n from generate_series(380, 396) as n;
            """
        )
        capturing.enable(workshop.spark, TABLE)
        with pytest.raises(UsageError, match=r"no feed of exports is declared .* add-table exports_harbour.berths"):
            live_export.export(workshop.spark, TABLE)
        settings = {"role": "export", "positions": "changelog_harbour"}
        workshop.add_table("exports_harbour.berths", None, None, "csv", settings)
        yield server


def built(workshop):
    extraction.extract(workshop.spark, TABLE)
    workshop.land("exports_harbour")
    workshop.build("+berths", "stg_exports_harbour__berths", command="run")


def reconcile(workshop):
    (found,) = reconciliation.reconcile(workshop.spark, ("berths",)).comparisons
    return found


def test_an_export_while_the_application_writes(workshop, harbour):
    writers = [Writer(harbour, seed) for seed in (1, 2, 3)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(3):
            before = sum(writer.written for writer in writers)
            (line,) = live_export.export(workshop.spark, TABLE)
            assert " rows as of 1/" in line
            extraction.extract(workshop.spark, TABLE)
            assert sum(writer.written for writer in writers) > before
    finally:
        for writer in writers:
            writer.stop()
    assert sum(writer.written for writer in writers) > 100
    built(workshop)
    # everything that was written behind the newest export is taken back
    found = reconcile(workshop)
    assert (found.verdict, found.not_checked) == (PASS, []), found.samples
    assert found.compared.startswith("as of the position, ")
    # as of its newest change the lake is ahead of the export: the control
    newest = workshop.value("select max(change_sequence_number) from berths_changes where rejection_reason is null")
    (found,) = reconciliation.reconcile(workshop.spark, ("berths",), f"sequence:{newest}").comparisons
    assert found.verdict == FAIL
    live_export.export(workshop.spark, TABLE)
    built(workshop)
    found = reconcile(workshop)
    assert (found.verdict, found.counts["equal"].keys) == (PASS, found.export_rows)
    assert int(harbour.sql("select count(*) from berths")[0]) == found.export_rows


def test_a_truncate_waits_for_an_export_and_writers_do_not(workshop, harbour, monkeypatch):
    """Snapshots do not see a truncate, so the export would be empty behind one."""
    before, written = int(harbour.sql("select count(*) from berths")[0]), live_export._write
    sessions = []

    def write(*arguments):
        harbour.sql("insert into berths (id) values (-5)")
        session = harbour.session()
        session.stdin.write("begin; truncate berths; select 'emptied'; rollback;\n")
        session.stdin.flush()
        sessions.append(session)
        harbour.sql("select pg_sleep(0.3)")
        locks = "select count(*) from pg_locks where not granted and mode = 'AccessExclusiveLock'"
        assert harbour.sql(locks) == ["1"], "the truncate waits"
        return written(*arguments)

    built(workshop)
    monkeypatch.setattr(live_export, "_write", write)
    (line,) = live_export.export(workshop.spark, TABLE)
    assert f": {before:,} rows as of 1/" in line
    assert "emptied" in sessions[0].communicate()[0]
    harbour.sql("delete from berths where id = -5")
    monkeypatch.undo()
    built(workshop)
    assert reconcile(workshop).verdict == PASS


def test_an_export_beside_a_commit_that_is_late(workshop, harbour):
    """The late one has the lower number and waits in the changelog; the higher one has landed."""
    late = harbour.session()
    late.stdin.write("begin; insert into berths (id) values (-6); select 'begun';\n")
    late.stdin.flush()
    assert late.stdout.readline().strip() == "begun"
    harbour.sql("insert into berths (id) values (-7)")
    extraction.extract(workshop.spark, TABLE)
    late.communicate("commit;\n")
    (line,) = live_export.export(workshop.spark, TABLE)
    highest = workshop.value(
        "select max(cast(source_position as bigint)) from raw.changelog_harbour where entry = 'file'"
    )
    assert f"as of 1/{highest}" in line
    built(workshop)
    assert reconcile(workshop).verdict == PASS


def test_a_long_writer_blocks_no_export_and_no_export_blocks_a_writer(workshop, harbour, monkeypatch):
    """What is under way is waited for, by the export alone; a position that it makes wrong is not told."""
    built(workshop)
    late = harbour.session()
    late.stdin.write("begin; update berths set note = 'late' where id = -390; select 'begun';\n")
    late.stdin.flush()
    assert late.stdout.readline().strip() == "begun"
    harbour.sql("update berths set note = 'early' where id = -391")
    monkeypatch.setattr(source_tables, "SECONDS_FOR_WRITERS", 1)
    with pytest.raises(CheckError, match=r"has been open for more than .* so the position of an export is not known"):
        live_export.export(workshop.spark, TABLE)
    monkeypatch.undo()
    waited = source_tables.wait_for_writers

    def wait(others, *arguments):
        # while the export waits others write, and lock what a SHARE lock would have kept from them
        harbour.sql("set lock_timeout = '2s'; update berths set note = 'beside' where id = -392")
        if late.poll() is None:
            late.communicate("commit;\n")
        waited(others, *arguments)

    monkeypatch.setattr(source_tables, "wait_for_writers", wait)
    (line,) = live_export.export(workshop.spark, TABLE)
    monkeypatch.undo()
    assert " as of 1/" in line
    built(workshop)
    assert reconcile(workshop).verdict == PASS


def test_a_table_that_is_always_written_has_an_export_between_two_positions(workshop, harbour, monkeypatch):
    """In each snapshot a lower number is missing; the key that has it may be there before or after."""
    waited, sessions = source_tables.wait_for_writers, []

    def begin():
        session = harbour.session()
        session.stdin.write("begin; update berths set weight = weight + 1 where id = -380; select 'begun';\n")
        session.stdin.flush()
        assert session.stdout.readline().strip() == "begun"
        harbour.sql("update berths set weight = weight + 1 where id = -381")
        sessions.append(session)

    def wait(others, *arguments):
        sessions.pop().communicate("commit;\n")
        waited(others, *arguments)
        if source_tables.SNAPSHOTS > 1:
            begin()

    begin()
    monkeypatch.setattr(source_tables, "SNAPSHOTS", 1)
    monkeypatch.setattr(source_tables, "wait_for_writers", wait)
    (line,) = live_export.export(workshop.spark, TABLE)
    assert " as of somewhere between 1/" in line
    monkeypatch.undo()
    built(workshop)
    found = reconcile(workshop)
    assert (found.verdict, found.keys("in_flight")) == (PASS, 1), found.samples


def test_a_reader_can_export_and_nothing_more(workshop, harbour, monkeypatch):
    harbour.sql(
        """
        grant usage on schema highwater to reader; grant select on berths to reader;
        grant select on highwater.captures, highwater."berths_changelog" to reader;
        """
    )
    monkeypatch.setenv("HIGHWATER_HARBOUR_USER", "reader")
    (line,) = live_export.export(workshop.spark, TABLE)
    assert " rows as of 1/" in line
    with pytest.raises(CheckError, match="permission denied"):
        extraction.extract(workshop.spark, TABLE)
    monkeypatch.undo()
    built(workshop)
    assert reconcile(workshop).verdict == PASS


def test_a_standby_can_export(workshop, harbour, monkeypatch):
    extraction.extract(workshop.spark, TABLE)
    harbour.sql("update berths set note = 'waits' where id = -393")
    with harbour.standby() as port:
        monkeypatch.setenv("HIGHWATER_HARBOUR_URL", f"jdbc:postgresql://127.0.0.1:{port}/shop")
        (line,) = live_export.export(workshop.spark, TABLE)
        monkeypatch.undo()
    assert " rows as of 1/" in line
    built(workshop)
    found = reconcile(workshop)
    assert (found.verdict, found.not_checked) == (PASS, [])


def whole_export(workshop) -> tuple[str, list[str]]:
    """Export; return what it said and the records of the file; those of a part are in no order."""
    (line,) = live_export.export(workshop.spark, TABLE)
    records, record = [], ""
    for part in Path(line.partition(": ")[0]).read_bytes().decode().split("\n"):
        record += part + "\n"
        if record.count('"') % 2 == 0:
            records.append(record)
            record = ""
    return line, sorted(records)


def record_of_parts(workshop) -> Path:
    (record,) = (workshop.exports / "exports_harbour/berths").glob("_berths-*.csv.parts.json")
    return record


def forgotten(workshop) -> None:
    """Let the next export read everything."""
    for record in (workshop.exports / "exports_harbour/berths").glob("_berths-*.csv.parts.json"):
        record.unlink()


def test_an_export_in_parts_goes_on_where_it_was_ended(workshop, harbour, monkeypatch, capsys):
    forgotten(workshop)
    monkeypatch.setattr(live_export, "PART_ROWS", 100)
    write, parts = source_tables.PostgresTable.write, []

    def ended(self, where, path, has_header):
        rows = write(self, where, path, has_header)
        if len(parts) == 2:
            raise KeyboardInterrupt  # written, and not on record
        parts.append(where)
        return rows

    monkeypatch.setattr(source_tables.PostgresTable, "write", ended)
    with pytest.raises(KeyboardInterrupt):
        live_export.export(workshop.spark, TABLE)
    folder = workshop.exports / "exports_harbour/berths"
    assert len(list(folder.glob("*.unfinished"))) == 1
    monkeypatch.setattr(source_tables.PostgresTable, "write", write)
    # a row that was read and one that was not change meanwhile
    low, high = harbour.sql("select min(id) from berths union all select max(id) from berths order by 1")
    harbour.sql(
        f"update berths set note = 'meanwhile' where id in ({low}, {high}); insert into berths (id) values (-9)"
    )
    (line,) = live_export.export(workshop.spark, TABLE)
    assert "going on with" in capsys.readouterr().err and " as of somewhere between 1/" in line
    assert not list(folder.glob("*.unfinished")) and not list(folder.glob("_berths-*.csv.json"))
    built(workshop)
    found = reconcile(workshop)
    assert (found.verdict, found.keys("in_flight")) == (PASS, 2), found.samples
    assert found.export_rows == int(harbour.sql("select count(*) from berths")[0]) - 1
    (line,) = live_export.export(workshop.spark, TABLE)
    built(workshop)
    assert reconcile(workshop).verdict == PASS


HOSTILE = r"""
    update berths set
        note = case abs(id) % 4 when 0 then E'two\nlines, "quoted"\r\n' when 1 then '' when 2 then 'ü東' end
"""
CHANGES = {
    "nothing": "select 1",
    "a value": "update berths set note = 'changed' where id = {middle}",
    "NULL and no text": "update berths set note = case when note is null then '' end where id = {middle}",
    "two values": "update berths set weight = coalesce(weight, 0) + 1 where id in ({low}, {high})",
    "a row moves to another part": "update berths set id = {high} + 1 where id = {low}",
    "a part has no row left": "delete from berths where id > {high} - 50",
    "three parts come between": "insert into berths (id, name) select {high} + n, 'new' from generate_series(5, 300) n",
    "no row is left": "delete from berths",
    "rows again": "insert into berths (id, name) select n, 'new' from generate_series(1, 250) n",
}


# how many parts are read again
LEFT = {"nothing": 0, "a value": 1, "NULL and no text": 1, "two values": 2}


def test_parts_that_have_not_changed_are_taken_from_the_export_before(workshop, harbour, monkeypatch):
    """Whatever changes in between, the file is that of an export that reads everything."""
    monkeypatch.setattr(live_export, "PART_ROWS", 50)
    harbour.sql("create table kept as table berths;" + HOSTILE)
    whole_export(workshop)
    for change, sql in CHANGES.items():
        places = "min(id), percentile_disc(0.5) within group (order by id), max(id)"
        low, middle, high = harbour.sql(f"select {places} from berths")[0].split("|")
        harbour.sql(sql.format(low=low, middle=middle, high=high))
        line, content = whole_export(workshop)
        kept = re.search(r"; (\d+) of (\d+) parts have not changed since berths-", line)
        if change in LEFT:
            assert kept and int(kept[2]) - int(kept[1]) == LEFT[change], (change, line)
        # what is known goes on with this export, not with the one that reads everything
        record, saved = record_of_parts(workshop), record_of_parts(workshop).read_text()
        record.unlink()
        line, anew = whole_export(workshop)
        assert content == anew and "have not changed" not in line, change
        record_of_parts(workshop).unlink()
        record.write_text(saved)
    # an export that somebody has changed is not taken from, and neither is one that is gone
    path = record.with_name(record.name.removeprefix("_").removesuffix(".parts.json"))
    path.write_bytes(path.read_bytes().replace(b"new", b"old", 1))
    line, content = whole_export(workshop)
    assert content == anew and "; 5 of 6 parts have not changed" in line
    Path(line.partition(": ")[0]).unlink()
    line, content = whole_export(workshop)
    assert content == anew and "have not changed" not in line
    # the control: that a part has changed is seen by its checksum and by nothing else
    harbour.sql("update berths set name = 'seen' where id = 7")
    with monkeypatch.context() as planted:
        planted.setattr(live_export, "_has_not_changed", lambda *_: True)
        assert '"seen"' not in "".join(whole_export(workshop)[1])
    assert '"seen"' in "".join(whole_export(workshop)[1])
    harbour.sql("delete from berths; insert into berths table kept; drop table kept")
    live_export.export(workshop.spark, TABLE)
    built(workshop)
    assert reconcile(workshop).verdict == PASS


ODD = r"""
    create type grade as enum ('little', 'middling', 'large');
    create table odd_lines (
        g grade, "Größe" text, n int, "a""b" text, "select" jsonb, raw bytea, list text[], "x y" numeric(20, 4),
        at timestamptz, f double precision, primary key (g, "Größe", n)
    );
    insert into odd_lines
    select
        (array['little', 'middling', 'large'])[i % 3 + 1]::grade,
        chr(case i % 2 when 0 then 65 else 97 end + i % 26)
        || case i % 5 when 0 then E'\n"' when 1 then E'\'' when 2 then 'Ü' when 3 then ' ' else '' end || i,
        i, case when i % 3 > 0 then repeat(E'line\n"q",', i % 4) end, jsonb_build_object('q', E'"\n'),
        decode(md5(i::text), 'hex'), array['a,b', null, '"'], i / 7.0,
        timestamptz '2024-01-01Z' + i * interval '1 s', i / 3.0
    from generate_series(1, 300) as i
"""
ANOTHER_ORDER = """
    alter table odd_lines alter column g type text;
    drop type grade;
    create type grade as enum ({grades});
    alter table odd_lines alter column g type grade using g::grade;
"""


def test_parts_of_odd_names_values_and_orders(workshop, harbour, monkeypatch):
    """A fault in the middle of what is taken over, another column, another order of the key."""
    feed, table = "changelog_harbour", "odd_lines"
    monkeypatch.setattr(live_export, "PART_ROWS", 40)
    harbour.sql(ODD)
    capturing.enable(workshop.spark, f"{feed}.{table}")
    workshop.add_table(f"exports_harbour.{table}", None, None, "csv", {"role": "export", "positions": feed})

    def exported():
        (line,) = live_export.export(workshop.spark, f"{feed}.{table}")
        with Path(line.partition(": ")[0]).open(newline="") as file:
            return line, sorted(csv.reader(file))

    _, whole = exported()
    line, again = exported()
    assert again == whole and "; 8 of 8 parts have not changed" in line
    taken, calls = live_export._taken_over, []

    def full(*arguments):
        calls.append(taken(*arguments))
        if len(calls) == 3:  # written, and not on record
            raise OSError(28, "No space left on device")
        return calls[-1]

    with monkeypatch.context() as planted:
        planted.setattr(live_export, "_taken_over", full)
        with pytest.raises(OSError, match="No space left"):
            exported()
    harbour.sql(f"""update {table} set "x y" = 1 where n in (1, 150, 300)""")
    line, gone_on = exported()
    assert "somewhere between" in line and "parts have not changed" in line and len(gone_on) == len(whole)
    extraction.extract(workshop.spark, f"{feed}.{table}")
    workshop.land("exports_harbour")
    workshop.build(f"+{table}", f"stg_exports_harbour__{table}", command="run")
    (found,) = reconciliation.reconcile(workshop.spark, (table,)).comparisons
    assert (found.verdict, found.not_checked) == (PASS, []), found.samples
    # parts are ranges: where keys are in another order, they are others
    before = exported()[1]
    harbour.sql(ANOTHER_ORDER.format(grades="'large', 'little', 'middling'"))
    line, found = exported()
    assert found == before and "have not changed" not in line
    harbour.sql(ANOTHER_ORDER.format(grades="'middling', 'large', 'little'"))
    with monkeypatch.context() as planted:
        planted.setattr(live_export.Parts, "is_like", lambda *_: True)
        assert exported()[1] != before, "the control: rows are there twice, or not at all"
    for record in (workshop.exports / f"exports_harbour/{table}").glob("_*.parts.json"):
        record.unlink()
    line, anew = exported()
    assert anew == before and "have not changed" not in line
    harbour.sql(f"alter table {table} add column extra int default 7")
    assert "have not changed" not in exported()[0]
    harbour.sql(f"alter table {table} drop constraint {table}_pkey")
    assert [row[:-1] for row in exported()[1]] == before


def test_a_throttled_export_rests(workshop, harbour, monkeypatch):
    rested = []
    monkeypatch.setattr(live_export, "PART_ROWS", 100)
    monkeypatch.setattr(live_export, "_rest", rested.append)
    live_export.export(workshop.spark, TABLE, throttle=25)
    assert len([seconds for seconds in rested if seconds > 0]) >= 3
    rested.clear()
    live_export.export(workshop.spark, TABLE)
    assert set(rested) == {0}


def test_an_older_capture_goes_on_and_json_of_it_is_refused(workshop, harbour, monkeypatch):
    """Its triggers say to_jsonb; without JSON the text is the same."""
    older = capture_sql.FUNCTION.format(
        function=captures.names_of(None, "berths").function,
        changelog=captures.names_of(None, "berths").changelog,
        record_rows="",
    ).replace("create function", "create or replace function")
    older = older.replace("highwater.image_of(old, tg_relid)", "to_jsonb(old)")
    older = older.replace("highwater.image_of(new, tg_relid)", "to_jsonb(new)")
    harbour.sql(older)
    harbour.sql("alter table highwater.captures drop column landed")
    harbour.sql("update berths set note = 'by an older one' where id = -394")
    extraction.extract(workshop.spark, TABLE)
    live_export.export(workshop.spark, TABLE)
    built(workshop)
    assert reconcile(workshop).verdict == PASS
    harbour.sql("alter table berths add column doc json")
    with pytest.raises(UsageError, match=r"captured by triggers of an older version, .* --disable, then --enable"):
        live_export.export(workshop.spark, TABLE)
    harbour.sql("alter table berths drop column doc")


def test_a_statement_of_the_source_mends_what_was_not_captured(workshop, harbour):
    harbour.sql(
        "set session_replication_role = replica; update berths set note = 'it''s not seen' where id in (-395, -396)"
    )
    live_export.export(workshop.spark, TABLE)
    built(workshop)
    (found,) = reconciliation.reconcile(workshop.spark, ("berths",), with_repairs=True).comparisons
    assert (found.verdict, found.keys("value_differs")) == (FAIL, 2)
    ((statement, command),) = [repair.run for repair in found.repairs]
    assert statement == """update "public"."berths" set "id" = "id" where ("id") in (('-395'), ('-396'));"""
    assert command.startswith(f"highwater extract {TABLE} && highwater build --select +berths")
    harbour.sql(statement)
    live_export.export(workshop.spark, TABLE)
    built(workshop)
    assert reconcile(workshop).verdict == PASS


FAULTS = {
    "value_differs": "update {table} set weight = weight + 0.01 where id = {key}",
    "missing_in_lake": "delete from {table} where id = {key}",
    "extra_in_lake": "insert into {table} select {columns} from {table} where id = {key}",
    "duplicate_in_lake": "insert into {table} select * from {table} where id = {key}",
}


@pytest.mark.parametrize("verdict", FAULTS)
def test_each_kind_of_fault_is_found_and_named(workshop, harbour, verdict):
    table, key = "lake.berths_merged", workshop.value("select min(id) from berths where weight is not null")
    version = workshop.version(table)
    columns = ", ".join("-1L as id" if c == "id" else c for c in workshop.spark.table(table).columns)
    statement = FAULTS[verdict].format(table=table, key=key, columns=columns)
    workshop.spark.sql(statement)
    found = reconcile(workshop)
    workshop.spark.sql(f"restore table {table} to version as of {version}")
    assert found.verdict == FAIL
    assert found.keys(verdict) == found.differences == 1
    assert [sample.verdict for sample in found.samples] == [verdict]
    assert found.samples[0].key["id"] == str(-1 if verdict == "extra_in_lake" else key)
