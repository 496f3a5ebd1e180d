"""How each producer writes the changes of a table into files. Nothing here shares code with the project.

A history is a list of transactions, a transaction a list of statements, a statement a list of row changes. A producer
makes units of them: the records of one position, which stay in one file in the order of the source.
"""

import base64
import io
import json
import random
import re
from dataclasses import dataclass
from decimal import Decimal

import fastavro
import pyarrow
import pyarrow.parquet
from connect_files import avro_file, parquet_file, struct_of_connect

LONG_AGO = 1620787053900  # milliseconds


@dataclass(frozen=True)
class RowChange:
    """What a statement does to one row: `old` is (key, values) before it, `new` after it; None: no row."""

    old: tuple | None
    new: tuple | None

    @property
    def kind(self) -> str:
        if self.old is None or self.new is None:
            return "insert" if self.old is None else "delete"
        return "update" if self.old[0] == self.new[0] else "move"


@dataclass(frozen=True)
class Step:
    """A record to be: `leave` and `enter` are the halves of an update or of a key change that is written as two."""

    kind: str  # insert, update, delete, move, leave, enter
    change: RowChange

    @property
    def is_delete(self) -> bool:
        return self.kind in ("delete", "leave")

    @property
    def row(self) -> tuple:
        return self.change.old if self.is_delete else self.change.new


def in_two(statement: list[RowChange]) -> list[Step]:
    """All old rows go, then all new ones come."""
    return [Step("leave", change) for change in statement] + [Step("enter", change) for change in statement]


def in_turn(picks: random.Random, statement: list[RowChange]) -> list[Step]:
    """Row by row, the old one and the new one, in an order in which no row meets another one's key."""
    left = list(statement)
    steps = []
    while left:
        free = [change for change in left if change.new[0] not in {other.old[0] for other in left if other != change}]
        if not free:  # a swap has no such order
            return in_two(statement)
        change = picks.choice(free)
        left.remove(change)
        steps += [Step("leave", change), Step("enter", change)]
    return steps


def number_of_json(number: Decimal) -> str:
    """A marker for a JSON number; `json_text` takes it out of its quotes."""
    return f"@number {number}@"


def json_text(picks: random.Random, document, indented=False) -> bytes:
    text = json.dumps(document, ensure_ascii=picks.random() < 0.5, indent=2 if indented else None)
    return re.sub(r'"@number (\S+?)@"', r"\1", text).encode()


class Producer:
    """What one producer writes, with one setting of its own.

    Attributes:
        name: of the producer and its setting. format, settings: what its feed declares. columns: of its files, beside
            the table's. suffix: of its files. moves: whether a key change may be one record with the old key in it.
        is_partial: whether records may carry some columns only.
    """

    settings: dict = {}
    columns: tuple = ()
    suffix = "json"
    moves = False
    is_partial = False

    def __init__(self, name: str, format: str, **settings):
        self.name, self.format, self.settings = name, format, {**self.settings, **settings}

    def held(self, text):
        """What a text is in this producer's files, where they cannot hold every text."""
        return text

    def steps(self, picks: random.Random, statement: list[RowChange]) -> list[Step]:
        """The records of one statement, in order."""
        kind = statement[0].kind
        if kind != "move":
            return [Step(kind, change) for change in statement]
        if self.moves and picks.random() < 0.5:
            return [Step("move", change) for change in picks.sample(statement, len(statement))]
        return in_turn(picks, statement) if picks.random() < 0.5 else in_two(statement)

    def positions(self, picks: random.Random, transaction: list[list[RowChange]]) -> list[list[Step]]:
        """The records of each position. At one position they are only what the format tells apart by their place."""
        found, group, said, mentioned = [], [], set(), set()
        for statement in transaction:
            steps = self.steps(picks, statement)
            saying = [saying for step in steps for saying in self._sayings(step)]
            # the same change a second time is a copy, and a key that is left was there before the position
            if group and (
                picks.random() < 0.4
                or said.intersection(saying)
                or any(step.change.old[0] in mentioned for step in steps if step.kind == "move")
            ):
                found.append(group)
                group, said, mentioned = [], set(), set()
            group = group + steps
            said.update(saying)
            mentioned.update(key for step in steps for key, _ in filter(None, (step.change.old, step.change.new)))
        return [*found, group]

    def _sayings(self, step: Step):
        key, values = step.row
        if step.is_delete:
            yield "gone", key
        else:
            yield "there", key, values
            yield "changed", key, frozenset(changed(step.change).items())

    def units(self, picks: random.Random, history: list, base: int) -> list[list]:
        """The units of a history, in the order of the source; `base` is where its positions begin."""
        found, position = [], base
        for transaction in history:
            for steps in self.positions(picks, transaction):
                position += 1
                found.append([self.record(picks, step, position, place) for place, step in enumerate(steps)])
        return found

    def record(self, picks: random.Random, step: Step, position: int, place: int):
        raise NotImplementedError

    def file(self, records: list) -> bytes:
        return b"".join(record + b"\n" for record in records)

    def file_name(self, number: int) -> str:
        return f"part-{number:05}.{self.suffix}"


