"""What a build rejects is said by table; too much of it, or a changed type, fails the build; stale rows are listed."""

import re

import click
import pytest
from highwater.builds import build, last_build, rejections
from highwater.builds.rejections import OtherConnector, Rejected, Threshold, threshold_of
from highwater.catalog.feeds import declared_feeds
from highwater.catalog.rendering import render
from highwater.commands.build import build as build_command
from highwater.runtime.errors import CheckError, UsageError
from highwater.spark import dbt
from highwater.status.status import status
from highwater.upkeep import evolution
from highwater.upkeep.evolution import meet
from highwater.upkeep.rebuild import rebuild_from_raw
from highwater.upkeep.replay import replay
from pyspark.sql import Row
from workshop import change

FEED, TABLE = "datastream_gauges", "gauges"
LISTS = ["ledger", "rejected_changes", "stale_rows"]


class Gauges:
    """A table of readings, delivered batch by batch."""

    def __init__(self, workshop):
        self.workshop, self.spark, self.sequence = workshop, workshop.spark, 0

    def change(self, key, **values):
        self.sequence += 1
        return change("INSERT", f"{self.sequence:x}", {"id": key, **values})

    def deliver(self, name, *records):
        self.workshop.deliver(f"{FEED}.{TABLE}", name, list(records))
        return self.workshop.land(FEED)[FEED].newest[0]

    def build(self) -> list:
        """Return what a build rejects."""
        self.workshop.build(f"+{TABLE}", *LISTS, command="run")
        found, untold = rejections.of_build(self.spark, dbt.appended)
        assert untold == []
        return found

    def stale(self) -> dict:
        rows = self.workshop.rows(f"select key_values, rejection_detail from stale_rows where table_name = '{TABLE}'")
        return {int(re.search(r"\d+", key)[0]): detail for key, detail in rows}

    @property
    def declaration(self):
        return self.workshop.folder / f"models/tables/gauges/{TABLE}.yml"

    def declare(self, old, new):
        text = self.declaration.read_text()
        assert old in text
        self.declaration.write_text(text.replace(old, new, 1))


@pytest.fixture(scope="module")
def logs(workshop):
    """The lists ask these logs only."""
    path = workshop.folder / "macros/operations/logged_tables.sql"
    every_table = path.read_text()
    workshop.add_table(
        "debezium_valves.valves", "id:int", "n:int,m:int,s:string", "debezium-json", {"connector": "postgresql"}
    )
    path.write_text(render("logged_tables.sql", entities=[TABLE, "valves"]))
    workshop.deliver("debezium_valves.valves", "0.json", [valve("c", 1, 100)])
    workshop.land("debezium_valves")
    workshop.build("+valves", command="run")
    yield workshop
    path.write_text(every_table)


@pytest.fixture(scope="module")
def gauges(logs):
    return Gauges(logs)


@pytest.mark.long
def test_odd_values_are_told_and_too_many_of_them_fail_the_build(gauges):
    """One of a hundred is not more than 1 %, three of 99 are in too small a batch: of three batches one is trouble."""
    odd = {"n": "much"}
    one = gauges.deliver("one.json", *(gauges.change(k, **(odd if k == 50 else {"n": k})) for k in range(1, 101)))
    values = {10: odd, 20: {"day": "31 May"}}
    two = gauges.deliver("two.json", *(gauges.change(k, **values.get(k - 100, {"n": k})) for k in range(101, 201)))
    values = {1: {"price": "1.999"}, 2: {"flag": "\x1b[2J"}, 3: {"small": 999}}
    few = gauges.deliver("few.json", *(gauges.change(k, **values.get(k - 200, {"n": k})) for k in range(201, 300)))
    (found,) = gauges.build()
    assert found.batches == {(FEED, one): (100, 1), (FEED, two): (100, 2), (FEED, few): (99, 3)}
    assert found.type_changes == []
    lines = rejections.lines_of(found)
    told = 'value_does_not_fit, n = ["much"] does not fit int'
    where = f"in {FEED}/{TABLE}/one.json, line 50"
    assert f"1 of 100 records rejected (1.0 %) in batch {one} of {FEED}: {told}; {where}" in lines, lines
    # a sequence that would clear the terminal is not printed
    assert len(lines) == 6 and lines[-1].startswith("and for 1 more") and "\x1b" not in "".join(lines), lines
    (trouble,) = rejections.troubles_of(found)
    told = f"{TABLE}: 2 of 100 records (2.0 %) of batch {two} of {FEED} were rejected, more than the 1 % of"
    assert trouble.startswith(told), trouble
    words, *_ = last_build.summary(gauges.spark, [found])
    assert re.search(
        rf"^  {TABLE} +293 rows now   from 299 records: 293 applied, 0 superseded, 6 rejected \(.*\n    1 of ",
        words,
        re.M,
    ), words


