"""Changes of a real PostgreSQL: captured, extracted, landed once, removed; cases G by id."""

import json
import re
import time

import pytest
from highwater.databases import capture_sql, capturing
from highwater.databases import extract as extraction
from highwater.databases import patch as patching
from highwater.runtime.errors import CheckError, UsageError
from highwater.status.status import status
from highwater.status.status_page import page
from highwater.upkeep.compact import compact
from highwater.upkeep.rebuild import rebuild
from postgres import PASSWORD, killed_extraction, serving
from workshop import reading

pytestmark = pytest.mark.long
FEED, TABLE = "changelog_shop", "changelog_shop.deliveries"


@pytest.fixture(scope="module")
def shop(workshop):
    """A database with a table of every usual type and rows in it."""
    with serving("shop") as server:
        server.sql(
            """
            create table deliveries (
                id bigint primary key, v text, n numeric(38, 9), at timestamptz, day date, ok boolean, bytes bytea,
                x float8, doc jsonb
            );
            insert into deliveries (id, v) values (1, 'a'), (2, 'b'), (3, 'c');
            create table keyless (v text);
            """
        )
        yield server


def extract(workshop, shop):
    return extraction.extract(workshop.spark, TABLE)


def built(workshop):
    workshop.build("+deliveries", command="run")
    return dict(workshop.rows("select id, v from deliveries"))


def waiting(shop):
    return int(shop.sql('select count(*) from highwater."deliveries_changelog"')[0])


def test_g12_without_a_key_nothing_is_created(workshop, shop):
    with pytest.raises(UsageError, match=r"keyless\" has no primary key; say which columns .* --key v"):
        capturing.enable(workshop.spark, f"{FEED}.keyless")
    with pytest.raises(UsageError, match=r"has no column 'w'; it has: v"):
        capturing.enable(workshop.spark, f"{FEED}.keyless", key="w")
    with pytest.raises(UsageError, match=r'no table "public"."nowhere"'):
        capturing.enable(workshop.spark, f"{FEED}.nowhere")
    shop.sql(
        "create table swapped (id int primary key deferrable, v text);"
        "create table computed (id int primary key, twice int generated always as (id * 2) virtual)"
    )
    with pytest.raises(UsageError, match=r"primary key of \"public\"\.\"swapped\" is deferrable"):
        capturing.enable(workshop.spark, f"{FEED}.swapped")
    with pytest.raises(UsageError, match="column twice is generated and not stored"):
        capturing.enable(workshop.spark, f"{FEED}.computed")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in shop.environment("user1").items():
            patch.setenv(name, value)
        shop.sql("create table table1 (id int primary key)")
        with pytest.raises(UsageError, match="the system user1 has a table table1 already, from another feed"):
            capturing.enable(workshop.spark, "changelog_user1.table1")
    with pytest.raises(
        UsageError, match=r"not captured; declared are: none\. To capture it: highwater extract --enable"
    ):
        extract(workshop, shop)
    assert shop.sql("select count(*) from pg_namespace where nspname = 'highwater'") == ["0"]
    assert not list(workshop.folder.glob("models/**/*keyless*"))


def test_enable_lands_the_rows_that_are_there(workshop, shop):
    lines = capturing.enable(workshop.spark, TABLE)
    assert lines[-2].startswith("changelog_shop/deliveries/capture-001/baseline: 3 rows, ")
    assert lines[-1] == "Now run: highwater build --select +deliveries"
    assert built(workshop) == {1: "a", 2: "b", 3: "c"}
    with pytest.raises(UsageError, match="captured already, by changelog since"):
        capturing.enable(workshop.spark, TABLE)


def test_g1_insert_update_delete(workshop, shop):
    shop.sql(
        """
        insert into deliveries values (4, 'd');
        update deliveries set v = 'B' where id = 2;
        delete from deliveries where id = 1;
        """
    )
    (line,) = extract(workshop, shop)
    assert line.startswith("changelog_shop/deliveries/capture-001/extraction-000000001: 3 changes, ")
    assert waiting(shop) == 0
    assert built(workshop) == {2: "B", 3: "c", 4: "d"}


