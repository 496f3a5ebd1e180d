"""The shipped examples: the experiment's 188 rows, values to the last digit, and checks that can fail."""

import contextlib
import csv
import re
import subprocess
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from highwater.builds import last_build
from highwater.commands import ask
from highwater.status.status import _compaction, _rows, status
from pyspark.sql import Row
from repository import PROJECT


def test_the_experiment_ends_in_188_rows(workshop):
    assert workshop.value("select count(*) from table1") == 188
    assert workshop.value("select count(*) from table1_changes") == 1000


def test_the_summary_of_a_build_of_a_part(workshop, monkeypatch):
    """Models that such a build has not made are not asked."""
    catalog = type(workshop.spark.catalog)
    there, asked = catalog.tableExists, ("lake.ledger", "lake.rejected_changes", "lake.unassigned_records")
    monkeypatch.setattr(catalog, "tableExists", lambda self, name, *more: name not in asked and there(self, name))
    monkeypatch.setattr(last_build, "logged_tables", lambda: [("table1", [("datastream_user1", "table1")])])
    words, untold, *_ = last_build.summary(workshop.spark)
    assert untold == []
    assert re.search(r"^  table1 +188 rows now$", words, re.M), words
    assert "highwater build      every model, also the ledger" in words and "from ledger" not in words


@pytest.mark.parametrize(
    ("large", "pending", "said"),
    [(100, 2, "187 rows when last counted"), (10**6, 2, "188 rows now"), (100, 0, "188 rows now")],
)
def test_rows_of_a_large_table_are_counted_by_the_build_that_merges(workshop, monkeypatch, large, pending, said):
    monkeypatch.setattr(last_build, "LARGE", large)
    monkeypatch.setattr(last_build, "logged_tables", lambda: [("table1", [("datastream_user1", "table1")])])
    record = {"versions": {}, "counts": {"table1": {"now": 187, "pending": 0}}}
    words, _, counts, _ = last_build.summary(workshop.spark, record=record, left_pending={"table1": pending})
    assert re.search(rf"^  table1 +{said}", words, re.M), words
    assert counts["table1"]["pending"] == pending and ("is_older" in counts["table1"]) == ("last" in said)


@pytest.mark.parametrize("recorded, counted", [(0, "1,100"), (10**6, "100")])
def test_the_summary_counts_what_the_ledger_has_not_recorded(workshop, monkeypatch, recorded, counted):
    """A build of a part may leave the ledger out."""
    newest = workshop.value("select max(landed_at) from table1_changes")
    rows = {
        "ledger": [
            Row(
                table_name="table1",
                feed="datastream_user1",
                batch=recorded,
                newest=newest,
                read=100,
                applied=90,
                superseded=10,
                duplicate=0,
                rejected=0,
                tied=0,
            )
        ]
    }
    monkeypatch.setattr(last_build, "_asked", lambda spark, table, *question: rows.get(table, []))
    monkeypatch.setattr(last_build, "logged_tables", lambda: [("table1", [("datastream_user1", "table1")])])
    words, untold, *_ = last_build.summary(workshop.spark)
    assert untold == []
    told = re.search(
        rf"^  table1 +188 rows now   from {counted} records: (.*) applied, (.*) superseded, 0 rejected$", words, re.M
    )
    assert told, words
    assert sum(int(number.replace(",", "")) for number in told.groups()) == int(counted.replace(",", ""))
    assert f"  {counted} records landed: {told[1]} applied, {told[2]} superseded, 0 duplicate, 0 rejected\n" in words


def test_status_says_what_a_table_shows(workshop):
    (found,) = status(workshop.spark, "table1")
    assert found["rows"] == 188 and found["compacted_at"] is not None
    # what is pending is laid over the base, so the view itself is asked
    layers = Row(base=1000, tombstones=0, pending=3)
    assert _rows(workshop.spark, "table1", layers) == 188 and _rows(workshop.spark, "nowhere", layers) is None


