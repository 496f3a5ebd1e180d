"""Schema SHOP of a MySQL server, as Tungsten's batch applier writes it: one CSV file for each table, batch and hour.

On the way the service was told to write `U` for updates, and later `UD` and `UI`.
"""

from datetime import datetime, timedelta
from urllib.parse import quote

from deliveries import deliver_export, deliver_file

KEYS = {"orders": ["order_id"], "items": ["order_id", "line_number"], "audit": ["audit_id"]}
COLUMNS = {
    "orders": ["order_id", "customer", "total", "note", "placed_at"],
    "items": ["order_id", "line_number", "sku", "quantity"],
    "audit": ["audit_id", "what"],
}
NOTES = [
    'say "hi", then ring',
    "back\\slash, \\N and \\n as they are",
    "first line\nsecond line, with a comma\n\nfourth line",
    None,
    "",
    "\\N",
    "null",
    "Żółć 🙂",
    'ends with a quote"',
    "ends with a backslash\\",
    "  blanks around  ",
    "tab\tand return\r\nand line end",
]


class Applier:
    """A source and its service: transactions change rows, and are written down until the batch is delivered."""

    def __init__(self):
        self.seqno, self.at = 84899, datetime(2016, 3, 11, 20, 51, 10)
        self.rows: dict[str, dict] = {table: {} for table in KEYS}
        self.style = "D and I"
        self.waiting: list[tuple] = []

    def key(self, table: str, row: dict) -> tuple:
        """Return the key of a row."""
        return tuple(row[name] for name in KEYS[table])

    def transaction(self, *statements, seconds: int = 20) -> None:
        """Commit statements: each is a table and pairs of a row before and after, None where there is none."""
        self.seqno += 1
        self.at += timedelta(seconds=seconds)
        for table, *pairs in statements:
            for before, _ in pairs:
                if before:
                    del self.rows[table][self.key(table, before)]
            for _, after in pairs:
                if after:
                    self.rows[table][self.key(table, after)] = after
            # a statement over many rows writes all of its deletes before its inserts
            opcodes = [self.opcodes(table, before, after) for before, after in pairs]
            gone = [(first, before) for (first, _), (before, _) in zip(opcodes, pairs, strict=True) if first]
            came = [(second, after) for (_, second), (_, after) in zip(opcodes, pairs, strict=True) if second]
            for opcode, row in gone:
                keys_only = {name: row[name] if name in KEYS[table] else None for name in COLUMNS[table]}
                self.waiting.append((table, opcode, self.seqno, self.at, keys_only))
            for opcode, row in came:
                self.waiting.append((table, opcode, self.seqno, self.at, row))

    def opcodes(self, table: str, before: dict | None, after: dict | None) -> tuple:
        """Return the opcodes of the row that goes and of the one that comes."""
        if not (before and after) or self.style == "D and I":
            return "D" if before else None, "I" if after else None
        if self.style == "U" and self.key(table, before) == self.key(table, after):
            return None, "U"
        return ("UD", "UI") if self.style == "UD and UI" else ("D", "I")

    def changed(self, table: str, *key, **columns) -> tuple:
        """Return the row of a key, before and after columns of it are set."""
        before = self.rows[table][key]
        return before, {**before, **columns}

    def deliver(self, schema: str = "shop") -> list[tuple]:
        """Deliver what is waiting, in files of its own batch; return it."""
        written, self.waiting = self.waiting, []
        deliver_batch(schema, written)
        return written


def deliver_batch(schema: str, written: list[tuple]) -> None:
    """Write the files of one batch; they are named by its first seqno, and row_id counts the rows of each file."""
    files: dict[tuple, list[str]] = {}
    for table, opcode, seqno, at, row in written:
        lines = files.setdefault((table, f"commit_hour={at:%Y-%m-%d-%H}"), [])
        stage = [opcode, seqno, len(lines) + 1, f"{at:%Y-%m-%d %H:%M:%S}.000"]
        lines.append(",".join(map(value, [*stage, *row.values()])) + "\n")
    for (table, partition), lines in files.items():
        name = f"{schema}-{table}-{quote(partition)}-{written[0][2]}.csv"
        deliver_file(f"tungsten_shop/{name}", "".join(lines))


