"""One Spark process and one lake for all tests; each test has its own feed folder, table or key range."""

import os
import shutil
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="run the long tests too")


def pytest_collection_modifyitems(config, items):
    chosen = config.getoption("--soak")
    for item in items:
        if item.get_closest_marker("soak") and not chosen:
            item.add_marker(pytest.mark.skip(reason="long: make soak"))


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """A copy of the project without its example tables, with a lake and landing folders of its own."""
    from workshop import Workshop

    folder = tmp_path_factory.mktemp("workshop") / "project"
    workshop = Workshop.copy_of(PROJECT, folder)
    here = Path.cwd()
    os.chdir(folder)
    yield workshop
    workshop.stop()
    os.chdir(here)
    shutil.rmtree(folder, ignore_errors=True)