class History:
    """A session that has this history of every table."""

    def __init__(self, *commits):
        self.commits = [Row(version=v, timestamp=f"at {v}", operation=o, operationParameters=p) for v, o, p in commits]

    def sql(self, text):
        return self

    def collect(self):
        return self.commits


def test_what_the_first_build_wrote_is_compacted():
    """Builds that compact by themselves say so from the first one on."""
    made, merged = (0, "CREATE TABLE AS SELECT", {}), (1, "MERGE", {"predicate": "compacted by base_rows 1000000"})
    other = (1, "SET TBLPROPERTIES", {})
    first = {"compacted_at": "at 0", "compacted_by": "the first build"}
    assert _compaction(History(other, made), "orders", 3) == first
    assert _compaction(History(other, made), "orders", 0) == {}
    assert _compaction(History((2, "OPTIMIZE", {}), merged, made), "orders", 3)["compacted_at"] == "at 1"
    # where older versions have been dropped, nobody knows
    assert _compaction(History(other), "orders", 3) == {}


def test_the_line_of_a_table_in_status_is_what_a_user_asks_for(monkeypatch, capsys):
    from highwater.spark import spark as of_spark
    from highwater.status import status as of_status

    at = datetime(2024, 5, 31, 10, 0, 0, 123456)
    row = dict.fromkeys(
        [*ask.OF_EVERY_TABLE, "gone_back", "patched_since", "disabled_since", "fallen", "trouble", "step"]
    )
    row |= {"table": "orders", "rows": 39, "changed_at": at, "last_build": "2024-05-31 11:00:00"}
    monkeypatch.setattr(of_spark, "reading_session", lambda: contextlib.nullcontext())
    monkeypatch.setattr(of_status, "status", lambda spark, table: [row])
    ask.status.main([], standalone_mode=False)
    header, _, names, _, line, *_ = capsys.readouterr().out.splitlines()
    assert header == "The last build came to its end at 2024-05-31 11:00:00 UTC."
    assert names.split() == ask.OF_EVERY_TABLE
    assert line.split()[:2] == ["orders", "39"] and "2024-05-31 10:00:00 " in line
    row["last_build"] = None
    ask.status.main([], standalone_mode=False)
    assert capsys.readouterr().out.startswith("No build has come to its end yet.\n")


def test_table1_is_the_export_row_by_row(workshop):
    with open("exports/exports_user1/table1/table1.csv", newline="") as file:
        exported = {row["COL1"]: row["COL2"] for row in csv.DictReader(file)}
    assert dict(workshop.rows("select col1, col2 from table1")) == exported


def test_values_survive_to_the_last_digit(workshop):
    rows = {
        row[0]: row[1:]
        for row in workshop.rows(
            "select customer_id, name, cast(balance as string), cast(born_on as string), photo, preferences, "
            "date_format(updated_at, 'yyyy-MM-dd HH:mm:ss.SSSSSS') from customers"
        )
    }
    with open("exports/exports_user1/customers/customers.csv", newline="") as file:
        text = file.read()
    for row in csv.DictReader(text.splitlines(keepends=True)):
        name, balance, born_on, photo, preferences, updated_at = rows.pop(int(row["CUSTOMER_ID"]))
        assert name == row["NAME"]
        assert (Decimal(balance) if balance else "") == (Decimal(row["BALANCE"]) if row["BALANCE"] else "")
        assert (born_on or "") == row["BORN_ON"]
        assert (photo.hex().upper() if photo else "") == row["PHOTO"]
        assert (preferences or "") == row["PREFERENCES"]
        assert updated_at == row["UPDATED_AT"]
    assert not rows


def test_a_build_with_nothing_new_writes_no_version(workshop):
    tables = ["raw.datastream_user1", "raw.exports_user1"] + [
        f"{entity}_{layer}" for entity in ("table1", "customers") for layer in ("changes", "merged")
    ]
    before = {table: workshop.version(table) for table in tables}
    workshop.land("datastream_user1", "exports_user1")
    workshop.build("+table1", "+customers", command="run")
    assert {table: workshop.version(table) for table in tables} == before


