"""What real servers on the loopback address share: how a feed's environment names them, and statements."""

import socket
import subprocess
from contextlib import contextmanager

import pytest

USER, PASSWORD = "app", "s3cret-of-the-app"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def named(server, system: str):
    """The environment names a server for the feeds of a system; it is stopped at the end."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment(system).items():
            patch.setenv(name, value)
        try:
            yield server
        finally:
            server.stop()


class Server:
    """A server with a database `shop`; `kind` is as its URLs have it."""

    user, password = USER, PASSWORD
    kind: str
    port: int

    def environment(self, system: str) -> dict[str, str]:
        prefix = f"HIGHWATER_{system.upper()}"
        url = f"jdbc:{self.kind}://127.0.0.1:{self.port}/shop"
        return {f"{prefix}_URL": url, f"{prefix}_USER": USER, f"{prefix}_PASSWORD": PASSWORD}

    def session(self, **arguments) -> subprocess.Popen:
        """A session that reads statements from its standard input."""
        raise NotImplementedError

    def sql(self, statements: str, **arguments) -> list[str]:
        """Run statements; return the lines that they print."""
        session = self.session(**arguments)
        printed, _ = session.communicate(statements)
        assert session.returncode == 0, printed
        return printed.splitlines()
