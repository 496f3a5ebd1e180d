"""Schema USER1: the published experiment with Datastream's append mode, and a table with a real spread of types."""

import base64
import json
import random
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from deliveries import deliver_export, deliver_file

INSERTS, DELETES, UPDATES = 382, 194, 424
START = datetime(2024, 8, 29, 12, 0, 0, tzinfo=timezone.utc)
FEED = "datastream_user1"


class Source:
    """A database that writes down every change as Datastream's append mode does."""

    def __init__(self, seed: int, scn: int):
        self.random = random.Random(seed)
        self.scn, self.log, self.at = scn, 0x0E, START
        self.rows: dict = {}
        self.changes: list[dict] = []

    def position(self) -> str:
        """Return the newest sequence: hex sections of changing width, as the producer writes them."""
        return f"{self.scn:X}/{self.log:X}/{self.scn * 7 % 0xFFFF:X}"

    def write(self, operation: str, row: dict) -> None:
        """Write one change down, a few in each second."""
        self.scn += self.random.randint(1, 40)
        self.log += self.random.random() < 0.01
        self.at += timedelta(milliseconds=self.random.randint(0, 450))
        second = self.at.replace(microsecond=0)
        self.changes.append(
            {
                **row,
                "datastream_metadata": {
                    "uuid": f"{self.random.getrandbits(128):032x}",
                    "source_timestamp": int(second.timestamp() * 1000),
                    "change_sequence_number": self.position(),
                    "change_type": operation,
                    "sort_keys": [str(int(second.timestamp() * 1000)), str(self.scn), "0x00000a.00000bcd.0010", "0"],
                },
            }
        )


def table1() -> Source:
    """Play the experiment: 1000 changes of TABLE1(COL1, COL2)."""
    source = Source(seed=1, scn=0xEF00)  # crosses FFFF, where text order breaks
    operations = ["INSERT"] * INSERTS + ["DELETE"] * DELETES + ["UPDATE-INSERT"] * UPDATES
    source.random.shuffle(operations)
    deleted, number, postponed = [], 0, []
    while operations:
        operation = operations.pop()
        if operation != "INSERT" and not source.rows:
            postponed.append(operation)
            continue
        operations += postponed
        postponed = []
        value = "".join(source.random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=8))
        if operation == "INSERT":
            if deleted and source.random.random() < 0.2:
                key = deleted.pop(source.random.randrange(len(deleted)))  # a deleted key comes back
            else:
                number += 1
                key = f"K{number}"
            source.rows[key] = value
        else:
            key = source.random.choice(sorted(source.rows))
            if operation == "DELETE":
                value = source.rows.pop(key)
                deleted.append(key)
            else:
                source.rows[key] = value
        source.write(operation, {"COL1": key, "COL2": value})
    return source


CUSTOMERS = [
    ("Ada Lovelace", "12345678901234567890123456789.123456789", "1815-12-10", '{"news": true, "tags": ["a", "b"]}'),
    ('O\'Brien "the quote"', "-0.000000001", "1972-02-29", '{"path": "C:\\\\temp\\\\new"}'),
    ("back\\slash \\n and\nnewline", "0", "9999-12-31", "{}"),
    ("Żółć 🙂 \u200d👩‍🚀", "99999999999999999999999999999.999999999", "0001-01-01", '{"deep": {"er": [1, null]}}'),
    ("null", "1.5", "2000-01-01", "null"),
    ("NULL", "10.250000000", "2024-08-29", "[]"),
    ("", "7", None, None),
    ("comma, semicolon; tab\t|", None, "1999-12-31", '"just text"'),
    ("  blanks around  ", "3.141592653", "1970-01-01", '{"a": 1}'),
    ("None", "-12345678901234567890.5", "2038-01-19", '{"html": "<b>&amp;</b>"}'),
]


