"""Base and pending: the view is right before, during and after compaction, and cheap to filter."""

import json
import random
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from highwater.catalog.pending import newest_batch_shown
from highwater.status.status import compaction_of
from highwater.upkeep.evolution import meet
from highwater.upkeep.rebuild import rebuild
from workshop import change

pytestmark = pytest.mark.long

TABLE, FEED = "datastream_views.viewed", "datastream_views"


def deliver(workshop, name, operations):
    records = [change(kind, sequence, {"id": key, "v": value}) for kind, sequence, key, value in operations]
    workshop.deliver(TABLE, name, records)


def compact_when(workshop, rule):
    workshop.configure("viewed", "merged", f"{{meta: {{merged: {{compact_when: {json.dumps(rule)}}}}}}}")


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
    assert workshop.layers("viewed") == (1000, 80)
    assert view(workshop) == history
    pending = "verdict = 'applied' and log_batch > (select max(log_batch) from viewed_merged)"
    assert workshop.value(f"select count(*) from viewed_changes where is_deleted and {pending}") > 0


def test_a_build_writes_the_log_and_nothing_else(workshop, history):
    for table, commits in [("viewed_changes", ["WRITE"] * 2), ("viewed_merged", [])]:
        # the last one is the table as the first batch made it
        operations = [row.operation for row in workshop.spark.sql(f"describe history {table}").collect()]
        assert operations[:-1] == commits, table


def compiled_log(workshop):
    (log,) = workshop.folder.glob("target/compiled/**/viewed_changes.sql")
    return log.read_text()


def test_changes_that_come_in_order_are_judged_without_a_look_at_the_base(workshop, history):
    assert "left semi join" not in compiled_log(workshop)


def test_filters_on_keys_and_columns_reach_the_files(workshop, history):
    workshop.spark.conf.set("spark.sql.maxMetadataValueLength", "10000")
    plan = workshop.spark.sql("explain formatted select * from viewed where id = 5 and v = 'base'").first()[0]
    pushed = [line for line in plan.split("\n") if line.startswith("PushedFilters")]
    both = [line for line in pushed if "EqualTo(id,5)" in line and "EqualTo(v,base)" in line]
    assert len(both) == 1, plan  # the base; what is pending is little


def test_files_of_older_batches_are_not_opened(workshop, history):
    """Of the log those of the base, of the base those that cannot have the newest batch."""
    opened = files_read(workshop, "select count(v) from viewed")
    pending = workshop.value("select count(distinct _metadata.file_path) from viewed_changes where log_batch > 1")
    base = workshop.value("select count(distinct _metadata.file_path) from viewed_merged")
    # the base for its rows and for its newest batch; the log for the keys and for the rows
    assert opened <= 2 * base + 2 * pending
    assert workshop.value("select count(distinct _metadata.file_path) from viewed_changes") > pending


FAULTS = {
    "more than one base row": "insert into lake.faulty select * from lake.faulty where id = {key}",
    "a base row without a sequence": "update lake.faulty set change_sequence_number = null where id = {key}",
    "what is pending is older than the base row": (
        "update lake.faulty set change_sequence_number = 'f' || change_sequence_number where id = {key}"
    ),
}


# those of what a build has just written; the others are found by the test alone, which looks at every row
FAULTS_OF_A_BUILD = {
    "more than one base row": "insert into lake.faulty select * from lake.faulty where id = 5000",
    "a base row without a sequence": "update lake.faulty set change_sequence_number = null where id = 5000",
    "what was applied is not in the base": "delete from lake.faulty where id = 5000",
    "the base row is not the latest change": (
        "update lake.faulty set change_sequence_number = '0' || change_sequence_number where id = 5000"
    ),
}


def sql_of_layers(workshop) -> str:
    """The test of the layers as it was compiled last, of a copy of the base that faults are planted in."""
    workshop.spark.sql("create or replace table lake.faulty using delta as select * from viewed_merged")
    (test,) = workshop.folder.glob("target/compiled/**/has_agreeing_layers_viewed*.sql")
    return test.read_text().replace("lake.viewed_merged", "lake.faulty")


def problems(workshop, sql) -> set:
    return {row.problem for row in workshop.spark.sql(sql).collect()}


def test_agreeing_layers_sees_each_fault(workshop, history):
    key = next(key for key, value in history.items() if key < 1000 and value != "base")
    audited = workshop.audit("viewed_merged")
    assert audited and {each.status for each in audited.values()} == {"pass"}, audited
    sql = sql_of_layers(workshop)
    assert workshop.rows(sql) == []
    for problem, fault in FAULTS.items():
        workshop.spark.sql(fault.format(key=key))
        assert problems(workshop, sql) == {problem}
        workshop.spark.sql("restore table lake.faulty to version as of 0")


