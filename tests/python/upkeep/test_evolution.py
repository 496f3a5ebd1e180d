"""A table goes on while its columns change: added, dropped, renamed, widened."""

import re

import pytest
from click.testing import CliRunner
from highwater import cli
from highwater.catalog.as_built import remembered, widens
from highwater.upkeep import rebuild
from highwater.upkeep.alter import alter
from highwater.upkeep.alterations import alteration
from highwater.upkeep.dry_run import what_it_would_touch
from highwater.upkeep.evolution import meet
from repository import FIXTURES

pytestmark = pytest.mark.long
CASE = FIXTURES / "cases/dbz-column-added-and-declared"
FEED = "debezium_rolls"
AWAY = "__debezium_unavailable_value"
# table -> columns, and its records: operation, row (of the key 1, where it has no other)
TABLES = {
    "dials": ("v:string", [("c", {"v": "a"}), ("u", {"v": "b", "extra": "x"}), ("u", {"v": "c"})]),
    "papers": ("v:string", [("c", {"v": "a"}), ("c", {"id": 2, "v": "b", "extra": "e"})]),
    "worn": ("v:string", [("c", {"v": "a"}), ("c", {"id": 2, "v": "b"}), ("u", {"id": 2, "v": "b", "extra": "e"})]),
    "tolls": ("v:string", [("c", {"v": "a"})]),
    "knobs": ("v:string", [("c", {"v": "a"})]),
    "moved": ("n:int,w:string", [("c", {"n": 1, "w": "w"}), ("c", {"id": 2, "n": 3_000_000_000, "w": "w"})]),
    "pans": ("qty:int", [("c", {"qty": 1}), ("c", {"id": 2, "quantity": 2})]),
}
# each costs a minute: by `make soak`
SOAKED = ("papers", "worn", "moved")
LATER = {
    "papers": [("u", {"v": "c", "extra": AWAY}), ("c", {"id": 3, "v": "c"})],
    "tolls": [("c", {"id": 2, "v": "b", "extra": "e"})],
    "moved": [("c", {"id": 3, "n": 4})],
    "pans": [("u", {"id": 2, "quantity": 3}), ("c", {"id": 3, "qty": 4})],
}


def envelopes(table, changes, since=0) -> list[dict]:
    """Debezium's records of some changes, as its connector of MySQL writes them."""
    records = []
    for number, (operation, row) in enumerate(changes, since + 1):
        source = {"connector": "mysql", "name": "fleet", "ts_ms": 1767000000000 + number, "db": "fleet", "table": table}
        source |= {"snapshot": "false", "server_id": 101, "file": "mysql-bin.000001", "pos": 100 * number, "row": 0}
        records.append({"before": None, "after": {"id": 1, **row}, "source": source, "op": operation})
    return records


def declare(workshop, entity: str, old: str, new: str):
    path = workshop.declaration(entity)
    text, changed = path.read_text(), re.sub(old, new, path.read_text(), count=1)
    assert text != changed
    path.write_text(changed)


def declare_extra(workshop, entity: str):
    declare(workshop, entity, r"(      - \{name: v, .*\n)", r"\1      - {name: extra, data_type: string}\n")


def plain_dbt(monkeypatch, *arguments) -> int:
    from highwater.spark import dbt

    monkeypatch.setenv("HIGHWATER_COLUMNS", "")
    return dbt.run([*arguments, "--quiet"])


@pytest.fixture(scope="module")
def built(workshop, request):
    """All of them, built before anything was declared that came later; the case has met a build that was killed."""
    is_soak = request.config.getoption("--soak")
    tables = workshop.evolving = [table for table in TABLES if is_soak or table not in SOAKED]
    workshop.add_table(f"{FEED}.meters", "id:int", "v:string", "debezium-json", {"connector": "mysql"})
    workshop.add_table(f"{FEED}.meters", history=True)
    for name in ("0001.json", "0003.json"):
        workshop.deliver(f"{FEED}.meters", name, (CASE / name).read_bytes())
    for table in tables:
        columns, changes = TABLES[table]
        workshop.add_table(f"{FEED}.{table}", "id:int", columns, "debezium-json")
        workshop.deliver(f"{FEED}.{table}", "1.json", envelopes(table, changes))
    assert "partial_images: true" in workshop.declaration("dials").read_text()
    for table in {"papers", "tolls", "worn"} & {*tables}:
        declare(workshop, table, r"        # changes may carry.*\n        partial_images: true\n", "")
    workshop.land(FEED)
    workshop.build(*(f"+{table}" for table in ("meters", *tables)), "meters_history", "ledger", command="run")
    # as `highwater build` does: by which declaration they were made is written down
    assert list(meet(workshop.spark, ["meters", *tables])) == []
    return workshop


