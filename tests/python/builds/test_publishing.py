"""Publish groups: tables that move together, and builds that hold them until their checks have passed."""

import json
import re

import pytest
from click.testing import CliRunner
from dbt.cli.main import dbtRunner
from highwater import cli
from highwater.builds.publish import build_held
from highwater.catalog.feeds import declared_feeds
from highwater.runtime.errors import CheckError
from highwater.spark import dbt
from highwater.status.query import show
from highwater.upkeep import evolution
from highwater.upkeep.compact import compact
from highwater.upkeep.evolution import meet
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from workshop import change, reading

pytestmark = pytest.mark.long
FEED = "datastream_bank"
# a refusal comes through as it is, or in the clothes of the subquery that found it
REFUSED = (Py4JError, PySparkException)


@pytest.fixture(scope="module")
def bank(workshop):
    """Accounts and transfers move together; every transaction changes the balance of an account by one transfer."""
    workshop.add_table(f"{FEED}.assets", "id:int", "balance:bigint", "datastream-json")
    workshop.add_table(f"{FEED}.transfers", "id:int", "amount:bigint")
    group(workshop, "bank", ["assets", "transfers"])
    deliver(workshop, 1)
    build(workshop)
    return workshop


def group(workshop, name, entities):
    """Declare a group as docs/publishing.md says."""
    folder = workshop.folder / f"models/publications/{name}"
    folder.mkdir(parents=True)
    logs = "".join(f"        ref('{entity}_changes'),\n" for entity in entities)
    (folder / f"{name}_publications.sql").write_text(
        f"with\n\ncomplete as (\n\n    {{{{ publication('{name}', [\n{logs}    ]) }}}}\n\n)\n\nselect * from complete\n"
    )
    for entity in entities:
        (merged,) = workshop.folder.glob(f"models/merged/*/{entity}_merged.sql")
        taken = f"base_rows(ref('{entity}_changes'), '{entity}'"
        merged.write_text(merged.read_text().replace(f"{taken})", f"{taken}, ref('{name}_publications'))"))
        (mart,) = workshop.folder.glob(f"models/marts/*/{entity}.sql")
        shown = f"current_rows(ref('{entity}_merged'), '{entity}'"
        sql = mart.read_text().replace(f"{shown})", f"{shown}, ref('{name}_publications'), ref('{entity}_changes'))")
        mart.write_text("{{ config(schema='candidate' if var('candidate', false) else none) }}\n" + sql)


def deliver(workshop, number):
    """Transaction `number`: account 1 grows by it, and a transfer of it is written."""
    operation = "INSERT" if number == 1 else "UPDATE-INSERT"
    balance = number * (number + 1) // 2
    workshop.deliver(
        f"{FEED}.assets", f"{number}.json", [change(operation, f"{number:X}", {"id": 1, "balance": balance})]
    )
    workshop.deliver(
        f"{FEED}.transfers", f"{number}.json", [change("INSERT", f"{number:X}", {"id": number, "amount": number})]
    )


def build(workshop, *selected):
    workshop.land(FEED)
    return workshop.build(*(selected or ["+assets", "+transfers"]), command="run")


def seen(workshop):
    """The balance and the sum of the transfers, by one query."""
    return workshop.rows("select (select sum(balance) from assets), (select sum(amount) from transfers)")[0]


def test_a_first_build_publishes(bank):
    assert seen(bank) == (1, 1)
    (publication,) = bank.rows("select publication, log_batches, landing_batches from bank_publications")
    assert publication == (1, {"assets": 1, "transfers": 1}, {FEED: 1})
    version = bank.version("bank_publications")
    build(bank, "bank_publications")
    assert bank.version("bank_publications") == version