def test_compaction_does_not_change_the_state_tombstones_included(workshop, history):
    before_rows, version = view(workshop), workshop.version("viewed_merged")
    compact_when(workshop, {"pending_rows": 1})
    workshop.build("+viewed", command="run")
    assert workshop.version("viewed_merged") == version + 1
    (newest,) = workshop.spark.sql("describe history viewed_merged limit 1").collect()
    assert newest.operation == "MERGE" and compaction_of(newest) == "pending_rows 1"
    assert workshop.layers("viewed")[1] == 0
    assert view(workshop) == before_rows == history
    said = (
        "select id, max_by(struct(v, is_deleted, change_sequence_number, landing_batch), change_sequence_number) "
        "from viewed_changes where verdict = 'applied' group by id"
    )
    held = "select id, struct(v, is_deleted, change_sequence_number, landing_batch) from viewed_merged"
    assert dict(workshop.rows(held)) == dict(workshop.rows(said))
    # both versions that a reader could have seen show the same rows, through the view of before and of after
    (now,) = workshop.folder.glob("target/compiled/**/marts/**/viewed.sql")
    sql = now.read_text()
    assert "log_batch > 3" in sql
    for mark in (3, 1):
        for seen in (version, version + 1):
            if mark <= 1 or seen > version:
                past = sql.replace("> 3", f"> {mark}").replace(">= 3", f">= {mark}")
                past = past.replace("lake.viewed_merged", f"lake.viewed_merged version as of {seen}")
                assert {row.id: row.v for row in workshop.spark.sql(past).collect()} == history, (mark, seen)


def test_a_base_that_is_older_than_its_view_is_not_read(workshop, history):
    """Restored by itself it would lack what the view no longer looks for in the log; a build makes the view anew."""
    now = workshop.version("viewed_merged")
    workshop.spark.sql(f"restore table viewed_merged to version as of {now - 1}")
    with pytest.raises(Exception, match="viewed_merged is older than the view of viewed; run: highwater build"):
        view(workshop)
    compact_when(workshop, {"pending_rows": 10_000})
    workshop.build("viewed", command="run")
    assert view(workshop) == history and workshop.layers("viewed")[1] == 80


def test_compaction_takes_in_by_order(workshop, history):
    """An older change does nothing, and neither do the batches again that a restored base has lost."""
    compact_when(workshop, {"pending_rows": 1})
    version, (known, gone) = workshop.version("viewed_merged"), list(history)[1:3]
    operations = [("UPDATE-INSERT", "5", known, "at once"), ("DELETE", "5", gone, None), ("INSERT", "5", 3000, "new")]
    deliver(workshop, "at-once.json", [*operations, ("UPDATE-INSERT", "0", list(history)[3], "older")])
    workshop.land_and_run(FEED, "+viewed")
    # for a change that comes late the base is read once, narrow, for arriving keys
    classified = compiled_log(workshop)
    assert "/*+ broadcast(arriving_keys) */" in classified and "left semi join" in classified
    history.update({known: "at once", 3000: "new"})
    del history[gone]
    assert workshop.version("viewed_merged") == version + 1
    assert view(workshop) == history and workshop.layers("viewed")[1] == 0
    (newest,) = workshop.spark.sql("describe history viewed_merged limit 1").collect()
    assert newest.operation == "MERGE" and compaction_of(newest) == "pending_rows 1"


def test_with_nothing_pending_the_view_reads_what_a_plain_table_reads(workshop, history):
    """Beside the files that may have the newest batch, for its number."""
    plain = files_read(workshop, "select count(v) from viewed_merged")
    newest = files_read(workshop, "select max(log_batch) from viewed_merged where log_batch >= 4")
    assert files_read(workshop, "select count(v) from viewed") <= plain + newest


@pytest.mark.soak
@pytest.mark.parametrize(
    "rule, fires",
    [
        ({"pending_rows": 6, "pending_percent": 50}, False),
        ({"pending_rows": 10**6, "pending_percent": 0.4}, False),  # of so few no share counts
        ({"pending_rows": 5}, True),
        ({"pending_batches": 2}, False),
        ({"pending_batches": 1}, True),
        ({"pending_days": 30}, False),
        ({"pending_days": 0}, True),
    ],
)
def test_the_rule_says_when_a_build_compacts(workshop, history, rule, fires):
    compact_when(workshop, "always")
    workshop.build("+viewed", command="run")
    compact_when(workshop, rule)
    sequence = workshop.value("select hex(max(log_batch) + 100) from viewed_changes")
    deliver(
        workshop,
        f"rule-{json.dumps(rule)}.json",
        [("UPDATE-INSERT", sequence, key, "rule") for key in range(2000, 2005)],
    )
    workshop.land_and_run(FEED, "+viewed")
    assert (workshop.layers("viewed")[1] == 0) == fires


