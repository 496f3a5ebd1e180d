"""A table that was restored alone or left in half: found, said, and no number of a batch comes again."""

import json
import os
import random
import re
import shutil

import pytest
from highwater.builds import last_build
from highwater.landing import landing
from highwater.landing.landings import gone_back
from highwater.runtime.errors import UsageError
from highwater.runtime.project import lake
from highwater.spark import lake_tables
from highwater.status.status import status
from highwater.upkeep import rebuild as rebuilding
from highwater.upkeep import recover
from highwater.upkeep.compact import compact
from highwater.upkeep.rebuild import rebuild_from_raw
from workshop import change, in_soak_but

FEED, TABLE = "datastream_restored", "datastream_restored.hampers"
UNBUILT = "datastream_restored.crates"
RAW = f"raw.{FEED}"


def newest_commit_in(folder):
    """The file of the newest commit of a table."""
    return max(folder.glob(f"_delta_log/{'[0-9]' * 20}.json"))


@pytest.fixture(scope="module")
def depot(workshop):
    """A table whose log has classified three batches, one of its feed never built, one of a feed never landed."""
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


def folder_of(schema: str, table: str):
    return lake() / "tables" / f"{schema}.db" / table


def put_back(workshop, folder, kept):
    """Put a copy into the place of a table's folder, as somebody does who restores that table alone."""
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    workshop.forget_what_was_read()


def go_back(workshop) -> int:
    """Take the newest landing out of raw, as a restored copy lacks it; return how many files it had."""
    newest = batches(workshop)[-1]
    files = workshop.value(f"select count(*) from {RAW} where entry = 'file' and landing_batch = {newest}")
    workshop.spark.sql(f"delete from {RAW} where landing_batch = {newest}")
    return files


@pytest.mark.long
@pytest.mark.parametrize("kept", in_soak_but(["the log"], ["the note", "the log"]))
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


@pytest.mark.soak
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
    assert "classified again from raw" in rebuild_from_raw(depot.spark, "hampers")
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


@pytest.mark.soak
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


