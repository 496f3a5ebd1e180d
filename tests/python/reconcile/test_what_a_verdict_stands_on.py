"""What a PASS stands on, and what a FAIL does not: rows that nobody compared, exports beside, what is on its way."""

import os
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
from highwater.catalog.feeds import declared_feeds
from highwater.landing import landing, new_files
from highwater.reconcile import page as reconcile_page
from highwater.reconcile import position, repair
from highwater.reconcile import reconcile as reconciliation
from highwater.reconcile.export import Doubts, Export, exports_that_wait
from highwater.reconcile.settle import Settlement
from highwater.reconcile.verdict import FAIL, INCONCLUSIVE, PASS, Count, verdict_of
from highwater.upkeep.rebuild import rebuild
from test_reconcile_command import NAMES, Fleet, found_in, vessel
from workshop import in_soak_but

pytestmark = pytest.mark.soak
TABLE = "buoys"
FIRST = 100


@pytest.fixture(scope="module")
def fleet(workshop):
    """A table that begins with a baseline of 30 rows, all NOTEs NULL, and one that Debezium tells the truncates of."""
    fleet = Fleet(workshop, "harbour", TABLE)
    workshop.add_table(f"baseline_harbour.{TABLE}", format="csv")
    workshop.add_table("debezium_dock.cranes", "id:int", "v:string", "debezium-json", {"connector": "postgresql"})
    settings = {"role": "export", "positions": "debezium_dock"}
    workshop.add_table("exports_dock.cranes", None, None, "csv", settings)
    for table in (TABLE, "cranes"):
        # as the tables of users are while they are small: what their base loses, they have lost
        workshop.configure(table, "merged", "{meta: {merged: {compact_when: always}}}")
    fleet.rows = {number: {"ID": number, **vessel(number, NOTE=None)} for number in range(1, 31)}
    workshop.deliver(f"baseline_harbour.{TABLE}", "1.csv", fleet.text_of_export())
    fleet.number = FIRST
    fleet.deliver(fleet.write(("UPDATE", 30, {"NAME": "the first change"})))
    fleet.export()
    cranes = [crane("c", number, number) for number in range(1, 6)]
    cranes += [crane("t", 10), *(crane("c", 10 + number, number) for number in range(1, 4))]
    workshop.deliver("debezium_dock.cranes", "1.json", cranes)
    export_of_cranes(workshop, "1.csv", "id,v\r\n" + "".join(f"{number},v{number}\r\n" for number in range(1, 6)), "5")
    workshop.land("baseline_harbour", "debezium_dock", "exports_dock", fleet.feed)
    workshop.build(f"+{TABLE}", "+cranes", f"stg_exports_harbour__{TABLE}", "stg_exports_dock__cranes", command="run")
    told = {plan.table: plan for plan in reconciliation.plans((TABLE, "cranes"))}
    with pytest.MonkeyPatch.context() as patch:
        # what is asked of a table depends on its declaration alone
        patch.setattr(reconciliation, "plans", lambda tables: [told[table] for table in tables])
        fleet.plan = told[TABLE]
        yield fleet


def crane(op: str, lsn: int, key: int | None = None) -> dict:
    source = {"connector": "postgresql", "name": "dock", "lsn": lsn, "table": "cranes", "ts_ms": 1724900000000}
    row = None if key is None else {"id": key, "v": f"v{key}"}
    return {"before": None, "after": row, "source": source, "op": op}


def export_of_cranes(workshop, name: str, text: str, position: str):
    workshop.deliver("exports_dock.cranes", name, text, root=workshop.exports)
    declared = f'{name}: {{position: "{position}"}}\n'
    workshop.deliver("exports_dock.cranes", "_exports.yml", declared, root=workshop.exports)


def folder_of(fleet):
    return fleet.workshop.exports / fleet.export_feed / TABLE


def test_a_pass_says_what_was_compared_with_what(fleet):
    run = reconciliation.reconcile(fleet.workshop.spark, (TABLE,))
    (found,) = run.comparisons
    assert (found.verdict, found.not_checked, found.notes) == (PASS, [], [])
    assert found.compared_with == "compared: 30 rows of the export"
    page = reconcile_page.page(fleet.workshop.spark, run)
    assert all(
        found.compared_with in text for text in (reconcile_page.as_json(run), reconcile_page.as_junit(run), page)
    )