def test_g3_and_g4_compaction_when_there_is_enough(workshop, shop):
    version = workshop.version("deliveries_merged")
    assert workshop.layers("deliveries")[1] == 3
    few = "deliveries_merged: 3 pending changes, fewer than the threshold of 4; nothing was done."
    assert compact(workshop.spark, "deliveries", threshold=4) == few
    assert workshop.version("deliveries_merged") == version
    assert (
        compact(workshop.spark, "deliveries", threshold=3)
        == "deliveries_merged: 3 pending changes written into the base."
    )
    assert workshop.version("deliveries_merged") == version + 1
    assert workshop.layers("deliveries") == (4, 0)  # the tombstone of 1 stays
    assert dict(workshop.rows("select id, v from deliveries")) == {2: "B", 3: "c", 4: "d"}
    assert compact(workshop.spark, "deliveries") == "deliveries_merged: 0 pending changes; nothing was done."
    assert workshop.version("deliveries_merged") == version + 1
    with pytest.raises(UsageError, match=r"no merged table of 'nothing'; tables are: .*deliveries"):
        compact(workshop.spark, "nothing")


def test_status_says_what_waits_and_when_it_was_compacted(workshop, shop):
    (before,) = status(workshop.spark, "deliveries")
    assert (before["waiting"], before["base"], before["pending"], before["tombstones"]) == (0, 4, 0, 1)
    assert before["source_position"] == "3" and before["feeds"] == [FEED] and before["key"] == ["id"]
    assert before["landed_batch"] == before["logged_batch"] and before["landed_batch"][FEED] > 0
    assert before["changed_at"] < before["landed_at"] and before["lag_seconds"] >= 0
    history = workshop.spark.sql("describe history deliveries_merged limit 1").first()
    assert before["compacted_at"] == history.timestamp
    assert before["rows"] == 3
    shop.sql("insert into deliveries values (5, 'e')")
    extract(workshop, shop)
    (landed,) = status(workshop.spark, "deliveries")
    assert (landed["waiting"], landed["source_position"]) == (1, "4")
    assert landed["landed_at"] > before["landed_at"]
    assert landed["landed_batch"][FEED] > landed["logged_batch"][FEED] == before["logged_batch"][FEED]
    workshop.build("+deliveries", command="run")
    (applied,) = status(workshop.spark, "deliveries")
    assert (applied["waiting"], applied["pending"], applied["pending_percent"]) == (0, 1, 25.0)
    assert applied["rows"] == 4
    assert applied["compacted_at"] == before["compacted_at"]
    shop.sql("delete from deliveries where id = 5")
    with pytest.raises(UsageError, match="there is no table 'nothing'"):
        status(workshop.spark, "nothing")


def test_g18_nothing_new_writes_nothing(workshop, shop):
    extract(workshop, shop)
    version = workshop.version(f"raw.{FEED}")
    assert extract(workshop, shop) == [f"{TABLE}: nothing new"]
    assert workshop.version(f"raw.{FEED}") == version


def test_values_come_through_to_the_last_digit_whoever_writes(workshop, shop):
    """What a session has set changes no value: times, bytes, digits."""
    shop.sql(
        r"""
        set timezone = 'Asia/Tokyo';
        insert into deliveries values (
            9007199254740993, 'quote " back \ line' || chr(10) || '{{ 1/0 }} 😀',
            12345678901234567890123456789.123456789, '2024-08-29 12:00:00.123456+02',
            '0001-01-01', true, '\x00ff', 0.1, '{"a": [1, null]}');
        set bytea_output = 'escape'; set extra_float_digits = -5;
        insert into deliveries (id, bytes, x, at) values (123, 'abcd', 0.1234567890123456, '2024-08-29 12:00:00+02');
        """
    )
    extract(workshop, shop)
    built(workshop)
    other, row = workshop.rows(
        "select v, cast(n as string), cast(at as string), cast(day as string), ok, hex(bytes), x, doc from deliveries "
        "where id > 100 order by id"
    )
    assert row[:3] == (
        'quote " back \\ line\n{{ 1/0 }} 😀',
        "12345678901234567890123456789.123456789",
        "2024-08-29 10:00:00.123456",
    )
    assert row[3:7] == ("0001-01-01", True, "00FF", 0.1) and json.loads(row[7]) == {"a": [1, None]}
    assert other[2::3] + other[6:7] == ("2024-08-29 10:00:00", "61626364", 0.1234567890123456)
    shop.sql("delete from deliveries where id > 100")


def test_g10_what_commits_late_is_not_lost_and_a_key_may_change(workshop, shop):
    late = shop.session()
    late.stdin.write(
        "begin; insert into deliveries values (8, 'p'); update deliveries set v = 'o' where id = 3; select 'done';\n"
    )
    late.stdin.flush()
    assert late.stdout.readline() == "done\n"
    shop.sql("insert into deliveries values (9, 'q')")
    extract(workshop, shop)
    assert waiting(shop) == 0
    late.communicate("commit;\n")
    assert waiting(shop) == 2
    shop.sql("update deliveries set id = 10 where id = 9; update deliveries set id = id + 100 where id in (2, 3)")
    extract(workshop, shop)
    assert built(workshop) == {102: "B", 103: "o", 4: "d", 8: "p", 10: "q"}


