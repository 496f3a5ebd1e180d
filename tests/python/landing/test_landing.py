"""Landing: every file and every record exactly once, and a clear word about the files that cannot land."""

import functools
import gzip
import hashlib
import io
import os
import shlex
import shutil
import subprocess
import time
from contextlib import contextmanager

import pyarrow
import pyarrow.parquet
import pytest
import yaml
from highwater.builds.landing_report import land_and_tell
from highwater.catalog.feeds import Feed, declared_feeds
from highwater.formats.formats import ReadOptions
from highwater.landing import feed_folders, landing, new_files, raw_table, table_names
from highwater.landing.deliveries import all_empty
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import UNPRINTABLE
from workshop import change

TABLE, FEED = "datastream_types.readings", "datastream_types"


def landed(workshop, name):
    return workshop.rows(
        f"select source_line, record, landing_batch from raw.{FEED} "
        f"where source_file = '{FEED}/readings/{name}' and entry = 'record' order by source_line"
    )


@contextmanager
def declared(workshop, feed: str, *tables: str, **settings):
    """Declare a feed for as long as a test lasts."""
    path = workshop.folder / f"models/staging/{feed}/_{feed}__sources.yml"
    path.parent.mkdir()
    source = {"name": feed, "config": {"meta": {"feed": settings}}, "tables": [{"name": table} for table in tables]}
    path.write_text(yaml.safe_dump({"sources": [source]}))
    yield declared_feeds()[feed]
    shutil.rmtree(path.parent)


def entries(workshop, feed: str, entry: str) -> list[tuple]:
    return workshop.rows(
        f"select source_file, source_line, source_table from raw.{feed} where entry = '{entry}' order by all"
    )


def test_files_land_once_with_true_lines_and_exact_bytes(workshop):
    plain = b'{"id":1}\n\n\xff\xfe not text\r\n{"id":2}'
    workshop.deliver(TABLE, "once.json", plain)
    workshop.deliver(TABLE, "once.json.gz", gzip.compress(plain))
    workshop.deliver(TABLE, "deeper/once.json", plain)
    workshop.deliver(TABLE, "empty.json", b"")
    result = workshop.land(FEED)[FEED]
    assert (result.files, result.records) == (4, 9)
    expected = [(1, b'{"id":1}'), (3, b"\xff\xfe not text"), (4, b'{"id":2}')]
    for name in ("once.json", "once.json.gz", "deeper/once.json"):
        assert [(line, bytes(record)) for line, record, _ in landed(workshop, name)] == expected
    version = workshop.version(f"raw.{FEED}")
    again = workshop.land(FEED)[FEED]
    assert (again.files, str(again)) == (0, f"{FEED}: nothing new")
    assert workshop.version(f"raw.{FEED}") == version


def test_a_feed_with_nothing_new_is_not_asked_until_its_table_is_another(workshop, monkeypatch):
    workshop.deliver(TABLE, "idle.json", b"{}\n")
    newest = workshop.land(FEED)[FEED].newest
    with monkeypatch.context() as patched:
        patched.setattr(landing, "entries_of_files", None)
        again = workshop.land(FEED)[FEED]
        assert (again.files, again.newest) == (0, newest)
        path = workshop.deliver(TABLE, "another.json", b"{}\n")
        with pytest.raises(TypeError):
            workshop.land(FEED)
        path.unlink()
    # whoever changed it: what it lacks lands again
    workshop.spark.sql(f"delete from raw.{FEED} where source_file = '{FEED}/{TABLE.split('.')[1]}/idle.json'")
    assert workshop.land(FEED)[FEED].files == 1


