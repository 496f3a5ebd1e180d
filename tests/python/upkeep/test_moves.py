"""A table that gets another name, here or at the source, or another feed: nothing is lost, and none counts twice."""

import re

import pytest
from highwater.catalog.as_built import remembered
from highwater.scaffold.add_table import write_logged_tables
from highwater.scaffold.rename_table import renamed_files
from highwater.upkeep import renaming
from highwater.upkeep.alter import alter, rename
from highwater.upkeep.alterations import alteration
from highwater.upkeep.dry_run import what_it_would_touch
from highwater.upkeep.evolution import meet
from workshop import change

pytestmark = pytest.mark.long
FEED = "debezium_yard"
OTHER = "datastream_yard.scales"
TABLES = {
    "winches": [("c", {"id": 1, "v": "old"}), ("u", {"id": 1, "v": "new"}), ("c", {"id": 2, "v": "b"})],
    "slips": [("c", {"id": 1, "v": "a"})],
    "booms": [("c", {"id": 1, "v": "a"}), ("c", {"id": 2, "v": "b"})],
    "ropes": [("c", {"id": 1, "v": "a"})],
}


def envelopes(table, changes, since=0) -> list[dict]:
    """Debezium's records of some changes, as its connector of MySQL writes them."""
    records = []
    for number, (operation, row) in enumerate(changes, since + 1):
        source = {"connector": "mysql", "name": "yard", "ts_ms": 1767000000000 + number, "db": "yard", "table": table}
        source |= {"snapshot": "false", "server_id": 101, "file": "mysql-bin.000001", "pos": 100 * number, "row": 0}
        records.append({"before": None, "after": row, "source": source, "op": operation})
    return records


def killed_in(monkeypatch, owner, name: str, at: int):
    """Let a step be killed before it begins, the one of this number."""
    step, left = getattr(owner, name), iter(range(at))

    def killed(*arguments, **options):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return step(*arguments, **options)

    monkeypatch.setattr(owner, name, killed)


@pytest.fixture(scope="module")
def yard(workshop):
    """All of them under their first names, then what happens to them, and a build with new records."""
    spark = workshop.spark
    for table, changes in TABLES.items():
        workshop.add_table(f"{FEED}.{table}", "id:int", "v:string", "debezium-json", {"connector": "mysql"})
        workshop.deliver(f"{FEED}.{table}", "1.json", envelopes(table, changes))
    workshop.add_table(f"{FEED}.winches", history=True)
    group = workshop.folder / "models/publications/yard/yard_publications.sql"
    group.parent.mkdir(parents=True)
    group.write_text("{{ highwater.publication('yard', [ref('winches_changes'), ref('booms_changes')]) }}\n")
    workshop.land(FEED)
    tables = [f"+{table}" for table in TABLES]
    workshop.build(*tables, "winches_history", "yard_publications", "ledger", command="run")
    assert list(meet(spark, [*TABLES])) == []
    workshop.dry = what_it_would_touch(spark, alteration("winches", "name", ("hoists",)))
    for owner, name, at in [(renaming, "_rename", 1), (renaming, "_say_anew", 1), (renaming, "forget", 0)]:
        with pytest.MonkeyPatch.context() as patch:
            killed_in(patch, owner, name, at)
            with pytest.raises(KeyboardInterrupt):
                rename(spark, "winches", "hoists")
        assert renaming.under_way() == ("winches", "hoists")
    rename(spark, "winches", "hoists")
    for path, text in renamed_files("slips", "quays").items():
        path.unlink() if text is None else path.write_text(text)
    write_logged_tables()
    # Datastream takes over from Debezium, with positions of its own, which are lower
    workshop.said_of_feed = alter(spark, alteration("booms", "feed", (OTHER,), format="datastream-json"))
    copied = """
        * except (source_table, source_line, record), 'lines' as source_table, 77 as source_line,
        cast(replace(cast(record as string), '"id": 1', '"id": 7') as binary) as record
    """  # landed under the new name before that was declared, and the log has passed it by
    spark.sql(
        f"insert into raw.{FEED} by name select {copied} from raw.{FEED} "
        "where source_table = 'ropes' and entry = 'record'"
    )
    workshop.at_source = alter(spark, alteration("ropes", "name", ("lines",), at_source=True))
    late = [("u", {"id": 1, "v": "late"}), ("u", {"id": 2, "v": "late"})]
    workshop.deliver(f"{FEED}.booms", "2.json", envelopes("booms", late, since=50))
    workshop.deliver(OTHER, "1.json", [change("UPDATE-INSERT", "0/0/1", {"id": 1, "v": "d"})])
    for table, called in [("winches", "winches"), ("slips", "slips"), ("ropes", "lines")]:
        new = envelopes(table, [("c", {"id": 9, "v": "n"})], since=60)
        workshop.deliver(f"{FEED}.{called}", "9.json", new)
    workshop.land(FEED, "datastream_yard")
    workshop.met = [each.sentence for each in meet(spark, ["hoists", "quays", "booms", "ropes"])]
    tables = ["+hoists", "+quays", "+booms", "+ropes"]
    workshop.build(*tables, "hoists_history", "yard_publications", "ledger", command="run")
    yield workshop
    group.unlink()


