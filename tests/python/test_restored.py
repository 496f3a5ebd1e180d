"""A raw table that is older than its log: found, said, and no number of a batch comes again."""

import pytest
from highwater import landing, last_build
from highwater import rebuild as rebuilding
from highwater.errors import UsageError
from highwater.landings import gone_back
from highwater.project import lake
from highwater.rebuild import rebuild_from_raw
from highwater.status import status
from workshop import change

FEED, TABLE = "datastream_restored", "datastream_restored.hampers"
UNBUILT = "datastream_restored.crates"
RAW = f"raw.{FEED}"


@pytest.fixture(scope="module")
def depot(workshop):
    """A table of its own whose log has judged three batches, one of the same feed never built, one of a feed never landed."""
    workshop.add_table(TABLE, "id:bigint", "v:string")
    workshop.add_table(UNBUILT, "id:bigint", "v:string")
    workshop.add_table("datastream_unlanded.trunks", "id:bigint", "v:string")
    workshop.deliver(UNBUILT, "001.json", [change("UPDATE-INSERT", f"{1:016x}", {"id": 1, "v": "waits"})])
    for number in (1, 2, 3):
        deliver(workshop, number, number, f"v{number}")
        workshop.land(FEED)
    built(workshop)
    return workshop


def deliver(workshop, number: int, key: int, value: str):
    """Deliver a file with one change; numbers are its place in the order."""
    record = change("UPDATE-INSERT", f"{number:016x}", {"id": key, "v": value})
    workshop.deliver(TABLE, f"{number:03}.json", [record])


def built(workshop) -> dict:
    workshop.build("+hampers", command="run")
    return dict(workshop.rows("select id, v from hampers"))


def batches(workshop) -> list[int]:
    return [
        row[0] for row in workshop.rows(f"select distinct landing_batch from {RAW} where entry = 'file' order by 1")
    ]


def go_back(workshop) -> int:
    """Take the newest landing out of raw, as a restored copy lacks it; return how many files it had."""
    newest = batches(workshop)[-1]
    files = workshop.value(f"select count(*) from {RAW} where entry = 'file' and landing_batch = {newest}")
    workshop.spark.sql(f"delete from {RAW} where landing_batch = {newest}")
    return files


@pytest.mark.long
@pytest.mark.parametrize("kept", ["the note", "the log"])
def test_a_batch_number_never_comes_again(depot, kept):
    """Neither where the lake's note of the newest landing is lost: then the log knows it."""
    newest = batches(depot)[-1]
    files = go_back(depot)
    if kept == "the log":
        (lake() / f"landings/{FEED}.json").write_text('{"numb')
    said = status(depot.spark, "hampers")[0]["gone_back"]
    older = batches(depot)
    assert f"raw.{FEED} has up to batch {older[-1]}, and batch {newest} had landed" in said
    deliver(depot, 10 + newest, 10 + newest, "new")
    landed = depot.land(FEED)[FEED]
    assert (landed.files, landed.newest[0]) == (files + 1, newest + 1)
    assert landed.gone_back == said
    assert batches(depot) == [*older, newest + 1]
    assert built(depot)[10 + newest] == "new"
    again = depot.land(FEED)[FEED]
    assert (again.gone_back, again.newest) == (None, landed.newest)
    assert status(depot.spark, "hampers")[0]["gone_back"] is None


@pytest.mark.long
def test_a_log_is_made_again_from_what_has_landed_again(depot):
    """A record is known by its file and line, whatever the number of its batch; one that is gone is refused."""
    newest = batches(depot)[-1]
    go_back(depot)
    with pytest.raises(UsageError, match=rf"{RAW} no longer has \d of the records that the log of hampers has"):
        rebuild_from_raw(depot.spark, "hampers")
    assert depot.land(FEED)[FEED].newest[0] == newest + 1
    rows = built(depot)
    assert depot.value(f"select count(*) from hampers_changes where landing_batch = {newest}")
    depot.build("ledger", command="run")
    assert "judged again from raw" in rebuild_from_raw(depot.spark, "hampers")
    assert dict(depot.rows("select id, v from hampers")) == rows
    assert not depot.value(f"select count(*) from hampers_changes where landing_batch = {newest}")
    again = f"select collect_set(verdict) from hampers_changes where landing_batch = {newest + 1}"
    assert depot.value(again) == ["applied"]
    assert built(depot) == rows
    # a table that is declared and was never built or landed is in nobody's way, and counted once it is built
    counted = "select sum(read), sum(applied) from lake.ledger where table_name = 'crates'"
    assert depot.rows(counted) == [(None, None)]
    depot.build("+crates", "ledger", command="run")
    assert depot.rows(counted) == [(1, 1)]


@pytest.mark.long
def test_another_content_of_a_file_is_another_record(depot):
    """What landed under the name of a record that was lost, and is another one, does not stand for it."""
    deliver(depot, 80, 80, "was")
    depot.land(FEED)
    built(depot)
    go_back(depot)
    deliver(depot, 80, 80, "is")
    depot.land(FEED)
    built(depot)
    before = depot.version("hampers_changes")
    with pytest.raises(UsageError, match=rf"{RAW} no longer has 1 of the records that the log of hampers has"):
        rebuild_from_raw(depot.spark, "hampers")
    assert depot.version("hampers_changes") == before
    # negative control: without the refusal the change is gone
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rebuilding, "_refuse_loss", lambda *_: None)
        rebuild_from_raw(depot.spark, "hampers")
    assert dict(depot.rows("select id, v from hampers"))[80] == "is"


@pytest.mark.long
def test_without_it_the_number_comes_again_and_its_records_are_not_judged(depot, monkeypatch):
    """The fault that the test above would see."""
    newest = batches(depot)[-1]
    go_back(depot)
    monkeypatch.setattr(landing, "newest_landing", lambda spark, feed, in_raw: in_raw)
    deliver(depot, 50, 50, "never judged")
    assert depot.land(FEED)[FEED].newest[0] <= newest
    assert 50 not in built(depot)


def test_what_has_landed_is_known_by_its_time_too():
    """A number that comes again is another landing, and a build with it another build."""
    assert gone_back("f", (3, 30), (3, 30)) is None
    assert "has up to batch 2, and batch 3 had landed" in gone_back("f", (2, 20), (3, 30))
    assert "has no batch, and batch 3" in gone_back("f", (0, 0), (3, 30))
    assert last_build.fingerprint([], {"f": (3, 30)}) != last_build.fingerprint([], {"f": (3, 31)})