def test_feeds_of_one_table_land_one_after_the_other(workshop, monkeypatch):
    """Others may land side by side; each has its answer, or its error, in the order asked for."""
    landed, logs = [], [("orders", [("a", "x"), ("c", "x")]), ("lines", [("c", "y"), ("e", "y")])]
    monkeypatch.setattr("highwater.landing.landing.logged_tables", lambda: logs)

    def land(spark, feed):
        if feed.name == "c":
            time.sleep(0.2)
            raise ValueError("c")
        landed.append(feed.name)
        return feed.name

    monkeypatch.setattr(landing, "land", land)
    feeds = [Feed(name, "changes", ("t",), "folder", ReadOptions("json")) for name in "abcde"]
    answers = list(landing.land_all(workshop.spark, feeds))
    assert [feed.name for feed, _ in answers] == list("abcde")
    assert [answer for feed, answer in answers if feed.name != "c"] == list("abde")
    assert str(answers[2][1]) == "c" and answers[2][1].doing == "landing c"
    assert landed.index("a") < landed.index("e") and landed.index("b") < landed.index("e")


def test_files_under_way_are_left_alone(workshop):
    names = ["_part.json", ".part.json", "part.json.tmp", "part.inprogress", "part.csv.unfinished"]
    paths = [workshop.deliver(TABLE, name, b"{}\n") for name in [*names, "_temporary/part.json"]]
    assert workshop.land(FEED)[FEED].files == 0
    for path in paths:
        path.unlink()


def test_batch_numbers_come_from_the_raw_table(workshop):
    before = workshop.value(f"select max(landing_batch) from raw.{FEED}")
    workshop.deliver(TABLE, "numbered.json", b"{}\n")
    workshop.land(FEED)
    assert landed(workshop, "numbered.json")[0][2] == before + 1
    assert workshop.value(f"select count(distinct landed_at) = count(distinct landing_batch) from raw.{FEED}")


def test_times_of_batches_increase_when_the_clock_is_set_back(workshop, monkeypatch):
    from datetime import datetime, timedelta, timezone

    class Yesterday(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) - timedelta(days=1)

    monkeypatch.setattr(raw_table, "datetime", Yesterday)
    newest = workshop.value(f"select max(landed_at) from raw.{FEED}")
    workshop.deliver(TABLE, "yesterday.json", b"{}\n")
    landing.land(workshop.spark, declared_feeds()[FEED])
    monkeypatch.undo()
    at = workshop.value(f"select max(landed_at) from raw.{FEED}")
    assert newest < at < newest + timedelta(seconds=1)
    assert at.replace(tzinfo=timezone.utc) > datetime.now(timezone.utc) - timedelta(hours=12)


def test_a_file_that_changed_is_named_until_it_is_left_out(workshop):
    path = workshop.deliver(TABLE, "changing.json", b'{"id":1}\n')
    workshop.land(FEED)
    os.utime(path, (1, 1))
    assert workshop.land(FEED)[FEED].changed == []  # touched, but the same bytes
    path.write_bytes(b'{"id":2}\n')
    name = f"{FEED}/readings/changing.json"
    for _ in range(2):
        result = workshop.land(FEED)[FEED]
        assert (result.files, result.changed) == (0, [name])
    assert "what landed first stays" in landing.skip(workshop.spark, declared_feeds(), name)
    assert workshop.land(FEED)[FEED].changed == []
    assert [bytes(record) for _, record, _ in landed(workshop, "changing.json")] == [b'{"id":1}']


def test_a_file_that_cannot_be_read_stops_its_batch_until_it_is_left_out(workshop):
    workshop.deliver(TABLE, "broken.json.gz", gzip.compress(b"{}\n" * 1000)[:-8])
    workshop.deliver(TABLE, "sound.json", b"{}\n")
    name = f"{FEED}/readings/broken.json.gz"
    version = workshop.version(f"raw.{FEED}")
    with pytest.raises(CheckError, match=f"{name} cannot be read: .*highwater land --skip {name}") as caught:
        workshop.land(FEED)
    assert "Nothing of its batch has landed" in str(caught.value)
    assert workshop.version(f"raw.{FEED}") == version
    assert "left out, on record" in landing.skip(workshop.spark, declared_feeds(), name)
    assert workshop.land(FEED)[FEED].files == 1
    assert workshop.rows(f"select source_file from raw.{FEED} where entry = 'skipped'")[-1:] != []
    with pytest.raises(UsageError, match="is not waiting"):
        landing.skip(workshop.spark, declared_feeds(), name)


