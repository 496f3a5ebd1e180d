"""The corpus of bad input: small valid files of known records, damaged in every way that comes to mind.

Nothing may crash, nothing may go uncounted, and no value may change in silence: what is accepted says what a strict
reader, which knows nothing of the project, finds in the very bytes of the record.
"""

import gzip
import io
import json
import os
import random
import re
from collections import Counter, defaultdict
from decimal import Decimal

import pyarrow
import pyarrow.parquet
import pytest
import strict
from connect_files import avro_file, parquet_file, struct_of_connect
from highwater.catalog.feeds import declared_feeds
from highwater.formats import readers, records
from highwater.formats.formats import FORMATS as FORMATS_OF_FEEDS
from producers import LONG_AGO, TUNGSTEN, DatastreamAvro, Delimited, log_and_offset, unscaled
from strict import Unfit
from workshop import in_soak_but

pytestmark = pytest.mark.long

FILES = 80  # of each format
COLUMNS = {
    "id": "int",
    "s": "string",
    "n": "decimal(20,4)",
    "d": "date",
    "t": "timestamp",
    "x": "double",
    "b": "boolean",
    "y": "binary",
}
TEXTS = [
    "",
    "plain",
    "null?",
    'say "hi"',
    "a,b",
    "back\\slash",
    "é漢😀",
    " x ",
    "'; drop table corpus; --",
    "{{ 1/0 }}",
]
FILE_NAMES = ["'; drop table x; --", "{{ 1/0 }}", "{% raw %}", "a%20b#c?", "漢 \\ ünï", '"quoted" $(id)']
OPERATIONS = ("insert", "update", "delete")


def random_row(picks: random.Random, number: int) -> dict:
    """A row as texts; what is not text is in its shortest form."""
    whole, rest = picks.randrange(-(10**15), 10**15), picks.randrange(10**4)
    row = {
        "id": str(number),
        "s": picks.choice(TEXTS),
        "n": picks.choice(["0.0001", f"{whole}.{rest:04}", f"{picks.randrange(1000)}.{rest:04}"]),
        "d": f"20{picks.randrange(10, 99)}-0{picks.randrange(1, 9)}-{picks.randrange(10, 28)}",
        "t": f"2024-02-29 12:{picks.randrange(10, 59)}:00.{picks.randrange(10**6):06}",
        "x": repr(picks.uniform(-(10**6), 10**6)),
        "b": picks.choice(["true", "false"]),
        "y": picks.randbytes(picks.randrange(1, 9)).hex(),
    }
    return {name: None if name != "id" and picks.random() < 0.1 else value for name, value in row.items()}


def base64_of(digits: str) -> str:
    import base64

    return base64.b64encode(bytes.fromhex(digits)).decode()


class Format:
    """How records of one format are written and strictly read.

    Attributes:
        name: of the feed's system. format, settings: what its feed declares. columns: of its files.
        encoding: of bytes. is_partial: records may carry some columns only.
    """

    suffix, encoding, dialect, is_partial, has_place, header = "json", "base64", None, False, True, None
    settings: dict = {}
    columns: tuple = ()

    def file(self, picks, rows: list[tuple]) -> bytes:
        """A file of (operation, position, row)."""
        return b"".join(self.line(picks, *row) + b"\n" for row in rows)

    def texts(self, row: dict) -> dict:
        if self.encoding == "hex" or row["y"] is None:
            return row
        return row | {"y": base64_of(row["y"])}

    def file_name(self, number: int, damage: str) -> str:
        return f"{number:04}-{damage}.{self.suffix}"

    def value(self, name: str, value):
        """The typed value of what a record has in a column."""
        if value is None:
            return None
        if name == "s":
            return strict.as_text(value) if not isinstance(value, dict | list | Decimal) else ("json", value)
        text = strict.as_text(value)
        if name == "y":
            return strict.bytes_of(text, self.encoding)
        return {
            "id": lambda text: strict.whole_number(text, 32),
            "n": strict.number,
            "d": strict.day,
            "t": strict.moment,
            "x": strict.double,
            "b": strict.boolean,
        }[name](text)


def digits(value) -> int:
    text = strict.as_text(value) if value is not None else ""
    if not re.fullmatch("[0-9]+", text):
        raise Unfit(text)
    return int(text)


def word(words: dict, value):
    if value not in words:
        raise Unfit(f"operation {value!r}")
    return words[value]


def part(document: dict, name: str) -> dict:
    value = document.get(name)
    if not isinstance(value, dict):
        raise Unfit(f"no {name}")
    return value