NAMES = ("history", "k", "v", "n")


def changed(change: RowChange) -> dict:
    """The values that a change sets, by name."""
    new = dict(zip(NAMES[2:], change.new[1], strict=True))
    if change.old is None or change.kind == "move":
        return new
    old = dict(zip(NAMES[2:], change.old[1], strict=True))
    return {name: value for name, value in new.items() if value != old[name]} or new


def named(row: tuple, *, key_only=False) -> dict:
    """A row's values by name; with `key_only` the others are NULL."""
    (history, key), values = row
    return dict(zip(NAMES, (history, key, *((None, None) if key_only else values)), strict=True))


def log_and_offset(position: int) -> tuple[int, int]:
    """A log file and an offset in it: logs get a digit more, and offsets start anew in each log."""
    log, offset = divmod(position, 7)
    return 999_990 + log, (4, 9, 10, 99, 100, 4_294_967_295, 4_294_967_296)[offset]


@dataclass(frozen=True)
class Delimited:
    """How a producer writes values: `quotes` are `all`, `some` (where they are needed, or by chance) or `none`."""

    delimiter: str = ","
    quotes: str = "all"
    escape: str = "doubled"
    null: str = "NULL"

    def value(self, picks: random.Random, value) -> str:
        if value is None:
            return self.null
        text = str(value)
        if self.quotes == "none":
            return text.replace("\\", "\\\\").replace(self.delimiter, "\\" + self.delimiter)
        plain = not re.search(f'["\\\\\r\n{re.escape(self.delimiter)}]', text) and text != self.null
        if self.quotes == "some" and plain and picks.random() < 0.7:
            return text
        if self.escape == "backslash":
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return '"' + text.replace('"', '""') + '"'

    def line(self, picks: random.Random, values: list) -> bytes:
        return self.delimiter.join(self.value(picks, value) for value in values).encode()


TUNGSTEN = {
    "mysql": (Delimited(escape="backslash", null=r"\N"), ""),
    "oracle": (Delimited(escape="backslash", null=r"\N"), ""),
    "vertica": (Delimited(escape="backslash", null="null"), "\n"),
    "redshift": (Delimited(null="null"), "\n"),
    "hive": (Delimited(delimiter="\x01", quotes="none", escape="backslash", null=r"\N"), "\r\n"),
}