# what changed behind the position of the export, damaged so that the table shows what the export has
DAMAGE = [
    "delete from {table} where id = 31",
    "update {table} set is_deleted = false where id = 2",
    "update {table} set name = 'vessel 1' where id = 1",
]


def test_damage_to_what_changed_behind_the_position_is_found(fleet):
    """The log takes such rows back, so the export meets what the log has of them, and never what the table has."""
    changed = (
        ("INSERT", 31, vessel(31)),
        ("UPDATE", 1, {"NAME": "renamed"}),
        ("DELETE", 2, {}),
        ("UPDATE", 3, {"NAME": "x"}),
    )
    fleet.deliver(fleet.write(*changed))
    fleet.build()
    with fleet.broken(*DAMAGE):
        found = fleet.reconcile(with_repairs=True)
    assert "30 rows of the export; 4 keys have changed since" in found.compared_with
    # what the table shows of these keys is what the export has; the fourth one is sound, and no fault
    assert (found.verdict, found_in(found)) == (FAIL, {"equal": 30, "differs_from_log": 3})
    kinds = {sample.key["id"]: (sample.verdict, sample.other) for sample in found.samples}
    assert kinds == {"31": ("missing_in_lake", "log"), "2": ("extra_in_lake", "log"), "1": ("value_differs", "log")}
    told = [reconcile_page.sample_in_words(sample) for sample in found.samples]
    assert "name is 'vessel 1' in the lake, 'renamed' in the log" in " ".join(told)
    assert [(repair.keys, repair.run) for repair in found.repairs] == [(3, [f"highwater rebuild {TABLE}"])]
    assert "3 of 4 keys" in found.notes[0]


def test_what_repairs_such_damage_does_and_a_batch_that_is_gone_is_waited_for(fleet):
    for statement in DAMAGE:
        fleet.workshop.spark.sql(statement.format(table=f"lake.{TABLE}_merged"))
    assert fleet.reconcile().verdict == FAIL
    rebuild(fleet.workshop.spark, TABLE)
    assert fleet.reconcile().verdict == PASS
    # the one row of the newest batch: without it the base looks as if that batch waited
    fleet.deliver(fleet.write(("INSERT", 32, vessel(32))))
    fleet.build()
    assert fleet.reconcile().verdict == PASS
    fleet.workshop.spark.sql(f"delete from lake.{TABLE}_merged where id = 32")
    found = fleet.reconcile()
    words = "changes behind the position are in the log and wait to be applied; run: highwater build"
    assert (found.verdict, found.not_checked) == (INCONCLUSIVE, [words])
    fleet.build()
    assert fleet.reconcile().verdict == PASS
    fleet.export()


def test_damage_behind_a_truncate_is_found(fleet):
    """A position before the truncate is compared by the log alone, and the whole table as it is now with the log."""
    workshop = fleet.workshop
    version = workshop.version("lake.cranes_merged")
    workshop.spark.sql("delete from lake.cranes_merged where id = 2")
    (found,) = reconciliation.reconcile(workshop.spark, ("cranes",)).comparisons
    assert "truncated since" in found.compared_with and "3 keys, with the log alone" in found.compared_with
    # of the three keys the other two are sound
    assert (found.verdict, found_in(found)) == (FAIL, {"equal": 5, "differs_from_log": 1})
    workshop.spark.sql(f"restore table lake.cranes_merged to version as of {version}")


def test_an_empty_table_is_compared_by_the_head_of_its_export(fleet):
    workshop = fleet.workshop

    def reconcile():
        return reconciliation.reconcile(workshop.spark, ("cranes",)).comparisons[0]

    workshop.deliver("debezium_dock.cranes", "2.json", [crane("t", 20)])
    export_of_cranes(workshop, "2.csv", "code,label\r\n", "20")
    workshop.land("debezium_dock", "exports_dock")
    workshop.build("+cranes", command="run")
    found = reconcile()
    assert (found.verdict, found.lake_rows, found.export_rows) == (INCONCLUSIVE, 0, 0)
    assert "the export has no column id, v" in found.not_checked[0] and "cranes/2.csv" in found.not_checked[0]
    (workshop.exports / "exports_dock/cranes/2.csv").unlink()
    export_of_cranes(workshop, "3.csv", "id,v\r\n", "21")
    workshop.land("exports_dock")
    found = reconcile()
    assert found.verdict == INCONCLUSIVE and "nothing waits to be landed" in found.not_checked[0]
    export_of_cranes(workshop, "3.csv", "id,v\r\n", "20")
    assert "landed with the position 21; _exports.yml has 20 now; run: highwater build" in reconcile().not_checked[0]
    workshop.land("exports_dock")
    export_of_cranes(workshop, "4.csv", "id,v\r\n", "20")
    workshop.land("exports_dock")
    found = reconcile()
    assert (found.verdict, found.compared_with) == (PASS, "compared: 0 rows of the export"), found.not_checked


