"""Compaction in place, in full and by partitions: what a query shows never changes. Cases C and G by id."""

import contextlib
import itertools
import json
import os
import random
import re
import subprocess
import sys
import threading
import time

import pytest
from highwater.runtime.errors import CheckError, UsageError
from highwater.spark import dbt
from highwater.status.status import status
from highwater.upkeep.compact import compact, differing_rows
from highwater.upkeep.rebuild import rebuild
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from workshop import change, in_soak_but, reading

pytestmark = pytest.mark.long
FEED = "datastream_world"


@pytest.fixture(scope="module")
def world(workshop):
    """Cities that move between regions: the merged table is partitioned by region."""
    workshop.add_table(f"{FEED}.cities", "id:int", "name:string,region:string")
    workshop.configure("cities", "merged", "{partition_by: [region]}")
    changes(workshop, [("INSERT", key, f"city {key}", "abc"[key % 3]) for key in range(1, 31)])
    return workshop


sequence = iter(range(1, 10**6))


def changes(workshop, rows):
    """Land and build changes, each later than the ones before."""
    records = [
        change(operation, f"{next(sequence):X}", {"id": key, "name": name, "region": region})
        for operation, key, name, region in rows
    ]
    workshop.deliver(f"{FEED}.cities", f"{next(sequence)}.json", records)
    workshop.land_and_run(FEED, "+cities")


def view(workshop):
    return dict(workshop.rows("select id, struct(name, region) from cities"))


def files_of(workshop, region):
    return {
        row[0]
        for row in workshop.rows(f"select distinct _metadata.file_path from cities_merged where region = '{region}'")
    }


def pend(workshop):
    """Something of every kind is pending: an update, a delete, a new key, a key that moves to another region."""
    known = workshop.rows("select id, region from cities where region in ('a', 'b') order by id")
    moving = next(key for key, region in known if region == "a")
    updated, deleted = [key for key, region in known if region == "b"][:2]
    new = workshop.value("select max(id) + 1 from cities_merged")
    changes(
        workshop,
        [
            ("UPDATE-INSERT", moving, "moved", "b"),
            ("UPDATE-INSERT", updated, "renamed", "b"),
            ("DELETE", deleted, None, "b"),
            ("INSERT", new, "founded", "a"),
            ("INSERT", new + 1, "it's \\ 'quoted'", "d'\\e"),
            ("INSERT", new + 2, "nowhere", None),
        ],
    )
    return moving


@pytest.mark.parametrize("method", ["in-place", "full", *in_soak_but((), ["partitions"])])
def test_g3_g17_every_method_keeps_the_rows(world, method):
    moving = pend(world)
    before, untouched = view(world), files_of(world, "c")
    version, table = world.version("cities_merged"), world.table_id("cities_merged")
    assert world.layers("cities")[1] == 6
    sentence = compact(world.spark, "cities", method=method)
    assert sentence == "cities_merged: 6 pending changes written into the base."
    assert world.layers("cities")[1] == 0
    assert world.table_id("cities_merged") == table
    assert view(world) == before and before[moving] == ("moved", "b")
    assert world.value(f"select count(*) from cities_merged where id = {moving}") == 1
    # what was written anew is what the merge had made of it
    assert method == "in-place" or differing_rows(world.spark, "cities", version + 1) == 0
    if method != "full":
        assert files_of(world, "c") == untouched
    assert world.version("cities_merged") - version == {"in-place": 1, "full": 2, "partitions": 5}[method]
    causes = {"in-place": "highwater compact", "full": "highwater, written anew"}
    (found,) = status(world.spark, "cities")
    assert found["compacted_by"] == causes.get(method, "highwater compact, by partitions")
    assert compact(world.spark, "cities", method=method) == "cities_merged: 0 pending changes; nothing was done."
    world.build("cities_merged", command="test")