def customers() -> Source:
    """Play a table with a real spread of types: values that are lost or repaired by accident elsewhere."""
    source = Source(seed=2, scn=0x1FF0)
    for number, (name, balance, born_on, preferences) in enumerate(CUSTOMERS, 1):
        moment = START + timedelta(days=number, microseconds=123_456 + number)
        row = {
            "CUSTOMER_ID": 9007199254740992 + number,  # beyond what a double holds
            "NAME": name,
            "BALANCE": balance,
            "BORN_ON": born_on,
            "IS_ACTIVE": number % 3 != 0,
            "PHOTO": bytes(range(number)) if number != 7 else b"",
            "PREFERENCES": preferences,
            "UPDATED_AT": moment,
        }
        before = {**row, "NAME": "before " + name, "BALANCE": "1"}
        source.write("INSERT", before)
        source.write("UPDATE-INSERT", row)
        source.rows[row["CUSTOMER_ID"]] = row
    gone = {**source.rows[9007199254740993], "CUSTOMER_ID": 5}
    source.write("INSERT", gone)
    source.write("DELETE", gone)
    moved = {**source.rows.pop(9007199254741000), "CUSTOMER_ID": 42}
    source.write("UPDATE-DELETE", {**moved, "CUSTOMER_ID": 9007199254741000})
    source.write("UPDATE-INSERT", moved)
    source.rows[42] = moved
    return source


def delivered(row: dict) -> str:
    """Return a record as one line of JSON: bytes in base64, decimals as numbers now and as text then."""
    row = dict(row)
    if "PHOTO" in row:
        row["PHOTO"] = base64.b64encode(row["PHOTO"]).decode()
        row["UPDATED_AT"] = row["UPDATED_AT"].strftime("%Y-%m-%d %H:%M:%S.%f UTC")
        if row["BALANCE"] and row["CUSTOMER_ID"] % 2:
            return json.dumps({**row, "BALANCE": 0}, ensure_ascii=False).replace(
                '"BALANCE": 0', f'"BALANCE": {Decimal(row["BALANCE"]):f}'
            )
    return json.dumps(row, ensure_ascii=False)


def deliver(table: str, source: Source, sizes: list[int]) -> None:
    """Write the changes into files, shuffled; one file is gzip, one has Windows line ends, one a blank line."""
    changes = [delivered(change) for change in source.changes]
    source.random.shuffle(changes)
    for number, size in enumerate(sizes):
        lines, changes = changes[:size], changes[size:]
        name = f"part-{number:05d}.json"
        if number == 1:
            content = ("\n".join(lines) + "\n").encode()
            name += ".gz"
        elif number == 2:
            content = ("\r\n".join(lines) + "\r\n\r\n").encode()
        else:
            content = "\n".join(lines).encode()  # no line end behind the last record
        deliver_file(f"{FEED}/{table}/{name}", content)
    assert not changes


def export(table: str, rows: list[dict], source: Source) -> None:
    """Export the rows of a table."""
    deliver_export("exports_user1", table, rows, source.position(), source.at)


def deliver_all() -> None:
    """Deliver both tables and their exports."""
    first = table1()
    assert len(first.rows) == 188 and len(first.changes) == 1000
    deliver("table1", first, [333, 167, 250, 1, 249])
    export("table1", [{"COL1": key, "COL2": value} for key, value in first.rows.items()], first)
    second = customers()
    deliver("customers", second, [10, 8, len(second.changes) - 18])
    export("customers", list(second.rows.values()), second)
    bad = [
        # cut off
        delivered(second.changes[0]).encode()[:80],
        # a digit more than the column has
        delivered(second.changes[2]).replace('"BALANCE": "1"', '"BALANCE": "1.0000000005"').encode(),
        # Latin-1 in a UTF-8 file
        delivered(second.changes[4]).encode().replace(b"before back", b"d\xe9j\xe0 back"),
    ]
    deliver_file(f"{FEED}/customers/part-00003-damaged.json", b"\n".join(bad) + b"\n")