def test_t15_a_table_that_fails_holds_the_other(bank):
    from highwater.upkeep.rebuild import rebuild

    deliver(bank, 2)
    bank.land(FEED)
    staging = bank.folder / f"models/staging/{FEED}/stg_{FEED}__transfers_changes.sql"
    whole = staging.read_text()
    staging.write_text(f"{whole}where raise_error('the file is torn') is null\n")
    try:
        result = bank.dbt("run", "--select", "+assets", "+transfers").result
        statuses = {run.node.name: str(run.status) for run in result}
        assert statuses["transfers_changes"] == "error" and statuses["assets_changes"] == "success"
        assert {statuses[name] for name in ("bank_publications", "assets_merged", "assets")} == {"skipped"}
    finally:
        staging.write_text(whole)
    assert seen(bank) == (1, 1)
    # a part that is built alone applies nothing, and says why
    build(bank, "assets_changes", "assets_merged", "assets")
    assert seen(bank) == (1, 1)
    assert bank.value("select max(log_batch) from assets_changes") == 2
    assert bank.value("select max(log_batch) from assets_merged") == 1
    rebuild(bank.spark, "assets")
    assert seen(bank) == (1, 1)
    build(bank)
    assert seen(bank) == (3, 3)


def test_a_publication_waits_for_every_log(bank):
    deliver(bank, 3)
    bank.land(FEED)
    bank.dbt("run", "--select", "assets_changes", "bank_publications", "assets_merged", "assets")
    assert seen(bank) == (3, 3)
    assert bank.value("select max(publication) from bank_publications") == 2
    told = "bank: nothing is published. transfers_changes has not applied 1 record, from landing batch 3 on"
    assert told in (bank.folder / "logs/dbt.log").read_text()
    build(bank, "+bank_publications")
    assert bank.value("select max(publication) from bank_publications") == 3
    assert bank.value("select max(log_batch) from assets_merged") < 3


@pytest.mark.soak
def test_what_is_published_is_seen_before_and_after_it_is_taken_in(bank):
    assert seen(bank) == (6, 6)
    compact(bank.spark, "transfers")
    assert seen(bank) == (6, 6)
    compact(bank.spark, "assets")
    assert bank.value("select max(log_batch) from assets_merged") == 3
    assert seen(bank) == (6, 6)


@pytest.mark.soak
def test_a_query_that_meets_two_moments_fails(bank):
    """Negative control of the guard: the merged table is further than the publications."""
    build(bank)
    version = bank.version("bank_publications")
    bank.spark.sql("delete from bank_publications where publication = 3")
    with pytest.raises(REFUSED, match=r"a publication came while this query was planned. Run it again"):
        seen(bank)
    with pytest.raises(
        CheckError, match=r"^assets: a publication came while this query was planned. Run it again; if it says so"
    ):
        show(bank.spark, "select * from assets", "table")
    bank.spark.sql(f"restore table bank_publications to version as of {version}")
    assert seen(bank) == (6, 6)


@pytest.mark.soak
def test_publications_that_were_restored_alone_are_published_anew(bank):
    (amount,) = {balance for balance in seen(bank)}
    last = bank.version("bank_publications")
    bank.deliver(f"{FEED}.transfers", "restored.json", [change("INSERT", "90", {"id": 90, "amount": 1})])
    bank.deliver(f"{FEED}.assets", "restored.json", [change("UPDATE-INSERT", "90", {"id": 1, "balance": amount + 1})])
    build(bank)
    assert seen(bank) == (amount + 1, amount + 1)
    compact(bank.spark, "assets")
    bank.spark.sql(f"restore table bank_publications to version as of {last}")
    with pytest.raises(REFUSED, match=r"if it says so each time: highwater build"):
        seen(bank)
    build(bank)
    assert seen(bank) == (amount + 1, amount + 1)