def value(content) -> str:
    r"""Return a value in the mysql dialect: quoted, quotes and backslashes with a backslash; NULL is a bare `\N`."""
    if content is None:
        return r"\N"
    return '"' + str(content).replace("\\", "\\\\").replace('"', '\\"') + '"'


def order(number: int, note: str | None, **columns) -> dict:
    """Return an order."""
    at = datetime(2016, 3, 11, 20, 50) + timedelta(minutes=number % 7)
    row = {"order_id": number, "customer": f"customer {number % 5}", "total": f"{number * 7 % 40}.{number % 10}5"}
    return {**row, "note": note, "placed_at": f"{at:%Y-%m-%d %H:%M:%S}", **columns}


def item(number: int, line: int, sku: str, quantity: int | None = 1) -> dict:
    """Return a line of an order."""
    return {"order_id": number, "line_number": line, "sku": sku, "quantity": quantity}


def deliver_all() -> None:
    """Deliver both tables, one that nobody declared, and the exports."""
    shop = Applier()
    for number, note in enumerate(NOTES, 1):
        lines = [(None, item(number, line, f"sku-{line}")) for line in range(1, number % 3 + 2)]
        shop.transaction(("orders", (None, order(number, note))), ("items", *lines))
    shop.transaction(("orders", shop.changed("orders", 4, total="99.99"), shop.changed("orders", 5, note=None)))
    shop.deliver()

    shop.at = datetime(2016, 3, 11, 20, 59)  # the batch goes over the hour, into two files a table
    # every line of order 5 gets the next number: (5, 2) is deleted and inserted by one transaction
    moved = [shop.changed("items", 5, line, line_number=line + 1) for line in (1, 2, 3)]
    shop.transaction(("items", *moved), seconds=30)
    shop.transaction(("orders", shop.changed("orders", 1, order_id=101, note="under a new number")), seconds=40)
    shop.transaction(("items", *(shop.changed("items", 1, line, order_id=101) for line in (1, 2))))
    gone = [(row, None) for row in shop.rows["items"].values() if row["order_id"] == 7]
    shop.transaction(("orders", (shop.rows["orders"][7,], None)), ("items", *gone))
    shop.transaction(("orders", (None, order(7, "the number is used again"))))
    second = shop.deliver()

    shop.style = "U"
    shop.transaction(("orders", shop.changed("orders", 2, customer='O\'Brien "the quote"')))
    shop.transaction(("orders", shop.changed("orders", 3, note="one line"), shop.changed("orders", 6, note="\\\\N")))
    shop.transaction(("items", shop.changed("items", 8, 1, quantity=None)))
    shop.transaction(("items", shop.changed("items", 8, 1, quantity=12), shop.changed("items", 8, 2, sku='5" pipe')))
    shop.transaction(("items", shop.changed("items", 9, 1, line_number=7)))
    third = shop.deliver()
    # after a restart, the end of one batch and the start of the next were written again, with other numbers of rows
    deliver_batch("shop", [row for row in [*second, *third] if second[-1][2] - 1 <= row[2] <= third[0][2] + 1])

    shop.style, shop.seqno = "UD and UI", 3_000_000_000  # beyond 32 bits
    shop.transaction(("orders", shop.changed("orders", 10, order_id=110)), ("items", shop.changed("items", 10, 1)))
    shop.transaction(("items", (shop.rows["items"][10, 1], None), (shop.rows["items"][10, 2], None)))
    shop.transaction(("orders", shop.changed("orders", 11, total="0.00"), shop.changed("orders", 12, total=None)))
    # a row is set back to what it was, by one transaction
    totals = ("0.50", "1.50", "0.50")
    shop.transaction(*(("orders", shop.changed("orders", 12, total=total)) for total in totals))
    shop.deliver()
    deliver_file("tungsten_shop/shop-items-commit_hour%3D2016-03-11-22-3000000010.csv", b"")
    position, taken_at = str(shop.seqno), shop.at

    for number in range(3):
        shop.transaction(("audit", (None, {"audit_id": number, "what": "logged in"})))
    shop.deliver()
    for table in ("orders", "items"):
        deliver_export("exports_shop", table, list(shop.rows[table].values()), position, taken_at)
