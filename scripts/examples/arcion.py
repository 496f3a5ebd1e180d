"""Arcion's internal CDC format: REGION and NATION of TPC-H as JSON, SUPPLIER as CSV.

REGION is in Cassandra, where inserts and updates set columns and an update brings a deleted row back with those columns
alone; the others are in MySQL.
"""

import json
from datetime import datetime, timezone

from deliveries import cell, deliver_export, deliver_file

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
# the region of each nation, by the number of the nation
NATIONS = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
]


class Replicant:
    """A source and its replicant: rows in a dict, and each change as the format has it.

    Attributes:
        columns: those of the table, in the order of the producer (by name). key: one of them.
    """

    def __init__(self, name: str, namespace: dict, key: str, columns: list[str]):
        self.table_name = {"namespace": namespace, "name": name, "hash": -821029210}
        self.key, self.columns = key, columns
        self.rows: dict = {}
        self.changes: list[dict] = []
        self.counts = dict.fromkeys(["insertCount", "updateCount", "deleteCount", "replaceCount"], 0)

    def write(self, operation: str, cursor: dict, before: dict, after: dict) -> None:
        """Write a change down. The images hold the columns that they mention."""
        self.counts[{"I": "insertCount", "U": "updateCount", "D": "deleteCount"}[operation]] += 1
        exists = {name: (name in after) + 2 * (name in before) for name in self.columns}
        self.changes.append(
            {
                "tableName": self.table_name,
                "opType": operation,
                "cursor": cursor,
                "before": {name: before.get(name) for name in self.columns},
                "after": {name: after.get(name) for name in self.columns},
                "exists": exists,
                "operationcount": dict(self.counts),
            }
        )

    def export(self, feed: str, position: str, millis: int) -> None:
        """Export the table."""
        names = [self.key, *(name for name in self.columns if name != self.key)]
        rows = [{name: row[name] for name in names} for _, row in sorted(self.rows.items())]
        deliver_export(
            feed, self.table_name["name"], rows, position, datetime.fromtimestamp(millis // 1000, timezone.utc)
        )


class Cassandra(Replicant):
    """A table of Cassandra, told from commit logs: positions start anew in each of them."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.log, self.mutation, self.millis = 1620787053904, 1048000, 1620787841959

    def cursor(self, **different) -> dict:
        """Return the cursor of the next change."""
        self.mutation += 72
        self.millis += 10157
        cursor = {"extractorId": 0, "nodeID": "node1", "timestamp": self.millis, "extractionTimestamp": self.millis + 7}
        return {**cursor, "dscId": self.log, "mutId": self.mutation, "partNum": 1, "v": 2, **different}

    def next_log(self) -> None:
        """Start another commit log."""
        self.log, self.mutation = self.log + 1, 1000

    def insert(self, key: int, **columns) -> None:
        """Insert a row, or columns of it."""
        self.rows.setdefault(key, dict.fromkeys(self.columns)).update({self.key: key, **columns})
        self.write("I", self.cursor(), {}, {self.key: key, **columns})

    def update(self, key: int, **columns) -> None:
        """Set columns of a row; where there is none, it comes to be."""
        self.rows.setdefault(key, dict.fromkeys(self.columns)).update({self.key: key, **columns})
        self.write("U", self.cursor(), {self.key: key}, columns)

    def delete(self, key: int) -> None:
        """Delete a row."""
        del self.rows[key]
        self.write("D", self.cursor(), {self.key: key}, {})


class MySql(Replicant):
    """A table of MySQL, told from binlog files: numbers of files count, not their names as text."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.file, self.position, self.millis = 999999, 7461, 1657516903000

    def cursor(self) -> dict:
        """Return the cursor of the next change."""
        self.position += 723
        self.millis += 1000
        cursor = {"extractorId": 0, "timestamp": self.millis, "extractionTimestamp": self.millis + 1088}
        log = {"log": f"log-bin.{self.file:06}", "position": self.position, "logSeqNum": 1, "slaveServerId": 1, "v": 2}
        return {**cursor, **log}

    def next_file(self) -> None:
        """Start another binlog file."""
        self.file, self.position = self.file + 1, 4

    def insert(self, row: dict) -> None:
        """Insert a row."""
        self.rows[row[self.key]] = row
        self.write("I", self.cursor(), {}, row)

    def update(self, key, **columns) -> None:
        """Set columns of a row, the key too."""
        before = self.rows.pop(key)
        after = {**before, **columns}
        self.rows[after[self.key]] = after
        self.write("U", self.cursor(), before, after)

    def update_in_part(self, key, **columns) -> None:
        """Set columns of a row, told by the key and the columns that were set."""
        self.rows[key].update(columns)
        self.write("U", self.cursor(), {self.key: key}, columns)

    def delete(self, key, *, in_part: bool = False) -> None:
        """Delete a row, told whole or by its key."""
        before = self.rows.pop(key)
        self.write("D", self.cursor(), {self.key: key} if in_part else before, {})


def document(change: dict) -> dict:
    """Return a change as JSON has it: every value is text, NULL too; cursor and counts are JSON inside text."""

    def texts(image):
        return {name: "null" if value is None else str(value) for name, value in image.items()}

    def packed(value):
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))

    images = {name: texts(change[name]) for name in ("before", "after", "exists")}
    return change | images | {name: packed(change[name]) for name in ("cursor", "operationcount")}


