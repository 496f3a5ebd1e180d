"""Datastream's files in Cloud Storage: CONTACTS of a MySQL server as JSON lines, EMPLOYEES of PostgreSQL as Avro."""

import io
import json
import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import fastavro
from deliveries import deliver_export, deliver_file

START = datetime(2026, 3, 2, 9, 16, 40, tzinfo=timezone.utc)
CRM = "projects/1/locations/eu/streams/crm"
HR = "projects/1/locations/eu/streams/hr"


class MySql:
    """CONTACTS and the events of its stream."""

    def __init__(self):
        self.file, self.position, self.at = 999999, 98000, START
        self.rows: dict[int, dict] = {}
        self.events: list[dict] = []

    def event(self, change_type: str, row: dict, *, table: str = "contacts", read_method="mysql-cdc-binlog") -> dict:
        """Write an event down, at the position where the source stands."""
        is_backfill = "backfill" in read_method
        log_file = None if is_backfill else f"mysql-bin.{self.file:06}"
        read = self.at + timedelta(milliseconds=758)
        event = {
            "uuid": str(uuid.UUID(int=len(self.events) + 1)),
            "read_timestamp": f"{read:%Y-%m-%dT%H:%M:%S}.{read.microsecond // 1000:03}",
            "source_timestamp": f"{self.at:%Y-%m-%dT%H:%M:%S}.000",
            "object": f"crm_{table}",
            "read_method": read_method,
            "stream_name": CRM,
            "schema_key": "5a0e",
            "sort_keys": [int(self.at.timestamp() * 1000), log_file or "", 0 if is_backfill else self.position],
            "source_metadata": {
                "table": table,
                "database": "crm",
                "primary_keys": ["id"],
                "log_file": log_file,
                "log_position": None if is_backfill else self.position,
                "change_type": change_type,
                "is_deleted": change_type in ("DELETE", "UPDATE-DELETE"),
            },
            "payload": row,
        }
        self.events.append(event)
        return event

    def moves_on(self) -> None:
        """Go to the next position."""
        self.position += 654
        self.at += timedelta(seconds=3)

    def insert(self, row: dict) -> None:
        """Insert a row."""
        self.moves_on()
        self.rows[row["id"]] = row
        self.event("INSERT", row)

    def update(self, *changes: tuple[int, dict]) -> None:
        """Set columns of rows in one statement: all of it stands at one position."""
        self.moves_on()
        for key, columns in changes:
            before = self.rows.pop(key)
            after = {**before, **columns}
            self.rows[after["id"]] = after
            if after["id"] != key:
                self.event("UPDATE-DELETE", before)
            self.event("UPDATE-INSERT", after)

    def delete(self, key: int) -> None:
        """Delete a row."""
        self.moves_on()
        self.event("DELETE", self.rows.pop(key))


CONTACTS = [
    ("Ada Lovelace", "250.75", b"\x00\xff\x10", "1815-12-10"),
    ('O\'Brien "the quote"', "-0.01", b"", "1972-02-29"),
    ("null", "9999999999.99", None, "9999-12-31"),
    ("back\\slash\nand newline", None, b"\n", "1970-01-01"),
    ("Żółć 🙂", "0.10", bytes(range(16)), None),
    ("", "0", b"\x80", "2038-01-19"),
    ("<b>&amp;</b>\u2028", "12.5", None, "0001-01-01"),
    (None, "1.00", b"\r\n", "2000-02-29"),
]


def contact(number: int, **columns) -> dict:
    """Return a contact: decimals are text or numbers, bytes hex."""
    name, credit, photo, born_on = CONTACTS[number % len(CONTACTS)]
    return {
        "id": number,
        "name": name,
        "credit": credit if number % 3 or credit is None else float(credit),
        "photo": None if photo is None else photo.hex(),
        "born_on": None if born_on is None else f"{born_on}T00:00:00.000",
        "seen_at": f"2026-03-01T00:00:{number % 60:02}.{number:06}",
        **columns,
    }