@pytest.mark.long
def test_what_was_rejected_before_is_no_trouble_of_a_build_with_nothing_new(gauges):
    gauges.workshop.build(f"+{TABLE}", *LISTS, command="run")
    assert dbt.appended == {} and rejections.of_build(gauges.spark, dbt.appended) == ([], [])
    words, *_ = last_build.summary(gauges.spark)
    assert re.search(rf"^  {TABLE} .* 6 rejected \(see rejected_changes\), 6 stale \(see", words, re.M), words


@pytest.mark.long
def test_a_changed_type_is_told_with_what_takes_both(gauges):
    """From the first change on that does not fit, most of a column do not; before it they did."""
    day = [gauges.change(k, n=k, small=1, price="1.50", day="2024-01-01", flag=True) for k in range(301, 305)]
    day += [gauges.change(k, n=3_000_000_000 + k) for k in range(305, 308)]
    day += [gauges.change(k, small=f"{k / 8}") for k in range(308, 311)]
    day += [gauges.change(k, price=f"{k}.12345") for k in range(311, 314)]
    day += [gauges.change(k, day=f"2024-01-0{k - 312}T10:00:00Z") for k in range(314, 317)]
    day += [gauges.change(k, flag="maybe") for k in range(317, 320)]
    day += [gauges.change(320, n=12), gauges.change(321, n=13)]
    gauges.deliver("types.json", *day)
    (found,) = gauges.build()
    assert {(c.column, c.declared, c.brought, c.wider, c.misfits) for c in found.type_changes} == {
        ("n", "int", "larger numbers", "bigint", 3),
        ("small", "tinyint", "numbers with more digits behind the point", "decimal(6,3)", 3),
        ("price", "decimal(6,2)", "numbers with more digits behind the point", "decimal(9,5)", 3),
        ("day", "date", "times", "timestamp", 3),
        ("flag", "boolean", "text", "string", 3),
    }
    (trouble,) = [trouble for trouble in rejections.troubles_of(found) if " n has changed" in trouble]
    assert trouble == (
        f'{TABLE}: the type of n has changed at the source. It is declared as int, and 3 of the 5 values that came since are larger numbers, the first "3000000305" in {FEED}/{TABLE}/types.json, line 5. '  # noqa: E501
        f"To take both: highwater alter {TABLE} type n bigint"
    )


@pytest.mark.long
def test_keys_whose_newest_change_was_rejected_are_stale_until_a_newer_one_is_accepted(gauges):
    assert set(gauges.stale()) == {50, 110, 120, 201, 202, 203, *range(305, 320)}
    late = change("UPDATE-INSERT", "1", {"id": 203, "n": 1})
    gauges.deliver("newer.json", gauges.change(50, n=5), late, gauges.change(110, n="more"), gauges.change("x", n="y"))
    gauges.build()
    assert set(gauges.stale()) == {110, 120, 201, 202, 203, *range(305, 320)}
    assert gauges.stale()[110].startswith('n = ["more"]')
    (found,) = status(gauges.spark, TABLE)
    assert found["stale"] == 20


@pytest.mark.soak
def test_stale_rows_are_the_same_whatever_is_killed_or_dropped(gauges):
    """The rows are committed first and the marks after them."""
    stale = gauges.stale()
    assert stale
    gauges.spark.sql("delete from gathered_batches where model = 'stale_rows'")
    gauges.build()
    assert gauges.stale() == stale
    gauges.spark.sql("drop table stale_rows")
    gauges.build()
    assert gauges.stale() == stale


def build_alone(monkeypatch):
    """Let `highwater build` be of this table alone: other modules leave theirs as they like."""
    monkeypatch.setattr(build, "declared_feeds", lambda: {FEED: declared_feeds()[FEED]})
    monkeypatch.setattr(dbt, "checks_of_data_only", lambda: ["--select", f"+{TABLE}", *LISTS])
    monkeypatch.setattr(evolution, "meet", lambda spark: meet(spark, [TABLE]))


