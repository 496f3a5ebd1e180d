"""Which delivered files are whole, and which have landed before they were.

A file that ends within a line was cut, where its producer ends every line.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from pyarrow import fs

from highwater.formats.compression import HEAD_BYTES, is_packed, looks_foreign
from highwater.formats.formats import FORMATS
from highwater.landing.listing import DeliveredFile, digest_if_readable, filesystem

OPENED_AT_ONCE = 16
# where what a tool adds to a name may begin
PLACES = re.compile(r"(?<!^)[._]|\d+\Z")


def cut_files(root: str, format: str, files: list[DeliveredFile]) -> list[DeliveredFile]:
    """Return those of some files that end within a line, where the format's producer ends the last line too.

    What is packed tells by itself whether it is whole, where it is read.

    Arguments:
        root: the folder or URI in which they are.
    """
    asked = [file for file in files if file.size and not file.problem] if FORMATS[format].ends_last_line else []
    if not asked:
        return []
    system, _ = filesystem(root)
    with ThreadPoolExecutor(OPENED_AT_ONCE) as threads:
        answers = [*threads.map(lambda file: _ends_within_a_line(system, file), asked)]
    return [file for file, is_cut in zip(asked, answers, strict=True) if is_cut]


def _ends_within_a_line(system: fs.FileSystem, file: DeliveredFile) -> bool:
    try:
        with system.open_input_file(file.path) as opened:
            if opened.read_at(1, file.size - 1) == b"\n":
                return False
            head = opened.read_at(HEAD_BYTES, 0)
    except OSError:  # told where it is read
        return False
    return not is_packed(head) and not looks_foreign(head)


def begun_before(
    root: str, new: list[DeliveredFile], gone: list[tuple[str, int, str]]
) -> Iterator[tuple[DeliveredFile, str]]:
    """Yield each new file that begins with all that a file held whose name was its own and more, with that name.

    So a tool calls a file that it is still writing, and versions before this one landed such.

    Arguments:
        root: the folder or URI in which the new ones are.
        gone: name, size and SHA-256 of files that have landed and are gone.
    """
    by_name = {file.source_file: file for file in new if not file.problem}
    for name, size, digest in gone:
        folder, _, last = name.rpartition("/")
        for end in {found.start() for found in PLACES.finditer(last)}:
            file = by_name.get(f"{folder}/{last[:end]}")
            if file and 0 < size < file.size and digest_if_readable(root, file.path, size) == digest:
                yield file, name
