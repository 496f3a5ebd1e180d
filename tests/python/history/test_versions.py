"""What was, at any position: rows as of a sequence or a time, against sources that are played through event by event.

`chronicles` has whole rows, ties and clocks that go backwards; `episodes` has partial images, changes of keys,
truncates and a new epoch. Every history lives under its own number, so that a few builds carry all of them.
"""

import base64
import os
import random
from collections import defaultdict
from contextlib import redirect_stdout
from datetime import datetime, timedelta, timezone
from io import StringIO

import pytest
from test_random_histories import Oracle, random_history, written
from workshop import change

pytestmark = pytest.mark.long

HISTORIES = 60
START = datetime(2026, 3, 2, tzinfo=timezone.utc)
UNAVAILABLE = "__debezium_unavailable_value"
EPOCH = "0" * 16


def section(number: int) -> str:
    return f"{number:016x}"


def text_of(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")


def states(workshop, entity: str, sequences=(), times=()) -> list[dict[str, list[tuple]]]:
    """Return the rows of an entity as of each position, by position: of its log, and of its history."""
    parts = [
        f"select '{relation}' as relation, '{position}' as position, rows_then.*\n"
        f"from (\n    {{{{ rows_as_of(ref('{relation}'), '{entity}', {by}='{position}') }}}}\n) as rows_then"
        for relation in (f"{entity}_changes", f"{entity}_history")
        for by, positions in (("sequence", sequences), ("at", times))
        for position in positions
    ]
    model = workshop.folder / f"models/operations/{entity}_then.sql"
    model.write_text("\n\nunion all\n\n".join(parts))
    try:
        with redirect_stdout(StringIO()) as printed:
            result = workshop.dbt("compile", "--select", model.stem)
        assert result.success, printed.getvalue()
        of_log, of_history = defaultdict(list), defaultdict(list)
        compiled = workshop.folder / "target/compiled/highwater" / model.relative_to(workshop.folder)
        for relation, position, *row in workshop.rows(compiled.read_text()):
            (of_log if relation == f"{entity}_changes" else of_history)[position].append(tuple(row))
        return [of_log, of_history]
    finally:
        model.unlink()


def assert_made_anew_it_is_the_same(workshop, entity: str):
    """The history that builds have added to, and the one that is made of the whole log at once."""
    columns = ", ".join(sorted(workshop.spark.table(f"{entity}_history").columns))
    added_to = workshop.rows(f"select {columns} from {entity}_history")
    workshop.build(f"{entity}_history", command="run", full_refresh=None)
    anew = workshop.rows(f"select {columns} from {entity}_history")
    assert len(anew) == len(set(anew)) > 100
    assert sorted(added_to, key=str) == sorted(anew, key=str)


# ---------------------------------------------------------------- whole rows


def committed(history: int, sequence: tuple[int, int]) -> datetime:
    """Commit time of a position; in every third history the clock is not to be trusted."""
    log, position = sequence
    jitter = random.Random(f"{history} {sequence}").randrange(60) if history % 3 == 0 else 0
    return START + timedelta(seconds=((log & 0xFF) * 40 + position) * 10 - jitter)


def chronicle(history: int, event: tuple, picks: random.Random) -> dict:
    operation, sequence, key, value, number = event
    at = int(committed(history, sequence).timestamp() * 1000)
    row = {"history": history, "k": key, "v": value, "n": number, "valid_to": value}
    return change(operation, written(picks, sequence), row, at=at)


def state_of_chronicles(delivered: dict[int, list[tuple]], belongs) -> dict[tuple, set]:
    """Return by (history, key) the values that its row may have, after the events that belong to the past."""
    state = {}
    for history, events in delivered.items():
        oracle = Oracle()
        oracle.take([event for event in events if belongs(history, event[1])])
        state |= {(history, key): values for key, values in oracle.state().items()}
    return state


def agree(rows: list[tuple], expected: dict[tuple, set]):
    """Fail unless there is one row per expected key, with one of its possible values."""
    found = {(history, key): (value, str(number)) for history, key, value, number, _ in rows}
    assert all(row[2] == row[4] for row in rows)
    assert len(found) == len(rows)
    assert found.keys() == expected.keys()
    assert not {key: (row, expected[key]) for key, row in found.items() if row not in expected[key]}


@pytest.fixture(scope="module")
def past(workshop):
    columns = "v:string,n:decimal(20,4),valid_to:string"
    settings = {"clock": "ignore"}  # that of some histories goes backwards
    workshop.add_table("datastream_past.chronicles", "history:int,k:string", columns, settings=settings, history=True)
    workshop.add_table(
        "debezium_past.episodes",
        "history:int,k:string",
        "a:string,b:string,feed:string",
        "debezium-json",
        {"connector": "postgresql", "layout": "records"},
    )
    workshop.add_table("debezium_past.episodes", history=True)
    declaration = workshop.folder / "models/staging/debezium_past/_debezium_past__sources.yml"
    declaration.write_text(
        declaration.read_text().replace(
            "          connector: postgresql\n",
            "          connector: postgresql\n"
            "          epochs:\n"
            "            - {when: \"source_file like 'debezium_past/resync%'\", resync: true}\n",
        )
    )
    workshop.seed = int(os.environ.get("HIGHWATER_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {workshop.seed}")
    return workshop


def test_rows_as_of_every_position_are_those_of_the_oracle(past):
    picks = random.Random(past.seed)
    events = {history: random_history(picks, with_ties=history % 2 == 0) for history in range(HISTORIES)}
    delivered = {history: [] for history in events}
    for number in range(2):
        records = []
        for history, all_of_it in events.items():
            some = [event for event in all_of_it if number or picks.random() < 0.6]
            delivered[history] += some
            records += [chronicle(history, event, picks) for event in some]
        picks.shuffle(records)
        past.deliver("datastream_past.chronicles", f"{number}.json", records)
        past.land("datastream_past")
        past.build("+chronicles", "+chronicles_history", command="run")
        positions = picks.sample([event[1] for one in events.values() for event in one], 4)
        by_sequence = {f"{EPOCH}/{section(log)}/{section(place)}": (log, place) for log, place in positions}
        times = [committed(history, picks.choice(events[history])[1]) for history in picks.sample(list(events), 3)]
        for found in states(past, "chronicles", by_sequence, [*{text_of(at) for at in times}]):
            for text, position in by_sequence.items():
                agree(found[text], state_of_chronicles(delivered, lambda _, sequence, cut=position: sequence <= cut))
            for at in times:
                expected = state_of_chronicles(
                    delivered, lambda history, sequence, cut=at: committed(history, sequence) <= cut
                )
                agree(found[text_of(at)], expected)
    now = past.rows("select * from chronicles")
    assert_made_anew_it_is_the_same(past, "chronicles")
    past.build("chronicles_history", command="test")
    with pytest.raises(AssertionError):  # the oracle tells one position from another
        agree(now, state_of_chronicles(delivered, lambda _, sequence: sequence <= positions[0]))


# ---------------------------------------------------------------- partial images, truncates, an epoch


def episodes_of(picks: random.Random, history: int, epoch: int) -> list[dict]:
    """Events of one history in one epoch, in their order; `row` holds the columns that the record carries."""
    events, live, lsn = [], set(), 0
    if epoch:
        for number in range(3):
            key, row = f"k{number}", {"a": f"{number}", "b": "baseline", "feed": "f"}
            events.append({"op": "r", "lsn": 0, "key": key, "row": row, "time": None})
            live.add(key)
    for _ in range(picks.randrange(4, 18)):
        lsn += picks.randrange(1, 80)
        time = START + timedelta(days=epoch, seconds=lsn)
        key, kind = f"k{picks.randrange(4)}", picks.random()
        row = {name: picks.choice([None, "", f"v{picks.randrange(50)}"]) for name in ("a", "b", "feed")}
        event = {"op": "u" if key in live else "c", "lsn": lsn, "key": key, "row": row, "time": time}
        if key in live and kind < 0.2:
            event |= {"op": "d", "row": None}
            live.discard(key)
        elif key in live and kind < 0.35:
            other = f"k{picks.randrange(4, 7)}"
            event |= {"key": other, "old": key}
            live = live - {key} | {other}
        elif key in live and kind < 0.7:
            del row[picks.choice(["a", "b", "feed"])]
        live.add(key) if event["op"] != "d" and "old" not in event else None
        events.append(event)
    return [event | {"history": history, "epoch": epoch} for event in events]


def episode(event: dict) -> dict:
    """The record of an event, as Debezium's PostgreSQL connector writes it."""
    key = {"history": event.get("history"), "k": event.get("key")}
    image = key | {name: UNAVAILABLE for name in ("a", "b", "feed")} | (event["row"] or {})
    before = key | {"k": event["old"]} if "old" in event else key if event["op"] == "d" else None
    source = {"connector": "postgresql", "name": "erp", "lsn": event["lsn"], "table": "episodes"}
    if event["time"]:
        source["ts_ms"] = int(event["time"].timestamp() * 1000)
    is_image = event["op"] in "cru"
    return {
        "before": before,
        "after": image if is_image else None,
        "source": source,
        "op": event["op"],
    }


def state_of_episodes(events: list[dict], belongs) -> list[tuple]:
    """Play the events of each key through, up to the last one that belongs to the past; return the rows."""
    events = sorted(events, key=lambda event: (event["epoch"], event["lsn"]))
    keys = {(e["history"], name) for e in events if "history" in e for name in (e["key"], e.get("old")) if name}
    rows = []
    for history, name in sorted(keys):
        row, state = None, None
        for event in events:
            if event.get("history") == history and event["key"] == name and event["op"] != "d":
                row = (row or dict.fromkeys(("a", "b", "feed"))) | event["row"]
            elif event["op"] in ("t", "epoch") or (
                event["history"] == history and name in (event["key"], event.get("old"))
            ):
                row = None
            else:
                continue
            if belongs(event):
                state = row
        if state:
            rows.append((history, name, state["a"], state["b"], state["feed"]))
    return sorted(rows, key=str)


@pytest.mark.soak
def test_rows_as_of_a_position_where_images_are_partial_and_tables_are_emptied(past):
    picks = random.Random(past.seed)
    truncates = [
        {"op": "t", "lsn": lsn, "epoch": 0, "time": START + timedelta(seconds=lsn), "row": None} for lsn in (211, 432)
    ]
    first = [event for history in range(HISTORIES) for event in episodes_of(picks, history, 0)]
    second = [event for history in range(HISTORIES) for event in episodes_of(picks, history, 1)]
    # LSNs of truncates are theirs alone
    first = [event for event in first if event["lsn"] not in (211, 432)]
    late = [event for event in first if picks.random() < 0.3]
    deliveries = [
        {"a.json": [event for event in first if event not in late] + truncates[:1]},
        {"late.json": late + truncates + first[:40], "resync.json": [e for e in second if picks.random() < 0.7]},
        {"resync2.json": second},
    ]
    delivered = []
    for number, files in enumerate(deliveries):
        for name, events in files.items():
            records = [episode(event) for event in events]
            picks.shuffle(records)
            past.deliver("debezium_past", f"{name}", records)
            delivered += [event for event in events if event not in delivered]
        past.land("debezium_past")
        past.build("+episodes", command="run")
        if number != 1:  # the second build stops before the history
            past.build("episodes_history", command="run")
        epochs = [{"op": "epoch", "epoch": 1, "lsn": -1, "time": None}] if number else []
        sequences = {
            f"{section(epoch)}/{section(lsn)}": (epoch, lsn)
            for epoch in (0, 1)
            for lsn in picks.sample([0, 210, 211, 431, 432, *picks.sample(range(1, 900), 5)], 2)
        }
        days = [START + timedelta(days=day, seconds=picks.randrange(900)) for day in (0, 1)]
        times = [text_of(at) for at in days] + ["2100-01-01 00:00:00"]
        founds = states(past, "episodes", sequences, times)
        for found in founds if number != 1 else founds[:1]:
            for text, (epoch, lsn) in sequences.items():
                expected = state_of_episodes(
                    delivered + epochs, lambda event, e=epoch, cut=lsn: (event["epoch"], event["lsn"]) <= (e, cut)
                )
                assert sorted(found[text], key=str) == expected, (past.seed, number, text)
            for text in times:
                # what has no commit time counts from when it landed: long after
                expected = state_of_episodes(
                    delivered + epochs,
                    lambda event, cut=text: text_of(event["time"]) <= cut if event["time"] else cut > "2099",
                )
                assert sorted(found[text], key=str) == expected, (past.seed, number, text)
            now = sorted(past.rows("select * from episodes"), key=str)
            assert now == sorted(found["2100-01-01 00:00:00"], key=str)
    assert_made_anew_it_is_the_same(past, "episodes")
    past.build("episodes_history", command="test")


# ---------------------------------------------------------------- case by case

D18 = 10**6  # the number of a history that is written by hand


def deliver(workshop, name: str, *changes: tuple):
    """Land changes (operation, position, key, value) of the history D18 and build its models."""
    records = []
    for operation, position, key, value in changes:
        at = int((START + timedelta(seconds=position)).timestamp() * 1000)
        row = {"history": D18, "k": key, "v": value, "n": "1", "valid_to": value}
        records.append(change(operation, f"{position:x}", row, at=at))
    workshop.deliver("datastream_past.chronicles", f"{D18}-{name}.json", records)
    workshop.land("datastream_past")
    workshop.build("+chronicles", "+chronicles_history", command="run")


def versions(workshop, key: str) -> list[tuple]:
    """Return the versions of a key of D18: value, from and to as numbers, whether it is current."""
    found = workshop.rows(
        "select v, valid_from_sequence, valid_to_sequence, valid_from, valid_to, is_current from chronicles_history "
        f"where history = {D18} and k = '{key}' order by valid_from_sequence"
    )
    for _, begin, end, since, until, _ in found:
        assert since == (START + timedelta(seconds=number(begin))).replace(tzinfo=None)
        assert until == (end and (START + timedelta(seconds=number(end))).replace(tzinfo=None))
    return [(v, number(begin), end and number(end), is_current) for v, begin, end, _, _, is_current in found]


def number(sequence: str) -> int:
    return int(sequence.split("/")[1], 16)


def written_rows(workshop) -> tuple[int, int, int]:
    """Return how many versions the last commit of the history inserted, updated and deleted."""
    metrics = workshop.spark.sql("describe history chronicles_history limit 1").first()["operationMetrics"]
    return tuple(int(metrics[f"numTargetRows{done}"]) for done in ("Inserted", "Updated", "Deleted"))


@pytest.mark.soak
def test_d18_a_late_change_opens_no_open_version_and_only_what_changes_is_written(past):
    deliver(past, "d18-1", ("INSERT", 5, "a", "1"), ("INSERT", 5, "b", "x"), ("UPDATE", 20, "b", "y"))
    assert versions(past, "a") == [("1", 5, None, True)]
    deliver(past, "d18-2", ("DELETE", 20, "a", None))
    assert versions(past, "a") == [("1", 5, 20, False)]
    assert written_rows(past) == (0, 1, 0)
    deliver(past, "d18-3", ("UPDATE", 10, "a", "old"))
    assert versions(past, "a") == [("1", 5, 10, False), ("old", 10, 20, False)]
    assert written_rows(past) == (1, 1, 0)
    deliver(past, "d18-4", ("INSERT", 30, "a", "back"))
    assert versions(past, "a") == [("1", 5, 10, False), ("old", 10, 20, False), ("back", 30, None, True)]
    assert written_rows(past) == (1, 0, 0)
    # the version y began with this change all along
    deliver(past, "d18-5", ("UPDATE", 10, "b", "y"))
    assert versions(past, "b") == [("x", 5, 10, False), ("y", 10, None, True)]
    assert written_rows(past) == (1, 1, 1)
    last = past.version("chronicles_history")
    deliver(past, "d18-6", ("UPDATE", 10, "b", "y"), ("DELETE", 20, "a", None))
    past.build("chronicles_history", command="run")
    assert past.version("chronicles_history") == last
    past.build("chronicles_history", command="test")


@pytest.mark.soak
def test_a_new_column_gets_its_values_from_the_log(past):
    declared = past.folder / "models/tables/past/chronicles.yml"
    text = declared.read_text()
    column = "      - {name: w, data_type: string}\n"
    declared.write_text(text.replace("    data_tests:\n", f"{column}    data_tests:\n", 1))
    for layer in ("changes", "merged"):
        past.spark.sql(f"alter table chronicles_{layer} add columns (w string)")
    row = {"history": D18, "k": "c", "v": "1", "n": "1"}
    records = [change("INSERT", "28", row), change("UPDATE", "29", row | {"w": "new"})]
    past.deliver("datastream_past.chronicles", "w.json", records)
    past.land("datastream_past")
    before = past.value("select count(*) from chronicles_history")
    past.build("+chronicles", "+chronicles_history", command="run")
    assert past.rows(f"select w, is_current from chronicles_history where history = {D18} and k = 'c' order by 2") == [
        (None, False),
        ("new", True),
    ]
    assert past.value("select count(*) from chronicles_history") == before + 2
    assert_made_anew_it_is_the_same(past, "chronicles")


CUSTOMER = 9007199254740996


@pytest.mark.soak
def test_a_change_of_an_ignored_column_opens_no_version(past):
    past.build("+customers", "customers_history", command="run")
    (name,) = past.rows(f"select name from customers where customer_id = {CUSTOMER}")[0]
    before = past.rows(f"select valid_from_sequence from customers_history where customer_id = {CUSTOMER}")
    (row,) = past.spark.table("customers").where(f"customer_id = {CUSTOMER}").collect()
    values = {column.upper(): value for column, value in row.asDict().items()}
    values |= {name: str(values[name]) for name in ("BALANCE", "BORN_ON", "UPDATED_AT")}
    photo = base64.b64encode(values["PHOTO"]).decode()
    values["PHOTO"] = None
    for position, at in (("EEEE01", "2030-01-01T00:00:00Z"), ("EEEE02", "2030-01-02T00:00:00Z")):
        record = change("UPDATE", position, values | {"UPDATED_AT": at})
        past.deliver("datastream_user1.customers", f"ignored-{position}.json", [record])
    past.land("datastream_user1")
    past.build("+customers", "customers_history", command="run")
    found = past.rows(
        "select valid_from_sequence, name, cast(updated_at as string), is_current from customers_history "
        f"where customer_id = {CUSTOMER} order by 1"
    )
    # the photo went with the first of them; the second changed updated_at alone
    assert len(found) == len(before) + 1
    assert found[-1][1:] == (name, "2030-01-02 00:00:00", True)
    past.build("customers_history", command="test")
    # the whole build that comes after this module compares customers with its export
    record = change("UPDATE", "EEEE03", values | {"PHOTO": photo})
    past.deliver("datastream_user1.customers", "ignored-EEEE03.json", [record])


REFUSED = {
    "row_history(ref('chronicles_changes'), 'chronicles', ignored=['colour'])": (
        "names 'colour', which is none of its columns beside the key: v, n, valid_to"
    ),
    "row_history(ref('chronicles_changes'), 'chronicles', tracked=['v'], ignored=['n'])": (
        "wants the columns to track or those to ignore, not both"
    ),
    "rows_as_of(ref('chronicles_changes'), 'chronicles', sequence='0/1')": "'0/1' is no change_sequence_number",
    "rows_as_of(ref('chronicles_changes'), 'chronicles')": "it got none",
    "rows_as_of(ref('chronicles_changes'), 'chronicles', sequence='0000000000000000', at='2026-03-02')": "it got both",
}


def test_columns_and_positions_that_are_none_are_refused(past):
    models = {past.folder / f"models/operations/none_{n}.sql": call for n, call in enumerate(REFUSED)}
    for path, call in models.items():
        path.write_text(f"{{{{ highwater.{call} }}}}")
    try:
        result = past.dbt("run", "--select", *(path.stem for path in models)).result
    finally:
        for path in models:
            path.unlink()
    said = {run.node.name: (str(run.status), run.message) for run in result}
    for path, call in models.items():
        status, message = said[path.stem]
        assert status == "error" and REFUSED[call] in message, message


FAULTS = {
    "two are open": (
        "update {0} set valid_to_sequence = null where k = 'a' and valid_to_sequence is not null",
        "no_over",
    ),
    "overlap": ("update {0} set valid_to_sequence = repeat('f', 16) where k = 'a' and v = '1'", "no_over"),
    "ends before it begins": ("update {0} set valid_to_sequence = '0' where k = 'a' and v = '1'", "no_over"),
    "another value": ("update {0} set v = 'else' where is_current and k = 'a'", "current_rows"),
    "a row too few": ("delete from {0} where is_current and k = 'a'", "current_rows"),
    "a row too many": ("update {0} set valid_to = null where v = 'old' and k = 'a'", "current_rows"),
}


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(past, fault):
    statement, name = FAULTS[fault]
    version = past.version("chronicles_history")
    past.spark.sql(statement.format("chronicles_history") + f" and history = {D18}")
    try:
        with pytest.raises(AssertionError, match=name):
            past.build("chronicles_history", command="test")
    finally:
        past.spark.sql(f"restore table chronicles_history to version as of {version}")
