"""Landing: every file and every record exactly once, and a clear word about the files that cannot land."""

import gzip
import os

import pytest
from highwater import landing
from highwater.errors import CheckError, UsageError
from highwater.feeds import declared_feeds
from workshop import change

TABLE, FEED = "datastream_types.readings", "datastream_types"


def landed(workshop, name):
    return workshop.rows(
        f"select source_line, record, landing_batch from raw.{FEED} "
        f"where source_file = '{FEED}/readings/{name}' and entry = 'record' order by source_line"
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


@pytest.mark.parametrize(
    "name", ["_part.json", ".part.json", "part.json.tmp", "part.inprogress", "_temporary/part.json"]
)
def test_files_under_way_are_left_alone(workshop, name):
    path = workshop.deliver(TABLE, name, b"{}\n")
    assert workshop.land(FEED)[FEED].files == 0
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

    monkeypatch.setattr(landing, "datetime", Yesterday)
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
    honest = landing.delivered_files

    def listed_too_early(feed):
        from dataclasses import replace

        return [replace(file, size=1) if "growing" in file.path else file for file in honest(feed)]

    monkeypatch.setattr(landing, "delivered_files", listed_too_early)
    with pytest.raises(CheckError, match=r"1 bytes when it was listed and 3 when it was read"):
        workshop.land(FEED)
    monkeypatch.undo()
    assert workshop.land(FEED)[FEED].files == 1


def test_a_kill_before_the_commit_leaves_nothing_and_the_next_run_lands_it_once(workshop, monkeypatch):
    workshop.deliver(TABLE, "killed.json", [{"id": 1}])

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(landing, "_append", killed)
    with pytest.raises(KeyboardInterrupt):
        workshop.land(FEED)
    monkeypatch.undo()
    assert landed(workshop, "killed.json") == []
    for _ in range(2):
        workshop.land(FEED)
    assert len(landed(workshop, "killed.json")) == 1


def test_many_files_are_cut_into_batches(workshop, monkeypatch):
    monkeypatch.setattr(landing, "BATCH_FILES", 2)
    for number in range(5):
        workshop.deliver(TABLE, f"many{number}.json", b"{}\n")
    before = workshop.value(f"select max(landing_batch) from raw.{FEED}")
    assert workshop.land(FEED)[FEED].files == 5
    assert workshop.value(f"select max(landing_batch) from raw.{FEED}") == before + 3


def test_names_that_look_like_sql_stay_names(workshop):
    name = "it's {{ 1/0 }} '); drop table x; --.json"
    workshop.deliver(TABLE, name, b"{}\n")
    workshop.land(FEED)
    files = [row[0] for row in workshop.rows(f"select source_file from raw.{FEED} where entry = 'file'")]
    assert f"{FEED}/readings/{name}" in files


def test_an_export_without_its_position_is_refused(workshop):
    path = workshop.deliver("exports_user1.table1", "second.csv", b"COL1,COL2\n", root=workshop.exports)
    with pytest.raises(UsageError, match="declares no position"):
        workshop.land("exports_user1")
    path.unlink()


def test_the_position_of_an_export_is_kept(workshop):
    positions = workshop.rows("select source_position from raw.exports_user1 where entry = 'file'")
    assert len(positions) == 2 and all("/" in position for (position,) in positions)


def test_a_record_lands_with_a_build_to_its_verdict(workshop):
    workshop.deliver(TABLE, "end.json", [change("INSERT", "1", {"id": 4711, "s": "end"})])
    workshop.land_and_run(FEED, "+readings")
    assert workshop.rows("select s from readings where id = 4711") == [("end",)]