def lines(changes: list[dict]) -> str:
    """Return one document a line."""
    return "".join(json.dumps(document(change), ensure_ascii=False) + "\n" for change in changes)


def pretty(changes: list[dict]) -> str:
    """Return documents over many lines, with empty lines between some."""
    return "\n\n".join(json.dumps(document(change), ensure_ascii=False, indent=2) for change in changes) + "\n"


def regions() -> Cassandra:
    """Play REGION."""
    namespace = {"catalog": None, "schema": "io_blitzz", "hash": 696406511}
    region = Cassandra("region", namespace, "r_regionkey", ["r_comment", "r_name", "r_regionkey"])
    for key, name in enumerate(REGIONS):
        region.insert(key, r_comment=f"final packages {key}", r_name=name)
    region.insert(10, r_comment="India", r_name="India")
    region.update(10, r_comment="USA")
    region.insert(5, r_name="OCEANIA")  # nothing is said about the comment
    region.update(3, r_comment='say "ho", ⏎\nand a backslash \\')
    region.update(4, r_comment=None)
    region.next_log()
    region.delete(10)
    region.update(0, r_name="Africa")
    region.update(0, r_comment="two updates, a column each")
    region.delete(1)
    region.insert(1, r_comment=None, r_name="AMERICAS")
    region.update(10, r_comment="UK")  # the row is back, without its name
    # the other node's commit log has the last update of ASIA too, at another place
    region.update(2, r_comment="told by two nodes")
    other = region.changes[-1]
    region.changes.append({**other, "cursor": {**other["cursor"], "nodeID": "node2", "dscId": 7, "mutId": 5}})
    return region


def nations() -> MySql:
    """Play NATION."""
    namespace = {"catalog": "tpch_scale_0_01", "schema": "default_schema", "hash": -27122659}
    columns = ["n_comment", "n_name", "n_nationkey", "n_regionkey"]
    nation = MySql("nation", namespace, "n_nationkey", columns)
    for key, (name, region) in enumerate(NATIONS):
        comment = None if key % 6 == 0 else f"{{ carefully: final {key} }}"
        nation.insert({"n_comment": comment, "n_name": name, "n_nationkey": key, "n_regionkey": region})
        if key == 12:
            nation.next_file()  # from 999999 to 1000000
    nation.insert({"n_comment": "Testing comment", "n_name": "Testing name", "n_nationkey": 100, "n_regionkey": 2})
    nation.update(100, n_name="Updating test name")
    nation.delete(100)
    nation.update(22, n_nationkey=122, n_comment="under another key")
    nation.update(6, n_comment="")
    nation.update(7, n_comment="before", n_regionkey=None)
    nation.update(7, n_comment="Straße, naïve, 日本", n_regionkey=3)
    nation.delete(21)
    nation.insert({"n_comment": None, "n_name": "VIETNAM", "n_nationkey": 21, "n_regionkey": 2})
    return nation


