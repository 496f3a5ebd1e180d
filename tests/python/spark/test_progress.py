"""What a build shows in place of dbt's log, told by dbt's own events."""

from types import SimpleNamespace

import click
import pytest
import yaml
from dbt.events import types
from dbt_common.events.base_types import EventLevel, msg_from_base_event
from highwater.spark import progress
from repository import PROJECT

LAYERS = {
    f"{table}{ending}": (table, layer)
    for table in ("orders", "lines")
    for ending, layer in {"_changes": "log", "_merged": "base", "": "view"}.items()
}
LAYERS |= {f"stg_{feed}__orders_changes": ("orders", "staging") for feed in ("shop", "store")}
LAYERS |= {"stg_exports_shop__orders": ("orders", "export")}
TESTS = {
    "of a list": ("is_empty", "rejected_changes", {}),
    "of another list": ("is_empty", "unassigned_records", {}),
    "of an export": ("is_empty", "stg_exports_shop__orders", {}),
    "of fields": ("has_declared_fields", "stg_shop__orders_changes", {"feed": "shop", "table": "ORDERS"}),
    "of a user's model": ("is_empty", "orders", {}),
    "of a list and a column": ("relationships", "rejected_changes", {}),
    "of a source": ("is_empty", None, {}),
}


class Bar:
    """Where a bar of rich would be told."""

    def __init__(self):
        self.tasks = {}

    def add_task(self, description, total):
        self.tasks[len(self.tasks)] = {"done": 0, "total": total, "description": description}
        return len(self.tasks) - 1

    def update(self, task, **values):
        self.tasks[task] |= values

    def advance(self, task):
        self.tasks[task]["done"] += 1

    def remove_task(self, task):
        self.tasks[task]["removed"] = True


def event(kind: str, level: EventLevel = EventLevel.INFO, **fields):
    return msg_from_base_event(getattr(types, kind)(**fields), level=level)


def node(name: str, resource: str = "model", materialized: str = "view") -> dict:
    unique_id = f"{resource}.highwater.{name}"
    return {"node_name": name, "resource_type": resource, "unique_id": unique_id, "materialized": materialized}


def manifest() -> SimpleNamespace:
    """What dbt knows of the tests above, and of one without `test_metadata`."""
    nodes = {f"model.highwater.{model}": SimpleNamespace(name=model) for _, model, _ in TESTS.values()}
    for name, (kind, model, arguments) in TESTS.items():
        nodes[f"test.highwater.{name}"] = SimpleNamespace(
            test_metadata=SimpleNamespace(name=kind, kwargs=arguments),
            attached_node=model and f"model.highwater.{model}",
        )
    return SimpleNamespace(nodes=nodes | {"test.highwater.one": SimpleNamespace()})


def ended(name: str, seconds: float, status: str = "OK"):
    level = EventLevel.ERROR if status == "error" else EventLevel.INFO
    return event("LogModelResult", level, status=status, execution_time=seconds, node_info=node(name))


def checked(name: str, status: str, failures: int = 0):
    level = {"fail": EventLevel.ERROR, "warn": EventLevel.WARN}.get(status, EventLevel.INFO)
    return event("LogTestResult", level, name=name, status=status, num_failures=failures, node_info=node(name, "test"))


@pytest.fixture(autouse=True)
def invocation():
    """What dbt keeps of an invocation while one is under way."""
    with click.Context(click.Command("build"), obj={}) as context:
        yield context.obj


@pytest.fixture
def build(invocation):
    build = progress.Progress(LAYERS)
    build.hear(event("MainReportVersion", version="1", log_version=3))
    invocation["manifest"] = manifest()  # dbt has read the project
    return build


def test_a_table_has_a_line_when_its_view_is_built(build, capsys):
    for name, seconds in [
        ("stg_shop__orders_changes", 0.5), ("stg_store__orders_changes", 0.25), ("stg_exports_shop__orders", 9),
        ("orders_changes", 3), ("orders_merged", 2), ("lines_changes", 4),
    ]:  # fmt: skip
        build.hear(ended(name, seconds))
    assert capsys.readouterr().out == ""
    build.hear(ended("orders", 1))
    assert capsys.readouterr().out == "orders: staging 0.8 s, log 3.0 s, base 2.0 s, view 1.0 s\n"
    build.hear(ended("of_their_own", 6))
    assert capsys.readouterr().out == "of_their_own: built 6.0 s\n"
    # a table whose view was left out is told at the end
    build.hear(checked("one", "pass"))
    build.end()
    assert capsys.readouterr().out == "lines: log 4.0 s\n8 models built, 1 test passed, in 0 s of dbt\n"