# Each row names another that its trigger changes, deletes, or puts back; a statement changes both.
IN_TURN = """
    create function in_turn() returns trigger language plpgsql as $$
    begin
        if pg_trigger_depth() = 1 and new.doc is not null then
            execute new.doc ->> 'statement';
        end if;
        return null;
    end $$;
    create trigger "a trigger of the application" after update on deliveries
    for each row execute function in_turn();
"""


# What it changes of its own row comes after the cause: the trigger of the capture runs first, so the image of the outer
# change does not come last.
OF_ITS_OWN_ROW = """
    create function fill() returns trigger language plpgsql as $$
    begin
        if new.v = 'to be filled' then update deliveries set v = 'filled' where id = new.id; end if;
        return null;
    end $$;
    create trigger "a trigger of the application" after insert or update on deliveries
    for each row execute function fill();
    insert into deliveries (id, v) values (21, 'to be filled'), (22, 'as it is');
    update deliveries set v = 'to be filled' where id = 22;
    drop function fill() cascade;
"""


def test_a_truncate_and_what_triggers_change_in_turn(workshop, shop):
    """The own change of a row is recorded after what another row's trigger did to it, and does not beat that."""
    changed, deleted, moved = (
        json.dumps({"statement": statement})
        for statement in (
            "update deliveries set v = 'in turn' where id = 32",
            "delete from deliveries where id = 34",
            "update deliveries set id = 37 where id = 36; insert into deliveries (id, v) values (36, 'put back')",
        )
    )
    shop.sql(
        f"""
        truncate deliveries;
        insert into deliveries values (4, 'after');
        {OF_ITS_OWN_ROW}
        insert into deliveries (id, v, doc) values
            (31, 'first', '{changed.replace("'", "''")}'), (32, 'second', null),
            (33, 'first', '{deleted.replace("'", "''")}'), (34, 'second', null),
            (35, 'first', '{moved.replace("'", "''")}'), (36, 'second', null);
        {IN_TURN}
        update deliveries set v = 'outer' where id between 31 and 36;
        drop function in_turn() cascade;
        """
    )
    expected = {int(row.split("|")[0]): row.split("|")[1] for row in shop.sql("select id, v from deliveries")}
    assert expected == {
        4: "after",
        21: "filled",
        22: "filled",
        31: "outer",
        32: "in turn",
        33: "outer",
        35: "outer",
        36: "put back",
        37: "outer",
    }
    extract(workshop, shop)
    assert built(workshop) == expected
    shop.sql("delete from deliveries where id > 20")
    extract(workshop, shop)


def test_g15_killed_on_the_way_rows_land_once(workshop, shop):
    for place in ("before the commit", "before the removal"):
        before = workshop.value(f"select count(*) from raw.{FEED} where entry = 'record'")
        shop.sql(f"insert into deliveries values ({len(place)}, '{place}')")
        with killed_extraction(is_landed=place == "before the removal"):
            extract(workshop, shop)
        assert waiting(shop) == 1
        shop.sql(f"update deliveries set v = 'again' where id = {len(place)}")
        extract(workshop, shop)
        assert waiting(shop) == 0
        assert workshop.value(f"select count(*) from raw.{FEED} where entry = 'record'") == before + 2
    assert built(workshop) == {4: "after", 17: "again", 18: "again"}


def test_g14_two_extractions_at_once(workshop, shop):
    other = shop.session()
    name = 'highwater highwater."deliveries_changelog"'
    other.stdin.write(f"select pg_advisory_lock(hashtextextended('{name}', 0)); select 'mine';\n")
    other.stdin.flush()
    while other.stdout.readline() != "mine\n":
        pass
    with pytest.raises(UsageError, match=r"another extraction of changelog_shop\.deliveries is running"):
        extract(workshop, shop)
    other.communicate("")
    assert extract(workshop, shop) == [f"{TABLE}: nothing new"]