def suppliers() -> tuple[list[dict], MySql]:
    """Play SUPPLIER; return the rows at the start too."""
    columns = ["s_acctbal", "s_comment", "s_name", "s_nationkey", "s_suppkey"]
    namespace = {"catalog": "tpch_scale_0_01", "schema": "default_schema", "hash": -27122659}
    supplier = MySql("suppliers", namespace, "s_suppkey", columns)
    comments = [" kept blanks ", "NULL", None, "null", 'say "hi", ok', "two\nlines", "\\N", "", "ends with \\", "ёж 🦔"]
    for key in range(1, 25):
        row = [f"{key * 3331 % 9000 - 999}.{key % 100:02}", comments[key % 10], f"Supplier#{key:09}", key % 25, key]
        supplier.rows[key] = dict(zip(columns, row, strict=True))
    start = [dict(row) for row in supplier.rows.values()]
    supplier.insert(supplier.rows[24])  # the snapshot has this row already
    for key in range(1, 8):
        supplier.update_in_part(key, s_acctbal=f"{key}000.00")
    supplier.update_in_part(8, s_comment=None)
    supplier.update_in_part(9, s_comment='NULL, and "NULL"', s_nationkey=None)
    supplier.delete(10, in_part=True)
    supplier.delete(11)
    supplier.update(12, s_suppkey=112)
    supplier.next_file()
    supplier.update_in_part(1, s_name="Supplier#1, renamed")
    supplier.update_in_part(1, s_acctbal="-0.01")
    supplier.insert(dict(zip(columns, ["0.00", "line\r\nend", "new", 3, 10], strict=True)))
    supplier.update_in_part(10, s_comment="and changed at once")
    for key in range(13, 18):
        supplier.delete(key, in_part=True)
    return start, supplier


def triplets(changes: list[dict]) -> str:
    """Return changes in CSV: NEW, OLD and EXISTS of each column, the operation, the cursor and the counts."""
    records = []
    for change in changes:
        cells = []
        for name, exists in change["exists"].items():
            cells += [change["after"][name], change["before"][name], exists]
        packed = [json.dumps(change[name], separators=(",", ":")) for name in ("cursor", "operationcount")]
        records.append(",".join(map(cell, [*cells, change["opType"], *packed])) + "\n")
    return "".join(records)


def deliver_all() -> None:
    """Deliver the tables, a heartbeat that nobody declared, and the exports."""
    region, nation = regions(), nations()
    heartbeat = {**nation.changes[0], "tableName": {**nation.table_name, "name": "replicate_io_heartbeat"}}
    without_cursor = {**region.changes[6], "cursor": "", "after": {"r_comment": "nobody knows when"}}
    early, late = region.changes[:8], region.changes[8:]
    # line ends got into names of the cursor
    mangled = pretty(early).replace("extractionTimestamp", "extraction Timestamp").replace("partNum", "partNu m")
    deliver_file("arcion_tpch/tpch_1.json", mangled + pretty(nation.changes[:6]))
    # files are read in any order: the later half of the changes has the lower numbers
    mixed = [change for pair in zip(late, nation.changes[20:], strict=False) for change in pair]
    rest = nation.changes[20 + len(late) :]
    deliver_file("arcion_tpch/tpch_2.json", lines([heartbeat, *reversed(mixed), without_cursor]))
    deliver_file("arcion_tpch/tpch_3.json", pretty(rest) + lines(nation.changes[6:20]) + "\n" + pretty([heartbeat]))
    region.export("exports_tpch", f"{region.millis} {region.log} {region.mutation}", region.millis)
    nation.export("exports_tpch", f"log-bin.{nation.file:06} {nation.position}", nation.millis)

    start, supplier = suppliers()
    snapshot = "".join(",".join(map(cell, row.values())) + "\n" for row in start)
    deliver_file("arcion_files/suppliers/suppliers_snapshot.csv", snapshot)
    deliver_file("arcion_files/suppliers/suppliers_1.csv", triplets(supplier.changes[:14]))
    deliver_file("arcion_files/suppliers/suppliers_2.csv.gz", triplets(supplier.changes[14:]))
    supplier.export("exports_files", f"log-bin.{supplier.file:06} {supplier.position}", supplier.millis)
