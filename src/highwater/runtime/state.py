"""What commands keep of themselves beside the tables, each kind in a file of the lake: `last_build.json`, for example.

The lake of a deployment may be at a URI. Whoever starts Spark says then by which file system its files are reached.
"""

import json
import os
import shutil
from collections.abc import Callable
from typing import Protocol

from highwater.runtime.deployment import is_here
from highwater.runtime.project import lake, utc_now, write_whole


class Files(Protocol):
    """Files of a lake, by their paths below it."""

    def read(self, path: str) -> bytes | None:
        """Return what a file holds; None: it is not there."""

    def write(self, path: str, content: bytes) -> None:
        """Write a file, so that nobody ever finds half of it."""

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and all that is in it; what is not there is no error."""

    def names(self, path: str) -> list[str]:
        """Return the names of what is in a folder; none where it is not there."""

    def state_of(self, path: str) -> tuple[int, int]:
        """Return size, in bytes, and time of the last change of a file, which both change when it is written anew."""


class _Here:
    """Files of a lake in a folder of this machine."""

    def read(self, path: str) -> bytes | None:
        try:
            return (lake() / path).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes) -> None:
        (lake() / path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(lake() / path, content.decode())

    def remove(self, path: str) -> None:
        if (lake() / path).is_dir():
            shutil.rmtree(lake() / path)
        else:
            (lake() / path).unlink(missing_ok=True)

    def names(self, path: str) -> list[str]:
        try:
            return os.listdir(lake() / path)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def state_of(self, path: str) -> tuple[int, int]:
        state = (lake() / path).stat()
        return state.st_size, state.st_mtime_ns


_elsewhere: list[Callable[[], Files]] = []


def reached_by(files: Callable[[], Files]) -> None:
    """Say what returns the files of a lake at a URI."""
    _elsewhere[:] = [files]


def files() -> Files:
    """Return the files of the lake."""
    return _Here() if is_here() else _elsewhere[0]()


def read_state(name: str) -> dict:
    """Return what a state file holds; nothing where it is missing, half written or something else."""
    try:
        found = json.loads(files().read(name) or b"null")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def write_state(name: str, values: dict) -> None:
    """Write all that a state file will hold."""
    files().write(name, json.dumps(values).encode())


def forget_state(name: str) -> None:
    """Remove a state file."""
    files().remove(name)


def patch_mark(name: str) -> str:
    """Return the file that says since when a table, `<feed>.<table>`, is being patched; it is there only meanwhile."""
    return f"patches/{name}"


def disabled_mark(name: str) -> str:
    """Return the file that says since when a table, `<feed>.<table>`, is no longer captured; only meanwhile."""
    return f"disabled/{name}"


def set_mark(mark: str) -> None:
    """Write the time of now into the file of a mark."""
    files().write(mark, utc_now().encode())


def marked_since(mark: str) -> str | None:
    """Return the time that a mark was set at; None: it is not set."""
    found = files().read(mark)
    return None if found is None else found.decode(errors="replace").strip()