def test_t15_tables_of_one_database_are_extracted_as_of_one_moment(workshop, shop, monkeypatch):
    """What is committed while the changelogs are looked at is in both tables or in none, and lands by one commit."""
    tables = ("parcels", "parcel_lines")
    for table in tables:
        shop.sql(f"create table {table} (id bigint primary key)")
        capturing.enable(workshop.spark, f"{FEED}.{table}")
    bought = "begin; " + "; ".join(f"insert into {table} values ({{0}})" for table in tables) + "; commit"
    shop.sql(bought.format(1))
    run = extraction.Database.run

    def interrupted(self, sql, *parameters):
        done = run(self, sql, *parameters)
        if "parcel_lines_changelog" in sql and sql.startswith("update"):
            shop.sql(bought.format(2))
        return done

    with monkeypatch.context() as patch:
        patch.setattr(extraction.Database, "run", interrupted)
        lines = extraction.extract(workshop.spark, *(f"{FEED}.{table}" for table in tables))
    assert [line.split(",")[0] for line in lines] == [
        f"{FEED}/{table}/capture-001/extraction-000000001: 1 change" for table in sorted(tables)
    ]
    in_raw = (
        "select source_table, count(*), max(landing_batch) - (select max(landing_batch) from raw.{0}) from raw.{0} "
        "where entry = 'record' and source_table like 'parcel%' group by source_table order by source_table"
    )
    assert workshop.rows(in_raw.format(FEED)) == [("parcel_lines", 1, 0), ("parcels", 1, 0)]
    # a feed stands for every table of it that is captured
    assert len(extraction.extract(workshop.spark, FEED)) == 2
    assert workshop.rows(in_raw.format(FEED)) == [("parcel_lines", 2, 0), ("parcels", 2, 0)]
    assert extraction.extract(workshop.spark, FEED) == [f"{FEED}: nothing new"]
    with pytest.raises(UsageError, match=r"nowhere is not captured; declared are: .* --enable nowhere\.<table>"):
        extraction.extract(workshop.spark, "nowhere")
    for table in tables:
        capturing.disable(workshop.spark, f"{FEED}.{table}")


def test_the_password_is_shown_nowhere(workshop, shop, monkeypatch):
    shop.sql("insert into deliveries values (77, 'x')")
    monkeypatch.setenv("HIGHWATER_SHOP_PASSWORD", PASSWORD + "-wrong")
    with pytest.raises(UsageError, match=r"password authentication failed.*; HIGHWATER_SHOP_PASSWORD is set") as failed:
        extract(workshop, shop)
    assert PASSWORD not in str(failed.value) and failed.value.exit_code == 2
    monkeypatch.delenv("HIGHWATER_SHOP_PASSWORD")
    with pytest.raises(UsageError, match=r"no password .*_USER=app; HIGHWATER_SHOP_PASSWORD is not set") as failed:
        extract(workshop, shop)
    assert failed.value.exit_code == 2
    monkeypatch.setenv("HIGHWATER_SHOP_PASSWORD", PASSWORD)
    shop.sql('alter table highwater."deliveries_changelog" rename column row_after to gone')
    with pytest.raises(CheckError, match=r"changelog_shop/deliveries was not read: .*row_after") as failed:
        extract(workshop, shop)
    assert PASSWORD not in str(failed.value)
    shop.sql('alter table highwater."deliveries_changelog" rename column gone to row_after')
    extract(workshop, shop)
    written = [path for path in workshop.folder.glob("lake/*") if path.is_file()]
    assert written and not any(PASSWORD.encode() in path.read_bytes() for path in written)
    monkeypatch.delenv("HIGHWATER_SHOP_URL")
    with pytest.raises(UsageError, match=r"HIGHWATER_SHOP_URL is not set; .* jdbc:postgresql://"):
        extract(workshop, shop)
    for url in (
        f"jdbc:postgresql://127.0.0.1/shop?password={PASSWORD}",
        f"postgresql://app:{PASSWORD}@127.0.0.1/shop",
        f"jdbc:postgresql://app:{PASSWORD}@127.0.0.1/shop",
    ):
        monkeypatch.setenv("HIGHWATER_SHOP_URL", url)
        with pytest.raises(UsageError, match=r"carries a user or a password; .* HIGHWATER_SHOP_PASSWORD") as failed:
            extract(workshop, shop)
        assert PASSWORD not in str(failed.value)


