"""Changes of a real PostgreSQL: captured, extracted, landed once, removed; cases G by id."""

import json

import pytest
from highwater import extract as extraction
from highwater import landing
from highwater.compact import compact
from highwater.errors import CheckError, UsageError
from highwater.status import status
from postgres import PASSWORD, Postgres

pytestmark = pytest.mark.long
FEED, TABLE = "changelog_shop", "changelog_shop.deliveries"


@pytest.fixture(scope="module")
def shop(workshop, tmp_path_factory):
    """A database with a table of every usual type and rows in it."""
    server = Postgres(tmp_path_factory.mktemp("postgres"))
    patch = pytest.MonkeyPatch()
    for name, value in server.environment("shop").items():
        patch.setenv(name, value)
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
    patch.undo()
    server.stop()


def extract(workshop, shop):
    return extraction.extract(workshop.spark, TABLE)


def built(workshop):
    workshop.build("+deliveries", command="run")
    return dict(workshop.rows("select id, v from deliveries"))


def waiting(shop):
    return int(shop.sql('select count(*) from highwater."deliveries_changelog"')[0])


def test_g12_without_a_key_nothing_is_created(workshop, shop):
    with pytest.raises(UsageError, match=r"keyless\" has no primary key; say which columns .* --key v"):
        extraction.enable(workshop.spark, f"{FEED}.keyless")
    with pytest.raises(UsageError, match=r"has no column 'w'; it has: v"):
        extraction.enable(workshop.spark, f"{FEED}.keyless", key="w")
    with pytest.raises(UsageError, match=r'no table "public"."nowhere"'):
        extraction.enable(workshop.spark, f"{FEED}.nowhere")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in shop.environment("user1").items():
            patch.setenv(name, value)
        shop.sql("create table table1 (id int primary key)")
        with pytest.raises(UsageError, match="the system user1 has a table table1 already, from another feed"):
            extraction.enable(workshop.spark, "changelog_user1.table1")
    with pytest.raises(UsageError, match="not captured; begin with: highwater extract --enable"):
        extract(workshop, shop)
    assert shop.sql("select count(*) from pg_namespace where nspname = 'highwater'") == ["0"]
    assert not list(workshop.folder.glob("models/**/*keyless*"))


def test_enable_lands_the_rows_that_are_there(workshop, shop):
    lines = extraction.enable(workshop.spark, TABLE)
    assert lines[-2].startswith("changelog_shop/deliveries/capture-001/baseline: 3 rows, ")
    assert lines[-1] == "Now run: highwater build --select +deliveries"
    assert built(workshop) == {1: "a", 2: "b", 3: "c"}
    with pytest.raises(UsageError, match="captured already, by changelog since"):
        extraction.enable(workshop.spark, TABLE)


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
    def layers():
        return dict(workshop.rows("select is_pending, count(*) from deliveries_merged group by 1"))

    version = workshop.version("deliveries_merged")
    assert layers()[True] == 3
    few = "deliveries_merged: 3 pending rows, fewer than the threshold of 4; nothing was done."
    assert compact(workshop.spark, "deliveries", threshold=4) == few
    assert workshop.version("deliveries_merged") == version
    assert compact(workshop.spark, "deliveries", threshold=3) == "deliveries_merged: 3 pending rows became base rows."
    assert workshop.version("deliveries_merged") == version + 1
    assert layers() == {False: 4}  # the tombstone of 1 stays
    assert dict(workshop.rows("select id, v from deliveries")) == {2: "B", 3: "c", 4: "d"}
    assert compact(workshop.spark, "deliveries") == "deliveries_merged: 0 pending rows; nothing was done."
    assert workshop.version("deliveries_merged") == version + 1
    with pytest.raises(UsageError, match=r"no merged table of 'nothing'; tables are: .*deliveries"):
        compact(workshop.spark, "nothing")


def test_status_says_what_waits_and_when_it_was_compacted(workshop, shop):
    (before,) = status(workshop.spark, "deliveries")
    assert (before["waiting"], before["base"], before["pending"], before["tombstones"]) == (0, 4, 0, 1)
    assert before["source_position"] == "3" and before["feeds"] == [FEED]
    history = workshop.spark.sql("describe history deliveries_merged limit 1").first()
    assert before["compacted_at"] == history.timestamp
    shop.sql("insert into deliveries values (5, 'e')")
    extract(workshop, shop)
    (landed,) = status(workshop.spark, "deliveries")
    assert (landed["waiting"], landed["source_position"]) == (1, "4")
    assert landed["landed_at"] > before["landed_at"]
    workshop.build("+deliveries", command="run")
    (taken_in,) = status(workshop.spark, "deliveries")
    assert (taken_in["waiting"], taken_in["pending"], taken_in["pending_percent"]) == (0, 1, 25.0)
    assert taken_in["compacted_at"] == before["compacted_at"]
    shop.sql("delete from deliveries where id = 5")
    with pytest.raises(UsageError, match="there is no table 'nothing'"):
        status(workshop.spark, "nothing")


def test_g18_nothing_new_writes_nothing(workshop, shop):
    extract(workshop, shop)
    version = workshop.version(f"raw.{FEED}")
    assert extract(workshop, shop) == [f"{TABLE}: nothing new"]
    assert workshop.version(f"raw.{FEED}") == version