def test_what_went_wrong_is_counted_and_what_is_warned_of_is_told(build, capsys):
    build.hear(ended("orders_changes", 1, "error"))
    build.hear(event("SkippingDetails", node_name="orders_merged", node_info=node("orders_merged")))
    build.hear(checked("one", "warn"))
    build.hear(checked("two", "fail"))
    build.hear(event("RunResultWarning", EventLevel.WARN, resource_type="test", node_name="one", path="models/x.yml"))
    build.hear(event("JinjaLogWarning", EventLevel.WARN, msg="orders waits: a full load"))
    build.hear(event("JinjaLogDebug", EventLevel.DEBUG, msg='{"highwater": "appends"}'))
    build.end()
    said = capsys.readouterr().out
    assert "Warning in test one (models/x.yml)" in said and "orders waits: a full load\n" in said
    assert "appends" not in said and "orders: " not in said
    ending = "0 models built, 0 tests passed, 1 warning, 1 error, 1 failed test, 1 left out, in 0 s of dbt"
    assert said.splitlines()[-1] == ending


@pytest.mark.parametrize(
    "test, told",
    [
        ("of a list", "rejected_changes has 3 rows, a rejected record each, with why and what to do."),
        ("of an export", "3 rows of the newest export of orders cannot be read"),
        ("of another list", 'See: highwater query "select * from unassigned_records"'),
        ("of fields", "shop.ORDERS: new records have fields"),
    ],
)
def test_what_a_test_of_the_package_warns_of_is_told_in_words_of_the_table(build, capsys, test, told):
    """Neither the name that dbt has made nor a file that the user of a wheel does not have."""
    build.hear(checked(test, "warn", failures=3))
    of_it = {"node_info": node(test, "test")}
    build.hear(event("RunResultWarning", EventLevel.WARN, resource_type="test", node_name=test, path="a.yml", **of_it))
    build.hear(event("RunResultWarningMessage", EventLevel.WARN, msg="Got 3 results, configured to warn", **of_it))
    said = capsys.readouterr().out
    assert said.startswith("warning: ") and told in said and len(said.splitlines()) == 1, said
    assert test not in said and "a.yml" not in said


@pytest.mark.parametrize("test", ["of a user's model", "of a list and a column", "of a source"])
def test_what_another_test_warns_of_is_told_by_dbt(build, capsys, test):
    build.hear(checked(test, "warn", failures=3))
    assert capsys.readouterr().out == ""
    of_it = {"node_info": node(test, "test")}
    build.hear(event("RunResultWarning", EventLevel.WARN, resource_type="test", node_name=test, path="a.yml", **of_it))
    assert f"Warning in test {test} (a.yml)" in capsys.readouterr().out


def test_a_list_that_every_project_has_is_known(build):
    """A new one of models/operations whose rows are warned of needs its words."""
    operations = yaml.safe_load((PROJECT / "models/operations/operations.yml").read_text())
    warned = {
        model["name"] for model in operations["models"] for test in model.get("data_tests", []) if "is_empty" in test
    }
    assert warned == progress.FOUND_IN.keys()


def test_a_log_has_a_line_in_long_silence_and_the_longer_the_fewer(build, capsys):
    build.still()
    assert capsys.readouterr().out == ""
    build.said -= 31
    build.still()
    assert capsys.readouterr().out == "dbt reads the project, 0 s by now\n"
    build.hear(event("LogStartLine", description="", index=1, total=9, node_info=node("orders_changes")))
    build.hear(event("LogStartLine", description="", index=2, total=9, node_info=node("one", "test")))
    build.hear(checked("one", "pass"))
    build.still()
    assert capsys.readouterr().out == "", "something was said just now"
    build.said, build.began = build.said - 40, build.began - 100
    build.still()
    assert capsys.readouterr().out == "1 of 9 models and tests done in 100 s; now orders_changes\n"
    # after an hour it takes six minutes of silence
    build.said, build.began = build.said - 300, build.began - 3600
    build.still()
    assert capsys.readouterr().out == ""
    bar = progress.Progress(LAYERS, Bar())
    bar.said -= 100
    bar.still()
    assert capsys.readouterr().out == ""


def test_how_far_something_has_come_is_told_in_silence_only(build, capsys):
    far = event("JinjaLogInfo", msg="ledger: 1 of 4 gathered", node_info=node("ledger", materialized="gathered"))
    build.hear(far)
    build.hear(event("JinjaLogInfo", msg="warning: the log went back", node_info=node("orders_changes")))
    assert capsys.readouterr().out == "warning: the log went back\n"
    build.said -= 60
    build.hear(far)
    assert capsys.readouterr().out == "ledger: 1 of 4 gathered\n"


def test_a_bar_counts_what_is_done_of_each_invocation(capsys):
    bar = Bar()
    build = progress.Progress(LAYERS, bar)
    for task in range(2):
        build.hear(event("MainReportVersion", version="1", log_version=3))
        assert bar.tasks[task]["description"] == "dbt reads the project"
        for name in ("orders_changes", "orders"):
            build.hear(event("LogStartLine", description="", index=1, total=2, node_info=node(name)))
            build.hear(ended(name, 1))
    first, second = bar.tasks.values()
    assert first == {"done": 2, "total": 2, "description": "orders", "removed": True}
    assert second == {"done": 2, "total": 2, "description": "orders"}
    assert capsys.readouterr().out == ""


def test_outside_a_build_dbt_has_its_own_log():
    assert progress.current() is None
    with progress.shown(LAYERS):
        assert progress.current() is not None
    assert progress.current() is None
