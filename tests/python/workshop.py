"""A project to try things in: declare tables, deliver files, build, look at the answer."""

import contextlib
import json
import os
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from functools import reduce
from pathlib import Path

import pytest
from highwater.builds import facts
from highwater.catalog.entities import logged_tables
from highwater.catalog.pending import pending_changes
from highwater.scaffold.add_table import write_logged_tables
from highwater.spark import dbt
from highwater.spark.lake_tables import newest_commits

COPIED = [
    "dbt_project.yml",
    "profiles",
    "conf",
    "macros",
    "models",
    "seeds",
    "snapshots",
    "tests/generic",
    "tests/macros",
]


def in_soak_but(kept, cases) -> list:
    """Cases of a test, of which `make long` runs the kept ones and `make soak` all."""
    return [
        case if case in kept else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.soak)
        for case in cases
    ]


def never_due(settings: str) -> str:
    """Return the settings of a project in which no build compacts, so that views lay what is pending over the base."""
    settings = re.sub("base_rows: .*", "base_rows: 0", settings)
    return re.sub("(pending_percent|pending_batches): .*", r"\1: 100000", settings)


def environment_of_a_user() -> dict[str, str]:
    """Return the environment of this process without its settings of highwater, dbt and Spark."""
    settings = ("HIGHWATER_", "DBT_", "SPARK_")
    return {name: value for name, value in os.environ.items() if not name.startswith(settings)}


