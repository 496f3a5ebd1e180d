"""What Debezium can be told to write, with a schema and without: each value comes out itself or is rejected.

Each record holds one value a column, written in a random way of its producer. What must come out is known where the
record's schema or the feed's settings say how it was written; where neither does, it may be rejected.
"""

import base64
import json
import random
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from highwater.catalog.entities import declared_columns
from highwater.catalog.feeds import declared_feeds
from highwater.scaffold.fits import misfit

RECORDS = 60
EPOCH = datetime(1970, 1, 1)
UNITS = {"millis": 1000, "micros": 1, "nanos": None}
NAMES = {
    "millis": "io.debezium.time.Timestamp",
    "micros": "io.debezium.time.MicroTimestamp",
    "nanos": "io.debezium.time.NanoTimestamp",
    "days": "io.debezium.time.Date",
    "decimal": "org.apache.kafka.connect.data.Decimal",
    "variable": "io.debezium.data.VariableScaleDecimal",
}
# feed -> settings; the unit of `at` is declared where times do not say it
FEEDS = {
    "debezium_unsaid": {},
    "debezium_base": {"decimals": "precise", "binary": "base64", "times": "connect"},
    "debezium_texts": {"decimals": "string", "binary": "hex", "times": "microseconds"},
    "debezium_url": {"decimals": "precise", "binary": "base64url", "times": "nanoseconds"},
    "debezium_iso": {"decimals": "double", "binary": "base64", "times": "isostring"},
}
DECIMALS = {"precise": "decimal", "string": "text", "double": "number"}
TIMES = {"connect": "millis", "microseconds": "micros", "nanoseconds": "nanos", "isostring": "iso"}


@dataclass(frozen=True)
class Written:
    """A value in a record: `json` as it stands there, `field` of its schema, `way` it was written in."""

    json: object
    field: dict
    way: str


def in_bytes(number: int) -> str:
    size = (number.bit_length() + 8) // 8
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


def decimal(picks: random.Random, number: Decimal, way: str, scale: int) -> Written:
    if way == "decimal":
        field = {"type": "bytes", "name": NAMES["decimal"], "version": 1, "parameters": {"scale": str(scale)}}
        return Written(in_bytes(int(number.scaleb(scale))), field, way)
    if way == "variable":
        value = {"scale": scale, "value": in_bytes(int(number.scaleb(scale)))}
        return Written(value, {"type": "struct", "name": NAMES["variable"], "fields": []}, way)
    if way == "text":
        return Written(f"{number:f}", {"type": "string"}, way)
    return Written(f"@number {number:f}@", {"type": "double"}, way)