class Tungsten(Format):
    suffix, encoding = "csv", "hex"
    STAGE = ("opcode", "seqno", "row_id", "commit_timestamp")

    def __init__(self, dialect: str, header=False):
        self.name, self.format = f"tungsten_{dialect}", "tungsten-csv"
        self.settings = {"dialect": dialect} | ({"header": "true"} if header else {})
        self.dialect, self.header = TUNGSTEN[dialect][0], (*self.STAGE, *COLUMNS) if header else None

    def file(self, picks, rows):
        header = self.dialect.line(picks, list(self.header)) + b"\n" if self.header else b""
        return header + super().file(picks, rows)

    def line(self, picks, operation, position, row):
        return self.dialect.line(
            picks, [operation[0].upper(), position, 1, "2016-03-11 20:51:10.000", *self.texts(row).values()]
        )

    def read(self, record, header):
        names = header or [*self.STAGE, *COLUMNS]
        values = strict.values_of_line(record, self.dialect)
        # a delete needs its key and its order only, which come first
        is_delete = not header and str(values[0]).upper() in ("D", "UD") and len(values) > len(self.STAGE)
        if not is_delete and (len(values) != len(names) or {*self.STAGE, *COLUMNS} - set(names)):
            raise Unfit("columns")
        row = dict(zip(names, values, strict=not is_delete))
        words = {"I": "insert", "UI": "update", "U": "update", "D": "delete", "UD": "delete"}
        digits(row["row_id"])
        return word(words, str(row["opcode"]).upper()), row, (digits(row["seqno"]),)


class Arcion(Format):
    is_partial = True
    WORDS = {"I": "insert", "U": "update", "D": "delete"}

    def cursor(self, position):
        log, offset = log_and_offset(position)
        return json.dumps({"extractorId": 0, "timestamp": LONG_AGO, "log": f"log-bin.{log:06}", "position": offset})

    def sequence(self, text):
        # white space in a name of the cursor is a line end of the producer's own
        text = re.sub(r'"([A-Za-z]+)\s+([A-Za-z]+)"\s*:', r'"\1\2":', text or "", flags=re.ASCII)
        cursor = strict.json_document(text.encode())
        log = str(cursor.get("log")).split(".")[-1]
        return digits(log), digits(cursor.get("position")), digits(cursor.get("logSeqNum", 0))

    def image(self, operation, before, after, exists) -> dict:
        """The values that the record carries; the key is the new one where there is one."""
        if operation != "delete" and set(exists.values()) - {"0", "1", "2", "3"}:
            raise Unfit("exists")
        if exists.get("id") not in ("1", "2", "3") or (exists["id"] != "1" and "id" not in before):
            raise Unfit("key")
        row = {name: after[name] for name in COLUMNS if exists.get(name) in ("1", "3")}
        if operation == "delete" or "id" not in row:
            row["id"] = before["id"]
        return row


class ArcionJson(Arcion):
    name, format = "arcion_json", "arcion-json"

    def line(self, picks, operation, position, row):
        texts = {name: "null" if value is None else value for name, value in self.texts(row).items()}
        nothing = dict.fromkeys(COLUMNS, "null")
        document = {
            "tableName": {"namespace": {"catalog": "shop", "schema": "default_schema"}, "name": "corpus"},
            "opType": operation[0].upper(),
            "cursor": self.cursor(position),
            "before": nothing if operation == "insert" else texts,
            "after": nothing if operation == "delete" else texts,
            "exists": dict.fromkeys(COLUMNS, {"insert": "1", "update": "3", "delete": "2"}[operation]),
            "operationcount": "{}",
        }
        return json.dumps(document, indent=picks.choice([None, 1])).encode()

    def read(self, record, header):
        document = strict.json_document(record)
        operation = word(self.WORDS, str(document.get("opType")).upper())
        try:
            before = part(document, "before") if "before" in document else {}
            row = self.image(operation, before, part(document, "after"), part(document, "exists"))
        except KeyError as error:
            raise Unfit("image") from error
        row = {name: None if value == "null" else value for name, value in row.items()}
        return operation, row, self.sequence(document.get("cursor"))


class ArcionCsv(Arcion):
    name, format, suffix, dialect = "arcion_csv", "arcion-csv", "csv", Delimited(quotes="some")

    def line(self, picks, operation, position, row):
        place = {"insert": 1, "update": 3, "delete": 2}[operation]
        values = []
        for value in self.texts(row).values():
            values += [None if place == 2 else value, None if place == 1 else value, place]
        return self.dialect.line(picks, [*values, operation[0].upper(), self.cursor(position), '{"insertCount":6}'])

    def read(self, record, header):
        values = strict.values_of_line(record, self.dialect)
        if len(values) == len(COLUMNS):
            return "insert", dict(zip(COLUMNS, values, strict=True)), None
        if len(values) != 3 * len(COLUMNS) + 3:
            raise Unfit("columns")
        after, before, exists = (
            dict(zip(COLUMNS, values[start : 3 * len(COLUMNS) : 3], strict=True)) for start in range(3)
        )
        operation = word(self.WORDS, str(values[-3]).upper())
        return operation, self.image(operation, before, after, exists), self.sequence(values[-2])


class Datastream(Format):
    WORDS = {
        "INSERT": "insert",
        "UPDATE": "update",
        "UPDATE-INSERT": "update",
        "DELETE": "delete",
        "UPDATE-DELETE": "delete",
    }