def test_values_come_through_to_the_last_digit(workshop, shop):
    shop.sql(
        r"""
        set timezone = 'Asia/Tokyo';
        insert into deliveries values (
            9007199254740993, 'quote " back \ line' || chr(10) || '{{ 1/0 }} 😀',
            12345678901234567890123456789.123456789, '2024-08-29 12:00:00.123456+02',
            '0001-01-01', true, '\x00ff', 0.1, '{"a": [1, null]}');
        """
    )
    extract(workshop, shop)
    built(workshop)
    (row,) = workshop.rows(
        "select v, cast(n as string), cast(at as string), cast(day as string), ok, hex(bytes), x, doc from deliveries "
        "where id = 9007199254740993"
    )
    assert row[:3] == (
        'quote " back \\ line\n{{ 1/0 }} 😀',
        "12345678901234567890123456789.123456789",
        "2024-08-29 10:00:00.123456",
    )
    assert row[3:7] == ("0001-01-01", True, "00FF", 0.1) and json.loads(row[7]) == {"a": [1, None]}
    shop.sql("delete from deliveries where id > 100")


def test_g10_what_commits_late_is_not_lost(workshop, shop):
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
    extract(workshop, shop)
    assert built(workshop) == {2: "B", 3: "o", 4: "d", 8: "p", 9: "q"}


def test_a_key_that_changes_and_a_truncate(workshop, shop):
    shop.sql("update deliveries set id = 10 where id = 9; update deliveries set id = id + 100 where id in (2, 3)")
    extract(workshop, shop)
    assert built(workshop) == {102: "B", 103: "o", 4: "d", 8: "p", 10: "q"}
    shop.sql("truncate deliveries; insert into deliveries values (4, 'after')")
    extract(workshop, shop)
    assert built(workshop) == {4: "after"}


class Killed(Exception):
    pass


@pytest.mark.parametrize("place", ["before the commit", "before the removal"])
def test_g15_killed_on_the_way_rows_land_once(workshop, shop, monkeypatch, place):
    append = landing.append

    def killed(*arguments):
        if place == "before the removal":
            append(*arguments)
        raise Killed

    before = workshop.value(f"select count(*) from raw.{FEED} where entry = 'record'")
    shop.sql(f"insert into deliveries values ({len(place)}, '{place}')")
    with monkeypatch.context() as patch:
        patch.setattr(landing, "append", killed)
        with pytest.raises(Killed):
            extract(workshop, shop)
    assert waiting(shop) == 1
    shop.sql(f"update deliveries set v = 'again' where id = {len(place)}")
    extract(workshop, shop)
    assert waiting(shop) == 0
    assert workshop.value(f"select count(*) from raw.{FEED} where entry = 'record'") == before + 2
    assert built(workshop)[len(place)] == "again"


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


def test_the_password_is_shown_nowhere(workshop, shop, monkeypatch):
    shop.sql("insert into deliveries values (77, 'x')")
    monkeypatch.setenv("HIGHWATER_SHOP_PASSWORD", PASSWORD + "-wrong")
    with pytest.raises(CheckError, match="password authentication failed") as failed:
        extract(workshop, shop)
    assert PASSWORD not in str(failed.value)
    monkeypatch.setenv("HIGHWATER_SHOP_PASSWORD", PASSWORD)
    shop.sql('alter table highwater."deliveries_changelog" rename column row_after to gone')
    with pytest.raises(Exception, match="row_after") as failed:
        extract(workshop, shop)
    assert PASSWORD not in str(failed.value)
    shop.sql('alter table highwater."deliveries_changelog" rename column gone to row_after')
    extract(workshop, shop)
    written = [path for path in workshop.folder.glob("lake/*") if path.is_file()]
    assert written and not any(PASSWORD.encode() in path.read_bytes() for path in written)
    monkeypatch.delenv("HIGHWATER_SHOP_URL")
    with pytest.raises(UsageError, match=r"HIGHWATER_SHOP_URL is not set; .* jdbc:postgresql://"):
        extract(workshop, shop)
    monkeypatch.setenv("HIGHWATER_SHOP_URL", f"jdbc:postgresql://127.0.0.1/shop?password={PASSWORD}")
    with pytest.raises(UsageError, match="carries a password; put it into HIGHWATER_SHOP_PASSWORD") as failed:
        extract(workshop, shop)
    assert PASSWORD not in str(failed.value)


def test_g11_disable_waits_for_what_is_captured(workshop, shop):
    shop.sql("insert into deliveries values (78, 'y')")
    with pytest.raises(UsageError, match=r"1 changes? of changelog_shop.deliveries waits? .*highwater extract"):
        extraction.disable(workshop.spark, TABLE)
    extract(workshop, shop)
    assert "no longer captured" in extraction.disable(workshop.spark, TABLE)
    assert shop.sql("select count(*) from pg_trigger where tgname like 'highwater%'") == ["0"]
    with pytest.raises(UsageError, match="is not captured"):
        extract(workshop, shop)


def test_a_second_capture_knows_what_went_meanwhile(workshop, shop):
    shop.sql("delete from deliveries where id = 77; update deliveries set v = 'unseen' where id = 78")
    extraction.enable(workshop.spark, TABLE)
    rows = built(workshop)
    assert 77 not in rows and rows[78] == "unseen"
    assert len(rows) == int(shop.sql("select count(*) from deliveries")[0])