DAMAGES = {
    "empty": lambda commit: commit.write_bytes(b""),
    "half": lambda commit: commit.write_bytes(commit.read_bytes()[: commit.stat().st_size // 2]),
    "zeros": lambda commit: commit.write_bytes(b"\0" * commit.stat().st_size),
}
PLACES = {"raw": ("raw", FEED), "log": ("lake", "hampers_changes"), "merged": ("lake", "hampers_merged")}


@pytest.mark.long
@pytest.mark.parametrize(
    "cut",
    in_soak_but([{"raw": "empty", "log": "half"}], [{place: damage} for place in PLACES for damage in DAMAGES]),
    ids=lambda cut: " ".join(f"{place} {damage}" for place, damage in cut.items()),
)
def test_a_power_cut_that_leaves_a_commit_in_half(depot, cut):
    """Delta takes an empty commit for one that does nothing, and writes on behind one that it cannot read."""
    key = 1000 + depot.value(f"select max(landing_batch) from {RAW}")
    deliver(depot, key, key, "cut")
    depot.land(FEED)
    rows = built(depot)
    assert lake_tables.half_logs() is None
    commits = {}
    for place, damage in cut.items():
        folder, name = folder_of(*PLACES[place]), ".".join(PLACES[place])
        commit = commits[name] = newest_commit_in(folder)
        for path in [*commit.parent.glob(f"{commit.stem}.checkpoint*"), commit.parent / "_last_checkpoint"]:
            path.unlink(missing_ok=True)  # which would do without the commit
        DAMAGES[damage](commit)
        # what no commit names is nothing to Delta
        (folder / "part-0-half.snappy.parquet").write_bytes(b"PAR1")
        (commit.parent / f".{int(commit.stem) + 1:020}.json.half.tmp").write_bytes(b"{")
    if cut == {"merged": "empty"}:  # the fault: nobody says a word
        depot.forget_what_was_read()
        assert key not in dict(depot.rows("select id, v from hampers"))
    half, said = lake_tables.half_logs(), recover.put_aside()
    assert re.search("(is|are) empty or half", half) and len(said) == len(cut), said
    for name, commit in commits.items():
        assert f"commit {int(commit.stem)} of {name}" in half
        assert any(f"{name}: commit {int(commit.stem)} is half, and was put aside with" in line for line in said), said
        assert list(lake().glob(f"put_aside/*/{name}/{commit.name}"))
    assert lake_tables.half_logs() is None
    depot.forget_what_was_read()
    depot.land(FEED)
    assert built(depot) == rows and rows[key] == "cut"
    deliver(depot, key + 1, key, "behind it")
    depot.land(FEED)
    assert built(depot) == rows | {key: "behind it"}


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_power_cut_that_leaves_a_checkpoint_in_half(depot, damage):
    folder = folder_of("lake", "hampers_merged")
    rows = dict(depot.rows("select id, v from hampers"))
    logs = depot.spark._jvm.org.apache.spark.sql.delta.DeltaLog
    logs.forTable(depot.spark._jsparkSession, str(folder.resolve())).checkpoint()
    assert lake_tables.half_logs() is None
    (checkpoint,) = folder.glob(f"_delta_log/{newest_commit_in(folder).stem}.checkpoint*.parquet")
    damage(checkpoint)
    assert re.match(r"checkpoint \d+ of lake.hampers_merged is empty or half", lake_tables.half_logs())
    assert len(recover.put_aside()) == 1 and not list(checkpoint.parent.glob(f".{checkpoint.name}*"))
    assert lake_tables.half_logs() is None
    depot.forget_what_was_read()
    assert dict(depot.rows("select id, v from hampers")) == rows


@pytest.mark.soak
def test_a_log_that_is_older_than_its_merged_table(depot, tmp_path):
    """No number of a batch comes again that the merged table has applied: it would not be applied."""
    log, merged = folder_of("lake", "hampers_changes"), "hampers_merged"
    key = 2000 + depot.value(f"select max(landing_batch) from {RAW}")
    shutil.copytree(log, tmp_path / "log")
    deliver(depot, key, key, "lost by the log")
    depot.land(FEED)
    built(depot)
    applied = depot.value(f"select max(log_batch) from {merged}")
    deliver(depot, key + 1, key + 1, "behind it")
    depot.land(FEED)
    # negative control: the number comes again
    put_back(depot, log, tmp_path / "log")
    macro = depot.folder / "macros/merge/arriving_batches.sql"
    shipped = macro.read_text()
    assert "if applied_batch >= arriving.log_batch" in shipped
    macro.write_text(shipped.replace("if applied_batch >= arriving.log_batch", "if false"))
    assert key + 1 not in built(depot)
    macro.write_text(shipped)
    put_back(depot, log, tmp_path / "log")
    said = status(depot.spark, "hampers")[0]["gone_back"]
    assert said.startswith(f"hampers_changes has up to batch {applied - 1} of the log, and {merged} has applied")
    for way in (rebuilding.rebuild, rebuild_from_raw):
        with pytest.raises(UsageError, match="the log went back"):
            way(depot.spark, "hampers")
    rows = built(depot)
    assert (rows[key], rows[key + 1]) == ("lost by the log", "behind it")
    assert depot.value("select max(log_batch) from hampers_changes") == applied + 1
    assert status(depot.spark, "hampers")[0]["gone_back"] is None
    # what the sentence says behind it
    verdict = f"select verdict from hampers_changes where id = {key}"
    assert depot.value(verdict) == "duplicate"
    rebuild_from_raw(depot.spark, "hampers")
    assert depot.value(verdict) == "applied"
    assert dict(depot.rows("select id, v from hampers")) == rows == built(depot)


@pytest.mark.soak
def test_a_log_that_is_older_than_its_history(depot, tmp_path):
    """A history applies what is superseded too, so it may have seen a batch that the merged table has not."""
    depot.add_table("datastream_albums.albums", "id:bigint", "v:string", history=True)

    def build_with(*values):
        for value in values:
            record = change("UPDATE-INSERT", f"{value:016x}", {"id": 1, "v": f"v{value}"})
            depot.deliver("datastream_albums.albums", f"{value:03}.json", [record])
        depot.land("datastream_albums")
        depot.build("+albums", "albums_history", command="run")
        return [v for (v,) in depot.rows("select v from albums_history order by valid_from_sequence")]

    log = folder_of("lake", "albums_changes")
    build_with(5)
    shutil.copytree(log, tmp_path / "log")
    assert build_with(3) == ["v3", "v5"]
    macro = depot.folder / "macros/merge/arriving_batches.sql"
    shipped = macro.read_text()
    put_back(depot, log, tmp_path / "log")
    # negative control: the number comes again, and the history does not look at it
    macro.write_text(shipped.replace("if applied_batch >= arriving.log_batch", "if false"))
    assert build_with(4) == ["v3", "v5"]
    macro.write_text(shipped)
    put_back(depot, log, tmp_path / "log")
    assert build_with(2) == ["v2", "v3", "v4", "v5"]


@pytest.mark.soak
def test_a_history_that_was_restored_alone_takes_in_what_it_lacks(depot, tmp_path):
    history = folder_of("lake", "albums_history")
    shutil.copytree(history, tmp_path / "history")
    record = change("UPDATE-INSERT", f"{6:016x}", {"id": 1, "v": "v6"})
    depot.deliver("datastream_albums.albums", "006.json", [record])
    depot.land("datastream_albums")
    rows = "select v, valid_from_sequence, valid_to_sequence, is_current from albums_history order by 2"
    depot.build("+albums", "albums_history", command="run")
    before = depot.rows(rows)
    last_build.remember("mark", {}, "words", {})
    put_back(depot, history, tmp_path / "history")
    assert depot.rows(rows) != before
    assert "lake.albums_history" in last_build.gone_back(last_build.remembered())
    depot.build("+albums", "albums_history", command="run")
    assert depot.rows(rows) == before
    last_build.forget()


def parcel(picks, number: int) -> dict:
    """A change as Debezium's PostgreSQL connector writes it: partial, a delete, a truncate, or a whole row."""
    kind, key = picks.random(), {"id": picks.randrange(6)}
    placeholder = "__debezium_unavailable_value"
    row = {name: placeholder if picks.random() < 0.3 else f"{name}{number}" for name in ("a", "b")}
    op = "t" if kind < 0.05 else "d" if kind < 0.25 else "u" if kind < 0.8 else "c"
    row = {"a": f"a{number}", "b": f"b{number}"} if op == "c" else row
    source = {"connector": "postgresql", "name": "p", "ts_ms": 1772442930123 + number, "lsn": number}
    return {
        "before": key if op == "d" else None,
        "after": key | row if op in "cu" else None,
        "source": source,
        "op": op,
    }


@pytest.mark.soak
def test_logs_that_go_back_end_in_the_rows_of_one_that_never_did(depot, tmp_path):
    """Partial images, truncates and two feeds; beside it the same records, undisturbed."""
    seed = int(os.environ.get("HIGHWATER_SEED", random.SystemRandom().randrange(10**6)))
    print("seed", seed)
    picks = random.Random(seed)
    settings = {"connector": "postgresql", "layout": "records", "decimals": "string"}
    feeds = {"parcels": ["debezium_left", "mirror_left"], "parcels_whole": ["debezium_right", "mirror_right"]}
    for entity, (first, second) in feeds.items():
        depot.add_table(f"{first}.{entity}", "id:int", "a:string,b:string", "debezium-json", settings)
        depot.add_table(f"{second}.{entity}", None, None, "debezium-json", settings)
    log, went_back, number = folder_of("lake", "parcels_changes"), 0, 0
    for batch in range(9):
        for side in picks.sample([0, 1], picks.choice([1, 2])):
            records = []
            for _ in range(picks.randrange(1, 12)):
                number += 1
                records.append(parcel(picks, number - picks.choice([0, 0, 0, 7])))
            for entity, names in feeds.items():
                path = depot.landing / names[side] / f"{batch}.json"
                path.parent.mkdir(exist_ok=True)
                for record in records:
                    record["source"]["table"] = entity
                path.write_text("".join(json.dumps(record) + "\n" for record in records))
        # what landed first was there first: verdicts tell of that, rows do not
        for side in (0, 1):
            depot.land(*(names[side] for names in feeds.values()))
        depot.build("+parcels", "+parcels_whole", command="run")
        found, expected = (depot.rows(f"select * from {entity} order by id") for entity in feeds)
        assert found == expected, batch
        if batch and picks.random() < 0.6:
            went_back += 1
            put_back(depot, log, tmp_path / picks.choice(sorted(path.name for path in tmp_path.iterdir())))
        shutil.copytree(log, tmp_path / f"{batch}")
    depot.build("+parcels", command="run")
    assert depot.rows("select * from parcels order by id") == expected
    assert went_back and depot.value("select count(distinct feed) from parcels_changes") == 2
    rebuild_from_raw(depot.spark, "parcels")
    rows = "select source_file, source_line, verdict from lake.{}_changes where not is_derived order by 1, 2"
    left, right = (depot.rows(rows.format(entity)) for entity in feeds)
    assert [row[1:] for row in left] == [row[1:] for row in right]


@pytest.mark.long
def test_a_merged_table_that_is_older_than_its_log(depot, tmp_path):
    merged = folder_of("lake", "hampers_merged")
    key = 3000 + depot.value(f"select max(landing_batch) from {RAW}")
    shutil.copytree(merged, tmp_path / "merged")
    deliver(depot, key, key, "lost by the table")
    depot.land(FEED)
    rows = built(depot)
    compact(depot.spark, "hampers")
    version = int(newest_commit_in(merged).stem)
    last_build.remember("mark", {}, "words", {})
    assert last_build.gone_back(last_build.remembered()) is None
    put_back(depot, merged, tmp_path / "merged")
    said = last_build.gone_back(last_build.remembered())
    assert f"lake.hampers_merged from {version} to {version - 1}: tables have gone back" in said
    # the log has what the base has lost, and a view of before looks there
    assert dict(depot.rows("select id, v from hampers")) == rows == built(depot)
    assert key in rows and depot.layers("hampers")[1] >= 1
    last_build.forget()


@pytest.mark.long
def test_a_log_that_is_gone_is_made_again_above_what_its_merged_table_has(depot):
    rows = dict(depot.rows("select id, v from hampers"))
    applied = depot.value("select max(log_batch) from hampers_merged")
    depot.spark.sql("drop table lake.hampers_changes")
    assert built(depot) == rows
    assert depot.value("select min(log_batch) from hampers_changes") == applied + 1
    key = 4000 + depot.value(f"select max(landing_batch) from {RAW}")
    deliver(depot, key, key, "behind it")
    depot.land(FEED)
    assert built(depot) == rows | {key: "behind it"}
    # the newest batch may be of a feed that is no longer declared
    newest = f"where log_batch = {applied + 2}"
    depot.spark.sql(f"update lake.hampers_changes set feed = 'was' {newest}")
    assert status(depot.spark, "hampers")[0]["gone_back"] is None
    depot.spark.sql(f"update lake.hampers_changes set feed = '{FEED}' {newest}")


@pytest.mark.long
def test_without_it_the_number_comes_again_and_its_records_are_not_judged(depot, monkeypatch):
    """The fault that the test above would see."""
    newest = batches(depot)[-1]
    go_back(depot)
    monkeypatch.setattr(landing, "newest_landing", lambda spark, feed, in_raw: in_raw)
    deliver(depot, 50, 50, "never classified")
    assert depot.land(FEED)[FEED].newest[0] <= newest
    assert 50 not in built(depot)


def test_what_has_landed_is_known_by_its_time_too():
    """A number that comes again is another landing, and a build with it another build."""
    assert gone_back("f", (3, 30), (3, 30)) is None
    assert "has up to batch 2, and batch 3 had landed" in gone_back("f", (2, 20), (3, 30))
    assert "has no batch, and batch 3" in gone_back("f", (0, 0), (3, 30))
    assert last_build.news(None, {}, {"landings": {"f": [3, 30]}}, {"f": (3, 30)}) == {}
    assert last_build.news(None, {}, {"landings": {"f": [3, 30]}}, {"f": (3, 31)}) is None
