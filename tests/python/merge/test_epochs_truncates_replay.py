"""What concerns a whole table: truncates, new epochs, sources that cannot be compared, tables without a key, replay."""

import json

import pytest
from highwater.runtime.errors import UsageError

pytestmark = pytest.mark.long


def bill(op, lsn, key, total="1", table="bonds", note="n", name="erp"):
    """A record of Debezium's PostgreSQL connector; decimals are written as text."""
    image = {"id": key, "total": total, "note": note}
    return {
        "before": {"id": key} if op == "d" else None,
        "after": image if op in "cru" else None,
        "source": {"connector": "postgresql", "name": name, "ts_ms": 1772442930123, "lsn": lsn, "table": table},
        "op": op,
    }


UNAVAILABLE = "__debezium_unavailable_value"
SETTINGS = {"connector": "postgresql", "layout": "records", "decimals": "string"}


@pytest.fixture(scope="module")
def shop(workshop):
    workshop.add_table("debezium_shop.bonds", "id:int", "total:decimal(9,2),note:string", "debezium-json", SETTINGS)
    workshop.add_table(
        "tungsten_two.parcels",
        "id:int",
        "v:string",
        "tungsten-csv",
        {"dialect": "redshift", "layout": "files", "columns": "[opcode, seqno, row_id, commit_timestamp, service]"},
    )
    workshop.add_table(
        "tungsten_two.voyages", None, "at:string,who:string", "tungsten-csv", {"dialect": "redshift"}, without_key=True
    )
    return workshop


def deliver(workshop, name, records):
    lines = [json.dumps(record) if isinstance(record, dict) else record for record in records]
    path = workshop.landing / "debezium_shop" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def build(workshop):
    workshop.land("debezium_shop")
    workshop.build("+bonds", command="run")


def rows(workshop):
    return {key: (str(total), note) for key, total, note in workshop.rows("select * from bonds")}


def test_a_truncate_hides_what_is_lower_and_nothing_else(shop):
    deliver(
        shop,
        "a.json",
        [bill("c", 10, 1), bill("c", 11, 2), bill("t", 20, None), bill("c", 30, 3), bill("c", 31, 1)],
    )
    build(shop)
    assert rows(shop) == {3: ("1.00", "n"), 1: ("1.00", "n")}
    assert shop.rows("select change_type, verdict from bonds_changes order by source_line") == [
        ("insert", "superseded"),
        ("insert", "superseded"),
        ("truncate", "applied"),
        ("insert", "applied"),
        ("insert", "applied"),
    ]


def test_what_comes_late_and_is_lower_stays_hidden(shop):
    deliver(shop, "b.json", [bill("u", 12, 2, "9"), bill("t", 15, None), bill("u", 32, 4, "4")])
    deliver(shop, "c.json", [bill("u", 40, 3, "40", note=UNAVAILABLE)])
    build(shop)
    assert rows(shop) == {3: ("40.00", "n"), 1: ("1.00", "n"), 4: ("4.00", "n")}
    verdicts = shop.rows("select change_type, verdict from bonds_changes where source_file like '%b.json' order by 1")
    assert verdicts == [("truncate", "superseded"), ("update", "superseded"), ("update", "applied")]


def test_a_truncate_that_comes_late_hides_rows_that_are_there(shop):
    deliver(shop, "d.json", [bill("t", 35, None)])
    build(shop)
    # what the partial update did not carry went with the truncate
    assert rows(shop) == {3: ("40.00", None)}
    deliver(shop, "e.json", [bill("t", 35, None), bill("u", 41, 3, "41", note=UNAVAILABLE)])
    deliver(shop, "f.json", [bill("c", 50, 1, table="payments"), "{broken", bill("c", 51, 5)])
    build(shop)
    assert rows(shop) == {3: ("41.00", None), 5: ("1.00", "n")}
    assert shop.value("select count(*) from bonds_changes where verdict = 'duplicate'") == 1


def test_a_rebuild_knows_of_truncates(shop):
    from highwater.upkeep.rebuild import rebuild

    table = shop.table_id("bonds_merged")
    rebuild(shop.spark, "bonds")
    assert shop.table_id("bonds_merged") == table
    assert rows(shop) == {3: ("41.00", None), 5: ("1.00", "n")}
    shop.build("bonds_merged", command="test")


def test_records_of_undeclared_tables_and_broken_ones_are_listed(shop):
    listed = shop.rows(
        "select source_table, source_line, cast(record as string) from raw.debezium_shop where entry = 'record' "
        "and (source_table is null or source_table not in ('bonds')) order by source_line"
    )
    assert [(table, line) for table, line, _ in listed] == [("payments", 1), (None, 2)]
    assert shop.value("select count(*) from bonds_changes where source_file like '%f.json'") == 1