def test_a_file_that_grows_while_it_is_read_does_not_land(workshop, monkeypatch):
    workshop.deliver(TABLE, "growing.json", b"{}\n")
    honest = landing.look

    def listed_too_early(*asked):
        from dataclasses import replace

        found = honest(*asked)
        files = [replace(file, size=1) if "growing" in file.path else file for file in found.files]
        return replace(found, files=files)

    monkeypatch.setattr(landing, "look", listed_too_early)
    with pytest.raises(CheckError, match=r"1 bytes when it was listed and 3 when it was read"):
        workshop.land(FEED)
    monkeypatch.undo()
    assert workshop.land(FEED)[FEED].files == 1


def test_a_kill_before_the_commit_leaves_nothing_and_the_next_run_lands_it_once(workshop, monkeypatch):
    workshop.deliver(TABLE, "killed.json", [{"id": 1}])

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(landing, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        workshop.land(FEED)
    monkeypatch.undo()
    assert landed(workshop, "killed.json") == []
    for _ in range(2):
        workshop.land(FEED)
    assert len(landed(workshop, "killed.json")) == 1


@pytest.mark.long
def test_many_files_are_cut_into_batches(workshop, monkeypatch):
    monkeypatch.setattr(landing, "BATCH_FILES", 2)
    workshop.deliver(TABLE, "before-many.json", b"{}\n")
    workshop.land(FEED)
    for number in range(5):
        workshop.deliver(TABLE, f"many{number}.json", b"{}\n")
    before = workshop.value(f"select max(landing_batch) from raw.{FEED}")
    assert workshop.land(FEED)[FEED].files == 5
    assert workshop.value(f"select max(landing_batch) from raw.{FEED}") == before + 3


def test_what_cannot_be_read_stops_its_feed_alone_until_it_is_left_out(workshop, capsys):
    """As `highwater land` does it: the other feed lands, what is odd is named in words that --skip takes."""
    folder, feeds = workshop.landing / TABLE.replace(".", "/"), declared_feeds()
    other = workshop.deliver("datastream_cases.cases", "beside-odd.json", b"{}\n")
    sound = workshop.deliver(TABLE, "beside odd.json", b"{}\n")
    (folder / "pw $(id).json").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe\x1b[31m.json")
    with open(os.path.join(os.fsencode(folder), b"bad\xff.json"), "w"):
        pass
    failures = land_and_tell(workshop.spark, {name: feeds[name] for name in (FEED, "datastream_cases")}).failures
    said = "\n".join(failures).splitlines()
    assert "datastream_cases: 1 file" in capsys.readouterr().out and len(failures) == 1
    assert len(said) == 3 and not UNPRINTABLE.search("".join(said))
    assert f"{FEED}/readings/bad\\xff.json has a name that is no UTF-8" in said[0]
    assert f"{FEED}/readings/pipe\\x1b[31m.json is a pipe and no file" in said[1]
    assert f"{FEED}/readings/pw $(id).json is a link that leaves the landing folder, to /etc/passwd" in said[2]
    for line in said:
        *_, name = shlex.split(line.partition("on record with: ")[2])
        assert landing.skip(workshop.spark, feeds, name).startswith(f"{name} is left out, on record")
    assert workshop.land(FEED)[FEED].files == 1 and len(landed(workshop, "beside odd.json")) == 1
    assert workshop.rows(f"select * from raw.{FEED} where entry = 'record' and source_file like '%pw %'") == []
    sound.unlink()
    sound.symlink_to("/etc/passwd")  # what has landed is told too when it is replaced so
    with pytest.raises(CheckError, match=r"beside odd\.json is a link that leaves the landing folder"):
        workshop.land(FEED)
    for path in (other, sound, *folder.glob("p*.json")):
        path.unlink()
    os.unlink(os.path.join(os.fsencode(folder), b"bad\xff.json"))


def test_the_folder_of_a_feed_that_has_landed_is_missed(workshop, capsys):
    workshop.deliver("datastream_cases.cases", "before-gone.json", b"{}\n")
    workshop.land("datastream_cases")
    (workshop.landing / "datastream_cases").rename(workshop.landing / "_away")
    try:
        land_and_tell(workshop.spark, {"datastream_cases": declared_feeds()["datastream_cases"]})
    finally:
        (workshop.landing / "_away").rename(workshop.landing / "datastream_cases")
    assert "the folder datastream_cases/, of which files have landed, is not there any more" in capsys.readouterr().err
    land_and_tell(workshop.spark, {"datastream_cases": declared_feeds()["datastream_cases"]})
    assert "is not there any more" not in capsys.readouterr().err


def test_what_is_not_whole_or_not_called_so_waits_and_is_named(workshop, capsys, monkeypatch):
    """dms-csv-cut-while-downloading, the names: what each sentence says to do is done, and all lands."""
    feed = "dms_names"
    with declared(workshop, feed, "visits", format="dms-csv") as reading:
        folder = workshop.landing / feed / "visits"
        deliver = functools.partial(workshop.deliver, f"{feed}.visits")
        for name, content in {
            "LOAD00000001.csv": "1,a\n",
            "_SUCCESS": "",
            "1.csv.6E5fAbCd": "2,b and mo",
            "2.csv": "3,c\n4,d",
            "3.dat2": "5,e\n",
        }.items():
            deliver(name, content)

        def land() -> tuple[list[str], str]:
            found = land_and_tell(workshop.spark, {feed: declared_feeds()[feed]})
            assert not found.failures
            return found.changed, capsys.readouterr().err

        waiting, said = land()
        assert len(waiting) == 1 and waiting[0].startswith(f"{feed}/visits/2.csv is cut: it ends within a line")
        assert f"{feed}/visits/1.csv.6E5fAbCd (aws s3 writes it)" in said and "3.dat2. Rename it to end in .csv" in said
        assert "_SUCCESS" not in said
        waiting, said = land()
        assert len(waiting) == 1 and "6E5fAbCd" not in said and "3.dat2" in said
        subprocess.run(waiting[0].partition("last line (")[2].partition(")")[0], shell=True, check=True)
        assert land()[0] == []
        with monkeypatch.context() as patched:  # nothing is asked, and what waits is still named
            patched.setattr(landing, "entries_of_files", None)
            assert "3.dat2" in land()[1]
        (folder / "1.csv.6E5fAbCd").rename(folder / "1.csv")
        (folder / "1.csv").write_text("2,b and more\n")
        (folder / "3.dat2").rename(folder / "3.csv")
        deliver("4.dat2", "6,f\n")
        deliver("5.dat3", "7,g\n")
        assert "4.dat2" in land()[1]
        assert "left out, on record" in landing.skip(workshop.spark, declared_feeds(), f"{feed}/visits/5.dat3")
        path = workshop.folder / f"models/staging/{feed}/_{feed}__sources.yml"
        path.write_text(path.read_text().replace("format: dms-csv", "format: dms-csv\n        endings: [dat2]"))
        assert land() == ([], "")
        assert new_files.has_all_landed(declared_feeds()[feed])
    found = workshop.rows(f"select record from raw.{feed} where entry = 'record' order by 1")
    assert [bytes(record) for (record,) in found] == [
        b"1,a", b"2,b and more", b"3,c", b"4,d", b"5,e", b"6,f",
    ]  # fmt: skip
    assert reading.endings == ()


def test_names_that_look_like_sql_stay_names(workshop):
    name = "it's {{ 1/0 }} '); drop table x; --.json"
    workshop.deliver(TABLE, name, b"{}\n")
    workshop.land(FEED)
    files = [row[0] for row in workshop.rows(f"select source_file from raw.{FEED} where entry = 'file'")]
    assert f"{FEED}/readings/{name}" in files


def test_an_export_without_its_position_is_refused(workshop):
    path = workshop.deliver("exports_user1.table1", "second.csv", b"COL1,COL2\n", root=workshop.exports)
    (refused,) = workshop.land("exports_user1")["exports_user1"].refused
    assert "declares no position for second.csv" in refused
    path.unlink()


def test_the_position_of_an_export_is_kept(workshop):
    positions = workshop.rows("select source_position from raw.exports_user1 where entry = 'file'")
    assert len(positions) == 2 and all("/" in position for (position,) in positions)


def test_a_record_lands_with_a_build_to_its_verdict(workshop):
    workshop.deliver(TABLE, "end.json", [change("INSERT", "1", {"id": 4711, "s": "end"})])
    workshop.land_and_run(FEED, "+readings")
    assert workshop.rows("select s from readings where id = 4711") == [("end",)]


def test_tables_that_file_names_tell(workshop):
    feed = "tungsten_files"
    row, ordered = b'"I","1","1","2016-03-11 20:51:10.000","1"\n', f"{feed}/2016/my-shop-Orders"
    with declared(workshop, feed, "orders", format="tungsten-csv", dialect="mysql", layout="files", schema="my-shop"):
        workshop.deliver(feed, "2016/my-shop-Orders-commit_hour%3D2016-03-11-20-84900.csv.gz", gzip.compress(row * 2))
        workshop.deliver(feed, "2016/my-shop-Orders-84901.csv", row)
        workshop.deliver(feed, "other-orders-1.csv", row)
        workshop.deliver(feed, "odd.csv", row)
        workshop.deliver(feed, "_temporary/my-shop-orders-1.csv", row)
        broken = workshop.deliver(feed, "my-shop-orders-7.csv", gzip.compress(row)[:-8])
        with pytest.raises(CheckError, match=f"highwater land --skip {feed}/{broken.name}"):
            workshop.land(feed)
        landing.skip(workshop.spark, declared_feeds(), f"{feed}/{broken.name}")
        assert workshop.land(feed)[feed].records == 5
    files = [
        (f"{ordered}-84901.csv", "orders"),
        (f"{ordered}-commit_hour%3D2016-03-11-20-84900.csv.gz", "orders"),
        (f"{feed}/odd.csv", None),
        (f"{feed}/other-orders-1.csv", "other.orders"),
    ]
    assert entries(workshop, feed, "file") == [(name, None, table) for name, table in files]
    assert entries(workshop, feed, "skipped") == [(f"{feed}/{broken.name}", None, "orders")]
    lines = [(name, line, table) for name, table in files for line in range(1, 3 if name.endswith(".gz") else 2)]
    assert entries(workshop, feed, "record") == lines


def test_tables_that_records_tell(workshop):
    feed = "debezium_records"
    settings = {"format": "debezium-json", "connector": "postgresql", "layout": "records", "schema": "shop"}
    with declared(workshop, feed, "customers", **settings) as reading:
        sources = [{"schema": "shop", "table": "Customers"}, {"schema": "crm", "table": "customers"}]
        path = workshop.deliver(feed, "a/b.json", [*({"op": "c", "source": source} for source in sources), None])
        assert workshop.land(feed)[feed].records == 2  # a tombstone says nothing that the delete did not say
        assert feed_folders.undeclared_folders(reading) == []
    name = f"{feed}/a/{path.name}"
    assert entries(workshop, feed, "file") == [(name, None, None)]
    assert entries(workshop, feed, "record") == [(name, 1, "customers"), (name, 2, "crm.customers")]


def of_tables(*tables: str) -> list[dict]:
    named = [table.split(".") for table in tables]
    return [{"op": "c", "source": {"schema": schema, "table": table}} for schema, table in named]


MULTI = {"format": "debezium-json", "connector": "postgresql", "layout": "records"}


def tables_of(workshop, feed: str) -> dict[str, list[str]]:
    rows = workshop.rows(f"select source_file, source_table from raw.{feed} where entry = 'record' order by all")
    return {file.split("/")[1]: [table for name, table in rows if name == file] for file, _ in rows}


def test_a_second_table_of_one_name_keeps_its_own_name_however_the_files_are_read(workshop, capsys):
    feed = "debezium_schemas"
    with declared(workshop, feed, "orders", **MULTI) as reading:
        # side by side: each file knows its own first table only
        workshop.deliver(feed, "1.json", of_tables("public.orders", "public.Items"))
        workshop.deliver(feed, "2.json", of_tables("archive.orders", "public.orders", "archive.orders", "public.items"))
        land_and_tell(workshop.spark, {feed: reading})
        said = capsys.readouterr().err
        assert (
            f"warning: {feed}: records of the table 'orders' of the schema 'archive' are in unassigned_records, for "
            "'orders' of the schema 'public' has its name. Declare it with: "
            f"highwater add-table {feed}.archive_orders --source-table archive.orders\n"
        ) in said
        assert "items" not in said, "nobody has declared it"
        workshop.deliver(feed, "3.json", of_tables("archive.orders", "public.Orders", "public.items", "public.orders"))
        workshop.land(feed)
    assert tables_of(workshop, feed) == {
        "1.json": ["items", "orders"],
        "2.json": ['"public"."items"', "archive.orders", "archive.orders", "orders"],
        "3.json": ['"public"."Orders"', '"public"."items"', "archive.orders", "orders"],
    }


def test_names_of_tables_are_mended_after_a_kill(workshop, monkeypatch):
    feed = "debezium_killed"
    with declared(workshop, feed, "orders", **MULTI):
        workshop.deliver(feed, "1.json", of_tables("public.orders"))
        workshop.deliver(feed, "2.json", of_tables("archive.orders", "public.orders"))
        monkeypatch.setattr(table_names, "_rename", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            workshop.land(feed)
        assert tables_of(workshop, feed)["2.json"] == ["orders", "public.orders"], "the planted fault"
        monkeypatch.undo()
        workshop.deliver(feed, "3.json", of_tables("archive.orders"))
        workshop.land(feed)
    assert tables_of(workshop, feed) == {
        "1.json": ["orders"],
        "2.json": ["archive.orders", "orders"],
        "3.json": ["archive.orders"],
    }


def test_what_landed_before_names_were_kept_has_its_name(workshop):
    feed = "debezium_before"
    with declared(workshop, feed, "orders", **MULTI):
        workshop.deliver(feed, "1.json", of_tables("public.orders", "public.Items"))
        workshop.land(feed)
        workshop.spark.sql(f"update raw.{feed} set fields = null where entry = 'file'")
        for number in (2, 3):
            workshop.deliver(feed, f"{number}.json", of_tables("archive.orders", "public.items", "public.orders"))
            workshop.land(feed)
    expected = ['"public"."items"', "archive.orders", "orders"]
    assert tables_of(workshop, feed) == {"1.json": ["items", "orders"], "2.json": expected, "3.json": expected}


def test_tables_of_a_file_that_lands_again_have_their_names(workshop):
    feed = "debezium_taken_again"
    with declared(workshop, feed, "orders", **MULTI) as reading:
        workshop.deliver(feed, "1.json", of_tables("public.orders"))
        workshop.deliver(feed, "2.json", of_tables("archive.orders"))
        workshop.land(feed)
        workshop.deliver(feed, "2.json", of_tables("archive.orders", "public.orders"))
        batch = landing.land_again(workshop.spark, reading, [f"{feed}/2.json"])
        assert workshop.land(feed)[feed].changed == []
    assert tables_of(workshop, feed) == {
        "1.json": ["orders"], "2.json": ["archive.orders"], "2.json@2": ["archive.orders", "orders"],
    }  # fmt: skip
    assert workshop.value(f"select max(landing_batch) from raw.{feed} where entry = 'record'") == batch


def test_a_declared_folder_may_have_any_name(workshop):
    feed = "arcion_odd"
    path = workshop.folder / f"models/staging/{feed}/_{feed}__sources.yml"
    with declared(workshop, feed, "order_details", format="arcion-csv"):
        text = path.read_text().replace(
            "name: order_details", "name: order_details\n    config: {meta: {source_table: Order 'Details'}}"
        )
        path.write_text(text)
        workshop.deliver(feed, "Order 'Details'/one.csv", b"1,a\n")
        assert workshop.land(feed)[feed].records == 1
        assert feed_folders.undeclared_folders(declared_feeds()[feed]) == []
    assert entries(workshop, feed, "record") == [(f"{feed}/Order 'Details'/one.csv", 1, "Order 'Details'")]


def test_what_was_taken_off_a_record_and_what_is_wrong_with_one(workshop):
    feed = "debezium_wrapped"
    inner = '{"op":"c","after":{"n":1.10},"source":{}}'
    lines = [inner, f'{{"key":1,"value":{inner},"offset":1}}', '{"key":1,"value":null,"offset":2}', '{"op":}']
    with declared(workshop, feed, "orders", format="debezium-json", connector="mysql"):
        workshop.deliver(feed, "orders/one.json", "\n".join(lines))
        assert workshop.land(feed)[feed].records == 3
    found = workshop.rows(
        f"select source_line, cast(record as string), fields, problem from raw.{feed} where entry = 'record' order by 1"
    )
    assert found == [
        (1, lines[0], None, None),
        (2, lines[1], {"document": inner}, None),
        (4, lines[3], None, "malformed_record: character 7: found '}' where a value must stand"),
    ]


def test_parquet_files_land_with_their_size_and_hash(workshop):
    feed, written = "dms_parquet", io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"Op": ["I", "D"], "id": [1, 2]}), written)
    content = written.getvalue()
    with declared(workshop, feed, "orders", format="dms-parquet"):
        workshop.deliver(feed, "orders/LOAD00000001.parquet", content)
        broken = workshop.deliver(feed, "orders/LOAD00000002.parquet", content[:-1])
        with pytest.raises(CheckError, match=r"LOAD00000002.parquet cannot be read: it is no sound Parquet file"):
            workshop.land(feed)
        broken.unlink()
        assert workshop.land(feed)[feed].records == 2
    found = workshop.rows(
        f"select source_table, file_records, file_size, file_hash from raw.{feed} where entry = 'file'"
    )
    assert found == [("orders", 2, len(content), hashlib.sha256(content).hexdigest())]
    fields = workshop.rows(f"select fields, source_line from raw.{feed} where entry = 'record' order by source_line")
    assert fields == [({"Op": "I", "id": "1"}, 1), ({"Op": "D", "id": "2"}, 2)]


