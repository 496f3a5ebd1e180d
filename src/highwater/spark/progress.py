"""What a build shows in place of dbt's log: a bar where a person is watching, and a line a table elsewhere."""

import contextlib
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

import click

from highwater.catalog.tables import SECONDS_OF_SILENCE, named

RESULTS = {"LogModelResult", "LogSeedResult", "LogSnapshotResult", "LogTestResult", "LogNodeResult"}
SECONDS_OF_SILENCE_IN_A_LOG = 30
WARNINGS_OF_DBT = {"RunResultWarning", "RunResultWarningMessage"}
QUERY_OF = 'See: highwater query "select * from {}"'
# the lists that every project has, and what stands in them
FOUND_IN = {
    "rejected_changes": "a rejected record each, with why and what to do",
    "stale_rows": "each a key that shows an older row, for its newest change was rejected",
    "sequence_ties": "each a change whose order the source does not tell",
    "late_changes": "each a change that was applied later than the horizon of its table",
    "unassigned_records": "each a file with records of a table that is not declared",
}
PROBLEMS = {"warn": "warning", "error": "error", "fail": "failed test", "skipped": "left out"}


class Progress:
    """What has been heard of a build, and shown of it.

    Attributes:
        layers: see models_of_tables. A line tells of each table when its view is built.
        bar: of rich, where a person is watching; it is told how many of dbt's nodes are done.
    """

    def __init__(self, layers: Mapping[str, tuple[str, str]], bar=None):
        self.layers, self.bar, self.task = layers, bar, None
        self.seconds, self.ended = defaultdict(dict), Counter()
        self.total, self.done, self.running, self.reworded, self.invocation = None, 0, [], set(), {}
        self.began = self.said = time.monotonic()
        self.lock = threading.Lock()

    def hear(self, event) -> None:
        """Take in an event of dbt's, which come from several threads."""
        with self.lock:
            if event.info.name == "MainReportVersion":
                self._begin()
            elif event.info.name == "LogStartLine":
                self._start(event.data.node_info)
                self._show(event.data.node_info.node_name, event.data.total)
            elif event.info.name in RESULTS:
                self._count(event.data.node_info, event.data)
            elif event.info.name == "SkippingDetails":
                self.ended["skipped"] += 1
                self.done += 1
            elif not self._is_reworded(event) and (event.info.level == "warn" or self._is_worth_a_line(event)):
                self._say(event.info.msg)

    def still(self) -> None:
        """Say how far the build has come, where nothing was said for long; the longer it takes, the less often."""
        with self.lock:
            now = time.monotonic()
            if self.bar is None and now - self.said >= max(SECONDS_OF_SILENCE_IN_A_LOG, (now - self.began) / 10):
                self._say(self._how_far(now - self.began))

    def _how_far(self, seconds: float) -> str:
        if self.total is None:
            return f"dbt reads the project, {seconds:.0f} s by now"
        now = named(self.running) or "tests"
        return f"{self.done:,} of {self.total:,} models and tests done in {seconds:.0f} s; now {now}"

    def _begin(self) -> None:
        """An invocation of dbt begins, of which a build may have several."""
        self.total, self.done, self.running = None, 0, []
        # where dbt keeps its manifest when it has one; its threads have no context
        self.invocation = click.get_current_context().obj
        if self.bar is not None:
            if self.task is not None:
                self.bar.remove_task(self.task)
            self.task = self.bar.add_task("dbt reads the project", total=None)

    def _start(self, node) -> None:
        if node.resource_type != "test":
            self.running.append(node.node_name)

    def _show(self, name: str, total: int) -> None:
        self.total = total
        if self.bar is None:
            return
        if self.task is None:
            self.task = self.bar.add_task("", total=total)
        self.bar.update(self.task, description=name, total=total)

    def _count(self, node, data) -> None:
        status = str(data.status).lower()
        kind = "test" if node.resource_type in ("test", "unit_test") else "model"
        self.running = [name for name in self.running if name != node.node_name]
        if status == "warn" and (said := self._what_a_test_found(node.unique_id, data.num_failures)):
            self.reworded.add(node.unique_id)
            self._say(f"warning: {said}")
        self.ended[status if status in PROBLEMS else kind] += 1
        self.done += 1
        if self.bar is not None:
            self.bar.advance(self.task)
        elif kind == "model" and status not in PROBLEMS:
            self._report(node.node_name, data.execution_time)

    def _report(self, name: str, seconds: float) -> None:
        table, layer = self.layers.get(name, (name, "built"))
        if layer == "export":
            return
        self.seconds[table][layer] = self.seconds[table].get(layer, 0) + seconds
        if layer in ("view", "built"):
            self._say(_line(table, self.seconds.pop(table)))

    def _what_a_test_found(self, test: str, failures: int) -> str | None:
        """Return in words of the table what a test warns of that comes with every project; None: it is another test."""
        nodes = self.invocation["manifest"].nodes
        node = nodes.get(test)
        if (kind := getattr(node, "test_metadata", None)) is None:
            return None
        if kind.name == "has_declared_fields":
            return (
                f"{kind.kwargs['feed']}.{kind.kwargs['table']}: new records have fields that are not as declared, "
                "which are told below. To compare declarations and files: highwater check"
            )
        if kind.name != "is_empty" or node.attached_node is None:
            return None
        model = nodes[node.attached_node].name
        if model in FOUND_IN:
            return f"{model} has {_counted(failures, 'row')}, {FOUND_IN[model]}. {QUERY_OF.format(model)}"
        table, layer = self.layers.get(model, (model, "built"))
        if layer == "export":
            return (
                f"{_counted(failures, 'row')} of the newest export of {table} cannot be read, which is no fault of the "
                f"table. To know why: highwater reconcile {table}"
            )
        return None

    def _is_reworded(self, event) -> bool:
        """Return whether an event repeats in dbt's words, which name files of the package, what was said in ours."""
        return event.info.name in WARNINGS_OF_DBT and event.data.node_info.unique_id in self.reworded

    def _is_worth_a_line(self, event) -> bool:
        """Return whether a macro says something; how far a gathered table has come, only in silence."""
        if event.info.name != "JinjaLogInfo":
            return False
        is_how_far = event.data.node_info.materialized == "gathered"
        return not is_how_far or time.monotonic() - self.said > SECONDS_OF_SILENCE

    def _say(self, text: str) -> None:
        self.said = time.monotonic()
        click.echo(text.rstrip("\n"))

    def end(self) -> None:
        """Tell of tables whose view was not built, and how it all ended."""
        for table, seconds in self.seconds.items():
            self._say(_line(table, seconds))
        self.seconds.clear()
        done = f"{_counted(self.ended['model'], 'model')} built, {_counted(self.ended['test'], 'test')} passed"
        problems = [
            f", {_counted(self.ended[status], word)}" for status, word in PROBLEMS.items() if self.ended[status]
        ]
        self._say(f"{done}{''.join(problems)}, in {time.monotonic() - self.began:.0f} s of dbt")


def _line(table: str, seconds: dict[str, float]) -> str:
    return f"{table}: " + ", ".join(f"{layer} {spent:.1f} s" for layer, spent in seconds.items())


def _counted(number: int, noun: str) -> str:
    plural = noun if noun == "left out" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


_current: list[Progress] = []


def current() -> Progress | None:
    """Return what the build that is under way shows; None: dbt's own log."""
    return _current[-1] if _current else None


@contextlib.contextmanager
def shown(layers: Mapping[str, tuple[str, str]]) -> Iterator[None]:
    """Show the progress of what dbt does meanwhile, in place of its log; errors are dbt's own words all the same.

    Arguments:
        layers: see models_of_tables.
    """
    with _bar() as bar:
        _current.append(Progress(layers, bar))
        try:
            # a log has a line from time to time, also while one long step goes on
            with every(SECONDS_OF_SILENCE_IN_A_LOG / 3, _current[-1].still):
                yield
        finally:
            _current.pop().end()


@contextlib.contextmanager
def every(seconds: float, do: Callable[[], None]) -> Iterator[None]:
    """Do something every so many seconds, beside what goes on meanwhile."""
    ended = threading.Event()

    def repeat():
        while not ended.wait(seconds):
            do()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def _bar():
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar
