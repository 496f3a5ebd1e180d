"""dbt in this process, on the session that landing uses too."""

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from highwater.catalog.columns import as_typed
from highwater.catalog.entities import column_in_other_letters
from highwater.catalog.models import models
from highwater.runtime.faults import java_has_ended, masked, without_trace, write_down
from highwater.runtime.printable import ShownStream, in_shell, printable
from highwater.spark import progress, untold
from highwater.spark.spark import session

WITHOUT_SPARK = {"parse", "ls", "list", "deps", "clean"}
# what reads tables and makes none
READING = {"test", "docs", "source", "show", "compile", "debug"}
BUILDING = {"build", "run", "seed", "snapshot"}
DONE = {"success", "pass", "warn", "no-op"}
TESTS = {"test", "unit_test"}
MADE = {"model", "seed", "snapshot"}
A_NAME = re.compile(r"\w+(\.\w+)*", re.ASCII)

# Unit tests and tests of macros are about the project; `make test` runs them, and they cost seconds in every build.
WITHOUT_UNIT_TESTS = ["--exclude-resource-types", "unit_test"]
TESTS_OF_MACROS = "tests/macros"

# what the logs of this process have answered of tables that wait for a declaration, in words, by table
waiting: dict[str, str] = {}
# the same of positions that are doubtful
doubtful: dict[str, str] = {}
# where positions fall, of a feed and a table each, as the macro falls_of_feed hands it over
falls: list[dict] = []
# the first batch of each log that they appended, by table
appended: dict[str, int] = {}
# kinds of news (see untold) that the command tells of at its end, beside the fields of which each run of dbt does
telling: list[str] = []
# how many applied changes it has left pending, by table
pending: dict[str, int] = {}
# what it has answered of the tables that it built, by table; {}: nothing
answers: dict[str, dict] = {}
# whether the ledger has been built behind the logs
recorded: list[str] = []
# models that have no row, as their test is_empty has found
empty: set[str] = set()
# whether the invocation that is under way has run a model or a test
begun: list[str] = []


def without_tests_of_macros() -> list[str]:
    """Return the arguments of dbt that leave the tests of macros out, where the project has some."""
    return ["--exclude", f"path:{TESTS_OF_MACROS}"] if Path(TESTS_OF_MACROS).is_dir() else []


def checks_of_data_only() -> list[str]:
    """Return the arguments of dbt that leave out what tests the project and not its data."""
    return [*WITHOUT_UNIT_TESTS, *without_tests_of_macros()]


def begin(is_same: bool, tells_rejected: bool = False) -> None:
    """Forget what earlier invocations of this process have said.

    Arguments:
        is_same: the project is that of the last build; a macro asks (spark__create_view_as).
        tells_rejected: the command tells what was rejected, also of what a build appended that did not come to it.
    """
    os.environ["HIGHWATER_PROJECT"] = "as it was" if is_same else "changed"
    for heard in (waiting, falls, doubtful, appended, pending, answers, recorded, empty, telling):
        heard.clear()
    if tells_rejected:
        telling.append("rejected")
        # a table may have been removed since
        declared = models("changes")
        appended.update({n: batch for n, batch in untold.untold("rejected").items() if f"{n}_changes" in declared})


def hear(event) -> None:
    """Keep what macros hand over by dbt's events, for no response of a node can say it.

    From the first event of an invocation on, the terminal gets reasons in place of traces.
    """
    if event.info.name == "MainReportVersion":
        _shorten_what_is_printed()
    if event.info.name == "LogStartLine":
        begun.append(event.data.node_info.node_name)
    if progress.current():
        progress.current().hear(event)
    kind, value = handed_over(event)
    if kind == "appends":
        appended.setdefault(value["entity"], value["log_batch"])
        _note_news(value["entity"], value["log_batch"], value["behind"])
    elif kind == "falls":
        falls.append(value)


def handed_over(event) -> tuple[str | None, object]:
    """Return what the macro hand_over hands over by an event of dbt, its kind and its value; None: nothing."""
    said = event.data.msg if event.info.name == "JinjaLogDebug" else ""
    found = json.loads(said) if said.startswith('{"highwater":') else {}
    return found.get("highwater"), found.get("value")


def _note_news(entity: str, log_batch: int, marks: dict[str, int]) -> None:
    """Note what is to be told of a batch that a log appends, before it is there: no kill comes between.

    Arguments:
        marks: by feed, the landing batch above which it takes records in.
    """
    news = {"fields": {f"{entity} {feed}": mark for feed, mark in marks.items()}}
    untold.note(**news, **{kind: {entity: log_batch} for kind in telling})