@pytest.fixture(scope="module", autouse=True)
def checked(workshop):
    """The example's own checks pass; odd records only warn."""
    statuses = workshop.build("+table1", "+customers", "+stg_exports_user1__customers", command="test")
    assert {statuses[name] for name in statuses if name.startswith("matches_export")} == {"pass"}


def test_what_the_macros_make_of_texts(workshop):
    """The tests of macros, which no build runs; one of them has a row where the macro is another."""
    statuses = workshop.build("path:tests/macros", command="test")
    assert len(statuses) == len([*workshop.folder.glob("tests/macros/*.sql")]) > 4
    assert set(statuses.values()) == {"pass"}
    sql = compiled("assert_sortable_sequence_sorts_as_numbers")
    assert workshop.rows(sql) == []
    assert workshop.rows(re.sub("lpad", "rpad", sql))


def test_matches_export_finds_planted_faults(workshop):
    """Each in a row of its own: a value, one to NULL, a row less, one twice, one more, and one without a key."""
    keys = [key for (key,) in workshop.rows("select col1 from table1 where col2 is not null order by col1 limit 4")]
    value, to_null, missing, twice = keys
    workshop.spark.sql(
        f"""
        create or replace temp view planted as
        select col1, case col1 when '{value}' then 'other' when '{to_null}' then null else col2 end as col2
        from table1 where col1 <> '{missing}'
        union all select * from table1 where col1 = '{twice}'
        union all select * from values ('new', 'x'), (null, 'x')
        """
    )
    sql = compiled("matches_export_table1").replace("lake.table1\n", "planted\n")
    found = {(row.verdict, row.key.col1): row.differing_columns for row in workshop.spark.sql(sql).collect()}
    differs = {("value_differs", value), ("value_differs", to_null)}
    rows = {
        ("missing_in_lake", missing),
        ("duplicate_in_lake", twice),
        ("extra_in_lake", "new"),
        ("extra_in_lake", None),
    }
    assert set(found) == differs | rows
    assert [found[each] for each in differs] == [["col2"]] * 2
    # before the first export has landed
    landed = "entry = 'file' and source_table = 'table1'"
    assert landed in sql and workshop.rows(sql.replace(landed, landed.replace("table1", "none"))) == []


def test_d14_the_comparison_of_the_seed(workshop):
    """view {1:a, 2:NULL, 3:c, 4:d, 4:d}, source {1:a, 2:b, 3:NULL, 4:d, 5:e}, 6 could not be read."""
    spark = workshop.spark
    spark.sql(
        "create or replace temp view d14_lake as select * from values "
        "('1','a'),('2',null),('3','c'),('4','d'),('4','d'),('6',null) as t(col1, col2)"
    )
    spark.sql(
        "create or replace temp view d14_export as select * from values "
        "('1','a',null),('2','b',null),('3',null,null),('4','d',null),('5','e',null),('6',null,'value_does_not_fit') "
        "as t(col1, col2, rejection_reason)"
    )
    sql = compiled("matches_export_table1").replace("lake.table1\n", "d14_lake\n")
    sql = sql.replace("lake.stg_exports_user1__table1 where", "d14_export where")
    assert {(row.key.col1, row.verdict) for row in spark.sql(sql).collect()} == {
        ("2", "value_differs"),
        ("3", "value_differs"),
        ("4", "duplicate_in_lake"),
        ("5", "missing_in_lake"),
        ("6", "extra_in_lake"),
    }


def test_a_condition_on_an_export_takes_no_unreadable_row_back(workshop):
    result = workshop.dbt("compile", "--inline", "{{ _readable_rows('lake.export', 'a or b', true) }}")
    sql = result.result.results[0].node.compiled_code
    assert sql == "(select * from lake.export where rejection_reason is null and (a or b))"


def test_an_unreadable_row_of_an_export_fails_the_build(workshop):
    sql = compiled("is_empty_stg_exports_user1__customers_")
    assert "rejection_reason is not null" in sql