def contacts() -> tuple[MySql, list[dict], list[dict]]:
    """Play CONTACTS; return the source, what was backfilled and what was streamed."""
    source = MySql()
    for number in range(1, 21):
        source.rows[number] = contact(number)
    source.update((3, {"name": "changed before it was backfilled"}))
    streamed = list(source.events)
    for row in source.rows.values():
        source.event("INSERT", row, read_method="mysql-backfill-fulldump")
    backfilled = source.events[len(streamed) :]
    started = len(source.events)
    source.update((1, {"credit": "100.00"}), (2, {"credit": "100.00"}))
    for credit in ("1.00", "2.00", "3.00"):
        source.update((4, {"credit": credit}))
    # an update of a row that another statement of the same event has updated
    source.update((5, {"name": "first"}), (5, {"name": "second"}), (5, {"name": "third"}))
    source.update((9, {"id": 10_009}))
    source.rows[30], source.rows[31] = contact(30), contact(31)
    source.moves_on()
    source.event("INSERT", source.rows[30])
    source.event("INSERT", source.rows[31])
    source.update((31, {"id": 32}), (30, {"id": 31}))  # every number becomes the next one
    source.delete(6)
    source.delete(7)
    source.file, source.position = source.file + 1, 4  # a name with a digit more, and low positions
    source.insert(contact(6, name="a number that is used again"))
    source.update((8, {"photo": None, "seen_at": None}))
    source.update((10, {"credit": 12345.67}))
    for number in range(40, 46):
        source.insert(contact(number))
    for number in range(40, 43):
        source.update((number, {"name": f"contact {number}"}))
    source.delete(45)
    return source, backfilled, streamed + source.events[started:]


def file_of_events(events: list[dict]) -> bytes:
    """Return one event a line."""
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events).encode()


def deliver_contacts() -> None:
    """Deliver CONTACTS, some events of a table that nobody declared, and the export."""
    source, backfilled, streamed = contacts()
    held = [
        {
            **row,
            "photo": None if row["photo"] is None else bytes.fromhex(row["photo"]),
            "born_on": row["born_on"] and row["born_on"][:10],
            "seen_at": row["seen_at"] and row["seen_at"].replace("T", " "),
        }
        for row in source.rows.values()
    ]
    deliver_export("exports_crm", "contacts", held, f"mysql-bin.{source.file} {source.position}", source.at)
    undeclared = [source.event("INSERT", {"id": number}, table="sessions") for number in range(3)]
    folder = "datastream_crm/crm_contacts/2026/03/02/09"
    deliver_file(f"{folder}/16/9c2f_mysql-backfill-fulldump_1_0_0.jsonl", file_of_events(backfilled))
    # a file ends in the middle of a statement: row 31 goes in this one and comes in the next, at one position
    moves = [event["payload"]["id"] for event in streamed if event["source_metadata"]["change_type"] == "UPDATE-DELETE"]
    assert moves == [9, 31, 30]
    cut = next(at for at, event in enumerate(streamed) if event["payload"]["id"] == 32) + 1
    deliver_file(f"{folder}/16/9c2f_mysql-cdc-binlog_2_0_0.jsonl", file_of_events(streamed[:cut] + undeclared))
    deliver_file(f"{folder}/17/9c2f_mysql-cdc-binlog_2_0_1.jsonl.gz", file_of_events(streamed[cut:]))
    again = [{**event, "uuid": event["uuid"].replace("0000", "ffff", 1)} for event in streamed[cut - 3 : cut]]
    broken = file_of_events(streamed[-1:])[:200] + b"\n"
    deliver_file(f"{folder}/17/9c2f_mysql-cdc-binlog_3_0_0.jsonl", file_of_events(again) + broken)


def optional(kind) -> list:
    """Return the Avro type of a column that may be NULL."""
    return ["null", kind]