@pytest.mark.soak
def test_the_way_on_from_a_changed_type_and_the_exit_code_of_a_build(gauges, monkeypatch, capsys):
    """The build fails while what is right is there; the summary of the next one says it still; then it is repaired."""
    build_alone(monkeypatch)
    day = [gauges.change(k, n=k) for k in range(401, 410)] + [gauges.change(k, n="P14D") for k in range(410, 461)]
    gauges.workshop.deliver(f"{FEED}.{TABLE}", "day2.json", day)
    dbt.appended.clear()
    with pytest.raises(CheckError) as caught:
        build_command.main([], standalone_mode=False)
    assert caught.value.exit_code == 1 and "51 of the 51 values that came since are text" in str(caught.value)
    shown = capsys.readouterr().out
    assert "51 of 60 records rejected (85 %) in batch" in shown and " stale (see stale_rows)" in shown, shown
    assert gauges.workshop.value(f"select count(*) from {TABLE} where id between 401 and 460") == 9
    dbt.appended.clear()
    build_command.main([], standalone_mode=False)
    shown = capsys.readouterr().out
    assert re.search(r"\d+ rejected \(see rejected_changes\), \d+ stale \(see stale_rows\)", shown), shown
    gauges.declare("{name: n, data_type: int}", "{name: n, data_type: string}")
    assert "classified again from raw" in rebuild_from_raw(gauges.spark, TABLE)
    assert gauges.workshop.value(f"select count(*) from {TABLE} where n = 'P14D'") == 51
    gauges.build()
    assert not set(gauges.stale()) & set(range(410, 461))


@pytest.mark.long
def test_what_a_killed_build_rejected_fails_the_next_one(gauges, monkeypatch, capsys):
    """Once: what was told is no trouble of the build behind it, and neither is what a plain run of dbt applied."""
    build_alone(monkeypatch)

    def be_gone(*_):
        raise KeyboardInterrupt

    day = [gauges.change(k, n=k) for k in range(601, 661)] + [gauges.change(k, day="P14D") for k in range(661, 721)]
    gauges.workshop.deliver(f"{FEED}.{TABLE}", "killed.json", day)
    with monkeypatch.context() as patch, pytest.raises(click.Abort):
        patch.setattr(rejections, "of_build", be_gone)
        build_command.main([], standalone_mode=False)
    assert gauges.workshop.value(f"select count(*) from {TABLE} where id between 601 and 720") == 60
    capsys.readouterr()
    with pytest.raises(CheckError, match=r"60 of 120 records \(50 %\) of batch"):
        build_command.main([], standalone_mode=False)
    assert "60 of 120 records rejected (50 %) in batch" in capsys.readouterr().out
    build_command.main([], standalone_mode=False)
    gauges.deliver("plain.json", *[gauges.change(k, day="P14D") for k in range(721, 841)])
    gauges.build()
    build_command.main([], standalone_mode=False)


@pytest.mark.soak
def test_what_a_replay_accepts_is_no_longer_stale(gauges):
    gauges.deliver("small.json", gauges.change(500, small=300))
    gauges.build()
    assert 500 in gauges.stale()
    gauges.declare("{name: small, data_type: tinyint}", "{name: small, data_type: int}")
    for layer in ("changes", "merged"):
        gauges.spark.sql(f"alter table {TABLE}_{layer} set tblproperties ('delta.enableTypeWidening' = 'true')")
        gauges.spark.sql(f"alter table {TABLE}_{layer} alter column small type int")
    replay(gauges.spark, TABLE)
    gauges.build()
    assert 500 not in gauges.stale()


@pytest.mark.parametrize(
    "declared",
    ["1", "[1]", "{percent: many}", "{percent: 101}", "{percent: -1}", "{records: 0}", "{records: 1.5}", "{share: 1}"],
)
def test_a_threshold_that_is_none_is_refused_before_the_build(project_of_one, declared):
    project_of_one(declared)
    with pytest.raises(UsageError, match=r"^models/tables/shop/orders.yml: rejected_when is .* for example "):
        rejections.check_thresholds()