class DatastreamAppend(Datastream):
    name, format, has_place = "datastream", "datastream-json", False

    def line(self, picks, operation, position, row):
        metadata = {
            "uuid": "u",
            "source_timestamp": LONG_AGO,
            "change_sequence_number": f"{position:x}/0A",
            "change_type": operation.upper(),
            "sort_keys": [],
        }
        return json.dumps({**json_row(picks, self.texts(row)), "datastream_metadata": metadata}).encode()

    def read(self, record, header):
        document = strict.json_document(record)
        metadata = part(document, "datastream_metadata")
        sections = str(metadata.get("change_sequence_number")).split("/")
        if len(sections) > 4 or not all(re.fullmatch("[0-9A-Fa-f]+", section) for section in sections):
            raise Unfit("sequence")
        sequence = [int(section, 16) for section in sections] + [0] * (4 - len(sections))
        return word(self.WORDS, str(metadata.get("change_type")).upper()), document, tuple(sequence)


def json_row(picks, texts: dict) -> dict:
    """A row as a JSON writer has it: numbers and booleans by chance as such."""
    return texts | {
        "id": picks.choice([texts["id"], int(texts["id"])]),
        "x": None if texts["x"] is None else picks.choice([texts["x"], float(texts["x"])]),
        "b": None if texts["b"] is None else picks.choice([texts["b"], texts["b"] == "true"]),
    }


class DatastreamJsonFiles(Datastream):
    name, format, encoding, settings = "datastream_files", "datastream-gcs-json", "hex", {"order": "mysql_sort_keys"}

    def event(self, operation, position):
        log, offset = log_and_offset(position)
        return {
            "uuid": "u",
            "read_timestamp": "2021-12-25T05:42:04.408",
            "source_timestamp": "2021-12-25T05:42:04.408",
            "object": "shop_corpus",
            "read_method": "mysql-cdc-binlog",
            "stream_name": "projects/1/streams/s",
            "sort_keys": [LONG_AGO, f"mysql-bin.{log:06}", offset],
            "source_metadata": {"table": "corpus", "database": "shop", "change_type": operation.upper()},
        }

    def line(self, picks, operation, position, row):
        return json.dumps(self.event(operation, position) | {"payload": json_row(picks, self.texts(row))}).encode()

    def read(self, record, header):
        document = strict.json_document(record)
        keys = document.get("sort_keys")
        if not isinstance(keys, list) or len(keys) < 3:
            raise Unfit("sequence")
        operation = word(self.WORDS, str(part(document, "source_metadata").get("change_type")).upper())
        if "backfill" in str(document.get("read_method")):
            return "insert", part(document, "payload"), None
        return operation, part(document, "payload"), (digits(str(keys[1]).split(".")[-1]), digits(keys[2]))


class DatastreamAvroFiles(DatastreamJsonFiles):
    name, format, encoding, suffix = "datastream_avro", "datastream-avro", "base64", "avro"
    KINDS = {
        "id": "int",
        "s": "string",
        "n": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
        "d": {"type": "int", "logicalType": "date"},
        "t": {"type": "long", "logicalType": "timestamp-micros"},
        "x": "double",
        "b": "boolean",
        "y": "bytes",
    }

    def file(self, picks, rows):
        written = [
            self.event(operation, position)
            | {"read_timestamp": LONG_AGO, "source_timestamp": LONG_AGO, "payload": typed(row)}
            for operation, position, row in rows
        ]
        writer = DatastreamAvro(self.name, self.format)
        return writer.file(written, {name: ["null", kind] for name, kind in self.KINDS.items()})


def typed(row: dict) -> dict:
    """A row of Python values."""
    from datetime import date, datetime, timezone

    kinds = {
        "id": int,
        "s": str,
        "n": Decimal,
        "d": date.fromisoformat,
        "t": lambda text: datetime.fromisoformat(text).replace(tzinfo=timezone.utc),
        "x": float,
        "b": "true".__eq__,
        "y": bytes.fromhex,
    }
    return {name: None if value is None else kinds[name](value) for name, value in row.items()}


class Debezium(Format):
    name, format, is_partial = "debezium", "debezium-json", True
    settings = {"connector": "mysql", "decimals": "precise", "binary": "base64", "times": "microseconds"}
    WORDS = {"c": "insert", "u": "update", "d": "delete", "r": "insert"}

    def image(self, row):
        values = typed(row)
        day, moment = values["d"], values["t"]
        return json_row(random.Random(row["id"]), self.texts(row)) | {
            "n": None if row["n"] is None else unscaled(values["n"]),
            "d": None if day is None else day.toordinal() - 719163,
            "t": None if moment is None else (moment - strict.EPOCH) // strict.timedelta(microseconds=1),
        }

    def source(self, position):
        log, offset = log_and_offset(position)
        return {"ts_ms": LONG_AGO, "server_id": 1, "file": f"mysql-bin.{log:06}", "pos": offset, "row": 3}

    def line(self, picks, operation, position, row):
        image = self.image(row)
        envelope = {
            "before": None if operation == "insert" else image,
            "after": None if operation == "delete" else image,
            "source": {"connector": "mysql", "name": "shop", "table": "corpus", **self.source(position)},
            "op": {"insert": "c", "update": "u", "delete": "d"}[operation],
        }
        return json.dumps(picks.choice([envelope, {"payload": envelope}])).encode()

    def read(self, record, header):
        document = strict.json_document(record)
        if isinstance(document.get("payload"), dict):
            document = document["payload"]
        operation = word(self.WORDS, document.get("op"))
        row = part(document, "before" if operation == "delete" else "after")
        return operation, row, self.sequence(document.get("op"), part(document, "source"))

    def sequence(self, op, source):
        if op == "r":
            return None
        return digits(str(source.get("file")).split(".")[-1]), digits(source.get("pos"))

    def value(self, name, value):
        text = None if value is None else strict.as_text(value) if name in "ndt" else None
        if name == "n" and text is not None and re.fullmatch("[A-Za-z0-9+/]+=*", text) and len(text) % 4 == 0:
            whole = bytes.fromhex(strict.bytes_of(text, "base64"))
            return Decimal(int.from_bytes(whole, "big", signed=True)).scaleb(-4)
        if name == "d" and text is not None and re.fullmatch("-?[0-9]+", text):
            return strict.day_number(text)
        if name == "t" and text is not None and re.fullmatch("-?[0-9]+", text):
            return strict.microseconds(text)
        return super().value(name, value)


