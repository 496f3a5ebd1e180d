"""Cutting files into records, without Spark."""

import gzip
import io
import tracemalloc

import pytest
from highwater import readers


def records(content: bytes, format="datastream-json"):
    stream = readers.CountedStream(io.BytesIO(content))
    return [row for batch in readers.read(stream, format) for row in batch.to_pylist()]


def lines(content: bytes):
    return [(row["source_line"], row["record"]) for row in records(content)]


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", []),
        (b"\n \n\t\n", []),
        (b'{"a":1}', [(1, b'{"a":1}')]),
        (b'{"a":1}\n\n{"b":2}\n', [(1, b'{"a":1}'), (3, b'{"b":2}')]),
        (b'{"a":1}\r\n{"b":2}\r\n', [(1, b'{"a":1}'), (2, b'{"b":2}')]),
        (b"\xef\xbb\xbf{}\n", [(1, b"{}")]),
        (b"\xff\xfe\n{}\n", [(1, b"\xff\xfe"), (2, b"{}")]),
        (b"a\x00b\n", [(1, b"a\x00b")]),
        (gzip.compress(b"{}\n") + gzip.compress(b"[]\n"), [(1, b"{}"), (2, b"[]")]),
    ],
)
def test_json_lines(content, expected):
    assert lines(content) == expected


def test_line_numbers_are_true_across_blocks(monkeypatch):
    monkeypatch.setattr(readers, "BLOCK_BYTES", 7)
    content = b"\n".join(b"x" * (number % 13) for number in range(1, 200))
    expected = [(number, b"x" * (number % 13)) for number in range(1, 200) if number % 13]
    assert lines(content) == expected


@pytest.mark.parametrize("content", [gzip.compress(b"{}\n" * 100)[:-9], gzip.compress(b"{}\n") + b"rubbish"])
def test_a_broken_gzip_file_is_unreadable(content):
    with pytest.raises(readers.UnreadableFile):
        records(content)


def test_a_record_beyond_the_limit_is_named_by_its_line(monkeypatch):
    monkeypatch.setattr(readers, "RECORD_BYTES_AT_MOST", 1024 * 1024)
    monkeypatch.setattr(readers, "BLOCK_BYTES", 64 * 1024)
    with pytest.raises(readers.UnreadableFile, match="line 2 is longer than 1 MiB"):
        records(b"{}\n" + b"x" * (2 * 1024 * 1024))


class Endless(io.RawIOBase):
    """`size` bytes of lines that nobody holds."""

    def __init__(self, size):
        self.left = size

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), self.left)
        line = b'{"id": 1234567, "name": "some text of a usual length"}\n'
        buffer[:count] = (line * (count // len(line) + 1))[:count]
        self.left -= count
        return count


def peak_megabytes(size: int) -> float:
    tracemalloc.start()
    for _ in readers.read(readers.CountedStream(Endless(size)), "datastream-json"):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def test_memory_does_not_grow_with_the_file():
    assert peak_megabytes(40_000_000) < 1.5 * peak_megabytes(10_000_000) < 120


CSV = b'"ID","NAME"\r\n1,plain\r\n2,"say ""hi"", ok"\r\n3,\r\n4,""\r\n5,"two\nlines"\r\n6,null\r\n'


def test_csv_tells_null_from_the_empty_text_and_keeps_line_ends_in_values():
    rows = records(CSV, "csv")
    assert [dict(row["fields"])["NAME"] for row in rows] == ["plain", 'say "hi", ok', None, "", "two\nlines", "null"]
    assert [row["source_line"] for row in rows] == [2, 3, 4, 5, 6, 8]
    assert rows[4]["record"] == b'5,"two\nlines"'


@pytest.mark.parametrize(
    "bad, problem",
    [
        (b"7,a,b", "wrong_column_count"),
        (b"7", "wrong_column_count"),
        (b'7,"open', "malformed_record"),
        (b"7,\xe9", "not_utf8"),
    ],
)
def test_csv_passes_a_bad_record_on_with_its_problem(bad, problem):
    rows = records(b"ID,NAME\n1,a\n" + bad + b"\n", "csv")
    assert [(row["problem"], row["record"]) for row in rows] == [(None, b"1,a"), (problem, bad)]


@pytest.mark.parametrize("content", [b"", b"ID,NAME\n"])
def test_csv_without_records_is_fine(content):
    assert records(content, "csv") == []


@pytest.mark.parametrize("header", [b"A,A\n1,2\n", b"A,\n1,2\n", b"\xff,B\n1,2\n"])
def test_csv_without_a_header_is_unreadable(header):
    with pytest.raises(readers.UnreadableFile, match="header"):
        records(header, "csv")
