"""Folders in which a producer delivers by time: old ones are listed once in a day, and nothing is ever lost by that."""

import itertools
import json
import os
import random
from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest
from highwater.catalog.feeds import Feed, feed_of_settings
from highwater.formats.formats import ReadOptions
from highwater.landing import feed_folders, landing, listing, new_files, partitions
from highwater.landing.new_files import digest_of_listing, has_all_landed
from highwater.landing.partitions import NOTHING, next_passed_over, noted, numbers_of, read_note
from highwater.runtime.errors import UsageError

BY_HOUR = "%Y/%m/%d/%H"
NOW = datetime(2026, 3, 10, 12, tzinfo=timezone.utc)


def feed_called(name: str, pattern: str | None = BY_HOUR, *tables: str) -> Feed:
    options = ReadOptions("datastream-json")
    return Feed(name, "changes", tables or ("events",), "folders", options, partitions=pattern)


@pytest.mark.parametrize(
    "pattern, folders, numbers",
    [
        (BY_HOUR, "2026/03/10/07", (2026, 3, 10, 7)),
        (BY_HOUR, "2026/03/10/07/42", (2026, 3, 10, 7)),
        (BY_HOUR, "2026/03", (2026, 3)),
        (BY_HOUR, "2026/3/10", (2026,)),
        (BY_HOUR, "2026/02/30/07", (2026, 2)),
        (BY_HOUR, "2026/13/10", (2026,)),
        (BY_HOUR, "backfill/2026/03", ()),
        ("year=%Y/month=%m/day=%d", "year=2026/month=03/day=10", (2026, 3, 10)),
        ("year=%Y/month=%m/day=%d", "2026/03/10", ()),
        ("dt=%Y-%m-%d", "dt=2026-03-10", (2026, 3, 10)),
        ("data.v1/%Y%m", "data.v1/202603", (2026, 3)),
        ("data.v1/%Y%m", "dataxv1/202603", ()),
    ],
)
def test_folders_tell_times(pattern, folders, numbers):
    assert numbers_of(pattern, tuple(folders.split("/"))) == numbers


@pytest.mark.parametrize(
    "value", ["%H/%Y", "%Y/%d", "%m/%d", "%Y//%m", "/%Y", "%Y/", "%Y/%M", "%Y/%m/%d/%H/%M", "daily", "", 7, ["%Y"]]
)
def test_other_partitions_are_refused(value):
    settings = {"format": "datastream-json", "partitions": value}
    with pytest.raises(UsageError, match=r"x.yml line 3: partitions is .*; it must be the folders by time .*%Y/%m/%d"):
        feed_of_settings("x.yml line 3", "feed", settings, {"events": "events"})


def test_partitions_of_exports_are_refused():
    settings = {"format": "csv", "role": "export", "partitions": "%Y"}
    with pytest.raises(UsageError, match="partitions is '%Y', but exports are listed whole; take it out"):
        feed_of_settings("x.yml line 3", "feed", settings, {"events": "events"})


