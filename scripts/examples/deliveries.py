"""Where the examples lie, and how a source exports its rows."""

import gzip
import io
from datetime import datetime
from pathlib import Path

LANDING = Path("examples/landing")
EXPORTS = Path("examples/exports")


def deliver_file(path: str, content: bytes | str) -> None:
    """Write a file below the landing folder; one whose name ends in `.gz` is packed, without a time of its own."""
    content = content.encode() if isinstance(content, str) else content
    file = LANDING / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(content, mtime=0) if path.endswith(".gz") else content)


def deliver_export(feed: str, table: str, rows: list[dict], position: str, taken_at: datetime) -> None:
    """Write what a source holds, as its own tool exports it, with the position beside it.

    Arguments:
        rows: mappings of column to value, all with the same columns. position: of the source, when it was exported.
    """
    folder = EXPORTS / feed / table
    folder.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    text.write(",".join(f'"{name}"' for name in rows[0]) + "\r\n")
    for row in rows:
        text.write(",".join(map(_exported, row.values())) + "\r\n")
    (folder / f"{table}.csv").write_bytes(text.getvalue().encode())
    (folder / "_exports.yml").write_text(
        "# Where the source stood when each export was taken.\n"
        f'{table}.csv: {{position: "{position}", taken_at: {taken_at:%Y-%m-%dT%H:%M:%SZ}}}\n'
    )


def cell(value) -> str:
    """Return a value in a producer's CSV: quoted where it must be, quotes doubled; NULL is the bare word."""
    if value is None:
        return "NULL"
    text = value.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else str(value)
    if text in ("", "NULL") or any(mark in text for mark in '",\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _exported(value) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        value = value.hex().upper()
    if isinstance(value, datetime):
        value = value.strftime("%Y-%m-%d %H:%M:%S.%f")
    return '"' + str(value).replace('"', '""') + '"'
