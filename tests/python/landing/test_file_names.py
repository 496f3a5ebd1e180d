"""What files are called: those that land, those that are still written, and those that nobody knows. Without Spark."""

import dataclasses
import hashlib

import pytest
from highwater.catalog.feeds import Feed, feed_of_settings
from highwater.formats.formats import FORMATS, ReadOptions
from highwater.landing import feed_folders, new_files
from highwater.landing.deliveries import cut_in_words, left_in_words, odd_in_words
from highwater.landing.file_names import is_called_so, is_whole_beside, left_alone
from highwater.landing.landings import landed_before_whole, left_for_the_first_time
from highwater.landing.whole import begun_before
from highwater.runtime.errors import UsageError
from repository import PROJECT

UUID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
# names that producers and exports have, by format
DELIVERED = {
    "dms-csv": ["LOAD00000001.csv", "LOAD0000000A.csv.gz", "20260103-000500456.csv"],
    "tungsten-csv": ["shop-items-7.csv", "shop-items-commit_hour%3D2016-03-11-21-84916.csv.gz"],
    "arcion-csv": ["suppliers_2.csv.gz", "suppliers_snapshot.csv"],
    "csv": [
        "orders 2026.csv",
        "Orders.CSV",
        "t.txt",
        "t.tsv",
        "0000_part_00",
        "0000_part_00.bz2",
        "orders.csv.20260103",
    ],
    "datastream-json": [
        "invoices-000000000000.json",
        "invoices-000000000000",
        "invoices-000000000000.gz",
        "orders (1).json",
    ],
    "datastream-gcs-json": ["9c2f_mysql-cdc-binlog_3_0_0.jsonl", "9c2f_mysql-cdc-binlog_2_0_1.jsonl.gz"],
    "datastream-avro": ["77b0_postgresql-cdc_2_0_1.avro"],
    "debezium-json": [
        "erp+0+0000000020.json",
        "bank.public.parcels-0-1.jsonl",
        "bank.public.parcels-0-1",
        "bank.public.parcels-0-1.gz",
        "shop.orders+0+12.json.zst",
        "events.ndjson.snappy",
        "topic+0+0000000000.bin",
        f"my.stream-1-2026-01-03-00-05-04-{UUID}",
        "part-0-17",
        f"part-{UUID}-0",
        "1234-uuid.log.gz",
        "server.public.keys.json",
        "orders.pending.json",
        "x.tmp.json",
        "-rf",
    ],
    "parquet": ["e.parquet", f"part-00000-{UUID}-c000.snappy.parquet"],
}
# names of what tools have not written to the end, and whose they are
UNFINISHED = {
    "x.csv.6E5fAbCd": "aws s3",
    "x.csv.gz.6E5fAbCd": "aws s3",
    "invoices-000000000000.0aFf3B2c": "aws s3",
    "x.csv1482910355": "s5cmd",
    "x.csv.gz1482910355": "s5cmd",
    "x.csv_.gstmp": "gcloud storage or gsutil",
    "x.csv.gz_.gztmp": "gcloud storage or gsutil",
    "x.csv.partial": "rclone",
    "x.csv.1a2b3c4d.partial": "rclone",
    f".azDownload-{UUID}-x.csv": "azcopy",
    "x.csv.d41d8cd98f00b204e9800998ecf8427e.part.minio": "mc",
    ".x.csv.AbC123": "rsync",
    ".~tmp~": "rsync",
    "x.csv.crdownload": "a browser",
    "Unconfirmed 123456.crdownload": "a browser",
    "x.csv.part": "a browser",
    "x.csv.download": "a browser",
    "x.csv.filepart": "WinSCP",
    "x.csv._COPYING_": "hdfs dfs -put",
    "_temporary": "a job of Spark or Hadoop",
    f".part-0-0.inprogress.{UUID}": "a job of Flink or Spark",
    "part-0-0.pending": "a job of Flink or Spark",
    "_part-0-0.in-progress": "a job of Flink or Spark",
    ".~lock.x.csv#": "an editor",
    "x.csv~": "an editor",
    "x.csv.tmp": None,
    "x.csv.unfinished": None,
    "_x.csv": None,
    ".hidden": None,
}
KNOWN = [
    "_SUCCESS",
    "_committed_7012",
    "_started_7012",
    ".part-00000.csv.crc",
    ".DS_Store",
    "Thumbs.db",
    "._x.csv",
    "unload_manifest",
    "x.manifest",
    "topic+0+0000000020.keys.json",
    "topic+0+0000000020.headers.json.gz",
    "topic+0+0000000020.keys.avro",
    "_exports.yml",
    "_orders-20260301T101500.csv.parts.json",
]
ODD = {"x.csv.1": "Rename", "x.csv.bak": "Rename", "x.dat2": "Rename", "x.csv.zip": "Unpack", "x.xlsx": "Unpack"}


