"""An S3 server on the loopback address, and one before it that loses answers."""

import http.client
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from servers import free_port

BUCKET = "lake"
# no signature is checked, but there must be one
ANYBODY = {"Authorization": "AWS key:signature"}
CONFLICT = b"<Error><Code>ConditionalRequestConflict</Code><Message>another request is under way</Message></Error>"


class S3:
    """moto's server with a bucket; `stop` ends it by its process id."""

    def __init__(self):
        self.port = free_port()
        command = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait()
        assert self.put("") == 200

    def _wait(self):
        deadline = time.monotonic() + 30
        while True:
            try:
                return self.answer("GET", "/")
            except OSError:
                is_there = self.process.poll() is None and time.monotonic() < deadline
                assert is_there, "the server does not start"
                time.sleep(0.1)

    def answer(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None):
        """Return what it answers: status, headers and content."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers or ANYBODY)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def put(self, name: str, content: str = "") -> int:
        """Put an object as somebody else would; return the status."""
        return self.answer("PUT", f"/{BUCKET}/{name}", content.encode())[0]

    def get(self, name: str) -> str | None:
        """Return what is in an object; None: there is none."""
        status, _, content = self.answer("GET", f"/{BUCKET}/{name}")
        return content.decode() if status == 200 else None

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        finally:
            self.process.kill()


@contextmanager
def serving():
    """A server, stopped at the end."""
    server = S3()
    try:
        yield server
    finally:
        server.stop()


class Between(ThreadingHTTPServer):
    """Hands every request on to a server; to one conditional PUT happens what `fault` says.

    `fault` gets the server and the name of the object, once. It returns whether the PUT is handed on, and what is
    answered in place of the server's answer: a status and a content; None closes the connection without one.
    `statuses` are the server's answers to conditional PUTs.
    """

    daemon_threads = True

    def __init__(self, server: S3):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind, self.port, self.fault, self.statuses = server, self.server_address[1], None, []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _hand_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_conditional = self.command == "PUT" and "If-None-Match" in self.headers
        is_handed_on, instead = self._fault() if is_conditional else (True, ())
        if is_handed_on:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
            status, headers, content = self.server.behind.answer(self.command, self.path, body, headers)
            if is_conditional:
                self.server.statuses.append(status)
        if instead is None:
            self.close_connection = True
            return
        if instead:
            (status, content), headers = instead, []
        self._answer(status, headers, content)

    def _fault(self):
        fault, self.server.fault = self.server.fault, None
        return fault(self.server.behind, self.path.removeprefix(f"/{BUCKET}/")) if fault else (True, ())

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes):
        self.send_response_only(status)
        of_connection = {"connection", "transfer-encoding", "date", "server"}
        if self.command != "HEAD":
            of_connection.add("content-length")
            self.send_header("Content-Length", str(len(content)))
        for name, value in headers:
            if name.lower() not in of_connection:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _hand_on

    def log_message(self, *arguments):
        pass


@contextmanager
def before(server: S3):
    """One that stands before a server; it ends with the test."""
    between = Between(server)
    thread = threading.Thread(target=between.serve_forever)
    thread.start()
    try:
        yield between
    finally:
        between.shutdown()
        thread.join()
        between.server_close()