@pytest.mark.parametrize(
    "declared, expected",
    [("{percent: 0.5}", (0.5, 100)), ("{records: 1, percent: 0}", (0, 1)), ("{}", (1, 100))],
)
def test_a_threshold(project_of_one, declared, expected):
    project_of_one(declared)
    rejections.check_thresholds()
    assert threshold_of("orders") == Threshold(*expected)


def test_a_build_says_why_it_does_not_fail_for_what_it_rejected(monkeypatch):
    monkeypatch.setattr(rejections, "threshold_of", lambda entity: Threshold(*(5, 10) if entity == "lines" else ()))
    monkeypatch.setattr(rejections, "declaration_of", lambda entity: entity)
    few, small = Rejected("orders", {("shop", 2): (6, 2)}), Rejected("lines", {("shop", 2): (20, 1)})
    assert rejections.why_no_trouble([few]) == (
        "2 of 6 new records of orders rejected: a warning and no error, for `rejected_when` lets pass batches of fewer "
        f"than 100 records. What to do: {rejections.QUERY}"
    )
    said = rejections.why_no_trouble([few, small])
    assert said.startswith("3 of 26 new records of orders, lines rejected: a warning and no error"), said
    assert "lets pass at most 5 % of a batch or batches of fewer than 100 records." in said
    many = Rejected("orders", {("shop", 2): (100, 2)})
    misread = Rejected("orders", {("shop", 2): (6, 6)}, connectors=[OtherConnector("shop", "mysql", "db2", 6, 6, {})])
    assert rejections.troubles_of(many) and rejections.why_no_trouble([many, misread]) is None
    assert rejections.why_no_trouble([]) is None


@pytest.fixture
def project_of_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "models/tables/shop/orders.yml"
    path.parent.mkdir(parents=True)

    def declare(threshold):
        path.write_text(f"models: [{{name: orders_changes, config: {{meta: {{rejected_when: {threshold}}}}}}}]\n")

    return declare


@pytest.mark.long
@pytest.mark.parametrize("form", ["envelope", "flattened"])
def test_a_connector_that_is_declared_wrongly_is_told_and_mended(logs, form):
    """The records say which one wrote them; of an odd one nothing is said but why it was rejected."""
    feed, table = f"debezium_taps_{form}", f"taps_{form}"
    settings = {"connector": "mysql"} | ({"form": form} if form == "flattened" else {})
    logs.add_table(f"{feed}.{table}", "id:int", "connector:string,at:timestamp", "debezium-json", settings)

    def record(lsn, key, connector):
        if form == "flattened":
            values = {"id": key, "connector": "oracle", "at": 1_700_000_000_000_000}
            return values | {"__op": "c", "__source_lsn": lsn, "__source_connector": connector}
        tap = valve("c", lsn, key, connector="oracle", at=1_700_000_000_000_000)
        return tap | {"source": tap["source"] | {"connector": connector}}

    def rejected(name, *records):
        logs.deliver(f"{feed}.{table}", name, list(records))
        logs.land(feed)
        logs.build(f"+{table}", command="run")
        (found,), untold = rejections.of_build(logs.spark, dbt.appended)
        assert untold == []
        return found

    found = rejected("0.json", *(record(key, key, "postgresql") for key in range(1, 121)))
    (other,) = found.connectors
    assert (other.feed, other.declared, other.named, other.records, other.read) == (
        feed,
        "mysql",
        "postgresql",
        120,
        120,
    )
    assert found.type_changes == [] and rejections.troubles_of(found) == [], "one word explains it all"
    sources = logs.folder / f"models/staging/{feed}/_{feed}__sources.yml"
    (trouble,) = rejections.troubles_of_connectors([found])
    assert f"Write `connector: postgresql` in {sources.relative_to(logs.folder)}, " in trouble, trouble
    assert trouble.endswith(f"highwater rebuild {table} --from raw"), trouble

    sources.write_text(sources.read_text().replace("connector: mysql", "connector: postgresql"))
    log = logs.folder / f"models/tables/{feed.removeprefix('debezium_')}/{table}.yml"
    text = log.read_text()
    log.write_text(re.sub("(name: at, .*)}", r"\1, config: {meta: {unit: micros}}}", text, count=1))
    assert "classified again from raw" in rebuild_from_raw(logs.spark, table)
    assert logs.rows(f"select count(*), min(year(at)) from {table}") == [(120, 2023)]
    odd = record("much", 200, "mysql")
    found = rejected("1.json", odd, record(201, 201, "postgresql"))
    assert found.connectors == [], "one of two is odd"


