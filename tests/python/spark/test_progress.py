"""What a build shows in place of dbt's log, told by dbt's own events."""

import pytest
from dbt.events import types
from dbt_common.events.base_types import EventLevel, msg_from_base_event
from highwater.spark import progress


class Bar:
    """Where a bar of rich would be told."""

    def __init__(self):
        self.tasks = {}

    def add_task(self, description, total):
        self.tasks[len(self.tasks)] = {"done": 0, "total": total}
        return len(self.tasks) - 1

    def update(self, task, **values):
        self.tasks[task] |= values

    def advance(self, task):
        self.tasks[task]["done"] += 1

    def remove_task(self, task):
        self.tasks[task]["removed"] = True


def event(kind: str, level: EventLevel = EventLevel.INFO, **fields):
    return msg_from_base_event(getattr(types, kind)(**fields), level=level)


def node(name: str, resource: str = "model") -> dict:
    return {"node_name": name, "resource_type": resource, "unique_id": f"{resource}.highwater.{name}"}


def ended(name: str, seconds: float, status: str = "OK"):
    level = EventLevel.ERROR if status == "error" else EventLevel.INFO
    return event("LogModelResult", level, status=status, execution_time=seconds, node_info=node(name))


def checked(name: str, status: str):
    level = {"fail": EventLevel.ERROR, "warn": EventLevel.WARN}.get(status, EventLevel.INFO)
    return event("LogTestResult", level, name=name, status=status, node_info=node(name, "test"))


@pytest.fixture
def build():
    return progress.Progress(["orders", "lines"])


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
    assert capsys.readouterr().out == "lines: log 4.0 s\n8 models built, 1 test passed, in 0 s\n"


def test_what_went_wrong_is_counted_and_what_is_warned_of_is_told(build, capsys):
    build.hear(ended("orders_changes", 1, "error"))
    build.hear(event("SkippingDetails", node_name="orders_merged", node_info=node("orders_merged")))
    build.hear(checked("one", "warn"))
    build.hear(checked("two", "fail"))
    build.hear(event("RunResultWarning", EventLevel.WARN, resource_type="test", node_name="one", path="models/x.yml"))
    build.hear(event("JinjaLogWarning", EventLevel.WARN, msg="orders waits: a full load"))
    build.hear(event("JinjaLogDebug", EventLevel.DEBUG, msg="orders appends batch 3 of its log"))
    build.end()
    said = capsys.readouterr().out
    assert "Warning in test one (models/x.yml)" in said and "orders waits: a full load\n" in said
    assert "appends" not in said and "orders: " not in said
    ending = "0 models built, 0 tests passed, 1 warning, 1 error, 1 failed test, 1 left out, in 0 s"
    assert said.splitlines()[-1] == ending


def test_how_far_something_has_come_is_told_in_silence_only(build, capsys):
    far = event("JinjaLogInfo", msg="ledger: 1 of 4 gathered", node_info=node("ledger"))
    build.hear(far)
    build.hear(event("JinjaLogInfo", msg="warning: the log went back", node_info=node("orders_changes")))
    assert capsys.readouterr().out == "warning: the log went back\n"
    build.said -= 60
    build.hear(far)
    assert capsys.readouterr().out == "ledger: 1 of 4 gathered\n"


def test_a_bar_counts_what_is_done_of_each_invocation(capsys):
    bar = Bar()
    build = progress.Progress(["orders"], bar)
    for _ in range(2):
        build.hear(event("MainReportVersion", version="1", log_version=3))
        for name in ("orders_changes", "orders"):
            build.hear(event("LogStartLine", description="", index=1, total=2, node_info=node(name)))
            build.hear(ended(name, 1))
    first, second = bar.tasks.values()
    assert first == {"done": 2, "total": 2, "description": "orders", "removed": True}
    assert second == {"done": 2, "total": 2, "description": "orders"}
    assert capsys.readouterr().out == ""


def test_outside_a_build_dbt_has_its_own_log():
    assert progress.current() is None
    with progress.shown(["orders"]):
        assert progress.current() is not None
    assert progress.current() is None