class Tungsten(Producer):
    """One seqno for a transaction; an update is a delete and an insert, unless it is written with an opcode."""

    suffix = "csv"

    def __init__(self, dialect: str):
        super().__init__(f"tungsten_{dialect}", "tungsten-csv", dialect=dialect)
        self.dialect, self.dropped = TUNGSTEN[dialect]

    def held(self, text):
        return text if text is None else re.sub(f"[{self.dropped}]", "", text) if self.dropped else text

    def steps(self, picks, statement):
        if statement[0].kind == "update" and picks.random() < 0.5:
            return [Step("update", change) for change in statement]
        return in_two(statement) if statement[0].kind in ("update", "move") else super().steps(picks, statement)

    def positions(self, picks, transaction):
        return [[step for statement in transaction for step in self.steps(picks, statement)]]

    def record(self, picks, step, position, place):
        opcodes = {"insert": ["I"], "update": ["U"], "delete": ["D"], "leave": ["D", "UD"], "enter": ["I", "UI"]}
        row = named(step.row, key_only=step.is_delete and picks.random() < 0.8)
        seqno = (35, 4_294_967_290, 999_999_999_999_999_990)[position // 10_000] + position % 10_000
        before = [picks.choice(opcodes[step.kind]), seqno]
        after = [
            "2016-03-11 20:51:10.000",
            *(value if name == "history" else self.text(value) for name, value in row.items()),
        ]
        return before, after

    def text(self, value):
        return self.held(value) if isinstance(value, str) else value

    def file(self, records):
        picks = random.Random(0)
        return b"".join(
            self.dialect.line(picks, [*before, number, *after]) + b"\n"
            for number, (before, after) in enumerate(records, 1)
        )


class Arcion(Producer):
    """What both forms of Arcion's change records have."""

    moves = is_partial = True

    def images(self, picks, step) -> tuple[dict, dict, dict]:
        """Before, after, and where each column is: 1 after, 2 before, 3 in both, 0 in neither."""
        change, nothing = step.change, dict.fromkeys(NAMES, 0)
        if step.is_delete:
            before = named(change.old, key_only=picks.random() < 0.5)
            there = {"history": 2, "k": 2} if before["v"] is None and before["n"] is None else dict.fromkeys(NAMES, 2)
            return before, {}, nothing | there
        after = named(change.new)
        if step.kind in ("insert", "enter"):
            return {}, after, dict.fromkeys(NAMES, 1)
        if step.kind == "move" or picks.random() < 0.4:
            return named(change.old), after, dict.fromkeys(NAMES, 3)
        set_to = changed(change)
        return named(change.old, key_only=True), set_to, nothing | {"history": 2, "k": 2} | dict.fromkeys(set_to, 1)

    def operation(self, picks, step):
        letter = "D" if step.is_delete else "I" if step.kind in ("insert", "enter") else "U"
        return picks.choice([letter, letter.lower()])


class ArcionJson(Arcion):
    """Values are texts, and `null` is one of them; the cursor is that of log files."""

    def __init__(self):
        super().__init__("arcion_json", "arcion-json")

    def held(self, text):
        return "nil" if text == "null" else text

    def record(self, picks, step, position, place):
        log, offset = log_and_offset(position)
        before, after, exists = self.images(picks, step)

        def image(values):
            texts = {name: values.get(name) for name in NAMES}
            return {name: "null" if value is None else self.held(str(value)) for name, value in texts.items()}

        cursor = {"extractorId": 0, "timestamp": LONG_AGO, "log": f"log-bin.{log:06}", "position": offset, "v": 2}
        document = {
            "tableName": {"namespace": {"catalog": "shop", "schema": "default_schema"}, "name": "every"},
            "opType": self.operation(picks, step),
            "cursor": json.dumps(cursor),
            "before": image(before),
            "after": image(after),
            "exists": {name: str(place) for name, place in exists.items()},
            "operationcount": "{}",
        }
        return json_text(picks, document, indented=picks.random() < 0.3)


class ArcionCsv(Arcion):
    """New value, old value and where it is for each column; the cursor is that of commit logs."""

    suffix = "csv"
    dialect = Delimited(quotes="some")

    def __init__(self):
        super().__init__("arcion_csv", "arcion-csv")

    def record(self, picks, step, position, place):
        before, after, exists = self.images(picks, step)
        mutation = (9, 10, 1048408)[position % 3]
        cursor = {
            "extractorId": 0,
            "nodeID": "node1",
            "timestamp": LONG_AGO + position // 3,
            "dscId": 7,
            "mutId": mutation,
        }
        values = [value for name in NAMES for value in (after.get(name), before.get(name), exists[name])]
        return self.dialect.line(picks, [*values, self.operation(picks, step), json.dumps(cursor), '{"insertCount":6}'])


class Datastream(Producer):
    """What the forms of Datastream's records have."""

    def operation(self, picks, step):
        word = {
            "insert": "INSERT",
            "update": picks.choice(["UPDATE-INSERT", "UPDATE"]),
            "delete": "DELETE",
            "leave": "UPDATE-DELETE",
            "enter": "UPDATE-INSERT",
        }[step.kind]
        return picks.choice([word, word, word.lower()])

    def row(self, step, number=str) -> dict:
        row = named(step.row)
        return row | {"n": None if row["n"] is None else number(row["n"])}


class DatastreamAppend(Datastream):
    """Append mode: sequences of hex sections. Nothing tells ties apart, so every record has a section of its own."""

    def __init__(self):
        super().__init__("datastream", "datastream-json")

    def record(self, picks, step, position, place):
        sections = (*log_and_offset(position), place)
        sequence = "/".join(picks.choice([f"{section:x}", f"{section:016X}"]) for section in sections)
        metadata = {
            "uuid": "u",
            "source_timestamp": LONG_AGO,
            "change_sequence_number": sequence,
            "change_type": self.operation(picks, step),
            "sort_keys": [],
        }
        row = self.row(step, picks.choice([str, number_of_json]))
        return json_text(picks, {**row, "datastream_metadata": metadata})


class DatastreamFiles(Datastream):
    """Files in Cloud Storage: the order of MySQL's sort keys."""

    settings = {"order": "mysql_sort_keys"}

    def event(self, picks, step, position) -> dict:
        log, offset = log_and_offset(position)
        return {
            "uuid": "u",
            "read_timestamp": "2021-12-25T05:42:04.408",
            "source_timestamp": "2021-12-25T05:42:04.408",
            "object": "shop_every",
            "read_method": "mysql-cdc-binlog",
            "stream_name": "projects/1/streams/s",
            "sort_keys": [LONG_AGO, f"mysql-bin.{log:06}", offset],
            "source_metadata": {"table": "every", "database": "shop", "change_type": self.operation(picks, step)},
        }

    def record(self, picks, step, position, place):
        row = self.row(step, picks.choice([str, number_of_json]))
        return json_text(picks, self.event(picks, step, position) | {"payload": row})


class DatastreamAvro(DatastreamFiles):
    """The same as Avro, decimals as bytes."""

    suffix = "avro"

    def record(self, picks, step, position, place):
        times = {"read_timestamp": LONG_AGO, "source_timestamp": LONG_AGO}
        return self.event(picks, step, position) | times | {"payload": self.row(step, lambda number: number)}

    def file(self, records, payload=None):
        millis = {"type": "long", "logicalType": "timestamp-millis"}
        payload = payload or {
            "history": "int",
            "k": "string",
            "v": ["null", "string"],
            "n": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4}],
        }

        def record(name, **kinds):
            return {"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in kinds.items()]}

        schema = record(
            "event",
            uuid="string",
            read_timestamp=millis,
            source_timestamp=millis,
            object="string",
            read_method="string",
            stream_name="string",
            sort_keys={"type": "array", "items": ["string", "long"]},
            source_metadata=record("source", table="string", database="string", change_type="string"),
            payload=["null", record("row", **payload)],
        )
        file = io.BytesIO()
        fastavro.writer(file, fastavro.parse_schema(schema), records)
        return file.getvalue()


def unscaled(number: Decimal, scale: int = 4) -> str:
    """A decimal as Debezium writes it: base64 of the bytes of its unscaled value."""
    whole = int(number.scaleb(scale))
    return base64.b64encode(whole.to_bytes((whole + (whole < 0)).bit_length() // 8 + 1, "big", signed=True)).decode()


UNAVAILABLE = "__debezium_unavailable_value"


class Debezium(Producer):
    """The envelope of the MySQL connector, with or without its schema; decimals are bytes."""

    settings = {"connector": "mysql"}
    moves = is_partial = True

    def image(self, picks, row, change, number) -> dict:
        values = named(row)
        if values["n"] is not None:
            values["n"] = number(values["n"])
        if change.kind == "update" and row == change.new and picks.random() < 0.3:  # what the connector did not have
            values |= {name: UNAVAILABLE for name in {"v", "n"} - changed(change).keys()}
        return values

    def operation(self, step):
        return {"insert": "c", "enter": "c", "update": "u", "move": "u", "delete": "d", "leave": "d"}[step.kind]

    def source(self, position) -> dict:
        log, offset = log_and_offset(position)
        return {"ts_ms": LONG_AGO, "server_id": 1, "file": f"mysql-bin.{log:06}", "pos": offset, "row": 0}

    def envelope(self, picks, step, position) -> dict:
        change, operation = step.change, self.operation(step)
        before = None
        if operation == "d" or step.kind == "move" or (operation == "u" and picks.random() < 0.5):
            before = self.image(picks, change.old, change, unscaled)
            if picks.random() < 0.5:
                before |= {"v": None, "n": None}
        return {
            "before": before,
            "after": None if operation == "d" else self.image(picks, change.new, change, unscaled),
            "source": {
                "connector": "mysql",
                "name": "shop",
                "snapshot": "false",
                "table": "every",
                **self.source(position),
            },
            "op": operation,
            "ts_ms": LONG_AGO,
        }

    def record(self, picks, step, position, place):
        envelope = self.envelope(picks, step, position)
        document = json_text(picks, picks.choice([envelope, {"schema": {"type": "struct"}, "payload": envelope}]))
        return document + b"\nnull" if envelope["op"] == "d" and picks.random() < 0.5 else document  # a tombstone


class DebeziumInFiles(Debezium):
    """The envelope as sinks of Kafka Connect write it into Avro and Parquet."""

    ROW = struct_of_connect(
        history="int32", k="string", v="string", n=("bytes", "org.apache.kafka.connect.data.Decimal", {"scale": "4"})
    )
    SOURCE = struct_of_connect(
        connector="string", name="string", snapshot="string", table="string", ts_ms="int64", server_id="int64",
        file="string", pos="int64", row="int32",
    )  # fmt: skip
    SCHEMA = struct_of_connect(before=ROW, after=ROW, source=SOURCE, op="string", ts_ms="int64")

    def __init__(self, name, format, file_of_connect):
        super().__init__(name, format)
        self.suffix, self.file_of_connect = format.rpartition("-")[2], file_of_connect

    def image(self, picks, row, change, number):
        values = super().image(picks, row, change, number)
        word = base64.b64encode(UNAVAILABLE.encode()).decode()
        return {name: word if (name, value) == ("n", UNAVAILABLE) else value for name, value in values.items()}

    def record(self, picks, step, position, place):
        return self.envelope(picks, step, position)

    def file(self, records):
        return self.file_of_connect(self.SCHEMA, records)


class DebeziumFlattened(Debezium):
    """Records of ExtractNewRecordState; decimals are texts."""

    settings = {"connector": "mysql", "form": "flattened", "decimals": "string"}
    moves = False

    def record(self, picks, step, position, place):
        operation = self.operation(step)
        document = self.image(picks, step.row, step.change, str)
        document |= {f"__{name}": value for name, value in self.source(position).items()}
        document |= {"__op": operation, "__deleted": "true" if operation == "d" else "false"}
        return json_text(picks, document)


class Dms(Producer):
    """The old key beside the row. In CSV a column of the task is the order."""

    suffix = "csv"
    moves = True
    settings = {"sequence_column": "AR_H_CHANGE_SEQ", "timestamp_column": "ts"}
    columns = ("ts", "AR_H_CHANGE_SEQ", "BI_history", "BI_k")
    dialect = Delimited(quotes="some")

    def values(self, picks, step) -> list:
        """Operation, old key and row."""
        operation = "D" if step.is_delete else "I" if step.kind in ("insert", "enter") else "U"
        before = (None, None)
        if step.kind == "move" or (step.kind == "update" and picks.random() < 0.5):
            before = step.change.old[0]
        return [operation, *before, *named(step.row, key_only=step.is_delete and picks.random() < 0.5).values()]

    def record(self, picks, step, position, place):
        operation, *values = self.values(picks, step)
        times = ["2026-03-02 09:15:30.000000", f"2026030209153000{position:019}"]
        return self.dialect.line(picks, [operation, *times, *values])


class DmsByFile(Dms):
    """In Parquet: the time in the name of the file and the place in it are the order."""

    suffix = "parquet"
    settings = {}
    columns = ()

    def record(self, picks, step, position, place):
        return self.values(picks, step)

    def positions(self, picks, transaction):
        # every record has a position of its own
        return [[step] for statement in transaction for step in self.safe(picks, statement)]

    def safe(self, picks, statement):
        if statement[0].kind != "move":
            return self.steps(picks, statement)
        steps = in_turn(picks, statement)
        if self.moves and picks.random() < 0.5 and steps[1::2] == [Step("enter", step.change) for step in steps[::2]]:
            return [Step("move", step.change) for step in steps[::2]]
        return steps

    def file(self, records):
        kinds = [pyarrow.string(), pyarrow.int32(), pyarrow.string(), pyarrow.int32(), *[pyarrow.string()] * 2]
        kinds.append(pyarrow.decimal128(20, 4))
        columns = zip(*records, strict=True) if records else [[]] * 7
        names = ["Op", "BI_history", "BI_k", *NAMES]
        arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        file = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(arrays, names), file)
        return file.getvalue()

    def file_name(self, number):
        return f"20260302-{91530000 + number:09}.parquet"


PRODUCERS = [
    *map(Tungsten, TUNGSTEN),
    DatastreamAppend(),
    DatastreamFiles("datastream_files", "datastream-gcs-json"),
    DatastreamAvro("datastream_avro", "datastream-avro"),
    Debezium("debezium", "debezium-json"),  # the first of its table: its declaration tells of truncates too
    DebeziumFlattened("debezium_flattened", "debezium-json"),
    DebeziumInFiles("debezium_avro", "debezium-avro", avro_file),
    DebeziumInFiles("debezium_parquet", "debezium-parquet", parquet_file),
    ArcionJson(),
    ArcionCsv(),
    Dms("dms_csv", "dms-csv"),
    DmsByFile("dms_parquet", "dms-parquet"),
]
