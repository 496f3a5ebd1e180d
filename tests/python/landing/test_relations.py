"""Feeds whose records are in tables of others: every version once, and what cannot be read is said."""

import json
import shutil

import pytest
from highwater.catalog.feeds import declared_feeds
from highwater.landing.landing import skip
from highwater.runtime.errors import CheckError, UsageError
from producers_declared import history, maxwell, rows_of

SEQUENCED = {"order": [{"integer": "$.version"}], "delete_when": "$.deleted = 'true'"}


@pytest.fixture(scope="module")
def bronze(workshop, tmp_path_factory):
    """A folder for tables of others."""
    return tmp_path_factory.mktemp("bronze")


def relation(bronze, name: str) -> str:
    return f"delta.`{bronze}/{name}`"


def rows(workshop, table: str) -> list[tuple]:
    return sorted(workshop.rows(f"select * from lake.{table}"))


def landed(workshop, feed: str) -> tuple[int, int]:
    found = workshop.land(feed)[feed]
    return found.files, found.records


def test_a_change_table_is_read_once_whatever_is_done_to_its_files(workshop, bronze):
    table, spark = relation(bronze, "orders__ct"), workshop.spark
    columns = "id int, total decimal(12,2), at timestamp, version bigint, deleted boolean, `a.b``c` decimal(38,26)"
    spark.sql(f"create table {table} ({columns}) using delta")
    into = f"insert into {table} (id, total, at, version, deleted)"
    tiny = "0.00000012345678901234567890"
    spark.sql(f"{into} values (1, 10.10, timestamp '2026-01-01 00:00:00.123456', 1, false), (2, 5, null, 1, null)")
    workshop.add_table(
        "tables_shop.orders_ct", "id:int", "total:decimal(12,2),at:timestamp,a.b`c:decimal(38,26)", "table",
        {"relation": relation(bronze, "{table}"), "change": json.dumps(SEQUENCED)}, source_table="orders__ct",
    )  # fmt: skip
    assert landed(workshop, "tables_shop") == (1, 2)
    assert landed(workshop, "tables_shop") == (0, 0)
    spark.sql(f"{into} values (1, 11, null, 3, false), (2, 5, null, 2, true)")
    spark.sql(f"{into} values (1, 99, null, 2, false)")
    spark.sql(f"optimize {table}")
    assert landed(workshop, "tables_shop") == (1, 3)
    # old changes are deleted, which writes the rest of their file anew; the same change comes twice
    spark.sql(f"delete from {table} where version = 1 and id = 2")
    spark.sql(f"{into} values (3, 7, null, 1, null), (3, 7, null, 1, null)")
    assert landed(workshop, "tables_shop") == (1, 2)
    spark.sql(f"insert into {table} values (4, 0, null, 1, null, {tiny})")
    assert landed(workshop, "tables_shop") == (1, 1)
    workshop.build("+orders_ct", command="run")
    assert [(id, str(total), at) for id, total, at, _ in rows(workshop, "orders_ct")] == [
        (1, "11.00", None),
        (3, "7.00", None),
        (4, "0.00", None),
    ]
    assert workshop.value(f"select a_b_c = {tiny} from lake.orders_ct where id = 4")
    logged = workshop.rows(
        "select id, right(change_sequence_number, 1) as version, count(*) from lake.orders_ct_changes "
        "group by all having count(*) > 1"
    )
    assert logged == [(3, "1", 2)]
    at = workshop.value("select max(at) from lake.orders_ct_changes")
    assert str(at) == "2026-01-01 00:00:00.123456"


@pytest.mark.parametrize("has_feed", [True, False])
def test_the_rows_of_a_table_follow_its_changes(workshop, bronze, has_feed):
    name = f"stock_{'feed' if has_feed else 'files'}"
    table, spark = relation(bronze, name), workshop.spark
    properties = "tblproperties (delta.enableChangeDataFeed = true)" if has_feed else ""
    spark.sql(f"create table {table} (id int, name string, bytes binary) using delta {properties}")
    spark.sql(f"insert into {table} values (1, 'a', X'00ff'), (2, 'b', null), (3, 'c', X'')")
    workshop.add_table(
        f"delta_{name}.{name}", "id:int", "name:string,bytes:binary", "delta-changes",
        {"relation": relation(bronze, "{table}"), "order": "version"},
    )  # fmt: skip
    assert landed(workshop, f"delta_{name}") == (1, 3)
    spark.sql(f"update {table} set name = 'B' where id = 2")
    spark.sql(f"update {table} set id = id + 10 where id = 1")
    spark.sql(f"delete from {table} where id = 3")
    spark.sql(f"insert into {table} values (3, 'again', X'41')")
    workshop.land(f"delta_{name}")
    workshop.build(f"+{name}", command="run")
    assert rows(workshop, name) == sorted(workshop.rows(f"select * from {table}"))
    assert [row[:2] for row in rows(workshop, name)] == [(2, "B"), (3, "again"), (11, "a")]