def moment(value: datetime, way: str) -> Written:
    micros = (value - EPOCH) // timedelta(microseconds=1)
    if way == "iso":
        return Written(value.isoformat() + "Z", {"type": "string", "name": "io.debezium.time.IsoTimestamp"}, way)
    number = {"millis": micros // 1000, "micros": micros, "nanos": micros * 1000}[way]
    return Written(number, {"type": "int64", "name": NAMES[way], "version": 1}, way)


def day(value: date, way: str) -> Written:
    if way == "iso":
        return Written(f"{value}Z", {"type": "string", "name": "io.debezium.time.IsoDate"}, way)
    return Written((value - EPOCH.date()).days, {"type": "int32", "name": NAMES["days"], "version": 1}, way)


def binary(value: bytes, way: str) -> Written:
    text = {
        "bytes": lambda: base64.b64encode(value).decode(),
        "base64": lambda: base64.b64encode(value).decode(),
        "base64url": lambda: base64.urlsafe_b64encode(value).decode(),
        "hex": value.hex,
    }[way]()
    return Written(text, {"type": "bytes" if way == "bytes" else "string"}, way)


def random_row(picks: random.Random) -> dict:
    whole = picks.choice([0, 1, -1, 77, 1234, 20240105, picks.randrange(-(10**15), 10**15)])
    return {
        "amount": Decimal(picks.choice([whole, picks.randrange(-(10**12), 10**12)])).scaleb(-picks.randrange(5)),
        "counted": whole,
        "at": EPOCH
        + timedelta(milliseconds=picks.choice([0, -1, 1, 1704448800123, picks.randrange(-(10**12), 9 * 10**12)])),
        "born_on": EPOCH.date() + timedelta(days=picks.randrange(-700_000, 2_900_000)),
        "photo": picks.randbytes(picks.choice([0, 1, 2, 3, 3, 6, 9])),
    }


def ways(picks: random.Random, settings: dict, has_schema: bool) -> dict:
    """How each column is written: any way where the record or nobody says it, else as the feed is told."""
    any_number, any_time = ["decimal", "variable", "text", "number"], ["millis", "micros", "nanos", "iso"]
    is_free = has_schema or not settings
    number = picks.choice(any_number if is_free else [DECIMALS[settings["decimals"]], "variable", "number"])
    counted = picks.choice(["decimal", "text", "number"] if is_free else [DECIMALS[settings["decimals"]], "number"])
    time = picks.choice(any_time) if has_schema else TIMES.get(settings.get("times")) or picks.choice(["millis", "iso"])
    said = settings.get("binary")
    photo = (
        picks.choice(["bytes", said or "bytes"]) if has_schema else said or picks.choice(["base64", "base64url", "hex"])
    )
    return {
        "amount": number,
        "counted": counted,
        "at": time,
        "born_on": picks.choice(["days", "iso"]) if has_schema or settings.get("times") == "isostring" else "days",
        "photo": photo,
    }


def record(picks: random.Random, number: int, row: dict, way: dict, has_schema: bool) -> str:
    scale = picks.randrange(4, 6) if has_schema or way["amount"] == "variable" else 4
    written = {
        "amount": decimal(picks, row["amount"], way["amount"], scale),
        "counted": decimal(picks, Decimal(row["counted"]), way["counted"], 0),
        "at": moment(row["at"], way["at"]),
        "born_on": day(row["born_on"], way["born_on"]),
        "photo": binary(row["photo"], way["photo"]),
    }
    after = {"id": number} | {name: value.json for name, value in written.items()}
    source = {"connector": "postgresql", "name": "s", "ts_ms": 1, "table": "t", "lsn": number}
    document = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": 1}
    if has_schema:
        fields = [{"type": "int32", "field": "id"}]
        fields += [{**value.field, "optional": True, "field": name} for name, value in written.items()]
        parts = [{"type": "struct", "field": part, "fields": fields} for part in ("before", "after")]
        document = {"schema": {"type": "struct", "fields": parts}, "payload": document}
    text = json.dumps(document)
    for start in reversed([place for place in range(len(text)) if text.startswith('"@number ', place)]):
        end = text.index('@"', start)
        text = text[:start] + text[start + len('"@number ') : end] + text[end + 2 :]
    return text


def is_told(settings: dict, has_schema: bool, way: dict) -> bool:
    """Whether the record or the feed says how every value is written; else a rejection is right too."""
    if has_schema:
        return way["photo"] == "bytes" or bool(settings)
    return bool(settings)


@pytest.fixture(scope="module")
def sent(workshop):
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    picks, expected = random.Random(seed), {}
    for feed, settings in FEEDS.items():
        entity = feed.partition("_")[2] + "_values"
        unit = "[millis]" if not settings else ""
        columns = f"amount:decimal(24,5),counted:bigint,at:timestamp{unit},born_on:date,photo:binary"
        if settings:  # without a schema the scale is that of the column
            columns = columns.replace("(24,5)", "(24,4)")
        lines = []
        for number in range(1, RECORDS + 1):
            has_schema, row = picks.random() < 0.5, random_row(picks)
            way = ways(picks, settings, has_schema)
            if not settings and not has_schema and way["amount"] == "decimal":
                way["amount"] = "number"  # nobody says the scale
            lines.append(record(picks, number, row, way, has_schema))
            expected[entity, number] = (row, is_told(settings, has_schema, way), lines[-1])
        workshop.add_table(
            f"{feed}.{entity}", "id:int", columns, "debezium-json", {"connector": "postgresql", **settings}
        )
        workshop.deliver(f"{feed}.{entity}", "values.json", "\n".join(lines))
    workshop.land(*FEEDS)
    entities = sorted({entity for entity, _ in expected})
    staged, found = workshop.staged(*entities), {}
    for feed in FEEDS:
        entity = feed.partition("_")[2] + "_values"
        columns = ["id", "amount", "counted", "string(at)", "born_on", "photo", "rejection_reason", "rejection_detail"]
        for row in map(tuple, staged[entity].selectExpr(*columns).collect()):
            found[entity, row[0]] = row
    return expected, found


def wrong_values(expected: dict, found: dict) -> list[str]:
    wrong = []
    for key, (row, told, text) in expected.items():
        _, amount, counted, at, born_on, photo, reason, detail = found[key]
        if reason is not None:
            if told or reason != "value_does_not_fit":
                wrong.append(f"{key}: rejected, {detail}: {text}")
            continue
        values = (amount, counted, datetime.fromisoformat(at), born_on, bytes(photo))
        if values != tuple(row.values()):
            wrong.append(f"{key}: {values} in place of {row}: {text}")
    return wrong


def test_values_are_exact_or_rejected(sent):
    expected, found = sent
    assert not wrong_values(expected, found)


def misfits(entity: str, text: str) -> dict[str, str]:
    """What `highwater check` says of the values of a record, by column."""
    document = json.loads(text, parse_float=Decimal)
    values, feed = document.get("payload", document)["after"], declared_feeds()[f"debezium_{entity.split('_')[0]}"]
    told = {
        column.name: misfit(values[column.field], column, feed, "schema" in document)
        for column in declared_columns(entity)[0]
    }
    return {name: wrong for name, wrong in told.items() if wrong}


def test_check_says_of_values_what_the_build_has_done(sent):
    """It may be silent where it is not sure; what it says comes true, and of what has no schema it says all."""
    expected, found = sent
    wrong = []
    for (entity, number), (_, _, text) in expected.items():
        told, (*_, reason, detail) = misfits(entity, text), found[entity, number]
        if any(f"{name} = [" not in (detail or "") for name in told) or ("schema" not in text and reason and not told):
            wrong.append((told, detail, text))
    assert not wrong


def test_some_of_what_nobody_says_is_rejected(sent):
    """Negative control: values that could be two things are there, and none of them is taken for one."""
    _, found = sent
    details = [row[7] for (entity, _), row in found.items() if entity == "unsaid_values" and row[6]]
    assert any("declare `" in detail for detail in details), details


def test_another_value_is_noticed(sent):
    """Negative control: a moment that was read in another unit."""
    expected, found = sent
    key = next(key for key, row in found.items() if row[6] is None and expected[key][0]["at"] != EPOCH)
    row = list(found[key])
    row[3] = str(EPOCH + (datetime.fromisoformat(row[3]) - EPOCH) / 1000)
    assert wrong_values({key: expected[key]}, {key: tuple(row)})