@pytest.fixture(scope="module")
def met(built):
    """What became of each declaration, and then a build with new records."""
    spark, tables = built.spark, built.evolving
    for entity in {"meters", "dials", "papers", "worn", "tolls"} & {"meters", *tables}:
        declare_extra(built, entity)
    if "moved" in tables:
        declare(built, "moved", "data_type: int}\n      - {name: w, data_type: string", "data_type: bigint")
    declare(built, "knobs", r"key: \[id\]", "key: [v]")
    spark.sql(f"delete from raw.{FEED} where source_table = 'worn' and source_line = 1 and entry = 'record'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rebuild, "rebuild", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            list(meet(spark, ["meters"]))
    built.said = {each.entity: each for each in meet(spark, ["meters", *tables])}
    built.touched = what_it_would_touch(spark, alteration("pans", "rename", ("qty", "quantity")))
    built.altered = alter(spark, alteration("pans", "rename", ("qty", "quantity")))
    for table in LATER.keys() & {*tables}:
        built.deliver(f"{FEED}.{table}", "2.json", envelopes(table, LATER[table], since=len(TABLES[table][1])))
    built.deliver(f"{FEED}.tolls", "copy.json", envelopes("tolls", TABLES["tolls"][1]))
    from highwater.catalog.feeds import declared_feeds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("highwater.builds.build.declared_feeds", lambda: {FEED: declared_feeds()[FEED]})
        selected = [f"+{table}" for table in ("meters", *tables)]
        # the layers are tested below
        given = ["build", "--select", *selected, "meters_history", "--exclude-resource-type", "test"]
        result = CliRunner().invoke(cli.commands, given)
    built.code, built.output = result.exit_code, f"{result.output}\n{result.exception}"
    return built


def test_plain_dbt_writes_no_log_that_lacks_a_declared_column(built, capsys, monkeypatch):
    text = built.declaration("meters").read_text()
    declare_extra(built, "meters")
    assert plain_dbt(monkeypatch, "run", "--select", "meters_changes") == 1
    assert "meters_changes has no column extra, and it is declared. Nothing was applied. Run: highwater build." in (
        " ".join("".join(capsys.readouterr()).split())
    )
    built.declaration("meters").write_text(text)


def test_a_column_that_is_declared_behind_the_build_that_named_its_field(met):
    """dbz-column-added-and-declared, killed between log and base"""
    assert "meters: the column extra is new. meters_changes: 4 changes, classified again from raw" in (
        met.said["meters"].sentence
    )
    assert met.rows("select * from meters order by id") == [(1, "new", "e1"), (3, "x", None), (4, "y", "e4")]
    versions = met.rows("select id, v, extra from meters_history order by id, v")
    assert versions == [(1, "new", "e1"), (1, "old", None), (3, "x", None), (4, "y", "e4")]
    counted = met.rows("select sum(read), sum(applied), sum(rejected) from ledger where table_name = 'meters'")
    assert counted == [(4, 3, 0)]  # both files landed in one batch, of which the latest change of a key counts
    assert "came_later: true" in met.declaration("meters").read_text()
    assert remembered()["meters"]["columns"]["extra"]["came_later"]


def test_partial_images_keep_what_they_do_not_carry(met):
    assert met.rows("select * from dials") == [(1, "c", "x")]


@pytest.mark.soak
def test_a_value_that_was_withheld_is_not_taken_for_null(met):
    assert met.rows("select * from papers order by id") == [(1, "a", None), (2, "b", "e"), (3, "c", None)]
    assert met.rows("select rejection_reason, rejection_detail from papers_changes where verdict = 'rejected'") == [
        ("partial_image", "it carries only id, v")
    ]


@pytest.mark.soak
def test_what_raw_no_longer_has_stays(met):
    assert "filled from the records that raw still has" in met.said["worn"].sentence
    assert met.rows("select * from worn order by id") == [(1, "a", None), (2, "b", "e")]
    assert met.rows("select count(*), count(extra) from worn_changes") == [(3, 1)]


def test_a_column_that_no_record_has_had_costs_no_reading(met):
    assert met.said["tolls"].sentence.startswith("tolls: the column extra is new. `came_later: true` was written")
    assert met.rows("select * from tolls order by id") == [(1, "a", None), (2, "b", "e")]
    verdicts = met.rows("select source_file, verdict from tolls_changes order by landing_batch, source_file")
    # a copy of a record from before is one
    assert [verdict for _, verdict in verdicts] == ["applied", "applied", "duplicate"], verdicts


def test_what_is_not_safe_is_refused_and_the_others_go_on(met):
    refused = met.said["knobs"]
    assert refused.is_refused and "the key is v and was id" in refused.sentence
    assert "highwater rebuild knobs --from raw" in refused.sentence
    assert met.code == 1 and "the key is v and was id" in met.output, met.output
    assert "Traceback" not in met.output
    assert [entity for entity, each in met.said.items() if each.is_refused] == ["knobs"]
    assert met.rows("select * from knobs") == [(1, "a")]


@pytest.mark.soak
def test_a_wider_type_and_a_column_less(met):
    assert met.rows("select * from moved order by id") == [(1, 1), (2, 3_000_000_000), (3, 4)]
    assert "new records leave it NULL" in met.said["moved"].sentence


def test_a_column_that_is_renamed_at_the_source_has_both_names(met):
    assert met.rows("select * from pans order by id") == [(1, 1), (2, 3), (3, 4)]
    assert any("raw.debezium_rolls: 1 of 2 records may carry it, all are read again" in line for line in met.touched)
    assert any("pans.yml" in line for line in met.altered)


def test_every_layer_agrees(met):
    tests = [f"{table}_{layer}" for table in ("meters", "tolls", "dials", "pans") for layer in ("changes", "merged")]
    audited = met.audit(*tests)
    assert audited and {each.status for each in audited.values()} == {"pass"}, audited


@pytest.mark.parametrize(
    ("was", "now", "is_wider"),
    [
        ("int", "bigint", True), ("bigint", "int", False), ("int", "decimal(12,2)", True),
        ("int", "decimal(10,2)", False), ("decimal(10,2)", "decimal(12,2)", True), ("string", "int", False),
        ("decimal(10,2)", "decimal(12,4)", True), ("decimal(10,2)", "decimal(11,4)", False),
        ("bigint", "double", False),
    ],
)  # fmt: skip
def test_what_widens(was, now, is_wider):
    assert widens(was, now) is is_wider
