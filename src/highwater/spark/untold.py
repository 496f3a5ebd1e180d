"""What logs have applied and nobody was told of, for a build was killed or failed before: `<lake>/untold.json`.

A build tells of records when they are new. That they are is written down before a log takes them in, and stays until
it was told, so what one build leaves is told by the next.
"""

import json
import os
import threading

from highwater.runtime.state import read_state, write_state

# Fields, by table and feed: what the feed's landing batches above this number carry. Rejected records, by table: those
# of this batch of the log, and of later ones.
KINDS = ("fields", "rejected")
_lock = threading.Lock()


def untold(kind: str) -> dict[str, int]:
    """Return the number that it begins with, by name."""
    found = read_state("untold.json").get(kind)
    return found if isinstance(found, dict) else {}


def note(**news: dict[str, int]) -> None:
    """Write down, before a log takes records in, what is to be told of them. What begins lower counts.

    Arguments:
        news: by kind and name, the number that it begins with.
    """
    with _lock:
        was = {kind: untold(kind) for kind in KINDS}
        now = {kind: dict(found) for kind, found in was.items()}
        for kind, found in news.items():
            now[kind] |= {name: min(number, now[kind].get(name, number)) for name, number in found.items()}
        _write(was, now)


def told(kind: str, names: list[str] | None = None) -> None:
    """Take out what was told.

    Arguments:
        names: of which it was; None: of all.
    """
    with _lock:
        was = {kind: untold(kind) for kind in KINDS}
        left = {} if names is None else {name: n for name, n in was[kind].items() if name not in names}
        _write(was, was | {kind: left})


def rename(entity: str, new: str) -> None:
    """Let what is to be told of a table be told under its new name."""

    def renamed(name: str) -> str:
        table, space, feed = name.partition(" ")
        return f"{new if table == entity else table}{space}{feed}"

    with _lock:
        was = {kind: untold(kind) for kind in KINDS}
        _write(was, {kind: {renamed(name): n for name, n in found.items()} for kind, found in was.items()})


def _write(was: dict, now: dict) -> None:
    if now != was:
        write_state("untold.json", now)


def tell_macros() -> None:
    """Let the test has_declared_fields look at records again whose fields nobody was told of."""
    os.environ["HIGHWATER_UNTOLD"] = json.dumps(untold("fields"))
