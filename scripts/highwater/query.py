"""Answers of the lake, printed to be read or to be piped."""

import csv
import json
import re
import sys
from datetime import datetime
from decimal import Decimal

from pyspark.sql import Row

from highwater.errors import CheckError, UsageError

READS = {"select", "with", "from", "table", "values", "show", "describe", "desc", "explain"}


def show(spark, sql: str, form: str) -> None:
    """Run one SQL statement and print its rows.

    Arguments:
        sql: the statement; the current schema is the one that dbt builds into.
        form: `table` for people, `csv` with a header, or `json` (one object a line).
    Raises: UsageError with Spark's own first sentence when the statement is wrong, or when it would write;
            also when two columns of a JSON answer have one name. CheckError with the sentence of a view that refuses.
    """
    first_word = (re.findall(r"\w+", sql) or [""])[0].lower()
    if first_word not in READS:
        raise UsageError(f"`highwater query` only reads; a statement that starts with {first_word!r} is not run.")
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    try:
        if _inserts(spark, sql):
            raise UsageError("`highwater query` only reads; a statement that inserts rows is not run.")
        answer = spark.sql(sql)
        names, rows = answer.columns, answer.toLocalIterator()
        twice = next((name for name in names if names.count(name) > 1), None)
        if form == "json" and twice:
            raise UsageError(f"two columns are called {twice!r}; name them with `as`, JSON keeps one of a name.")
        if form == "csv":
            writer = csv.writer(sys.stdout)
            writer.writerow(names)
            writer.writerows([None if v is None else _text(v) for v in row] for row in rows)
        elif form == "json":
            for row in rows:
                print(json.dumps(row.asDict(recursive=True), default=_text, ensure_ascii=False))
        else:
            show_table(names, rows)
    except (AnalysisException, ParseException) as error:
        raise UsageError(str(error).split("\n")[0]) from None
    except (Py4JError, PySparkException) as error:
        told = re.search(r"\[USER_RAISED_EXCEPTION\] (.*) SQLSTATE", str(error))
        if not told:
            raise
        raise CheckError(told[1]) from None


def _inserts(spark, sql: str) -> bool:
    """Tell whether a query inserts its rows somewhere: `with … insert into`, `from … insert into`."""
    nodes = [spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)]
    for node in nodes:
        if "Insert" in node.nodeName():
            return True
        nodes += [node.children().apply(place) for place in range(node.children().size())]
    return False


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
    """Print rows as a table for people."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        table.add_row(*("NULL" if value is None else Text(_text(value)) for value in row))
    width = None if sys.stdout.isatty() else 200
    Console(width=width).print(table)