def test_where_no_row_was_compared_nothing_is_passed():
    in_flight = Count(30, 30, 0)
    subject = SimpleNamespace(window=SimpleNamespace(sequences=("1", "2")))
    words = reconciliation._nothing_compared(subject, Settlement({"equal": Count(), "in_flight": in_flight}))
    assert "no row was compared with the export: it has none of 30 that changed" in words[0]
    assert verdict_of({"in_flight": in_flight}, words, False, 0) == INCONCLUSIVE
    # one row of it is
    assert not reconciliation._nothing_compared(subject, Settlement({"equal": Count(1, 1, 1), "in_flight": in_flight}))
    assert not reconciliation._nothing_compared(subject, Settlement({"equal": Count()}))
    nowhere = SimpleNamespace(window=SimpleNamespace(sequences=()))
    assert "both sides are empty" in reconciliation._nothing_compared(nowhere, Settlement({"equal": Count()}))[0]


FACTS = position.LogFacts(3, "0/9", True, None, "0/0", 2, 0, True, "0/5")
# facts of the log and position of the export; what is said: not checked in any case, or where something differs
LAGS = {
    "nothing": ({}, "0/9", [], [], []),
    "before the first change behind a baseline": ({}, "0/4", [], ["nothing says which of them is the newer one"], []),
    "at the first change": ({}, "0/5", [], [], []),
    "without a baseline": ({"has_baseline": False}, "0/4", [], [], []),
    "not delivered": ({"applied": "0/7"}, "0/9", ["and nothing waits to be landed"], [], []),
    "not applied": (
        {"lowest": "0/8"},
        "0/9",
        ["changes up to the position are in the log and wait"],
        [],
        ["highwater build"],
    ),
    "not applied behind": (
        {"lowest": "0/8"},
        "0/7",
        ["changes behind the position are in the log"],
        [],
        ["highwater build"],
    ),
}


@pytest.mark.parametrize("case", LAGS)
def test_what_may_be_on_its_way_is_said_with_what_to_do(monkeypatch, case):
    told, end, not_checked, doubts, steps = LAGS[case]
    plan = SimpleNamespace(table="none", log="lake.none_changes")
    monkeypatch.setattr(position, "records_that_wait", lambda *_: 0)
    monkeypatch.setattr(position, "_applied", lambda spark, plan, facts: facts.applied)
    monkeypatch.setattr(position, "publish_groups", dict)
    monkeypatch.setattr(position, "logged_tables", list)
    lag = position._lag(None, plan, replace(FACTS, **told), end, [])
    for said, expected in ((lag.not_checked, not_checked), (lag.doubts, doubts)):
        assert len(said) == len(expected) and all(words in line for words, line in zip(expected, said, strict=True)), (
            said
        )
    assert (lag.next_step, bool(lag.awaits)) == (steps, bool(not_checked or doubts))
    # a file in the landing folder: building is the next step, whatever else there is
    lag = position._lag(None, plan, replace(FACTS, **told), end, ["a file waits"])
    assert "a file waits" in lag.doubts + lag.not_checked and lag.next_step == ["highwater build"]


WAITS, COMES = position.Lag(awaits="x", next_step=["highwater build"]), position.Lag(awaits="not delivered yet")
AGAIN = ["take the export again, as `not checked` says"]
# the lag, what of the export cannot be read, the difference, by what it is repaired, what is to be run
WAYS = {
    "a build": (WAITS, Doubts(), "missing_in_lake", "source", ["highwater build", "highwater reconcile t"]),
    "a build before a rebuild": (
        WAITS,
        Doubts(),
        "missing_in_lake",
        "rebuild",
        ["highwater build", "highwater reconcile t"],
    ),
    "nothing is to come yet": (COMES, Doubts(), "value_differs", "source", []),
    "the table is wrong all the same": (COMES, Doubts(), "value_differs", "rebuild", ["highwater rebuild t"]),
    "a row that cannot be read": (position.Lag(), Doubts({"value_does_not_fit": 1}), "extra_in_lake", "source", AGAIN),
    "cut off": (position.Lag(), Doubts({}, ["cut off"]), "value_differs", "source", AGAIN),
}


