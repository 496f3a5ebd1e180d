"""AWS DMS's files in S3: SHIPMENTS as CSV, STOCK_LEVELS as Parquet; a full load of each, and what changed since."""

import io
from datetime import datetime, timedelta
from decimal import Decimal

import pyarrow
import pyarrow.parquet
from deliveries import cell, deliver_export, deliver_file

START = datetime(2026, 3, 2, 9, 15, 30)


class Task:
    """A source and its task: rows in a dict, and every change with its number in the task."""

    def __init__(self, *key: str):
        self.key, self.at, self.number = key, START, 16
        self.rows: dict[tuple, dict] = {}
        self.changes: list[dict] = []

    def sequence(self) -> str:
        """Return the position of the newest change: 16 digits of time and 19 of a counter."""
        return f"{self.at:%Y%m%d%H%M%S}00{self.number:019}"

    def commit(self, *changes: tuple[dict | None, dict | None], seconds: int = 1) -> None:
        """Commit changes of rows: each is a row before and after. They have one commit time."""
        self.at += timedelta(seconds=seconds)
        for before, after in changes:
            self.number += 1
            if before:
                del self.rows[tuple(before[name] for name in self.key)]
            if after:
                self.rows[tuple(after[name] for name in self.key)] = after
            operation = "U" if before and after else "I" if after else "D"
            # a delete carries the key alone
            row = after or dict.fromkeys(before) | {name: before[name] for name in self.key}
            old_key = {f"BI_{name}": before[name] if before and after else None for name in self.key}
            meta = {"Op": operation, "committed_at": self.at, "AR_H_CHANGE_SEQ": self.sequence()}
            self.changes.append({**meta, **old_key, **row})

    def changed(self, *key, **columns) -> tuple[dict, dict]:
        """Return the row of a key, before and after columns of it are set."""
        return self.rows[key], {**self.rows[key], **columns}

    def loaded(self) -> list[dict]:
        """Return the rows as a full load has them: no operation and no position."""
        nothing = dict.fromkeys([f"BI_{name}" for name in self.key])
        return [
            {"committed_at": START - timedelta(hours=1), "AR_H_CHANGE_SEQ": None, **nothing, **row}
            for row in self.rows.values()
        ]


def lines(rows: list[dict], line_end: str = "\n") -> str:
    """Return rows in CSV, without a header."""
    return "".join(",".join(map(cell, row.values())) + line_end for row in rows)


NOTES = [
    "leave at the door",
    'say "hi", then ring',
    "",
    "NULL",
    None,
    "two\nlines",
    "null",
    "Ærø 🚢",
    "back\\slash",
    " ",
]


def shipment(number: int, **columns) -> dict:
    """Return a shipment."""
    return {
        "shipment_id": number,
        "carrier": ["Hermes", "DHL, Express", "O'Leary"][number % 3],
        "weight": None if number % 9 == 4 else Decimal(number * 1237 % 4000).scaleb(-3),
        "shipped_at": START - timedelta(days=number, microseconds=number),
        "note": NOTES[number % 10],
        **columns,
    }


