"""A project of a user's own: the wheel installed in an empty environment, tables added, built, proven, upgraded."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from repository import PROJECT

pytestmark = pytest.mark.long

OF_THE_WHEEL = ["pyproject.toml", "setup.py", "README.md", "LICENSE", "dbt_project.yml"]
OF_THE_WHEEL += ["conf", "macros", "models", "profiles", "src/highwater", "tests/generic"]
OF_THE_WHEEL += ["java"]
# Files that stand elsewhere in the wheel than in the repository; what the repository's tests say of every format
# holds of the wheel if it has the same files.
PACKAGED = ["dbt_project.yml", "conf", "macros", "models/docs.md", "models/operations", "profiles", "tests/generic"]
PACKAGED += ["java/logstore/highwater-logstore.jar"]
# one whose files are read by Spark, and one whose records are read by Python: their tables and their exports
TABLES = {
    "datastream_user1.customers": "exports_user1",
    "debezium_erp.payments": "exports_erp",
}
NEWER = "/* as the newer version has it */"


def wheel_of(folder: Path, version: str, change=lambda folder: None) -> Path:
    """Build the wheel of the repository, under another version and with a change."""
    folder.mkdir()
    for name in OF_THE_WHEEL:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PROJECT / name, folder / name)
    settings = folder / "pyproject.toml"
    settings.write_text(settings.read_text().replace('\nversion = "0.7.0"\n', f'\nversion = "{version}"\n'))
    change(folder)
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder / "dist", folder)
    (wheel,) = (folder / "dist").glob(f"highwater-{version}-*.whl")
    return wheel


def environment_with(folder: Path, wheel: Path) -> Path:
    """Make an environment that has the wheel, and beside it the packages of this one; return its command."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = folder / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    # a line of a path, so that what makes packages of this environment editable is not read
    (packages / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip("--python", folder / "bin/python", "install", "--ignore-installed", "--no-deps", "--no-index", wheel)
    return folder / "bin/highwater"


def pip(*arguments):
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def environment() -> dict[str, str]:
    """The environment of this process, without what is set in it for this project."""
    settings = ("HIGHWATER_", "DBT_", "SPARK_", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(settings)}


class Shop:
    """The project, and the version of the command that runs in it."""

    def __init__(self, folder: Path, command: Path):
        self.folder, self.command = folder, command

    def run(self, *arguments, code=0):
        ended = subprocess.run(
            [self.command, *arguments], cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=900
        )
        assert ended.returncode == code, f"{arguments}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"
        return ended.stdout


def declared(table: str):
    """How the examples declare a table, as one would type it: its key, columns, format and settings."""
    from highwater.catalog.entities import declared_columns
    from highwater.catalog.feeds import declared_feeds

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PROJECT)
        columns, key = declared_columns(table.partition(".")[2])
        feed = declared_feeds()[table.partition(".")[0]]

    def typed(columns):
        units = [f"{c.data_type}[{c.unit}]" if c.unit else c.data_type for c in columns]
        return ",".join(f"{c.field}:{kind}" for c, kind in zip(columns, units, strict=True))

    given = {name: value for name, value in feed.settings.items() if name not in ("format", "role", "positions")}
    return (
        ["--key", typed([c for c in columns if c.name in key]), "--columns"]
        + [typed([c for c in columns if c.name not in key]), "--format", feed.format]
        + [word for name, value in given.items() for word in ("--setting", f"{name}={value}")]
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return wheel_of(tmp_path_factory.mktemp("wheel") / "of_first", "0.7.0")


def files_of(*names: str) -> dict[str, bytes]:
    """Return the files of the repository below these paths, without what commands leave there (`.user.yml` of dbt)."""
    below = [path for name in names for path in [PROJECT / name, *(PROJECT / name).glob("**/*")]]
    files = {str(path.relative_to(PROJECT)): path for path in below if path.is_file()}
    left = {name for name, path in files.items() if path.name.startswith(".") or path.suffix == ".pyc"}
    return {name: files[name].read_bytes() for name in sorted({*files} - left)}


def test_the_wheel_has_the_files_of_the_repository(wheel):
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    packaged = {f"highwater/package/{name}": text for name, text in files_of(*PACKAGED).items()}
    modules = {name.removeprefix("src/"): text for name, text in files_of("src/highwater").items()}
    tables = "highwater/package/macros/operations/logged_tables.sql"
    # the tables of the repository are examples
    assert found.pop(tables) != packaged.pop(tables)
    expected = packaged | modules
    assert not {*found} ^ {*expected}
    assert not [name for name, text in expected.items() if found[name] != text]


@pytest.fixture(scope="module")
def shop(wheel, tmp_path_factory):
    """A project with two tables, built by the wheel."""
    folder = tmp_path_factory.mktemp("shop_of_wheel")
    command = environment_with(folder / "first", wheel)
    shop = Shop(folder, command)
    shop.run("init", "shop")
    shop.folder = folder / "shop"
    (shop.folder / ".spark").symlink_to(PROJECT / ".spark")  # what it would fetch
    # what dbt keeps of a project without tables does not stand in the way of the first one
    shop.run("dbt", "parse")
    for table, exports in TABLES.items():
        feed, _, name = table.partition(".")
        shop.run("add-table", table, *declared(table))
        positions = ["--setting", f"positions={feed}"] if feed == "debezium_erp" else []
        shop.run("add-table", f"{exports}.{name}", "--format", "csv", "--setting", "role=export", *positions)
        shutil.copytree(PROJECT / f"examples/landing/{feed}", shop.folder / f"landing/{feed}")
        shutil.copytree(PROJECT / f"examples/exports/{exports}", shop.folder / f"exports/{exports}")
    built = shop.run("build")
    assert "WARNING" not in built, "nothing of a project that was just made is worth a warning of dbt"
    return shop


def test_what_keeps_a_project_from_being_made_or_used(shop, tmp_path):
    """A sentence each, and nothing is written."""

    def refused(folder, *arguments):
        ended = subprocess.run(
            [shop.command, *arguments], cwd=folder, env=environment(), capture_output=True, text=True, timeout=60
        )
        assert ended.returncode == 2 and ended.stderr.startswith("highwater: ") and ended.stderr.count("\n") == 1
        return ended.stderr

    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    assert "it is not an empty folder" in refused(tmp_path, "init", "full")
    for name in ("highwater", "Shop", "../$(id)", "dbt"):
        assert "is no name of a project" in refused(tmp_path, "init", name)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    (tmp_path / "mine").mkdir()
    subprocess.run([shop.command, "init", "."], cwd=tmp_path / "mine", env=environment(), check=True)
    assert not [path for path in tmp_path.iterdir() if path.name not in ("full", "mine")]
    link = tmp_path / "mine/dbt_packages/highwater"
    link.mkdir(parents=True)
    assert "Remove it: rm -r dbt_packages/highwater" in refused(tmp_path / "mine", "land")
    link.rmdir()
    profiles = tmp_path / "mine/profiles/profiles.yml"
    profiles.write_text(profiles.read_text().replace("\nmine:\n", "\nother:\n"))
    (tmp_path / "mine/.spark").symlink_to(PROJECT / ".spark")
    assert "has no profile 'mine'" in refused(tmp_path / "mine", "land")


@pytest.mark.soak
def test_plain_dbt_builds_it_too(shop):
    settings = {"SPARK_CONF_DIR": "dbt_packages/highwater/conf", "DBT_PROFILES_DIR": "profiles"}
    dbt = [shop.command.with_name("python"), "-c", "from dbt.cli.main import cli; cli()"]
    ended = subprocess.run(
        [*dbt, "build", "--select", "customers_changes", "customers_merged", "customers"],
        cwd=shop.folder,
        env=environment() | settings,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ended.returncode == 0 and "ERROR=0" in ended.stdout, ended.stdout[-3000:]


@pytest.mark.soak
def test_a_newer_wheel_brings_its_macros(shop, tmp_path):
    """The command alone is changed: the link, and with it the SQL, are those of its version, and the rows stay."""

    def changed(folder):
        macro = folder / "macros/merge/current_rows.sql"
        sound = macro.read_text()
        macro.write_text(sound.replace("\n", f"\n    {NEWER}\n", 1))

    older, link = shop.command, shop.folder / "dbt_packages/highwater"
    was = os.readlink(link)
    shop.command = environment_with(tmp_path / "newer", wheel_of(tmp_path / "of_newer", "0.7.1", changed))
    try:
        assert "0.7.1" in shop.run("--version")
        assert "was by highwater 0.7.0, and this is 0.7.1; everything is built once" in shop.run("build")
        assert os.readlink(link) != was
        assert NEWER in (shop.folder / "target/compiled/shop/models/marts/user1/customers.sql").read_text()
        assert "Nothing has landed and nothing in the project has changed" in shop.run("build")
        # every table is as its export, which the source has written itself
        found = json.loads(shop.run("reconcile", "--format", "json"))
        verdicts = {each["table"]: each["verdict"] for each in found["tables"]}
        assert verdicts == {table.partition(".")[2]: "PASS" for table in TABLES}
    finally:
        shop.command = older