class DebeziumFlattened(Debezium):
    name = "debezium_flattened"
    settings = {**Debezium.settings, "form": "flattened", "decimals": "string"}

    def line(self, picks, operation, position, row):
        document = self.image(row) | {"n": row["n"]}
        document |= {f"__{name}": value for name, value in self.source(position).items()}
        document["__op"] = {"insert": "c", "update": "u", "delete": "d"}[operation]
        return json.dumps(document).encode()

    def read(self, record, header):
        document = strict.json_document(record)
        operation = word(self.WORDS, document.get("__op"))
        source = {name: document.get(f"__{name}") for name in ("file", "pos")}
        return operation, document, self.sequence(document["__op"], source)

    def value(self, name, value):
        return Format.value(self, name, value) if name == "n" else super().value(name, value)


class DebeziumInFiles(Debezium):
    SCHEMA = struct_of_connect(
        before=(ROW := struct_of_connect(
            id="int32", s="string", n=("bytes", "org.apache.kafka.connect.data.Decimal", {"scale": "4"}),
            d=("int32", "io.debezium.time.Date", None), t=("int64", "io.debezium.time.MicroTimestamp", None),
            x="double", b="boolean", y="bytes",
        )),
        after=ROW,
        source=struct_of_connect(
            connector="string", name="string", table="string", ts_ms="int64", server_id="int64", file="string",
            pos="int64", row="int32",
        ),
        op="string",
    )  # fmt: skip
    settings = {"connector": "mysql"}

    def __init__(self, format, file_of_connect):
        self.name, self.format, self.suffix = format.replace("-", "_"), format, format.rpartition("-")[2]
        self.file_of_connect = file_of_connect

    def image(self, row):
        values = typed(row)
        return super().image(row) | {name: values[name] for name in "xb"} | {"id": values["id"]}

    def file(self, picks, rows):
        documents = [json.loads(self.line(picks, *row)) for row in rows]
        return self.file_of_connect(self.SCHEMA, [document.get("payload", document) for document in documents])


class DmsCsv(Format):
    name, format, suffix, dialect = "dms_csv", "dms-csv", "csv", Delimited(quotes="some")
    settings = {"sequence_column": "AR_H_CHANGE_SEQ", "timestamp_column": "ts"}
    columns = ("ts", "AR_H_CHANGE_SEQ")
    WORDS = {"I": "insert", "U": "update", "D": "delete"}

    def line(self, picks, operation, position, row):
        times = ["2026-03-02 09:15:30.000000", f"2026030209153000{position:019}"]
        return self.dialect.line(picks, [operation[0].upper(), *times, *self.texts(row).values()])

    def read(self, record, header):
        values = strict.values_of_line(record, self.dialect)
        names = [*self.columns, *COLUMNS]
        # a delete needs its key and its order only, which come first
        is_delete = str(values[0]).upper() == "D" and len(values) > 1 + len(self.columns)
        if is_delete or len(values) == len(names) + 1:
            operation = word(self.WORDS, str(values.pop(0)).upper())
        elif len(values) != len(names) or values[0] in self.WORDS:
            raise Unfit("columns")
        else:
            operation = "insert"
        row = dict(zip(names, values, strict=not is_delete))
        if not re.fullmatch("[0-9]{35}", row["AR_H_CHANGE_SEQ"] or ""):
            raise Unfit("sequence")
        return operation, row, (int(row["AR_H_CHANGE_SEQ"][:16]), int(row["AR_H_CHANGE_SEQ"][16:]))


class DmsParquet(Format):
    name, format, suffix = "dms_parquet", "dms-parquet", "parquet"
    WORDS = {"I": "insert", "U": "update", "D": "delete"}
    KINDS = {
        "id": pyarrow.int32(),
        "s": pyarrow.string(),
        "n": pyarrow.decimal128(20, 4),
        "d": pyarrow.date32(),
        "t": pyarrow.timestamp("us"),
        "x": pyarrow.float64(),
        "b": pyarrow.bool_(),
        "y": pyarrow.binary(),
    }

    def file(self, picks, rows):
        values = [typed(row) for _, _, row in rows]
        columns = {"Op": pyarrow.array([operation[0].upper() for operation, _, _ in rows], pyarrow.string())}
        for name, kind in self.KINDS.items():
            moments = [value[name] for value in values]
            if name == "t":
                moments = [None if moment is None else moment.replace(tzinfo=None) for moment in moments]
            columns[name] = pyarrow.array(moments, kind)
        file = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(columns), file, compression=picks.choice(["none", "snappy"]))
        return file.getvalue()

    def read(self, record, header):
        document = strict.json_document(record)
        operation = document.get("Op", document.get("op"))
        return "insert" if operation is None else word(self.WORDS, operation.upper()), document, None

    def file_name(self, number, damage):
        return f"{damage}/20260302-{91530000 + number:09}.parquet"