def test_a_large_base_has_deletion_vectors_and_a_small_one_none(world):
    def compacted():
        pend(world)
        version = world.version("cities_merged")
        compact(world.spark, "cities")
        newest = world.spark.sql("describe history lake.cities_merged limit 1").first()
        properties = dict(world.rows("show tblproperties lake.cities_merged"))
        vectors = int(newest["operationMetrics"]["numTargetDeletionVectorsAdded"])
        return world.version("cities_merged") - version, properties.get("delta.enableDeletionVectors"), vectors > 0

    assert compacted() == (1, None, False)
    macro = world.folder / "macros/merge/due_compaction.sql"
    delivered = macro.read_text()
    assert "return(1000000)" in delivered
    try:
        macro.write_text(delivered.replace("return(1000000)", "return(1)"))
        assert compacted() == (2, "true", True)  # the property is a commit of its own, once
        assert compacted() == (1, "true", True)
    finally:
        macro.write_text(delivered)


@pytest.mark.soak
def test_a_rebuild_keeps_the_table_unless_its_partitions_are_others(world):
    before, table = view(world), world.table_id("cities_merged")
    rebuild(world.spark, "cities")
    assert (view(world), world.table_id("cities_merged")) == (before, table)
    (found,) = status(world.spark, "cities")
    assert found["compacted_by"] == "highwater, written anew"
    path = world.declaration("cities")
    declared = path.read_text()
    path.write_text(declared.replace("[region]", "[]"))
    rebuild(world.spark, "cities")
    assert world.spark.sql("describe detail cities_merged").first()["partitionColumns"] == []
    assert view(world) == before and world.table_id("cities_merged") != table
    path.write_text(declared)
    rebuild(world.spark, "cities")
    assert view(world) == before


@pytest.mark.soak
@pytest.mark.parametrize("is_replaced", [False, True])
def test_one_query_reads_one_version(world, is_replaced):
    """What the view stands on, and its negative control: a table that is replaced is read in two versions."""
    rows = "select cast({} as bigint) as version, part from values (true), (false) as v(part)"
    create = "create or replace table lake.turning using delta partitioned by (part) as " + rows
    world.spark.sql(create.format(0))
    question = " union all ".join(["select version from lake.turning where part"] * 4)
    question += " union all select version from lake.turning where not part"
    write = create if is_replaced else "insert overwrite lake.turning " + rows
    mixed, reads = [], []

    def read():
        found = {version for (version,) in world.rows(question)}
        reads.append(found)
        if len(found) > 1:
            mixed.append(found)

    number = 0
    with reading(read, threads=3):
        # the control ends with the first one
        while not mixed and len(reads) < (2000 if is_replaced else 300):
            number += 1
            world.spark.sql(write.format(number))
    world.spark.sql("drop table lake.turning")
    print(f"{len(reads)} reads beside {number} commits, {len(mixed)} mixed: {mixed[:1]}")
    assert bool(mixed) == is_replaced


@pytest.mark.soak
def test_differing_rows_sees_every_difference(world):
    """Negative control: each of these is counted, in the direction in which it is."""
    version = world.version("cities_merged")
    for statement in (
        "delete from cities_merged where id = 2",
        "update cities_merged set name = null where id = 5",
        "update cities_merged set is_deleted = not is_deleted where id = 8",
        "insert into cities_merged select * from cities_merged where id = 11",
    ):
        world.spark.sql(statement)
        assert differing_rows(world.spark, "cities", version) in (1, 2), statement
        world.spark.sql(f"restore table cities_merged to version as of {version}")
    assert differing_rows(world.spark, "cities", version) == 0


def test_a_compaction_that_changes_rows_is_put_back(world, monkeypatch):
    pend(world)
    before = view(world)

    def careless(arguments):
        result = careless.original(arguments)
        if "highwater.rewrite_merged" not in arguments:
            return result
        world.spark.sql("delete from cities_merged where id = 3")
        return result

    careless.original = dbt.run
    monkeypatch.setattr(dbt, "run", careless)
    with pytest.raises(CheckError, match=r"rows were not the same when written anew. It was put back"):
        compact(world.spark, "cities", method="full")
    monkeypatch.undo()
    assert view(world) == before and world.layers("cities")[1] == 0


