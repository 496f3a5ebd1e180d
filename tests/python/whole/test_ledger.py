"""The ledger: every record is accounted for, and a lost one is noticed. Runs last: it looks at what all tests left."""

import re

import pytest
from highwater.status.status import status
from highwater.status.status_page import page, pending_over_time
from workshop import change

pytestmark = pytest.mark.soak


def adds_up(workshop, table="lake.ledger"):
    (test,) = workshop.folder.glob("target/compiled/**/adds_up_ledger_.sql")
    return workshop.rows(test.read_text().replace("lake.ledger", table))


def test_everything_builds_and_every_check_passes(workshop):
    tie = [change("INSERT", "1", {"case_name": "tied", "k": "a", "v": value}) for value in "xy"]
    workshop.deliver("datastream_cases.cases", "tied.json", tie)
    workshop.land()
    statuses = workshop.build()
    assert statuses["adds_up_ledger_"] == "pass"
    assert statuses["is_empty_rejected_changes_"] == statuses["is_empty_sequence_ties_"] == "warn"


def test_one_row_per_table_and_batch(workshop):
    assert workshop.rows("select table_name, feed, landing_batch from ledger group by all having count(*) > 1") == []
    assert workshop.value("select count(*) from ledger") > 20


def test_read_is_what_raw_holds_and_the_verdicts_are_what_the_log_holds(workshop):
    for entity, feed in [
        ("cases", "datastream_cases"),
        ("table1", "datastream_user1"),
        ("customers", "datastream_user1"),
    ]:
        read, classified = workshop.rows(
            "select sum(read), sum(applied + superseded + duplicate + rejected) from ledger "
            f"where table_name = '{entity}'"
        )[0]
        landed = f"select count(*) from raw.{feed} where entry = 'record' and source_table = '{entity}'"
        assert read == classified == workshop.value(landed) > 0
        assert classified == workshop.value(f"select count(*) from {entity}_changes")


def test_it_is_recorded_once(workshop):
    version = workshop.version("ledger")
    workshop.build("ledger")
    assert workshop.version("ledger") == version


def test_a_lost_row_and_a_lost_batch_are_noticed(workshop):
    """Negative control: a record that vanishes between raw and log makes the build fail; so does a whole batch."""
    for name, count in [("lost", 3), ("gone", 2), ("next", 1)]:
        records = [change("INSERT", "1", {"case_name": name, "k": str(number), "v": "x"}) for number in range(count)]
        workshop.deliver("datastream_cases.cases", f"{name}.json", records)
        workshop.land("datastream_cases")
    workshop.build("+cases", command="run")
    workshop.spark.sql("delete from cases_changes where (case_name = 'lost' and k = '1') or case_name = 'gone'")
    statuses = {r.node.name: str(r.status) for r in workshop.dbt("build", "--select", "ledger").result}
    assert statuses == {"ledger": "success", "adds_up_ledger_": "fail"}
    assert sorted(row[-1] for row in adds_up(workshop)) == [1, 2]  # how many were lost, by batch
    workshop.spark.sql("update ledger set read = applied + superseded + duplicate + rejected")
    assert adds_up(workshop) == []


def test_rejected_changes_name_reason_file_line_and_text(workshop):
    rows = workshop.spark.sql(
        "select * from rejected_changes where table_name = 'customers' order by source_line"
    ).collect()
    assert [row.rejection_reason for row in rows] == ["malformed_record", "value_does_not_fit", "not_utf8"]
    assert [row.source_line for row in rows] == [1, 2, 3]
    assert {row.source_file for row in rows} == {"datastream_user1/customers/part-00003-damaged.json"}
    assert rows[0].text.startswith('{"CUSTOMER_ID"') and rows[2].text.startswith("bytes in hex: 7B22")
    assert all(row.what_to_do for row in rows)


def test_ties_are_listed_with_key_and_file(workshop):
    rows = workshop.rows("select key_values, verdict, source_file from sequence_ties where key_values like '%tied%'")
    assert rows == [('{"case_name":"tied","k":"a"}', "superseded", "datastream_cases/cases/tied.json")]


def test_the_page_draws_what_the_tables_say(workshop):
    html = page(workshop.spark, status(workshop.spark, "table1"))
    assert html.startswith("<!doctype html>") and not re.search(r"<(script|link|img)\b[^>]*\b(src|href)=", html)
    assert html.count('class="plotly-graph-div"') == 1
    points, _ = pending_over_time(workshop.spark, "table1")
    assert points[-1][1] == workshop.layers("table1")[1]
    assert "<p>1 table, " in html
    (found,) = status(workshop.spark, "table1")
    assert found["rows"] == workshop.value("select count(*) from table1")
    for name in ("read", "applied", "superseded", "tombstones"):
        assert f">{found[name]:,}</td>" in html, name
