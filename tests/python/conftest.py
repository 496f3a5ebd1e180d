"""One Spark process and one lake for all tests; each test has its own feed folder, table or key range."""

import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# what tests share is here, and some of it in other tests
sys.path[:0] = [str(HERE), *(str(folder) for folder in sorted({path.parent for path in HERE.glob("*/test_*.py")}))]

from repository import COLLECTED  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests that take minutes instead of the others")
    parser.addoption("--soak", action="store_true", help="run all tests, also those that take an hour")


class SaidAtOnce:
    """Says a failure when it is there: a run that is cut off has named what it found."""

    def __init__(self, config):
        self.plugins = config.pluginmanager

    def pytest_runtest_logreport(self, report):
        reporter = self.plugins.get_plugin("terminalreporter")
        if report.failed and reporter:
            reporter.write_line(f"\nFAILED {report.nodeid} ({report.when})\n{report.longreprtext[-2000:]}")


def pytest_configure(config):
    config.pluginmanager.register(SaidAtOnce(config))


def pytest_collection_modifyitems(config, items):
    config.stash[COLLECTED] = [item.nodeid for item in items]
    if config.getoption("--soak"):
        return

    def is_left_out(item):
        return item.get_closest_marker("soak") or bool(item.get_closest_marker("long")) != config.getoption("--long")

    config.hook.pytest_deselected(items=[item for item in items if is_left_out(item)])
    items[:] = sorted((item for item in items if not is_left_out(item)), key=_turn)


# modules that take more than two minutes, the longest first: then the processes end at about the same time
LONG_FIRST = [
    "test_wheel", "test_base_and_pending", "test_files_of_users", "test_evolution",
    "test_restored_tables", "test_schema_drift", "test_compaction", "test_what_is_built", "test_rejections",
    "test_planted_faults", "test_extract", "test_tungsten_arcion_debezium", "test_debezium_recorded",
    "test_publishing", "test_periods_of_columns", "test_moves", "test_shards", "test_reconcile_command",
    "test_falling_positions", "test_random_histories", "test_landing", "test_declared", "test_relations",
]  # fmt: skip


def _turn(item) -> int:
    name = item.path.stem
    return LONG_FIRST.index(name) if name in LONG_FIRST else len(LONG_FIRST)


# The tables that tests use, beside the example; all are declared before the first build.
TABLES = [
    ("datastream_cases.cases", "case_name:string,k:string", "v:string"),
    ("datastream_histories.histories", "history:int,k:string", "v:string,n:decimal(20,4)"),
    (
        "datastream_types.readings",
        "id:int",
        "n:decimal(5,2),d:date,t:timestamp,l:timestamp_ntz,b:boolean,x:double,y:binary,s:string",
    ),
    ("datastream_article.halves", "COL1:string", "COL2:string"),
    ("datastream_article.based", "COL1:string", "COL2:string"),
    ("baseline_article.based", None, None),
    ("datastream_oracle.scn_ordered", "k:string", "v:string,feed:string,operation:string,Copy:int"),
    ("datastream_views.viewed", "id:bigint", "v:string"),
    ("datastream_gauges.gauges", "id:int", "n:int,small:tinyint,price:decimal(6,2),day:date,flag:boolean,s:string"),
]


@pytest.fixture(scope="session")
def workshop(request, tmp_path_factory):
    """A copy of the project with its first example and further tables, landed and built, in a lake of its own.

    The other examples are built, and compared with their exports, by `make build`; here by `make soak`.
    """
    from repository import PROJECT
    from workshop import Workshop

    folder = tmp_path_factory.mktemp("workshop") / "project"
    workshop = Workshop.copy_of(PROJECT, folder, () if request.config.getoption("--soak") else ("user1",))
    here = Path.cwd()
    os.chdir(folder)
    for table, key, columns in TABLES:
        workshop.add_table(table, key, columns, "csv" if table.startswith("baseline") else "datastream-json")
    declaration = folder / "models/staging/datastream_oracle/_datastream_oracle__sources.yml"
    declaration.write_text(
        declaration.read_text().replace(
            "format: datastream-json",
            "format: datastream-json\n          order: oracle_sort_keys\n          baseline: metadata.sort_keys[2] = ''",  # noqa: E501
        )
    )
    workshop.land("datastream_user1", "exports_user1")
    workshop.build("rejection_reasons", "+table1", "+customers", "path:models/staging/exports_user1", command="run")
    yield workshop
    workshop.stop()
    os.chdir(here)
    shutil.rmtree(folder, ignore_errors=True)