@pytest.mark.soak
def test_g6_stop_before_rewrite(world):
    pend(world)
    version = world.version("cities_merged")
    words = compact(world.spark, "cities", method="full", stop_before_rewrite=True)
    assert words == "cities_merged: 6 pending changes would be written into the base (full); nothing was done."
    assert world.version("cities_merged") == version
    changes(world, [("UPDATE-INSERT", 15, "later", "a")])
    assert compact(world.spark, "cities", method="full").startswith("cities_merged: 7 pending changes written")
    assert view(world)[15] == ("later", "a")


@pytest.mark.soak
def test_g13_the_previous_table_is_kept_when_asked_for(world):
    pend(world)
    before = world.rows("select * from cities_merged order by id")
    words = compact(world.spark, "cities", retain_previous=True)
    assert words.endswith("The table as it was is lake.cities_merged_previous.")
    assert world.rows("select * from cities_merged_previous order by id") == before
    (found,) = status(world.spark, "cities")
    assert found["retained"] == "cities_merged_previous" and found["compacted_by"] == "highwater compact"
    assert "previous" not in world.spark.sql("show create table cities").first()[0]
    world.spark.sql("drop table cities_merged_previous")
    assert status(world.spark, "cities")[0]["retained"] is None


@pytest.mark.soak
def test_g7_killed_after_any_step_and_run_again(world):
    """Every commit of a compaction leaves a state that shows the same and that any method finishes."""
    pend(world)
    before, first = view(world), world.version("cities_merged")
    compact(world.spark, "cities", method="partitions")
    done, rows = world.version("cities_merged"), world.rows("select * from cities_merged order by id")
    assert done - first == 5
    for stopped_at in range(first, done):
        for method in ("partitions", "in-place", "full"):
            world.spark.sql(f"restore table cities_merged to version as of {stopped_at}")
            assert view(world) == before, stopped_at
            compact(world.spark, "cities", method=method)
            assert view(world) == before and world.layers("cities")[1] == 0, (stopped_at, method)
            assert world.rows("select * from cities_merged order by id") == rows, (stopped_at, method)


@pytest.mark.soak
def test_g5_a_change_that_comes_between_waits_for_the_next_one(world):
    changes(world, [("UPDATE-INSERT", 18, "B", "a")])
    compact(world.spark, "cities")
    changes(world, [("UPDATE-INSERT", 18, "BB", "a")])
    assert view(world)[18] == ("BB", "a")
    assert world.rows("select name from cities_merged where id = 18") == [("B",)]


def test_c6_two_rows_of_a_key_are_noticed(world):
    """Base rows are unique per key by construction; a planted one fails the build's test, and a rebuild repairs it."""
    version = world.version("cities_merged")
    world.spark.sql("insert into cities_merged select * from cities_merged where id = 18")
    with pytest.raises(AssertionError, match="has_agreeing_layers_cities_merged"):
        world.build("cities_merged", command="test")
    rebuild(world.spark, "cities")
    world.build("cities_merged", command="test")
    world.spark.sql(f"restore table cities_merged to version as of {version}")


@pytest.mark.soak
def test_c8_a_partition_that_empties_and_fills_again(world):
    keys = [key for (key,) in world.rows("select id from cities where region = 'c'")]
    changes(world, [("DELETE", key, None, "c") for key in keys])
    compact(world.spark, "cities", method="partitions")
    assert world.value("select count(*) from cities where region = 'c'") == 0
    changes(world, [("INSERT", keys[0], "again", "c")])
    assert world.rows("select id, name from cities where region = 'c'") == [(keys[0], "again")]


@pytest.mark.soak
def test_c9_below_the_threshold_nothing_happens(world):
    compact(world.spark, "cities")
    changes(world, [("UPDATE-INSERT", 21, "one", "a")])
    before = view(world)
    assert compact(world.spark, "cities", threshold=2).endswith("fewer than the threshold of 2; nothing was done.")
    changes(world, [("UPDATE-INSERT", 24, "two", "a")])
    assert compact(world.spark, "cities", threshold=2) == "cities_merged: 2 pending changes written into the base."
    assert view(world) == before | {24: ("two", "a")}


