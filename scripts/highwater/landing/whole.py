"""Which delivered files are whole: a file that ends within a line was cut, where its producer ends every line."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from pyarrow import fs

from highwater.formats.compression import HEAD_BYTES, is_packed, looks_foreign
from highwater.formats.formats import FORMATS

OPENED_AT_ONCE = 16


@dataclass(frozen=True)
class DeliveredFile:
    """A file in a landing folder.

    Attributes:
        path: where to open it. source_file: its path below the landing folder.
        table: what its folder or its name tells; None where records do.
        size: bytes. modified_at: last change. position, taken_at: of the source, for exports, as declared.
        problem: why it cannot be read, behind its name, which is then written as it can be shown; None: it can.
    """

    path: str
    source_file: str
    table: str | None
    size: int
    modified_at: datetime
    position: str | None = None
    taken_at: str | None = None
    problem: str | None = None


def cut_files(system: fs.FileSystem, format: str, files: list[DeliveredFile]) -> list[DeliveredFile]:
    """Return those of some files that end within a line, where the format's producer ends the last line too.

    What is packed tells by itself whether it is whole, where it is read.

    Arguments:
        system: in which they are.
    """
    if not FORMATS[format].ends_last_line:
        return []
    asked = [file for file in files if file.size and not file.problem]
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
