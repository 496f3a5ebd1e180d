"""The merged table's two layers: the view is right before, during and after compaction, and cheap to filter."""

import json
import random
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from highwater.status import compaction_of
from workshop import change, in_soak_but

pytestmark = pytest.mark.long

TABLE, FEED = "datastream_views.viewed", "datastream_views"


def deliver(workshop, name, operations):
    records = [change(kind, sequence, {"id": key, "v": value}) for kind, sequence, key, value in operations]
    workshop.deliver(TABLE, name, records)


def layers(workshop):
    return dict(workshop.rows("select is_pending, count(*) from viewed_merged group by 1"))


def compact_when(workshop, rule):
    path = workshop.folder / "models/merged/views/viewed_merged.yml"
    text = path.read_text().split("    config:\n")[0] if "compact_when" in path.read_text() else path.read_text()
    workshop.original = getattr(workshop, "original", text)
    rest = workshop.original.replace(
        "    data_tests:\n",
        f"    config:\n      meta: {{merged: {{compact_when: {json.dumps(rule)}}}}}\n    data_tests:\n",
        1,
    )
    path.write_text(rest)


@pytest.fixture(scope="module")
def history(workshop):
    """1000 keys as the base, then two pending batches: updates, deletes, new keys, returns."""
    compact_when(workshop, "always")
    expected = {key: "base" for key in range(1000)}
    deliver(workshop, "base.json", [("INSERT", "1", key, "base") for key in expected])
    workshop.land_and_run(FEED, "+viewed")
    compact_when(workshop, {"pending_rows": 10_000})
    picks = random.Random(7)
    for batch in range(2, 4):
        operations = []
        for key in picks.sample(range(1040), 40):
            if key in expected and picks.random() < 0.4:
                expected.pop(key)
                operations.append(("DELETE", f"{batch}", key, None))
            else:
                expected[key] = f"batch {batch}"
                operations.append(("UPDATE-INSERT", f"{batch}", key, f"batch {batch}"))
        deliver(workshop, f"batch{batch}.json", operations)
        workshop.land_and_run(FEED, "+viewed")
    return expected


def view(workshop):
    return dict(workshop.rows("select id, v from viewed"))


def files_read(workshop, sql):
    """How many files the scans of the query read, by what the executed plan counts."""
    frame = workshop.spark.sql(sql)
    frame.collect()
    pending, count = [frame._jdf.queryExecution().executedPlan()], 0
    while pending:
        node = pending.pop()
        if node.nodeName().startswith("AdaptiveSparkPlan"):
            node = node.executedPlan()
        if node.nodeName().endswith("QueryStage"):
            node = node.plan()
        if "Scan" in node.nodeName() and node.metrics().contains("numFiles"):
            count += node.metrics().apply("numFiles").value()
        children = node.children()
        pending += [children.apply(place) for place in range(children.size())]
    return count


def test_with_several_batches_pending(workshop, history):
    counts = layers(workshop)
    assert counts[False] == 1000 and 60 < counts[True] <= 80
    assert view(workshop) == history
    assert workshop.value("select count(*) from viewed_merged where is_deleted") > 0


def test_the_batch_is_taken_in_by_one_commit(workshop, history):
    operations = [row.operation for row in workshop.spark.sql("describe history viewed_merged").collect()]
    # the newest is the first: two batches taken in, and the table as the first batch made it
    assert operations[:-1] == ["MERGE"] * 2


def test_taking_in_never_joins_the_batch_to_the_whole_table(workshop, history):
    """The judge reads the table once, narrow, for arriving keys; taking in touches the pending partition only."""
    (log,) = workshop.folder.glob("target/compiled/**/viewed_changes.sql")
    text = log.read_text()
    assert "/*+ broadcast(arriving_keys) */" in text and "left semi join" in text
    (merge,) = workshop.folder.glob("target/run/**/viewed_merged.sql")
    assert "pending.is_pending" in merge.read_text()


def test_filters_on_keys_and_columns_reach_the_files(workshop, history):
    workshop.spark.conf.set("spark.sql.maxMetadataValueLength", "10000")
    plan = workshop.spark.sql("explain formatted select * from viewed where id = 5 and v = 'base'").first()[0]
    pushed = [line for line in plan.split("\n") if line.startswith("PushedFilters")]
    both = [line for line in pushed if "EqualTo(id,5)" in line and "EqualTo(v,base)" in line]
    assert len(both) == 1, plan  # one scan for base and pending rows
    partitions = [line for line in plan.split("\n") if line.startswith("PartitionFilters")]
    assert sum("is_pending" in line for line in partitions) == 1, plan  # the scan of the pending keys
    assert "Union" not in plan


