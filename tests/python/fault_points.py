"""Calls of the system that fail at a chosen point, in a process of its own that takes one command after the other."""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import shutil
import signal
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
        ("seen", ctypes.c_uint64 * 6),
        ("below", ctypes.c_char * 4096),
        ("but", ctypes.c_char * 4096),
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
    def at(self, number: int, kind: str, below: Path, but: Path | None = None):
        """Let the call of this number below a folder, and not below another, fail; 0: only count them."""
        error, calls, stays = KINDS[kind]
        control = self.control
        control.error, control.calls, control.stays = error, calls, stays
        control.at, control.count, control.hits, control.below = number or 2**63, 0, 0, os.fsencode(below)
        control.but, control.seen[:] = os.fsencode(but or ""), [0] * 6
        control.armed = 1
        try:
            yield control
        finally:
            control.armed = 0


def calls_of(kind: str, control: Control) -> int:
    """How many calls that a kind lets fail were seen."""
    return sum(seen for place, seen in enumerate(control.seen) if KINDS[kind][1] & 1 << place)


class Commands:
    """A process that runs commands one after the other in one Spark session; begun anew where it was killed."""

    def __init__(self, project: Path, environment: dict):
        self.project, self.environment, self.process = project, environment, None

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command; return its exit code and what a terminal would have shown."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, __file__], cwd=self.project, env=self.environment, text=True, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        print(json.dumps(arguments), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            self.end()
            return -signal.SIGKILL, ""
        code, shown = json.loads(answer)
        if "Java process ended" in shown:
            self.end()
        return code, shown

    def rows(self, sql: str) -> list[list]:
        """Ask the lake."""
        code, shown = self.run("sql", sql)
        assert code == 0, shown
        return json.loads(shown)

    def end(self):
        """End the process, its Java and its workers."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)
            self.process = None


def _run(arguments: list[str]) -> tuple[int, str]:
    from highwater import cli
    from highwater.runtime import endings
    from highwater.spark.spark import remove_unfinished_tables, session

    if arguments[0] == "sql":
        return 0, json.dumps([list(row) for row in session().sql(arguments[1]).collect()], default=str)
    if arguments[0] == "statements":
        import fleet

        with fleet.statements_seen() as seen:
            code, shown = _run(arguments[1:])
        return code, json.dumps(seen) if code == 0 else shown
    if arguments[0] == "outcomes":
        from highwater.spark import dbt

        outcomes, left_of = {}, dbt.left_of
        dbt.left_of = lambda runs: outcomes.update({r.node.name: str(r.status) for r in runs}) or left_of(runs)
        try:
            code, shown = _run(arguments[1:])
        finally:
            dbt.left_of = left_of
        return code, json.dumps([shown, outcomes])
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
            sentence, code = endings._ending(error, [])
            print(f"highwater: {sentence}", file=sys.stderr)
        sys.stdout.flush()
        shown.seek(0)
        return code, shown.read()


if __name__ == "__main__":
    from highwater.runtime.faults import keep_the_terminal_clean

    keep_the_terminal_clean()
    answers = open(os.dup(1), "w")  # noqa: SIM115
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), file=answers, flush=True)
