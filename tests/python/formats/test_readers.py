"""Cutting files into records, without Spark."""

import base64
import bz2
import gzip
import io
import json
import lzma
import math
import random
import re
import tarfile
import tracemalloc
import uuid
import zipfile
import zlib
from datetime import date, datetime, time, timezone
from decimal import Decimal

import fastavro
import numpy
import pyarrow
import pyarrow.parquet
import pytest
from highwater.formats import compression, readers
from highwater.formats import records as limits
from highwater.formats.formats import FORMATS, TUNGSTEN_DIALECTS, Dialect, ReadOptions
from repository import FIXTURES

ARCION = FORMATS["arcion-csv"].dialect
WITH_HEADER = Dialect(header=True)


def records(content: bytes, format="datastream-json", **options):
    options = ReadOptions(format, options.pop("dialect", FORMATS[format].dialect), **options)
    opened = io.BytesIO(content)
    if not readers.needs_random_access(options):
        opened = limits.CountedStream(opened)
    return [row for batch in readers.read(opened, options) for row in batch.to_pylist()]


def lines(content: bytes, format="datastream-json"):
    return [(row["source_line"], row["record"]) for row in records(content, format)]


def rows(content: bytes, dialect: Dialect) -> list[list]:
    """The values of each record, in order."""
    found = records(content, "tungsten-csv", dialect=dialect)
    assert [row["problem"] for row in found] == [None] * len(found)
    return [[value for _, value in row["fields"]] for row in found]


def problems(content: bytes, dialect: Dialect):
    found = records(content, "tungsten-csv", dialect=dialect)
    assert all((row["fields"] is None) == (row["problem"] is not None) for row in found)
    return [(row["source_line"], row["record"], code(row["problem"])) for row in found]


def code(problem: str | None) -> str | None:
    """The code of a problem, which says more behind it."""
    assert problem is None or re.fullmatch(r"\w+: .+", problem), problem
    return problem and problem.split(": ")[0]


# --- JSON lines


@pytest.mark.parametrize("format", ["datastream-json", "datastream-gcs-json", "debezium-json"])
@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", []),
        (b"\n \n\t\n", []),
        (b"\n", []),
        (b'{"a":1}', [(1, b'{"a":1}')]),
        (b'{"a":1}\n\n{"b":2}\n', [(1, b'{"a":1}'), (3, b'{"b":2}')]),
        (b'{"a":1}\r\n{"b":2}\r\n', [(1, b'{"a":1}'), (2, b'{"b":2}')]),
        (b"\xef\xbb\xbf{}\n", [(1, b"{}")]),
        (b"\xff\xfe\n{}\n", [(1, b"\xff\xfe"), (2, b"{}")]),
        (b"a\x00b\n", [(1, b"a\x00b")]),
        (gzip.compress(b"{}\n", mtime=0) + gzip.compress(b"7\n", mtime=0), [(1, b"{}"), (2, b"7")]),
        (b"[]\n[\n]\n[{}]", [(4, b"{}")]),
    ],
)
def test_json_lines(content, expected, format):
    assert lines(content, format) == expected


def test_a_tombstone_of_debezium_is_no_record():
    assert lines(b'null\n{"op":"d"}\nnull\n', "debezium-json") == [(2, b'{"op":"d"}')]


def test_line_numbers_are_true_across_blocks(monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", 7)
    content = b"\n".join(b"x" * (number % 13) for number in range(1, 200))
    expected = [(number, b"x" * (number % 13)) for number in range(1, 200) if number % 13]
    assert lines(content) == expected


@pytest.mark.parametrize(
    "content", [gzip.compress(b"{}\n" * 100, mtime=0)[:-9], gzip.compress(b"{}\n", mtime=0) + b"rubbish"]
)
def test_a_broken_gzip_file_is_unreadable(content):
    with pytest.raises(limits.UnreadableFile):
        records(content)


def test_a_gzip_file_with_any_byte_changed_is_unreadable():
    content = gzip.compress(ARCION_DOCUMENT.encode(), mtime=0)
    for place in range(10, len(content)):
        broken = content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :]
        with pytest.raises(limits.UnreadableFile):
            records(broken, "arcion-json")


# --- compressions


def by_arrow(codec: str, content: bytes) -> bytes:
    packed = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(packed, codec) as stream:
        stream.write(content)
    return packed.getvalue().to_pybytes()