def test_compaction_does_not_change_the_state_tombstones_included(workshop, history):
    merged = (
        "select id, max_by(struct(v, is_deleted, change_sequence_number, landing_batch), is_pending) "
        "from viewed_merged group by id"
    )
    before_rows, before_keys, version = view(workshop), dict(workshop.rows(merged)), workshop.version("viewed_merged")
    compact_when(workshop, "always")
    workshop.build("+viewed", command="run")
    assert workshop.version("viewed_merged") == version + 2  # replaced base rows go, pending rows become base rows
    assert set(layers(workshop)) == {False}
    assert view(workshop) == before_rows == history
    assert dict(workshop.rows(merged)) == before_keys
    # every version that a reader could have seen shows the same rows
    now = workshop.folder.glob("target/compiled/**/marts/**/viewed.sql")
    sql = next(now).read_text()
    for seen in (version, version + 1, version + 2):
        past = sql.replace("lake.viewed_merged", f"lake.viewed_merged version as of {seen}")
        assert {row.id: row.v for row in workshop.spark.sql(past).collect()} == history, seen


def test_g7_a_compaction_killed_between_its_commits_is_run_again(workshop, history):
    """The replaced base rows are gone, the pending rows still pending; a batch may come before it goes on."""
    killed = workshop.version("viewed_merged") - 1
    workshop.spark.sql(f"restore table viewed_merged to version as of {killed}")
    assert layers(workshop)[True] > 60 and view(workshop) == history
    compact_when(workshop, {"pending_rows": 10_000})
    again, gone = (
        next(iter(history)),
        workshop.value("select id from viewed_merged where is_pending and is_deleted limit 1"),
    )
    deliver(workshop, "between.json", [("UPDATE-INSERT", "4", key, "between") for key in (again, gone)])
    workshop.land_and_run(FEED, "+viewed")
    history |= {again: "between", gone: "between"}
    assert view(workshop) == history
    workshop.build("viewed_merged", command="test")
    compact_when(workshop, "always")
    workshop.build("+viewed")
    assert set(layers(workshop)) == {False} and view(workshop) == history


def test_more_keys_than_a_statement_may_have_are_merged(workshop, history):
    now = workshop.version("viewed_merged")
    rows = "select * except (is_pending, is_new) from viewed_merged order by id"
    compacted = workshop.rows(rows)
    workshop.spark.sql(f"restore table viewed_merged to version as of {now - 2}")
    path = workshop.folder / "macros/merge/compact_pending.sql"
    sound = path.read_text()
    path.write_text(sound.replace("rows > 1000000", "rows > 50"))
    try:
        workshop.build("viewed_merged", command="run")
    finally:
        path.write_text(sound)
    done = workshop.spark.sql("describe history viewed_merged limit 2").collect()
    assert [row.operation for row in done] == ["UPDATE", "MERGE"]
    assert workshop.rows(rows) == compacted and view(workshop) == history


def test_with_nothing_pending_the_view_reads_what_a_plain_table_reads(workshop, history):
    plain = files_read(workshop, "select count(v) from viewed_merged where not is_pending")
    assert files_read(workshop, "select count(v) from viewed") <= plain


def test_a_compaction_that_repeats_does_nothing(workshop, history):
    version = workshop.version("viewed_merged")
    workshop.build("+viewed", command="run")
    assert workshop.version("viewed_merged") == version


def test_a_batch_that_makes_compaction_due_is_written_into_the_base(workshop, history):
    """One commit and no pending row; an older change does nothing, and neither does the same batch again."""
    version, (known, gone) = workshop.version("viewed_merged"), list(history)[1:3]
    operations = [("UPDATE-INSERT", "5", known, "at once"), ("DELETE", "5", gone, None), ("INSERT", "5", 3000, "new")]
    deliver(workshop, "at-once.json", [*operations, ("UPDATE-INSERT", "0", list(history)[3], "older")])
    workshop.land_and_run(FEED, "+viewed")
    history.update({known: "at once", 3000: "new"})
    del history[gone]
    assert workshop.version("viewed_merged") == version + 1
    assert view(workshop) == history and set(layers(workshop)) == {False}
    (newest,) = workshop.spark.sql("describe history viewed_merged limit 1").collect()
    assert newest.operation == "MERGE" and compaction_of(newest) == "always"
    workshop.build("viewed_merged", command="test")
    # taken in again, as after a restored merged table: the rows that were written stay as they are
    workshop.spark.sql(f"restore table viewed_merged to version as of {version}")
    workshop.build("+viewed", command="run")
    assert view(workshop) == history and set(layers(workshop)) == {False}


