"""Answers of the lake, printed to be read or to be piped."""

import csv
import json
import re
import sys
from contextlib import contextmanager
from datetime import datetime, timezone
from decimal import Decimal

from pyspark.sql import Row
from pyspark.sql.types import TimestampType

from highwater.runtime import faults
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import UNPRINTABLE, printable, printable_text
from highwater.status.reads_only import refuse_what_does_more

RUNS_ON_FILES = "spark.sql.runSQLOnFiles"
# characters that a column needs beside others
READABLE = 10


def show(spark, sql: str, form: str, unsafe: bool = False) -> None:
    """Run one SQL statement and print its rows.

    Arguments:
        sql: the statement; the current schema is the one that dbt builds into.
        form: `table` for people, `csv` with a header, or `json` (one object a line).
        unsafe: whatever it does is run; otherwise it only reads.
    Raises: UsageError with Spark's own first sentence when the statement is wrong, or when it would do more than read;
            also when two columns of a JSON answer have one name. CheckError with the sentence of a view that refuses.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    try:
        if not unsafe:
            refuse_what_does_more(spark, sql)
        with _paths_as_tables(spark, unsafe):
            _show_rows(spark.sql(sql), form)
    except ParseException as error:
        raise UsageError(_parse_error(str(error), sql)) from None
    except AnalysisException as error:
        if faults.is_known(str(error)):  # a damaged table is no wrong statement
            raise
        raise UsageError(_first_line(error)) from None
    except (Py4JError, PySparkException) as error:
        raised = re.search(r"\[USER_RAISED_EXCEPTION\] (.*) SQLSTATE", str(error))
        if not raised:
            raise
        raise CheckError(raised[1]) from None


@contextmanager
def _paths_as_tables(spark, allowed: bool):
    """Let Spark take a name for a path, or keep it from doing so; views too."""
    before = spark.conf.get(RUNS_ON_FILES)
    spark.conf.set(RUNS_ON_FILES, str(allowed).lower())
    try:
        yield
    finally:
        spark.conf.set(RUNS_ON_FILES, before)


def _first_line(error) -> str:
    return next((line for line in str(error).split("\n") if line.strip()), "Spark gives no reason")


def _parse_error(said: str, sql: str) -> str:
    """Return the sentence about a text that is no statement of SQL, or more than one."""
    place = re.search(r"\(line (\d+), pos (\d+)\)", said)
    if place:
        lines = sql.split("\n")[: int(place[1])]
        before = "\n".join([*lines[:-1], lines[-1][: int(place[2])]])
        if re.search(r";(\s|--[^\n]*(\n|\Z)|/\*.*?\*/)*\Z", before, re.DOTALL):
            return "`highwater query` runs one statement, and this is more than one; nothing of it has run."
    return _first_line(said)


def _show_rows(answer, form: str) -> None:
    names, kinds = answer.columns, [field.dataType for field in answer.schema]
    rows = ([_zoned(v, kind) for v, kind in zip(row, kinds, strict=True)] for row in answer.toLocalIterator())
    twice = next((name for name in names if names.count(name) > 1), None)
    if form == "json" and twice:
        raise UsageError(f"two columns are called {twice!r}; name them with `as`, JSON keeps one of a name.")
    if form == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(names)
        writer.writerows([None if v is None else _text(v) for v in row] for row in rows)
    elif form == "json":
        for row in rows:
            print(_json(dict(zip(names, row, strict=True))))
    else:
        show_table(names, rows)


def _zoned(value, kind):
    """Return a value whose times of the type `timestamp`, which are moments, have their zone; rows become mappings."""
    if isinstance(value, Row):
        return {field.name: _zoned(value[i], field.dataType) for i, field in enumerate(kind.fields)}
    if isinstance(value, dict):
        return {_zoned(key, kind.keyType): _zoned(each, kind.valueType) for key, each in value.items()}
    if isinstance(value, list):
        return [_zoned(each, kind.elementType) for each in value]
    return _in_utc(value) if isinstance(value, datetime) and isinstance(kind, TimestampType) else value


def _in_utc(local: datetime) -> datetime:
    """Return a moment in UTC, which Spark has given in the zone of this process."""
    try:
        return local.astimezone(timezone.utc)
    except (OverflowError, ValueError):  # the first and last days that there are
        return local.replace(tzinfo=timezone.utc)


def _json(value) -> str:
    """Return a value as JSON, control characters escaped, also those that JSON would let through."""
    text = json.dumps(value, default=_text, ensure_ascii=False)
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _text(value) -> str:
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, Row):
        value = value.asDict(recursive=True)
    if isinstance(value, dict | list):
        return json.dumps(value, default=_text, ensure_ascii=False)
    return str(value)


def show_table(names, rows) -> None:
    """Print rows as a table for people; each upright, a line a column, where columns side by side could not be read.

    A cell is one line, and what breaks lines stands in it as `\\n`, unless it is all there is: a plan, a statement.
    """
    from rich.cells import cell_len
    from rich.console import Console

    names = [printable(name) for name in names]
    rows = list(rows)
    shown = printable_text if len(names) == len(rows) == 1 else printable
    texts = [["NULL" if v is None else shown(_text(v)) for v in row] for row in rows]
    console = Console(width=None if sys.stdout.isatty() else 200)
    widths = [
        max(cell_len(line) for text in column for line in text.split("\n"))
        for column in zip(names, *texts, strict=True)
    ]
    if min(sum(width + 3 for width in widths), len(names) * READABLE) <= console.width:
        console.print(_table(names, texts))
        return
    for number, row in enumerate(texts, 1):
        console.print(_table(["column", f"row {number:,}"], zip(names, row, strict=True)))
    if not texts:
        console.print(f"no row; columns: {', '.join(names)}", markup=False, highlight=False)


def _table(names, rows):
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