def copy_project(project: Path, folder: Path, systems: tuple[str, ...] = ()):
    """Copy the project with the examples of these systems, or with all of them; `landing` and `exports` are in it."""
    for name in COPIED:
        source, target = project / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, target)
    for name in ("landing", "exports"):
        shutil.copytree(project / "examples" / name, folder / name)
    of_systems = ("models/*/*/", "seeds/*/", "landing/*/", "exports/*/")
    for path in [path for pattern in of_systems for path in folder.glob(pattern)]:
        if systems and not {path.name, path.name.partition("_")[2]} & set(systems):
            shutil.rmtree(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_logged_tables()
    (folder / ".spark").symlink_to(project / ".spark")


def copy_empty_project(project: Path, folder: Path):
    """Copy the project without any table."""
    for name in ("conf", "macros", "profiles", "tests/generic", "models/operations"):
        shutil.copytree(project / name, folder / name)
    for name in ("dbt_project.yml", "models/docs.md"):
        shutil.copy(project / name, folder / name)


@contextlib.contextmanager
def reading(read, threads: int = 1):
    """Call a function again and again in threads, until the end; what fails in one of them is raised there.

    Yields: the threads' futures; one that is done has failed.
    """
    done = threading.Event()

    def again():
        while not done.is_set():
            read()

    with ThreadPoolExecutor(threads) as pool:
        readers = [pool.submit(again) for _ in range(threads)]
        try:
            yield readers
        finally:
            done.set()
        for reader in readers:
            reader.result()


IN_ORDER = ("change_sequence_number", "is_deleted", "change_hash", "change_type", "present_columns")


def rows_in_the_end(changes: list, columns: list[str], key: list[str]) -> list[tuple]:
    """Return the rows that accepted changes of the change contract leave, whatever builds would make of them.

    It is the guarantee once more, in Python: the total order, and of partial images the latest that carries a column.
    """
    rows = {}
    for change in sorted(changes, key=lambda each: (each[IN_ORDER[0]], not each[IN_ORDER[1]], each[IN_ORDER[2]])):
        identity = tuple(change[name] for name in key)
        carried = change["present_columns"]
        if change["change_type"] == "truncate":
            rows.clear()
        elif change["is_deleted"]:
            rows.pop(identity, None)
        else:
            row = {name: change[name] for name in columns if carried is None or name in {*key, *carried}}
            rows[identity] = row if carried is None else rows.get(identity, {}) | row
    return [tuple(row.get(name) for name in columns) for row in rows.values()]


# the manifest is written anew by each command, and no test reads it
QUIETLY = ["--quiet", "--no-write-json"]


class Workshop:
    """A project folder with its own lake, in the Spark session of the test process."""

    def __init__(self, folder: Path):
        self.parsed = self.parsed_for_audit = (None, None)
        self.modules, self.is_well = {}, True
        self.folder = folder
        self.landing = folder / "landing"
        self.exports = folder / "exports"

    def declaration(self, entity: str) -> Path:
        """Return the file that declares a table."""
        (path,) = self.folder.glob(f"models/tables/*/{entity}.yml")
        return path

    def configure(self, entity: str, layer: str, config: str):
        """Give a model of a table a `config`, in YAML; another one takes its place, and `""` takes it away."""
        path, model = self.declaration(entity), f"  - name: {entity}_{layer}\n"
        text = re.sub(f"^{model}    config: .*\n", model, path.read_text(), flags=re.MULTILINE)
        assert model in text
        path.write_text(text.replace(model, f"{model}    config: {config}\n" if config else model))

    @classmethod
    def copy_of(cls, project: Path, folder: Path, systems: tuple[str, ...] = ()) -> "Workshop":
        """Copy the project with the examples of these systems, or with all of them, and work in it from now on."""
        copy_project(project, folder, systems)
        settings = folder / "dbt_project.yml"
        # tables here are small, and a compaction costs as much as the rest: those who test it ask for it
        settings.write_text(never_due(settings.read_text()))
        os.environ["HIGHWATER_LAKE"] = str(folder / "lake")
        os.environ["HIGHWATER_LANDING"] = str(folder / "landing")
        os.environ["HIGHWATER_EXPORTS"] = str(folder / "exports")
        os.environ["DBT_PROFILES_DIR"] = str(folder / "profiles")
        os.environ["DBT_PROJECT_DIR"] = str(folder)
        os.environ["SPARK_CONF_DIR"] = str(folder / "conf")
        (folder / "lake").mkdir()
        return cls(folder)

    @property
    def spark(self):
        from highwater.spark.spark import session

        return session(
            spark__master="local[2]",
            spark__sql__shuffle__partitions="2",
            spark__databricks__delta__snapshotPartitions="1",
        )

    def stop(self):
        self.spark.stop()

    def add_table(self, table: str, key=None, columns=None, format="datastream-json", settings=None, **options):
        from highwater.scaffold.add_table import add_table

        # a second feed of a table is what another module of tests would make of it
        entity = options.get("name") or table.partition(".")[2]
        by = os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]
        assert self.modules.setdefault(entity, by) == by, f"{entity} is a table of {self.modules[entity]}"
        return add_table(table, key, columns, format, settings, **options)

    def deliver(self, table: str, name: str, content, root=None) -> Path:
        """Put a file into a table's landing folder: bytes, text, or a list of records to write as JSON lines."""
        if isinstance(content, list):
            content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in content)
        if isinstance(content, str):
            content = content.encode()
        path = (root or self.landing) / table.replace(".", "/") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def land(self, *feeds: str):
        """Land the feeds (all, without names); return what each did, by name."""
        from highwater.catalog.feeds import declared_feeds
        from highwater.landing.landing import land

        declared, spark = declared_feeds(), self.spark
        names = list(feeds or declared)
        with ThreadPoolExecutor(2) as threads:
            return dict(zip(names, threads.map(lambda name: land(spark, declared[name]), names), strict=True))

    def dbt(self, *arguments: str):
        """Run dbt in this process; return its result. What it parsed is kept until a file of the project changes."""
        from dbt.cli.main import dbtRunner

        self.spark  # noqa: B018 - dbt adopts the session
        state = self.state_of_files()
        if self.parsed[0] != state:
            self.parsed = (state, dbtRunner().invoke(["parse", *QUIETLY]).result)
        dbt.begin(is_same=False)
        with self.facts(arguments[0]):
            self.is_well = False
            result = dbtRunner(manifest=self.parsed[1], callbacks=[dbt.hear]).invoke([*arguments, *QUIETLY])
            dbt.take_answers(dbt.results_of(result))
        self.is_well = result.success
        return result

    @contextlib.contextmanager
    def facts(self, command: str):
        """Hand over what is known of tables and keep what a run answers, as `highwater build` does."""
        if command not in ("build", "run") or os.environ.get(facts.MET) == "":
            yield
            return
        before = newest_commits("lake")
        with facts.handed_over([entity for entity, _ in logged_tables()] if self.is_well else [], before):
            yield
        facts.keep(dbt.answers, before)

    def audit(self, *selected: str) -> dict:
        """Run tests of dbt, also those that no build runs; return by name what dbt says of each."""
        from dbt.cli.main import dbtRunner

        audited, state = ["--vars", "audit: true", *QUIETLY], self.state_of_files()
        if self.parsed_for_audit[0] != state:
            self.parsed_for_audit = (state, dbtRunner().invoke(["parse", *audited]).result)
        runner = dbtRunner(manifest=self.parsed_for_audit[1], callbacks=[dbt.hear])
        ran = runner.invoke(["test", *audited, "--select", *selected])
        assert ran.exception is None, ran.exception
        errors = [each.message for each in ran.result if each.status == "error"]
        assert not errors, errors
        return {each.node.name: each for each in ran.result}

    def state_of_files(self) -> dict[Path, int]:
        """When each file that dbt parses was last written."""
        folders = ("macros", "models", "seeds", "snapshots", "tests", "dbt_project.yml")
        paths = (path for name in folders for path in [self.folder / name, *(self.folder / name).glob("**/*")])
        return {path: path.stat().st_mtime_ns for path in paths}

    def forget_what_was_read(self):
        """Delta and Spark keep what they have read of a table; let them see what was done to files since."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        self.spark.catalog.clearCache()

    def build(self, *selected: str, command: str = "build", **options) -> dict[str, str]:
        """Build the models (with everything before them); return the status of each node by name."""
        arguments = [command]
        if selected:
            arguments += ["--select", *selected]
        for name, value in options.items():
            arguments += [f"--{name.replace('_', '-')}"] + ([value] if value is not None else [])
        result = self.dbt(*arguments)
        if result.exception:
            raise result.exception
        statuses = {r.node.name: str(r.status) for r in result.result}
        bad = {r.node.name: r.message for r in result.result if str(r.status) in ("error", "fail", "skipped")}
        assert not bad, bad
        return statuses

    def said_by(self, *models: str) -> dict:
        """Return data frames of what models say now of all that has landed, by name; nothing is written."""
        result = self.dbt("compile", "--indirect-selection", "empty", "--select", *models)
        assert result.success, result.exception
        return {each.node.name: self.spark.sql(each.node.compiled_code) for each in result.result.results}

    def staged(self, *entities: str) -> dict:
        """Return by entity what its staging says now of all that has landed; nothing is written."""
        models = {entity: f"stg_*__{entity}_changes" for entity in entities}
        said = self.said_by(*models.values())
        frames = {entity: [said[name] for name in said if fnmatch(name, model)] for entity, model in models.items()}
        return {entity: reduce(lambda one, other: one.unionByName(other), own) for entity, own in frames.items()}

    def land_and_run(self, feed: str, *selected: str):
        """Land one feed and run models, without their tests."""
        self.land(feed)
        return self.build(*selected, command="run")

    def rows(self, sql: str) -> list[tuple]:
        return [tuple(row) for row in self.spark.sql(sql).collect()]

    def value(self, sql: str):
        return self.rows(sql)[0][0]

    def layers(self, entity: str) -> tuple[int, int]:
        """How many rows the base of an entity has, and how many changes are pending."""
        base = self.value(f"select count(*) from lake.{entity}_merged where change_type <> 'truncate'")
        return base, pending_changes(self.spark, entity)

    def version(self, table: str) -> int:
        """The number of the table's newest version."""
        return self.spark.sql(f"describe history {table} limit 1").first()["version"]

    def table_id(self, table: str) -> str:
        """What Delta tells tables apart by: one query reads one version of each, and may mix two of a replaced one."""
        return self.spark.sql(f"describe detail {table}").first()["id"]


def change(operation: str, sequence, values: dict, *, at=1724900000000, uuid=None, sort_keys=None) -> dict:
    """A record as Datastream's append mode writes it."""
    return {
        **values,
        "datastream_metadata": {
            "uuid": uuid or f"{operation}-{sequence}",
            "source_timestamp": at,
            "change_sequence_number": sequence,
            "change_type": operation,
            "sort_keys": sort_keys or [],
        },
    }
