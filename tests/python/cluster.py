"""Servers of a lake that several machines share, on the loopback address: metastore, Spark's cluster, Thrift.

Each is there when its context begins, or fails with the last lines of its log; it is stopped by its process id.
"""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import warnings
import zipfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import highwater
import pyspark
from highwater.spark import metastore
from postgres import Postgres
from repository import PROJECT
from servers import PASSWORD, USER, free_port
from workshop import environment_of_a_user

METASTORE = "metastore"
SPARK = Path(pyspark.__file__).parent
JARS = (PROJECT / ".spark/jars").resolve()
# jars go from the driver to the executors; Hive, in the driver, looks for the driver of its database on the class path
DELTA = {
    "spark.driver.extraClassPath": f"{JARS}/*",
    "spark.jars": f"{JARS}/*.jar",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# what is over after a minute costs least when Java compiles quickly, and not well
QUICKLY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
OF_DAEMONS = {
    "SPARK_HOME": str(SPARK),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_JAVA_OPTS": QUICKLY,
    "SPARK_LAUNCHER_OPTS": QUICKLY,
}


def metastore_settings(server) -> dict[str, str]:
    """What Spark's Hive needs to keep its tables in the database of a PostgreSQL server."""
    return {
        metastore.URL: f"jdbc:postgresql://127.0.0.1:{server.port}/{METASTORE}",
        metastore.DRIVER: "org.postgresql.Driver",
        metastore.USER: USER,
        metastore.PASSWORD: PASSWORD,
    }


@contextmanager
def database_server():
    """A PostgreSQL server without a database for a metastore."""
    with TemporaryDirectory(prefix="highwater-metastore-") as folder:
        server = Postgres(Path(folder) / "data")
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def shared_metastore():
    """The settings of a metastore with its schema, and without a table."""
    with database_server() as server:
        server.sql(f"create database {METASTORE}")
        settings = metastore_settings(server)
        metastore.make_schema(settings)
        yield settings


@dataclass(frozen=True)
class Server:
    """A server process.

    Attributes:
        name: what it is called when it fails. log: what it writes.
    """

    name: str
    process: subprocess.Popen
    log: Path

    def wait(self, is_up, seconds: int):
        """Wait until it is up, as a function says, which may fail meanwhile."""
        deadline = time.monotonic() + seconds
        while not _holds(is_up):
            code, is_late = self.process.poll(), time.monotonic() > deadline
            if code is not None or is_late:
                why = f"is not there after {seconds} s" if code is None else f"ended with {code}"
                last = "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
                raise AssertionError(f"{self.name} {why}:\n{last}")
            time.sleep(0.2)


@contextmanager
def started(name: str, command: list, folder: Path, environment: dict | None = None):
    """A process, which may not be up yet; it and what it has started is ended at the end.

    Arguments:
        name: of its log in the folder. environment: what is added to that of a user.
    """
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, start_new_session=True,
            env=environment_of_a_user() | (environment or {}),
        )  # fmt: skip
    try:
        yield Server(name, process, log)
    finally:
        _end(process)


@contextmanager
def running(name: str, command: list, folder: Path, is_up, seconds: int = 60, environment: dict | None = None):
    """The same when it is up, which it has some seconds for."""
    with started(name, command, folder, environment) as server:
        server.wait(is_up, seconds)
        yield server


def _holds(is_up) -> bool:
    try:
        return is_up()
    except (OSError, ValueError):
        return False