@pytest.mark.parametrize("case", WAYS)
def test_what_repairs_a_difference_never_comes_before_what_is_waited_for(case):
    lag, doubts, verdict, by, run = WAYS[case]
    lake = SimpleNamespace(lag=lag)
    subject = SimpleNamespace(plan=SimpleNamespace(table="t"), lake=lake, export=Export(), waiting=[])
    assert repair._way(None, subject, doubts, verdict, by)[1] == run


COLUMNS = {
    # NOTE is NULL everywhere
    "lacking": ([name for name in NAMES if name != "NOTE"], INCONCLUSIVE, "the export has no column NOTE;"),
    "in other letters": (
        [*NAMES[:-1], "Note"],
        INCONCLUSIVE,
        "no column NOTE (names are compared letter by letter: NOTE is written Note)",
    ),
    "more": ([*NAMES, "Name", "PORT"], PASS, "compared with nothing: Name (beside NAME), PORT"),
}


@pytest.mark.parametrize("case", in_soak_but(["lacking"], COLUMNS))
def test_columns_that_an_export_lacks_or_has_beside_are_named(fleet, case):
    names, verdict, words = COLUMNS[case]
    fleet.exports += 1
    name = f"{TABLE}-{fleet.exports:03}.csv"
    fleet.workshop.deliver(
        f"{fleet.export_feed}.{TABLE}", name, fleet.text_of_export(None, names), root=fleet.workshop.exports
    )
    fleet.declare(name, fleet.position)
    fleet.workshop.land(fleet.export_feed)
    found = fleet.reconcile(with_repairs=True)
    assert (found.verdict, found.causes, found.export_file) == (verdict, [], f"{fleet.export_feed}/{TABLE}/{name}")
    assert words in " ".join(found.not_checked + found.notes), (found.not_checked, found.notes)
    fleet.export()


ASTRAY = [
    "exports_harbour/Buoys/new.csv",
    "exports_harbour/public.buoys/new.csv",
    "exports_harbour/buoys-new.csv",
    "exports_harbour/new.csv",
    "Exports_Harbour/buoys/new.csv",
    "buoys/new.csv",
    "buoys.csv",
]


@pytest.mark.parametrize("place", ASTRAY)
def test_an_export_that_lies_elsewhere_is_named(fleet, place):
    def told():
        nothing = new_files.Waiting([], [])
        return exports_that_wait(fleet.plan, lambda _: nothing)

    path = fleet.workshop.exports / place
    assert told() == []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    found = told()
    path.unlink()
    # a folder without a file is none
    assert told() == []
    if path.parent.name not in ("exports", "exports_harbour"):
        shutil.rmtree(fleet.workshop.exports / place.split("/")[0] if place[0] in "Eb" else path.parent)
    (words,) = found
    assert "and may be a newer one; move it into" in words and f"exports_harbour/{TABLE}/" in words


def test_one_that_lies_elsewhere_is_compared_when_it_has_been_moved(fleet):
    other = {**fleet.rows, 5: {**fleet.rows[5], "NAME": "other"}}
    path = fleet.workshop.deliver(
        "exports_harbour.Buoys", "new.csv", fleet.text_of_export(other), root=fleet.workshop.exports
    )
    found = fleet.reconcile()
    assert found.verdict == INCONCLUSIVE and "exports_harbour/Buoys lies where" in found.not_checked[0]
    path.rename(folder_of(fleet) / "new.csv")
    path.parent.rmdir()
    fleet.declare("new.csv", fleet.position)
    fleet.workshop.land(fleet.export_feed)
    assert (fleet.reconcile().verdict, found_in(fleet.reconcile())) == (
        FAIL,
        {"equal": len(other) - 1, "value_differs": 1},
    )
    fleet.export()


def test_an_export_that_was_overwritten_with_its_size_and_time_is_inconclusive(fleet):
    assert fleet.reconcile().verdict == PASS
    path = max(folder_of(fleet).glob(f"{TABLE}-*.csv"))
    before, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_bytes(before.replace(b"vessel 7", b"vessel 8"))
    os.utime(path, ns=times)
    found = fleet.reconcile()
    assert found.verdict == INCONCLUSIVE and f"{path.name} has changed since it landed" in found.not_checked[0]
    # the control: touched, and as it was
    path.write_bytes(before)
    os.utime(path, ns=times)
    assert fleet.reconcile().verdict == PASS