class Baseline(Format):
    name, format, suffix, has_place = "baseline", "csv", "csv", False
    dialect = Delimited(quotes="some", null="")
    header = tuple(COLUMNS)

    def file(self, picks, rows):
        return self.dialect.line(picks, list(COLUMNS)) + b"\n" + super().file(picks, rows)

    def line(self, picks, operation, position, row):
        return self.dialect.line(picks, list(self.texts(row).values()))

    def read(self, record, header):
        values = strict.values_of_line(record, self.dialect)
        if len(values) != len(header) or COLUMNS.keys() - set(header):
            raise Unfit("columns")
        return "insert", dict(zip(header, values, strict=True)), None


FORMATS = [
    Tungsten("mysql"),
    Tungsten("redshift", header=True),
    Tungsten("hive"),
    ArcionJson(),
    ArcionCsv(),
    DatastreamAppend(),
    DatastreamJsonFiles(),
    DatastreamAvroFiles(),
    Debezium(),
    DebeziumFlattened(),
    DebeziumInFiles("debezium-avro", avro_file),
    DebeziumInFiles("debezium-parquet", parquet_file),
    DmsCsv(),
    DmsParquet(),
    Baseline(),
]
# `make long` tries one format of each reader and staging macro that differ most, `make soak` all of them
QUICK = [format for format in FORMATS if format.name in ("tungsten_mysql", "arcion_csv", "datastream", "debezium")]
each_format = pytest.mark.parametrize(
    "format",
    in_soak_but(QUICK, FORMATS),
    ids=lambda format: format.name,
)


# ---------------------------------------------------------------- damage

NUMBERS = [
    "1e5",
    "1E-5",
    "1e400",
    "-1e-400",
    "12345678901234567890123",
    "0.00001",
    "1.50000",
    "-0",
    "+7",
    "007",
    "0x10",
]
NUMBERS += ["NaN", "Infinity", "-inf", "1.5d", "2f", "1_000", "１２", " 12 ", "9007199254740993e0", "1.", ".5", "--1"]
NUMBERS += [
    "1.00000000000000000001",
    "123456789.00000000000000000001",
    "1" + "0" * 45,
    "1." + "0" * 45 + "1",
    "2147483648",
]
MOMENTS = [
    "2024-02-30",
    "2023-02-29",
    "0000-00-00",
    "9999-12-31",
    "10000-01-01",
    "2024-13-01",
    "1900-02-29",
    "20240229",
]
MOMENTS += ["2024-02-29T24:00:00", "2024-02-29 23:59:60", "2024-02-29 12:00:00.1234567", "2024-02-29 12:00:00+14:30"]
MOMENTS += ["2024-2-9", "2024-02-29 00:00:00.000", "2024-02-29T12:00Z", "-0001-01-01", "infinity", "now", "12:00:00"]
WORDS = ["", "null", "NULL", "\\N", "true", "TRUE", "'; drop table corpus; --", "{{ 1/0 }}", "{% raw %}", "${id}", "漢"]
JUNK = [
    "\x00",
    "\x01",
    "\x1f",
    "\t",
    "\r",
    "\n",
    "\u2028",
    "\ufeff",
    '"',
    "'",
    "\\",
    ",",
    "{",
    "}",
    "[",
    "]",
    ":",
    "\x7f",
]
AFTER_JSON = [
    "]",
    "}",
    "] junk",
    '] {"id":1}',
    "]]]]",
    ",",
    ',{"id":1}',
    ' {"id":1}',
    "//x",
    "\x00",
    ',"x":1',
    '],"x":[{}',
]


def at(picks, content: bytes, pattern: bytes):
    """Somewhere in the content where the pattern is."""
    found = list(re.finditer(pattern, content))
    return picks.choice(found) if found else None


def replaced(picks, content, pattern, texts) -> bytes:
    found = at(picks, content, pattern)
    return content[: found.start()] + picks.choice(texts).encode() + content[found.end() :] if found else content


def inserted(picks, content, piece: bytes, over=0) -> bytes:
    place = picks.randrange(len(content) + 1)
    return content[:place] + piece + content[place + over :]


def line_of(picks, content):
    lines = content.split(b"\n")
    return lines, picks.randrange(len(lines))


def with_line(picks, content, change) -> bytes:
    lines, number = line_of(picks, content)
    lines[number : number + 1] = change(lines[number])
    return b"\n".join(lines)