def test_a_wrong_connector_is_told_once_a_feed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "models/staging/shop/sources.yml"
    path.parent.mkdir(parents=True)
    path.write_text("sources: [{name: debezium_shop}]\n")
    first = {"source_file": "debezium_shop/a/\x1b[2J.json", "source_line": 1}
    found = [
        Rejected(entity, {}, connectors=[OtherConnector("debezium_shop", "mysql", "postgresql", 3, 4, first)])
        for entity in ("a", "b")
    ]
    assert rejections.troubles_of_connectors([]) == []
    (trouble,) = rejections.troubles_of_connectors(found)
    assert trouble == (
        "debezium_shop: 6 of 8 records of a, b name the connector postgresql, and the feed declares mysql: their order "
        "is not read rightly, and their values may not be; the first in debezium_shop/a/\\x1b[2J.json, line 1. Write "
        "`connector: postgresql` in models/staging/shop/sources.yml, and see what types and units become: highwater "
        "add-tables debezium_shop --ddl FILE. Then: highwater rebuild TABLE --from raw, for a, b"
    )


@pytest.mark.parametrize(
    "told, shown",
    [("n = [\x1b[2J\r\n\u202e]", "n = [\\x1b[2J\\r\\n\\u202e]"), ("x" * 1000, "x" * 200 + "…"), (None, "")],
)
def test_what_was_found_is_shown_short_and_without_what_a_terminal_obeys(told, shown):
    first = Row(detail=told, source_file="\x1b]0;.json", source_line=1)
    group = Row(feed="f", landing_batch=1, rejection_reason="malformed_record", records=1, first=first)
    (line,) = rejections.lines_of(Rejected("orders", {("f", 1): (4000, 1)}, [group]))
    assert line == (
        f"1 of 4,000 records rejected (less than 0.1 %) in batch 1 of f: malformed_record, {shown}; "
        "in \\x1b]0;.json, line 1"
    )


def valve(op, lsn, key, **values):
    image = {"id": key, **values}
    source = {"connector": "postgresql", "name": "valves", "schema": "public", "table": "valves", "lsn": lsn}
    return {
        "op": op,
        "before": {"id": key} if op == "d" else None,
        "after": image if op in "cu" else None,
        "source": source | {"ts_ms": 1_700_000_000_000, "snapshot": "false"},
    }


@pytest.mark.soak
def test_partial_images_deletes_and_truncates_of_stale_rows(logs):
    """What a rejected change carried must have come again, all of it; a delete and a truncate say all."""

    def stale(name, *records):
        logs.deliver("debezium_valves.valves", name, list(records))
        logs.land("debezium_valves")
        logs.build("+valves", *LISTS, command="run")
        rows = logs.rows("select key_values from stale_rows where table_name = 'valves'")
        return {int(re.search(r"\d+", key)[0]) for (key,) in rows}

    whole = [valve("c", key, key, n=1, m=1, s="a") for key in range(1, 8)]
    # 1 to 3 whole, 4 and 5 by one column, 6 before another of the same batch, 7 as a delete that cannot be misread
    odd = [valve("u", 10 + key, key, n="odd", m=2, s="b") for key in (1, 2, 3)]
    odd += [valve("u", 14, 4, n="odd"), valve("u", 15, 5, n="odd", s="b"), valve("u", 16, 6, n="odd")]
    odd += [valve("u", 17, 6, n=6), valve("d", 18, 7)]
    assert stale("1.json", *whole, *odd) == {1, 2, 3, 4, 5}
    later = [valve("u", 21, 1, n=3, m=3, s="c"), valve("u", 22, 2, n=3), valve("d", 23, 3)]
    later += [valve("u", 24, 4, n=3), valve("u", 25, 5, n=3), valve("u", 9, 5, n=3, m=3, s="c")]
    assert stale("2.json", *later) == {2, 5}
    logs.spark.sql("drop table stale_rows")
    assert stale("3.json", valve("u", 30, 1, n=4)) == {2, 5}, "found anew"
    assert stale("4.json", valve("t", 40, 0), valve("u", 39, 8, n="odd", m=1, s="a")) == set()