def test_a_resync_beats_what_came_before_and_empties_the_table(shop):
    declaration = shop.folder / "models/staging/debezium_shop/_debezium_shop__sources.yml"
    text = declaration.read_text()
    declaration.write_text(
        text.replace(
            "          connector: postgresql\n",
            "          connector: postgresql\n"
            "          epochs:\n"
            "            - {when: \"source_file like 'debezium_shop/resync%'\", resync: true}\n",
        )
    )
    deliver(shop, "resync.json", [bill("r", 7, 8, "8"), bill("u", 2, 9, "9")])
    deliver(shop, "late.json", [bill("u", 999, 3, "99")])
    build(shop)
    assert rows(shop) == {8: ("8.00", "n"), 9: ("9.00", "n")}


@pytest.mark.soak
def test_replay_takes_what_is_accepted_now_once(shop):
    from highwater.upkeep.replay import replay

    deliver(shop, "resync2.json", [bill("u", 10, 9, "99")])
    deliver(
        shop,
        "resync3.json",
        [bill("u", 50, 8, "123456789.12"), bill("d", 50, 8), bill("u", 60, 9, "nonsense")],
    )
    build(shop)
    assert rows(shop) == {9: ("99.00", "n")}
    # an epoch empties the table once
    assert shop.value("select count(*) from bonds_changes where change_type = 'truncate' and is_derived") == 1
    assert replay(shop.spark, "bonds") == "debezium_shop: no rejected record of bonds is accepted now."
    declared = shop.folder / "models/tables/shop/bonds.yml"
    declared.write_text(declared.read_text().replace("decimal(9,2)", "decimal(12,2)"))
    for layer in ("changes", "merged"):
        shop.spark.sql(f"alter table bonds_{layer} set tblproperties ('delta.enableTypeWidening' = 'true')")
        shop.spark.sql(f"alter table bonds_{layer} alter column total type decimal(12,2)")
    assert "2 records of bonds arrive again" in replay(shop.spark, "bonds")
    build(shop)
    # the delete stands behind the update in its file, and still does
    assert set(rows(shop)) == {9}
    classified = shop.rows(
        "select verdict from bonds_changes where source_file like '%resync3.json' order by landing_batch, source_line"
    )
    assert [row[0] for row in classified] == ["rejected", "applied", "rejected", "superseded", "duplicate"]
    assert "no rejected record" in replay(shop.spark, "bonds")


@pytest.mark.soak
def test_t19_services_that_are_not_declared_cannot_be_compared(shop):
    folder = shop.landing / "tungsten_two"
    folder.mkdir(exist_ok=True)
    at = "2016-03-11 20:51:10.000"
    for service, seqno, value in [("alpha", 100, "a"), ("beta", 5, "b")]:
        line = f'"I","{seqno}","1","{at}","{service}","1","{value}"\n'
        (folder / f"shop-parcels-{seqno}.csv").write_text(line)
    shop.land("tungsten_two")
    shop.build("+parcels", command="run")
    assert shop.rows("select * from parcels") == []
    reasons = shop.rows("select rejection_reason, rejection_detail from parcels_changes order by source_file desc")
    assert reasons == [("unknown_source", 'source is ["beta"]'), ("unknown_source", 'source is ["alpha"]')]
    declaration = shop.folder / "models/staging/tungsten_two/_tungsten_two__sources.yml"
    declaration.write_text(
        declaration.read_text().replace(
            "          dialect: redshift\n",
            "          dialect: redshift\n          epochs: [{source: alpha}, {source: beta}]\n",
        )
    )
    from highwater.upkeep.replay import replay

    assert "2 records of parcels arrive again" in replay(shop.spark, "parcels")
    line = '"I","7","1","2016-03-11 20:51:10.000","alpha","noon","ann"\n'
    (folder / "shop-voyages-7.csv").write_text(line + line)
    shop.land("tungsten_two")
    shop.build("+parcels", "+voyages_changes", command="run")
    assert shop.rows("select * from parcels") == [(1, "b")]  # beta took over from alpha, whatever its numbers


@pytest.mark.soak
def test_t20_a_table_without_a_key_has_a_log_and_no_more(shop):
    with pytest.raises(UsageError, match=r"A table that has no key can have a log, but no merged table: --without-key"):
        shop.add_table("tungsten_two.notes", None, "text:string")
    assert not list(shop.folder.glob("models/**/notes*"))
    assert not list(shop.folder.glob("models/m*/two/voyages*"))
    # delivered and built with the parcels
    assert shop.rows("select who, verdict from voyages_changes") == [("ann", "applied")] * 2
    merged = shop.folder / "models/merged/two/voyages_merged.sql"
    original = (shop.folder / "models/merged/two/parcels_merged.sql").read_text()
    merged.write_text(original.replace("parcels", "voyages"))
    try:
        with pytest.raises(AssertionError, match="voyages has no key, so it has a log and no merged table"):
            shop.build("voyages_merged", command="run")
        assert not shop.spark.catalog.tableExists("lake.voyages_merged")
    finally:
        merged.unlink()