@pytest.mark.parametrize("format, name", [(format, name) for format, names in DELIVERED.items() for name in names])
def test_what_producers_call_their_files_lands(format, name):
    assert left_alone(name, False, format) is None and is_called_so(name, format)


def test_every_file_of_the_examples_is_called_so():
    from highwater.catalog.feeds import declared_feeds

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PROJECT)
        feeds = declared_feeds()
    found = [path for path in (PROJECT / "examples/landing").rglob("*") if path.is_file()]
    for path in found:
        format = feeds[path.relative_to(PROJECT / "examples/landing").parts[0]].format
        assert left_alone(path.name, False, format) is None and is_called_so(path.name, format), path
    assert len(found) > 40


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", UNFINISHED)
def test_what_a_tool_has_not_written_to_the_end_is_known_by_its_name(name, format):
    if FORMATS[format].is_delivered:
        words = f"{UNFINISHED[name]} writes it" if UNFINISHED[name] else "a name for what is still written"
        assert left_alone(name, name in ("_temporary", ".~tmp~"), format) == words


@pytest.mark.parametrize("name", KNOWN)
def test_marks_beside_data_are_passed_over(name):
    assert left_alone(name, False, "debezium-json") == left_alone(name, False, "dms-csv") == ""


@pytest.mark.parametrize("name", ODD)
def test_what_nobody_calls_so_is_told_with_what_to_do(name):
    feed = Feed("dms_shop", "changes", ("orders",), "folders", ReadOptions("dms-csv"))
    assert left_alone(name, False, "dms-csv") is None and not is_called_so(name, "dms-csv")
    (told,) = odd_in_words(feed, [f"dms_shop/orders/{name}"])
    assert f"dms_shop/orders/{name}. {ODD[name]} it" in told and f"highwater land --skip dms_shop/orders/{name}" in told
    assert (f"`endings: [{name.rpartition('.')[2]}]`" in told) == (ODD[name] == "Rename"), "no ending makes it text"
    assert is_called_so(name, "dms-csv", (name.rpartition(".")[2],)), "as it is declared then"


def test_folders_may_be_called_as_one_likes():
    for name in (
        "2026.01.03",
        "a.b",
        "x.6E5fAbCd",
        "commit_hour=2026-03-11-21",
        "v1.12345678",
        "shop.manifest",
        "manifest",
    ):
        assert left_alone(name, True, "dms-csv") is None
    assert left_alone("_delta_log", True, "parquet") == left_alone("lost+found", True, "parquet") == ""
    for name in ("_temporary", ".hive-staging_1", "x.inprogress", "x.csv.download"):
        assert left_alone(name, True, "dms-csv")


def test_endings_are_a_list_of_words():
    declared = feed_of_settings("x.yml", "dms_a", {"format": "dms-csv", "endings": [".dat2", "out7"]}, {"t": "t"})
    assert declared.endings == ("dat2", "out7")
    with pytest.raises(UsageError, match="endings is 'dat2'; it must be a list of endings"):
        feed_of_settings("x.yml", "dms_a", {"format": "dms-csv", "endings": "dat2"}, {"t": "t"})
    with pytest.raises(UsageError, match="unknown setting 'endings'"):
        feed_of_settings("x.yml", "a_b", {"format": "changelog", "endings": ["dat2"]}, {"t": "t"})


@pytest.fixture
def visits(tmp_path, monkeypatch):
    """A feed of DMS's CSV and the folder of its table, in a lake of its own."""
    monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path / "landing"))
    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path / "lake"))
    folder = tmp_path / "landing/dms_dates/visits"
    folder.mkdir(parents=True)
    return Feed("dms_dates", "changes", ("visits",), "folders", ReadOptions("dms-csv")), folder