def test_a_lake_older_than_its_capture_is_refused_and_captured_anew(workshop, shop):
    """What the database has let go and raw no longer has is named."""
    table = "changelog_shop.wares"
    shop.sql("create table wares (id bigint primary key, v text); insert into wares values (1, 'a')")
    capturing.enable(workshop.spark, table)
    shop.sql("update wares set v = 'b' where id = 1")
    extraction.extract(workshop.spark, table)
    version = workshop.version(f"raw.{FEED}")
    shop.sql("insert into wares values (2, 'let go')")
    extraction.extract(workshop.spark, table)
    workshop.spark.sql(f"restore table raw.{FEED} to version as of {version}")
    shop.sql("insert into wares values (3, 'c')")
    for _ in range(2):
        with pytest.raises(CheckError, match=r"older than the capture .* --disable changelog_shop.wares, then"):
            extraction.extract(workshop.spark, table)
    assert shop.sql('select count(*) from highwater."wares_changelog"') == ["1"]
    capturing.disable(workshop.spark, table)
    capturing.enable(workshop.spark, table)
    # the rows that the new capture begins with, and what comes behind them
    shop.sql("delete from wares where id = 3")
    extraction.extract(workshop.spark, table)
    workshop.build("+wares", command="run")
    assert dict(workshop.rows("select id, v from wares")) == {1: "b", 2: "let go"}
    assert workshop.rows("select v from wares_changes where id = 3 and not is_deleted") == [("c",)]
    capturing.disable(workshop.spark, table)


def test_g11_disable_waits_for_what_is_captured(workshop, shop):
    shop.sql("insert into deliveries values (78, 'y')")
    with pytest.raises(UsageError, match=r"1 changes? of changelog_shop.deliveries waits? .*highwater extract"):
        capturing.disable(workshop.spark, TABLE)
    extract(workshop, shop)
    assert "no longer captured" in capturing.disable(workshop.spark, TABLE)
    assert re.fullmatch(r"20\d\d-.*:\d\d", status(workshop.spark, "deliveries")[0]["disabled_since"])
    html = page(workshop.spark, status(workshop.spark, "deliveries"))
    # without charts it carries no code for them
    assert "deliveries</a> (not captured)" in html and "<script" not in html
    assert shop.sql("select count(*) from pg_trigger where tgname like 'highwater%'") == ["0"]
    with pytest.raises(UsageError, match="is not captured"):
        extract(workshop, shop)


@pytest.mark.soak
def test_a_second_capture_knows_what_went_meanwhile(workshop, shop):
    shop.sql("delete from deliveries where id = 77; update deliveries set v = 'unseen' where id = 78")
    capturing.enable(workshop.spark, TABLE)
    assert status(workshop.spark, "deliveries")[0]["disabled_since"] is None
    rows = built(workshop)
    assert 77 not in rows and rows[78] == "unseen"
    assert len(rows) == int(shop.sql("select count(*) from deliveries")[0])


@pytest.mark.soak
def test_g8_g9_insert_only(workshop, shop):
    """An update is refused where it is captured; a reader never sees a key twice; a second insert is told."""
    table = "changelog_shop.entries"
    shop.sql("create table entries (id bigint, v text); insert into entries values (1, 'a'), (2, 'b')")
    capturing.enable(workshop.spark, table, "changelog-insert", "id")
    refused = []
    for statement in ("update entries set v = 'z'", "delete from entries", "truncate entries"):
        with pytest.raises(Exception, match="captured as insert-only") as error:
            shop.sql(statement)
        refused.append(error)
    assert len(refused) == 3 and shop.sql("select count(*) from entries") == ["2"]
    workshop.build("+entries", command="run")
    shop.sql("insert into entries select 10 + n, 'n' from generate_series(1, 500) as n")
    extraction.extract(workshop.spark, table)
    workshop.build("+entries", command="run")
    (view,) = workshop.folder.glob("target/compiled/**/entries.sql")
    assert "join" not in view.read_text()
    question = "select count(*), count(distinct id) from entries"
    assert workshop.rows(question) == [(502, 502)]
    found = set()
    with reading(lambda: found.update(workshop.rows(question))):
        compact(workshop.spark, "entries")
    assert found == {(502, 502)}
    workshop.build("entries_changes", command="test")
    shop.sql("insert into entries values (1, 'z')")
    extraction.extract(workshop.spark, table)
    workshop.build("+entries", command="run")
    second = "select verdict from entries_changes where id = 1 and v = 'z'"
    assert workshop.rows(second) == [("superseded",)]
    for act in (lambda: None, lambda: compact(workshop.spark, "entries"), lambda: rebuild(workshop.spark, "entries")):
        act()
        assert workshop.rows("select v from entries where id = 1") == [("a",)]
        assert workshop.rows(question) == [(502, 502)]
    with pytest.raises(AssertionError, match="has_inserts_only_entries_changes"):
        workshop.build("entries_changes", command="test")
    capturing.disable(workshop.spark, table)
    with pytest.raises(UsageError, match="entries was captured before"):
        capturing.enable(workshop.spark, table, "changelog-insert", "id")
    with pytest.raises(UsageError, match=r"declares `insert_only: true`. Declare `truncates: true` in its place"):
        capturing.enable(workshop.spark, table, "changelog", "id")
    declaration = workshop.folder / "models/tables/shop/entries.yml"
    text = declaration.read_text().replace("insert_only: true", "truncates: true")
    declaration.write_text(re.sub(r"      - has_inserts_only: .*\n", "", text))
    shop.sql("delete from entries where v = 'z'")
    capturing.enable(workshop.spark, table, "changelog", "id")
    shop.sql("update entries set v = 'y' where id = 1")
    extraction.extract(workshop.spark, table)
    workshop.build("+entries")
    assert workshop.rows(question) == [(502, 502)]
    assert workshop.rows("select v from entries where id = 1") == [("y",)]


