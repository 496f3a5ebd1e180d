"""Debezium's own engine beside the tests, in a process of its own: its Java and Spark's do not meet.

As a script it runs one engine: the first argument is a JSON file of the folder and the properties. It writes each
record as a line of `records.jsonl`, with topic, key, headers and value as the converter wrote them, and ends with its
standard input.
"""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

LIMIT = 180  # seconds until the engine has done what is waited for
FORMAT = "io.debezium.engine.format"


def properties_of(server, folder: Path, **further) -> dict[str, str]:
    """Properties of an engine that captures the whole database of a server, and further ones (`_` for `.`)."""
    return {
        "name": "highwater",
        "topic.prefix": "shop",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "skipped.operations": "none",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(folder / "offsets"),
        **server.properties_of_engine(folder),
        **{name.replace("_", "."): value for name, value in further.items()},
    }


class Engine:
    """An engine that runs: what it has written so far, and its end."""

    def __init__(self, folder: Path, properties: dict[str, str]):
        self.records_file = folder / "records.jsonl"
        self.records_file.touch()
        self.log = folder / "log"
        settings = folder / "settings.json"
        settings.write_text(json.dumps({"folder": str(folder), "properties": properties}))
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(settings)], stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=folder
            )

    def records(self) -> list[dict]:
        """What was written so far: topic, key, headers, value, as texts; a line that is half written is not yet."""
        *lines, _half = self.records_file.read_text().split("\n")
        return [json.loads(line) for line in lines]

    def wait_for(self, what: str, is_done):
        """Wait until a function of the records says so."""
        deadline = time.monotonic() + LIMIT
        while not is_done(self.records()):
            ended = self.process.poll() is not None
            assert not ended and time.monotonic() < deadline, (
                f"no {what}; the engine's log ends: {self.log.read_text()[-2000:]}"
            )
            time.sleep(0.2)

    def wait_for_snapshot(self):
        self.wait_for("end of the snapshot", lambda records: any('"snapshot":"last"' in _text(r) for r in records))

    def wait_for_text(self, text: str):
        """Wait for a record whose value has this text."""
        self.wait_for(f"record of {text}", lambda records: any(text in _text(record) for record in records))

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()


def _text(record: dict) -> str:
    return (record["value"] or "").replace('": ', '":')


@contextmanager
def capturing(server, folder: Path, **further):
    """An engine that captures a server into a folder, until the end."""
    engine = Engine(folder, properties_of(server, folder, **further))
    try:
        yield engine
    finally:
        engine.stop()


def _plain(value):
    return value if value is None or isinstance(value, dict) else str(value)


def _run(folder: Path, properties: dict[str, str]):
    os.environ["PYDBZ_JVM_OPTS"] = "-Xms64m -Xmx512m -XX:TieredStopAtLevel=1"
    import jpype
    from pydbzengine import BasePythonChangeHandler, DebeziumEngine

    class Writer(BasePythonChangeHandler):
        def __init__(self):
            self.file = (folder / "records.jsonl").open("a", encoding="utf-8")

        def handleJsonBatch(self, records):
            for record in records:
                headers = {str(header.getKey()): _plain(header.getValue()) for header in record.headers()}
                texts = map(_plain, (record.destination(), record.key(), headers, record.value()))
                line = dict(zip(("topic", "key", "headers", "value"), texts, strict=True))
                self.file.write(json.dumps(line) + "\n")
            self.file.flush()

    class EngineWithHeaders(DebeziumEngine):
        def _resolve_format(self):
            self._ensure_jvm_started()
            json_format = jpype.JClass(f"{FORMAT}.Json")
            return jpype.JClass(f"{FORMAT}.KeyValueHeaderChangeEventFormat").of(json_format, json_format, json_format)

    engine = EngineWithHeaders(properties, Writer())
    thread = threading.Thread(target=engine.run, daemon=True)
    thread.start()
    sys.stdin.read()
    engine.close()
    thread.join(30)


if __name__ == "__main__":
    settings = json.loads(Path(sys.argv[1]).read_text())
    _run(Path(settings["folder"]), settings["properties"])
    os._exit(0)  # Java's threads would wait
