"""Full loads that come later: they wait until it is said what they are, and become the truth by a resync."""

import os
import random
import re
from datetime import datetime, timedelta

import pytest
import yaml
from highwater.catalog.declarations import append_epoch
from highwater.landing import new_files
from highwater.runtime.errors import UsageError
from highwater.spark import dbt
from highwater.upkeep.resync import resync

pytestmark = pytest.mark.soak

DMS, DATASTREAM, BASELINE = "dms_loads", "datastream_loads", "baseline_loads"
TABLES = {
    f"{DMS}.reloaded": "dms-csv",  # case dms-reload
    f"{DMS}.overwritten": "dms-csv",  # case dms-reload-same-name
    f"{DMS}.behind": "dms-csv",
    f"{DMS}.repeated": "dms-csv",
    f"{DMS}.unasked": "dms-csv",
    f"{DATASTREAM}.refilled": "datastream-gcs-json",  # case ds-mysql-second-backfill
    f"{DATASTREAM}.filling": "datastream-gcs-json",
    f"{BASELINE}.corrected": "csv",
    f"{BASELINE}.in_parts": "csv",
}
NAMES = [table.partition(".")[2] for table in TABLES]


def datastream(key, value, at, position=None):
    """A record of Datastream's files: a change, or without a position a row of a backfill."""
    log = ["mysql-bin.000003", position] if position else ["", 0]
    return {
        "uuid": f"{key}-{value}",
        "read_timestamp": f"{at}T00:00:00.000",
        "source_timestamp": f"{at}T00:00:00.000",
        "read_method": "mysql-cdc-binlog" if position else "mysql-backfill-incremental",
        "stream_name": "s",
        "sort_keys": [1704067200000 + int(at[-2:]) * 86400000, *log],
        "source_metadata": {"table": "refilled", "change_type": "UPDATE" if position else "INSERT"},
        "payload": {"id": key, "note": value},
    }


def load(prefix, *keys):
    return "".join(f"{key},{prefix} {key}\n" for key in keys)


def backfill(prefix, at, *keys):
    return [datastream(key, f"{prefix} {key}", at) for key in keys]


FIRST = {
    f"{DMS}.reloaded": {
        "LOAD00000001.csv": load("old", 1, 2, 3, 4, 5),
        "20240105-101112345.csv": "U,1,cdc 1\nI,6,cdc 6\n",
        "reload-20240201/LOAD00000001.csv": load("reload", 1, 2, 3, 4, 5, 6),
        "20240202-101112345.csv": "U,2,cdc 2\n",
    },
    f"{DMS}.overwritten": {
        "LOAD00000001.csv": load("old", 1, 2),
        "LOAD00000002.csv": load("same", 9),
        "20240105-101112345.csv": "U,1,cdc 1\n",
    },
    f"{DMS}.behind": {"20240105-101112345.csv": "U,1,cdc 1\n"},
    f"{DMS}.repeated": {"LOAD00000001.csv": load("old", 1, 2), "20240105-101112345.csv": "U,1,cdc 1\n"},
    f"{DMS}.unasked": {"LOAD00000001.csv": load("old", 1), "20240105-101112345.csv": "U,1,cdc 1\n"},
    f"{DATASTREAM}.refilled": {
        "2024/01/01/backfill.jsonl": backfill("first", "2024-01-01", 1, 2, 3, 4, 5, 6),
        "2024/01/02/cdc.jsonl": [datastream(1, "cdc 1", "2024-01-02", 400)],
    },
    f"{DATASTREAM}.filling": {
        "2024/01/01/backfill.jsonl": backfill("first", "2024-01-01", 1, 2),
        "2024/01/01/cdc.jsonl": [datastream(3, "cdc 3", "2024-01-01", 300)],
    },
    f"{BASELINE}.corrected": {"monday.csv": "id,note\n1,a\n2,b\n"},
    f"{BASELINE}.in_parts": {"part-1.csv": "id,note\n1,a\n"},
}
SECOND = {
    f"{DMS}.overwritten": {"LOAD00000001.csv": load("reload", 1, 2, 3)},
    f"{DMS}.behind": {"LOAD00000001.csv": load("old", 1, 2)},
    f"{DMS}.repeated": {"again/LOAD00000001.csv": load("old", 1, 2)},
    f"{DATASTREAM}.refilled": {
        "2024/01/05/backfill.jsonl": backfill("second", "2024-01-05", 1, 2, 3, 4, 5, 6),
        "2024/01/06/cdc.jsonl": [datastream(2, "cdc 2", "2024-01-06", 500)],
    },
    f"{DATASTREAM}.filling": {"2024/01/02/backfill.jsonl": backfill("first", "2024-01-02", 3, 4)},
    f"{BASELINE}.corrected": {"tuesday.csv": "id,note\n1,a\n2,c\n"},
    f"{BASELINE}.in_parts": {"part-2.csv": "id,note\n2,b\n"},
}