def test_what_is_left_alone_is_named_once(visits):
    feed, folder = visits
    (folder / "a.csv").write_text("1,x\n")
    (folder / "_SUCCESS").write_text("")
    (folder / "b.csv.6E5fAbCd").write_text("2,")
    (folder / "_temporary").mkdir()
    (folder / "_temporary/0.csv").write_text("3,z\n")
    found = feed_folders.look(feed)
    assert [file.source_file for file in found.files] == ["dms_dates/visits/a.csv"] and found.odd == []
    names = {
        "dms_dates/visits/_temporary": "a job of Spark or Hadoop writes it",
        "dms_dates/visits/b.csv.6E5fAbCd": "aws s3 writes it",
    }
    assert left_for_the_first_time(feed, found.left) == names == found.left
    assert "b.csv.6E5fAbCd (aws s3 writes it)" in left_in_words(feed, names)
    assert left_for_the_first_time(feed, found.left) == {}
    (folder / "b.csv.6E5fAbCd").rename(folder / "b.csv")
    (folder / "c.csv.partial").write_text("")
    assert [*left_for_the_first_time(feed, feed_folders.look(feed).left)] == ["dms_dates/visits/c.csv.partial"]
    (folder / "b.csv.6E5fAbCd").write_text("2,")  # and again, later
    assert [*left_for_the_first_time(feed, feed_folders.look(feed).left)] == ["dms_dates/visits/b.csv.6E5fAbCd"]


CUT = {"cut": b"1,a\n2,b", "one value": b"1"}
WHOLE = {
    "lines": b"1,a\n2,b\n",
    "CRLF": b"1,a\r\n",
    "empty": b"",
    "gzip": b"\x1f\x8b\x08whatever",
    "zip": b"PK\x03\x04x",
}


def test_a_last_line_without_its_end_was_cut(visits):
    feed, folder = visits
    for name, content in {**CUT, **WHOLE}.items():
        (folder / f"{name}.csv").write_bytes(content)
    (folder / "odd.dat2").write_bytes(b"1,a\n")
    found = feed_folders.look(feed)
    odd, cut = new_files.waiting_files(feed, found)
    assert odd == ["dms_dates/visits/odd.dat2"]
    assert sorted(cut) == sorted(f"dms_dates/visits/{name}.csv" for name in CUT)
    assert f"echo >> '{folder}/one value.csv'" in cut_in_words(feed, "dms_dates/visits/one value.csv")
    for other in ("csv", "debezium-json"):  # written by anybody; a document ends by itself
        assert new_files.waiting_files(dataclasses.replace(feed, options=ReadOptions(other)), found)[1] == []


def test_what_begins_as_a_file_that_is_gone_is_found(visits):
    feed, folder = visits
    content = b"4,jan2 bis\n5,jan3 and more\n"
    (folder / "1.csv").write_bytes(content)
    (folder / "2.csv").write_bytes(content)
    files = feed_folders.look(feed).files
    beginning = hashlib.sha256(content[:20]).hexdigest()
    begins = ["1.csv.6E5fAbCd", "1.csv123456789", "1.csv_.gstmp", "1.csv.ab12cd34.partial", "1.csv.download"]
    others = ["1.csv", "x1.csv.6E5fAbCd", "deeper/1.csv.6E5fAbCd", "1.cs.6E5fAbCd"]
    gone = [(f"dms_dates/visits/{name}", 20, beginning) for name in [*begins, *others]]
    gone += [("dms_dates/visits/2.csv.6E5fAbCd", 20, "another"), ("dms_dates/visits/2.csv.part", 0, "nothing")]
    gone += [("dms_dates/visits/2.csv.partial", len(content), hashlib.sha256(content).hexdigest())]
    found = [*begun_before(feed.root, files, gone)]
    assert [(file.source_file, name) for file, name in found] == [
        ("dms_dates/visits/1.csv", f"dms_dates/visits/{name}") for name in begins
    ]
    pairs = [(file.source_file, name) for file, name in found]
    assert landed_before_whole(feed, pairs[:1]) == pairs[:1] == landed_before_whole(feed, []), "until it is declared"
    declared = dataclasses.replace(
        feed, settings={"epochs": [{"when": f"source_file = '{pairs[0][1]}'", "ignore": True}]}
    )
    assert landed_before_whole(declared, []) == [] == landed_before_whole(feed, [])


@pytest.mark.parametrize(
    "name, is_there",
    [
        ("t/1.csv.6E5fAbCd", True),
        ("t/.1.csv.Ab12Cd", True),
        ("t/1.csv_.gstmp", True),
        ("t/2.csv.6E5fAbCd", False),
        ("u/1.csv.6E5fAbCd", False),
        # of another file, whose name begins with one that is there
        ("t/part-10.csv.6E5fAbCd", False),
        ("t/part-1.csv.6E5fAbCd", False),
        ("t/1.csv.gz.6E5fAbCd", False),
    ],
)
def test_a_download_whose_whole_file_is_there_is_over(name, is_there):
    assert is_whole_beside(name, {"t/1.csv", "t/11.csv", "t/part-1"}) == is_there
