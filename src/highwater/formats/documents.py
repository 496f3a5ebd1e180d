"""Cut files of JSON documents into records: lines, documents over many lines, arrays, or one behind the other.

Whatever the producer's delivery has put around a document (an envelope under `value`, a JSON string) is taken off; the
record keeps the exact bytes that were delivered.
"""

import json
import re
from collections.abc import Callable, Iterator
from json.decoder import scanstring

import orjson
import pyarrow

from highwater.formats import debezium, records
from highwater.formats.debezium import row_of_connect
from highwater.formats.declared import named_in, record_test
from highwater.formats.formats import DEBEZIUM, ReadOptions
from highwater.formats.records import RECORDS, TableNames, record_batch, too_long

TOKEN = re.compile(rb'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*("?)|[{}]|\n\{')
BLANKS = re.compile(rb"[ \t\r\n]*")
SCALAR = re.compile(rb'(?:null|true|false|-?[0-9][0-9.eE+-]*)(?=[ \t\r]*(?:[\n{\["]|\Z))')
IN_ARRAY = re.compile(rb'[^,\]\n{"]+')
REST_OF_LINE = re.compile(rb"[^\n]+")
SPACE = re.compile(r"[ \t\r\n]*")
HALF = re.compile("[\ud800-\udfff]")

# what a sink of Kafka Connect writes beside `value`; those behind the first two tell it from a row
TRANSPORT = {"offset", "timestamp", "timestampType", "partition", "topic", "headers", "metadata"}
ENVELOPE = {"key", "keySchema", "value", "valueSchema"} | TRANSPORT
LAYERS = 5
TOO_DEEP = "malformed_record: its values are nested more than 1,000 levels deep"

Piece = tuple[int, bytes]


class Cutter:
    """Cuts a text that comes in parts into documents, and into what is between them.

    A `{` in column 0, or right behind a `}`, starts a document, whatever came before it: a document that was cut ends
    there, as it is. Elements of an array are documents. What is between documents is a piece too, up to the line's end.

    Attributes:
        text: what has not become pieces yet. line: the number of its first line. arrays: lines of the open `[`.
    """

    def __init__(self):
        self.text, self.line, self.arrays = b"", 1, []
        self._at, self._depth, self._closed, self._counted = 0, 0, 0, 0

    def cut(self, data: bytes, line: int, whole: bool) -> list[Piece]:
        """Return the line and the bytes of the pieces that are complete now.

        Arguments:
            data: the next part. line: the number of its first line. whole: no more follows.
        Raises: UnreadableFile for a document that is too long.
        """
        self.line = self.line if self.text else line
        self.text += data
        found, start = [], 0
        while (piece := self._next(start, whole)) is not None:
            begin, start = piece
            if text := self.text[begin:start].rstrip(b" \t\r\n"):
                found.append((self._line_of(begin), text))
        self._forget(start)
        if len(self.text) > records.RECORD_BYTES_AT_MOST:
            raise too_long(f"the document that starts in line {self.line}")
        return found

    def _line_of(self, place: int) -> int:
        self.line += self.text.count(b"\n", self._counted, place)
        self._counted = place
        return self.line

    def _forget(self, done: int) -> None:
        start = BLANKS.match(self.text, done).end()
        self._line_of(start)
        self.text, self._at, self._counted = self.text[start:], self._at - start, 0
        self._closed = max(0, self._closed - start)

    def _next(self, start: int, whole: bool) -> tuple[int, int] | None:
        """Return where the next piece begins and ends; an empty one for marks of arrays; None: more must come."""
        start = BLANKS.match(self.text, start).end()
        if start == len(self.text):
            return None
        first = self.text[start : start + 1]
        if first == b"{":
            end = self._end_of_object(start, whole)
        elif first in (b",", b"]") if self.arrays else first == b"[":
            self._array(first, start)
            return start + 1, start + 1
        else:
            end = self._end_of_other(first, start, whole)
        return None if end is None else (start, end)

    def _array(self, mark: bytes, start: int) -> None:
        if mark == b"[":
            self.arrays.append(self._line_of(start))
        elif mark == b"]":
            self.arrays.pop()

    def _end_of_object(self, start: int, whole: bool) -> int | None:
        """Return where the object that begins at `start` ends, as far as its braces tell."""
        if not self._depth:
            self._depth, self._at, self._closed = 1, start + 1, 0
        for token in TOKEN.finditer(self.text, self._at):
            mark = token[0]
            if mark == b"{":
                # no comma between them: the document that this one is in was cut
                if self._closed and not self.text[self._closed : token.start()].strip(b" \t\r\n"):
                    self._depth = 0
                    return self._closed
                self._depth += 1
            elif mark == b"}":
                self._depth, self._closed = self._depth - 1, token.end()
                if not self._depth:
                    return token.end()
            elif mark == b"\n{":
                self._depth = 0
                return token.start()
            elif not token[1] and not whole and token.end() >= len(self.text) - 1:
                self._at = token.start()
                return None
            self._at = token.end()
        self._at = max(self._at, len(self.text) - self.text.endswith(b"\n"))
        if whole:
            self._depth = 0
            return len(self.text)
        return None

    def _end_of_other(self, first: bytes, start: int, whole: bool) -> int | None:
        """Return where a text, a number or whatever else begins at `start` ends."""
        if first == b'"' and (found := TOKEN.match(self.text, start))[1]:
            return found.end()
        pattern = IN_ARRAY if self.arrays and first != b'"' else REST_OF_LINE
        found = (first != b'"' and not self.arrays and SCALAR.match(self.text, start)) or pattern.match(
            self.text, start
        )
        return None if found.end() == len(self.text) and not whole else found.end()


