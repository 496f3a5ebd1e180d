"""What is new among thousands of files that have landed, found on columns, is what a plain look at each would find."""

import hashlib
import json
import os
import random
import re
from datetime import datetime, timedelta, timezone

import pyarrow
import pytest
from highwater.catalog.feeds import Feed
from highwater.formats.formats import ReadOptions
from highwater.landing import landing, new_files
from highwater.landing.file_entries import COLUMNS, FileEntries
from highwater.landing.listing import DeliveredFile
from highwater.landing.raw_table import create_raw_table, entries_of_files

EPOCH = datetime.fromtimestamp(0, timezone.utc)
# as `begun_before` has it: where what a tool adds to a name may begin
ADDED = re.compile(r"(?<!^)[._]|\d+\Z")


def random_case(seed: int) -> tuple[list[dict], list[DeliveredFile]]:
    """Entries of a few names in a random order, most of them several times, and files that may be them."""
    pick = random.Random(seed)
    endings = ["", ".csv", ".csv.9", "_x", ".csv.1_2", "77"]
    some = [
        f"f/t/{pick.choice('abé漢')}{number}{pick.choice(endings)}" for number in range(pick.choice([0, 1, 5, 300]))
    ]
    names = list(dict.fromkeys([*some, "f/t/a1", "f/t/a1.csv"]))
    fields = [None, '{"a":"1"}', '{"a":"1","b":"2"}']
    entries = [
        {
            "entry": pick.choice(["file", "file", "skipped"]), "source_file": name, "landing_batch": batch,
            "file_size": pick.randrange(3), "modified": pick.randrange(3), "file_hash": pick.choice(["h", None]),
            "landed": batch * 10, "source_position": None, "fields": pick.choice(fields),
        }
        for batch in range(1, pick.choice([1, 3, 9]))
        for name in pick.sample(names, pick.randrange(len(names)))
    ]  # fmt: skip
    if pick.random() < 0.3:
        entries.append(
            dict.fromkeys(COLUMNS.names) | {"entry": "replayed", "landing_batch": 50, "landed": 5, "source_file": None}
        )
    pick.shuffle(entries)
    files = [
        DeliveredFile(
            name, name, "t", pick.randrange(3), EPOCH + timedelta(microseconds=pick.randrange(3)),
            problem=pick.choice([*[None] * 9, "is a pipe"]),
        )
        for name in pick.sample(names, pick.randrange(len(names) + 1))
    ]  # fmt: skip
    return entries, files


def compare(entries: list[dict], files: list[DeliveredFile]) -> None:
    """Compare what the columns tell with what loops over the entries do."""
    found = FileEntries(pyarrow.Table.from_pylist(entries, COLUMNS))
    in_order = sorted(entries, key=lambda entry: (entry["landing_batch"], entry["source_file"] or ""))
    known = {entry["source_file"]: entry for entry in in_order}

    def told(entry):
        return entry and entry | {"fields": json.loads(entry["fields"] or "null")}

    def is_as_landed(file) -> bool:
        entry = known.get(file.source_file)
        modified = (file.modified_at - EPOCH) // timedelta(microseconds=1)
        return entry is not None and (entry["file_size"], entry["modified"]) == (file.size, modified)

    differing = [file for file in files if file.problem or not is_as_landed(file)]
    assert [*found.differing(files)] == [(file, told(known.get(file.source_file))) for file in differing]
    newest = max(((entry["landing_batch"], entry["landed"]) for entry in entries), default=(0, 0))
    assert (bool(found), found.newest) == (bool(entries), newest)
    there, whole = [file.source_file for file in files], [file.source_file for file in files if not file.problem]
    gone = [name for name, entry in known.items() if name and name not in there and entry["entry"] == "file"]
    asked = {entry["source_file"] for entry in found.gone(there, whole)}
    assert asked <= set(gone)
    for name in set(gone) - asked:
        last = name.rpartition("/")[2]
        assert not {f"f/t/{last[: mark.start()]}" for mark in ADDED.finditer(last)} & set(whole)
    names = there[:5]
    assert found.of(names) == {name: told(known[name]) for name in names if name in known}
    assert sorted(found.called("f/t/a1")) == sorted(name for name in known if name and name.startswith("f/t/a1"))
    landed = [entry for entry in in_order if entry["entry"] == "file" and entry["fields"]]
    assert found.has_files == any(entry["entry"] == "file" for entry in entries)
    assert found.fields() == [json.loads(fields) for fields in dict.fromkeys(entry["fields"] for entry in landed)]
    before = [entry["fields"] for entry in landed if entry["landing_batch"] < 3]
    assert found.fields(before=3) == [json.loads(fields) for fields in dict.fromkeys(before)]
    of_batch = [(entry["source_file"], entry["fields"]) for entry in found.of_batch(2)]
    landed_then = [entry for entry in landed if entry["landing_batch"] == 2]
    assert of_batch == [(entry["source_file"], json.loads(entry["fields"])) for entry in landed_then]