def test_a_difference_is_no_fault_while_changes_wait_in_the_landing_folder(fleet):
    first, second = fleet.write(("UPDATE", 4, {"NAME": "late"})), fleet.write(("UPDATE", 5, {"NAME": "in time"}))
    fleet.deliver(second)
    fleet.export()
    fleet.build()
    # the control: nothing waits
    found = fleet.reconcile(with_repairs=True)
    assert found.verdict == FAIL and "highwater resync" in found.repairs[0].run[0]
    path = fleet.workshop.deliver(f"{fleet.feed}.{TABLE}", "late.json", first)
    found = fleet.reconcile(with_repairs=True)
    assert (found.verdict, found_in(found)["value_differs"]) == (INCONCLUSIVE, 1)
    assert (
        "late.json with changes lies in the landing folder and has not landed; run: highwater build"
        in found.not_checked[0]
    )
    assert [repair.run for repair in found.repairs] == [["highwater build", f"highwater reconcile {TABLE}"]]
    assert path.exists()
    fleet.workshop.land(fleet.feed)
    found = fleet.reconcile(with_repairs=True)
    assert (found.verdict, found.repairs[0].run[0]) == (INCONCLUSIVE, "highwater build")
    # with the build the table is whole: the next comparisons pass
    fleet.build()


def test_what_has_not_been_delivered_yet_is_waited_for(fleet):
    ahead = {**fleet.rows, 6: {**fleet.rows[6], "NAME": "ahead"}}
    fleet.export(f"{fleet.number + 1:X}/1", ahead)
    found = fleet.reconcile(with_repairs=True)
    assert found.verdict == INCONCLUSIVE and "nothing waits to be landed" in found.not_checked[0]
    assert [repair.run for repair in found.repairs] == [[]]
    assert reconcile_page.repairs_in_words(found)[0].endswith("there is nothing to run yet")
    fleet.deliver(fleet.write(("UPDATE", 6, {"NAME": "ahead"})))
    # a file is there now, and building it is the next step
    found = fleet.reconcile(with_repairs=True)
    assert (found.verdict, found.repairs[0].run[0]) == (INCONCLUSIVE, "highwater build")
    fleet.build()
    assert fleet.reconcile().verdict == PASS


def test_an_export_before_the_first_change_behind_a_baseline_is_no_fault(fleet):
    baseline = {number: {"ID": number, **vessel(number, NOTE=None)} for number in range(1, 31)}
    before, first = f"{FIRST - 50:X}/1", f"{FIRST + 1:X}/1"
    position = f"{fleet.number:X}/1"
    sound, odd = [{**baseline, 7: {**baseline[7], "NAME": name}} for name in ("vessel 7", "older")]
    # a higher position would be compared first: as of these the newest one stands for both
    for rows, as_of, verdict in ((sound, before, PASS), (odd, before, INCONCLUSIVE), (odd, first, FAIL)):
        fleet.export(position, {**rows, 30: {**rows[30], "NAME": "the first change"}} if as_of == first else rows)
        found = fleet.reconcile(as_of)
        assert found.verdict == verdict, (as_of, found.not_checked, found_in(found))
        is_told = "nothing says which of them is the newer one" in " ".join(found.not_checked)
        assert is_told is (verdict == INCONCLUSIVE)
    fleet.export()


def test_positions_written_backwards_are_refused_until_they_are_corrected(fleet):
    end, name = f"{fleet.number:X}/1", f"{TABLE}-{fleet.exports + 1:03}.csv"
    fleet.export([end, "1/1"])
    found = fleet.reconcile()
    assert (found.verdict, found.counts) == (INCONCLUSIVE, {})
    (words,) = found.not_checked
    assert f"the positions {end} .. 1/1 are written backwards" in words and f"_exports.yml, {name})" in words
    fleet.declare(name, end)
    found = fleet.reconcile()
    assert f"{name} landed with the position {end} .. 1/1; _exports.yml has {end} now" in " ".join(found.not_checked)
    assert fleet.workshop.land(fleet.export_feed)[fleet.export_feed].corrected
    found = fleet.reconcile()
    assert (found.verdict, found.position) == (PASS, end)
    assert f"landed with the position {end} .. 1/1, which _exports.yml has corrected" in found.notes[0]
    fleet.export()


