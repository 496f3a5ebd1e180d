"""Text from outside, as it may stand on a terminal: names and values of records, files, databases."""

import os
import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches

# what moves the cursor, colours, turns the direction of writing, breaks lines or is no character at all
UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
OF_A_LOG = re.compile(rf"(?P<plain>\x1b\[[0-9;]*m|[\t\r\n])|{UNPRINTABLE.pattern}")
# as difflib counts it
ALIKE = 0.8
SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(name: str) -> str:
    """Return a name as one line can show it: what is no character to look at stands there as `\\n`, `\\x1b`, `\\u202e`.

    A byte of a file's name that is no UTF-8, which Python has as half of a pair, becomes `\\xff`.
    """
    return UNPRINTABLE.sub(_escape, name)


def printable_text(text: str) -> str:
    """Return a text as a terminal can show it: its lines and tabs stay, the rest is as in `printable`."""
    return UNPRINTABLE.sub(lambda found: found[0] if found[0] in "\t\n" else _escape(found), text)


def in_shell(text: str) -> str:
    """Return a text as one word of a shell's command; control characters stand there as bash and zsh read them."""
    if not UNPRINTABLE.search(text):
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + UNPRINTABLE.sub(lambda found: _in_bytes(found[0]), escaped) + "'"


def _in_bytes(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


class ShownStream:
    """A stream to a terminal that lets colours and lines through, and shows every other control character."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text as it can be shown."""
        self.stream.write(OF_A_LOG.sub(lambda found: found[0] if found["plain"] else _escape(found), text))
        return len(text)

    def __getattr__(self, name: str):
        return getattr(self.stream, name)


def _escape(found: re.Match) -> str:
    character = ord(found[0])
    if 0xDC80 <= character <= 0xDCFF:
        character -= 0xDC00
    return SHORT.get(found[0]) or (f"\\x{character:02x}" if character < 0x100 else f"\\u{character:04x}")


def counted(number: int, noun: str) -> str:
    """Return a number of things in words.

    Example: `counted(1200, "record")` is `1,200 records`.
    """
    return f"{number:,} {noun}{'s'[: number != 1]}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question that names the word which is most like a misspelt one; nothing where none is like it.

    Example: `did_you_mean("decimal", ["decimals", "times"])` is ` Did you mean decimals?`.
    """
    near = get_close_matches(word, sorted(known), 1, ALIKE)
    return f" Did you mean {near[0]}?" if near else ""