def test_a_small_base_is_written_in_every_build_and_its_view_reads_nothing_else(workshop, history):
    def deliver_next(key, upto="+viewed"):
        sequence = workshop.value("select hex(max(log_batch) + 512) from viewed_changes")
        deliver(workshop, f"small-{sequence}.json", [("UPDATE-INSERT", sequence, key, sequence)])
        workshop.land_and_run(FEED, upto)
        return sequence

    def overlays():
        (mart,) = workshop.folder.glob("target/compiled/**/marts/**/viewed.sql")
        return "pending" in mart.read_text()

    compact_when(workshop, "always")
    # a view of a base that is written in every build, which does not look into the log
    workshop.build("viewed", command="run")
    rows, pending = workshop.layers("viewed")
    assert pending == 0
    compact_when(workshop, {"base_rows": rows * 10})
    # what a build of a part has left in the log is seen all the same, once the view is built
    history[7000] = deliver_next(7000, "+viewed_changes")
    newest = workshop.value("select max(log_batch) from viewed_changes")
    assert 7000 not in view(workshop) and newest_batch_shown(workshop.spark, "viewed") == newest - 1
    workshop.build("viewed", command="run")
    assert overlays() and view(workshop)[7000] == history[7000]
    assert newest_batch_shown(workshop.spark, "viewed") == newest
    history[7001] = deliver_next(7001)
    assert not overlays() and workshop.layers("viewed")[1] == 0 and view(workshop) == history
    # before the builds leave something in the log, the view looks there
    compact_when(workshop, {"base_rows": rows + 100})
    history[7002] = deliver_next(7002)
    assert overlays() and workshop.layers("viewed")[1] == 0 and view(workshop) == history
    compact_when(workshop, {"base_rows": rows - 100})
    history[7003] = deliver_next(7003, "+viewed_merged")
    assert workshop.layers("viewed")[1] == 1 and view(workshop) == history


def test_a_wrong_rule_is_refused_by_name(workshop, history):
    compact_when(workshop, "sometimes")
    with pytest.raises(AssertionError, match="compact_when of viewed_merged is 'sometimes'; it must be `always`"):
        workshop.build("viewed_merged", command="run")
    compact_when(workshop, "always")


def test_killed_between_the_log_and_the_merged_table(workshop, history):
    """The log may be ahead by several batches; what it classified meanwhile is right, and nothing is lost."""
    compact_when(workshop, {"pending_rows": 10_000})
    for step, operations in enumerate(
        [
            [("INSERT", "A01", 5000, "first"), ("INSERT", "A05", 5001, "second")],
            [("UPDATE-INSERT", "A02", 5000, "second"), ("UPDATE-INSERT", "A03", 5001, "late")],
        ]
    ):
        deliver(workshop, f"killed{step}.json", operations)
        workshop.land_and_run(FEED, "+viewed_changes")
    classified = "select id, verdict from viewed_changes where id in (5000, 5001) order by log_batch, id"
    assert workshop.rows(classified) == [
        (5000, "applied"),
        (5001, "applied"),
        (5000, "applied"),
        (5001, "superseded"),
    ]
    workshop.build("+viewed", command="run")
    assert workshop.rows("select v from viewed where id = 5000") == [("second",)]
    assert workshop.rows("select v from viewed_merged where id = 5000") == []
    compact_when(workshop, "always")
    workshop.build("+viewed")
    assert workshop.rows("select v from viewed where id = 5000") == [("second",)]


def test_a_build_looks_at_what_it_has_written(workshop, history):
    sql = sql_of_layers(workshop)
    assert workshop.rows(sql) == []
    for problem, fault in FAULTS_OF_A_BUILD.items():
        workshop.spark.sql(fault)
        assert problems(workshop, sql) == {problem}
        sql_of_layers(workshop)
    # a row that the build has not touched is for the audit
    workshop.spark.sql("insert into lake.faulty select * from lake.faulty where id = 1")
    assert problems(workshop, sql) == set()


