"""Commands as a terminal runs them, each in a process of its own, which is forked from one that has imported them."""

import atexit
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

TIMEOUT = 300


def forked(*arguments: str, cwd: Path, program: str = "highwater", environment: dict[str, str]):
    """Run a command in a process that has this environment and no other; return what `subprocess.run` does.

    It is the real command, but for the start of Python and its imports, which take longer than most commands. Those
    who test the start itself, or signals, start Python.

    Arguments:
        program: `highwater` or `dbt`.
    """
    process = _parent()
    with tempfile.NamedTemporaryFile("r") as shown, tempfile.NamedTemporaryFile("r") as said:
        command = [program, [str(each) for each in arguments], str(cwd), environment, shown.name, said.name]
        print(json.dumps(command), file=process.stdin, flush=True)
        code = int(process.stdout.readline())
        return subprocess.CompletedProcess(arguments, code, shown.read(), said.read())


@cache
def _parent() -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, __file__], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )  # ends with its standard input


def _become(program: str, arguments: list[str], cwd: str, environment: dict[str, str], *shown: str):
    for number, path in enumerate(shown, 1):
        os.dup2(os.open(path, os.O_WRONLY), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(cwd)
    os.environ.clear()
    os.environ |= environment
    sys.argv = [program, *arguments]
    signal.alarm(TIMEOUT)
    if program == "dbt":
        from dbt.cli.main import cli

        cli()
    else:
        from highwater.cli import main

        main()


def _code_of(command: list) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        _become(*command)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


if __name__ == "__main__":
    import highwater

    sys.path.pop(0)  # this folder, which no command has
    for module in pkgutil.walk_packages(highwater.__path__, "highwater."):
        importlib.import_module(module.name)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        print(_code_of(json.loads(line)), file=answers, flush=True)