def _shorten_what_is_printed() -> None:
    """Let dbt print the reason of an error and not Java's trace, which goes to the log of the lake; see faults."""
    from dbt_common.events.event_manager_client import get_event_manager

    for logger in get_event_manager().loggers:
        logger.scrubber = _masking(logger.scrubber)
        if logger.name == "stdout_log":
            logger.scrubber = _shortening(logger.scrubber)
            logger.filter = _without_stacks(logger.filter)


def _masking(scrubber):
    return lambda text: masked(scrubber(text))


def _shortening(scrubber):
    def shortened(text: str) -> str:
        short = without_trace(text)
        if short != text:
            write_down("dbt says", text)
        return scrubber(short)

    return shortened


def _without_stacks(passes):
    return lambda event: event.info.name != "MainStackTrace" and passes(event)


def set_defaults() -> None:
    """Set dbt's environment where the user has not: the project's profile, and dbt-expectations if it is here."""
    os.environ.setdefault("DBT_PROFILES_DIR", "profiles")
    if target := os.environ.get("HIGHWATER_TARGET"):  # the profile may not ask for it
        os.environ["DBT_TARGET"] = target
    os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    os.environ.setdefault("DBT_USE_COLORS", str(sys.stdout.isatty()))
    if "HIGHWATER_DBT_EXPECTATIONS" not in os.environ and Path("dbt_packages/dbt_expectations").exists():
        os.environ["HIGHWATER_DBT_EXPECTATIONS"] = "installed"


@dataclass(frozen=True)
class Outcome:
    """What an invocation of dbt came to.

    Attributes:
        status: 0 done, 1 a model or test failed, 2 dbt could not do it and has said so. left: what it has left to be
            built, as dbt selects it; None: that cannot be told. failed: the names of the models and tests that failed.
        has_begun: whether it has run any of them.
    """

    status: int
    left: list[str] | None
    failed: tuple[str, ...] = ()
    has_begun: bool = True


def source_selector(feed: str, table: str) -> str:
    """Return what selects all that is made of a table of a feed, as dbt names it."""
    # in dbt's words a dot and the marks of a pattern are no part of a name
    return f"source:{feed}.{table}+" if re.fullmatch(r"\w+", table) else f"source:{feed}+"


def left_of(runs: Iterable) -> list[str] | None:
    """Return what is left to be built after an invocation of dbt, as dbt selects it; None: that cannot be told.

    It is what failed and what was skipped for that, with what depends on them. A test that failed leaves the model
    that it is declared for, or those that it reads: what is behind them was not built.

    Arguments:
        runs: dbt's results, one a node.
    """
    left = {}
    for run in runs:
        if str(run.status) in DONE:
            continue
        node = run.node
        kind, own = str(node.resource_type), [node.name] if A_NAME.fullmatch(node.name) else []
        if kind in MADE:
            selectors = [f"{name}+" for name in own]
        elif kind in TESTS and str(run.status) == "skipped":
            left |= dict.fromkeys(own)  # the model that it waited for is left, and takes it along
            continue
        elif kind in TESTS:
            attached = getattr(node, "attached_node", None)
            tested = [attached] if attached else node.depends_on.nodes
            selectors = [*own, *map(_selector_of, tested)]
        else:
            selectors = []
        if not selectors:
            return None
        left |= dict.fromkeys(selectors)
    return [*left]


def _selector_of(unique_id: str) -> str:
    kind, _, name = unique_id.split(".", 2)
    return source_selector(*name.split(".", 1)) if kind == "source" else f"{name}+"


def run(arguments: list[str], type_of: Callable[[dict], str | None] | None = None) -> int:
    """Run one dbt command; see outcome_of.

    Returns: 0 done, 1 a model or test failed, 2 dbt could not do it and has said so.
    """
    return outcome_of(arguments, type_of).status


def outcome_of(arguments: list[str], type_of: Callable[[dict], str | None] | None = None) -> Outcome:
    """Run one dbt command.

    Arguments:
        arguments: as typed behind `dbt`. type_of: returns the type of a field that is not declared, given a row of
            has_declared_fields, see failing_rows; None: it cannot be told now.
    Raises: what dbt did not foresee, a full disk or a signal for example.
    """
    from dbt.cli.main import dbtRunner
    from dbt.flags import get_flags
    from dbt_common.exceptions import DbtBaseException

    set_defaults()
    untold.tell_macros()
    begun.clear()
    if progress.current():
        arguments = ["--quiet", *arguments]
    with contextlib.redirect_stdout(ShownStream(sys.stdout)):
        result = dbtRunner(callbacks=[hear]).invoke(arguments)
    if result.exception is not None:
        if not isinstance(result.exception, DbtBaseException):
            raise result.exception
        return Outcome(2, None, has_begun=bool(begun))
    if not result.success and java_has_ended():
        raise RuntimeError("dbt could not go on")
    if "docs" in arguments and "generate" in arguments:
        close_static_page(Path(os.environ.get("DBT_TARGET_PATH", "target")))
    for row in failing_rows(result, "has_declared_fields"):
        message = (
            f"{row['source_file']}: the field {row['field']} {row['problem']}{_where(row)}.{_what_to_do(row, type_of)}"
        )
        click.echo(printable(message), err=True)
    untold.told("fields", _with_fields_told(result))
    runs = results_of(result)
    take_answers(runs)
    is_whole = result.success or (bool(runs) and not get_flags().FAIL_FAST)
    bad = [run.node.name for run in runs if str(run.status) not in {*DONE, "skipped"} and hasattr(run.node, "name")]
    return Outcome(0 if result.success else 1, left_of(runs) if is_whole else None, tuple(bad))