def deliver(workshop, files):
    for table, contents in files.items():
        for name, content in contents.items():
            workshop.deliver(table, name, content)
    return workshop.land(DMS, DATASTREAM, BASELINE)


def build(workshop, *names):
    """Build tables; return what was said of those that wait, by table."""
    workshop.build(*(f"+{name}" for name in names or NAMES), command="run")
    return dict(dbt.waiting)


def rows(workshop, name):
    return dict(workshop.rows(f"select * from {name}"))


def declaration(workshop, feed):
    return workshop.folder / f"models/staging/{feed}/_{feed}__sources.yml"


def paste(feed, said, meaning):
    """Append the line of a warning that says what the records are to the epochs of the feed."""
    (entry,) = re.findall(rf"^      (- \{{.*{meaning}: true\}})", said, re.MULTILINE)
    append_epoch(feed, yaml.safe_load(entry)[0])


@pytest.fixture(scope="module")
def loads(workshop):
    for table, form in TABLES.items():
        settings = {"order": "mysql_sort_keys"} if form.startswith("datastream") else None
        workshop.add_table(table, "id:int", "note:string", form, settings)
    deliver(workshop, FIRST)
    return workshop


def test_two_loads_that_come_at_once_wait(loads):
    said = build(loads)
    assert list(said) == ["reloaded"]
    assert "14 records of dms_loads, from landing batch 1 on" in said["reloaded"]
    assert f"highwater resync reloaded --from '{DMS}/reloaded/reload-20240201/LOAD00000001.csv'" in said["reloaded"]
    assert rows(loads, "reloaded") == {}
    assert rows(loads, "overwritten") == {1: "cdc 1", 2: "old 2", 9: "same 9"}
    assert rows(loads, "filling") == {1: "first 1", 2: "first 2", 3: "cdc 3"}


def test_a_later_load_waits_and_the_first_one_does_not(loads):
    assert deliver(loads, SECOND)[DMS].changed == [f"{DMS}/overwritten/LOAD00000001.csv"]
    loads.said = build(loads)
    # a copy of the first load, further parts of it, and a backfill beside the stream are no later loads
    assert sorted(loads.said) == ["behind", "corrected", "refilled", "reloaded"]
    assert rows(loads, "refilled") == {1: "cdc 1", **{n: f"first {n}" for n in range(2, 7)}}
    assert rows(loads, "repeated") == {1: "cdc 1", 2: "old 2"}
    assert rows(loads, "filling") == {1: "first 1", 2: "first 2", 3: "cdc 3", 4: "first 4"}
    assert rows(loads, "in_parts") == {1: "a", 2: "b"}
    assert rows(loads, "corrected") == {1: "a", 2: "b"}
    from highwater.status.status import status

    waits = {name: status(loads.spark, name)[0]["waiting"] for name in ("behind", "refilled", "repeated")}
    assert waits == {"behind": 2, "refilled": 7, "repeated": 0}