VALUE = rb'(?<=": )(?:"[^"\n]*"|-?[0-9.]+|true|false|null)|(?<=[,\x01])"?[^,"\x01\n]*"?(?=[,\x01])'
NUMBER = rb"-?\d+(?:\.\d+)?"
MOMENT = rb"\d{4}-\d\d-\d\d[ T]?[0-9:.]*"
OPERATION = rb'(?<=")(?:I|U|D|INSERT|UPDATE|DELETE|c|u|d)(?=")|(?m:^"?[IUD]"?(?=[,\x01]))'


def utf16(content: bytes) -> bytes:
    return content.decode(errors="replace").encode("utf-16")


DAMAGE = {
    "cut": lambda picks, content: content[: picks.randrange(len(content) + 1)],
    "cut-front": lambda picks, content: content[picks.randrange(len(content) + 1) :],
    "cut-line": lambda picks, content: with_line(picks, content, lambda line: [line[: picks.randrange(len(line) + 1)]]),
    "flipped-quote": lambda picks, content: replaced(picks, content, b'"', ["", "'", '""', '\\"', "`"]),
    "more-quotes": lambda picks, content: inserted(picks, content, b'"'),
    "latin": lambda picks, content: inserted(picks, content, picks.choice(["é", "ß", "\x80"]).encode("latin-1")),
    "utf16": lambda picks, content: utf16(content),
    "bad-bytes": lambda picks, content: inserted(picks, content, picks.choice([b"\xff", b"\xc3", b"\xed\xa0\x80"])),
    "no-value": lambda picks, content: replaced(picks, content, rb',?\s*"\w+": [^,{}]*|[,\x01][^,\x01\n]*', [""]),
    "more-values": lambda picks, content: replaced(picks, content, b"[,\x01]", [",,", ",x,", "\x01\x01"]),
    "other-name": lambda picks, content: replaced(picks, content, rb'(?<=")\w+(?=":)', ["id", "s", "other", "S", "v"]),
    "twice": lambda picks, content: replaced(
        picks, content, rb'"(?=\w+":)', ['"s": "twice", "', '"n": 2.5, "', '"x": 2, "']
    ),
    "doubled-first-line": lambda picks, content: content.partition(b"\n")[0] + b"\n" + content,
    "doubled-line": lambda picks, content: with_line(picks, content, lambda line: [line, line]),
    "lost-line": lambda picks, content: with_line(picks, content, lambda line: []),
    "joined-lines": lambda picks, content: replaced(picks, content, b"\n", ["", " ", ",", "\r"]),
    "split-line": lambda picks, content: inserted(picks, content, picks.choice([b"\n", b"\r\n", b"\r"])),
    "returns": lambda picks, content: content.replace(b"\n", picks.choice([b"\r\n", b"\r", b"\n\n", b"\n \n"])),
    "junk": lambda picks, content: inserted(picks, content, picks.choice(JUNK).encode()),
    "more-junk": lambda picks, content: inserted(picks, content, "".join(picks.choices(JUNK, k=8)).encode()),
    "nul": lambda picks, content: inserted(picks, content, b"\x00", over=1),
    "swapped": lambda picks, content: swapped(picks, content),
    "lost-bytes": lambda picks, content: inserted(picks, content, b"", over=picks.randrange(1, 9)),
    "other-byte": lambda picks, content: inserted(picks, content, picks.randbytes(1), over=1),
    "flipped-bit": lambda picks, content: flipped(picks, content),
    "empty": lambda picks, content: picks.choice([b"", b"\n", b" ", b"\xef\xbb\xbf", b"\r\n\r\n"]),
    "garbage": lambda picks, content: picks.randbytes(picks.randrange(1, 300)),
    "garbage-behind": lambda picks, content: content + picks.randbytes(picks.randrange(1, 50)),
    "digits": lambda picks, content: replaced(
        picks, content, rb"(?<=\d)(?=\D)", ["7", "000", "9" * 20, "." + "0" * 17 + "1"]
    ),
    "number": lambda picks, content: replaced(picks, content, NUMBER, NUMBERS),
    "moment": lambda picks, content: replaced(picks, content, MOMENT, MOMENTS),
    "value": lambda picks, content: replaced(picks, content, VALUE, [*NUMBERS, *MOMENTS, *WORDS]),
    "json-value": lambda picks, content: replaced(
        picks,
        content,
        VALUE,
        [
            "null",
            "[]",
            "{}",
            '{"a": 1}',
            "[1, 2.50]",
            "1.5",
            '"\\ud800"',
            '"AP8\\n"',
            '"\\n5"',
            '"\\u0000"',
            '"\\/"',
            "1e400",
        ],
    ),
    "escape": lambda picks, content: replaced(
        picks, content, rb'(?<=": ")|(?<=,")', ["\\x", "\\u12", "\\ ", "\\'", "\\8"]
    ),
    "operation": lambda picks, content: replaced(
        picks, content, OPERATION, ["X", "", "TRUNCATE", "t", "m", "r", "i ", "R", "UD"]
    ),
    "behind-json": lambda picks, content: with_line(
        picks, content, lambda line: [line + picks.choice(AFTER_JSON).encode()]
    ),
    "deep": lambda picks, content: replaced(picks, content, VALUE, ["[" * 2000, "[" * 900 + "]" * 900, '{"a":' * 500]),
    "huge": lambda picks, content: replaced(picks, content, VALUE, ['"' + "x" * 2**20 + '"', "9" * 2**20]),
    "gzip": lambda picks, content: gzip.compress(content),
    "broken-gzip": lambda picks, content: inserted(picks, gzip.compress(content), b"\x00", over=1),
}