def test_c10_a_compaction_that_fails_after_a_batch_was_logged(world):
    """The batch is logged and the view is right; the build names the failure, the next one compacts."""
    compact(world.spark, "cities")
    changes(world, [("UPDATE-INSERT", 27, "pending", "a")])
    path = world.folder / "macros/merge/merge_into_base.sql"
    sound = path.read_text()
    settings = world.folder / "dbt_project.yml"
    rule = settings.read_text()
    path.write_text(sound.replace("merge into {{ merged }}", "merge this into {{ merged }}"))
    settings.write_text(re.sub("pending_batches: .*", "pending_batches: 2", rule))
    try:
        with pytest.raises(AssertionError, match="cities_merged"):
            changes(world, [("UPDATE-INSERT", 27, "logged", "a")])
        assert view(world)[27] == ("logged", "a") and world.layers("cities")[1] == 2
        path.write_text(sound)
        world.build("+cities", command="run")
        assert view(world)[27] == ("logged", "a") and world.layers("cities")[1] == 0
        assert status(world.spark, "cities")[0]["compacted_by"] == "pending_batches 2"
    finally:
        path.write_text(sound)
        settings.write_text(rule)


@pytest.mark.soak
def test_partitions_need_a_partitioned_table(workshop):
    workshop.add_table(f"{FEED}.rivers", "id:int", "name:string")
    workshop.deliver(f"{FEED}.rivers", "a.json", [change("INSERT", "1", {"id": 1, "name": "n"})])
    workshop.land_and_run(FEED, "+rivers")
    workshop.deliver(f"{FEED}.rivers", "b.json", [change("INSERT", "2", {"id": 2, "name": "n"})])
    workshop.land_and_run(FEED, "+rivers")
    with pytest.raises(UsageError, match="rivers_merged is not partitioned"):
        compact(workshop.spark, "rivers", method="partitions")


@pytest.mark.parametrize("method", in_soak_but(["at once"], ["at once", "full"]))
def test_partial_images_and_truncates(workshop, method):
    """The orders of single columns go into the base with their rows; a truncate stays."""
    settings = {"connector": "postgresql", "layout": "records", "decimals": "string"}
    feed, ships = ("debezium_port", "ships") if method == "full" else ("debezium_quay", "boats")
    workshop.add_table(f"{feed}.{ships}", "id:int", "flag:string,note:string", "debezium-json", settings)

    def record(op, lsn, key, flag="f"):
        note = f"n{lsn}" if op == "c" else "__debezium_unavailable_value"
        return {
            "before": {"id": key} if op == "d" else None,
            "after": {"id": key, "flag": flag, "note": note} if op in "cu" else None,
            "source": {"connector": "postgresql", "name": "p", "ts_ms": 1772442930123, "lsn": lsn, "table": ships},
            "op": op,
        }

    steps = [
        [record("c", 10, 1), record("c", 11, 2), record("c", 30, 3)],
        [record("t", 20, None), record("u", 31, 3, "g"), record("c", 32, 4), record("d", 33, 4), record("c", 34, 5)],
    ]
    if method == "at once":
        workshop.configure(ships, "merged", "{meta: {merged: {compact_when: always}}}")
    for number, records in enumerate(steps):
        path = workshop.landing / f"{feed}/{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(each) + "\n" for each in records))
        workshop.land_and_run(feed, f"+{ships}")
    expected = [(3, "g", "n30"), (5, "f", "n34")]
    assert workshop.rows(f"select * from {ships} order by id") == expected
    if method == "full":
        compact(workshop.spark, ships, method="full")
        assert workshop.rows(f"select * from {ships} order by id") == expected
    else:
        commits = workshop.spark.sql(f"describe history {ships}_merged").collect()
        assert len(commits) == 2 and commits[0].operation == "MERGE"
    assert workshop.rows(f"select change_type from {ships}_merged where id is null") == [("truncate",)]
    workshop.build(f"{ships}_merged", command="test")


