"""Schema PUBLIC of an ERP on PostgreSQL, as Debezium writes it: records of all tables in one file, as JSON lines.

Tables have the default replica identity, so that deletes carry the key alone, and updates carry a placeholder for long
values that they did not touch.
"""

import base64
import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from deliveries import deliver_export, deliver_file

START = datetime(2026, 3, 2, 9, 16, 40, tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
UNAVAILABLE = "__debezium_unavailable_value"
TERMS = 'Payable within 30 days. "Days" are calendar days;\n\ttime zone: Łódź. ' * 3


def value(content):
    """Return a value as the JSON converter writes it: decimals and bytes in base64, times as numbers."""
    if isinstance(content, Decimal):
        number = int(content.scaleb(2))
        content = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    if isinstance(content, bytes):
        return base64.b64encode(content).decode()
    if isinstance(content, datetime):
        return (content - EPOCH) // timedelta(microseconds=1)
    if isinstance(content, date):
        return (content - EPOCH.date()).days
    return content


class Connector:
    """A source and its connector: rows of each table in a dict, and the lines that are written."""

    def __init__(self):
        self.lsn, self.at = 97895067056, START
        self.rows: dict[str, dict] = {"invoices": {}, "payments": {}, "heartbeat": {}}
        self.lines: list[str] = []

    def write(self, op: str, table: str, before: dict | None, after: dict | None, *, lsn: int | None = None) -> None:
        """Write a record; every third one says its schema too."""
        self.at += timedelta(seconds=2, microseconds=7)
        if lsn is None:
            self.lsn += 88
        millis = value(self.at) // 1000
        envelope = {
            "before": before and {name: value(content) for name, content in before.items()},
            "after": after and {name: value(content) for name, content in after.items()},
            "source": {
                "version": "3.2.0",
                "connector": "postgresql",
                "name": "erp",
                "ts_ms": millis,
                "snapshot": "true" if op == "r" else "false",
                "db": "erp",
                "sequence": f'["{self.lsn - 88}","{self.lsn}"]',
                "schema": "public",
                "table": table,
                "txId": 363552 + len(self.lines),
                "lsn": lsn or self.lsn,
                "xmin": None,
            },
            "op": op,
            "ts_ms": millis + 378,
        }
        if len(self.lines) % 3 == 0:
            fields = [{"type": "struct", "optional": True, "field": name} for name in ("before", "after", "source")]
            schema = {"type": "struct", "fields": fields, "optional": False, "name": f"erp.public.{table}.Envelope"}
            envelope = {"schema": schema, "payload": envelope}
        self.lines.append(json.dumps(envelope, ensure_ascii=False))

    def insert(self, table: str, *rows: dict, op: str = "c") -> None:
        """Insert rows in one statement: they have one LSN."""
        for number, row in enumerate(rows):
            self.rows[table][row["id"]] = row
            self.write(op, table, None, row, lsn=self.lsn if number else None)

    def update(self, table: str, key: int, **columns) -> None:
        """Set columns of a row; a long value that is not set is not there."""
        row = self.rows[table][key]
        row.update(columns)
        long = {name for name in ("terms", "scan") if name not in columns and len(row.get(name) or "") > 100}
        missing = {"terms": UNAVAILABLE, "scan": UNAVAILABLE.encode()}
        self.write("u", table, None, {name: missing[name] if name in long else row[name] for name in row})

    def delete(self, table: str, key: int) -> None:
        """Delete a row; a tombstone follows."""
        row = self.rows[table].pop(key)
        self.write("d", table, dict.fromkeys(row) | {"id": key}, None)
        self.lines.append("null")

    def move(self, table: str, key: int, new_key: int) -> None:
        """Give a row another key: a delete, a tombstone and an insert."""
        row = self.rows[table][key]
        self.delete(table, key)
        self.insert(table, row | {"id": new_key})

    def truncate(self, table: str) -> None:
        """Empty a table."""
        self.rows[table].clear()
        self.write("t", table, None, None)


TOTALS = ["150.50", "-0.01", "0.00", "250.75", "9999999999.99", "-9999999999.99", "1.28", "-1.28", "327.68", "2.55"]


def invoice(number: int, **columns) -> dict:
    """Return an invoice."""
    return {
        "id": number,
        "customer": ["Ada & Söhne", 'O\'Brien "the quote"', "", "null", None][number % 5],
        "total": None if number % 11 == 7 else Decimal(TOTALS[number % 10]),
        "terms": TERMS if number % 2 else None,
        "scan": bytes(range(100, 100 + number)) * 25 if number % 3 else b"",
        "issued_on": [date(2024, 2, 29), date(1969, 12, 31), date(9999, 12, 31), None][number % 4],
        "updated_at": START - timedelta(days=number * 400, microseconds=number),
        **columns,
    }


def payment(number: int, **columns) -> dict:
    """Return a payment."""
    return {
        "id": number,
        "invoice_id": number % 20 + 1,
        "amount": Decimal(TOTALS[number % 10]),
        "paid_at": START + timedelta(seconds=number),
        **columns,
    }


def erp() -> Connector:
    """Play the source."""
    source = Connector()
    source.insert("payments", *(payment(number) for number in range(1, 9)), op="r")
    # invoices of a trial, thrown away before the first real one
    source.insert("invoices", *(invoice(number, customer="trial") for number in range(1, 6)))
    source.update("invoices", 2, total=Decimal("1.00"))
    source.truncate("invoices")
    source.insert("invoices", *(invoice(number) for number in range(3, 15)))
    source.insert("heartbeat", {"id": 1})
    for number in range(3, 8):
        source.update("invoices", number, total=Decimal("12.50"), updated_at=source.at)
    source.update("invoices", 3, terms="short now", scan=b"\x00")
    source.update("invoices", 3, customer="the terms stay short")
    source.update("invoices", 5, terms=None)
    source.insert("heartbeat", {"id": 2})
    source.delete("invoices", 8)
    source.delete("invoices", 9)
    source.insert("invoices", invoice(9, customer="a number that is used again"))
    source.move("invoices", 10, 110)
    source.update("invoices", 11, customer=None, issued_on=None)
    for number in (2, 3):
        source.update("payments", number, amount=Decimal("75.25"))
    source.delete("payments", 4)
    source.move("payments", 5, 50)
    source.insert("payments", *(payment(number) for number in range(20, 26)))
    source.insert("heartbeat", {"id": 3})
    return source


def deliver_all() -> None:
    """Deliver what the connector wrote, a line that was cut, and the exports."""
    source = erp()
    lines = source.lines
    # the broker was restarted: the last records of a file come again in the next one
    files = [lines[:20], lines[20:41], lines[38:]]
    files[1].insert(7, lines[3][:45])  # cut before the record says its table
    undated = source.lines[-2].replace(f'"lsn": {source.lsn - 88}', '"lsn": null')
    files[2].append(undated)
    for number, part in enumerate(files):
        deliver_file(f"debezium_erp/erp+0+{number * 20:010}.json", "\n".join(part) + "\n")
    for table in ("invoices", "payments"):
        # taken before the last heartbeat
        deliver_export("exports_erp", table, list(source.rows[table].values()), str(source.lsn - 88), source.at)