# table -> its feed, and how many rows it ends in
EXAMPLES = {
    "orders": ("tungsten_shop", 12),
    "items": ("tungsten_shop", 20),
    "region": ("arcion_tpch", 7),
    "nation": ("arcion_tpch", 25),
    "suppliers": ("arcion_files", 18),
    "contacts": ("datastream_crm", 26),
    "employees": ("datastream_hr", 20),
    "invoices": ("debezium_erp", 11),
    "payments": ("debezium_erp", 13),
    "shipments": ("dms_sales", 25),
    "stock_levels": ("dms_stock", 22),
}


@pytest.fixture(scope="module")
def examples(workshop):
    workshop.land(*sorted({feed for feed, _ in EXAMPLES.values()}))
    workshop.build(*(f"+{table}" for table in EXAMPLES), command="run")


def exported_rows(path):
    """The cells of an export; None where nothing stands, which csv.reader cannot tell from an empty text."""
    rows = [[]]
    for quoted, cell, end in re.findall(r'("((?:[^"]|"")*)")?(,|\r\n)', path.read_bytes().decode()):
        rows[-1].append(cell.replace('""', '"') if quoted else None)
        if end != ",":
            rows.append([])
    return rows[:-1]


def as_exported(value, text):
    """A value of the lake as the export writes it; a number as the export's text, where that is the same number."""
    if isinstance(value, bytes | bytearray):
        return value.hex().upper()
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")[: len(text or "")]
    if isinstance(value, Decimal | float) and text is not None and type(value)(text) == value:
        return text
    return None if value is None else str(value)


@pytest.mark.soak
@pytest.mark.parametrize("table", EXAMPLES)
def test_each_example_is_its_export_row_by_row(examples, workshop, table):
    feed, count = EXAMPLES[table]
    system = feed.partition("_")[2]
    names, *exported = exported_rows(workshop.exports / f"exports_{system}/{table}/{table}.csv")
    rows = workshop.rows(f"select {', '.join(names)} from {table}")
    assert len(rows) == len(exported) == count
    key = {"items": 2, "stock_levels": 2}.get(table, 1)
    by_key = {tuple(map(str, row[:key])): row for row in rows}
    for row in exported:
        assert [as_exported(*pair) for pair in zip(by_key[tuple(row[:key])], row, strict=True)] == row


# what is rejected; of the other tables nothing is: a payment without an lsn has its position in source.sequence
REJECTED = {
    "region": ["unreadable_sequence"],
    "shipments": ["wrong_column_count"],
}


@pytest.mark.soak
@pytest.mark.parametrize("table", EXAMPLES)
def test_what_the_examples_reject(examples, workshop, table):
    reasons = workshop.rows(f"select rejection_reason from {table}_changes where rejection_reason is not null")
    assert [row[0] for row in reasons] == REJECTED.get(table, [])


@pytest.mark.soak
def test_records_of_other_tables_are_in_raw(examples, workshop):
    """Of tables that nobody declared, and of no table that a broken record could name."""
    assert workshop.rows(
        "select source_table, count(*) from (select entry, source_table from raw.tungsten_shop union all "
        "select entry, source_table from raw.arcion_tpch union all select entry, source_table from raw.datastream_crm "
        "union all select entry, source_table from raw.debezium_erp) where entry = 'record' and "
        f"(source_table is null or source_table not in {tuple(EXAMPLES)}) group by all order by all"
    ) == [(None, 2), ("audit", 3), ("heartbeat", 3), ("replicate_io_heartbeat", 2), ("sessions", 3)]


def test_the_examples_come_out_the_same_every_time(tmp_path):
    subprocess.run([sys.executable, PROJECT / "scripts/examples/generate.py"], cwd=tmp_path, check=True)
    written, shipped = (
        {path.relative_to(folder): path.read_bytes() for path in folder.glob("examples/**/*.*")}
        for folder in (tmp_path, PROJECT)
    )
    assert written == shipped


def compiled(name: str) -> str:
    (path,) = Path("target/compiled").glob(f"**/{name}*.sql")
    return path.read_text()
