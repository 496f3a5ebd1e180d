"""Cut delimited files into records and values, whole blocks at a time.

A block is looked at through its marks: the few bytes that mean something to the dialect. Where each of them stands is
checked, so that a record which the dialect's writer cannot have written is passed on as malformed and never read in
some lenient way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy
import pyarrow

from highwater.formats import records
from highwater.formats.formats import Dialect
from highwater.formats.records import UnreadableFile, record_batch, too_long, without_line_end

ORDINARY, QUOTE, DELIMITER, LINE_END, RETURN, ESCAPE = range(6)


def _classes(dialect: Dialect) -> bytes:
    """Return the table with which `bytes.translate` gives every byte its class."""
    table = bytearray(256)
    table[ord("\n")], table[ord("\r")], table[ord(dialect.delimiter)] = LINE_END, RETURN, DELIMITER
    if dialect.quoted:
        table[ord('"')] = QUOTE
    if dialect.escape == "backslash":
        table[ord("\\")] = ESCAPE
    return bytes(table)


def _next(flags):
    """Return for each element the flag of the next one."""
    return numpy.append(flags[1:], False)


def _previous(values, first=False):
    """Return for each element the value of the one before it."""
    previous = numpy.empty_like(values)
    previous[:1], previous[1:] = first, values[:-1]
    return previous


class Marks:
    """The bytes of some whole lines that mean something to the dialect: `at` which offset, of which `kind`.

    A byte that is escaped is ORDINARY. `astray` are the escapes of bytes that the dialect's writer does not escape.
    """

    def __init__(self, data: bytes, dialect: Dialect):
        self.data, self.dialect = data, dialect
        self.bytes = numpy.frombuffer(data, numpy.uint8)
        classes = numpy.frombuffer(data.translate(_classes(dialect)), numpy.uint8)
        self.at = numpy.flatnonzero(classes != ORDINARY)
        self.kind = classes[self.at]
        self.touches_next = numpy.diff(self.at, append=-1) == 1
        self.astray = self._astray_after_pairing_escapes()
        self.quote, self.line_end = self.kind == QUOTE, self.kind == LINE_END
        self.quotes = numpy.cumsum(self.quote)

    def _astray_after_pairing_escapes(self):
        escapes = numpy.flatnonzero(self.kind == ESCAPE)
        order = numpy.arange(len(escapes))
        starts_run = numpy.diff(self.at[escapes], prepend=-2) != 1
        escaping = (order - numpy.maximum.accumulate(numpy.where(starts_run, order, 0))) % 2 == 0
        self.kind[escapes[~escaping]] = ORDINARY
        escapes = escapes[escaping]
        escaped = self.kind[escapes + 1]  # there is a next mark: the last one is a line end
        escapable = (escaped == ORDINARY) | (escaped == (QUOTE if self.dialect.quoted else DELIMITER))
        paired = self.touches_next[escapes] & escapable
        self.kind[escapes[paired] + 1] = ORDINARY
        return escapes[~paired]

    @cached_property
    def inside(self):
        """Whether each mark is inside quotes where the first line starts outside; a closing quote is."""
        return (self.quotes - self.quote) % 2 == 1

    @cached_property
    def separates(self):
        """Whether each mark separates values or records where it is outside quotes."""
        return self.line_end | (self.kind == DELIMITER)

    @cached_property
    def ends_line(self):
        """Whether each mark is the carriage return of a line end where it is outside quotes."""
        return (self.kind == RETURN) & self.touches_next & _next(self.line_end)

    def flaws(self, inside):
        """Return which marks are where the dialect's writer cannot have put them.

        Arguments:
            inside: whether each mark is inside quotes.
        """
        touchable = self.separates | self.quote if self.dialect.escape == "doubled" else self.separates
        may_open = _previous(touchable & self.touches_next, self.at[0] == 0)
        may_close = self.touches_next & _next(touchable | self.ends_line)
        flaws = self.quote & numpy.where(inside, ~may_close, ~may_open)
        flaws |= (self.kind == RETURN) & ~inside & ~self.ends_line
        flaws[self.astray] = True
        flaws[self._null_words(may_open & ~inside)] = False
        return flaws

    def _null_words(self, may_start):
        """Return the stray escapes that begin the word for NULL."""
        word, found = self.dialect.null.encode(), self.astray
        found = found[may_start[found] & (self.separates | self.ends_line)[found + 1]]
        found = found[self.at[found + 1] - self.at[found] == len(word)]
        for offset, byte in enumerate(word):
            found = found[self.bytes[self.at[found] + offset] == byte]
        return found


@dataclass
class Rows:
    """Records and their values: `lines` from 0, `counts` of values, `values` of all records one after the other."""

    lines: numpy.ndarray
    records: pyarrow.Array
    counts: numpy.ndarray
    values: pyarrow.Array

    def filter(self, chosen) -> "Rows":
        """Return the rows for which `chosen` is true."""
        if chosen.all():
            return self
        return Rows(
            self.lines[chosen],
            self.records.filter(pyarrow.array(chosen)),
            self.counts[chosen],
            self.values.filter(pyarrow.array(numpy.repeat(chosen, self.counts))),
        )


NO_ROWS = Rows(
    numpy.empty(0, numpy.int64),
    pyarrow.array([], pyarrow.binary()),
    numpy.empty(0, numpy.int64),
    pyarrow.array([], pyarrow.binary()),
)


def _binary(data, offsets, valid=None) -> pyarrow.Array:
    """Return the array of binary values that lie in `data` one after the other."""
    buffers = [
        None if valid is None else pyarrow.py_buffer(numpy.packbits(valid, bitorder="little")),
        pyarrow.py_buffer(offsets.astype(numpy.int32)),
        pyarrow.py_buffer(data),
    ]
    return pyarrow.Array.from_buffers(pyarrow.binary(), len(offsets) - 1, buffers)


def _without(data, dropped):
    """Return the bytes of `data` but those at the offsets `dropped`."""
    kept = numpy.ones(len(data), bool)
    kept[dropped] = False
    return data[kept]


def _rows(marks: Marks, count: int) -> Rows:
    """Read the records that the first `count` marks delimit; there is no flaw in them. Empty lines are left out."""
    at, kind = marks.at[:count], marks.kind[:count]
    outside, quote = ~marks.inside[:count], marks.quote[:count]
    data = marks.bytes[: at[-1] + 1]
    separators = numpy.flatnonzero(outside & marks.separates[:count])
    returns = outside & marks.ends_line[:count]
    ends = numpy.flatnonzero(kind[separators] == LINE_END)

    dropped = returns | (kind == ESCAPE) | quote
    dropped[separators] = True
    if marks.dialect.escape == "doubled":
        dropped &= ~(quote & outside & _previous(quote & marks.touches_next[:count]))
    removed = numpy.cumsum(dropped) - dropped
    starts = _previous(at[separators] + 1, 0)
    lengths = at[separators] - starts - _previous(returns)[separators]
    null = numpy.flatnonzero(lengths == len(marks.dialect.null.encode()))
    for offset, byte in enumerate(marks.dialect.null.encode()):
        null = null[data[starts[null] + offset] == byte]
    valid = numpy.ones(len(separators), bool)
    valid[null] = False
    values = _binary(_without(data, at[dropped]), numpy.append(0, at[separators] - removed[separators]), valid)

    line_ends = separators[ends]
    dropped = returns.copy()
    dropped[line_ends] = True
    removed = numpy.cumsum(dropped) - dropped
    offsets = numpy.append(0, at[line_ends] - removed[line_ends])
    rows = Rows(
        lines=_previous(numpy.cumsum(kind == LINE_END)[line_ends], 0),
        records=_binary(_without(data, at[dropped]), offsets),
        counts=numpy.diff(ends, prepend=-1),
        values=values,
    )
    return rows.filter(numpy.diff(offsets) > 0)


@dataclass
class Cut:
    """A block cut into `rows` and `malformed` records (line from 0, bytes, what is wrong); `size` bytes are used up."""

    rows: Rows
    malformed: list[tuple[int, bytes, str]]
    size: int


def _cut(data: bytes, dialect: Dialect, whole: bool) -> Cut:
    """Cut lines into records.

    A malformed record ends with the line in which the dialect's grammar breaks.

    Arguments:
        data: whole lines; a record starts with the first one.
        whole: whether no more lines follow, so that quotes which are open at the end do not close.
    """
    marks = Marks(data, dialect)
    if not marks.flaws(marks.inside).any():
        complete = numpy.flatnonzero(marks.line_end & ~marks.inside)
        if len(complete) and (not whole or complete[-1] == len(marks.at) - 1):
            return Cut(_rows(marks, complete[-1] + 1), [], int(marks.at[complete[-1]]) + 1)
    return _cut_line_by_line(marks, whole)


def _cut_line_by_line(marks: Marks, whole: bool) -> Cut:
    line_ends = numpy.flatnonzero(marks.line_end)
    line_starts = _previous(line_ends + 1, 0)
    quotes_before = _previous(marks.quotes[line_ends], 0)
    inside = (marks.quotes - marks.quote - numpy.repeat(quotes_before, line_ends - line_starts + 1)) % 2 == 1
    turns = ((marks.quotes[line_ends] - quotes_before) % 2 == 1).tolist()
    flaws = [marks.flaws(inside ^ starts_inside) for starts_inside in (False, True)]
    breaks, breaks_quotes = (numpy.logical_or.reduceat(found, line_starts).tolist() for found in flaws)
    offsets = numpy.append(0, marks.at[line_ends] + 1)

    sound = numpy.zeros(len(turns), bool)
    malformed, first = [], 0
    while first < len(turns):
        last, is_broken, is_open = first, breaks[first], turns[first]
        while is_open and not is_broken and last + 1 < len(turns):
            last += 1
            is_broken, is_open = breaks_quotes[last], not turns[last]
        if is_broken or (is_open and whole):
            record = without_line_end(marks.data[offsets[first] : offsets[last + 1] - 1])
            of_line = flaws[last > first][line_starts[last] : line_ends[last] + 1]
            flaw = line_starts[last] + of_line.argmax() if is_broken else None
            is_inside = flaw is not None and bool(inside[flaw]) ^ (last > first)
            malformed.append((first, record, _what_is_wrong(marks, flaw, offsets[first], is_inside)))
        elif is_open:
            break
        else:
            sound[first : last + 1] = True
        first = last + 1

    kept = numpy.repeat(sound, numpy.diff(offsets))
    rows = NO_ROWS
    if sound.any():
        marks = Marks(marks.bytes[kept].tobytes(), marks.dialect)
        rows = _rows(marks, len(marks.at))
        rows.lines = numpy.flatnonzero(sound)[rows.lines]
    return Cut(rows, malformed, int(offsets[first]))


def _what_is_wrong(marks: Marks, flaw: int | None, start: int, is_inside: bool) -> str:
    """Return what breaks the dialect's grammar in the record that begins at `start`: a mark, or a quote left open."""
    if flaw is None:
        return "a value in quotes has no end"
    at = int(marks.at[flaw])
    what = {
        QUOTE: "a quote stands inside a quoted value" if is_inside else "a quote stands inside a value without quotes",
        RETURN: "a carriage return stands outside quotes and ends no line",
        ESCAPE: f"a backslash stands before {_shown(marks.data[at + 1 : at + 5])}, which this dialect does not escape",
    }[marks.kind[flaw]]
    return f"character {len(marks.data[start:at].decode(errors='replace')) + 1:,}: {what}"