@pytest.mark.soak
def test_g16_row_versions_see_no_deletes_and_a_comparison_does(workshop, shop):
    table = "changelog_shop.stops"
    shop.sql(
        "create table stops (id bigint primary key, v text, source text);"
        "insert into stops values (1, 'a'), (2, 'b'), (3, 'c')"
    )
    lines = capturing.enable(workshop.spark, table, "row-version")
    assert "changelog_shop.stops: rows are found by the transaction that wrote them; deletes are not seen." in lines
    assert shop.sql("select count(*) from pg_trigger where tgrelid = 'stops'::regclass") == ["0"]
    assert shop.sql("select to_regclass('highwater.stops_changelog') is null") == ["t"]

    def built():
        workshop.build("+stops", command="run")
        return dict(workshop.rows("select id, v from stops"))

    assert built() == {1: "a", 2: "b", 3: "c"}
    assert extraction.extract(workshop.spark, table) == [f"{table}: nothing new"]
    # a transaction that begins before the extraction and commits behind it is not missed
    late = shop.session()
    late.stdin.write("begin; insert into stops values (4, 'late'); select 'begun';\n")
    late.stdin.flush()
    assert late.stdout.readline().strip() == "begun"
    shop.sql("update stops set v = 'B' where id = 2; insert into stops values (5, 'e'); delete from stops where id = 3")
    (line,) = extraction.extract(workshop.spark, table)
    assert line.startswith("changelog_shop/stops/capture-001/rows-000000001: 2 rows, ")
    assert built() == {1: "a", 2: "B", 3: "c", 5: "e"}
    late.communicate("commit;\n")
    extraction.extract(workshop.spark, table)
    assert built() == {1: "a", 2: "B", 3: "c", 4: "late", 5: "e"}
    assert extraction.extract(workshop.spark, table) == [f"{table}: nothing new"]
    (found,) = status(workshop.spark, "stops")
    assert found["method"] == "row-version, deletes are not seen"
    # what a comparison with the source finds
    exported = ", ".join(f"({row.replace('|', chr(44) + chr(39))}')" for row in shop.sql("select id, v from stops"))
    workshop.spark.sql(f"create or replace view export_of_stops as select * from values {exported} as t (id, v)")
    sides = "'lake.stops', 'lake.export_of_stops'"
    select = f"{{{{ row_verdicts({sides}, ['id'], comparable_columns({sides}, ['id', 'v'])) }}}}"
    sql = workshop.dbt("compile", "--inline", select).result.results[0].node.compiled_code
    verdicts = {
        row.id: row["row verdict"] for row in workshop.spark.sql(f"{sql} where `row verdict` <> 'equal'").collect()
    }
    assert verdicts == {3: "extra_in_lake"}
    shop.sql("update stops set v = 'A' where id = 1")
    with pytest.raises(UsageError, match=r"1 row of changelog_shop\.stops may have been written since the last"):
        capturing.disable(workshop.spark, table)
    extraction.extract(workshop.spark, table)
    assert "no longer captured" in capturing.disable(workshop.spark, table)
    capturing.enable(workshop.spark, table, "row-version")
    assert built() == {1: "A", 2: "B", 4: "late", 5: "e"}
    capturing.disable(workshop.spark, table)