def _end(process: subprocess.Popen):
    """End a process, which leads a group of its own, and then what is left of the group."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _listens(port: int):
    def is_up() -> bool:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True

    return is_up


def command_lines() -> list[str]:
    """The command lines of all processes, as `ps` shows them."""
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(process.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it has ended
            continue
    return lines


@cache
def can_blind() -> bool:
    """Whether a process can be started that does not see some folders; root can, where the system lets it."""
    tried = subprocess.run(["unshare", "-m", "--propagation", "private", "true"], capture_output=True)
    return tried.returncode == 0


def blinded(command: list, blind: list[Path], seen: list[Path], stash: Path) -> list:
    """Return a command that runs another one which finds some folders empty, as they are on another machine.

    Arguments:
        blind: the folders that are empty. seen: what is in them and is there all the same. stash: an empty folder.
    """
    inside = [path for path in seen if any(path.is_relative_to(folder) for folder in blind)]
    if not can_blind():
        warnings.warn("the workers see all folders: only root can blind them", stacklevel=2)
        return command
    places = [(shlex.quote(str(path)), shlex.quote(str(stash / str(number)))) for number, path in enumerate(inside)]
    lines = [
        "set -e",
        *(f"mkdir {kept}; mount --bind {path} {kept}" for path, kept in places),
        *(f"mount -t tmpfs tmpfs {shlex.quote(str(folder))}" for folder in blind),
        *(f"mkdir -p {path}; mount --bind {kept} {path}" for path, kept in places),
        f"exec {shlex.join(map(str, command))}",
    ]
    return ["unshare", "-m", "--propagation", "private", "bash", "-c", "\n".join(lines)]


@dataclass(frozen=True)
class Cluster:
    """A standalone cluster.

    Attributes:
        url: of its master. page: which tells its state.
    """

    url: str
    page: str

    def state(self) -> dict:
        """What the master says of itself."""
        with urlopen(self.page, timeout=5) as answer:
            return json.load(answer)

    def has(self, workers: int) -> bool:
        return self.state()["aliveworkers"] >= workers


@contextmanager
def standalone(folder: Path, blind: list[Path] = (), workers: int = 2):
    """A master and workers of one core and 1 GB.

    Arguments:
        folder: for logs and what executors write. blind: the folders that workers do not see, but for the environment
            of Python and the jars in them.
    """
    port, page = free_port(), free_port()
    cluster = Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{page}/json/")
    environment = {
        **OF_DAEMONS, "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_DIRS": str(folder), "PYTHONPATH": "",
        "SPARK_CONF_DIR": str(_made(folder / "conf")),
    }  # fmt: skip
    command = [
        SPARK / "bin/spark-class", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port,
        "--webui-port", page,
    ]  # fmt: skip
    with ExitStack() as stack:
        stack.enter_context(running("master", command, folder, lambda: cluster.has(0), environment=environment))
        servers = [
            stack.enter_context(_worker(f"worker{number}", folder, cluster.url, blind, environment))
            for number in range(1, workers + 1)
        ]
        for number, server in enumerate(servers, 1):
            server.wait(lambda wanted=number: cluster.has(wanted), 60)
        yield cluster


def _worker(name: str, folder: Path, master: str, blind: list[Path], environment: dict):
    command = [
        SPARK / "bin/spark-class", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", 1,
        "--memory", "1g", "--webui-port", free_port(), "--work-dir", _made(folder / name), master,
    ]  # fmt: skip
    if blind:
        seen = [path.resolve() for path in (Path(sys.prefix), SPARK, JARS)]
        command = blinded(command, [path.resolve() for path in blind], seen, _made(folder / f"seen-by-{name}"))
    return started(name, command, folder, environment)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def settings_of_cluster(cluster: Cluster) -> dict[str, str]:
    """What a driver needs to have its work done by a cluster on the loopback address."""
    return {
        "spark.master": cluster.url,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.cores": "1",
        "spark.executor.memory": "1g",
        "spark.driver.defaultJavaOptions": QUICKLY,
        "spark.executor.defaultJavaOptions": QUICKLY,
    }


def configuration(folder: Path, settings: dict[str, str]) -> Path:
    """Return a folder for SPARK_CONF_DIR, which only its owner reads: settings on a command line are seen by all."""
    folder.mkdir(mode=0o700)
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    (folder / "spark-defaults.conf").write_text(lines)
    return folder


def zipped_package(folder: Path) -> Path:
    """Return the Python package of highwater as one file, as executors take it by `spark.submit.pyFiles`."""
    package, target = Path(highwater.__file__).parent, folder / "highwater.zip"
    with zipfile.ZipFile(target, "w") as files:
        for path in sorted(package.rglob("*.py")):
            files.write(path, path.relative_to(package.parent))
    return target


@contextmanager
def thrift_server(folder: Path, settings: dict[str, str], memory: str = "1g"):
    """Spark's Thrift server; yields its port.

    Arguments:
        folder: for its log and configuration. settings: of Spark. memory: of its Java.
    """
    port = free_port()
    command = [
        SPARK / "bin/spark-submit", "--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
        "spark-internal", "--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1",
        "--hiveconf", f"hive.server2.thrift.port={port}",
    ]  # fmt: skip
    environment = {
        **OF_DAEMONS, "SPARK_DAEMON_MEMORY": memory,
        "SPARK_CONF_DIR": str(configuration(folder / "conf-thrift", settings)),
    }  # fmt: skip
    with running("thrift", command, folder, _listens(port), 120, environment):
        yield port