@pytest.fixture(params=["folder", "s3"])
def store(request, tmp_path, monkeypatch):
    """What delivers a file, by its name below the landing folder, into a folder and into a bucket."""
    if request.param == "folder":
        monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path / "landing"))

        def deliver(name: str) -> None:
            (tmp_path / "landing" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "landing" / name).write_text("{}\n")

        yield deliver
        return
    from s3 import BUCKET, serving

    with serving() as server:
        monkeypatch.setenv("HIGHWATER_LANDING", f"s3://{BUCKET}/landing?endpoint_override=127.0.0.1:{server.port}")
        for name, value in {
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HIGHWATER_LANDING", f"s3://{BUCKET}/landing")
        yield lambda name: server.put(f"landing/{name}", "{}\n")


def names(delivered) -> list[str]:
    return [file.source_file.removeprefix("datastream_hours/events/") for file in delivered.files]


def test_old_folders_are_passed_over_and_all_others_listed(store):
    """The first listing is of everything; so is what no folder tells a time of, and a table that comes later."""
    feed = feed_called("datastream_hours")
    old = ["2025/12/31/23/a.json", "2026/03/01/00/b.json", "2026/03/08/10/c.json", "2026/03/08/10/deep/d.json"]
    recent = ["2026/03/08/11/e.json", "2026/03/10/11/f.json", "2026/x/g.json", "2026/h.json", "i.json", "old/j.json"]
    for name in [*old, *recent]:
        store(f"datastream_hours/events/{name}")
    whole = feed_folders.look(feed)
    assert sorted(names(whole)) == sorted([*old, *recent])
    folders = ["datastream_hours/events"]
    found = next_passed_over(feed, folders, whole.listed, NOTHING, NOW)
    assert found.before == {"datastream_hours/events": (2026, 3, 8, 11)}
    found = read_note(feed, folders, json.loads(json.dumps(noted(feed, found))), NOW + timedelta(hours=1))
    part = feed_folders.look(feed, found)
    assert sorted(names(part)) == sorted(recent)
    assert digest_of_listing(feed, part) == digest_of_listing(feed, whole)
    # later: a day on, with a new file and one that comes late
    store("datastream_hours/events/2026/03/12/00/k.json")
    store("datastream_hours/events/2026/03/08/10/late.json")
    part = feed_folders.look(feed, found)
    assert sorted(names(part)) == sorted([*recent, "2026/03/12/00/k.json"])
    later = next_passed_over(feed, folders, part.listed, part.passed_over, NOW + timedelta(days=2))
    assert later.before == {"datastream_hours/events": (2026, 3, 10, 0)}
    assert "2026/03/08/11/e.json" not in names(feed_folders.look(feed, later))
    assert digest_of_listing(feed, feed_folders.look(feed, later)) == digest_of_listing(feed, part)
    assert digest_of_listing(feed, feed_folders.look(feed)) != digest_of_listing(feed, part), "the late one"
    other = feed_called("datastream_hours", BY_HOUR, "events", "others")
    store("datastream_hours/others/2020/01/01/00/l.json")
    assert read_note(other, feed_folders.folders_of_tables(other), noted(feed, later), NOW) is NOTHING


@pytest.mark.parametrize("pattern", [BY_HOUR, "%Y/%m", "y=%Y/m=%m/d=%d", "%Y-%m-%d/%H"])
def test_a_part_and_the_rest_are_the_whole(tmp_path, monkeypatch, pattern):
    """Random files, and random days on which some come and all that is listed lands."""
    monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path))
    pick, feed, folders = random.Random(pattern), feed_called("f", pattern), ["f/events"]

    def deliver(at: datetime, number: int) -> None:
        path = tmp_path / "f/events" / pick.choice([at.strftime(pattern), at.strftime(pattern), "none", "2026/99"])
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{number}.json").write_text("{}\n")

    now, found, count = NOW - timedelta(days=90), NOTHING, itertools.count()
    for _ in range(40):
        for _ in range(pick.randrange(12)):
            deliver(now - timedelta(hours=pick.randrange(1) if found.before else pick.randrange(2000)), next(count))
        part, whole = feed_folders.look(feed, found), feed_folders.look(feed)
        assert digest_of_listing(feed, part) == digest_of_listing(feed, whole)
        assert {*part.files} <= {*whole.files}
        for file in {*whole.files} - {*part.files}:
            told = numbers_of(pattern, tuple(file.source_file.split("/")[2:-1]))
            assert told and told < found.before["f/events"][: len(told)]
        found = next_passed_over(feed, folders, part.listed, part.passed_over, now)
        now += timedelta(hours=pick.randrange(40))
    assert found.rest and len(part.files) < len(whole.files)


def test_a_folder_in_the_future_hides_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path))
    feed = feed_called("f")
    for way in ("2026/03/10/11", "2026/03/09/11", "2099/01/01/00"):
        (tmp_path / "f/events" / way).mkdir(parents=True)
        (tmp_path / "f/events" / way / "a.json").write_text("{}\n")
    found = next_passed_over(feed, ["f/events"], feed_folders.look(feed).listed, NOTHING, NOW)
    assert len(feed_folders.look(feed, found).files) == 3


def test_a_note_holds_for_a_day_and_for_its_feed_alone():
    feed, folders = feed_called("f"), ["f/events"]
    note = noted(feed, next_passed_over(feed, folders, [], NOTHING, NOW))
    for hours, is_whole in ((0, False), (23, False), (24, True), (-1, True)):
        assert (read_note(feed, folders, note, NOW + timedelta(hours=hours)) is NOTHING) == is_whole
    assert read_note(feed_called("f", "%Y"), folders, note, NOW) is NOTHING
    assert read_note(feed, folders, {}, NOW) is NOTHING
    # landings in between do not begin another day
    later = next_passed_over(feed, folders, [], read_note(feed, folders, note, NOW), NOW + timedelta(hours=20))
    assert read_note(feed, folders, noted(feed, later), NOW + timedelta(hours=25)) is NOTHING