@pytest.mark.soak
def test_rows_that_live_in_the_lake_only_are_patched(workshop, shop):
    """UPDATABLE: the table is gone from the database, its rows are in the lake."""
    table = "changelog_shop.relics"
    shop.sql(
        'create table relics ("Id" bigint primary key, feed text, n numeric(38, 9), at timestamptz, b bytea, '
        "ok boolean);"
        "insert into relics select n, 'f' || n, 0.000000001 * n, '2024-08-29 12:00:00.123456+02', '\\x00ff', n = 1 "
        "from generate_series(1, 5) as n"
    )
    capturing.enable(workshop.spark, table)
    with pytest.raises(UsageError, match="relics_merged has not been built yet"):
        patching.patch(workshop.spark, table, "id < 3")
    workshop.build("+relics", command="run")
    # dropped before its capture has ended; and what the database knew of captures is lost
    shop.sql("drop table relics")
    capturing.disable(workshop.spark, table)
    shop.sql("delete from highwater.captures where table_name = 'relics'")
    before = {row[0]: row for row in workshop.rows("select * from relics")}
    with pytest.raises(UsageError, match=r"say which rows: --where"):
        patching.patch(workshop.spark, table)
    with pytest.raises(UsageError, match=r"--where nowhere = 1: .*nowhere"):
        patching.patch(workshop.spark, table, "nowhere = 1")
    with pytest.raises(UsageError, match="no table of a feed of the format changelog"):
        patching.patch(workshop.spark, "datastream_user1.table1", "true")
    lines = patching.patch(workshop.spark, table, "id < 4")
    assert lines[0].startswith('highwater."relics_patch": 3 rows of relics. ')
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", status(workshop.spark, "relics")[0]["patched_since"])
    with pytest.raises(UsageError, match="is being patched already; end it first"):
        patching.patch(workshop.spark, table, "id = 5")
    with pytest.raises(UsageError, match="is being patched; end it first"):
        capturing.disable(workshop.spark, table)
    view = 'highwater."relics_patch"'
    shop.sql(
        # a trigger of somebody else's changes the rows as well as anybody
        "create table requests (id bigint); create function on_request() returns trigger language plpgsql as "
        f'$$ begin update {view} set ok = false where "Id" = new.id; return null; end $$;'
        "create trigger on_request after insert on requests for each row execute function on_request();"
        f"insert into requests values (1); update {view} set feed = 'F2' where \"Id\" = 2;"
        f'delete from {view} where "Id" = 3; insert into {view} ("Id", feed) values (9, \'new\')'
    )
    with pytest.raises(AssertionError, match=r"TRUNCATE is refused in a patch of changelog_shop\.relics"):
        shop.sql('truncate highwater."relics_patch_rows"')
    with pytest.raises(UsageError, match=r"4 changes of changelog_shop.relics wait to be extracted"):
        patching.end(workshop.spark, table)
    (line,) = extraction.extract(workshop.spark, table)
    assert line.startswith("changelog_shop/relics/capture-002/extraction-000000001: 4 changes, ")
    assert "the patch has ended" in patching.end(workshop.spark, table)
    assert status(workshop.spark, "relics")[0]["patched_since"] is None
    assert shop.sql("select count(*) from pg_class where relname like 'relics%'") == ["0"]
    with pytest.raises(UsageError, match="is not being patched"):
        patching.end(workshop.spark, table)
    workshop.build("+relics")
    # values that nobody changed come back as they were, to the last digit
    rows = {row[0]: row for row in workshop.rows("select * from relics")}
    assert rows == {
        1: (*before[1][:5], False),
        2: (2, "F2", *before[2][2:]),
        4: before[4],
        5: before[5],
        9: (9, "new", None, None, None, None),
    }