def test_folders_that_are_no_declared_table_are_named(workshop, capsys):
    feed = "arcion_folders"
    with declared(workshop, feed, "nation", format="arcion-csv") as reading:
        for folder in ("nation", "region", "_quarantine"):
            workshop.deliver(feed, f"{folder}/one.csv", b"1,a\n")
        land_and_tell(workshop.spark, {feed: reading})
    said = capsys.readouterr()
    assert said.out.startswith(f"{feed}: 1 file, 1 record")
    assert said.err == (
        f"warning: {feed}/region/ is no declared table of the feed; its files are not read. "
        f"Declare it with: highwater add-table {feed}.region\n"
    )


def test_records_of_several_tables_in_one_folder_are_told(workshop, capsys):
    feed = "debezium_one_folder"
    folders = {
        "orders": ["public.orders", "public.invoices"],
        "customers": ["public.customers", "archive.customers"],
        "items": ["public.items", "public.items"],
    }
    with declared(workshop, feed, *folders, format="debezium-json", connector="postgresql") as reading:
        for folder, tables in folders.items():
            workshop.deliver(feed, f"{folder}/one.json", [{**of, "after": {"id": 1}} for of in of_tables(*tables)])
        land_and_tell(workshop.spark, {feed: reading})
        told = capsys.readouterr().err
        land_and_tell(workshop.spark, {feed: reading})
    assert told == "".join(
        f"warning: {feed}.{folder}: its records name several tables ({names}), and the folder tells one: "
        "all become rows of it. Declare `layout: records` for the feed where they are several\n"
        for folder, names in [("customers", "archive.customers, public.customers"), ("orders", "invoices, orders")]
    )
    assert capsys.readouterr().err == "", "what has landed before is not told again"