def test_records_of_a_streaming_job_are_read_as_from_files(workshop, bronze):
    table, spark, changes = relation(bronze, "events"), workshop.spark, history(7)
    lines = maxwell(changes, has_position=False)
    values = [(None, line.encode(), "shop", 0, offset) for offset, line in enumerate(lines)]
    values.append((None, b"\xff{", "shop", 0, len(values)))
    schema = "key binary, value binary, topic string, partition int, offset bigint"
    workshop.add_table(
        "bronze_maxwell.customers_bronze", "id:int", "email:string,balance:decimal(10,2),bio:string", "maxwell-json",
        {"relation": table, "order": "kafka", "layout": "records"}, source_table="customers",
    )  # fmt: skip
    # the second half comes first, and some of it twice, as after a rebalance
    for part in (values[30:], values[:40]):
        spark.createDataFrame(part, schema).write.format("delta").mode("append").save(f"{bronze}/events")
        workshop.land("bronze_maxwell")
    workshop.build("+customers_bronze", command="run")
    found = workshop.rows("select id, email, cast(balance as string), bio from lake.customers_bronze")
    assert sorted(found) == rows_of(changes)
    nobodys = "entry = 'record' and source_table is null"
    assert workshop.value(f"select count(*) from raw.bronze_maxwell where {nobodys}") == 1


def test_what_cannot_be_read_any_more_is_said_and_can_be_left_out(workshop, bronze):
    table, spark = relation(bronze, "short"), workshop.spark
    workshop.add_table(
        "tables_short.short", "id:int", "version:bigint", "table",
        {"relation": table, "change": json.dumps(SEQUENCED)},
    )  # fmt: skip
    with pytest.raises(UsageError, match="cannot be read"):
        workshop.land("tables_short")
    spark.sql(f"create table {table} (id int, version bigint, deleted boolean) using delta")
    workshop.land("tables_short")
    spark.sql(f"insert into {table} values (1, 1, false)")
    spark.sql(f"insert into {table} values (2, 1, false)")
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, f"{bronze}/short")
    log.checkpoint()
    for version in range(2):
        (bronze / f"short/_delta_log/{version:020}.json").unlink()
    workshop.forget_what_was_read()
    with pytest.raises(CheckError, match=r"versions 1 to 2 .* cannot be read any more") as error:
        workshop.land("tables_short")
    advice = str(error.value).rpartition("highwater skip ")[2]
    assert advice == "tables_short/short/1-2"
    with pytest.raises(UsageError, match="what waits is: tables_short/short/1-2"):
        skip(spark, declared_feeds(), "tables_short/short/1-3")
    assert "is left out, on record" in skip(spark, declared_feeds(), advice)
    spark.sql(f"insert into {table} values (3, 1, false)")
    assert landed(workshop, "tables_short") == (1, 1)
    # files that a vacuum has taken away
    spark.sql(f"insert into {table} values (4, 1, false)")
    spark.sql(f"delete from {table}")
    for file in (bronze / "short").glob("*.parquet"):
        file.unlink()
    workshop.forget_what_was_read()
    with pytest.raises(CheckError, match=r"versions 4 to 5 .* cannot be read any more"):
        workshop.land("tables_short")


def test_a_table_that_is_made_anew_is_another_one(workshop, bronze):
    table, spark = relation(bronze, "anew"), workshop.spark
    workshop.add_table(
        "tables_anew.anew", "id:int", "version:bigint", "table", {"relation": table, "change": json.dumps(SEQUENCED)}
    )
    schema = "id int, version bigint, deleted boolean"
    spark.createDataFrame([(1, 1, False)], schema).write.format("delta").save(f"{bronze}/anew")
    workshop.land("tables_anew")
    shutil.rmtree(bronze / "anew")
    workshop.forget_what_was_read()
    spark.createDataFrame([(2, 1, False)], schema).write.format("delta").save(f"{bronze}/anew")
    with pytest.raises(CheckError, match="is another table than the one of which version 0 has landed") as error:
        workshop.land("tables_anew")
    skip(spark, declared_feeds(), str(error.value).rpartition("highwater skip ")[2])
    assert landed(workshop, "tables_anew") == (0, 0)
    spark.sql(f"insert into {table} values (3, 1, false)")
    assert landed(workshop, "tables_anew") == (1, 1)


def test_names_of_deltas_change_feed_are_refused(workshop, bronze):
    table, spark = relation(bronze, "kept"), workshop.spark
    workshop.add_table(
        "tables_kept.kept", "id:int", "version:bigint", "table", {"relation": table, "change": json.dumps(SEQUENCED)}
    )
    spark.sql(f"create table {table} (id int, version bigint, deleted boolean, _change_type string) using delta")
    spark.sql(f"insert into {table} values (1, 1, false, 'insert')")
    with pytest.raises(UsageError, match="has the column _change_type, which is Delta's own name"):
        workshop.land("tables_kept")
