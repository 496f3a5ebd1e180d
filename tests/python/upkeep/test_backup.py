"""What docs/backup.md tells people to type, typed as it stands there: the rows are what they should be each time."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from repository import PROJECT
from test_places import state
from workshop import environment_of_a_user

PAGE = (PROJECT / "docs/backup.md").read_text()
MADE = """
import fleet
from pathlib import Path
fleet.make_fleet(Path(PROJECT), Path.cwd(), 1)
"""
DELIVERED = "import fleet; from pathlib import Path; fleet.deliver(Path('examples/landing'), fleet.FIRST, {batch}, 50)"
ROWS = "select count(*), sum(hash(*)) from fleet_000"


def commands_of(heading: str) -> list[str]:
    """The blocks of commands below a heading of the page."""
    (part,) = re.findall(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return re.findall(r"^```sh\n(.*?)^```$", part, re.M | re.S)


class Shell:
    """A shell in a project of one table, where the places that the page names are folders of the test."""

    def __init__(self, folder: Path, disk: Path):
        self.project, self.places = folder / "a project", {"/backup": folder, "/scratch": folder, "/disk": disk}
        self.places = {place: below / place.strip("/") for place, below in self.places.items()}
        for path in [self.project, *self.places.values()]:
            path.mkdir()
        paths = [str(PROJECT / "src"), str(PROJECT / "scripts/bench")]
        self.environment = environment_of_a_user() | {
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(paths),
        }

    def run(self, commands: str, **environment) -> subprocess.CompletedProcess:
        """Type commands; return their end."""
        for place, folder in self.places.items():
            commands = re.sub(rf"(?<![\w.]){place}\b", f"'{folder}'", commands)
        return subprocess.run(
            ["bash", "-euc", commands], cwd=self.project, env=self.environment | environment, capture_output=True,
            text=True, timeout=600,
        )  # fmt: skip

    def ends_well(self, commands: str, **environment) -> str:
        """Type commands that have to end well; return what they printed."""
        done = self.run(commands, **environment)
        assert done.returncode == 0, (commands, (done.stdout + done.stderr)[-3000:])
        return done.stdout

    def python(self, code: str):
        """Run Python in the project."""
        subprocess.run([sys.executable, "-c", code], cwd=self.project, env=self.environment, check=True)

    def deliver(self, batch: int):
        """Deliver a batch of changes."""
        self.python(DELIVERED.format(batch=batch))

    def rows(self, **environment) -> str:
        """How many rows there are, and what they hold."""
        return self.ends_well(f'highwater query "{ROWS}" --format csv', **environment).splitlines()[-1]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """The project's lake holds one batch; the disk to move to is another one, where there is another one."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="highwater-disk-", dir=memory) as disk:
        shell = Shell(tmp_path_factory.mktemp("backup"), Path(disk))
        shell.python(f"PROJECT = {str(PROJECT)!r}\n{MADE}")
        shell.deliver(0)
        shell.ends_well("highwater build")
        yield shell


@pytest.mark.soak
def test_the_page_from_its_first_command_to_its_last(shell):
    """Back up, restore, copy, move, lose the metastore, lose the power: after each the rows of the source."""
    headings = re.findall(r"^## (.*)$", PAGE, re.M)
    blocks = {heading: commands_of(heading) for heading in headings}
    assert {heading: len(found) for heading, found in blocks.items()} == {
        "Back up": 1, "Restore": 1, "A copy for tests": 1, "Move": 1, "A lost metastore": 1, "A damaged table": 0,
        "After a power cut": 1,
    }  # fmt: skip
    lake, first = shell.project / ".lake", shell.rows()
    shell.ends_well(blocks["Back up"][0])
    assert state(shell.places["/backup"] / "lake") == state(lake)
    shell.deliver(1)
    shell.ends_well("highwater build")
    second = shell.rows()
    assert second != first
    assert shell.rows(HIGHWATER_LAKE=str(shell.places["/backup"] / "lake")) == first
    shell.ends_well(blocks["Restore"][0])
    assert shell.rows() == second
    # a copy applies what comes, and its original knows nothing of it
    before = state(lake)
    shell.deliver(2)
    shell.ends_well(blocks["A copy for tests"][0])
    copy = {"HIGHWATER_LAKE": str(shell.places["/scratch"] / "lake")}
    third = shell.rows(**copy)
    assert third != second and state(lake) == before and shell.rows() == second
    moved = shell.places["/disk"] / "lake"
    shell.ends_well(blocks["Move"][0])
    assert not lake.exists()
    there = {"HIGHWATER_LAKE": str(moved)}
    assert shell.rows(**there) == second
    shell.ends_well("highwater build", **there)
    assert shell.rows(**there) == third
    shell.ends_well("mv /disk/lake .lake")
    refused = shell.run("mv .lake/metastore .lake/metastore.damaged; highwater build")
    assert refused.returncode == 2 and "highwater recover" in refused.stderr, refused.stderr
    shell.ends_well(blocks["A lost metastore"][0])
    assert shell.rows() == third
    shell.deliver(3)
    shell.ends_well("highwater build")
    fourth = shell.rows()
    (newest, *_) = sorted(lake.glob("tables/raw.db/*/_delta_log/*.json"), reverse=True)
    newest.write_bytes(newest.read_bytes()[:100])
    refused = shell.run("highwater build")
    assert refused.returncode == 2 and "is empty or half" in refused.stderr, refused.stderr
    shell.ends_well(blocks["After a power cut"][0])
    assert shell.rows() == fourth != third


@pytest.mark.soak
@pytest.mark.skipif(not shutil.which("rsync"), reason="there is no rsync here")
def test_the_other_copy_that_the_page_names(shell):
    assert "`rsync -a`" in PAGE
    shell.ends_well("flock .lake/lease rsync -a .lake/ /backup/synchronised")
    copy = shell.places["/backup"] / "synchronised"
    assert state(copy) == state(shell.project / ".lake")
    assert shell.rows(HIGHWATER_LAKE=str(copy)) == shell.rows()


@pytest.mark.soak
def test_a_backup_and_a_command_that_writes_wait_for_each_other(shell):
    """What the page says of `flock`."""
    told = shell.run("flock .lake/lease highwater land")
    assert told.returncode == 2 and "in use" in told.stderr, told.stderr
    free = shell.run("flock --nonblock .lake/lease true")
    assert free.returncode == 0