def deliver_shipments() -> None:
    """Deliver SHIPMENTS and the export."""
    task = Task("shipment_id")
    task.rows = {(number,): shipment(number) for number in range(1, 26)}
    folder = "dms_sales/shipments"
    loaded = task.loaded()
    deliver_file(f"{folder}/LOAD00000001.csv", lines(loaded[:16]))
    deliver_file(f"{folder}/LOAD0000000A.csv.gz", lines(loaded[16:], "\r\n"))
    task.commit((None, shipment(26)), (None, shipment(27)))
    # one transaction changes a row three times: nothing but the sequence tells what came last
    for weight in ("1.000", "3.000", "2.000"):
        task.commit(task.changed(1, weight=Decimal(weight)), seconds=0)
    task.commit(task.changed(2, shipment_id=102, note="under another number"))
    task.commit(*(task.changed(number, note=None) for number in range(3, 7)))
    task.commit(*((task.rows[number,], None) for number in range(7, 10)))
    task.commit((None, shipment(7, note="a number that is used again")))
    # 12 becomes 13 and 13 becomes 12
    task.commit(task.changed(12, shipment_id=-1))
    task.commit(task.changed(13, shipment_id=12))
    task.commit(task.changed(-1, shipment_id=13))
    first = len(task.changes)
    task.at += timedelta(minutes=1)
    for number in range(14, 20):
        task.commit(task.changed(number, carrier="late, but here", shipped_at=None))
    task.commit((task.rows[20,], None), (None, shipment(20, note="deleted and back in one transaction")))
    task.commit((None, shipment(30)), ({**shipment(30)}, None))
    early, late = task.changes[:first], task.changes[first:]
    # files are not in the order of the changes, and the task wrote some of them twice
    shuffled = early[::2] + early[1::2]
    deliver_file(f"{folder}/2026/03/02/20260302-091600000.csv", lines(late))
    deliver_file(f"{folder}/2026/03/02/20260302-091730000.csv", lines([*shuffled, *late[:3]]))
    cut = lines(late[-1:])[:70] + "\n"
    deliver_file(f"{folder}/2026/03/02/20260302-091800000.csv", cut)
    deliver_export("exports_sales", "shipments", list(task.rows.values()), task.sequence(), task.at)


TYPES = {
    "Op": pyarrow.string(),
    "committed_at": pyarrow.timestamp("us"),
    "AR_H_CHANGE_SEQ": pyarrow.string(),
    "BI_warehouse": pyarrow.string(),
    "BI_sku": pyarrow.string(),
    "warehouse": pyarrow.string(),
    "sku": pyarrow.string(),
    "quantity": pyarrow.uint32(),
    "price": pyarrow.decimal128(12, 2),
    "is_open": pyarrow.bool_(),
    "picture": pyarrow.binary(),
    "counted_at": pyarrow.timestamp("us"),
    "volume": pyarrow.float64(),
}


def stock(number: int, **columns) -> dict:
    """Return how much of something is in a warehouse."""
    return {
        "warehouse": ["north", "süd", ""][number % 3],
        "sku": f"sku-{number}",
        "quantity": [0, 17, 4294967295, None][number % 4],
        "price": None if number % 7 == 3 else Decimal(number * 911 - 3000).scaleb(-2),
        "is_open": [True, False, None][number % 3],
        "picture": bytes(range(number)) if number % 5 else None,
        "counted_at": None if number % 6 == 5 else START - timedelta(days=number * 365, microseconds=number),
        "volume": [0.1, 1e300, -2.5][number % 3],
        **columns,
    }


def parquet(rows: list[dict]) -> bytes:
    """Return a Parquet file with the columns that the rows have."""
    schema = pyarrow.schema([(name, TYPES[name]) for name in rows[0]])
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), file)
    return file.getvalue()


def deliver_stock_levels() -> None:
    """Deliver STOCK_LEVELS and the export."""
    task = Task("warehouse", "sku")
    task.rows = {(row["warehouse"], row["sku"]): row for row in map(stock, range(1, 21))}
    folder = "dms_stock/stock_levels"
    deliver_file(f"{folder}/LOAD00000001.parquet", parquet(task.loaded()))
    keys = list(task.rows)
    for number, key in enumerate(keys[:6]):
        task.commit(task.changed(*key, quantity=number), task.changed(*key, quantity=number, price=Decimal("0.05")))
    task.commit(task.changed(*keys[6], warehouse="moved"))
    first = len(task.changes)
    task.commit(*((task.rows[key], None) for key in keys[7:10]))
    task.commit(*((None, stock(number)) for number in range(30, 34)))
    task.commit((None, stock(8, is_open=None, volume=None)))
    early, late = task.changes[:first], task.changes[first:]
    deliver_file(f"{folder}/20260302-091600000.parquet", parquet(late))
    deliver_file(f"{folder}/20260302-091700000.parquet", parquet([*early, *late[-2:]]))
    deliver_export("exports_stock", "stock_levels", list(task.rows.values()), task.sequence(), task.at)


def deliver_all() -> None:
    """Deliver both tables and their exports."""
    deliver_shipments()
    deliver_stock_levels()