def _shown(following: bytes) -> str:
    return {"\n": "the end of the line", "\r": "a carriage return"}.get(
        found := following.decode(errors="replace")[:1], repr(found)
    )


def _not_utf8(record: bytes) -> str:
    """Return the problem of a record that is no text, with the first byte that is none."""
    try:
        record.decode()
    except UnicodeDecodeError as error:
        return f"not_utf8: byte {error.start + 1:,}: 0x{record[error.start]:02x} is no character of UTF-8"
    return "not_utf8"


def _is_utf8(record: bytes) -> bool:
    try:
        record.decode()
    except UnicodeDecodeError:
        return False
    return True


def _header(cut: Cut) -> list[str]:
    """Return the names in the first record of a file."""
    rows = cut.rows
    if len(rows.lines) and not any(line < rows.lines[0] for line, *_ in cut.malformed):
        names = rows.values[: rows.counts[0]].to_pylist()
        # pandas and R write the numbers of rows first, under no name
        names = [b"", *names[1:]] if len(names) > 1 and not names[0] else names
        if all(names[1:]) and all(map(_is_utf8, names)) and (names[0] or len(names) > 1):
            if len(set(names)) < len(names):
                raise UnreadableFile("its header names a column twice")
            return [name.decode() for name in names]
    raise UnreadableFile("its first line is no header of column names, so it has to be delivered with one")