def test_whether_all_files_have_landed_is_known_without_asking_spark(workshop):
    """`highwater check` names the next command by it."""
    feed = "debezium_all_landed"
    with declared(workshop, feed, "orders", format="debezium-json", connector="postgresql") as reading:
        assert new_files.has_all_landed(reading), "nothing is there to land"
        for name in ("one", "two"):
            workshop.deliver(feed, f"orders/{name}.json", [{**of_tables("public.orders")[0], "after": {"id": 1}}])
            assert not new_files.has_all_landed(reading)
            land_and_tell(workshop.spark, {feed: reading})
            assert new_files.has_all_landed(reading)


def feed_of(name: str, *tables: str, format="debezium-json", role="changes", layout="folders", **source_tables) -> Feed:
    return Feed(name, role, tables, layout, ReadOptions(format), source_tables=source_tables)


BEFORE, NEVER = (3, 1_700_000_000_000_000), (0, 0)


@pytest.mark.parametrize(
    "landed, told",
    [
        ([(feed_of("a_b", "t"), NEVER)], "a_b: no file has landed yet; deliver files into landing/a_b/t/"),
        ([(feed_of("a_b", "t", t="T"), NEVER)], "a_b: no file has landed yet; deliver files into landing/a_b/T/"),
        (
            [(feed_of("a_b", "t", "u"), NEVER), (feed_of("a_c", "t"), BEFORE)],
            "a_c: nothing new\na_b: no file has landed yet; deliver the files of each table into landing/a_b/<table>/",
        ),
        (
            [(feed_of("a_b", "t", "u", layout="records"), NEVER)],
            "a_b: no file has landed yet; deliver files into landing/a_b/",
        ),
        (
            [(feed_of("a_b", "t"), NEVER), (feed_of("a_c", "t"), NEVER)],
            "a_b, a_c: no file has landed yet; deliver their files into landing/<feed>/",
        ),
        # an export may never come, and a changelog is extracted
        ([(feed_of("a_b", "t", format="csv", role="export"), NEVER)], "a_b: nothing new"),
        ([(feed_of("a_b", "t", format="changelog"), NEVER)], ""),
        ([(feed_of("a_b", "t"), BEFORE)], "a_b: nothing new"),
    ],
)
def test_a_feed_of_which_nothing_has_ever_landed_is_told_where_its_files_go(
    tmp_path, monkeypatch, capsys, landed, told
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HIGHWATER_LANDING", raising=False)
    results = [(feed, landing.Landed(feed.name, newest=newest)) for feed, newest in landed]
    monkeypatch.setattr("highwater.builds.landing_report.land_all", lambda spark, feeds: (result for result in results))
    newest = land_and_tell(None, {feed.name: feed for feed, _ in landed}).newest
    assert newest == {feed.name: newest for feed, newest in landed}
    assert capsys.readouterr().out.strip() == told


def test_the_end_of_a_build_says_that_nothing_has_landed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HIGHWATER_LANDING", raising=False)
    every = [feed_of("a_b", "t", t="T"), feed_of("a_c", "t", format="changelog"), feed_of("a_d", "t", role="export")]
    empty, nothing = "Nothing has landed yet, so every table is empty. ", dict.fromkeys(("a_b", "a_c", "a_d"), NEVER)
    assert all_empty(every, nothing) == [f"{empty}For a_b, deliver files into landing/a_b/T/; then: highwater build"]
    (extracted,) = all_empty([every[1]], nothing)
    assert extracted.startswith(f"{empty}Land it with highwater extract")
    assert all_empty(every, nothing | {"a_d": BEFORE}) == all_empty(every, nothing), "exports fill no table"
    for feed in ("a_b", "a_c"):
        assert all_empty(every, nothing | {feed: BEFORE}) == []
    assert all_empty([every[2]], nothing) == all_empty([], {}) == []