@pytest.mark.soak
@pytest.mark.parametrize(
    "rule, fires",
    [
        ({"pending_rows": 6, "pending_percent": 50}, False),
        ({"pending_rows": 10**6, "pending_percent": 0.4}, True),
        ({"pending_days": 30}, False),
        ({"pending_days": 0}, True),
    ],
)
def test_the_rule_says_when_a_build_compacts(workshop, history, rule, fires):
    compact_when(workshop, rule)
    sequence = workshop.value("select hex(max(log_batch) + 100) from viewed_changes")
    deliver(
        workshop,
        f"rule-{json.dumps(rule)}.json",
        [("UPDATE-INSERT", sequence, key, "rule") for key in range(2000, 2005)],
    )
    workshop.land_and_run(FEED, "+viewed")
    assert (True not in layers(workshop)) == fires


def test_has_unique_key_sees_a_double_and_a_null(workshop, history):
    workshop.build("viewed", command="test")
    (test,) = workshop.folder.glob("target/compiled/**/has_unique_key_viewed*.sql")
    for planted, found in [("(1, 'x')", []), ("(1, 'x'), (1, 'y')", [((1,), 2)]), ("(null, 'x')", [((None,), 1)])]:
        workshop.spark.sql(f"create or replace temp view keyed as select * from values {planted} as t (id, v)")
        assert workshop.rows(test.read_text().replace("lake.viewed\n", "keyed\n")) == found


def test_a_wrong_rule_is_refused_by_name(workshop, history):
    compact_when(workshop, "sometimes")
    with pytest.raises(AssertionError, match="compact_when of viewed_merged is 'sometimes'; it must be `always`"):
        workshop.build("viewed_merged", command="run")
    compact_when(workshop, "always")


def test_killed_between_the_log_and_the_merged_table(workshop, history):
    """The log may be ahead by several batches; what it judged meanwhile is right, and nothing is lost."""
    compact_when(workshop, {"pending_rows": 10_000})
    for step, operations in enumerate(
        [
            [("INSERT", "A01", 5000, "first"), ("INSERT", "A05", 5001, "second")],
            [("UPDATE-INSERT", "A02", 5000, "second"), ("UPDATE-INSERT", "A03", 5001, "late")],
        ]
    ):
        deliver(workshop, f"killed{step}.json", operations)
        workshop.land_and_run(FEED, "+viewed_changes")
    judged = "select id, verdict, is_new_key from viewed_changes where id in (5000, 5001) order by log_batch, id"
    assert workshop.rows(judged) == [
        (5000, "applied", True),
        (5001, "applied", True),
        (5000, "applied", True),
        (5001, "superseded", True),
    ]
    workshop.build("+viewed", command="run")
    assert workshop.rows("select v from viewed where id = 5000") == [("second",)]
    assert workshop.rows("select is_pending, is_new from viewed_merged where id = 5000") == [(True, True)]
    compact_when(workshop, "always")
    workshop.build("+viewed")
    assert workshop.rows("select v from viewed where id = 5000") == [("second",)]


FAULTS = {
    "more than one pending row": "insert into lake.faulty select * from lake.faulty where is_pending",
    "more than one base row": "insert into lake.faulty select * from lake.faulty where not is_pending limit 1",
    "is new, but has a base row": "update lake.faulty set is_new = true where is_pending",
    "pending row is older than the base row": "update lake.faulty set change_sequence_number = '' where is_pending",
}


@pytest.mark.parametrize("problem", in_soak_but(["more than one pending row"], FAULTS))
def test_agreeing_layers_sees_each_fault(workshop, history, problem):
    if not workshop.spark.catalog.tableExists("lake.with_pending"):
        compact_when(workshop, {"pending_rows": 10_000})
        deliver(workshop, "faults.json", [("UPDATE-INSERT", "B00", 5000, "third")])
        workshop.land_and_run(FEED, "+viewed")
        workshop.spark.sql("create table lake.with_pending using delta as select * from viewed_merged")
    workshop.spark.sql("create or replace table lake.faulty using delta as select * from lake.with_pending")
    (test,) = workshop.folder.glob("target/compiled/**/has_agreeing_layers_viewed*.sql")
    sql = test.read_text().replace("lake.viewed_merged", "lake.faulty")
    assert workshop.rows(sql) == []
    workshop.spark.sql(FAULTS[problem])
    assert {row.problem for row in workshop.spark.sql(sql).collect()} == {problem}


def test_rebuild_gives_the_same_rows_by_one_commit(workshop, history):
    from highwater.rebuild import rebuild

    before, version = view(workshop), workshop.version("viewed_merged")
    keys = workshop.value("select count(distinct id) from viewed_merged")
    assert f"{keys:,} keys" in rebuild(workshop.spark, "viewed")
    assert workshop.version("viewed_merged") == version + 1
    assert view(workshop) == before and set(layers(workshop)) == {False}
    workshop.build("+viewed")