def _batch(cut: Cut, line: int, header: list[str] | None) -> pyarrow.RecordBatch:
    """Return a block's records; `line` is the number of its first line."""
    rows = cut.rows
    odd = [
        (at, record, f"malformed_record: {wrong}" if _is_utf8(record) else _not_utf8(record))
        for at, record, wrong in cut.malformed
    ]

    def put_aside(sound, problem):
        aside = rows.filter(~sound)
        found = zip(aside.lines, aside.records.to_pylist(), aside.counts, strict=True)
        odd.extend((at, record, problem(record, count)) for at, record, count in found)
        return rows.filter(sound)

    if header:
        names = len(header)
        rows = put_aside(rows.counts == names, lambda _, count: f"wrong_column_count: {count} values, {names} names")
    try:
        values = rows.values.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        sound = numpy.array([_is_utf8(record) for record in rows.records.to_pylist()])
        rows = put_aside(sound, lambda record, _: _not_utf8(record))
        values = rows.values.cast(pyarrow.string())
    ends = numpy.cumsum(rows.counts)
    positions = numpy.arange(len(values)) - numpy.repeat(ends - rows.counts, rows.counts)
    names = header or [str(position) for position in range(1, rows.counts.max(initial=0) + 1)]
    fields = pyarrow.MapArray.from_arrays(
        pyarrow.array(numpy.append(0, ends), pyarrow.int32()),
        pyarrow.array(names, pyarrow.string()).take(pyarrow.array(positions)),
        values,
    )
    batch = record_batch(pyarrow.array(rows.lines + line, pyarrow.int32()), rows.records, fields=fields)
    if not odd:
        return batch
    lines, odd_records, problems = zip(*odd, strict=True)
    batches = [batch, record_batch([at + line for at in lines], odd_records, problems=problems)]
    (batch,) = pyarrow.Table.from_batches(batches).sort_by("source_line").combine_chunks().to_batches()
    return batch