def swapped(picks, content: bytes) -> bytes:
    one, other = sorted(picks.choices(range(len(content)), k=2))
    bytes_ = bytearray(content)
    bytes_[one], bytes_[other] = bytes_[other], bytes_[one]
    return bytes(bytes_)


def flipped(picks, content: bytes) -> bytes:
    place = picks.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << picks.randrange(8))]) + content[place + 1 :]


# ---------------------------------------------------------------- the corpus, landed and built


def feed(format: Format) -> str:
    return f"{format.name.replace('_', '')}_corpus"


def small_file(picks, format: Format, first: int) -> tuple[bytes, list[tuple]]:
    """A valid file, and its rows as (operation, row)."""
    operations = ["insert"] if format.name == "baseline" else OPERATIONS
    rows = [
        (picks.choice(operations), picks.randrange(1, 50_000), random_row(picks, first + place))
        for place in range(picks.randrange(2, 6))
    ]
    return format.file(picks, rows), [(operation, row) for operation, _, row in rows]


def damaged(picks, content: bytes, number: int) -> tuple[str, bytes]:
    names = [*DAMAGE][number % len(DAMAGE) :][:1]
    names += picks.sample([*DAMAGE], picks.choice([0, 0, 0, 1, 2]))
    for name in names:
        content = DAMAGE[name](picks, content) if content else content
    return "+".join(names), content