def blocks(content: bytes, size: int) -> list[bytes]:
    """The content in parts, each packed by snappy."""
    parts = [content[place : place + size] for place in range(0, len(content), size)]
    return [pyarrow.compress(part, "snappy", asbytes=True) for part in parts]


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def snappy_frames(content: bytes) -> bytes:
    """As google/snappy's framing_format.txt has it: checksums, one frame as it is, one to be passed over."""
    packed = compression.SNAPPY_FRAMES
    for place in range(0, len(content), 1000):
        part = content[place : place + 1000]
        checksum = compression.crc32c(part)
        masked = ((checksum >> 15 | checksum << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF
        kind, data = (b"\x00", *blocks(part, 1000)) if place else (b"\x01", part)
        packed += kind + (len(data) + 4).to_bytes(3, "little") + masked.to_bytes(4, "little") + data
    return packed + b"\xfe\x03\x00\x00pad"


def snappy_of_java(content: bytes) -> bytes:
    header = compression.SNAPPY_STREAM + number(1) * 2
    return header + b"".join(number(len(block)) + block for block in blocks(content, 1000))


def snappy_of_hadoop(content: bytes) -> bytes:
    """Blocks of 2,000 bytes, each in parts of 1,500."""
    packed = b""
    for place in range(0, len(content), 2000):
        whole = content[place : place + 2000]
        packed += number(len(whole)) + b"".join(number(len(block)) + block for block in blocks(whole, 1500))
    return packed


SKIPPED = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"pzst"
PACKERS = {
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "zstd": lambda content: by_arrow("zstd", content),
    "bzip2": bz2.compress,
    "lz4": lambda content: by_arrow("lz4", content),
    "snappy in frames": snappy_frames,
    "snappy of Java": snappy_of_java,
    "snappy of Hadoop": snappy_of_hadoop,
    "pzstd": lambda content: SKIPPED + by_arrow("zstd", content) + SKIPPED,
    "two of zstd": lambda content: by_arrow("zstd", content[:70]) + by_arrow("zstd", content[70:]),
    "gzip in gzip": lambda content: gzip.compress(gzip.compress(content)),
    "zstd in gzip": lambda content: gzip.compress(by_arrow("zstd", content)),
}
PACKED_LINES = b"".join(b'{"id":%d,"v":"%d"}\n' % (key, key * key) for key in range(500))


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("block", [7, 1024 * 1024])
def test_what_is_packed_is_read_by_its_content(kind, block, monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", block)
    packed = PACKERS[kind](PACKED_LINES)
    assert [row["record"] for row in records(packed)] == PACKED_LINES.splitlines()
    assert len(records(PACKERS[kind](b'"1","x"\n' * 900), "dms-csv")) == 900
    assert compression.is_packed(packed[: compression.HEAD_BYTES]) and not compression.is_packed(PACKED_LINES[:512])


@pytest.mark.parametrize("kind", PACKERS)
def test_what_is_packed_and_was_cut_is_unreadable(kind):
    packed = PACKERS[kind](PACKED_LINES)
    for place in [*range(24, len(packed) - 16, 97), len(packed) - 20]:
        try:
            found = [row["record"] for row in records(packed[:place])]
        except limits.UnreadableFile:
            continue
        # between two frames nothing tells that there was more
        assert kind in ("two of zstd", "snappy in frames") and found == PACKED_LINES.splitlines()[: len(found)]


def test_a_snappy_frame_with_any_byte_changed_is_unreadable():
    packed = snappy_frames(PACKED_LINES[:3000])
    for place in range(len(compression.SNAPPY_FRAMES) + 4, len(packed) - 7, 7):
        broken = packed[:place] + bytes([packed[place] ^ 0x55]) + packed[place + 1 :]
        with pytest.raises(limits.UnreadableFile):
            assert records(broken)[0]["problem"] is not None


def test_the_checksum_of_castagnoli():
    assert compression.crc32c(b"123456789") == 0xE3069283 and compression.crc32c(b"") == 0
    assert compression.crc32c(bytes(32)) == 0x8A9136AA and compression.crc32c(b"\xff" * 32) == 0x62A8AB43  # RFC 3720


def archive(**flags) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr(flags.pop("name", "a.csv"), "1,2\n")
    content = bytearray(packed.getvalue())
    content[6] |= flags.pop("flag", 0)
    return bytes(content)


def tarred() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as opened:
        opened.addfile(tarfile.TarInfo("a.csv"), None)
    return packed.getvalue()


FOREIGN = {
    "a ZIP archive: unpack it": archive(),
    "an encrypted ZIP archive: decrypt": archive(flag=1),
    "an Excel workbook (.xlsx): save its sheet as CSV": archive(name="[Content_Types].xml"),
    "xz: unpack it": lzma.compress(b"1,2\n"),
    "a 7z archive": b"7z\xbc\xaf\x27\x1c\x00\x04",
    "a tar archive": tarred(),
    "a tar archive: unpack": gzip.compress(tarred()),
    "a PDF document": b"%PDF-1.7\n",
    "a file that PGP encrypted": b"-----BEGIN PGP MESSAGE-----\n",
    "text in UTF-16": "id,name\n1,x\n".encode("utf-16"),
    "text in UTF-16: deliver it in UTF-8": "id,name\n1,x\n".encode("utf-16-le"),
    "text in UTF-16: deliver": "id,name\n1,x\n".encode("utf-16-be"),
    "text in UTF-32": "id,name\n1,x\n".encode("utf-32"),
    "a Parquet file": b"PAR1\x15\x04\x15",
    "an Avro file": b"Obj\x01\x04",
    "blocks of Hadoop in LZ4 or LZO": number(1000) + number(900) + b"\xff" * 900,
}


@pytest.mark.parametrize("words", FOREIGN)
@pytest.mark.parametrize("format", ["dms-csv", "csv", "debezium-json"])
def test_what_is_no_text_is_named_by_its_first_bytes(words, format):
    with pytest.raises(limits.UnreadableFile, match=re.escape(f"it looks like {words}")):
        records(FOREIGN[words], format)


@pytest.mark.parametrize(
    "format, content, words",
    [
        ("parquet", gzip.compress(b"PAR1\x15", mtime=0), "it is packed as a whole, and Parquet packs"),
        ("parquet", archive(), "it looks like a ZIP archive"),
        ("datastream-avro", b"PAR1\x15\x04", "it looks like a Parquet file"),
    ],
)
def test_what_is_no_parquet_and_no_avro_is_named(format, content, words):
    with pytest.raises(limits.UnreadableFile, match=words):
        records(content, format)


@pytest.mark.parametrize(
    "content", [b"PK,1\n", b"BZh,1\n", b"PAR1,2\n", b"LZIP,1\n", b"(x,1\n", b"\x01\x01\n\x01\n", b"7z,1\n"]
)
def test_text_that_begins_like_something_else_is_text(content):
    assert next(row["record"] for row in records(content, "dms-csv")) == content.split(b"\n")[0]


def avro_number(value: int) -> bytes:
    encoded, value = b"", value << 1
    while value > 127:
        encoded, value = encoded + bytes([value & 127 | 128]), value >> 7
    return encoded + bytes([value])


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "snappy", "zstandard"])
def test_avro_packed_by_any_codec(codec):
    """Blocks as the specification has them; fastavro packs only what it has libraries for."""
    checksum = {"snappy": lambda content: zlib.crc32(content).to_bytes(4, "big")}.get(codec, lambda _: b"")
    pack = {
        "null": lambda content: content,
        "deflate": lambda content: zlib.compress(content)[2:-4],
        "bzip2": bz2.compress,
        "snappy": lambda content: blocks(content, len(content))[0],
        "zstandard": lambda content: by_arrow("zstd", content),
    }[codec]
    schema = {"type": "record", "name": "t", "fields": [{"name": "a", "type": "string"}]}
    content, file = b"".join(avro_number(3) + b"%03d" % key for key in range(300)), b"Obj\x01" + avro_number(2)
    for name, value in {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": codec.encode()}.items():
        file += avro_number(len(name)) + name + avro_number(len(value)) + value
    block = pack(content) + checksum(content)
    file += b"\x00" + b"s" * 16 + avro_number(300) + avro_number(len(block)) + block + b"s" * 16
    assert [json.loads(row["record"])["a"] for row in records(file, "datastream-avro")] == [
        f"{n:03}" for n in range(300)
    ]
    if codec == "snappy":
        with pytest.raises(limits.UnreadableFile, match="its checksum is another"):
            records(file[:-20] + bytes([file[-20] ^ 1]) + file[-19:], "datastream-avro")


@pytest.mark.parametrize(
    "format, content, words",
    [
        ("datastream-json", b"{}\n" + b"x" * (2 * 1024 * 1024), "line 2 is longer than 1 MiB"),
        ("arcion-csv", b'1\n"\n' + b"x\n" * (1024 * 1024), "the record that starts in line 2 is longer than 1 MiB"),
        ("arcion-json", b'{}\n{"a":\n' + b"1\n" * 1024 * 1024, "the document that starts in line 2 is longer than 1"),
    ],
)
def test_a_record_beyond_the_limit_is_named_by_its_line(monkeypatch, format, content, words):
    monkeypatch.setattr(limits, "RECORD_BYTES_AT_MOST", 1024 * 1024)
    monkeypatch.setattr(limits, "BLOCK_BYTES", 64 * 1024)
    with pytest.raises(limits.UnreadableFile, match=words):
        records(content, format)


class Endless(io.RawIOBase):
    """`size` bytes of lines that nobody holds, behind a first one."""

    def __init__(self, size, line, first=b""):
        self.left, self.line, self.first, self.at = size, line, first, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        if self.first:
            count, buffer[: len(self.first)], self.first = len(self.first), self.first, b""
            return count
        count = min(len(buffer), self.left)
        lines = self.line * (count // len(self.line) + 2)
        buffer[:count] = lines[self.at : self.at + count]
        self.left, self.at = self.left - count, (self.at + count) % len(self.line)
        return count


def peak_megabytes(size: int, format: str, line: bytes, first: bytes = b"") -> float:
    tracemalloc.start()
    options = ReadOptions(format, FORMATS[format].dialect)
    for _ in readers.read(limits.CountedStream(Endless(size, line, first)), options):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


@pytest.mark.long
@pytest.mark.parametrize(
    "format, line",
    [
        ("datastream-json", b'{"id": 1234567, "name": "some text of a usual length"}\n'),
        ("arcion-json", b'{"id": 1234567, "name": "some text of a usual length"}\n'),
        ("arcion-csv", b'1234567,"some ""text"" of a usual length",NULL\n'),
        ("arcion-csv", b'1234567,"some "text" of a usual length",NULL\n'),
    ],
)
def test_memory_does_not_grow_with_the_file(format, line):
    assert peak_megabytes(8_000_000, format, line) < 1.5 * peak_megabytes(2_500_000, format, line) < 120


@pytest.mark.long
@pytest.mark.parametrize(
    "first, line",
    [
        (b"", b'{"op": "c", "after": {"id": 1234567, "name": "some text of a usual length"}}'),
        (b"", b'{\n  "op": "c",\n  "after": {\n    "id": 1234567\n  }\n}\n'),
        (b"[", b'{"op": "c", "after": {"id": 1234567, "name": "some text of a usual length"}},'),
        (b"[", b'{\n  "op": "c",\n  "after": {\n    "id": 1234567\n  }\n},\n'),
    ],
)
def test_memory_does_not_grow_with_the_file_whatever_documents_stand_in(first, line, monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", 64 * 1024)
    small, large = (peak_megabytes(size, "debezium-json", line, first) for size in (200_000, 700_000))
    assert large < 1.5 * small < 20


# --- delimited files

CSV = b'"ID","NAME"\r\n1,plain\r\n2,"say ""hi"", ok"\r\n3,\r\n4,""\r\n5,"two\nlines"\r\n6,null\r\n'


def test_csv_tells_null_from_the_empty_text_and_keeps_line_ends_in_values():
    found = records(CSV, "csv")
    assert [dict(row["fields"])["NAME"] for row in found] == ["plain", 'say "hi", ok', None, "", "two\nlines", "null"]
    assert [row["source_line"] for row in found] == [2, 3, 4, 5, 6, 8]
    assert found[4]["record"] == b'5,"two\nlines"'


@pytest.mark.parametrize(
    "bad, problem",
    [
        (b"7,a,b", "wrong_column_count"),
        (b"7", "wrong_column_count"),
        (b'7,"open', "malformed_record"),
        (b'7,"a"b', "malformed_record"),
        (b'7,a"b"', "malformed_record"),
        (b"7,a\rb", "malformed_record"),
        (b"7,\xe9", "not_utf8"),
    ],
)
def test_csv_passes_a_bad_record_on_with_its_problem(bad, problem):
    found = records(b"ID,NAME\n1,a\n" + bad + b"\n", "csv")
    assert [(code(row["problem"]), row["record"]) for row in found] == [(None, b"1,a"), (problem, bad)]


@pytest.mark.parametrize(
    "dialect, record, detail",
    [
        (Dialect(), b'1,"open', "malformed_record: a value in quotes has no end"),
        (Dialect(), 'é,"a"b'.encode(), "malformed_record: character 5: a quote stands inside a quoted value"),
        (Dialect(), b'1,a"b', "malformed_record: character 4: a quote stands inside a value without quotes"),
        (
            Dialect(),
            b"1,a\rb",
            "malformed_record: character 4: a carriage return stands outside quotes and ends no line",
        ),
        (Dialect(), b'1,"a\nb"c', "malformed_record: character 7: a quote stands inside a quoted value"),
        (
            Dialect(escape="backslash"),
            b'1,"a\\tb"',
            "malformed_record: character 5: a backslash stands before 't', which this dialect does not escape",
        ),
        (Dialect(), b"1,a\xe9", "not_utf8: byte 4: 0xe9 is no character of UTF-8"),
        (Dialect(), b'1,a"\xe9', "not_utf8: byte 5: 0xe9 is no character of UTF-8"),
        (Dialect(header=True), b"1,2,3", "wrong_column_count: 3 values, 2 names"),
    ],
)
def test_a_bad_record_says_what_is_wrong_where(dialect, record, detail):
    content = b"0,x\n" + record + b"\n"
    found = records(content, "tungsten-csv", dialect=dialect)
    assert (found[-1]["record"], found[-1]["problem"]) == (record, detail)


@pytest.mark.parametrize("content", [b"", b"ID,NAME\n", b"ID,NAME", b"\xef\xbb\xbfID,NAME\n\n"])
def test_csv_without_records_is_fine(content):
    assert records(content, "csv") == []


@pytest.mark.parametrize("header", [b"A,A\n1,2\n", b"A,\n1,2\n", b"\xff,B\n1,2\n", b'A,B"\n1,2\n', b'A,"B'])
def test_csv_without_a_header_is_unreadable(header):
    with pytest.raises(limits.UnreadableFile, match="header"):
        records(header, "csv")


def test_csv_with_numbers_of_rows_under_no_name():
    """As pandas and R write them first."""
    (found,) = records(b",A,B\n0,1,2\n", "csv")
    assert dict(found["fields"]) == {"": "0", "A": "1", "B": "2"}


def test_a_record_of_one_empty_value_is_told_from_an_empty_line():
    assert rows(b'\n""\n\r\n" "\n \n\n', Dialect(null="")) == [[""], [" "], [" "]]


VALUES = {
    "T7 vertica": ("vertica", b'null,"null",""\n', [None, "null", ""]),
    "T7 redshift": ("redshift", b'null,"null",""\n', [None, "null", ""]),
    "T8 mysql": (
        "mysql",
        b'\\N,"\\\\N","say \\"hi\\", ok","back\\\\slash","l1\nl2"\n',
        [None, r"\N", 'say "hi", ok', r"back\slash", "l1\nl2"],
    ),
    "T8 oracle": ("oracle", b'\\N,"\\\\N","N"\n', [None, r"\N", "N"]),
    "T9 redshift": ("redshift", b'"say ""hi"", ok","ends with \\"\n', ['say "hi", ok', "ends with \\"]),
    "T10 hive": ("hive", b"a\\\x01b\x01next\x01\\N\x01\\\\N\n", ["a\x01b", "next", None, r"\N"]),
    # the producer removes line ends: what it has written is what there is
    "T11 vertica": ("vertica", b'"l1l2"\n', ["l1l2"]),
    "NUL": ("mysql", b'"a\x00b"\n', ["a\x00b"]),
    "CR in quotes": ("redshift", b'"a\rb","c\r\nd"\r\n', ["a\rb", "c\r\nd"]),
    "quote first and last": ("redshift", b'"""",""""""\n', ['"', '""']),
    "unquoted": ("mysql", b'1,,a b,"x"\n', ["1", "", "a b", "x"]),
}


@pytest.mark.parametrize("block", [7, 1024 * 1024])
@pytest.mark.parametrize("case", VALUES)
def test_values_of_tungsten(case, block, monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", block)
    dialect, content, expected = VALUES[case]
    assert rows(content, TUNGSTEN_DIALECTS[dialect]) == [expected]


def test_t17_files_without_records_or_with_a_header():
    with_header = Dialect(escape="backslash", null=r"\N", header=True)
    header = b'"opcode","seqno","row_id","commit_timestamp","id","v"\n'
    assert problems(b"", with_header) == problems(header, with_header) == []
    (row,) = records(header + b'"I","1","2","2016-03-11 20:51:10.000","1","a"\n', "tungsten-csv", dialect=with_header)
    assert (row["source_line"], dict(row["fields"])["id"], dict(row["fields"])["v"]) == (2, "1", "a")


def test_seed_sample_of_tungsten():
    sample = (
        b'"I","84900","1","2016-03-11 20:51:10.000","986","http://www.continent.com/software"\n'
        b'"D","84901","2","2016-03-11 20:51:10.000","143",null\n'
        b'"I","84901","3","2016-03-11 20:51:10.000","143","http://www.microsoft.com"\n'
    )
    found = records(sample, "tungsten-csv", dialect=TUNGSTEN_DIALECTS["redshift"])
    assert dict(found[1]["fields"]) == {
        "1": "D",
        "2": "84901",
        "3": "2",
        "4": "2016-03-11 20:51:10.000",
        "5": "143",
        "6": None,
    }


def test_a12_arcion_keeps_blanks_and_records_of_any_width():
    cursor = b'"{""extractorId"":0,""dscId"":1620787053904,""mutId"":1048408}"'
    change = b'India,NULL,1,"NULL",NULL,1,10,NULL,1,I,' + cursor + b',"{""insertCount"":6}"'
    snapshot, changed = rows(b"0, AFRICA ,AFRICA\n" + change + b"\n", ARCION)
    assert snapshot == ["0", " AFRICA ", "AFRICA"]
    assert changed[:10] == ["India", None, "1", "NULL", None, "1", "10", None, "1", "I"]
    assert json.loads(changed[10])["mutId"] == 1048408 and changed[11:] == ['{"insertCount":6}']


def test_a13_a_header_names_the_values_in_any_order():
    one = records(b"id,name\n1,a\n", "arcion-csv", dialect=WITH_HEADER)
    other = records(b"name,id\na,1\n", "arcion-csv", dialect=WITH_HEADER)
    assert dict(one[0]["fields"]) == dict(other[0]["fields"]) == {"id": "1", "name": "a"}


def test_a18_empty_file_header_only_and_a_value_too_few():
    names = ",".join(f"c{number}" for number in range(12)).encode()
    assert problems(b"", WITH_HEADER) == problems(names + b"\n", WITH_HEADER) == []
    short = b",".join([b"1"] * 11)
    assert problems(names + b"\n" + short + b"\n", WITH_HEADER) == [(2, short, "wrong_column_count")]
    (row,) = records(short + b"\n", "arcion-csv")
    assert [name for name, _ in row["fields"]] == [str(number) for number in range(1, 12)]


def test_dms_load_files_without_the_operation():
    found = rows(b'I,2026-03-02,7,"ada, x",NULL\n7,"ada, x",NULL\n', FORMATS["dms-csv"].dialect)
    assert found == [["I", "2026-03-02", "7", "ada, x", None], ["7", "ada, x", None]]


def test_declared_delimiter_escape_and_null():
    dialect = Dialect(delimiter="|", escape="backslash", null="")
    assert rows(b'1||""|"a\\"b"|x,y\n', dialect) == [["1", None, "", 'a"b', "x,y"]]
    assert rows(b"\t\t\n", Dialect(delimiter="\t")) == [["", "", ""]]


MALFORMED = {
    "a stray quote": ("redshift", b'"a",b"c\n"x"\n', [(1, b'"a",b"c', True), (2, b'"x"', False)]),
    "a cut record": ("redshift", b'"1","cut\n"2","a"\n"3"\n', [(1, b'"1","cut\n"2","a"', True), (3, b'"3"', False)]),
    "open at the end": ("redshift", b'"1"\n"2\n3\n', [(1, b'"1"', False), (2, b'"2\n3', True)]),
    "blank before a quote": ("redshift", b'1, "a"\n2\n', [(1, b'1, "a"', True), (2, b"2", False)]),
    "doubled quote of the other dialect": ("mysql", b'"a""b"\n"c"\n', [(1, b'"a""b"', True), (2, b'"c"', False)]),
    "unknown escape": ("mysql", b'"a\\tb"\n"c"\n', [(1, b'"a\\tb"', True), (2, b'"c"', False)]),
    "NULL in quotes": ("mysql", b'"x,\\N,y"\n\\N\n', [(1, b'"x,\\N,y"', True), (2, b"\\N", False)]),
    "NULL and more": ("mysql", b"\\Nx\n\\N\r\n", [(1, b"\\Nx", True), (2, b"\\N", False)]),
    "dangling escape": ("hive", b"a\\\nb\n", [(1, b"a\\", True), (2, b"b", False)]),
    "dangling escape at the end": ("mysql", b'"a"\n"b\\', [(1, b'"a"', False), (2, b'"b\\', True)]),
    "bare carriage return": ("hive", b"a\rb\nc\n", [(1, b"a\rb", True), (2, b"c", False)]),
    "a break inside a long value": (
        "mysql",
        b'"1"\n"a\nb\\q\nc"\n"2"\n',
        [(1, b'"1"', False), (2, b'"a\nb\\q', True), (4, b'c"', True), (5, b'"2"', False)],
    ),
}


@pytest.mark.parametrize("block", [7, 1024 * 1024])
@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_record_ends_with_the_line_where_it_breaks(case, block, monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", block)
    dialect, content, expected = MALFORMED[case]
    found = problems(content, TUNGSTEN_DIALECTS[dialect])
    assert found == [(line, record, "malformed_record" if bad else None) for line, record, bad in expected]


def test_bytes_that_are_no_utf8():
    content = b'"1","a"\n"2","\xe9"\n"3",x"\xe9\n"4","b"\n'
    assert [problem for *_, problem in problems(content, Dialect())] == [None, "not_utf8", "not_utf8", None]


DIALECTS = {
    **TUNGSTEN_DIALECTS,
    "arcion": ARCION,
    "csv without header": Dialect(null=""),
    "pipe": Dialect("|", escape="backslash"),
}
PIECES = [
    '"',
    "\\",
    "\n",
    "\r",
    "\r\n",
    "\x00",
    "\x01",
    ",",
    "|",
    "null",
    "NULL",
    "\\N",
    "",
    " ",
    "é",
    "漢",
    "😀",
    "ab",
]


def written(value: str | None, dialect: Dialect, quoted: bool) -> str:
    """A value as the dialect's writer writes it."""
    if value is None:
        return dialect.null
    if dialect.escape == "backslash":
        for escaped in ("\\", '"' if dialect.quoted else dialect.delimiter):
            value = value.replace(escaped, "\\" + escaped)
    elif quoted:
        value = value.replace('"', '""')
    return f'"{value}"' if quoted else value


def nasty_value(chance: random.Random, dialect: Dialect) -> str | None:
    if chance.random() < 0.2:
        return None
    value = "".join(chance.choices(PIECES, k=chance.randrange(5)))
    return value if dialect.quoted else value.replace("\n", "").replace("\r", "")


def rewritten(row: dict, dialect: Dialect) -> bytes:
    """The record as the dialect's writer writes its values, quoted where the record has quotes."""
    record, done = row["record"].decode(), ""
    for position, (_, value) in enumerate(row["fields"]):
        done += dialect.delimiter * (position > 0)
        done += written(value, dialect, dialect.quoted and record[len(done) : len(done) + 1] == '"')
    return done.encode()


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("block", [7, 100, 1024 * 1024])
def test_nasty_values_come_back_as_they_were_written(name, block, monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", block)
    dialect, chance = DIALECTS[name], random.Random(block)
    sent = [[nasty_value(chance, dialect) for _ in range(chance.choice([1, 3, 3, 6]))] for _ in range(300)]
    sent = [row for row in sent if dialect.quoted or row != [""]]  # an empty line is no record
    sent = [row for row in sent if dialect.null or row != [None]]
    content = "".join(
        dialect.delimiter.join(written(value, dialect, dialect.quoted) for value in row) + "\n" for row in sent
    )
    assert rows(content.encode(), dialect) == sent


@pytest.mark.parametrize("name", DIALECTS)
def test_no_damage_changes_a_value_in_silence(name, monkeypatch):
    dialect, seed = DIALECTS[name], random.randrange(10**9)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(60):
        monkeypatch.setattr(limits, "BLOCK_BYTES", chance.choice([7, 50, 1024 * 1024]))
        sent = [[nasty_value(chance, dialect) for _ in range(3)] for _ in range(20)]
        content = bytearray(
            "".join(
                dialect.delimiter.join(written(value, dialect, dialect.quoted) for value in row) + "\n" for row in sent
            ).encode()
        )
        for _ in range(chance.randrange(1, 6)):
            at, byte = chance.randrange(len(content)), chance.choice(b'"\\\n\r,|\x01N\xff\xc3x')
            content[at : at + chance.randrange(3)] = bytes([byte][: chance.randrange(2)])
        head = bytes(content[: compression.HEAD_BYTES])
        if compression.is_packed(head) or compression.looks_foreign(head):
            continue  # bytes of zero and one may say so by chance; then the whole file is refused, aloud
        found = records(bytes(content), "tungsten-csv", dialect=dialect)
        for row in found:
            if row["problem"] is None:
                assert rewritten(row, dialect) == row["record"], row
        at_lines = content.split(b"\n")
        for row in found:
            assert b"\n".join(at_lines[row["source_line"] - 1 :]).startswith(row["record"]), row
        covered = sum(row["record"].count(b"\n") + 1 for row in found)
        empty = sum(line in (b"", b"\r") for line in at_lines)
        assert covered <= len(at_lines) <= covered + empty, "a record is missing"


# --- JSON documents

ARCION_SAMPLE = """{
  "tableName": {
    "namespace": {
      "catalog": null,
      "schema": "io_blitzz",
      "hash": 696406511
    },
    "name": "region",
    "hash": -821029210
  },
  "opType": "%s",
  "cursor":
  "{\\"extractorId\\":0,\\"nodeID\\":\\"node1\\",\\"dscId\\":1620787053905,\\"mutId\\":%d,\\"v\\":2}",
    "before": {
      "r_regionkey": "null"
      },
    "exists": {
      "r_regionkey": "1"
    },
    "operationcount": "{\\"insertCount\\":6,\\"updateCount\\":0}"
}
"""
ARCION_DOCUMENT = ARCION_SAMPLE % ("I", 326118)
ON_ONE_LINE = json.dumps(json.loads(ARCION_DOCUMENT)) + "\n"


@pytest.mark.parametrize("block", [7, 1024 * 1024])
def test_seed_samples_of_arcion_are_one_document_each(block, monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", block)
    documents = [
        ARCION_DOCUMENT,
        ON_ONE_LINE,
        (ARCION_SAMPLE % ("U", 326190)).replace("\n", "\r\n"),
        "\n\n",
        ON_ONE_LINE,
        ARCION_SAMPLE % ("D", 326250),
    ]
    content, expected, line = "", [], 1
    for document in documents:
        if document.strip():
            expected.append((line, document.strip().encode()))
        line += document.count("\n")
        content += document
    assert lines(content.encode(), "arcion-json") == expected
    assert lines(b"\xef\xbb\xbf" + content.strip().encode(), "arcion-json") == expected


DAMAGED = {
    "cut document": (b'{"a":1,\n "b":{\n{"c":2}\n', [(1, b'{"a":1,\n "b":{'), (3, b'{"c":2}')]),
    "cut in a text": (b'{"a":"x\n{"c":2}\n', [(1, b'{"a":"x'), (2, b'{"c":2}')]),
    "cut at the end": (b'{"a":1}\n{"b":\n', [(1, b'{"a":1}'), (2, b'{"b":')]),
    "rubbish": (b'rubbish\n{"a":1}\n--\n\n{"b":2}\n', [(1, b"rubbish"), (2, b'{"a":1}'), (3, b"--"), (5, b'{"b":2}')]),
    "rubbish behind": (b'{"a":1} x\n y\n{"b":2}', [(1, b'{"a":1}'), (1, b"x"), (2, b"y"), (3, b'{"b":2}')]),
    "two on a line": (b'{"a":{}}{"b":2}\n', [(1, b'{"a":{}}'), (1, b'{"b":2}')]),
    "cut without line ends": (
        b'{"a":1}{"b":{"c":1{"d":2}{"e":3}',
        [(1, b'{"a":1}'), (1, b'{"b":{"c":1{"d":2}'), (1, b'{"e":3}')],
    ),
    "a brace too many": (b'{"a":1}}\n{"b":2}\n', [(1, b'{"a":1}'), (1, b"}"), (2, b'{"b":2}')]),
    "indented": (
        b'{"a":1}\n  {\n  "b":2\n  }\n {"c":3}\n',
        [(1, b'{"a":1}'), (2, b'{\n  "b":2\n  }'), (5, b'{"c":3}')],
    ),
    "braces in texts": (b'{"a":"}\\"{",\n"b":"{"}\n{}\n', [(1, b'{"a":"}\\"{",\n"b":"{"}'), (3, b"{}")]),
    "an array": (b'[\n{"a":1},\n{"b":2}\n]\n', [(2, b'{"a":1}'), (3, b'{"b":2}')]),
    "an array that was cut": (b'[\n{"a":1},\n{"b":\n', [(2, b'{"a":1}'), (3, b'{"b":'), (1, b"[")]),
    "an array in an array": (b'[[{"a":1}]]\n', [(1, b"["), (1, b'{"a":1}'), (1, b"]")]),
    "a comma without an array": (b'{"a":1},\n{"b":2}\n', [(1, b'{"a":1}'), (1, b","), (2, b'{"b":2}')]),
    "no UTF-8": (b'{"a":"\xe9"}\n{}\n', [(1, b'{"a":"\xe9"}'), (2, b"{}")]),
    "tombstone": (b"null\n{}\n", [(1, b"null"), (2, b"{}")]),
}


@pytest.mark.parametrize("block", [7, 1024 * 1024])
@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_document_does_not_eat_its_neighbours(case, block, monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", block)
    content, expected = DAMAGED[case]
    assert lines(content, "arcion-json") == expected


def test_documents_that_no_line_begins_with_are_cut_too(monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", 64)
    monkeypatch.setattr(limits, "RECORD_BYTES_AT_MOST", 100)
    expected = [(3 * number, b'{"number":\n%d}' % number) for number in range(1, 100)]
    content = b"\n" * 200 + b"".join(b"\n %b\n" % document for _, document in expected)
    assert lines(content, "arcion-json") == [(line + 199, document) for line, document in expected]


def test_no_damage_loses_a_byte_of_documents(monkeypatch):
    seed = random.randrange(10**9)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(100):
        monkeypatch.setattr(limits, "BLOCK_BYTES", chance.choice([7, 200, 1024 * 1024]))
        content = bytearray("".join(chance.choices([ARCION_DOCUMENT, ON_ONE_LINE, "\n"], k=5)).encode())
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(content) + 1)
            content[at : at + chance.randrange(40)] = bytes(chance.choices(b'{}"\\\nx\xff', k=chance.randrange(3)))
        found = lines(bytes(content), "arcion-json")
        assert b"".join(b"".join(record.split()) for _, record in found) == b"".join(content.split())
        at_lines = content.split(b"\n")
        assert all(record.split(b"\n")[0] in at_lines[line - 1] for line, record in found)


# --- what is around documents

DIGITS = [
    "0.10",
    "1E400",
    "-0.0",
    "1234567890123456789012345678901234567",
    "1.00000000000000000000000001",
    "7",
    "-1e-7",
]


def random_json(chance: random.Random, depth: int = 2) -> str:
    """The text of some JSON value, with numbers that no double holds."""
    if depth and chance.random() < 0.3:
        fields = [f'"{name}": {random_json(chance, depth - 1)}' for name in chance.sample("abcd", chance.randrange(4))]
        return f"{{{', '.join(fields)}}}"
    if depth and chance.random() < 0.1:
        return f"[{', '.join(random_json(chance, depth - 1) for _ in range(chance.randrange(3)))}]"
    texts = ["", "{", "}]", '"', "\\", "\n", "}{", "é", "😀", "value", '{"op":"c","after":{}}', "null"]
    texts = [json.dumps(text, ensure_ascii=chance.random() < 0.5) for text in texts]
    return chance.choice([*DIGITS, "null", "true", *texts])


# of each format: a record with a row in it; the row may have columns that are called as wrappings are
RECORD_OF = {
    "datastream-json": '{ROW, "datastream_metadata": {"uuid": "u"}}',
    "datastream-gcs-json": '{"uuid": "u", "source_metadata": {"table": "t"}, "payload": {ROW}}',
    "debezium-json": '{"before": null, "after": {ROW}, "source": {"table": "t"}, "op": "c"}',
    "flattened": '{ROW, "__op": "c", "__table": "t"}',
    "with schema": '{"schema": {"type": "struct"}, "payload": {"before": null, "after": {ROW}, "op": "c"}}',
    "flattened with schema": '{"schema": null, "payload": {ROW, "__deleted": "false"}}',
    "arcion-json": '{"tableName": {"name": "t"}, "opType": "I", "after": {ROW}}',
}


def random_record(chance: random.Random, kind: str) -> str:
    names = ["id", "key", "value", "headers", "a b", *["payload"] * (kind != "datastream-json")]
    chosen = chance.sample(names, chance.randrange(1, 5))
    return RECORD_OF[kind].replace("ROW", ", ".join(f'"{name}": {random_json(chance)}' for name in chosen))


def in_envelope(chance: random.Random, text: str) -> str:
    """The record as a sink of Kafka Connect writes it, under `value`."""
    others = {"key": '{"id": 1, "value": 1.50}', "offset": "7", "timestamp": '"2024-01-05T10:00:00Z"', "headers": "[]"}
    fields = [f'"{name}": {other}' for name, other in others.items() if chance.random() < 0.6] + [f'"value": {text}']
    chance.shuffle(fields)
    return f"{{{', '.join(fields)}}}"


def in_text(chance: random.Random, text: str) -> str:
    return json.dumps(text, ensure_ascii=chance.random() < 0.5)


def over_lines(chance: random.Random, text: str) -> str:
    """The same document over several lines, none of which but the first begins with a brace in column 0."""

    def broken(found):
        return found[0] + "\n " if found[1] and chance.random() < 0.3 else found[0]

    return re.sub(r'"(?:[^"\\]|\\.)*"|([,:{])', broken, text)


WRAPPINGS = [[], [], [in_envelope], [in_text], [in_text, in_envelope], [in_envelope, in_text]]
FILES = {  # of documents: (between them, before, behind)
    "lines": ("\n", "", "\n"),
    "windows": ("\r\n\r\n", "", "\r\n"),
    "behind each other": ("", "", ""),
    "blanks": ("  ", " ", " "),
    "array": (",", "[", "]"),
    "array of lines": (",\n", "[\n", "\n]\n"),
    "commas first": ("\n  , ", "[ ", " ]"),
    "several arrays": ("]\n[", "[", "]"),
}


@pytest.mark.parametrize("kind", RECORD_OF)
@pytest.mark.parametrize("file", FILES)
def test_a_document_comes_out_of_whatever_is_around_it(kind, file, monkeypatch):
    from highwater.formats.documents import STRICT

    seed = random.randrange(10**9)
    print("seed", seed)
    chance, format = random.Random(seed), kind if kind in FORMATS else "debezium-json"
    for _ in range(15):
        monkeypatch.setattr(limits, "BLOCK_BYTES", chance.choice([7, 100, 1024 * 1024]))
        plain, written = [random_record(chance, kind) for _ in range(chance.randrange(1, 12))], []
        for text in plain:
            for wrap in chance.choice(WRAPPINGS):
                text = wrap(chance, text)
            written.append(over_lines(chance, text) if chance.random() < 0.3 else text)
        between, before, behind = FILES[file]
        content = before + between.join(written) + behind
        found = records(content.encode(), format)
        assert [row["problem"] for row in found] == [None] * len(plain), content
        assert [row["record"].decode() for row in found] == written
        said = [dict(row["fields"])["document"] if row["fields"] else row["record"].decode() for row in found]
        assert [STRICT.decode(text) for text in said] == [STRICT.decode(text) for text in plain]
        at, lines = len(before), []
        for text in written:
            lines.append(content.count("\n", 0, at) + 1)
            at += len(text) + len(between)
        assert [row["source_line"] for row in found] == lines


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_was_cut_is_never_taken_for_a_whole_one(file, monkeypatch):
    seed = random.randrange(10**9)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(60):
        monkeypatch.setattr(limits, "BLOCK_BYTES", chance.choice([7, 100, 1024 * 1024]))
        plain = [random_record(chance, "debezium-json") for _ in range(4)]
        written = [in_envelope(chance, text) if chance.random() < 0.5 else text for text in plain]
        between, before, behind = FILES[file]
        content = (before + between.join(written) + behind).encode()
        cut = content[: chance.randrange(1, len(content))]
        found = records(cut, "debezium-json")
        sound = [row["record"].decode() for row in found if row["problem"] is None]
        assert sound == written[: len(sound)]
        rest = cut[len((before + between.join(written[: len(sound)])).encode()) :].strip(b" ,\r\n]")
        is_open = before.strip() == "[" and cut.rstrip()[-1:] != b"]"
        assert any(row["problem"] for row in found) == (bool(rest.strip(b"[")) or is_open), (cut, found)


def test_columns_of_a_row_are_never_taken_for_a_wrapping():
    sent = [
        {"key": 1, "value": {"id": 2, "__op": "c"}, "__op": "u"},
        {"id": 1, "value": '{"op": "c", "after": {}}', "__deleted": "false"},
        {"op": "c", "after": {"value": {"op": "c", "after": {}}}, "value": {"op": "d", "before": {}}},
        {"schema": {}, "payload": {"value": {"__op": "c"}, "__op": "d"}},
        # no records of the format: they stay as they are, and are not believed
        {"key": 1, "value": "text"},
        {"key": 1, "value": {"id": 1}},
        {"id": 1, "value": {"ts_ms": 1}, "offset": 3},
        {"value": 7, "offset": 1},
    ]
    found = records("\n".join(map(json.dumps, sent)).encode(), "debezium-json")
    assert [json.loads(row["record"]) for row in found] == sent
    assert all(row["fields"] is None and row["problem"] is None for row in found)


def test_lines_that_are_wrapped_and_lines_that_are_not_stand_each_on_its_own():
    row = '{"op": "c", "after": {"id": 1}}'
    content = f'{row}\n{{"value": {row}}}\n{{"value": {row}\n{row}\n"x"\n'
    found = records(content.encode(), "debezium-json")
    assert [(row["source_line"], bool(row["fields"]), code(row["problem"])) for row in found] == [
        (1, False, None),
        (2, True, None),
        (3, False, "malformed_record"),
        (4, False, None),
        (5, False, "malformed_record"),
    ]


@pytest.mark.parametrize(
    "tombstone",
    [
        "null",
        '{"key": {"id": 1}, "value": null}',
        '{"key": {"id": 1}, "value": null, "offset": 1, "headers": []}',
        '{"value": {"schema": null, "payload": null}, "offset": 1}',
        '{"schema": null, "payload": null}',
        '"{\\"value\\": null, \\"topic\\": \\"t\\"}"',
    ],
)
def test_a_tombstone_in_any_wrapping_is_no_record(tombstone):
    row = '{"op": "d", "before": {}}'
    for content in (f"{tombstone}\n{row}\n", f"[{row},{tombstone}]", f"{row} {tombstone}"):
        assert [row["record"].decode() for row in records(content.encode(), "debezium-json")] == [row]


def test_a_declared_wrapping_has_another_name():
    row, other = '{"op": "c", "after": {"n": 1.10}}', '{"ts_ms": 1}'
    content = f'{{"RECORD_CONTENT": {row}, "RECORD_METADATA": {{}}}}\n{row}\n{{"RECORD_CONTENT": {other}, "x": 1}}\n'
    found = records(content.encode(), "debezium-json", wrapping="RECORD_CONTENT")
    assert [row["fields"] and dict(row["fields"])["document"] for row in found] == [row, None, other]


def test_half_a_character_inside_a_text_is_told():
    (row,) = records(rb'{"value": "{\"op\":\"c\",\"after\":{\"a\":\"\ud800\"}}", "offset": 1}', "debezium-json")
    assert (row["fields"], code(row["problem"])) == (None, "not_utf8")


HALF = r"half of a character stands there (\ud800 to \udfff)"


@pytest.mark.parametrize(
    "record, detail",
    [
        ('{"a":}', "malformed_record: character 6: found '}' where a value must stand"),
        ('{"a":1 "b":2}', "malformed_record: character 8: found '\"' where a comma or the end must stand"),
        ('{"a" 1}', "malformed_record: character 6: found '1' where a colon must stand"),
        ('{"a":1', "malformed_record: character 7: found the end of the record where a comma or the end must stand"),
        ('{"é":tru}', "malformed_record: character 6: found 't' where a value must stand"),
        ("{'a':1}", "malformed_record: character 2: found ''' where a name in double quotes must stand"),
        ('{"a":"b', "malformed_record: character 6: found '\"' whose text has no end"),
        ('{"a":"b\tc"}', "malformed_record: character 8: found '\t' inside a text, where it must be escaped"),
        ('{"a":\n [tru]}', "malformed_record: line 2, character 3: found 't' where a value must stand"),
        ('{"a":NaN}', "malformed_record: character 6: found NaN, which is no number in JSON"),
        ("7", "malformed_record: a number stands where an object must"),
        ('"a"', "malformed_record: a text stands where an object must"),
        (r'{"a":"\ud800"}', f"not_utf8: character 7: {HALF}"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "malformed_record: its values are nested more than 1,000 levels deep"),
        ("rubbish", "malformed_record: character 1: found 'r' where a value must stand"),
    ],
)
@pytest.mark.parametrize("format", sorted(RECORD_OF.keys() & FORMATS))
def test_a_record_that_does_not_parse_says_what_was_found_and_where(format, record, detail):
    assert records(record.encode(), format)[0]["problem"] == detail


def test_a_record_that_is_no_text_says_which_byte():
    (row,) = records(b'{"op":"c","after":{"a":"\xe9"}}', "debezium-json")
    assert row["problem"] == "not_utf8: byte 25: 0xe9 is no character of UTF-8"


# --- tables that records name


def named(format: str, *documents, schema=None):
    content = b"".join((d if isinstance(d, bytes) else json.dumps(d).encode()) + b"\n" for d in documents)
    return [row["source_table"] for row in records(content, format, table_in_records=True, schema=schema)]


def arcion(table, **namespace):
    return {"tableName": {"name": table, "namespace": namespace}}


def test_the_table_that_a_record_of_arcion_names():
    documents = [
        arcion("NATION", catalog="TPCH", schema="default_schema"),
        arcion("NATION", catalog="TPCH", schema=None),
        arcion("NATION", catalog="x", schema="other"),
        arcion("NATION", catalog=None, schema=None),
    ]
    assert named("arcion-json", *documents) == ["nation", "nation", "other.nation", "nation"]
    assert named("arcion-json", *documents, schema="tpch") == ["nation", "nation", "other.nation", "nation"]
    assert named("arcion-json", ARCION_DOCUMENT.encode(), schema="tpch") == ["io_blitzz.region"]


def test_the_table_that_a_record_of_debezium_names():
    source = {"db": "shop", "schema": "public", "table": "Customers"}
    documents = [
        {"source": source},
        {"schema": {}, "payload": {"source": source}},
        {"source": {**source, "schema": None}},
    ]
    assert named("debezium-json", *documents) == ["customers", "customers", "shop.customers"]
    assert named("debezium-json", *documents, schema="shop") == ["public.customers"] * 2 + ["customers"]
    assert named("debezium-json", {"__op": "d"}, b"{", b'{"source":7}', b'{"source":{"table":7}}') == [None] * 4


def test_the_table_that_a_record_of_datastream_names():
    documents = [
        {"source_metadata": {"table": "customers", "database": "shop"}, "payload": {}},
        {"source_metadata": {"table": "customers", "schema": "crm", "database": "shop"}},
        b'{"source_metadata":{"table":"customers","database":"shop"},"payload":{"x":NaN,"y":"\\ud800"}}',
    ]
    assert named("datastream-gcs-json", *documents, schema="shop") == ["customers", "crm.customers", "customers"]
    assert named("datastream-gcs-json", b"[" * 100_000) == [None, None]


def test_tables_of_one_name_are_told_apart():
    tables = [
        ("s", "t"),
        ("s", "T"),
        ("a", "t"),
        ("A", "t"),
        ("a", "T"),
        (None, "t"),
        (None, "T"),
        ("s", "t"),
        ("b", "T"),
    ]
    names = limits.TableNames()
    found = [names.name_of(*table) for table in tables]
    assert found == ["t", '"s"."T"', "a.t", '"A"."t"', '"a"."T"', "t", '"T"', "t", "b.t"]
    assert names.name_of("s", None) is names.name_of("s", "") is names.name_of("s", 7) is names.name_of("s", {}) is None
    # whatever came before, one table has one name in what comes later
    later = limits.TableNames(owners=names.seen)
    assert {table: later.name_of(*table) for table in reversed(tables)} == dict(zip(tables, found, strict=True))
    # a declared schema has the bare names
    assert limits.TableNames("a").name_of("s", "t") == "s.t" and limits.TableNames("A").name_of("a", "t") == "t"


def test_records_that_are_no_rows_name_no_table():
    source = {"db": "shop", "table": "orders"}
    documents = [
        {"status": "BEGIN", "id": "571:1", "event_count": None, "data_collections": None, "ts_ms": 1},
        {"ts_ms": 1},
        {"op": "m", "source": {**source, "table": ""}, "message": {"prefix": "p", "content": "aGk="}},
        {"op": "m", "source": source, "message": {"prefix": "p", "content": "aGk="}},
        {"source": source, "databaseName": "shop", "ddl": "ALTER TABLE orders", "tableChanges": []},
        {"key": None, "value": {"ts_ms": 1}, "offset": 1},
        {"schema": {}, "payload": {"ts_ms": 1}},
    ]
    assert named("debezium-json", *documents) == [None] * len(documents)


def test_flattened_records_name_their_table():
    row = {"id": 1, "__op": "c"}
    documents = [
        {**row, "__table": "Orders"},
        {**row, "__source_table": "Orders", "__source_schema": "Public"},
        {**row, "__table": "Orders", "__db": "shop", "__schema": "archive"},
        {"schema": {}, "payload": {**row, "__table": "items", "__db": "shop"}},
        {"value": {**row, "__table": "items", "source": "own", "payload": "own"}, "offset": 1},
    ]
    assert named("debezium-json", *documents) == ["orders", "orders", "archive.orders", "items", "items"]


def test_without_the_layout_records_name_no_table():
    assert records(ON_ONE_LINE.encode(), "arcion-json")[0]["source_table"] is None


# --- Avro


def logical(kind: str, name: str, **more):
    return {"type": kind, "logicalType": name, **more}


def optional(kind):
    return ["null", kind]


NESTED = {
    "type": "record",
    "name": "nested",
    "fields": [
        {"name": "nestedArray", "type": optional({"type": "array", "items": optional("nested")})},
        {"name": "elementValue", "type": optional("long")},
    ],
}
TIMESTAMP_TZ = {
    "type": "record",
    "name": "timestampTz",
    "fields": [
        {"name": "timestamp", "type": logical("long", "timestamp-micros")},
        {"name": "offset", "type": logical("int", "time-millis")},
    ],
}
AVRO = {  # name: (type, written value, value in the JSON document)
    "i": ("int", -7, -7),
    "l": ("long", 2**63 - 1, 2**63 - 1),
    "b": ("boolean", True, True),
    "s": ("string", "漢 \x00", "漢 \x00"),
    "d": ("double", 0.1, 0.1),
    "nan": ("double", math.nan, "NaN"),
    "inf": ("double", -math.inf, "-Infinity"),
    "y": ("bytes", b"\x00\xff", base64.b64encode(b"\x00\xff").decode()),
    "e": ({"type": "enum", "name": "mood", "symbols": ["SAD", "GLAD"]}, "GLAD", "GLAD"),
    "number": (logical("string", "number"), "18446744073709551615", "18446744073709551615"),
    "j": (logical("string", "json"), '{"a": 1}', '{"a": 1}'),
    "u": (logical("string", "uuid"), "no uuid", "no uuid"),
    "price": (logical("bytes", "decimal", precision=38, scale=9), Decimal("-0.000000001"), "-0.000000001"),
    "big": (logical("bytes", "decimal", precision=38), Decimal("1" * 38), "1" * 38),
    "day": (logical("int", "date"), date(2024, 2, 29), "2024-02-29"),
    "millis": (
        logical("long", "timestamp-millis"),
        datetime(2021, 12, 25, 5, 42, 4, 408000, timezone.utc),
        "2021-12-25T05:42:04.408000",
    ),
    "micros": (
        logical("long", "timestamp-micros"),
        datetime(1, 1, 1, tzinfo=timezone.utc),
        "0001-01-01T00:00:00.000000",
    ),
    "early": (logical("long", "timestamp-micros"), -1, "1969-12-31T23:59:59.999999"),
    "infinite": (logical("long", "timestamp-micros"), 9223372036825200000, "infinity"),
    "minus": (logical("long", "timestamp-micros"), -9223372036832400000, "-infinity"),
    "far": (logical("long", "timestamp-micros"), 253402300800 * 10**6, "10000-01-01T00:00:00.000000"),
    "last": (logical("long", "timestamp-millis"), 2**63 - 1, "292278994-08-17T07:12:55.807000"),
    "t": (logical("long", "time-micros"), time(1, 2, 3, 4), "01:02:03.000004"),
    "tm": (logical("int", "time-millis"), time(1, 2, 3, 4000), "01:02:03.004000"),
    "interval": (logical("long", "time-interval-micros"), -(838 * 3600 * 10**6 + 1), "-838:00:00.000001"),
    "tz": (
        TIMESTAMP_TZ,
        {"timestamp": datetime(2021, 12, 25, 23, 0, tzinfo=timezone.utc), "offset": time(5, 30)},
        "2021-12-26T04:30:00.000000+05:30",
    ),
    "tz_west": ("timestampTz", {"timestamp": 0, "offset": -3600000}, "1969-12-31T23:00:00.000000-01:00"),
    "tz_infinite": ("timestampTz", {"timestamp": 9223372036825200000, "offset": 0}, "infinity"),
    "list": (
        NESTED,
        {"nestedArray": [{"elementValue": 1}, None, {"nestedArray": [{"elementValue": None}, {"nestedArray": []}]}]},
        [1, None, [None, []]],
    ),
    "either": (["null", "string", logical("long", "timestamp-micros")], 1, "1970-01-01T00:00:00.000001"),
    "map": ({"type": "map", "values": "double"}, {"x": math.inf}, {"x": "Infinity"}),
    "nanos": (logical("long", "timestamp-nanos"), 1, "1970-01-01T00:00:00.000000001"),
    "local_nanos": (logical("long", "local-timestamp-nanos"), -(10**9), "1969-12-31T23:59:59.000000"),
    "uuid": (
        {"type": "fixed", "logicalType": "uuid", "name": "u", "size": 16},
        uuid.UUID(int=5).bytes,
        str(uuid.UUID(int=5)),
    ),
    "duration": (
        {"type": "fixed", "logicalType": "duration", "name": "span", "size": 12},
        b"\1\0\0\0\2\0\0\0\xbb\x0b\0\0",
        "P1M2DT3.003S",
    ),
}


def avro_file(schema: dict, documents: list[dict], **options) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), documents, **options)
    return file.getvalue()


def envelope(payload_fields: list[dict]) -> dict:
    source = [{"name": name, "type": "string"} for name in ("table", "database")]
    return {
        "type": "record",
        "name": "envelope",
        "fields": [
            {"name": "uuid", "type": "string"},
            {"name": "read_timestamp", "type": logical("long", "timestamp-millis")},
            {"name": "sort_keys", "type": {"type": "array", "items": ["string", "long"]}},
            {"name": "source_metadata", "type": {"type": "record", "name": "source", "fields": source}},
            {"name": "payload", "type": optional({"type": "record", "name": "row", "fields": payload_fields})},
        ],
    }


def event(payload) -> dict:
    return {
        "uuid": "u",
        "read_timestamp": 1640410924408,
        "sort_keys": [1640410924408, "mysql-bin.000014", 98826],
        "source_metadata": {"table": "Customers", "database": "shop"},
        "payload": payload,
    }


def avro_documents(fields, payloads, **options):
    found = records(avro_file(envelope(fields), [event(payload) for payload in payloads]), "datastream-avro", **options)
    return [json.loads(row["record"]) for row in found], found


@pytest.mark.parametrize("block", [7, 1024 * 1024])
def test_avro_values_of_every_type(block, monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", block)
    fields = [{"name": name, "type": kind} for name, (kind, _, _) in AVRO.items()]
    row = {name: value for name, (_, value, _) in AVRO.items()}
    (first, second), found = avro_documents(fields, [row, row], table_in_records=True)
    assert first == second
    assert first["payload"] == {name: expected for name, (_, _, expected) in AVRO.items()}
    assert first["sort_keys"] == [1640410924408, "mysql-bin.000014", 98826]
    assert first["read_timestamp"] == "2021-12-25T05:42:04.408000"
    assert [(row["source_line"], row["source_table"], row["problem"]) for row in found] == [
        (1, "customers", None),
        (2, "customers", None),
    ]
    assert found[0]["record"].startswith(b'{"uuid":"u","read_timestamp":"2021')


def test_avro_nulls_and_a_missing_payload():
    names = [name for name in AVRO if name != "either"]
    fields = [
        {"name": name, "type": kind if isinstance(kind := AVRO[name][0], list) else optional(kind)} for name in names
    ]
    (nulls, missing), _ = avro_documents(fields, [dict.fromkeys(names), None])
    assert nulls["payload"] == dict.fromkeys(names) and missing["payload"] is None


def test_a_text_of_avro_that_is_no_utf8_rejects_its_record_alone():
    fields = [{"name": "s", "type": "string"}]
    content = avro_file(envelope(fields), [event({"s": text}) for text in ("aaaa", "bbbb", "c")])
    found = records(content.replace(b"bbbb", b"bb\xe9b"), "datastream-avro")
    problem = "not_utf8: field 'payload.s': 0x6262e962 is no text in UTF-8"
    assert [row["problem"] for row in found] == [None, problem, None]
    assert [json.loads(row["record"])["payload"]["s"] for row in found] == ["aaaa", "bb\ufffdb", "c"]


def test_a_row_of_columns_named_like_a_timestamp_stays_a_row():
    fields = [{"name": "timestamp", "type": "long"}, {"name": "offset", "type": "long"}]
    (document,), _ = avro_documents(fields, [{"timestamp": 1, "offset": 2}])
    assert document["payload"] == {"timestamp": 1, "offset": 2}


def test_a_broken_avro_file_is_unreadable():
    content = avro_file(envelope([]), [event({})] * 20, codec="deflate")
    assert len(records(content, "datastream-avro")) == 20
    header = len(avro_file(envelope([]), [], codec="deflate"))
    for size in range(len(content)):
        if size != header:
            with pytest.raises(limits.UnreadableFile):
                records(content[:size], "datastream-avro")
    for broken in (b"{}\n", content[:-20] + b"x" * 20, content + b"x"):
        with pytest.raises(limits.UnreadableFile, match="no sound Avro file"):
            records(broken, "datastream-avro")


# --- Parquet


def parquet_file(table: pyarrow.Table, **options) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, **options)
    return file.getvalue()


def stamps(*values, unit="us", zone=None):
    return pyarrow.array(values, pyarrow.timestamp(unit, zone))


PARQUET = {  # name: (values, texts)
    "Op": (["I", "D"], ["I", "D"]),
    "i": (pyarrow.array([1, -1], pyarrow.int8()), ["1", "-1"]),
    "u": (pyarrow.array([2**64 - 1, 0], pyarrow.uint64()), ["18446744073709551615", "0"]),
    "b": ([True, False], ["true", "false"]),
    "price": (
        pyarrow.array([Decimal("1.50"), Decimal("-0.000000001")], pyarrow.decimal128(38, 9)),
        ["1.500000000", "-0.000000001"],
    ),
    "x": (pyarrow.array([0.1, 1e300]), ["0.1", "1e+300"]),
    "f": (pyarrow.array([0.1, math.nan], pyarrow.float32()), ["0.1", "NaN"]),
    "h": (pyarrow.array(numpy.array([0.5, math.inf], numpy.float16)), ["0.5", "Infinity"]),
    "day": ([date(2024, 2, 29), date(9999, 12, 31)], ["2024-02-29", "9999-12-31"]),
    "s": (stamps(0, 1, unit="s"), ["1970-01-01 00:00:00.000000", "1970-01-01 00:00:01.000000"]),
    "ms": (stamps(0, 1, unit="ms"), ["1970-01-01 00:00:00.000000", "1970-01-01 00:00:00.001000"]),
    "us": (stamps(-1, 253402300800 * 10**6), ["1969-12-31 23:59:59.999999", "10000-01-01 00:00:00.000000"]),
    "ns": (stamps(1000, 1, unit="ns"), ["1970-01-01 00:00:00.000001", "1970-01-01 00:00:00.000000001"]),
    "tz": (stamps(0, 1, zone="+02:00"), ["1970-01-01 00:00:00.000000", "1970-01-01 00:00:00.000001"]),
    "t": ([time(1, 2, 3, 4), time(0)], ["01:02:03.000004", "00:00:00.000000"]),
    "y": ([b"\x00\xff", b""], ["AP8=", ""]),
    "fixed": (pyarrow.array([b"ab", b"cd"], pyarrow.binary(2)), ["YWI=", "Y2Q="]),
    "word": (pyarrow.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
    "n": (
        [{"a": [1, None], "d": Decimal("1.0"), "y": b"x"}, {"a": [], "d": None, "y": None}],
        ['{"a":[1,null],"d":"1.0","y":"eA=="}', '{"a":[],"d":null,"y":null}'],
    ),
}


@pytest.mark.parametrize("block", [7, 1024 * 1024])
def test_parquet_values_of_every_type(block, monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", block)
    table = pyarrow.table({name: values for name, (values, _) in PARQUET.items()})
    nulls = pyarrow.table([pyarrow.nulls(1, kind.type) for kind in table.schema], schema=table.schema)
    found = records(parquet_file(pyarrow.concat_tables([table, nulls]), row_group_size=2), "dms-parquet")
    expected = [{name: texts[row] for name, (_, texts) in PARQUET.items()} for row in range(2)]
    expected.append(dict.fromkeys(PARQUET))
    assert [dict(row["fields"]) for row in found] == expected
    assert [json.loads(row["record"]) for row in found] == expected
    assert [(row["source_line"], row["problem"]) for row in found] == [(1, None), (2, None), (3, None)]


def test_parquet_timestamps_of_96_bits():
    table = pyarrow.table({"t": stamps(253402214400 * 10**6)})
    (row,) = records(parquet_file(table, use_deprecated_int96_timestamps=True), "dms-parquet")
    assert dict(row["fields"]) == {"t": "9999-12-31 00:00:00.000000"}


def test_parquet_without_rows_is_fine():
    assert records(parquet_file(pyarrow.table({"a": pyarrow.array([], pyarrow.int8())})), "dms-parquet") == []


def test_a_broken_parquet_file_is_unreadable():
    content = parquet_file(pyarrow.table({"a": list(range(100))}))
    twice = parquet_file(pyarrow.table([[1], [2]], names=["a", "a"]))
    for broken in (b"", b"PAR1", content[:-1], content[: len(content) // 2], twice):
        with pytest.raises(limits.UnreadableFile):
            records(broken, "dms-parquet")


def storage(kind, *values):
    return pyarrow.ExtensionArray.from_storage(kind, pyarrow.array(values, kind.storage_type))


OTHER_TYPES = {  # name: (values, texts)
    "uuid": (storage(pyarrow.uuid(), uuid.UUID(int=5).bytes, None), ["00000000-0000-0000-0000-000000000005", None]),
    "json": (storage(pyarrow.json_(), '{"a": 1}', None), ['{"a": 1}', None]),
    "bool8": (storage(pyarrow.bool8(), 1, 0), ["true", "false"]),
    "opaque": (storage(pyarrow.opaque(pyarrow.binary(), "x", "y"), b"a", None), ["YQ==", None]),
    "tensor": (storage(pyarrow.fixed_shape_tensor(pyarrow.int32(), [2]), [1, 2], None), ["[1,2]", None]),
    "time32": (pyarrow.array([1, None], pyarrow.time32("ms")), ["00:00:00.001", None]),
    "time64": (pyarrow.array([1, None], pyarrow.time64("ns")), ["00:00:00.000000001", None]),
    "duration": (pyarrow.array([-90061, 1], pyarrow.duration("s")), ["-25:01:01.000000", "00:00:01.000000"]),
    "duration_ns": (pyarrow.array([1, 1000], pyarrow.duration("ns")), ["00:00:00.000000001", "00:00:00.000001"]),
    "large": (pyarrow.array(["a", None], pyarrow.large_string()), ["a", None]),
    "large_binary": (pyarrow.array([b"a", None], pyarrow.large_binary()), ["YQ==", None]),
    "view": (pyarrow.array(["a" * 20, None], pyarrow.string_view()), ["a" * 20, None]),
    "binary_view": (pyarrow.array([b"\xff", None], pyarrow.binary_view()), ["/w==", None]),
    "list_view": (pyarrow.array([[1, None], None], pyarrow.list_view(pyarrow.int32())), ["[1,null]", None]),
    "fixed_list": (pyarrow.array([[1, 2], None], pyarrow.list_(pyarrow.int32(), 2)), ["[1,2]", None]),
    "map": (
        pyarrow.array([[("a", 0.1)], None], pyarrow.map_(pyarrow.string(), pyarrow.float32())),
        ['[["a",0.1]]', None],
    ),
    "struct": (pyarrow.array([{"a": [math.nan]}, None]), ['{"a":["NaN"]}', None]),
    "decimal256": (
        pyarrow.array([Decimal("1" * 60), None], pyarrow.decimal256(76, 2)),
        ["1" * 60 + ".00", None],
    ),
    "far": (stamps(2**62, -(2**62)), ["148108-07-06 14:00:27.387904", "-144169-06-28 09:59:32.612096"]),
    "far_nested": (
        pyarrow.array([[2**62], None], pyarrow.list_(pyarrow.timestamp("us"))),
        ['["148108-07-06 14:00:27.387904"]', None],
    ),
    "nested_ns": (
        pyarrow.array([[2**62], []], pyarrow.list_(pyarrow.timestamp("ns"))),
        ['["2116-02-20 23:53:38.427387904"]', "[]"],
    ),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_parquet_values_of_other_types(name):
    values, texts = OTHER_TYPES[name]
    for stored in (values, pyarrow.concat_arrays([values, values])[len(values) :]):
        for keeps_types in (True, False):
            found = records(parquet_file(pyarrow.table({"v": stored}), store_schema=keeps_types), "parquet")
            if keeps_types or name not in ("json", "bool8", "opaque", "duration", "duration_ns"):
                assert [dict(row["fields"])["v"] for row in found] == texts


LATIN = pyarrow.array([b"a", b"b\xe9", None, b"c"])


@pytest.mark.parametrize(
    "values, problem",
    [
        (LATIN.view(pyarrow.string()), "not_utf8: column 's' (string): byte 2 is 0xe9, no character of UTF-8"),
        (
            pyarrow.ListArray.from_arrays([0, 1, 2, 3, 4], LATIN.view(pyarrow.string())),
            "malformed_record: column 's' (list<element: string>): Invalid UTF8 payload",
        ),
    ],
)
def test_one_value_that_has_no_text_rejects_its_row_alone(values, problem):
    found = records(parquet_file(pyarrow.table({"id": [1, 2, 3, 4], "s": values})), "parquet")
    assert [row["problem"] for row in found] == [None, problem, None, None]
    assert [row["fields"] is None for row in found] == [False, True, False, False]
    assert json.loads(found[1]["record"]) == {"id": "2", "s": None}


def test_a_column_that_cannot_be_read_is_named(monkeypatch):
    from highwater.formats import parquet

    words = pyarrow.DictionaryArray.from_arrays([0, 1, 0, 1], LATIN[:2].view(pyarrow.string()))
    with pytest.raises(limits.UnreadableFile, match=r"its column 's' \(dictionary<.*\) cannot be read: Invalid UTF8"):
        records(parquet_file(pyarrow.table({"id": [1, 2, 3, 4], "s": words})), "parquet")
    monkeypatch.setattr(parquet.types, "is_nested", lambda kind: False)  # a type that nobody has thought of
    with pytest.raises(limits.UnreadableFile, match="its column 's' has the type list<element: int64>, which is not"):
        records(parquet_file(pyarrow.table({"s": [[1]]})), "parquet")


# --- cases that producers' users met, by their ids

CASES = FIXTURES / "cases"


def of_case(case: str, file: str, format: str = "debezium-json", **options):
    (path,) = (CASES / case).glob(f"**/{file}")
    return records(path.read_bytes(), format, **options)


def test_dbz_kafka_sink_wrapped():
    for file, names in {"*.jsonl": "parcels", "*pallets*.json": "pallets"}.items():
        found = of_case("dbz-kafka-sink-wrapped", file, table_in_records=True)
        said = [json.loads(dict(row["fields"] or {}).get("document", row["record"])) for row in found]
        assert [row["after"] for row in said] == [{"id": 1, "note": "n1"}, {"id": 2, "note": "n2"}]
        assert [(row["source_table"], row["problem"]) for row in found] == [(names, None)] * 2


def test_dbz_many_schemas_and_odd_table_names():
    found = of_case("dbz-many-schemas-and-odd-table-names", "0001.json", table_in_records=True)
    expected = ["orders", "archive.orders", "order details", "order-items", None, None, None]
    assert [row["source_table"] for row in found] == expected
    assert [row["source_line"] for row in found] == [1, 2, 3, 4, 5, 6, 7], "none is lost"


@pytest.mark.parametrize("file", ["*flat.json", "*flat-with-schema.json"])
def test_repro_4_flattened_records_name_their_table(file):
    found = of_case("repro-4", file, table_in_records=True)
    assert {row["source_table"] for row in found} == {"orders"}


def test_parquet_uuid():
    found = of_case("parquet-uuid", "e.parquet", "parquet")
    assert [dict(row["fields"]) for row in found] == [
        {"id": "1", "u": "00000000-0000-0000-0000-000000000005"},
        {"id": "2", "u": None},
    ]