# a reader of small tables asks twice as often so
READERS_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# what a reader in another process does: on a copy of the metastore, the tables read where they are
READER = """
import json, sys
from highwater.spark.spark import reading_session

with reading_session() as spark:
    for name, value in json.loads(sys.argv[1]).items():
        spark.conf.set(name, value)
    while True:
        rows = spark.sql("select id, name, region from cities order by id").collect()
        print(json.dumps(rows), flush=True)
"""


@contextlib.contextmanager
def reading_process(workshop, path):
    """A process that writes what it reads to a file, until the end."""
    settings = {**os.environ, "SPARK_CONF_DIR": str(workshop.folder / "conf")}
    with open(path, "w") as output:
        command = [sys.executable, "-c", READER, json.dumps(READERS_SETTINGS)]
        process = subprocess.Popen(command, cwd=workshop.folder, env=settings, stdout=output)
        try:
            yield
            assert process.poll() is None, "the reader has failed"
        finally:
            process.terminate()
            process.wait()


@pytest.mark.parametrize("wanted", in_soak_but([20], [20, 10_000]))
def test_readers_see_whole_states_only(world, wanted, tmp_path):
    """C11, C12: readers ask throughout; every answer is a state that was there, none is mixed, empty or doubled.

    Two threads; in the long run a process too, which reads the tables by their paths.
    """
    picks, states, found, others, meanwhile = random.Random(5), [], [], [], 0
    elsewhere = tmp_path / "read.jsonl"
    session = world.spark.newSession()
    for name, value in READERS_SETTINGS.items():
        session.conf.set(name, value)

    def state(spark=world.spark):
        return tuple(sorted(map(tuple, spark.sql("select id, name, region from lake.cities").collect())))

    def reads():
        # the last line may not be whole yet
        lines = elsewhere.read_text().split("\n")[:-1] if elsewhere.exists() else []
        others.extend(tuple(map(tuple, json.loads(line))) for line in lines[len(others) :])
        return len(found) + len(others)

    compact(world.spark, "cities")
    states.append(state())
    is_long_run = wanted == 10_000
    outside = reading_process(world, elsewhere) if is_long_run else contextlib.nullcontext()
    with reading(lambda: found.append(state(session)), threads=2) as readers, outside:
        for number in itertools.count():
            before = len(found)
            keys = picks.sample(range(1, 40), 12)
            changes(world, [("UPDATE-INSERT", key, f"{number}", picks.choice("abc")) for key in keys])
            states.append(state())
            compact(world.spark, "cities", method=["in-place", "full", "partitions"][number % 3])
            assert state() == states[-1]
            meanwhile += len(found) - before
            # a hundred states; most of the time is the readers'
            while reads() < number * wanted / 100 and is_long_run and not any(each.done() for each in readers):
                time.sleep(2)
            assert set(found) | set(others) <= set(states)
            print(f"{len(found)} reads and {len(others)} elsewhere, {meanwhile} while writing; {len(states)} states")
            if any(each.done() for each in readers) or (number >= 2 and reads() >= wanted):
                break
    assert len(set(found)) >= 3 and (not is_long_run or len(set(others)) >= 3)


def test_c12_of_two_writers_one_gets_a_conflict(world):
    """Without the lease: Delta lets one of two commits to the same rows through, and the other fails whole."""
    outcomes = []

    def write(name):
        try:
            world.spark.sql(f"update cities_merged set name = '{name}'")
            outcomes.append(name)
        except (Py4JError, PySparkException) as error:
            assert "concurrent" in str(error).lower(), error
            outcomes.append(None)

    version = world.version("cities_merged")
    writers = [threading.Thread(target=write, args=(name,)) for name in "xy"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    names = {name for (name,) in world.rows("select distinct name from cities_merged")}
    assert len(names) == 1 and names <= set(outcomes)
    world.spark.sql(f"restore table cities_merged to version as of {version}")