def test_full_refresh_does_not_touch_logs_and_merged_tables(workshop, history):
    versions = [workshop.version(f"viewed_{layer}") for layer in ("changes", "merged")]
    workshop.build("+viewed", command="run", full_refresh=None)
    assert [workshop.version(f"viewed_{layer}") for layer in ("changes", "merged")] == versions


def test_a_build_reads_of_the_log_what_is_new(workshop, history):
    """However long a log is: files of old batches can be away, and builds do not miss them."""
    compact_when(workshop, {"pending_rows": 10_000})
    spark, newest = workshop.spark, workshop.value("select max(log_batch) from viewed_changes")
    for table in ("viewed_changes", "viewed_merged"):  # as after a hundred more builds
        spark.sql(f"update lake.{table} set log_batch = log_batch + 100 where log_batch >= {newest - 1}")
    old = workshop.rows(f"select distinct _metadata.file_path from viewed_changes where log_batch < {newest - 1}")
    hidden = [Path(unquote(urlparse(path).path)) for (path,) in old]
    assert hidden
    for path in hidden:
        path.rename(path.with_suffix(".away"))
    try:
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            spark.sql("select feed, max(landing_batch) from lake.viewed_changes group by feed").collect()
        workshop.build("+viewed", command="run")
        deliver(workshop, "long.json", [("INSERT", "C01", 6000, "first")])
        workshop.land_and_run(FEED, "+viewed")
        assert workshop.rows("select v from viewed where id = 6000") == [("first",)]
        # nothing of the newest batch is applied: the same record again
        deliver(workshop, "long_again.json", [("INSERT", "C01", 6000, "first")])
        workshop.land_and_run(FEED, "+viewed")
        deliver(workshop, "longer.json", [("UPDATE-INSERT", "C02", 6000, "second")])
        workshop.land_and_run(FEED, "+viewed")
    finally:
        for path in hidden:
            path.with_suffix(".away").rename(path)
    verdicts = workshop.rows("select verdict, log_batch from viewed_changes where id = 6000 order by log_batch")
    assert verdicts == [("applied", newest + 101), ("duplicate", newest + 102), ("applied", newest + 103)]
    assert workshop.rows("select v from viewed where id = 6000") == [("second",)]


def test_what_was_not_taken_in_is_found_behind_many_batches_of_copies(workshop, history):
    deliver(workshop, "behind.json", [("UPDATE-INSERT", "C03", 6000, "third")])
    workshop.land_and_run(FEED, "+viewed_changes")
    workshop.spark.sql(
        "insert into lake.viewed_changes by name select * except (verdict, log_batch), 'duplicate' as verdict, "
        "log_batch + 50 as log_batch from lake.viewed_changes where id = 6000 and verdict = 'applied' "
        "order by log_batch desc limit 1"
    )
    workshop.build("viewed_merged", command="run")
    assert workshop.rows("select v from viewed where id = 6000") == [("third",)]


@pytest.mark.soak
def test_a_batch_asks_for_files_between_the_ends_of_its_keys(workshop):
    """Every key of the batch is between them, also texts that dbt reads as NULL and those that want escaping."""
    from highwater.compact import compact

    table, keys = "datastream_ends.ended", ["", "null", "O'Neil \\", "zebra", "äöü", "\U0001f600"]
    workshop.add_table(table, "name:string,day:date,n:int", "v:string")

    def deliver(name, sequence, value, names):
        records = [
            change("UPDATE-INSERT", sequence, {"name": key, "day": "2024-08-29", "n": len(key), "v": value})
            for key in names
        ]
        workshop.deliver(table, name, records)
        workshop.land("datastream_ends")

    deliver("1.json", "5", "first", keys)
    workshop.build("+ended", command="run")
    # older than what stands, in two batches: of the first one dbt could not tell the ends
    deliver("2.json", "3", "late", keys[:2])
    deliver("3.json", "3", "late", keys[2:])
    workshop.build("+ended", command="run")
    assert workshop.rows("select v, count(*) from ended group by v") == [("first", len(keys))]
    (log,) = workshop.folder.glob("target/compiled/**/ended_changes.sql")
    between = [
        line.strip() for line in log.read_text().splitlines() if line.lstrip().startswith(("where held.", "and held."))
    ]
    assert between == [
        "where held.`name` between '' and '\U0001f600'",
        "and held.`day` between date'2024-08-29' and date'2024-08-29'",
        "and held.`n` between 0 and 8",
    ]
    deliver("4.json", "7", "new", [*keys[1:3], "'; drop"])
    workshop.build("+ended", command="run")
    compact(workshop.spark, "ended")
    assert workshop.rows("select count(*) from ended_merged where is_pending") == [(0,)]
    assert dict(workshop.rows("select name, v from ended")) == {
        **dict.fromkeys(keys, "first"),
        **dict.fromkeys([*keys[1:3], "'; drop"], "new"),
    }
