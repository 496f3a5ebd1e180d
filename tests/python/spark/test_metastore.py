"""The metastore of a shared lake: its schema is made in an empty database; what is said of it in every state."""

import socket
import threading

import pytest
from cluster import METASTORE, command_lines, database_server, metastore_settings
from highwater.runtime.errors import CheckError, UsageError
from highwater.spark import metastore
from servers import PASSWORD

pytestmark = pytest.mark.long
IN_IT = f"\\c {METASTORE}\n"


@pytest.fixture(scope="module")
def server():
    with database_server() as server:
        yield server


@pytest.fixture
def settings(server):
    """The settings of a metastore in an empty database."""
    server.sql(f"drop database if exists {METASTORE}")
    server.sql(f"create database {METASTORE}")
    return metastore_settings(server)


def test_the_schema_is_made_once_and_the_password_is_on_no_command_line(server, settings):
    seen, done = set(), threading.Event()

    def look():
        while not done.wait(0.02):
            seen.update(command_lines())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        assert not metastore.state(settings).has_schema
        metastore.make_schema(settings)
        found = metastore.state(settings)
    finally:
        done.set()
        watcher.join()
    assert found.is_reached
    assert found.has_schema
    assert found.sentence.endswith(f"/{METASTORE} has the schema of Hive 2.3.0.")
    assert any("py4j.GatewayServer" in line for line in seen)
    assert not any(PASSWORD in line for line in seen)

    metastore.make_schema(settings)
    assert server.sql(f'{IN_IT}select "SCHEMA_VERSION" from "VERSION"') == ["2.3.0"]
    assert server.sql(f"{IN_IT}select count(*) from pg_tables where schemaname = 'public'") == ["45"]


def test_what_a_killed_attempt_left_is_no_schema_and_is_completed(server, settings):
    metastore.make_schema(settings)
    server.sql(f'{IN_IT}delete from "VERSION"; drop table "TBLS" cascade')
    found = metastore.state(settings)
    assert (found.is_reached, found.has_schema) == (True, False)
    assert found.sentence.endswith("does not have the schema of Hive yet, or only a part of it.")
    metastore.make_schema(settings)
    assert server.sql(f'{IN_IT}select count(*) from "TBLS"') == ["0"]
    assert metastore.state(settings).has_schema


@pytest.mark.parametrize("version, has_schema", [("1.2.0", False), ("2.3.0", True), ("3.1.0", True)])
def test_hive_refuses_an_older_schema_than_its_own(server, settings, version, has_schema):
    server.sql(
        f'{IN_IT}create table "VERSION" ("VER_ID" bigint, "SCHEMA_VERSION" text, "VERSION_COMMENT" text);'
        f"insert into \"VERSION\" values (1, '{version}', '')"
    )
    found = metastore.state(settings)
    assert (found.is_reached, found.has_schema) == (True, has_schema)
    assert f"the schema of Hive {version}" in found.sentence
    assert ("schematool" in found.sentence) != has_schema


def test_a_server_that_does_not_let_in_or_is_not_there(settings):
    for wrong, reason in [
        ({metastore.PASSWORD: "another-password"}, "password authentication failed"),
        ({metastore.URL: "jdbc:postgresql://127.0.0.1:1/x?password=of-the-url"}, "Connection refused"),
        ({metastore.URL: settings[metastore.URL] + "_not_there"}, "does not exist"),
    ]:
        found = metastore.state(settings | wrong)
        assert (found.is_reached, found.has_schema) == (False, False)
        assert "cannot be reached: " in found.sentence
        assert reason in found.sentence
        assert not [secret for secret in ("another-password", "of-the-url", PASSWORD) if secret in found.sentence]
        with pytest.raises(CheckError, match=reason):
            metastore.make_schema(settings | wrong)


def test_a_server_that_does_not_answer_is_not_waited_for(settings, monkeypatch):
    limits = metastore.LIMITS["postgresql"]
    assert {limits["connectTimeout"], limits["loginTimeout"]} == {metastore.SECONDS_TO_CONNECT}
    monkeypatch.setitem(metastore.LIMITS, "postgresql", limits | {"loginTimeout": 1})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"jdbc:postgresql://127.0.0.1:{silent.getsockname()[1]}/x"
        assert not metastore.state(settings | {metastore.URL: url}).is_reached


def test_a_schema_that_somebody_locks_is_not_waited_for(server, settings, monkeypatch):
    metastore.make_schema(settings)
    server.sql(f'{IN_IT}delete from "VERSION"; drop table "TBL_PRIVS"')
    monkeypatch.setattr(metastore, "SECONDS_TO_MAKE", 12)
    with server.session() as holder:
        holder.stdin.write(f'{IN_IT}begin; lock table "TBLS" in access exclusive mode; select 1;\n')
        holder.stdin.flush()
        assert holder.stdout.readline().strip()
        with pytest.raises(CheckError, match=r"was not made: Java did not answer within 12 seconds, or ended\."):
            metastore.make_schema(settings)
        holder.communicate("rollback;\n")
    metastore.make_schema(settings)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({metastore.USER: ""}, "needs the Spark setting spark.hadoop.javax.jdo.option.ConnectionUserName"),
        ({metastore.URL: "jdbc:mysql://h/x?password=of-the-url"}, "is jdbc:mysql://h/x; .* is in PostgreSQL"),
        ({metastore.DRIVER: "org.example.Driver"}, "is org.example.Driver, and no jar has it"),
        ({metastore.DRIVER: "org.mariadb.jdbc.Driver"}, "is org.mariadb.jdbc.Driver, which is not the one for"),
    ],
)
def test_wrong_settings_are_told_by_their_names(settings, wrong, said):
    with pytest.raises(UsageError, match=said):
        metastore.state(settings | wrong)