TIMESTAMP = {"type": "long", "logicalType": "timestamp-millis"}
PAYLOAD = {
    "type": "record",
    "name": "payload",
    "fields": [
        {"name": "employee_id", "type": optional("long")},
        {"name": "name", "type": optional("string")},
        {
            "name": "salary",
            "type": optional({"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4}),
        },
        {"name": "hired_on", "type": optional({"type": "int", "logicalType": "date"})},
        {"name": "badge", "type": optional("bytes")},
        {"name": "is_active", "type": optional("boolean")},
        {"name": "rating", "type": optional("double")},
        {"name": "starts_at", "type": optional({"type": "long", "logicalType": "time-micros"})},
        {"name": "phones", "type": optional({"type": "string", "logicalType": "json"})},
        {
            "name": "seen_at",
            "type": optional(
                {
                    "type": "record",
                    "name": "timestampTz",
                    "fields": [
                        {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-micros"}},
                        {"name": "offset", "type": {"type": "int", "logicalType": "time-millis"}},
                    ],
                }
            ),
        },
        {"name": "updated_at", "type": optional({"type": "long", "logicalType": "timestamp-micros"})},
    ],
}
SCHEMA = {
    "type": "record",
    "name": "datastream",
    "fields": [
        *({"name": name, "type": "string"} for name in ("uuid", "stream_name", "schema_key", "object", "read_method")),
        {"name": "read_timestamp", "type": TIMESTAMP},
        {"name": "source_timestamp", "type": TIMESTAMP},
        {"name": "sort_keys", "type": {"type": "array", "items": ["string", "long"]}},
        {
            "name": "source_metadata",
            "type": {
                "type": "record",
                "name": "source_metadata",
                "fields": [
                    *({"name": name, "type": "string"} for name in ("schema", "table", "change_type")),
                    {"name": "is_deleted", "type": "boolean"},
                    {"name": "tx_id", "type": optional("long")},
                    {"name": "lsn", "type": optional("string")},
                    {"name": "primary_keys", "type": {"type": "array", "items": "string"}},
                ],
            },
        },
        {"name": "payload", "type": PAYLOAD},
    ],
}


class Postgres:
    """EMPLOYEES and the events of its stream."""

    def __init__(self):
        self.lsn, self.at = 0x16_FFFF_F000, START  # the second part of the LSN starts anew on the way
        self.rows: dict[int, dict] = {}
        self.events: list[dict] = []

    def position(self) -> str:
        """Return the LSN, as PostgreSQL writes it: no zeros in front."""
        return f"{self.lsn >> 32:X}/{self.lsn & 0xFFFFFFFF:X}"

    def event(self, change_type: str, row: dict, read_method: str = "postgresql-cdc") -> None:
        """Write an event down; it is the next one."""
        self.lsn += 0x208
        self.at += timedelta(seconds=7)
        lsn = None if "backfill" in read_method else self.position()
        self.events.append(
            {
                "uuid": str(uuid.UUID(int=len(self.events) + 1)),
                "stream_name": HR,
                "schema_key": "77b0",
                "object": "public_employees",
                "read_method": read_method,
                "read_timestamp": self.at + timedelta(milliseconds=758),
                "source_timestamp": self.at,
                "sort_keys": [int(self.at.timestamp() * 1000), lsn or ""],
                "source_metadata": {
                    "schema": "public",
                    "table": "employees",
                    "change_type": change_type,
                    "is_deleted": change_type == "DELETE",
                    "tx_id": None if lsn is None else 363552 + len(self.events),
                    "lsn": lsn,
                    "primary_keys": ["employee_id"],
                },
                "payload": row,
            }
        )

    def write(self, change_type: str, row: dict) -> None:
        """Insert, update or delete a row."""
        if change_type == "DELETE":
            del self.rows[row["employee_id"]]
            row = dict.fromkeys(row) | {"employee_id": row["employee_id"]}  # the replica identity alone
        else:
            self.rows[row["employee_id"]] = row
        self.event(change_type, row)


PEOPLE = [
    ("Grace Hopper", "99999999999999.9999", date(1906, 12, 9), b"\xff\x00", 4.5, time(7, 30)),
    ("Jürgen 'Ö' \\ ", "-0.0001", date(1, 1, 1), b"", 0.1 + 0.2, time(23, 59, 59, 999999)),
    ("", "0.5000", date(9999, 12, 31), None, None, time(0)),
    (None, None, None, b"line\nend", 1e22, None),
    ("null", "1234567890.1234", date(2024, 2, 29), bytes(range(20)), -0.0, time(12, 0, 0, 1)),
]


def employee(number: int, **columns) -> dict:
    """Return an employee, as Avro has it."""
    name, salary, hired_on, badge, rating, starts_at = PEOPLE[number % len(PEOPLE)]
    seen_at = START + timedelta(days=number, microseconds=number)
    return {
        "employee_id": 9007199254740992 + number,
        "name": name,
        "salary": None if salary is None else Decimal(salary),
        "hired_on": hired_on,
        "badge": badge,
        "is_active": number % 4 != 0,
        "rating": rating,
        "starts_at": starts_at,
        "phones": f'["+49 {number}", null]',
        "seen_at": {"timestamp": seen_at, "offset": time(number % 12)},
        "updated_at": seen_at - timedelta(hours=1),
        **columns,
    }


def employees() -> tuple[Postgres, int]:
    """Play EMPLOYEES; return the source, and how many events are a backfill."""
    source = Postgres()
    for number in range(15):
        row = employee(number)
        source.rows[row["employee_id"]] = row
        source.event("INSERT", row, "postgresql-backfill")
    for number in range(5):
        source.write("UPDATE-INSERT", employee(number, salary=Decimal(number) / 4, rating=None))
    for number in range(20, 26):
        source.write("INSERT", employee(number))
    source.write("DELETE", employee(5))
    source.write("DELETE", employee(20))
    source.write("INSERT", employee(20, name="hired again"))
    source.write("UPDATE-DELETE", employee(21))
    del source.rows[employee(21)["employee_id"]]
    source.write("UPDATE-INSERT", employee(121, name="under another number"))
    for number in range(22, 26):
        source.write("UPDATE-INSERT", employee(number, is_active=None, phones=None, seen_at=None))
    return source, 15


def file_of_avro(events: list[dict], codec: str) -> bytes:
    """Return an Avro file."""
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(SCHEMA), events, codec=codec, sync_marker=b"highwater-sync-!")
    return file.getvalue()


def deliver_employees() -> None:
    """Deliver EMPLOYEES and the export."""
    source, backfilled = employees()
    parts = [source.events[:backfilled], source.events[backfilled : backfilled + 8], source.events[backfilled + 8 :]]
    folder = "datastream_hr/public_employees/2026/03/02/09"
    deliver_file(f"{folder}/16/77b0_postgresql-backfill_1_0_0.avro", file_of_avro(parts[0], "null"))
    # the later events come in the file with the lower number
    deliver_file(f"{folder}/18/77b0_postgresql-cdc_2_0_0.avro", file_of_avro(parts[2], "deflate"))
    deliver_file(f"{folder}/18/77b0_postgresql-cdc_2_0_1.avro", file_of_avro(parts[1], "null"))
    held = [
        {
            **row,
            "starts_at": None if row["starts_at"] is None else row["starts_at"].isoformat("microseconds"),
            "seen_at": row["seen_at"] and row["seen_at"]["timestamp"],
        }
        for row in source.rows.values()
    ]
    deliver_export("exports_hr", "employees", held, source.position(), source.at)


def deliver_all() -> None:
    """Deliver both tables and their exports."""
    deliver_contacts()
    deliver_employees()
