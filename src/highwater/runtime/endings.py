"""How a command ends: with the sentence of its error, and its exit code."""

import contextlib
import os
import signal
import sys
import threading

from highwater.runtime.errors import UsageError
from highwater.runtime.faults import sentence_of
from highwater.runtime.printable import printable_text
from highwater.runtime.project import holds_lease

# what runs in threads, or in Spark, may not let go; then the process leaves all the same
SECONDS_TO_LEAVE = 10


def leave_with_the_sentence(command) -> None:
    """Run a command; when it ends badly, print its sentence to standard error and exit with its code.

    Errors that nobody foresaw are told by the module faults, and their traces are in a file. A signal prints one line.
    """
    caught = _catch_signals()
    try:
        command()
        if caught:  # and something has swallowed it
            raise KeyboardInterrupt
    except BaseException as error:
        if isinstance(error, SystemExit) and not caught:
            raise
        sentence, code = _ending(error, caught)
        if sentence:
            print(f"highwater: {printable_text(sentence)}", file=sys.stderr)
        _be_silent()
        sys.exit(code)


def _catch_signals() -> list[int]:
    """Return a list that gets the number of the signal which ends the command; it is told at once."""
    caught: list[int] = []
    # while Spark starts, standard error is another file
    terminal = os.dup(2)

    def stop(number, frame):
        if caught:
            os._exit(128 + number)
        caught.append(number)
        again = b"; run it again to finish what it was doing" if holds_lease() else b""
        os.write(terminal, b"highwater: stopped%s.\n" % again)
        # what dbt and Java say of being stopped
        _send_to_nowhere(1, 2)
        _leave_soon(128 + number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return caught


def _leave_soon(code: int) -> None:
    """Stop what Spark does, and leave the process after some seconds even if something does not let go."""

    def cancel():
        context = sys.modules.get("pyspark.core.context")
        if context and context.SparkContext._active_spark_context:
            with contextlib.suppress(Exception):
                context.SparkContext._active_spark_context.cancelAllJobs()

    last = threading.Timer(SECONDS_TO_LEAVE, os._exit, [code])
    for thread in (last, threading.Thread(target=cancel)):
        thread.daemon = True
        thread.start()


def _ending(error: BaseException, caught: list[int]) -> tuple[str | None, int]:
    """Return the sentence of an error, if there is one to say, and the exit code."""
    if caught or isinstance(error, KeyboardInterrupt):
        return None, 128 + (caught or [signal.SIGINT])[0]
    return sentence_of(error), getattr(error, "exit_code", UsageError.exit_code)


def _send_to_nowhere(*streams: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream)


def _be_silent() -> None:
    """Let what libraries say at the very end, of a Java that is gone for example, not reach the terminal."""
    try:
        sys.stdout.flush()
    except OSError:
        _send_to_nowhere(1)
    _send_to_nowhere(2)