@pytest.mark.soak
def test_a_held_change_of_a_key_that_became_a_base_row_meanwhile(bank):
    """Whether a key has a base row is asked by the compaction, not when a change of it was classified."""
    from highwater.upkeep.rebuild import rebuild

    bank.deliver(f"{FEED}.transfers", "new.json", [change("INSERT", "A0", {"id": 100, "amount": 0})])
    build(bank, "+bank_publications")
    bank.deliver(f"{FEED}.transfers", "again.json", [change("UPDATE-INSERT", "A1", {"id": 100, "amount": 0})])
    build(bank, "transfers_changes")
    rebuild(bank.spark, "transfers")
    build(bank)
    bank.build("transfers_merged", command="test")
    compact(bank.spark, "transfers")
    assert bank.value("select count(*) from transfers_merged where id = 100") == 1
    assert seen(bank) == (6, 6)


@pytest.mark.soak
def test_readers_never_see_half_a_transaction(bank):
    """Threads read both tables while transactions land, are published, applied and compacted."""

    found, retries = set(), []

    def read():
        try:
            found.add(seen(bank))
        except REFUSED as error:
            assert "Run it again" in str(error), error
            retries.append(error)

    with reading(read, threads=2):
        for number in (4, 5):
            deliver(bank, number)
            build(bank)
            compact(bank.spark, "assets")
    assert all(balance == amount for balance, amount in found), found
    assert len(found) >= 2
    assert seen(bank) == (15, 15)
    print(f"{len(retries)} reads were refused")


@pytest.mark.soak
def test_hold_publishes_what_passes_and_keeps_what_fails(bank, monkeypatch):
    check = bank.folder / "tests/balances_agree.sql"
    check.write_text(
        "select 1 as differs where (select sum(balance) from {{ ref('assets') }}) <> "
        "(select sum(amount) from {{ ref('transfers') }})\n"
    )
    statements = []
    # other groups in the workshop have not been built
    for module in ("catalog.pending", "builds.publish"):
        monkeypatch.setattr(f"highwater.{module}.publish_groups", lambda: {"bank": ["assets", "transfers"]})
    listened = lambda arguments, *_: statements.append(arguments) or run(arguments)  # noqa: E731
    monkeypatch.setattr("highwater.spark.dbt.run", listened)
    try:
        if seen(bank) == (6, 6):
            # nobody has delivered these while readers watched
            deliver(bank, 4)
            deliver(bank, 5)
            build(bank)
        deliver(bank, 6)
        bank.land(FEED)
        wrong, rejected = ({"id": number, "balance": balance} for number, balance in [(1, 999), (2, "much")])
        changes = [change("UPDATE-INSERT", "6/1", wrong), change("INSERT", "6/1", rejected)]
        bank.deliver(f"{FEED}.assets", "wrong.json", changes)
        feeds = {FEED: declared_feeds()[FEED]}
        dbt.appended.clear()
        with monkeypatch.context() as patched:
            patched.setattr("highwater.builds.build.declared_feeds", lambda: feeds)
            patched.setattr(evolution, "meet", lambda spark: meet(spark, ["assets", "transfers"]))
            result = CliRunner().invoke(cli.commands, ["build", "--hold", "--quiet"])
        assert re.match(r"not published: bank. .* readers see what they saw before", str(result.exception))
        assert result.exception.exit_code == 1
        assert "    1 of 2 records rejected" in result.output and "does not fit bigint" in result.output
        assert seen(bank) == (15, 15)
        assert bank.value("select balance from lake_candidate.assets") == 999
        assert not [words for words in statements if "bank_publications+" in words and "--select" in words[:4]]
        bank.deliver(f"{FEED}.assets", "right.json", [change("UPDATE-INSERT", "6/2", {"id": 1, "balance": 21})])
        bank.land(FEED)
        assert build_held(bank.spark, ["--quiet"]) == (0, [])
        assert seen(bank) == (21, 21)
    finally:
        check.unlink()


def run(arguments):
    """dbt, confined to the bank: what else is in the workshop is not its business."""
    if "--select" not in arguments:
        arguments = [*arguments, "--select", "+bank_publications"]
    result = dbtRunner(callbacks=[dbt.hear]).invoke(arguments)
    return 2 if result.exception else 0 if result.success else 1