def _said(text: bytes):
    """Return what a JSON text says; `ValueError` where it does not parse."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return ValueError


def _no_constant(name: str):
    raise ValueError(f"found {name}, which is no number in JSON")


# digits stay text: numbers of any length are read, and none is rounded
STRICT = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant)
EXPECTED = {
    "Expecting value": "where a value must stand",
    "Expecting ',' delimiter": "where a comma or the end must stand",
    "Expecting ':' delimiter": "where a colon must stand",
    "Expecting property name enclosed in double quotes": "where a name in double quotes must stand",
    "Illegal trailing comma before end of object": "before the end of an object",
    "Illegal trailing comma before end of array": "before the end of an array",
    "Invalid control character at": "inside a text, where it must be escaped",
    "Invalid \\escape": "behind which no escape stands",
    "Invalid \\uXXXX escape": "where four hex digits must stand",
    "Unterminated string starting at": "whose text has no end",
    "Extra data": "behind the end of the document",
}


def _read_again(text: bytes, line: int) -> tuple:
    """Return what a text says that orjson, which is strict, refuses, and what is wrong with it: (value, problem)."""
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        return None, f"not_utf8: byte {error.start + 1}: 0x{text[error.start]:02x} is no character of UTF-8"
    try:
        said, end = STRICT.raw_decode(decoded, SPACE.match(decoded).end())
        if (end := SPACE.match(decoded, end).end()) < len(decoded):
            raise json.JSONDecodeError("Extra data", decoded, end)
    except json.JSONDecodeError as error:
        return None, f"malformed_record: {_place(error, line)}: {_found(error)}"
    except RecursionError:
        return None, TOO_DEEP
    except ValueError as error:
        return _without_strictness(decoded), f"malformed_record: {_place(_refusal(text), line)}: {error}"
    error = _refusal(text)
    if error and "surrogate" in error.msg:
        return said, f"not_utf8: {_place(error, line)}: half of a character stands there (\\ud800 to \\udfff)"
    return said, None


def _refusal(text: bytes) -> json.JSONDecodeError | None:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return error
    return None


def _without_strictness(text: str):
    return json.JSONDecoder(parse_int=str, parse_float=str).decode(text)


def _place(error: json.JSONDecodeError, line: int) -> str:
    where = f"character {error.colno:,}"
    return where if error.lineno == 1 else f"line {line + error.lineno - 1:,}, {where}"


def _found(error: json.JSONDecodeError) -> str:
    found = f"'{error.doc[error.pos]}'" if error.pos < len(error.doc) else "the end of the record"
    return f"found {found} {EXPECTED.get(error.msg, f'({error.msg})')}"


KINDS = {type(None): "null", bool: "true or false", int: "a number", float: "a number", str: "a text", list: "an array"}


def _value(document, *path: str):
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _arcion(document) -> tuple:
    schema = _value(document, "tableName", "namespace", "schema")
    if schema in (None, "default_schema"):
        schema = _value(document, "tableName", "namespace", "catalog")
    return schema, _value(document, "tableName", "name")


def _debezium(document) -> tuple:
    """Return schema and table of an envelope or a flattened record; records that are no rows name none."""
    document = row_of_connect(document) if isinstance(document, dict) else None
    source = _value(document, "source")
    if isinstance(source, dict):
        is_row = document.get("op") != "m" and not document.keys() & {"ddl", "tableChanges"}
        return (source.get("schema") or source.get("db"), source.get("table")) if is_row else (None, None)
    named = [
        _value(document, f"__{name}") or _value(document, f"__source_{name}") for name in ("schema", "db", "table")
    ]
    return named[0] or named[1], named[2]


def _datastream(document) -> tuple:
    source = _value(document, "source_metadata")
    return _value(source, "schema") or _value(source, "database"), _value(source, "table")


NAMED_TABLE = {
    "arcion-json": _arcion,
    "datastream-avro": _datastream,
    "datastream-gcs-json": _datastream,
    **dict.fromkeys(DEBEZIUM, _debezium),
}


IS_RECORD: dict[str, Callable[[dict], bool]] = {
    "arcion-json": lambda document: "tableName" in document or "opType" in document,
    "datastream-gcs-json": lambda document: "payload" in document or "source_metadata" in document,
    "datastream-json": lambda document: "datastream_metadata" in document,
    **dict.fromkeys(DEBEZIUM, debezium.is_record),
}


def is_record_of(options: ReadOptions) -> Callable[[dict], bool]:
    """Return what tells whether a document is a record of a feed as it stands."""
    return IS_RECORD[options.format] if options.change is None else record_test(options.change)


def names_tables(options: ReadOptions) -> bool:
    """Return whether the records of a feed name their tables."""
    return options.format in NAMED_TABLE or "table" in (options.change or {})


def named_table_of(options: ReadOptions) -> Callable[[dict], tuple]:
    """Return what tells schema and table of a document, as far as it names them."""
    change = options.change
    return NAMED_TABLE[options.format] if change is None else lambda document: named_in(change, document)


# where records have other forms too, what makes a document one that is read as it stands
IS_PLAIN = {"debezium-json": debezium.is_plain}


class Unwrapping:
    """Takes off what is around the documents of a format.

    A document that is a record as it stands is never unwrapped, whatever its columns are called.
    """

    def __init__(self, options: ReadOptions):
        self._has_its_fields, self._is_debezium = is_record_of(options), options.format in DEBEZIUM
        self._field, self._is_declared = options.wrapping or "value", bool(options.wrapping)

    def is_record(self, said) -> bool:
        """Tell whether a value is a record of the format as it stands."""
        return isinstance(said, dict) and self._has_its_fields(said)

    def is_tombstone(self, said) -> bool:
        """Tell whether a value says only that a key is gone, which the delete before it has said."""
        if said is None:
            return self._is_debezium
        if not isinstance(said, dict) or self.is_record(said):
            return False
        if "payload" in said and row_of_connect(said) is None:
            return self._is_debezium
        return said.get(self._field, said) is None and (self._is_declared or said.keys() <= ENVELOPE)

    def inside(self, text: str, said, layers: int = LAYERS) -> tuple[str, object] | None:
        """Return text and value of the document inside a value that is no record; None where there is none inside.

        Arguments:
            text: the JSON text. said: its value. layers: how many may be taken off.
        """
        if not layers:
            return None
        if isinstance(said, str):
            return self._in_text(said.strip(" \t\r\n"), layers - 1)
        if not isinstance(said, dict) or self.is_record(said) or self._field not in said:
            return None
        if self.is_tombstone(said):
            return text, None
        found = self._in_field(text, said[self._field], layers - 1)
        is_envelope = self._is_declared or (said.keys() <= ENVELOPE and said.keys() & TRANSPORT)
        return found if found and (is_envelope or found[1] is None or self.is_record(found[1])) else None

    def _in_text(self, text: str, layers: int):
        said = what_is_said(text.encode(errors="surrogatepass")) if text[:1] in ("{", '"') else None
        return None if said is None else self._innermost(text, said, layers)

    def _in_field(self, text: str, said, layers: int):
        if isinstance(said, str):
            return self._in_text(said.strip(" \t\r\n"), layers)
        return self._innermost(value_text(text, self._field), said, layers) if isinstance(said, dict) else None

    def _innermost(self, text: str, said, layers: int):
        return self.inside(text, said, layers) or ((text, said) if isinstance(said, dict) else None)


def value_text(text: str, name: str) -> str:
    """Return the text of one field of a JSON object, letter by letter; of the last one where several have the name."""
    return texts_in_object(text).get(name, "")


def texts_in_object(text: str) -> dict[str, str]:
    """Return the texts of the fields of a JSON object, letter by letter; of the last one where several have a name."""
    at, found = SPACE.match(text).end() + 1, {}
    while text[at := SPACE.match(text, at).end()] != "}":
        at += text[at] == ","
        field, at = scanstring(text, SPACE.match(text, at).end() + 1, True)
        begin = SPACE.match(text, SPACE.match(text, at).end() + 1).end()
        _, at = STRICT.raw_decode(text, begin)
        found[field] = text[begin:at]
    return found


def texts_in_array(text: str) -> list[str]:
    """Return the texts of the elements of a JSON array, letter by letter."""
    at, found = SPACE.match(text).end() + 1, []
    while text[at := SPACE.match(text, at).end()] != "]":
        at += text[at] == ","
        begin = SPACE.match(text, at).end()
        _, at = STRICT.raw_decode(text, begin)
        found.append(text[begin:at])
    return found


def each_of(text: str, said: dict, names: list[str]) -> list[str]:
    """Return the documents that one stands for whose arrays hold a row each: one for each element of the first.

    Arrays that go with it give the element of the same place; what is no array is in every document as it is. A
    document without that array stands for itself.

    Example: `each_of('{"type": "D", "data": [1, 2]}', ..., ["data"])` has `{"type":"D","data":1}` as the first.
    """
    if not isinstance(said.get(names[0]), list):
        return [text]
    others = texts_in_object(text)
    arrays = {name: texts_in_array(others.pop(name)) for name in names if isinstance(said.get(name), list)}
    documents = []
    for place in range(len(arrays[names[0]])):
        own = {name: texts[place] if place < len(texts) else "null" for name, texts in arrays.items()}
        parts = (f"{json.dumps(name)}:{value}" for name, value in {**others, **own}.items())
        documents.append(f"{{{','.join(parts)}}}")
    return documents


class Reading:
    """The records of a part of a file, as they are found."""

    def __init__(self, options: ReadOptions, names: TableNames | None):
        self.unwrapping = Unwrapping(options)
        self.is_record = IS_PLAIN.get(options.format) or is_record_of(options)
        self._has_forms = options.format in IS_PLAIN
        self._named, self._names = (named_table_of(options), names) if names else (None, None)
        self._each = (options.change or {}).get("each")
        self._clear()

    def _clear(self) -> None:
        self._lines, self._texts, self._tables = [], [], []
        self._documents, self._problems = {}, {}

    def add_lines(self, data: bytes, line: int, in_array: bool) -> tuple[int, int]:
        """Add the lines that are documents, up to the first that is not; return how many bytes and lines they were."""
        done, loads, is_record = 0, orjson.loads, (lambda _: False) if self._each else self.is_record
        add_line, add_text = self._lines.append, self._texts.append
        for number, text in enumerate(data.split(b"\n"), line):
            document = text.strip(b" \t\r")
            if in_array and document.endswith(b","):
                document = document[:-1].rstrip(b" \t\r")
            if document:
                try:
                    said = loads(document)
                except orjson.JSONDecodeError:
                    return done, number - line
                if type(said) is dict and is_record(said):
                    add_line(number)
                    add_text(document)
                    if self._names:
                        self._tables.append(self._names.name_of(*self._named(said)))
                elif type(said) is list:
                    return done, number - line
                else:
                    self.add(number, document, said)
            done += len(text) + 1
        return min(done, len(data)), 0

    def add(self, line: int, text: bytes, said) -> None:
        """Add a piece, unless it is a tombstone: `said` is what it says; `ValueError`: it does not parse."""
        problem = document = None
        if said is ValueError:
            said, problem = _read_again(text, line)
        if problem is None and self.unwrapping.is_tombstone(said):
            return
        try:
            inside = self.unwrapping.inside(text.decode(errors="replace"), said)
        except RecursionError:
            inside, said, problem = None, None, TOO_DEEP
        has_half = inside and HALF.search(inside[0])
        if has_half:
            said = inside[1]  # which no column of texts can hold
        elif inside:
            document, said = inside
            if said is None or self.unwrapping.is_tombstone(said):
                return
        if problem is None and not has_half and self._has_forms:
            document, said, problem = self._in_plain_form(document, text, said)
        if problem is None and not isinstance(said, dict):
            problem = f"malformed_record: {KINDS[type(said)]} stands where an object must"
        if self._each and problem is None:
            try:
                self._add_each(line, text, document, said)
                return
            except RecursionError:
                problem = TOO_DEEP
        self._add(line, text, document, problem, said)

    def _add_each(self, line: int, text: bytes, document: str | None, said: dict) -> None:
        """Add the records that a document stands for, each with its place in the array, and Kafka's offset if told."""
        around = [] if document is None else _offset_beside(_said(text))
        documents = each_of(text.decode() if document is None else document, said, self._each)
        for place, one in enumerate(documents):
            record = one.encode()
            self._add(line, record, None, None, _said(record) if self._names else None)
            self._documents[len(self._lines) - 1] = [("index", str(place)), *around]

    def _in_plain_form(self, document: str | None, text: bytes, said) -> tuple[str | None, object, str | None]:
        """Return the text of a document that is not the record's bytes, what it says, and what is wrong with it."""
        if not self.unwrapping.is_record(said) or self.is_record(said):
            return document, said, None
        try:
            return *debezium.turned(text.decode() if document is None else document), None
        except debezium.CannotBeTurned as error:
            return document, said, str(error)

    def add_open_array(self, line: int) -> None:
        """Add the `[` of an array that has no end."""
        problem = "malformed_record: the array that begins here has no end, so the file was cut"
        self._add(line, b"[", None, problem, None)

    def _add(self, line, text, document, problem, said) -> None:
        place = len(self._lines)
        self._lines.append(line)
        self._texts.append(text)
        if self._names:
            self._tables.append(self._names.name_of(*self._named(said)))
        if document is not None:
            self._documents[place] = [("document", document)]
        if problem:
            self._problems[place] = problem

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield what was found since the last time."""
        if self._lines:
            places = range(len(self._lines))
            yield record_batch(
                self._lines,
                self._texts,
                fields=[*map(self._documents.get, places)] if self._documents else None,
                problems=[*map(self._problems.get, places)] if self._problems else None,
                tables=self._tables or None,
            )
            self._clear()


def json_records(stream, options: ReadOptions, names: TableNames | None = None) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of a file of JSON documents, each with what it says and where it is, or with its problem.

    Documents may be lines, go over many, follow one behind the other, or be elements of arrays. Lines that are
    documents are read whole; only what is written otherwise is looked at mark by mark. Where a document is not the
    record's bytes themselves, its text is the field `document`.

    Arguments:
        options: what the feed declares. names: gives the records their tables, where records tell them.
    """
    reading, cutter = Reading(options, names), Cutter()
    line, rest, whole = 1, stream.read(3).removeprefix(records.BYTE_ORDER_MARK), False
    while not whole:
        chunk = stream.read(records.BLOCK_BYTES)
        data, whole = rest + chunk, not chunk
        is_long = len(data) > records.BLOCK_BYTES and b"\n" not in data
        end = len(data) if whole or cutter.text or is_long else data.rfind(b"\n") + 1
        done, lines = (0, 0) if cutter.text else reading.add_lines(data[:end], line, bool(cutter.arrays))
        if done < end or whole:
            for place, text in cutter.cut(data[done:end], line + lines, whole):
                reading.add(place, text, _said(text))
        line += data.count(b"\n", 0, end)
        rest = data[end:]
        if whole and cutter.arrays:
            reading.add_open_array(cutter.arrays[0])
        yield from reading.batches()


def what_is_said(text: bytes):
    """Return what a JSON text says, as far as anything does; else None."""
    said = _said(text)
    return _read_again(text, 1)[0] if said is ValueError else said


def _offset_beside(said) -> list[tuple[str, str]]:
    """Return Kafka's offset that a sink has put beside a document, as a field; nothing where there is none."""
    found = next(
        (at for at in ((), ("metadata",), ("RECORD_METADATA",)) if _value(said, *at, "offset") is not None), None
    )
    return [] if found is None else [("offset", str(_value(said, *found, "offset")))]


def with_tables(batch: pyarrow.RecordBatch, format: str, names: TableNames) -> pyarrow.RecordBatch:
    """Return the batch with the table that each record names, which are JSON documents; NULL where it names none."""
    tables = [names.name_of(*NAMED_TABLE[format](what_is_said(text))) for text in batch.column("record").to_pylist()]
    columns = {name: batch.column(name) for name in RECORDS.names}
    others = {"fields": columns["fields"], "problems": columns["problem"], "tables": tables}
    return record_batch(columns["source_line"], columns["record"], **others)
