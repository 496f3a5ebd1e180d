"""Positions that fall while the clock of the source goes on: what would lose in silence waits for an epoch."""

import ast
import contextlib
import io
import json
import random
import re
from collections import Counter
from datetime import UTC, datetime

import pytest
import yaml
from fallen_histories import (
    START,
    delivered,
    fallen,
    falls_of,
    long_transactions,
    ordinary,
    two_sources,
    waits_from,
    wrong_keys,
)
from highwater.catalog.declarations import append_epoch, sources_file
from highwater.catalog.entities import models_of_tables
from highwater.runtime.errors import UsageError
from highwater.spark import dbt, progress
from highwater.status.status import status
from highwater.upkeep.epoch import READ, declare_epochs
from highwater.upkeep.rebuild import rebuild_from_raw
from repository import FIXTURES, PROJECT
from workshop import change as of_datastream

CASE = FIXTURES / "cases/dbz-mysql-failover-undeclared/debezium_fleet/vans"
HISTORIES = 20_000


@pytest.mark.parametrize("source", [ordinary, two_sources, long_transactions])
def test_nothing_falls_where_a_source_goes_on(source):
    """However its changes are delivered: late, repeated, shuffled."""
    for seed in range(HISTORIES // 4):
        picks = random.Random(seed)
        changes = source(picks)
        if len(changes) > 1:
            batches = delivered(picks, changes)
            assert not any(count for count, *_ in falls_of(batches)), (source.__name__, seed)


def test_a_fall_is_found_before_a_row_is_wrong():
    """At whatever point it is planted; and without a word of the records before three keys are wrong."""
    found = Counter()
    for seed in range(HISTORIES // 2):
        picks = random.Random(seed)
        changes = fallen(picks)
        if len(changes) < 2:
            continue
        batches = delivered(picks, changes)
        for is_told in (True, False):
            since = waits_from(batches, is_told)
            wrong = wrong_keys(batches[:since])
            assert len(wrong) < (1 if is_told else 3), (seed, is_told)
            found[is_told, since is not None] += 1
    assert found[True, True] > HISTORIES // 4 and found[False, True] > HISTORIES // 6, found


def sql_of_falls(workshop) -> str:
    """The select that finds falls, of a relation `fallen_arrivals` in the place of a staging model."""
    source = "{'relation': 'fallen_arrivals', 'feed': 'datastream_fallen', 'watermark': 0}"
    macro = f"highwater._falls_of_batches({{'entity': 'fallen', 'current': [], 'ends': [], 'rows': 1}}, {source})"
    result = workshop.dbt("compile", "--inline", "{{ " + macro + " }}")
    assert result.success, result.exception
    return result.result.results[0].node.compiled_code


def rows_of(number: int, batches):
    for place, files in enumerate(batches):
        for name, file in enumerate(files):
            for line, change in enumerate(file, 1):
                sequence = f"{0:016x}/{change.position:016x}"
                yield (
                    number, change.key, sequence, datetime.fromtimestamp(change.clock, UTC), "update",
                    f"datastream_fallen/fallen/{number}-{place}-{name}.json", line, number * 100 + place,
                    datetime.fromtimestamp(START + number * 100 + place, UTC), None,
                )  # fmt: skip


def test_the_select_finds_what_the_oracle_finds(falls):
    """Thousands of histories in one statement, each beside the others."""
    picks, histories = random.Random(int(START)), {}
    while len(histories) < 2000:
        changes = picks.choice([ordinary, fallen, fallen, two_sources, long_transactions])(picks)
        if len(changes) > 1:
            histories[len(histories) + 1] = delivered(picks, changes)
    columns = (
        "history int, k string, change_sequence_number string, changed_at timestamp, change_type string, "
        "source_file string, source_line int, landing_batch bigint, landed_at timestamp, rejection_reason string"
    )
    rows = [row for number, batches in histories.items() for row in rows_of(number, batches)]
    falls.spark.createDataFrame(rows, columns).createOrReplaceTempView("fallen_arrivals")
    # what is above all is above all of its history, which is the first column of the key
    sql, count = re.subn(r"over \(order by landed", "over (partition by `key 1` order by landed", sql_of_falls(falls))
    assert count == 1
    found = {}
    for row in falls.spark.sql(sql).collect():
        found[divmod(row.landing_batch, 100)] = (row.fallen, row["keys"], row.is_whole_file)
    expected = {
        (number, place): (fallen_, len(keys), is_whole)
        for number, batches in histories.items()
        for place, (fallen_, keys, is_whole, _) in enumerate(falls_of(batches))
        if fallen_
    }
    assert found == expected and len(expected) > 800


def at(seconds: int) -> int:
    return (START + seconds) * 1000


def debezium(key, value, seconds, op="u", **source) -> dict:
    """A record of Debezium; without a value a delete."""
    row = None if value is None else {"id": key, "v": value}
    return {
        "before": {"id": key} if op == "d" else None,
        "after": row,
        "op": op,
        "source": {"name": "bank", "ts_ms": at(seconds), "snapshot": "false", **source},
    }


def pallet(key, value, seconds, lsn, op="u") -> dict:
    return debezium(key, value, seconds, op, connector="postgresql", lsn=lsn)


def pot(key, v, w, seconds, lsn, op="u") -> dict:
    record = pallet(key, v, seconds, lsn, op)
    record["after"]["w"] = w
    return record


def crate(key, value, seconds, pos, op="u", server=1, file="mysql-bin.000009") -> dict:
    return debezium(key, value, seconds, op, connector="mysql", server_id=server, file=file, pos=pos)


# a table's columns may be called as the questions of a log call what they count, and where positions fall
KEY = {"second": "int", "landed": "int", "is_timed": "int", "held": "string", "own": "string", "lost": "string"}
NAMES_OF_MACROS = ["records", "lowest", "highest", "is_falling", "rows", "due", "feeds", "since", "fall", "keys"]


def drum(key, value, seconds, pos, op="u") -> dict:
    record = crate(key, value, seconds, pos, op)
    row = dict.fromkeys(KEY, 1) | dict.fromkeys(NAMES_OF_MACROS, value)
    return record | {"after": row | {"second": key, "held": "h", "own": "o", "lost": "l"}}


def drums(workshop) -> dict:
    found = workshop.rows("select second, landed, held, `records`, keys from lake.drums")
    assert {row[1:3] for row in found} == {(1, "h")} and {row[3] == row[4] for row in found} == {True}, found
    return {row[0]: row[3] for row in found}


AWAY = "__debezium_unavailable_value"
MYSQL, POSTGRES = {"connector": "mysql"}, {"connector": "postgresql"}
TABLES = {
    "debezium_fleet.vans": MYSQL,  # dbz-mysql-failover-undeclared
    "debezium_restored.pallets": POSTGRES,  # nothing in the records tells
    "debezium_restored.bins": POSTGRES,  # a truncate that falls, and changes below a truncate
    "debezium_restored.pots": POSTGRES,  # changes that carry some columns only
    "debezium_weeks.casks": MYSQL | {"clock": "ignore"},
    "debezium_few.drums": MYSQL,
    "debezium_at_once.bales": MYSQL,
    "debezium_late.sacks": POSTGRES,
}
FIRST = {
    "debezium_restored.pallets": [pallet(1, "a", 1, 9100, "c"), pallet(2, "b", 2, 9200, "c")],
    # the last of each is late, and its clock says so
    "debezium_restored.bins": [pallet(1, "a", 1, 9100, "c"), pallet(None, None, 3, 9300, "t"),
                               pallet(3, "c", 4, 9400, "c"), pallet(2, "b", 2, 9200, "c")],
    "debezium_restored.pots": [pot(1, "a", "b", 1, 9100, "c"), pot(2, "x", "y", 5, 9200, "c"),
                               pot(2, "w", AWAY, 4, 9150)],
    "debezium_weeks.casks": [crate(key, "old", key, 1000 * key, "c") for key in range(1, 5)],
    "debezium_few.drums": [drum(key, "old", key, 1000 * key, "c") for key in range(1, 5)],
    "debezium_at_once.bales": [
        crate(1, "a", 1, 100, "c"), crate(2, "b", 2, 200, "c"), crate(1, "a2", 3, 300),
        crate(1, "a3", 900, 120, file="binlog.000009"), crate(2, None, 901, 160, "d", file="binlog.000009"),
        crate(1, "a4", 902, 9999, file="binlog.000009"),
    ],
    "debezium_late.sacks": [pallet(key, "new", 10 * key, 1000 * key, "c") for key in range(1, 9)],
}  # fmt: skip
SECOND = {
    "debezium_restored.pallets": [pallet(1, "a2", 7200, 410), pallet(2, None, 7201, 420, "d"),
                                  pallet(3, "c", 7202, 430, "c")],
    "debezium_restored.bins": [pallet(5, "e", 7200, 410, "c"), pallet(None, None, 7201, 420, "t"),
                               pallet(6, "f", 7202, 430, "c")],
    "debezium_restored.pots": [pot(1, "a2", AWAY, 7200, 410), pot(2, AWAY, "y2", 7201, 420)],
    "debezium_weeks.casks": [crate(1, "new", 7200, 10), crate(2, None, 7201, 20, "d"), crate(5, "e", 7202, 30, "c"),
                              crate(3, "new", 7203, 40)],
    # one change of one key, and one that is in order: too little to wait for
    "debezium_few.drums": [drum(1, "new", 7200, 10), drum(4, "newer", 7201, 5000)],
    # late copies, older ones, a long transaction of other keys
    "debezium_late.sacks": [
        *[pallet(key, "older", 10 * key - 5, 1000 * key - 500) for key in range(1, 9)],
        *[pallet(key, "new", 10 * key, 1000 * key, "c") for key in range(1, 9)],
        *[pallet(key, "long", 7200, 7000 + key, "c") for key in range(20, 26)],
    ],
}  # fmt: skip
THIRD = {
    "debezium_few.drums": [drum(2, "new", 7300, 50), drum(3, "new", 7301, 60), drum(4, "newest", 7302, 6000)],
}
NAMES = [table.partition(".")[2] for table in TABLES]


def build(workshop, *names):
    """Build tables; return what was said of those that wait, by table."""
    workshop.build(*(f"+{name}" for name in names), command="run")
    return dict(dbt.waiting)


def rows(workshop, name) -> dict:
    return dict(workshop.rows(f"select * from lake.{name}"))


def deliver(workshop, name, contents):
    for table, records in contents.items():
        workshop.deliver(table, name, records)
    workshop.land(*{table.partition(".")[0] for table in contents})


@pytest.fixture(scope="module")
def falls(workshop):
    for table, settings in TABLES.items():
        key, columns = "id:int", "v:string,w:string" if table.endswith("pots") else "v:string"
        if table.endswith("drums"):
            key = ",".join(f"{name}:{kind}" for name, kind in KEY.items())
            columns = ",".join(f"{name}:string" for name in NAMES_OF_MACROS)
        workshop.add_table(table, key, columns, "debezium-json", settings)
    workshop.add_table("datastream_fallen.fallen", "history:int,k:string", "v:string")
    return workshop


@pytest.fixture(scope="module")
def built(falls):
    files = [{"debezium_fleet.vans": (CASE / f"000{n}.json").read_bytes()} for n in (1, 2)]
    deliver(falls, "0001.json", FIRST | files[0])
    falls.said = [build(falls, *NAMES)]
    deliver(falls, "0002.json", SECOND | files[1])
    with contextlib.redirect_stdout(io.StringIO()) as shown, progress.shown(models_of_tables()):
        falls.said.append(build(falls, *NAMES))
    falls.shown = shown.getvalue()
    falls.doubtful = dict(dbt.doubtful)
    return falls


def test_what_falls_waits(built):
    first, second = built.said
    # the file that has both servers waits at the first build
    assert list(first) == ["bales"] and "name of the log files was mysql-bin and is binlog" in first["bales"]
    assert rows(built, "bales") == {}
    assert sorted(second) == ["bales", "bins", "pallets", "pots", "vans"]
    assert "vans waits: 3 records of debezium_fleet, from landing batch 2 on" in second["vans"]
    # in words that are short, for the build tells the others at its end
    short = "vans waits: 3 records of debezium_fleet, from landing batch 2 on; what to do is said at the end\n"
    assert short in built.shown and "highwater epoch debezium_fleet" not in built.shown
    assert "highwater epoch debezium_fleet" in second["vans"]
    assert "2 changes of 2 keys" in second["vans"] and "the source was 101 and is 202" in second["vans"]
    assert "GTID source was 3a51c0de-0000-11ee-8000-00000000a101 and is 7b62d1ef" in second["vans"]
    assert rows(built, "vans") == {1: "a2", 2: "b"} and rows(built, "pallets") == {1: "a", 2: "b"}
    # what is late, or of another key, or of a feed that says so, does not
    late = rows(built, "sacks")
    assert late == {**dict.fromkeys(range(1, 9), "new"), **dict.fromkeys(range(20, 26), "long")}
    assert status(built.spark, "vans")[0]["waiting"] == 3


def test_truncates_and_partial_images_that_fall_wait(built):
    _, second = built.said
    # a truncate falls below all there is, and what is below one that was made before falls
    assert "3 changes of 3 keys, the first of 2025-12-29 11:20:00" in second["bins"], second["bins"]
    assert "2 changes of 2 keys" in second["pots"], second["pots"]
    assert rows(built, "bins") == {3: "c"}
    assert built.rows("select * from lake.pots order by id") == [(1, "a", "b"), (2, "x", "y")]


def test_rows_as_of_a_position_are_the_same_of_keys_and_of_all(built):
    """`using` puts the columns of a key first, and behind them stand those of truncates."""

    def asked(keys: str):
        log = "api.Relation.create(schema='lake', identifier='bins_changes')"
        macro = f"highwater.rows_as_of({log}, 'bins', sequence='ffffffffffffffff', keys={keys})"
        result = built.dbt("compile", "--inline", "{{ " + macro + " }}").result.results[0]
        return built.spark.sql(result.node.compiled_code)

    every, some = asked("none"), asked("'select id from lake.bins_changes'")
    assert some.dtypes == every.dtypes
    assert sorted(some.collect()) == sorted(every.collect()) == [(3, "c")]


def test_too_little_to_wait_is_said(built):
    assert list(built.doubtful) == ["drums"] and "1 change of debezium_few" in built.doubtful["drums"]
    assert drums(built) == {1: "old", 2: "old", 3: "old", 4: "newer"}


def test_an_epoch_is_declared_by_the_lines_that_were_said(built):
    restored = ["pallets", "bins", "pots"]
    for table in restored:
        (entry,) = re.findall(r"^      (- \{.*\})$", built.said[1][table], re.MULTILINE)
        append_epoch("debezium_restored", yaml.safe_load(entry)[0])
    assert build(built, *restored) == {}
    assert rows(built, "pallets") == {1: "a2", 3: "c"} and rows(built, "bins") == {6: "f"}
    assert built.rows("select * from lake.pots order by id") == [(1, "a2", "b"), (2, "x", "y2")]


@pytest.mark.long
def test_an_epoch_is_declared_by_the_command(built):
    """dbz-mysql-failover-undeclared, and a first build whose file has both servers."""
    for feed in ("debezium_fleet", "debezium_at_once"):
        said = declare_epochs(built.spark, feed)
        assert said[-1] == "Now run: highwater build", said
    assert "source_identity = '202'" in sources_file("debezium_fleet").read_text()
    before = sources_file("debezium_fleet").read_text()
    with pytest.raises(UsageError, match="no position of debezium_fleet falls"):
        declare_epochs(built.spark, "debezium_fleet")
    assert sources_file("debezium_fleet").read_text() == before
    assert build(built, "vans", "bales") == {}
    assert rows(built, "vans") == {1: "a3", 3: "c"}
    assert rows(built, "bales") == {1: "a4"}


@pytest.mark.long
def test_what_was_wrong_for_weeks_is_found_and_put_right(built):
    assert rows(built, "casks") == {1: "old", 2: "old", 3: "old", 4: "old", 5: "e"}
    path = sources_file("debezium_weeks")
    path.write_text(re.sub(r"\n *clock: ignore", "", path.read_text()))
    found = status(built.spark, "casks")[0]
    assert (found["fallen"], str(found["fallen_since"])) == (3, str(datetime.fromtimestamp(START + 7200)))
    said = declare_epochs(built.spark, "debezium_weeks")
    assert "highwater rebuild casks --from raw" in said[-2], said
    rebuild_from_raw(built.spark, "casks")
    assert rows(built, "casks") == {1: "new", 3: "new", 4: "old", 5: "e"}
    assert not status(built.spark, "casks")[0]["fallen"]  # nothing may be superseded any more


@pytest.mark.long
def test_what_was_too_little_counts_on(built):
    deliver(built, "0003.json", THIRD)
    # one key before and two now, though others go on above them
    said = build(built, "drums")["drums"]
    assert "Before, 1 key has lost so already" in said
    assert drums(built)[4] == "newer"
    said = declare_epochs(built.spark, "debezium_few")
    assert said[-2].endswith("highwater rebuild drums --from raw"), said
    rebuild_from_raw(built.spark, "drums")
    built.build("+drums")  # with its tests, of columns of any name
    assert dbt.waiting == {}
    assert drums(built) == {1: "new", 2: "new", 3: "new", 4: "newest"}


def staged(key, seconds, seqno) -> str:
    """A change as Tungsten's files have it."""
    return f'"U","{seqno}","1","{datetime.fromtimestamp(START + seconds, UTC):%Y-%m-%d %H:%M:%S.000}","{key}","x"'


def of_log(key, seconds, log, position) -> dict:
    """A change of Arcion's, with the cursor of log files."""
    cursor = {"extractorId": 0, "timestamp": at(seconds), "log": log, "position": position, "v": 2}
    image = {"before": {}, "after": {"id": str(key), "v": "x"}, "exists": {"id": "1", "v": "1"}}
    return {"tableName": {"name": "t"}, "opType": "I", "cursor": json.dumps(cursor), **image}


def of_commit_log(key, seconds, segment) -> str:
    """A change of Arcion's in CSV, with the cursor of commit logs."""
    cursor = json.dumps(
        {"extractorId": 0, "timestamp": at(seconds), "log": "bin.1", "position": segment, "logSeqNum": 1}
    )
    return f'{key},{key},3,x,x,3,U,"{cursor.replace(chr(34), 2 * chr(34))}",x'


def in_bucket(key, seconds, log, offset) -> dict:
    """A change of MySQL as Datastream's files have it."""
    time = f"{datetime.fromtimestamp(START + seconds, UTC):%Y-%m-%dT%H:%M:%S}"
    return {
        "uuid": "u", "read_timestamp": time, "source_timestamp": time, "object": "shop_t", "stream_name": "s",
        "read_method": "mysql-cdc-binlog", "sort_keys": [at(seconds), log, offset], "payload": {"id": key, "v": "x"},
        "source_metadata": {"table": "t", "database": "shop", "change_type": "UPDATE"},
    }  # fmt: skip


def of_oracle(key, seconds, scn) -> dict:
    return debezium(key, "x", seconds, connector="oracle", scn=str(scn), commit_scn=str(scn), ssn=0)


def of_sqlserver(key, seconds, lsn) -> dict:
    lsn = f"{lsn:08x}:00000d98:00a2"
    return debezium(key, "x", seconds, connector="sqlserver", change_lsn=lsn, commit_lsn=lsn, event_serial_no=1)


# of each format: its settings; a change of a key at a second and a position; what tells more than the clock
FORMATS = {
    "datastream_fell.jars": (
        "datastream-json", None,
        lambda key, seconds, n: of_datastream("UPDATE", f"{n:x}", {"id": key, "v": "x"}, at=at(seconds)),
        None,
    ),
    "datastream_cans.cans": (
        "datastream-gcs-json", {"order": "mysql_sort_keys"},
        lambda key, seconds, n: in_bucket(key, seconds, f"{'binlog' if n < 500 else 'mysql-bin'}.000009", n),
        "the name of the log files was mysql-bin and is binlog",
    ),
    "arcion_fell.tins": (
        "arcion-json", None,
        lambda key, seconds, n: of_log(key, seconds, f"{'binlog' if n < 500 else 'mysql-bin'}.000009", n),
        "the name of the log files was mysql-bin and is binlog",
    ),
    "arcion_tubs.tubs": ("arcion-csv", None, of_commit_log, None),
    "tungsten_fell.urns": ("tungsten-csv", {"dialect": "mysql"}, staged, None),
    "debezium_orcl.kegs": ("debezium-json", {"connector": "oracle"}, of_oracle, None),
    "debezium_mssql.vats": ("debezium-json", {"connector": "sqlserver"}, of_sqlserver, None),
}  # fmt: skip


@pytest.mark.soak
def test_a_fall_is_found_in_every_format(falls):
    for table, (form, settings, record, _) in FORMATS.items():
        falls.add_table(table, "id:int", "v:string", form, settings)
        # the last one is late, and its clock says so
        before = [record(1, 1, 9100), record(2, 2, 9200), record(2, 0, 9000)]
        for name, records in (("a", before), ("b", [record(1, 7200, 410), record(2, 7201, 420)])):
            is_text = isinstance(records[0], str)
            content = "".join(f"{line}\n" for line in records) if is_text else records
            falls.deliver(table, f"{name}.{form.rpartition('-')[2]}", content)
    falls.land(*{table.partition(".")[0] for table in FORMATS})
    falls.build(*(f"+{table.partition('.')[2]}_changes" for table in FORMATS), command="run")
    for table, (*_, told) in FORMATS.items():
        said = dbt.waiting.get(table.partition(".")[2], "")
        assert "5 records" in said and "2 changes of 2 keys" in said, (table, said)
        assert (f", and {told}." in said) if told else ", and the" not in said, (table, said)


def test_positions_of_rows_that_were_read_have_one_length_in_sql_and_in_status():
    text = (PROJECT / "macros/staging/order/is_timed_change.sql").read_text()
    lengths = re.search(r"set lengths = (\{.*?\}) -%\}", text, re.DOTALL)[1]
    assert ast.literal_eval(lengths) == READ