def test_where_a_link_is_everything_is_listed(tmp_path, monkeypatch):
    """What it leads to may be known by the name that it has in an old folder."""
    monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path))
    feed, events = feed_called("f"), tmp_path / "f/events"
    for way in ("2026/03/10/11", "2026/01/01/00"):
        (events / way).mkdir(parents=True)
        (events / way / "a.json").write_text("{}\n")
    found = next_passed_over(feed, ["f/events"], feed_folders.look(feed).listed, NOTHING, NOW)
    assert len(feed_folders.look(feed, found).files) == 1
    (events / "newest").symlink_to("2026/01/01")
    (events / "link.json").symlink_to("2026/01/01/00/a.json")
    found = feed_folders.look(feed, found)
    assert found.passed_over is NOTHING
    assert [file.source_file for file in found.files] == [
        "f/events/2026/01/01/00/a.json",
        "f/events/2026/03/10/11/a.json",
    ]


class Clock(datetime):
    """A clock that tests set."""

    at = NOW

    @classmethod
    def now(cls, zone=None):
        return cls.at


def land_for_days(workshop, monkeypatch, name: str) -> list[str]:
    """Let files land for some days by a clock, and one come late; return what was noticed to be wrong."""
    monkeypatch.setattr(new_files, "datetime", Clock)
    spark, feed, wrong, listings = workshop.spark, feed_called(name), [], []
    look = landing.look
    monkeypatch.setattr(landing, "look", lambda *asked: listings.append(look(*asked)) or listings[-1])

    def deliver(at: datetime, file: str, text: str = "{}\n") -> str:
        return str(workshop.deliver(f"{name}.events/{at:%Y/%m/%d/%H}", file, text))

    def land(files: int, is_all: bool, what: str) -> None:
        result, is_whole = landing.land(spark, feed), None
        is_whole = listings[-1].passed_over is NOTHING
        if (result.files, is_whole) != (files, is_all) or result.changed or not has_all_landed(feed):
            wrong.append(f"{what}: {result}, whole {is_whole}")

    Clock.at = NOW
    start = NOW - timedelta(days=10)
    for hour in range(0, 240, 12):
        deliver(start + timedelta(hours=hour), "a.json")
    land(20, True, "the first landing")
    land(0, False, "nothing new")
    if len(listings[-1].files) > 6:
        wrong.append("old folders were listed")
    for hours in (6, 12, 18):  # over midnight
        Clock.at = NOW + timedelta(hours=hours)
        deliver(Clock.at, "a.json")
        land(1, False, f"{hours} hours later")
    late = deliver(start, "late.json")
    if landing.land(spark, feed).files:
        wrong.append("a late file landed at once")
    if has_all_landed(feed):
        wrong.append("a late file does not wait")
    if [os.path.basename(file.path) for file in new_files.what_waits(spark, feed).new] != ["late.json"]:
        wrong.append("what waits is not told")
    Clock.at = NOW + timedelta(hours=25)
    land(1, True, "a day later")
    land(0, False, "nothing new after that")
    with open(late, "a") as changed:
        changed.write("{}\n")
    Clock.at = NOW + timedelta(hours=51)
    for _ in range(2):
        if landing.land(spark, feed).changed != [late.removeprefix(f"{workshop.landing}/")]:
            wrong.append("a changed file is not named")
    os.unlink(late)
    land(0, True, "what is gone")
    Clock.at = NOW
    deliver(NOW, "b.json")
    land(1, True, "a clock that was set back")
    spark.sql(f"delete from raw.{name} where source_file like '%/{start:%Y/%m/%d}/%/a.json'")
    land(Counter((start + timedelta(hours=hour)).date() for hour in range(0, 240, 12))[start.date()], True, "lost")
    return wrong


def test_every_file_lands_once(workshop, monkeypatch):
    assert land_for_days(workshop, monkeypatch, "datastream_hourly") == []


def test_a_listing_that_never_is_of_everything_is_noticed(workshop, monkeypatch):
    """The negative control."""
    monkeypatch.setattr(partitions, "EVERYTHING_AFTER", timedelta(days=1000))
    assert any(found.startswith("a day later") for found in land_for_days(workshop, monkeypatch, "datastream_never"))


def test_a_rest_that_is_forgotten_is_noticed(tmp_path, monkeypatch):
    """The negative control."""
    monkeypatch.setattr(partitions, "sum_of", lambda files: 0)
    with pytest.raises(AssertionError):
        test_a_part_and_the_rest_are_the_whole(tmp_path, monkeypatch, BY_HOUR)
    assert listing.sum_of is not partitions.sum_of