def test_hold_without_a_group_or_with_a_selection_is_refused(bank, monkeypatch):
    from highwater.runtime.errors import UsageError

    with monkeypatch.context() as patched:
        patched.setattr("highwater.builds.publish.publish_groups", lambda: {"new": ["nothing_of_it"]})
        with pytest.raises(UsageError, match=r"nothing_of_it_merged: not built yet.* Build once without --hold"):
            build_held(bank.spark, [])
    with pytest.raises(UsageError, match="takes no --select"):
        build_held(bank.spark, ["--select", "assets"])
    monkeypatch.setattr("highwater.builds.publish.publish_groups", dict)
    with pytest.raises(UsageError, match="no publish group is declared"):
        build_held(bank.spark, [])


@pytest.mark.soak
def test_a_history_shows_what_is_published(bank):
    bank.add_table(f"{FEED}.assets", history=True)
    build(bank)
    bank.build("assets_history", command="build")
    balance, _ = seen(bank)
    last = bank.value("select max(log_batch) from assets_changes")
    bank.deliver(f"{FEED}.assets", "held.json", [change("UPDATE-INSERT", "F0", {"id": 1, "balance": balance + 5})])
    bank.deliver(f"{FEED}.transfers", "held.json", [change("INSERT", "F0", {"id": 240, "amount": 5})])
    # the other log lacks it, so it is not published
    build(bank, "assets_changes")
    assert bank.value("select max(log_batch) from assets_changes") > last
    for how in ([], ["--full-refresh"]):
        assert bank.dbt("build", *how, "--select", "assets_history").success
        assert bank.rows("select balance from assets_history where is_current") == [(balance,)]
    build(bank)
    bank.build("assets_history", command="build")
    assert bank.rows("select balance from assets_history where is_current") == [(balance + 5,)]
    assert seen(bank) == (balance + 5, balance + 5)


def bill(op, lsn, key, total="1"):
    image = {"id": key, "total": total} | ({"note": f"n{lsn}"} if op == "c" else {"note": UNAVAILABLE})
    return {
        "before": {"id": key} if op == "d" else None,
        "after": image if op in "cru" else None,
        "source": {"connector": "postgresql", "name": "erp", "ts_ms": 1772442930123, "lsn": lsn, "table": "receipts"},
        "op": op,
    }


UNAVAILABLE = "__debezium_unavailable_value"


@pytest.mark.soak
def test_partial_images_and_truncates_are_folded_before_they_are_taken_in(workshop):
    settings = {"connector": "postgresql", "layout": "records", "decimals": "string"}
    workshop.add_table("debezium_till.receipts", "id:int", "total:decimal(9,2),note:string", "debezium-json", settings)
    group(workshop, "till", ["receipts"])
    steps = [
        [bill("c", 10, 1), bill("c", 11, 2), bill("c", 12, 3)],
        [bill("u", 20, 1, "5"), bill("d", 21, 2), bill("u", 13, 3, "4")],
        [bill("t", 30, None), bill("c", 31, 4), bill("u", 29, 1, "6"), bill("u", 32, 4, "7")],
    ]
    expected = [
        {1: ("1.00", "n10"), 2: ("1.00", "n11"), 3: ("1.00", "n12")},
        {1: ("5.00", "n10"), 3: ("4.00", "n12")},
        {4: ("7.00", "n31")},
    ]
    for number, (records, live) in enumerate(zip(steps, expected, strict=True)):
        path = workshop.landing / "debezium_till" / f"{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        workshop.land("debezium_till")
        if not number:
            workshop.build("+receipts", command="run")
        for step in ("+till_publications", "receipts_merged"):
            workshop.build(step, command="run")
            found = {key: (str(total), note) for key, total, note in workshop.rows("select * from receipts")}
            assert found == live, (number, step)


def test_the_compiled_view_reads_like_written_by_hand(bank):
    (path,) = bank.folder.glob("target/compiled/**/marts/bank/assets.sql")
    assert not re.search(r"\n\n\n|[ \t]\n", path.read_text().strip())