def test_columns_tell_what_a_look_at_every_entry_would():
    for seed in range(200):
        compare(*random_case(seed))


def test_the_comparison_notices_the_oldest_entry_in_place_of_the_newest(monkeypatch):
    """The negative control."""
    honest = FileEntries.__init__

    def oldest_first(self, table):
        honest(self, table)
        self._newest_first = self._newest_first.sort_by("landing_batch")

    monkeypatch.setattr(FileEntries, "__init__", oldest_first)
    with pytest.raises(AssertionError):
        for seed in range(200):
            compare(*random_case(seed))


ENTRIES = """
    insert into raw.{feed} by name
    select
        if(id % 100 = 99, 'skipped', 'file') as entry,
        concat('{feed}/events/', id div 1000, '/part-', id, '.json') as source_file,
        1L + id div 500 as landing_batch,
        timestamp_seconds(1700000000 + id div 500) as landed_at,
        0L as file_records,
        3L as file_size,
        timestamp_seconds(1600000000) as file_modified_at,
        '{digest}' as file_hash
    from range(4000)
"""


def test_what_is_new_among_thousands_lands(workshop):
    """New, changed in size, changed in content alone, touched, gone, left out: each is what it was when it was one."""
    name, spark = "datastream_thousands", workshop.spark
    feed = Feed(name, "changes", ("events",), "folders", ReadOptions("datastream-json"))
    create_raw_table(spark, feed)
    spark.sql(ENTRIES.format(feed=name, digest=hashlib.sha256(b"{}\n").hexdigest()))
    folder = workshop.landing / name / "events"
    for number in range(4000):
        path = folder / f"{number // 1000}/part-{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}\n")
        os.utime(path, (1600000000, 1600000000))
    assert landing.land(spark, feed).files == 0
    pick, expected = random.Random(1), {"new": [], "changed": []}
    for number in pick.sample(range(4000), 400):
        path, below = folder / f"{number // 1000}/part-{number}.json", f"{number // 1000}/part-{number}.json"
        match pick.choice(["new", "size", "content", "touched", "gone"]):
            case "new":
                (path.parent / f"new-{number}.json").write_bytes(b"{}\n")
                expected["new"].append(f"{name}/events/{number // 1000}/new-{number}.json")
            case "size":
                path.write_bytes(b"{}\n{}\n")
                expected["changed"].append(f"{name}/events/{below}")
            case "content":
                path.write_bytes(b"[]\n")
                expected["changed"].append(f"{name}/events/{below}")
            case "touched":
                path.touch()
            case "gone":
                path.unlink()
    waits = new_files.what_waits(spark, feed)
    assert sorted(file.source_file for file in waits.new) == sorted(expected["new"])
    assert sorted(file.source_file for file in waits.changed) == sorted(expected["changed"])
    result = landing.land(spark, feed)
    assert result.files == result.records == len(expected["new"]) and result.newest[0] == 9
    assert sorted(result.changed) == sorted(expected["changed"])
    assert landing.skip(spark, {name: feed}, expected["changed"][0]).startswith(expected["changed"][0])
    assert len(landing.land(spark, feed).changed) == len(expected["changed"]) - 1
    # what landed first is known by its number
    again = expected["new"][0]
    assert landing.land_again(spark, feed, [again]) == 11
    assert landing.land_again(spark, feed, [again]) == 12
    called = entries_of_files(spark, feed).called(again)
    assert sorted(called) == [again, f"{again}@2", f"{again}@3"]
    # a beginning that landed before, and is gone
    path = folder / "0/log"
    (folder / "0/log.tmp.json").write_bytes(b"{}\n")
    landing.land(spark, feed)
    (folder / "0/log.tmp.json").unlink()
    path.write_bytes(b"{}\n{}\n")
    assert (f"{name}/events/0/log", f"{name}/events/0/log.tmp.json") in landing.land(spark, feed).begun