@pytest.mark.soak
def test_a_patch_beside_a_capture(workshop, shop):
    """UPDATABLE_CHANGELOG: both into one changelog; what is in the database's own table is refused."""
    table = "changelog_shop.pieces"
    shop.sql("create table pieces (id bigint primary key, v text); insert into pieces values (1, 'a'), (2, 'b')")
    capturing.enable(workshop.spark, table)
    workshop.build("+pieces", command="run")
    shop.sql("insert into pieces values (3, 'c'), (4, 'd')")
    with pytest.raises(UsageError, match=r"2 changes of changelog_shop\.pieces wait to be extracted"):
        patching.patch(workshop.spark, table, "id > 2")
    extraction.extract(workshop.spark, table)
    with pytest.raises(UsageError, match="changes of pieces have landed and are not built"):
        patching.patch(workshop.spark, table, "id > 2")
    workshop.build("+pieces", command="run")
    # archived: away from the application, without a word to the lake
    shop.sql(
        "alter table pieces disable trigger all; delete from pieces where id > 2; alter table pieces enable trigger all"
    )
    with pytest.raises(UsageError, match=r'2 of the chosen rows are in "public"."pieces" too, for example id = \d'):
        patching.patch(workshop.spark, table, "true")
    loaded = patching._load

    def load(*arguments):
        """The application writes while the rows are loaded."""
        loaded(*arguments)
        shop.sql("insert into pieces values (7, 'g')")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patching, "_load", load)
        with pytest.raises(UsageError, match=r"1 change of changelog_shop\.pieces waits to be extracted"):
            patching.patch(workshop.spark, table, "id > 2")
    assert shop.sql("select count(*) from pg_class where relname like 'pieces_patch%'") == ["0"]
    assert status(workshop.spark, "pieces")[0]["patched_since"] is None
    assert shop.sql("select count(*) from pg_trigger where tgname like 'highwater_patch%'") == ["0"]
    extraction.extract(workshop.spark, table)
    workshop.build("+pieces", command="run")
    patching.patch(workshop.spark, table, "id in (3, 4)")
    view = 'highwater."pieces_patch"'
    with pytest.raises(AssertionError, match=r'the row is in "public"\."pieces" too'):
        shop.sql(f"insert into {view} values (1, 'x')")
    shop.sql(f"update {view} set v = 'C' where id = 3; update pieces set v = 'A' where id = 1")
    # the application takes a row back: from there it is its own, and gone from the view
    shop.sql("insert into pieces values (4, 'again')")
    assert shop.sql(f"select id, v from {view}") == ["3|C"]
    with pytest.raises(AssertionError, match=r"a patch of changelog_shop\.pieces is changed in transactions of"):
        shop.sql(f"begin isolation level repeatable read; update {view} set v = 'x'")
    # a writer of the table that has not ended is waited for
    writer = shop.session()
    writer.stdin.write("begin; insert into pieces values (3, 'mine'); select 'inserted';\n")
    writer.stdin.flush()
    assert writer.stdout.readline().strip() == "inserted"
    late = shop.session()
    late.stdin.write(f"update {view} set v = 'lost' where id = 3; select count(*) from {view};\n")
    late.stdin.flush()
    time.sleep(1)
    writer.communicate("commit;\n")
    assert late.communicate("")[0].split() == ["0"]
    with pytest.raises(UsageError, match="is being patched; end it first"):
        capturing.disable(workshop.spark, table)
    patching.end(workshop.spark, table)
    extraction.extract(workshop.spark, table)
    workshop.build("+pieces")
    rows = {1: "A", 2: "b", 3: "mine", 4: "again", 7: "g"}
    assert dict(workshop.rows("select id, v from pieces")) == rows
    assert [tuple(line.split("|")) for line in shop.sql("select id, v from pieces order by id")] == [
        (str(key), value) for key, value in rows.items()
    ]
    assert workshop.rows("select v from pieces_changes where id = 3 order by change_sequence_number") == [
        ("c",), ("C",), ("mine",)
    ]  # fmt: skip
    capturing.disable(workshop.spark, table)


@pytest.mark.soak
def test_an_insert_only_patch(workshop, shop):
    """UPDATABLE_INSERT: rows are added, and none is changed."""
    table = "changelog_shop.notes"
    shop.sql("create table notes (id bigint primary key, v text); insert into notes values (1, 'a')")
    capturing.enable(workshop.spark, table, "changelog-insert")
    workshop.build("+notes", command="run")
    capturing.disable(workshop.spark, table)
    with pytest.raises(UsageError, match=r'"public"."notes" is there and not captured'):
        patching.patch(workshop.spark, table)
    shop.sql("drop table notes")
    with pytest.raises(UsageError, match="declares `insert_only: true`"):
        patching.patch(workshop.spark, table, "id = 1")
    patching.patch(workshop.spark, table)
    shop.sql("insert into highwater.\"notes_patch\" values (2, 'b')")
    with pytest.raises(AssertionError, match=r"UPDATE is refused in a patch of changelog_shop\.notes"):
        shop.sql("update highwater.\"notes_patch\" set v = 'c'")
    extraction.extract(workshop.spark, table)
    workshop.build("+notes")
    assert dict(workshop.rows("select id, v from notes")) == {1: "a", 2: "b"}
    patching.end(workshop.spark, table)


def test_the_epoch_of_row_versions(shop):
    """The 32 bits of xmin get the epoch of the server's own 64-bit numbers, before and behind a wrap."""
    cases = {(100, 200): 100, (200, 2**32 + 100): 200, (50, 2**32 + 100): 2**32 + 50, (2, 2**33): 2}
    for (xmin, newest), expected in cases.items():
        sql = capture_sql.WRITTEN_BY.replace(
            "pg_snapshot_xmax(pg_current_snapshot())::text::bigint", f"{newest}::bigint"
        )
        sql = sql.replace("xmin::text::bigint", f"{xmin}::bigint")
        assert shop.sql(f"select {sql}") == [str(expected)], (xmin, newest)
