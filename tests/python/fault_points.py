"""Calls of the system that fail at a chosen point, in a process of its own that takes one command after the other."""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

OPEN, WRITE, RENAME, MKDIR, UNLINK, READ = (1 << place for place in range(6))
# what fails, by which calls; a full disk stays full, one bad block is one
KINDS = {
    "ENOSPC": (errno.ENOSPC, OPEN | WRITE | MKDIR, True),
    "EROFS": (errno.EROFS, OPEN | MKDIR | RENAME | UNLINK, True),
    "EACCES": (errno.EACCES, OPEN | MKDIR | RENAME | UNLINK, True),
    "EIO": (errno.EIO, OPEN | WRITE | MKDIR | RENAME | READ, False),
    "killed": (0, OPEN | WRITE | RENAME | MKDIR, False),
}


class Control(ctypes.Structure):
    """The struct of fault_library.c."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("armed", "error", "calls", "stays")),
        *((name, ctypes.c_uint64) for name in ("at", "count", "hits")),
        ("below", ctypes.c_char * 4096),
    ]


class Faults:
    """The library, compiled into a folder, and what it is told."""

    def __init__(self, folder: Path):
        compiler = shutil.which("gcc") or shutil.which("cc")
        assert compiler, "these tests need a C compiler: install gcc"
        self.library, control = folder / "faults.so", folder / "faults"
        source = Path(__file__).with_name("fault_library.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self.library, source, "-ldl"], check=True)
        control.write_bytes(bytes(ctypes.sizeof(Control)))
        with open(control, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.control = Control.from_buffer(self.memory)
        self.environment = {"LD_PRELOAD": str(self.library), "FAULT_CONTROL": str(control)}

    @contextlib.contextmanager
    def at(self, number: int, kind: str, below: Path):
        """Let the call of this number below a folder fail; 0: only count them."""
        error, calls, stays = KINDS[kind]
        control = self.control
        control.error, control.calls, control.stays = error, calls, stays
        control.at, control.count, control.hits, control.below = number or 2**63, 0, 0, os.fsencode(below)
        control.armed = 1
        try:
            yield control
        finally:
            control.armed = 0


class Commands:
    """A process that runs commands one after the other in one Spark session."""

    def __init__(self, project: Path, environment: dict):
        self.process = subprocess.Popen(
            [sys.executable, __file__], cwd=project, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command; return its exit code and what a terminal would have shown."""
        print(json.dumps(arguments), file=self.process.stdin, flush=True)
        code, shown = json.loads(self.process.stdout.readline())
        return code, shown

    def rows(self, sql: str) -> list[list]:
        """Ask the lake."""
        return json.loads(self.run("sql", sql)[1])

    def end(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait(60)


def _run(arguments: list[str]) -> tuple[int, str]:
    from highwater import cli, errors
    from highwater.spark import remove_unfinished_tables, session

    if arguments[0] == "sql":
        return 0, json.dumps([list(row) for row in session().sql(arguments[1]).collect()], default=str)
    with open(os.environ["HIGHWATER_SHOWN"], "w+") as shown:
        for number in (1, 2):
            os.dup2(shown.fileno(), number)
        try:
            remove_unfinished_tables(session())  # as each process does at its start
            cli.commands(arguments, standalone_mode=False)
            code = 0
        except SystemExit as ended:
            code = ended.code
        except BaseException as error:
            sentence, code = errors._ending(error, [])
            print(f"highwater: {sentence}", file=sys.stderr)
        sys.stdout.flush()
        shown.seek(0)
        return code, shown.read()


if __name__ == "__main__":
    from highwater.faults import keep_the_terminal_clean

    keep_the_terminal_clean()
    answers = open(os.dup(1), "w")  # noqa: SIM115
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), file=answers, flush=True)