def test_a_load_is_the_truth_from_then_on_when_it_is_said(loads):
    # killed behind landing, before anything was declared
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("highwater.upkeep.resync._files_of_load", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        resync(loads.spark, "overwritten", (f"{DMS}/overwritten/LOAD*",))
    for name, pattern in [
        ("reloaded", f"{DMS}/reloaded/reload-20240201/*"),
        ("overwritten", f"{DMS}/overwritten/LOAD*"),
        ("refilled", f"{DATASTREAM}/refilled/2024/01/05/"),
    ]:
        said = resync(loads.spark, name, (pattern,))
        assert said[-1] == "Now run: highwater build", said
    paste(DMS, loads.said["behind"], "baseline")
    declared = yaml.safe_load(declaration(loads, DMS).read_text())["sources"][0]["config"]["meta"]["feed"]["epochs"]
    assert [epoch["table"] for epoch in declared] == ["reloaded", "overwritten", "behind"]
    paste(BASELINE, loads.said["corrected"], "ignore")
    deliver(loads, {f"{DMS}.overwritten": {"20240301-101112345.csv": "D,2,\n"}})
    assert build(loads) == {}
    assert rows(loads, "behind") == {1: "cdc 1", 2: "old 2"}
    assert rows(loads, "corrected") == {1: "a", 2: "b"}
    rejected = loads.rows("select distinct rejection_reason, verdict from corrected_changes where note = 'c'")
    assert rejected == [("ignored", "rejected")]


CASES = {
    "dms-reload": ("reloaded", {1: "reload 1", 2: "cdc 2", **{n: f"reload {n}" for n in range(3, 7)}}),
    # LOAD00000002.csv was as it had been, and is part of the load all the same; 2 was deleted later
    "dms-reload-same-name": ("overwritten", {1: "reload 1", 3: "reload 3", 9: "same 9"}),
    "ds-mysql-second-backfill": ("refilled", {1: "second 1", 2: "cdc 2", **{n: f"second {n}" for n in range(3, 7)}}),
}


@pytest.mark.parametrize("case", CASES)
def test_case(loads, case):
    name, expected = CASES[case]
    assert rows(loads, name) == expected


def test_the_same_command_again_writes_nothing(loads):
    before = declaration(loads, DATASTREAM).read_text()
    assert "wrote" not in " ".join(resync(loads.spark, "refilled", (f"{DATASTREAM}/refilled/2024/01/05/*",)))
    assert declaration(loads, DATASTREAM).read_text() == before


def test_what_resync_refuses(loads):
    with pytest.raises(UsageError, match=r"no record of dms_loads.repeated is of a file that matches nothing/here"):
        resync(loads.spark, "repeated", ("nothing/here",))
    with pytest.raises(UsageError, match=r"20240105-101112345.csv: no row of a full load"):
        resync(loads.spark, "repeated", (f"{DMS}/repeated/2024*",))
    with pytest.raises(UsageError, match=r"1 change[s]? landed together with the load.*--read-at"):
        resync(loads.spark, "repeated", (f"{DMS}/repeated/LOAD*",))


def test_without_the_question_a_later_load_loses_in_silence(loads):
    """Negative control: rows of the second load are stale, and nothing says so."""
    path = loads.folder / "macros/merge/later_baselines.sql"
    original = path.read_text()
    path.write_text(original.replace("{%- set later = [] -%}", "{{ return([]) }}{%- set later = [] -%}", 1))
    try:
        deliver(loads, {f"{DMS}.unasked": {"b/LOAD00000001.csv": load("reload", 1, 2)}})
        assert build(loads, "unasked") == {}
        assert rows(loads, "unasked") == {1: "cdc 1", 2: "reload 2"}
    finally:
        path.write_text(original)


HISTORIES, KEYS, STEPS = 40, "abcd", 40
START = datetime(2024, 3, 1)


def random_source(picks):
    """What happened to a few keys in each of STEPS hours, and the rows before each hour and at the end."""
    held, events, states = {key: f"v{picks.randrange(9)}" for key in KEYS if picks.random() < 0.6}, [], []
    for hour in range(STEPS):
        states.append(dict(held))
        for key in picks.sample(KEYS, picks.choice([0, 0, 1, 2])):
            if key in held and picks.random() < 0.4:
                del held[key]
                events.append((hour, "D", key, ""))
            else:
                events.append((hour, "U" if key in held else "I", key, f"v{picks.randrange(9)}"))
                held[key] = events[-1][3]
    return events, [*states, held]


def hour_of(hour):
    return START + timedelta(hours=hour)


def random_loads(seed):
    """Files of both formats by step, when the second load was read, and what the sources hold at the end.

    A first load is read at some hour, changes of some hours behind it are lost, then a second load is read; changes are
    delivered in any order, those of hours before the second load behind it too.
    """
    picks = random.Random(seed)
    first, gap, second = picks.randrange(5), picks.randrange(8, 15), picks.randrange(18, 25)
    sources = {history: random_source(picks) for history in range(HISTORIES)}
    cdc = {hour: [] for hour in range(first, STEPS) if not gap <= hour < second - picks.randrange(3)}
    for history, (events, _) in sources.items():
        for hour, operation, key, value in events:
            if hour in cdc:
                cdc[hour].append((operation, history, key, value))
    loads = {
        hour: [(history, key, value) for history, (_, states) in sources.items() for key, value in states[hour].items()]
        for hour in (first, second)
    }
    steps = [{}, {}, {}]
    for hour, changes in cdc.items():
        late = picks.random() < 0.2
        steps[2 if hour >= second + 6 else 1 if hour >= second or late else 0].update(files_of(hour, changes))
    steps[0].update(files_of_load(first, loads[first], "first"))
    steps[1].update(files_of_load(second, loads[second], "second"))
    end = {(history, key): value for history, (_, states) in sources.items() for key, value in states[-1].items()}
    return steps, hour_of(second), end


def files_of(hour, changes):
    """The changes of an hour, made in its middle, as a file of DMS and one of Datastream."""
    at = hour_of(hour) + timedelta(minutes=30)
    lines = "".join(",".join(map(str, change)) + "\n" for change in changes)
    records = [
        datastream_record(at, history, key, value or None, operation, place)
        for place, (operation, history, key, value) in enumerate(changes, 1)
    ]
    return {
        (f"{DMS}.wandering", f"{at:%Y%m%d-%H%M%S}000.csv"): lines,
        (f"{DATASTREAM}.straying", f"{at:%Y/%m/%d/%H}/cdc.jsonl"): records,
    }


def files_of_load(hour, rows, name):
    at = hour_of(hour)
    lines = "".join(",".join(map(str, row)) + "\n" for row in rows)
    records = [datastream_record(at, history, key, value) for history, key, value in rows]
    return {
        (f"{DMS}.wandering", f"{name}/LOAD00000001.csv"): lines,
        (f"{DATASTREAM}.straying", f"{at:%Y/%m/%d/%H}/backfill.jsonl"): records,
    }


def datastream_record(at, history, key, value, operation="I", place=0):
    micros = int((at - datetime(1970, 1, 1)).total_seconds() * 1000)
    return {
        "uuid": f"{at}-{history}-{key}-{place}",
        "source_timestamp": at.isoformat(timespec="milliseconds"),
        "read_method": "mysql-cdc-binlog" if place else "mysql-backfill-fulldump",
        "stream_name": "s",
        "sort_keys": [micros, "mysql-bin.000001", micros // 1000 + place] if place else [micros, "", 0],
        "source_metadata": {"change_type": {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}[operation]},
        "payload": {"history": history, "k": key, "v": value},
    }


def test_random_loads(loads):
    seed = int(os.environ.get("HIGHWATER_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}")
    steps, read_at, end = random_loads(seed)
    names = {f"{DMS}.wandering": "wandering", f"{DATASTREAM}.straying": "straying"}
    for table in names:
        form, settings = ("dms-csv", None) if table.startswith("dms") else (
            "datastream-gcs-json", {"order": "mysql_sort_keys"}
        )  # fmt: skip
        loads.add_table(table, "history:int,k:string", "v:string", form, settings)
    for step, files in enumerate(steps):
        for (table, name), content in files.items():
            loads.deliver(table, name, content)
        loads.land(DMS, DATASTREAM)
        waits = build(loads, *names.values())
        assert sorted(waits) == (sorted(names.values()) if step else []), (seed, step)
    resync(loads.spark, "wandering", (f"{DMS}/wandering/second/*",), read_at)
    resync(loads.spark, "straying", (f"{DATASTREAM}/straying/{read_at:%Y/%m/%d/%H}/*",))
    assert build(loads, *names.values()) == {}
    for name in names.values():
        found = {(history, key): value for history, key, value in loads.rows(f"select * from {name}")}
        assert found == end, (seed, name)


def test_contents_of_a_file_are_numbered():
    assert new_files.name_of_content("f/t/LOAD1.csv@12") == "f/t/LOAD1.csv"
    assert new_files.number_of_content("f/t/LOAD1.csv@12") == 12
    assert new_files.number_of_content("f/t/a@b.csv") == 1