def delimited(stream, dialect: Dialect, columns: list[str] | None = None) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of a delimited file, with their values by name where a header names them, else by position.

    A record that the dialect's grammar does not allow, or whose bytes are no UTF-8, is passed on with its problem, that
    says where it breaks, and without fields; with a header, so is a record with another number of values. Empty lines
    are no records, in files of one column neither: whether one is a stray line or a value that is written as nothing
    cannot be told.

    Arguments:
        stream: the file's bytes.
        dialect: how its values are written.
        columns: gets the names in its header.
    Raises: UnreadableFile for a record that is too long or a header that cannot be read.
    """
    header, line, rest, whole = None, 1, stream.read(3).removeprefix(records.BYTE_ORDER_MARK), False
    while not whole:
        block = stream.read(records.BLOCK_BYTES)
        data, whole = rest + block, not block
        if whole and data and not data.endswith(b"\n"):
            data += b"\n"
        end = data.rfind(b"\n", len(rest)) + 1 or (len(data) if whole else 0)
        if end:
            cut, first = _cut(data[:end], dialect, whole), line
            line += data.count(b"\n", 0, cut.size)
            data = data[cut.size :]
            if dialect.header and header is None and (len(cut.rows.lines) or cut.malformed):
                header = _header(cut)
                if columns is not None:
                    columns.extend(header)
                cut.rows = cut.rows.filter(numpy.arange(len(cut.rows.lines)) > 0)
            if len(cut.rows.lines) or cut.malformed:
                yield _batch(cut, first, header)
        rest = data
        if len(rest) > records.RECORD_BYTES_AT_MOST:
            raise too_long(f"the record that starts in line {line}")