def test_a_base_that_a_build_has_not_written_is_not_read_again(workshop, history):
    """Only the rows of keys that came out of order, which classifying has looked up too."""

    def built(name, *operations):
        deliver(workshop, name, operations)
        workshop.land(FEED)
        workshop.build("+viewed")
        return sql_of_layers(workshop)

    def planned(sql):
        return workshop.spark.sql(sql)._jdf.queryExecution().optimizedPlan().toString()

    compact_when(workshop, {"pending_rows": 10_000})
    workshop.spark.sql("alter table viewed_merged set tblproperties ('somebody' = 'was here')")
    sql = built("asked.json", ("UPDATE-INSERT", "B00", 5000, "asked"))
    # another commit than the known one: every row
    workshop.spark.sql(FAULTS["more than one base row"].format(key=1))
    assert problems(workshop, sql) == {"more than one base row"} and "Relation" in planned(sql)
    sql = built("in-order.json", ("UPDATE-INSERT", "B01", 5000, "in order"))
    workshop.spark.sql(FAULTS["more than one base row"].format(key=5000))
    assert problems(workshop, sql) == set() and "Relation" not in planned(sql).replace("LocalRelation", "")
    sql = built("late.json", ("UPDATE-INSERT", "A04", 5000, "late"), ("UPDATE-INSERT", "A07", 5001, "between"))
    for problem, fault in FAULTS.items():
        assert problems(workshop, sql) == set()
        workshop.spark.sql(fault.format(key=5001))
        assert problems(workshop, sql) == {problem}
        sql_of_layers(workshop)
    compact_when(workshop, "always")
    workshop.build("+viewed", command="run")


def test_has_unique_key_sees_a_double_and_a_null(workshop, history):
    workshop.build("viewed", command="test")
    (test,) = workshop.folder.glob("target/compiled/**/has_unique_key_viewed*.sql")
    for planted, found in [("(1, 'x')", []), ("(1, 'x'), (1, 'y')", [((1,), 2)]), ("(null, 'x')", [((None,), 1)])]:
        workshop.spark.sql(f"create or replace temp view keyed as select * from values {planted} as t (id, v)")
        assert workshop.rows(test.read_text().replace("lake.viewed\n", "keyed\n")) == found


def test_a_base_of_version_05_is_refused_and_made_anew(workshop, history):
    """Pending rows stood in it, beside the base rows that they hide; a rebuild makes the same rows by one commit."""
    shown, columns = view(workshop), workshop.spark.table("lake.viewed_merged").columns
    keys = workshop.value("select count(distinct id) from viewed_merged")
    assert list(meet(workshop.spark, ["viewed"])) == []
    rows = ", ".join(columns)
    workshop.spark.sql(
        "create or replace table lake.viewed_merged using delta as "
        f"select false as is_pending, {rows} from lake.viewed_merged union all "
        f"select true, {rows} from lake.viewed_merged where id = 10"
    )
    (met,) = meet(workshop.spark, ["viewed"])
    assert met.is_refused and met.sentence.endswith("anew from its log: highwater rebuild viewed")
    version = workshop.version("viewed_merged")
    assert f"{keys:,} keys" in rebuild(workshop.spark, "viewed")
    assert workshop.version("viewed_merged") == version + 1
    assert list(meet(workshop.spark, ["viewed"])) == []
    assert view(workshop) == shown and workshop.layers("viewed")[1] == 0


def test_full_refresh_does_not_touch_logs_and_merged_tables(workshop, history):
    """And neither does a build that has nothing to take in, though each build is to compact."""
    versions = [workshop.version(f"viewed_{layer}") for layer in ("changes", "merged")]
    columns = workshop.spark.table("lake.viewed_merged").columns
    workshop.build("+viewed", full_refresh=None)
    assert [workshop.version(f"viewed_{layer}") for layer in ("changes", "merged")] == versions
    assert "is_pending" not in columns and workshop.spark.table("lake.viewed_merged").columns == columns


def test_a_build_reads_of_the_log_what_is_new(workshop, history):
    """However long a log is: files of old batches can be away, and builds do not miss them."""
    assert workshop.layers("viewed")[1] == 0
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
    assert workshop.rows("select v from viewed where id = 6000") == [("third",)]
    compact_when(workshop, "always")
    workshop.build("viewed_merged", command="run")
    assert workshop.rows("select v from viewed_merged where id = 6000") == [("third",)]


@pytest.mark.soak
def test_a_batch_asks_for_files_between_the_ends_of_its_keys(workshop):
    """Every key of the batch is between them, also texts that dbt reads as NULL and those that want escaping."""
    from highwater.upkeep.compact import compact

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
    assert workshop.layers("ended")[1] == 0
    assert dict(workshop.rows("select name, v from ended")) == {
        **dict.fromkeys(keys, "first"),
        **dict.fromkeys([*keys[1:3], "'; drop"], "new"),
    }
