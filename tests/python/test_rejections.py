"""What a build rejects is said by table; too much of it, or a changed type, fails the build; stale rows are listed."""

import re

import click
import pytest
from highwater import cli, dbt, last_build, rejections
from highwater.add_table import render
from highwater.errors import CheckError, UsageError
from highwater.feeds import declared_feeds
from highwater.rebuild import rebuild_from_raw
from highwater.rejections import Rejected, Threshold, threshold_of
from highwater.replay import replay
from highwater.status import status
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
        return self.workshop.folder / f"models/changes/gauges/{TABLE}_changes.yml"

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
    tables = [(TABLE, [(FEED, TABLE)]), ("valves", [("debezium_valves", "valves")])]
    path.write_text(render("logged_tables.sql", tables=tables))
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
    assert re.search(rf"^  {TABLE} +293 rows now   from 299 records, 6 rejected .*\n    1 of ", words, re.M), words


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
        f"Declare `data_type: bigint` for n in models/changes/gauges/{TABLE}_changes.yml, then: highwater rebuild {TABLE} --from raw"  # noqa: E501
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


@pytest.mark.soak
def test_the_way_on_from_a_changed_type_and_the_exit_code_of_a_build(gauges, monkeypatch, capsys):
    """The build fails while what is right is there; the summary of the next one says it still; then it is mended."""
    monkeypatch.setattr(cli, "_feeds", lambda names: {FEED: declared_feeds()[FEED]})
    monkeypatch.setattr(dbt, "checks_of_data_only", lambda: ["--select", f"+{TABLE}", *LISTS])
    day = [gauges.change(k, n=k) for k in range(401, 410)] + [gauges.change(k, n="P14D") for k in range(410, 461)]
    gauges.workshop.deliver(f"{FEED}.{TABLE}", "day2.json", day)
    dbt.appended.clear()
    with pytest.raises(CheckError) as caught:
        cli.build.main([], standalone_mode=False)
    assert caught.value.exit_code == 1 and "51 of the 51 values that came since are text" in str(caught.value)
    shown = capsys.readouterr().out
    assert "51 of 60 records rejected (85 %) in batch" in shown and " stale (see stale_rows)" in shown, shown
    assert gauges.workshop.value(f"select count(*) from {TABLE} where id between 401 and 460") == 9
    dbt.appended.clear()
    cli.build.main([], standalone_mode=False)
    shown = capsys.readouterr().out
    assert re.search(r"\d+ rejected \(see rejected_changes\), \d+ stale \(see stale_rows\)", shown), shown
    gauges.declare("      - name: n\n        data_type: int\n", "      - name: n\n        data_type: string\n")
    assert "judged again from raw" in rebuild_from_raw(gauges.spark, TABLE)
    assert gauges.workshop.value(f"select count(*) from {TABLE} where n = 'P14D'") == 51
    gauges.build()
    assert not set(gauges.stale()) & set(range(410, 461))


@pytest.mark.long
def test_what_a_killed_build_rejected_fails_the_next_one(gauges, monkeypatch, capsys):
    """Once: what was told is no trouble of the build behind it, and neither is what a plain run of dbt took in."""
    monkeypatch.setattr(cli, "_feeds", lambda names: {FEED: declared_feeds()[FEED]})
    monkeypatch.setattr(dbt, "checks_of_data_only", lambda: ["--select", f"+{TABLE}", *LISTS])

    def be_gone(*_):
        raise KeyboardInterrupt

    day = [gauges.change(k, n=k) for k in range(601, 661)] + [gauges.change(k, day="P14D") for k in range(661, 721)]
    gauges.workshop.deliver(f"{FEED}.{TABLE}", "killed.json", day)
    with monkeypatch.context() as patch, pytest.raises(click.Abort):
        patch.setattr(rejections, "of_build", be_gone)
        cli.build.main([], standalone_mode=False)
    assert gauges.workshop.value(f"select count(*) from {TABLE} where id between 601 and 720") == 60
    capsys.readouterr()
    with pytest.raises(CheckError, match=r"60 of 120 records \(50 %\) of batch"):
        cli.build.main([], standalone_mode=False)
    assert "60 of 120 records rejected (50 %) in batch" in capsys.readouterr().out
    cli.build.main([], standalone_mode=False)
    gauges.deliver("plain.json", *[gauges.change(k, day="P14D") for k in range(721, 841)])
    gauges.build()
    cli.build.main([], standalone_mode=False)


@pytest.mark.soak
def test_what_a_replay_accepts_is_no_longer_stale(gauges):
    gauges.deliver("small.json", gauges.change(500, small=300))
    gauges.build()
    assert 500 in gauges.stale()
    gauges.declare("      - name: small\n        data_type: tinyint\n", "      - name: small\n        data_type: int\n")
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
    with pytest.raises(UsageError, match=r"^models/changes/shop/orders_changes.yml: rejected_when is .* for example "):
        rejections.check_thresholds()


@pytest.mark.parametrize(
    "declared, expected",
    [("{percent: 0.5}", (0.5, 100)), ("{records: 1, percent: 0}", (0, 1)), ("{}", (1, 100))],
)
def test_a_threshold(project_of_one, declared, expected):
    project_of_one(declared)
    rejections.check_thresholds()
    assert threshold_of("orders") == Threshold(*expected)


@pytest.fixture
def project_of_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "models/changes/shop/orders_changes.yml"
    path.parent.mkdir(parents=True)

    def declare(threshold):
        path.write_text(f"models: [{{name: orders_changes, config: {{meta: {{rejected_when: {threshold}}}}}}}]\n")

    return declare


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
