"""What the environment keeps secret is found nowhere: every command runs and fails with marked secrets."""

import base64
import itertools
import os
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from fault_points import Commands
from highwater import cli
from postgres import PASSWORD, serving
from repository import PROJECT
from workshop import environment_of_a_user

sys.path.insert(0, str(PROJECT / "scripts/bench"))
FLEET = "debezium_fleet"
TABLE, CAPTURED = "fleet_000", "changelog_shop.orders"
TOKEN = "m4rked t0ken/of a store"
URL = "HIGHWATER_SHOP_URL"
DECLARING_EXPORTS = [
    "add-table", "exports_shop.orders", "--format", "csv", "--setting", "role=export", "--setting",
    "positions=changelog_shop",
]  # fmt: skip
# per command: what is typed, and whether it ends well; None: that depends on the machine
TYPED = {
    "land": [(["land"], True), (["land", "nothing"], False)],
    "extract": [
        (["extract", "--enable", CAPTURED], True),
        (["extract", CAPTURED], True),
        (["extract", "--export", CAPTURED], False),
        (DECLARING_EXPORTS, True),
        (["extract", "--export", CAPTURED], True),
        (["extract", "--enable", "changelog_shop.absent"], False),
    ],
    "build": [(["build"], True), (["build", "--select", "absent", "--warn-error"], False)],
    "patch": [(["patch", CAPTURED, "--where", "id ="], False), (["patch", CAPTURED, "--where", "id < 0"], None)],
    "dbt": [
        (["dbt", "docs", "generate", "--static"], True),
        (["dbt", "debug"], None),
        (["dbt", "run", "--select", "broken", "--vars", "{broken: true}"], False),
    ],
    "query": [
        (["query", f"select * from {TABLE}"], True),
        (["query", "select java_method('java.lang.System', 'getenv', 'HIGHWATER_SHOP_PASSWORD')"], False),
    ],
    "status": [(["status", "--format", "html"], True), (["status", "absent"], False)],
    "reconcile": [(["reconcile", "--format", "html"], False), (["reconcile", "orders", "--as-of", "no"], False)],
    "compact": [(["compact", TABLE], True), (["compact", "absent"], False)],
    "vacuum": [(["vacuum"], True), (["vacuum", "absent"], False)],
    "rebuild": [(["rebuild", TABLE], True), (["rebuild", "absent"], False)],
    "replay": [(["replay", TABLE], True), (["replay", "absent"], False)],
    "resync": [(["resync", TABLE, "--from", "nothing/*"], False)],
    "recover": [(["recover"], True)],
    "add-table": [
        (["add-table", f"{FLEET}.more", "--key", "id:bigint"], True),
        (["add-table", f"{FLEET}.more", "--key", "id:nothing"], False),
    ],
}
# a database that does not let in, and one that is not there
OF_THE_DATABASE = [
    (["extract", CAPTURED], False),
    (["extract", "--export", CAPTURED], False),
    (["extract", "--disable", CAPTURED], False),
    (["patch", CAPTURED, "--end"], False),
]
BROKEN = "{{ config(enabled=var('broken', false)) }} select * from nowhere.at_all"


def forms(secret: str) -> list[bytes]:
    """How a secret may be written."""
    return [text.encode() for text in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode())]


class Witness(threading.Thread):
    """Looks at the list of processes until it is told to stop."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ends, self.seen = threading.Event(), set()

    def run(self):
        while not self.ends.wait(0.1):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(path.read_bytes())
                except OSError:
                    continue


def found_in(folder: Path, secrets: list[bytes]) -> list[str]:
    """The files of a folder, behind no link, that hold a secret."""
    found = []
    for below, _, names in os.walk(folder):
        for path in (Path(below) / name for name in names):
            if not path.is_symlink() and path.is_file():
                content = path.read_bytes()
                found += [str(path)] * any(secret in content for secret in secrets)
    return found


@pytest.mark.soak
def test_no_command_and_no_failure_shows_a_secret(tmp_path, monkeypatch):
    from fleet import deliver, make_fleet

    assert set(TYPED) == set(cli.commands.commands)
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "project"
    make_fleet(PROJECT, project, 1)
    deliver(project / "examples/landing", TABLE, 0, 20, damaged=1)
    (project / "models/broken.sql").write_text(BROKEN)
    with serving("shop") as server:
        server.sql(
            "create table orders (id bigint primary key, total numeric(12, 2)); insert into orders values (1, 2)"
        )
        environment = environment_of_a_user() | server.environment("shop") | {
            "HIGHWATER_SHOWN": str(tmp_path / "shown"), "HIGHWATER_STORE_TOKEN": TOKEN,
        }  # fmt: skip
        elsewhere = {
            "right": {},
            "wrong password": {"HIGHWATER_SHOP_PASSWORD": f"{PASSWORD}-wrong"},
            "no server": {URL: "jdbc:postgresql://127.0.0.1:1/shop"},
            "password in the URL": {URL: f"{server.environment('shop')[URL]}?password={PASSWORD}"},
        }
        secrets, told, unexpected, witness = [*forms(PASSWORD), *forms(TOKEN)], [], [], Witness()
        witness.start()
        for name, changed in elsewhere.items():
            commands = Commands(project, environment | changed)
            try:
                for typed, ends_well in itertools.chain(*TYPED.values()) if name == "right" else OF_THE_DATABASE:
                    code, shown = commands.run(*typed)
                    if ends_well not in (code == 0, None) or "Traceback" in shown:
                        unexpected.append((name, typed, code, shown[-1000:]))
                    told.append((name, typed, shown))
            finally:
                commands.end()
        witness.ends.set()
        witness.join()
    assert unexpected == []
    assert [(name, typed) for name, typed, shown in told if any(s in shown.encode() for s in secrets)] == []
    assert [words for words in witness.seen if any(secret in words for secret in secrets)] == []
    assert any(b"org.apache.spark.deploy.SparkSubmit" in words for words in witness.seen)
    assert found_in(tmp_path, secrets) == []
    # negative control: what is said with a secret in it would be found, in each form
    for number, secret in enumerate(secrets):
        (project / f"planted{number}").write_bytes(b"x" + secret + b"y")
    assert len(found_in(tmp_path, secrets)) == len(secrets)