def header_of(format: Format, content: bytes) -> list[str] | None:
    """The names in the first record of a file."""
    if not format.header:
        return None
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    lines = [line.removesuffix(b"\r") for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    while lines and not lines[0]:
        lines.pop(0)
    for count in range(1, len(lines) + 1):
        try:
            return strict.values_of_line(b"\n".join(lines[:count]), format.dialect)
        except Unfit:
            continue
    return None


class Corpus:
    """What was delivered: by feed, the content of each file, what an undamaged record says, and how many records."""

    def __init__(self):
        self.files, self.known, self.records = defaultdict(dict), defaultdict(dict), Counter()
        self.unreadable = Counter()

    def add(self, workshop, format: Format, options, name: str, content: bytes):
        """Deliver a file, unless it cannot be read as a whole: such a file would stop its batch."""
        if FORMATS_OF_FEEDS[format.format].ends_last_line and not content.startswith(b"\x1f\x8b"):
            content = content.removesuffix(b"\n") + b"\n" if content else content  # without one it waits
        opened = io.BytesIO(content)
        try:
            opened = opened if readers.needs_random_access(options) else records.CountedStream(opened)
            found = [row for batch in readers.read(opened, options) for row in batch.to_pylist()]
        except records.UnreadableFile:
            self.unreadable[feed(format)] += 1
            return []
        workshop.deliver(f"{feed(format)}.{entity(format)}", name, content)
        self.files[feed(format)][f"{feed(format)}/{entity(format)}/{name}"] = content
        self.records[feed(format)] += len(found)
        return found

    def know(self, format: Format, options, content: bytes, rows: list[tuple]):
        """Remember what the records of a valid file say."""
        opened = io.BytesIO(content)
        opened = opened if readers.needs_random_access(options) else records.CountedStream(opened)
        found = [row["record"] for batch in readers.read(opened, options) for row in batch.to_pylist()]
        for record, (operation, row) in zip(found, rows, strict=True):
            texts = format.texts(row)
            values = {name: Format.value(format, name, texts[name]) for name in COLUMNS}
            self.known[feed(format)][record] = operation, values


def entity(format: Format) -> str:
    return "corpus_partial" if format.is_partial else "corpus_whole"


def delivered(workshop, seed: int, formats) -> Corpus:
    """Make the corpus and deliver it."""
    picks, made = random.Random(seed), Corpus()
    options = {name: feed.options for name, feed in declared_feeds().items()}
    for place, format in enumerate(formats):
        own = options[feed(format)]
        for number in range(FILES + len(FILE_NAMES)):
            content, rows = small_file(picks, format, 1_000_000 * place + 10 * number)
            made.know(format, own, content, rows)
            if number < FILES:
                name, content = damaged(picks, content, number)
            else:
                name = FILE_NAMES[number - FILES]
            made.add(workshop, format, own, format.file_name(number, name), content)
    return made


@pytest.fixture(scope="module")
def corpus(request, workshop):
    chosen = FORMATS if request.config.getoption("--soak") else QUICK
    seed = int(os.environ.get("HIGHWATER_SEED", random.SystemRandom().randrange(10**6) if chosen is FORMATS else 1))
    print(f"seed {seed}")
    for format in sorted(chosen, key=lambda format: not format.name.startswith("debezium")):
        declare(workshop, format)
    made = delivered(workshop, seed, chosen)
    workshop.land(*map(feed, chosen))
    workshop.build("+corpus_whole", "+corpus_partial", command="run")
    return made


def declare(workshop, format: Format):
    known = (workshop.folder / f"models/changes/corpus/{entity(format)}_changes.sql").exists()
    columns = [f"{name}:{kind}" for name, kind in COLUMNS.items()]
    declared = (None, None) if known else (columns[0], ",".join(columns[1:]))
    workshop.add_table(f"{feed(format)}.{entity(format)}", *declared, format.format, format.settings)
    path = workshop.folder / f"models/staging/{feed(format)}/_{feed(format)}__sources.yml"
    beside = "".join(f"{column}, " for column in format.columns)
    path.write_text(re.sub(r"\{columns: \[(ts, )?id", f"{{columns: [{beside}id", path.read_text()))


def log(workshop, format: Format) -> list:
    return workshop.spark.sql(
        f"""
        select
            source_file, source_line, verdict, rejection_reason, is_derived, change_type, change_sequence_number,
            present_columns, id, s, cast(n as string) as n, cast(d as string) as d, cast(t as string) as t, x,
            cast(b as string) as b, hex(y) as y
        from {entity(format)}_changes
        where feed = '{feed(format)}'
        """
    ).collect()


@each_format
def test_every_record_is_counted(corpus, workshop, format):
    landed = workshop.value(f"select count(*) from raw.{feed(format)} where entry = 'record'")
    rows = [row for row in log(workshop, format) if not row.is_derived]
    assert len(rows) == landed == corpus.records[feed(format)]
    assert {row.verdict for row in rows} <= {"applied", "superseded", "duplicate", "rejected"}
    assert all((row.verdict == "rejected") == (row.rejection_reason is not None) for row in rows)
    files = workshop.rows(f"select source_file from raw.{feed(format)} where entry = 'file'")
    assert {file for (file,) in files} == set(corpus.files[feed(format)])
    print(len(files), "files,", corpus.unreadable[feed(format)], "unreadable,", landed, "records,", end=" ")
    print(dict(Counter(row.rejection_reason or "accepted" for row in rows)))


@each_format
def test_no_value_changes_in_silence(corpus, workshop, format):
    landed = defaultdict(list)
    for file, line, record in workshop.rows(
        f"select source_file, source_line, record from raw.{feed(format)} where entry = 'record'"
    ):
        landed[file, line].append(bytes(record))
    headers = {file: header_of(format, content) for file, content in corpus.files[feed(format)].items()}
    wrong = []
    for row in log(workshop, format):
        if row.rejection_reason is not None or row.is_derived:
            continue
        why = [
            difference(format, row, record, headers[row.source_file], corpus.known[feed(format)])
            for record in landed[row.source_file, row.source_line]
        ]
        if None not in why:
            wrong.append((row.source_file, row.source_line, why, landed[row.source_file, row.source_line][0][:1000]))
    assert not wrong, f"{len(wrong)} of them:\n" + "\n".join(map(str, wrong[:10]))


def difference(format: Format, row, record: bytes, header, known: dict):
    """What an accepted row says that its record does not; None: nothing."""
    found = _difference(format, row, record, header, known)
    if found:
        with strict.first_of_twins():
            found = _difference(format, row, record, header, known) and found
    return found


def _difference(format: Format, row, record: bytes, header, known: dict):
    try:
        operation, texts, sequence = format.read(record, header)
        values = {name: format.value(name, texts[name]) for name in COLUMNS if name in texts and operation != "delete"}
        values["id"] = format.value("id", texts["id"])
    except (Unfit, KeyError) as error:
        return f"accepted, but {type(error).__name__}: {str(error)[:100]}"
    if operation != row.change_type:
        return f"{row.change_type}, not {operation}"
    sections = tuple(int(section, 16) for section in row.change_sequence_number.split("/")[1:])
    if sequence is not None and sections[: len(sections) - format.has_place] != sequence:
        return f"sequence {sections}, not {sequence}"
    if operation != "delete":
        carried = {name for name in COLUMNS if name in texts}
        if format.is_partial and set(row.present_columns or COLUMNS) != carried:
            return f"carries {row.present_columns}, not {carried}"
        for name in COLUMNS:
            if not same(name, row[name], values.get(name)):
                return f"{name} = {str(row[name])[:100]!r}, not {str(values.get(name))[:100]!r}"
        if record in known and header in (None, list(format.header or ())) and known[record] != (operation, values):
            return f"{values}, not {known[record]}"
    return None


def same(name: str, found, expected) -> bool:
    if found is None or expected is None:
        return found is expected
    if name == "n":
        return Decimal(found) == expected
    if name in "dt":
        day, _, time = found.removeprefix("+").partition(" ")
        whole, _, fraction = time.partition(".")
        return expected == (day if name == "d" else f"{day} {whole}.{fraction:0<6}")
    if name == "s" and isinstance(expected, tuple):
        return json.loads(found) == json.loads(json.dumps(expected[1], default=float))
    return found == expected or (found != found and expected != expected)


@each_format
def test_names_that_look_like_sql_or_jinja_stay_names(corpus, workshop, format):
    accepted = Counter(row.source_file for row in log(workshop, format) if row.rejection_reason is None)
    for number, name in enumerate(FILE_NAMES, FILES):
        assert accepted[f"{feed(format)}/{entity(format)}/{format.file_name(number, name)}"] >= 2