def test_a_table_under_another_name(yard):
    """Killed behind the log, behind the ledger and before what is written down: nothing is lost or made twice."""
    assert any("lake.winches_changes: 3 rows" in line for line in yard.dry), yard.dry
    assert any("lake.ledger: 1 row of winches would be of hoists" in line for line in yard.dry), yard.dry
    there = {row.tableName for row in yard.spark.sql("show tables in lake").collect()}
    assert {"hoists", "hoists_changes", "hoists_merged", "hoists_history"} <= there
    assert not [name for name in there if re.search("(winches|slips)(_|$)", name)]
    assert yard.rows("select * from hoists order by id") == [(1, "new"), (2, "b"), (9, "n")]
    assert yard.rows("select id, v from hoists_history where id = 1 order by v") == [(1, "new"), (1, "old")]
    counted = "select sum(read), count(*) from ledger where table_name = '{}'"
    assert yard.rows(counted.format("hoists")) == [(4, 2)] and yard.rows(counted.format("winches")) == [(None, 0)]
    assert yard.rows("select log_batch, count(*) from hoists_changes group by 1 order by 1") == [(1, 3), (2, 1)]
    assert "hoists" in remembered() and "winches" not in remembered() and renaming.under_way() is None
    published = yard.rows("select to_json(log_batches) from yard_publications order by publication")
    assert published == [('{"hoists":1,"booms":1}',), ('{"hoists":2,"booms":2}',)]


def test_models_that_were_called_otherwise_by_hand(yard):
    # whatever compares declarations with tables first: here another command
    assert any(line.startswith("quays: it was called slips.") for line in yard.said_of_feed), yard.said_of_feed
    assert yard.met == []
    assert yard.rows("select * from quays order by id") == [(1, "a"), (9, "n")]
    assert yard.rows("select log_batch, count(*) from quays_changes group by 1 order by 1") == [(1, 1), (2, 1)]


def test_a_table_that_is_renamed_at_the_source_has_both_names(yard):
    assert f"raw.{FEED}: 1 record had landed under that name already" in yard.at_source
    assert yard.rows("select * from ropes order by id") == [(1, "a"), (7, "a"), (9, "n")]
    assert yard.rows("select count(*) from ropes_changes where source_file like '%/lines/%'") == [(1,)]


def test_the_changes_of_another_feed_come_after_those_of_the_first(yard):
    assert any(f"whose records count after all of {FEED}" in line for line in yard.said_of_feed)
    assert yard.rows("select * from booms order by id") == [(1, "d"), (2, "late")]
    told = "select feed, verdict, substr(change_sequence_number, 13, 4) from booms_changes where source_file like '{}'"
    assert yard.rows(told.format("datastream%")) == [("datastream_yard", "applied", "03e8")]
    of_late = [(FEED, "superseded", "0000"), (FEED, "applied", "0000")]
    assert sorted(yard.rows(told.format("%/2.json"))) == sorted(of_late)


def test_every_layer_agrees(yard):
    tests = [f"{table}_{layer}" for table in ("hoists", "quays", "booms", "ropes") for layer in ("changes", "merged")]
    audited = yard.audit(*tests)
    assert audited and {each.status for each in audited.values()} == {"pass"}, audited


def test_a_feed_of_another_kind_is_met_before_it_is_taken_in(yard):
    yard.add_table("datastream_yard.ropes")
    (met,) = meet(yard.spark, ["ropes"])
    assert met.is_refused and "datastream_yard.ropes brings its records too" in met.sentence
    assert "highwater alter ropes feed datastream_yard.ropes" in met.sentence
    assert meet_again(yard, alteration("ropes", "feed", ("datastream_yard.ropes",))) == []


def meet_again(yard, altered) -> list:
    altered.edit()
    return list(meet(yard.spark, ["ropes"]))