def results_of(result) -> list:
    """Return dbt's results, one a node; an operation is none.

    Arguments:
        result: what dbtRunner returned.
    """
    return [run for run in getattr(result.result, "results", None) or [] if hasattr(run, "node")]


def take_answers(runs: Iterable) -> None:
    """Keep what logs and bases have answered, see the macro answer_with_facts, whether the ledger was built, and which
    models have no row.

    Arguments:
        runs: see results_of.
    """
    for run in runs:
        code = (getattr(run, "adapter_response", None) or {}).get("code", "")
        if code.startswith("{"):
            _keep(json.loads(code))
        if getattr(run.node, "name", None) == "ledger" and str(run.status) in DONE:
            recorded.append("ledger")
        if _test_of(run, "is_empty"):
            tested = str(run.node.attached_node).rpartition(".")[2]
            has_none = run.failures == 0 and not run.node.config.where
            (empty.add if has_none else empty.discard)(tested)


def _keep(answer: Mapping) -> None:
    entity, met = answer["entity"], answer["met"]
    answers[entity] = answer["facts"]
    # of several feeds, the last
    for kept, kind in ((waiting, "waits"), (doubtful, "doubtful"), (pending, "pending")):
        kept.update((entity, value) for value in met.get(kind, ()))


def _test_of(run, name: str):
    """Return what dbt knows of a generic test of this name, its arguments as `kwargs`; None: another node has run."""
    metadata = getattr(run.node, "test_metadata", None)
    return metadata if metadata and metadata.name == name else None


def _with_fields_told(result) -> list[str]:
    """Return the tables and feeds whose test has_declared_fields has ended and keeps nothing from being built."""
    return [
        f"{test.kwargs.get('entity')} {test.kwargs.get('feed')}"
        for run in results_of(result)
        if (test := _test_of(run, "has_declared_fields")) and str(run.status) in ("pass", "warn")
    ]


def close_static_page(target: Path) -> None:
    """Keep the data of the docs in one file from ending the script that they stand in: no name is read as HTML.

    Arguments:
        target: the folder that dbt has written to; without the page nothing is done.
    """
    page = target / "static_index.html"
    if not page.exists():
        return
    html = page.read_text()
    for data in ((target / name).read_text() for name in ("manifest.json", "catalog.json")):
        html = html.replace(data, data.replace("<", "\\u003c"))
    page.write_text(html)


def failing_rows(result, test: str):
    """Yield the rows that a generic test found, each with the `entity`, `feed` and `table` that the test is of.

    Arguments:
        result: what dbtRunner returned. test: name of the generic test.
    """
    for run in results_of(result):
        if (found := _test_of(run, test)) and run.failures:
            for row in session().sql(run.node.compiled_code).collect():
                yield row.asDict() | {name: found.kwargs.get(name) for name in ("entity", "feed", "table")}


def _where(row: dict) -> str:
    if not row["records"]:
        return ""
    noun = "record" if row["records"] == 1 else "records"
    return f" ({row['records']:,} {noun}, the first in line {row['first_line']})"


def _what_to_do(row: dict, type_of: Callable[[dict], str | None] | None) -> str:
    column = column_in_other_letters(row["entity"], row["field"])
    if not row["records"]:
        return ""
    if row["problem"] != "is not declared":
        read = " They are read as they say."
        command = f"highwater alter {row['entity']} unit {in_shell(column.name)} {row['unit']}"
        return f"{read} To declare that: {command}" if row["unit"] else read
    if column is None:
        data_type = type_of(row) if type_of else None
        added = in_shell(as_typed([(row["field"], data_type or "TYPE")]))
        known = "" if data_type else " (`highwater check` knows the TYPE)"
        return f" To make a column of it{known}: highwater alter {row['entity']} add {added}"
    return (
        f" {column.field} is; to read the column {column.name} from both: highwater alter {row['entity']} rename "
        f"{in_shell(column.field)} {in_shell(row['field'])}"
    )
