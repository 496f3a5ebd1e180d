"""Tables as the DDL of a database declares them: what its own dump writes, or what somebody typed.

Only what says names, types, keys and comments is read; storage, indexes, functions and all else is passed over.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sqlglot import tokenize
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from highwater.runtime.errors import UsageError

SQLGLOT = {"postgresql": "postgres", "mysql": "mysql", "oracle": "oracle", "sqlserver": "tsql"}
# what may stand behind the type of a column
BEHIND_TYPE = frozenset(
    re.findall(
        r"\w+",
        """
    not null default constraint primary unique references check collate comment generated as identity auto_increment
    enable disable on charset storage compression visible invisible sparse rowguidcol key virtual stored filestream
    masked sort encrypt
""",
    )
)
# what begins something else than a column
NO_COLUMN = frozenset(
    re.findall(
        r"\w+",
        """
    constraint primary unique key index fulltext spatial foreign check exclude like period supplemental
""",
    )
)
# rows that pg_dump copies; commands of psql and of SQL*Plus, and the slashes that end statements there
NO_SQL = re.compile(
    r"^copy [^;]* from stdin;$.*?^\\\.$|^\\.*?$|^(?:prompt|rem|remark)(?: .*?)?$|^ */ *$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
FOLDED = {"postgresql": str.lower, "oracle": str.upper}


@dataclass
class DdlTable:
    """A table as DDL declares it.

    Attributes:
        schema: where it is, as written; None: it is not said. name: as the database has it.
        columns: name and type of each, as the database has them. key: the columns of its primary key.
        comments: by column. line: where it begins in the file.
    """

    schema: str | None
    name: str
    line: int
    columns: list[tuple[str, str]] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)


class _Token(NamedTuple):
    """A word, a name in quotes, or a text in quotes."""

    kind: str
    text: str
    line: int


def tables_of_ddl(path: Path, dialect: str) -> list[DdlTable]:
    """Return the tables that a file of DDL creates, in their order.

    Arguments:
        path: of the file, in UTF-8 or UTF-16. dialect: one of source_types.DIALECTS.
    Raises: UsageError when the file cannot be read, or creates no table.
    """
    text = _text_of(path)
    try:
        tokens = list(_tokens_of(text, dialect))
    except SqlglotError as error:
        raise UsageError(f"{path} cannot be read as DDL of {dialect}: {' '.join(str(error).split())}") from None
    reader = _Reader(tokens, FOLDED.get(dialect, str), begins_on_lines=dialect == "sqlserver")
    reader.read()
    if not reader.tables:
        raise UsageError(f"{path} creates no table; it should hold `create table …` as {dialect} writes it.")
    return reader.tables


def _text_of(path: Path) -> str:
    content = path.read_bytes()
    # what SQL Server's tools write
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not in UTF-8: byte {error.start + 1:,}. Save it in UTF-8.") from None
    return NO_SQL.sub(lambda found: "\n" * found[0].count("\n"), text.replace("\r\n", "\n"))


def _tokens_of(text: str, dialect: str) -> Iterator[_Token]:
    kinds = {TokenType.IDENTIFIER: "name", TokenType.STRING: "text", TokenType.NATIONAL_STRING: "text"}
    for token in tokenize(text, dialect=SQLGLOT[dialect]):
        kind = kinds.get(token.token_type, "word")
        # some words are one token together
        for part in token.text.split() if kind == "word" else [token.text]:
            yield _Token(kind, part, token.line)


class _Reader:
    """Reads tables out of tokens."""

    def __init__(self, tokens: list[_Token], fold, begins_on_lines: bool):
        self.tokens, self.fold, self.tables = tokens, fold, []
        # whether statements need nothing between them
        self.begins_on_lines = begins_on_lines
        self.types = {}  # what types of the database's own are made of, by name

    def word(self, at: int) -> str:
        """Return the word in a place, in capitals; nothing for a name in quotes, a text, or the end."""
        return self.tokens[at].text.upper() if at < len(self.tokens) and self.tokens[at].kind == "word" else ""

    def text(self, at: int) -> str | None:
        """Return the text in quotes in a place; None: there is none."""
        return self.tokens[at].text if at < len(self.tokens) and self.tokens[at].kind == "text" else None

    def read(self) -> None:
        """Read all statements."""
        begins = True
        for at in range(len(self.tokens)):
            word = self.word(at)
            if begins and word == "CREATE" and self.word(at + 1) in ("DOMAIN", "TYPE"):
                self.create_type(at + 2)
            elif begins and word == "CREATE":
                self.create(at)
            elif begins and word == "ALTER" and self.word(at + 1) == "TABLE":
                self.alter(at + 2)
            elif begins and word == "COMMENT" and self.word(at + 1) == "ON" and self.word(at + 2) == "COLUMN":
                self.comment(at + 3)
            # GO ends statements of SQL Server; a name that is called so is in quotes
            begins = word in (";", "GO") or (self.begins_on_lines and self.is_last_of_line(at))
        for table in self.tables:
            table.columns = [
                (name, self.types.get(kind.split(".")[-1].strip('"'), kind)) for name, kind in table.columns
            ]

    def is_last_of_line(self, at: int) -> bool:
        """Return whether the next token is in another line."""
        return at + 1 < len(self.tokens) and self.tokens[at + 1].line > self.tokens[at].line

    def create_type(self, at: int) -> None:
        """Read what a domain is made of; other types are texts in every record."""
        names, at = self.names(at)
        if names and self.word(at) == "AS":
            self.types[names[-1]] = "text" if self.word(at + 1) in ("ENUM", "RANGE", "(") else self.type_from(at + 1)[0]

    def type_from(self, at: int, end: int | None = None) -> tuple[str, int]:
        """Return the type that stands in a place, as one text, and the place behind it."""
        parts, depth, end = [], 0, len(self.tokens) if end is None else end
        while at < end and self.word(at) != ";":
            word = self.word(at)
            if not depth and (
                word.lower() in BEHIND_TYPE or (parts and word == "CHARACTER" and self.word(at + 1) == "SET")
            ):
                break
            depth += {"(": 1, ")": -1}.get(word, 0)
            parts.append("''" if self.tokens[at].kind == "text" else self.tokens[at].text)
            at += 1
        return " ".join(parts).replace(" [ ]", "[]").replace(" . ", "."), at

    def create(self, at: int) -> None:
        """Read a table, when one is created."""
        at = next((place + 1 for place in range(at + 1, at + 6) if self.word(place) == "TABLE"), None)
        if at is None:
            return
        line = self.tokens[at - 1].line
        while self.word(at) in ("IF", "NOT", "EXISTS"):
            at += 1
        names, at = self.names(at)
        if self.word(at) != "(" or not names or names[-1].startswith("#"):  # tables of a session
            return
        table = DdlTable(names[-2] if len(names) > 1 else None, names[-1], line)
        for start, end in self.items(at):
            if self.word(start).lower() in NO_COLUMN:
                self.key_of(table, start, end)
            else:
                self.column(table, start, end)
        if table.columns:
            self.tables.append(table)

    def column(self, table: DdlTable, start: int, end: int) -> None:
        """Read a column of a table."""
        name = self.name(start)
        kind, at = self.type_from(start + 1, end)
        table.columns.append((name, kind))
        rest = range(at, end)
        if any(self.word(place) == "PRIMARY" for place in rest):
            table.key = [name]
        for place in rest:
            if self.word(place) == "COMMENT" and self.text(place + 1) is not None:
                table.comments[name] = self.text(place + 1)

    def key_of(self, table: DdlTable, start: int, end: int) -> None:
        """Read the primary key of a table, when that is what stands here."""
        at = next((p for p in range(start, end) if self.word(p) == "PRIMARY" and self.word(p + 1) == "KEY"), None)
        while at is not None and at < end and self.word(at) != "(":
            at += 1
        if at is not None and at < end:
            table.key = [self.name(first) for first, _ in self.items(at)]

    def alter(self, at: int) -> None:
        """Read the primary key that a table gets later."""
        while self.word(at) in ("ONLY", "IF", "EXISTS"):
            at += 1
        names, at = self.names(at)
        end = next((p for p in range(at, len(self.tokens)) if self.word(p) in (";", "GO")), len(self.tokens))
        for table in self.found(names):
            self.key_of(table, at, end)

    def comment(self, at: int) -> None:
        """Read the comment of a column."""
        names, at = self.names(at)
        if self.word(at) == "IS" and self.text(at + 1) is not None:
            for table in self.found(names[:-1]):
                table.comments[names[-1]] = self.text(at + 1)

    def found(self, names: list[str]) -> Iterator[DdlTable]:
        """Yield the tables of a name."""
        schema = names[-2] if len(names) > 1 else None
        for table in self.tables:
            if names and table.name == names[-1] and (not schema or not table.schema or schema == table.schema):
                yield table

    def name(self, at: int) -> str:
        """Return the name in a place, as the database has it."""
        token = self.tokens[at]
        return token.text if token.kind == "name" else self.fold(token.text)

    def names(self, at: int) -> tuple[list[str], int]:
        """Return the parts of a name that may have dots, and the place behind it."""
        if at >= len(self.tokens):
            return [], at
        parts = [self.name(at)]
        while self.word(at + 1) == "." and at + 2 < len(self.tokens):
            parts.append(self.name(at + 2))
            at += 2
        return parts, at + 1

    def items(self, at: int) -> Iterator[tuple[int, int]]:
        """Yield where each item of a list in parentheses begins, and the place behind it."""
        start, depth = at + 1, 0
        for place in range(at, len(self.tokens)):
            depth += {"(": 1, ")": -1}.get(self.word(place), 0)
            if depth == 0 or (depth == 1 and self.word(place) == ","):
                if place > start:
                    yield start, place
                start = place + 1
            if depth == 0:
                return
