"""A project whose lake and landing are on S3, with a shared metastore, on a cluster that sees no folder of it."""

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cluster import METASTORE, QUICKLY, database_server, metastore_settings, standalone, thrift_server
from highwater.runtime import deployment
from highwater.spark import metastore
from repository import PROJECT
from s3 import S3
from servers import PASSWORD, USER
from workshop import copy_project, environment_of_a_user

LAKE = "s3a://lake/house"
# commands of highwater in one process, one after the other: what each said, and how it ended
RUNS = """
import json, os, sys, time
from click.testing import CliRunner
from highwater.commands.group import commands
from highwater import cli
from highwater.runtime.project import enter_project
from highwater.spark.spark import session

enter_project()
session(spark__cores__max=os.environ["CORES"])
for words in json.loads(sys.argv[1]):
    began = time.monotonic()
    ran = CliRunner().invoke(commands, words)
    seconds = round(time.monotonic() - began, 1)
    print(json.dumps([words, ran.exit_code, ran.output, repr(ran.exception), seconds]), flush=True)
"""


@dataclass(frozen=True)
class Ran:
    """How a command ended: its exit code, what it said, the error that it raised, its seconds."""

    words: list[str]
    code: int
    said: str
    error: str
    seconds: float


class Deployed:
    """The project; `run` runs commands in a process of its own, as another machine would."""

    def __init__(self, folder: Path, environment: dict[str, str], store: S3):
        self.folder, self.environment, self.store = folder, environment, store

    def put(self, key: str, content: bytes):
        """Deliver a file."""
        put(self.store, key, content)

    def commits(self, table: str) -> int:
        """How many commits a table of the lake has."""
        prefix = f"house/tables/{table.replace('.', '.db/')}/_delta_log/0"
        _, _, listed = self.store.answer("GET", f"/lake?list-type=2&prefix={prefix}")
        return listed.count(b".json</Key>")

    @contextmanager
    def thrift(self):
        """Spark's Thrift server, with the settings of the output `cluster` on cores of its own; its port."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.delenv("DBT_PROFILES_DIR", raising=False)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            settings = deployment.settings()
        here = [line.split(None, 1) for line in (self.folder / "conf/spark-defaults.conf").read_text().splitlines()]
        settings = {words[0]: words[1] for words in here if words and not words[0].startswith("#")} | settings
        jars = [str(jar) for folder in ("jars", "jars-s3a") for jar in sorted((PROJECT / ".spark" / folder).glob("*"))]
        own = {"spark.jars": ",".join(jars), "spark.master": "local[1]", "spark.driver.extraClassPath": ":".join(jars)}
        # Java takes one collector, and the server is told its own
        del settings["spark.driver.extraJavaOptions"], settings["spark.driver.defaultJavaOptions"]
        with thrift_server(self.folder, settings | own, "1500m") as port:
            yield port

    def started(self, *commands: list[str], before: str = "", cores: str = "2", **environment: str):
        """A process that runs commands. before: Python that it runs first. cores: of the cluster, that it may have."""
        return subprocess.Popen(
            [sys.executable, "-c", before + RUNS, json.dumps(commands)],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment_of_a_user() | self.environment | {"CORES": cores} | environment,
        )  # fmt: skip

    def ended(self, process: subprocess.Popen) -> list[Ran]:
        """How its commands ended."""
        output, errors = process.communicate(timeout=900)
        found = [Ran(*json.loads(line)) for line in output.splitlines() if line.startswith('[["')]
        assert process.returncode == 0, output + errors[-3000:]
        return found

    def run(self, *commands: list[str], **options: str) -> list[Ran]:
        """Run commands in one process."""
        return self.ended(self.started(*commands, **options))


@contextmanager
def deployed(systems: tuple[str, ...]):
    """The project with examples of some systems, whose files are delivered to S3."""
    with TemporaryDirectory(prefix="highwater-deployed-") as top, database_server() as server:
        folder, store = Path(top) / "project", S3()
        try:
            server.sql(f"create database {METASTORE}")
            copy_project(PROJECT, folder, systems)
            (folder / "java").symlink_to(PROJECT / "java")
            own = metastore_settings(server)
            metastore.make_schema(own)
            (Path(top) / "servers").mkdir()
            for root in ("landing", "exports"):
                for path in sorted((folder / root).rglob("*")):
                    if path.is_file() and not path.name.startswith("."):
                        put(store, f"{path.relative_to(folder)}", path.read_bytes())
                        path.unlink()
            configure(folder, store)
            with standalone(Path(top) / "servers", blind=[PROJECT, folder]) as cluster:
                yield Deployed(folder, {
                    "HIGHWATER_TARGET": "cluster",
                    "HIGHWATER_LAKE": LAKE,
                    "HIGHWATER_LANDING": "s3://lake/landing",
                    "HIGHWATER_EXPORTS": "s3://lake/exports",
                    "HIGHWATER_MASTER": cluster.url,
                    "HIGHWATER_DRIVER_HOST": "127.0.0.1",
                    "HIGHWATER_METASTORE": own[metastore.URL],
                    "HIGHWATER_METASTORE_USER": USER,
                    "HIGHWATER_METASTORE_PASSWORD": PASSWORD,
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LAUNCHER_OPTS": QUICKLY,
                    **credentials(store),
                }, store)  # fmt: skip
        finally:
            store.stop()


def put(store: S3, key: str, content: bytes):
    status, *_ = store.answer("PUT", f"/lake/{key}", content)
    assert status == 200, (key, status)


def credentials(store: S3) -> dict[str, str]:
    """What pyarrow and the SDKs of AWS need to know of it; any key and secret open it."""
    return {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "signature",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.port}",
        "AWS_REGION": "us-east-1",
    }


def configure(folder: Path, store: S3):
    """What a user adds to the output `cluster`, for a store of its own and small machines."""
    settings = {
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
        "spark.driver.memory": "1500m",
        "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{store.port}",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "key",
        "spark.hadoop.fs.s3a.secret.key": "signature",
        "spark.sql.shuffle.partitions": "2",
        **{f"spark.executorEnv.{name}": value for name, value in credentials(store).items()},
    }
    profile = folder / "profiles/profiles.yml"
    lines = [line for line in profile.read_text().splitlines() if not line.strip().startswith("spark.executor.")]
    at = next(number for number, line in enumerate(lines) if 'spark.master: "{{' in line)
    lines[at:at] = [f"        {name}: {json.dumps(value)}" for name, value in settings.items()]
    profile.write_text("\n".join(lines) + "\n")