def test_of_rows_that_could_not_be_read_no_cause_is_guessed(fleet):
    rows = {**fleet.rows}
    gone = rows.pop(12)
    fleet.export(None, rows, more=f'"twelve","{gone["NAME"]}",,,\r\n')
    found = fleet.reconcile(with_repairs=True)
    assert (found.verdict, found.causes) == (INCONCLUSIVE, [])
    assert [repair.run for repair in found.repairs] == [["take the export again, as `not checked` says"]]
    # the control: all can be read
    fleet.export(None, rows)
    found = fleet.reconcile()
    assert (found.verdict, [cause.cause for cause in found.causes]) == (FAIL, ["delete not delivered"])
    # as psql's copy writes it: tabs, no header
    fleet.export(None, {}, more="".join("\t".join(map(str, row.values())) + "\n" for row in rows.values()))
    found = fleet.reconcile(with_repairs=True)
    assert (found.verdict, found.causes) == (INCONCLUSIVE, [])
    fleet.export()


def test_one_bad_export_keeps_only_itself_from_landing(fleet):
    feed, folder = fleet.export_feed, f"{fleet.export_feed}.{TABLE}"
    fleet.workshop.deliver(folder, "utf16.csv", fleet.text_of_export().encode("utf-16"), root=fleet.workshop.exports)
    fleet.declare("utf16.csv", fleet.position)
    fleet.workshop.deliver(folder, "unknown.csv", fleet.text_of_export(), root=fleet.workshop.exports)
    fleet.deliver_export("sound.csv")
    landed = fleet.workshop.land(feed)[feed]
    assert (landed.files, landed.records) == (1, len(fleet.rows))
    told = "\n".join(sorted(landed.refused))
    assert len(landed.refused) == 2 and "utf16.csv cannot be read: " in told and "no position for unknown.csv" in told
    found = fleet.reconcile()
    assert (found.verdict, found.export_file) == (INCONCLUSIVE, f"{feed}/{TABLE}/sound.csv")
    assert (
        "no position for unknown.csv" in found.not_checked[0] and "utf16.csv lies in the folder" in found.not_checked[1]
    )
    # what is said is done
    landing.skip(fleet.workshop.spark, declared_feeds(), f"{feed}/{TABLE}/utf16.csv")
    fleet.declare("unknown.csv", fleet.position)
    landed = fleet.workshop.land(feed)[feed]
    assert (landed.files, landed.refused) == (1, [])
    assert fleet.reconcile().verdict == PASS


def test_exports_without_a_position_are_parts_of_one_only_where_that_is_declared(fleet):
    half = {key: row for key, row in fleet.rows.items() if key > 15}
    rest = {key: row for key, row in fleet.rows.items() if key <= 15}
    for number, rows in enumerate((fleet.rows, {**fleet.rows, 9: {**fleet.rows[9], "NAME": "the night before"}})):
        fleet.workshop.deliver(
            f"{fleet.export_feed}.{TABLE}",
            f"nightly/{number}.csv",
            fleet.text_of_export(rows),
            root=fleet.workshop.exports,
        )
        fleet.declare(f"nightly/{number}.csv", "unknown", taken_at=f"2099-01-0{2 - number}T00:00:00Z")
    fleet.workshop.land(fleet.export_feed)
    found = fleet.reconcile()
    assert (found.verdict, found.export_file) == (PASS, f"{fleet.export_feed}/{TABLE}/nightly/0.csv")
    for number, rows in enumerate((half, rest)):
        fleet.deliver_export(f"untold/{number}.csv", "unknown", rows)
    for path in folder_of(fleet).glob("untold/*.csv"):
        os.utime(path, (4102444800, 4102444800))
    fleet.workshop.land(fleet.export_feed)
    found = fleet.reconcile()
    assert (found.verdict, found.export_file) == (INCONCLUSIVE, f"{fleet.export_feed}/{TABLE}/untold")
    assert "untold/0.csv and" in found.not_checked[0] and "are parts of one export" in found.not_checked[0]
    fleet.declare("untold", "unknown", taken_at="2099-01-03T00:00:00Z")
    fleet.workshop.land(fleet.export_feed)
    found = fleet.reconcile()
    assert (found.verdict, len(found.export_parts)) == (PASS, 2), found.not_checked
