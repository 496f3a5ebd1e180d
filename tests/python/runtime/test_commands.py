"""Commands as a new user types them: each wrong environment is one clear sentence and exit code 2."""

import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from forked import forked
from highwater.catalog.columns import Column, FoundColumns, named_columns
from highwater.catalog.entities import declared_columns
from highwater.cli import commands
from highwater.runtime.errors import UsageError
from highwater.scaffold.add_table import add_table
from repository import PROJECT
from test_hostile import HOSTILE, LEAK, URLS, VARIABLE
from workshop import copy_empty_project, environment_of_a_user


def run(*arguments, cwd=PROJECT, **environment):
    return forked(*arguments, cwd=cwd, environment=environment_of_a_user() | environment)


def one_sentence(result, *words):
    assert result.returncode == 2, result.stderr
    lines = [line for line in result.stderr.splitlines() if line]
    assert len(lines) == 1 and lines[0].startswith("highwater: "), result.stderr
    for word in words:
        assert word in lines[0]


def test_a_project_of_ones_own_needs_the_wheel(tmp_path):
    """The command of the repository has no package for other projects."""
    one_sentence(run("init", "shop", cwd=tmp_path), "install the wheel first: make wheel")
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    one_sentence(run("land", cwd=tmp_path), "make wheel, then: pip install")
    (tmp_path / "dbt_project.yml").write_text("name: [\n")
    one_sentence(run("land", cwd=tmp_path), "dbt_project.yml cannot be read")


@pytest.fixture
def project(tmp_path):
    """A copy of what commands read before they start Spark."""
    for name in ("conf", "models", "macros", "profiles", "seeds", "snapshots", "tests/generic"):
        shutil.copytree(PROJECT / name, tmp_path / name)
    shutil.copy(PROJECT / "dbt_project.yml", tmp_path)
    return tmp_path


def test_without_java(tmp_path):
    one_sentence(
        run("land", PATH=str(tmp_path), JAVA_HOME="", HIGHWATER_LAKE=str(tmp_path / "lake")),
        "no java on PATH",
        "Install Java 17",
    )


def test_with_a_java_home_that_is_none(tmp_path):
    one_sentence(
        run("land", JAVA_HOME=str(tmp_path), HIGHWATER_LAKE=str(tmp_path / "lake")), "JAVA_HOME is", "no bin/java in it"
    )


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_with_an_old_java(tmp_path, version):
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    result = run("build", PATH=path, JAVA_HOME="", HIGHWATER_LAKE=str(tmp_path / "lake"))
    one_sentence(result, "Spark needs Java 17", f"is Java {'8' if version[0:2] == '1.' else '11'}")


def test_with_a_lake_that_cannot_be_written():
    one_sentence(
        run("land", HIGHWATER_LAKE="/proc/lake"), "the lake folder /proc/lake cannot be written to", "HIGHWATER_LAKE"
    )


def test_with_a_read_only_lake_as_an_ordinary_user(tmp_path):
    from highwater.runtime.errors import UsageError
    from highwater.runtime.project import lease

    if os.getuid() != 0:
        pytest.skip("needs to become another user")
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    (tmp_path / "lake").mkdir()
    os.environ["HIGHWATER_LAKE"], before = str(tmp_path / "lake"), os.environ.get("HIGHWATER_LAKE")
    os.seteuid(65534)
    try:
        with pytest.raises(UsageError, match=r"cannot be written to .Permission denied.") as caught, lease("test"):
            pass
        assert caught.value.exit_code == 2
    finally:
        os.seteuid(0)
        if before:
            os.environ["HIGHWATER_LAKE"] = before


def test_with_a_second_writer(tmp_path):
    (tmp_path / "lease").write_text(
        json.dumps({"command": "highwater build", "process": 4711, "since": "2026-01-01 10:00:00"})
    )
    with open(tmp_path / "lease", "a") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        for command in (["land"], ["build"], ["dbt", "build"], ["rebuild", "table1"]):
            one_sentence(
                run(*command, HIGHWATER_LAKE=str(tmp_path)),
                "is in use by `highwater build` (process 4711, since",
                "Wait for it to end",
            )


@pytest.mark.parametrize("command", ["compact", "rebuild", "replay", "status", "vacuum"])
def test_a_misspelt_table_is_told_before_spark_starts(tmp_path, command):
    nothing = {"JAVA_HOME": str(tmp_path), "HIGHWATER_LAKE": str(tmp_path / "lake")}
    one_sentence(run(command, "tabel1", **nothing), "there is no table 'tabel1'; tables are: ", "table1")


def test_what_an_extraction_needs_is_told_before_spark_starts(tmp_path):
    nothing = {"JAVA_HOME": str(tmp_path), "HIGHWATER_LAKE": str(tmp_path / "lake")}
    one_sentence(run("extract", "shop.orders", **nothing), "shop.orders is not captured; declared are: ")
    one_sentence(run("patch", "shop.orders", "--end", **nothing), "only those can be patched: none")
    one_sentence(run("extract", "--enable", "orders", **nothing), "'orders' is not <vendor>_<system>.<table>")
    one_sentence(run("extract", "--enable", "changelog_shop.orders", **nothing), "HIGHWATER_SHOP_URL is not set")


@pytest.mark.parametrize("url", URLS)
def test_a_password_in_a_url_is_shown_by_no_command(tmp_path, url):
    environment = {"HIGHWATER_STORE_URL": url.format(LEAK), "HIGHWATER_LAKE": str(tmp_path / "lake")}
    result = run("extract", "--enable", "changelog_store.orders", JAVA_HOME=str(tmp_path), **environment)
    one_sentence(result, "HIGHWATER_STORE_URL carries a user or a password")
    assert LEAK not in result.stdout + result.stderr


def test_the_step_under_way_is_told_from_a_killed_one(tmp_path, monkeypatch):
    from highwater.runtime.project import lease, step_under_way

    monkeypatch.setenv("HIGHWATER_LAKE", str(tmp_path))
    assert step_under_way() is None
    with lease("highwater build"):
        assert step_under_way().startswith(f"highwater build is running (process {os.getpid()}, since ")
        held = (tmp_path / "lease").read_text()
    assert step_under_way() is None, "it has ended"
    with contextlib.suppress(ValueError), lease("highwater build"):
        raise ValueError
    assert step_under_way() is None, "it has failed, and said so"
    (tmp_path / "lease").write_text(held)  # what a kill leaves
    assert re.fullmatch(r"highwater build of [\d :-]+ UTC was killed; run it again", step_under_way())


def test_without_network_on_the_first_run(project):
    resolver = project / "conf/resolver.xml"
    # a repository that cannot be reached, as all are without network
    resolver.write_text(
        resolver.read_text().replace('m2compatible="true"', 'm2compatible="true" root="http://127.0.0.1:9/"')
    )
    command = [sys.executable, "-m", "highwater.spark.jars"]
    result = subprocess.run(command, cwd=project, env=environment_of_a_user(), capture_output=True, text=True)
    one_sentence(result, "the first run needs the network".capitalize()[1:], "run the same command again")


def test_with_another_jar_than_the_pinned_one(project):
    from highwater.spark.jars import differences

    shutil.copytree(PROJECT / ".spark/jars", project / ".spark/jars")
    here = Path.cwd()
    os.chdir(project)
    try:
        assert differences(Path(".spark/jars")) == []
        (storage,) = Path(".spark/jars").glob("*delta-storage*")
        storage.write_bytes(storage.read_bytes() + b"x")
        (kernel,) = Path(".spark/jars").glob("*delta-kernel-api*")
        kernel.rename(kernel.with_name("unknown.jar"))
        words = " ".join(differences(Path(".spark/jars")))
        assert "another SHA-256" in words and "is missing" in words and "unknown.jar is not in" in words
    finally:
        os.chdir(here)


@pytest.mark.parametrize(("command", "words"), [(["build"], "--hold"), (["dbt", "build"], "--full-refresh")])
def test_help_builds_nothing(tmp_path, command, words):
    result = run(*command, "--help", cwd=tmp_path)  # outside of a project
    assert result.returncode == 0 and words in result.stdout, result.stderr
    assert not [path for path in tmp_path.iterdir() if path.name != "logs"]


def test_outside_the_project(tmp_path, monkeypatch, capsys):
    one_sentence(run("land", cwd=tmp_path), "no dbt_project.yml")
    for place in ("s3a://lake/x", "dbfs:/mnt/x"):
        said = run("check", HIGHWATER_LAKE=place)
        one_sentence(said, f"HIGHWATER_LAKE is {place}, and", "Set HIGHWATER_LAKE to a folder")
        assert not (PROJECT / place.partition("/")[0]).exists()
    monkeypatch.chdir(tmp_path)
    for name in commands.commands.keys() - {"dbt"}:  # whose help is dbt's
        for words in ("--help", "-h"):
            assert commands([name, words], "highwater", standalone_mode=False) == 0
            assert capsys.readouterr().out.startswith(f"Usage: highwater {name} ")
    # help that is not asked for
    with pytest.raises(UsageError, match="no dbt_project"):
        commands(["query", "--", "--help"], standalone_mode=False)
    assert [*tmp_path.iterdir()] == []


def test_with_a_feed_that_is_not_declared(tmp_path):
    one_sentence(run("land", "nope", HIGHWATER_LAKE=str(tmp_path)), "no feed 'nope' is declared", "datastream_user1")


@pytest.mark.parametrize(
    "before, after, words",
    [
        ("format: datastream-json", "format: datastream", ["line 9", "'datastream'", "datastream-json, csv"]),
        ("order: change", "ordre: change", ["unknown setting 'ordre'", "datastream-json knows: baseline,"]),
        ("- name: table1", "- name: Table-1", ["'Table-1' is no name"]),
        (
            "format: datastream-json",
            "format: csv",
            ["unknown setting 'order'", "csv knows: delimiter, endings, epochs,"],
        ),
        ("sources:", "sources: [", ["is not YAML"]),
    ],
)
def test_with_a_wrong_declaration(project, before, after, words):
    path = project / "models/staging/datastream_user1/_datastream_user1__sources.yml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    one_sentence(run("land", cwd=project), "models/staging/datastream_user1/_datastream_user1__sources.yml", *words)


ADD = ["add-table", "datastream_user1.bookings"]
ADD_NEW = ["add-table", "some_feed.things", "--key", "id:int", "--columns", "v:string", "--format"]
DEBEZIUM = ["add-table", "debezium_erp.bookings"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["add-table", "orders"], ["'orders' is not <vendor>_<system>.<table>"]),
        (ADD, ["no record of it is delivered yet", "say which columns identify a row"]),
        ([*ADD, "--key", "id"], ["no record of it is delivered yet", "--key id:bigint"]),
        ([*ADD, "--columns", "v:string"], ["say which columns identify a row"]),
        ([*ADD, "--key", "id", "--columns", "v:string"], ["column 'id' is not written as name:type"]),
        (
            [*ADD, "--key", "id:int", "--columns", "a:number,b:variable"],
            [
                "column 'a' has the unknown type 'number'; column 'b' has the unknown type 'variable'",
                "Types are: string",
            ],
        ),
        (
            [*ADD, "--key", "id:bigint", "--columns", "total:decimal"],
            ["column 'total' has the unknown type 'decimal'", "decimal(p,s)"],
        ),
        ([*ADD, "--key", "id:bigint", "--columns", "v:int,id:string"], ["column 'id' is given twice"]),
        ([*ADD, "--key", "id:bigint", "--columns", "a:b,c:string"], ["column 'a' has the unknown type 'b'"]),
        ([*ADD, "--key", "id:bigint", "--columns", "a,b:string"], ["column 'a' is not written as name:type", "quotes"]),
        ([*ADD, "--key", "id:bigint", "--columns", '"":string'], ["a column has no name"]),
        ([*ADD, "--key", "id:bigint", "--columns", "n:decimal(39,2)"], ["the unknown type 'decimal(39,2)'", "38"]),
        ([*ADD, "--key", "id:bigint", "--columns", "n:decimal(5,6)"], ["the unknown type 'decimal(5,6)'"]),
        ([*ADD, "--key", "id:bigint", "--columns", "t:timestamp[millis]"], ["unit 'millis'", "only in records of"]),
        ([*DEBEZIUM, "--key", "id:bigint", "--columns", "t:timestamp[days]"], ["the unknown unit 'days'", "millis"]),
        (
            [*DEBEZIUM, "--key", "id:bigint", "--columns", "d:date[days]"],
            ["the unknown unit 'days'; units are: millis"],
        ),
        ([*DEBEZIUM, "--key", "id:bigint[millis]"], ["which only date, timestamp, timestamp_ntz may have"]),
        (
            [*ADD, "--setting", "order=mysql_sort_keys", "--key", "id:int"],
            ["is declared already, with `order: change_seq", "Write `order: my"],
        ),
        ([*ADD, "--format", "csv", "--key", "id:int"], ["with the format datastream-json"]),
        ([*ADD_NEW, "debezium-json"], ["debezium-json needs the setting connector, one of: postgresql, mysql"]),
        (
            [*ADD_NEW, "debezium-json", "--setting", "connector=vitess"],
            ["connector is 'vitess'; it must be one of: postgresql, mysql, ", "declare `order: kafka` in its place."],
        ),
        ([*ADD_NEW, "datastream-avro"], ["datastream-avro needs the setting order, one of: oracle_sort_keys"]),
        ([*ADD_NEW, "datastream-gcs-json", "--setting", "order=changes"], ["order is 'changes'; it must be one of"]),
        ([*ADD_NEW, "tungsten-csv"], ["tungsten-csv needs the setting dialect, one of: mysql"]),
        (
            [*ADD_NEW, "debezium-json", "--setting", "connector=mysql", "--setting", "times=iso"],
            ["times is 'iso'; it must be one of: adaptive, connect"],
        ),
        (
            ["add-table", "debezium_erp.Order Details", "--key", "id:int"],
            ["order_details --source-table 'Order"],
        ),
        (
            ["add-table", "debezium_erp.archive.orders", "--key", "id:int"],
            ["archive_orders --source-table"],
        ),
        (["add-table", "debezium_erp.größe", "--key", "id:int"], ["gr_e --source-table 'größe'"]),
        (["add-table", "debezium_erp.2fa", "--key", "id:int"], ["t_2fa --source-table 2fa"]),
        (["add-table", f"debezium_erp.{'n' * 190}", "--key", "id:int"], ["is too long", "--source-table"]),
        ([*ADD, "--key", "id:int", "--source-table", "a/b"], ["no folder can be called 'a/b'"]),
        ([*ADD, "--key", "id:int", "--source-table", "ö" * 128], ["no folder can be called"]),
        ([*ADD, "--key", "id:int", "--source-table", "table1"], ["are those of the table table1 of datastream_user1"]),
        (
            ["add-table", "debezium_shop.orders", "--key", "id:int"],
            ["the feed debezium_shop is not declared yet", "--format"],
        ),
        (["add-table", "datastream_user1.table1", "--key", "id:int"], ["is there already"]),
        (["add-table", "datastream_user1.customers", "--history"], ["customers_history.sql is there already"]),
        ([*ADD, "--without-key", "--columns", "v:string", "--history"], ["rows without a key have no versions"]),
    ],
)
def test_add_table_refuses_and_writes_nothing(project, arguments, words):
    before = sorted(path for path in project.glob("**/*"))
    one_sentence(run(*arguments, cwd=project), *words)
    assert sorted(path for path in project.glob("**/*")) == before


NEW = ["debezium_shop", "--format"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            ["debezium_shop"],
            ["the feed debezium_shop is not declared yet; say its format with --format data", "arcion_"],
        ),
        ([*NEW, "debezium"], ["--format is 'debezium'; it must be one of: datastream-json, csv,"]),
        ([*NEW, "debezium-json"], ["needs the setting connector, one of: postgresql, mysql"]),
        (
            [*NEW, "debezium-json", "--setting", "connector=postgres"],
            ["connector is 'postgres'", "of: postgresql, mysql"],
        ),
        ([*NEW, "debezium-json", "--setting", "conector=mysql"], ["unknown setting 'conector'", "knows: baseline"]),
        ([*NEW, "csv", "--setting", "role=changes"], ["csv files hold rows, not changes"]),
        ([*NEW, "arcion-json"], ["say which database wrote the DDL: --dialect postgresql|mysql"]),
        (["datastream_user1", "--format", "csv"], ["is declared already, with the format datastream-json"]),
        (
            ["datastream_user1", "--setting", "ordr=mysql_sort_keys"],
            ["unknown setting 'ordr'", "Did you mean order?"],
        ),
        (
            ["datastream_user1", "--setting", "wrapping=doc"],
            ["already, without `wrapping`", "beside `format` in models/"],
        ),
        (["datastream_user1", "--setting", "order=mysql"], ["order is 'mysql'; it must be one of"]),
        (["shop", "--format", "csv"], ["'shop' is no name of a feed: <vendor>_<system>"]),
        (["debezium_shop.orders", "--format", "csv"], ["'debezium_shop.orders' is a table", "highwater add-table"]),
    ],
)
def test_the_first_wrong_thing_of_a_feed_is_said_once_before_any_table(project, arguments, words):
    (project / "schema.sql").write_text("create table a (id int primary key); create table b (id int primary key);")
    before = sorted(project.glob("**/*"))
    # who says the dialect hears the same
    dialect = [] if "arcion-json" in arguments else ["--dialect", "mysql"]
    for more in ([], dialect):
        one_sentence(run("add-tables", *arguments, "--ddl", "schema.sql", *more, cwd=project), *words)
    if "." not in arguments[0]:
        words = words if "_" in arguments[0] else ["'shop.a' is not <vendor>_<system>.<table>"]
        table = [f"{arguments[0]}.a", *arguments[1:]]
        one_sentence(run("add-table", *table, "--ddl", "schema.sql", cwd=project), *words)
    assert sorted(project.glob("**/*")) == before


def test_add_table_says_when_the_name_is_taken(project):
    result = run("add-table", "datastream_crm.table1", "--key", "id:bigint", "--columns", "v:string", cwd=project)
    assert "models/marts/crm/crm_table1.sql" in result.stdout
    assert "A model called table1 is there already, so this table is crm_table1." in result.stdout


def test_add_table_quotes_names_that_yaml_would_read_as_something_else(project):
    columns = 'no:string,qty [kg]:string,total #1:string,"""x""":string'
    result = run(*ADD, "--key", "on:int", "--columns", columns, cwd=project)
    assert result.returncode == 0, result.stderr
    names = ["no", "qty__kg_", "total__1", "_x_"]
    models = yaml.safe_load((project / "models/tables/user1/bookings.yml").read_text())["models"]
    log, mart = ({each["name"]: each for each in models}[name] for name in ("bookings_changes", "bookings"))
    for model in (log, mart):
        assert [column["name"] for column in model["columns"]] == ["on", *names]
    assert log["config"]["meta"]["key"] == ["on"]
    own = [column.get("config", {}).get("meta", {}).get("field") for column in log["columns"]][1:5]
    assert own == [None, "qty [kg]", "total #1", '"x"']


# what SQL identifiers of the four databases may hold, in quotes: anything but NUL
PIECES = [
    *"aAbZ09_ .,:;-'\"`\\/()[]{}<>|#@$%&*+=?!~^",
    "\t",
    "\n",
    "ß",
    "É",
    "é",
    "名前",
    "İ",
    "ſ",
    "ı",
    "Ω",
    "ا",
    "अ",
    "😀",
]
PIECES += [
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{{ x }}",
    "\u200b",
    "\u2028",
    "\x7f",
    "\x85",
    "\ufeff",
    "null",
    "select",
]
NAMES = [
    "Name",
    "name",
    "NAME",
    "a b",
    "a.b",
    "a,b",
    "a:b",
    "?",
    "??",
    "_",
    "__",
    "2fa",
    "not",
    "key",
    "value",
    "batch",
]
NAMES += ["feed", "source_feed", "FEED", "verdict", "valid_from", "source_valid_from", "is_copy", "operation", "old_id"]
NAMES += [
    "größe",
    "GRÖSSE",
    "Ö",
    "O\u0308",
    "n" * 128,
    "名" * 128,
    "is_new",
    "0b_",
    "0x_",
    "2024-99-99",
    "id",
    "column",
    "source_column",
    "`a`",
    "%a",
]
NAMES += [
    " ",
    " a",
    "a ",
    "\n",
    '"',
    '""',
    "'",
    "{{ env_var('HOME') }}",
    "{{",
    "{% raw %}",
    "{#",
    "no",
    "null",
    "~",
    "1",
]
NAMES += ["1.0", "- a", "a: b", "a #b", "&a", "*a", "!a", "@a", "a\n", "\na", "a\n\nb", "a\\", "\\'", "a}}", "a\r\nb"]


def as_typed(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


TABLE_NAMES = [
    "archive.orders",
    "Order Details",
    "order-items",
    "größe",
    "n" * 128,
    "2fa",
    "it's",
    "a\\b",
    '"Orders"',
    "`a`",
]
TABLE_NAMES += ["{{ x }}", "{% raw %}", "a\nb", " a", "名前", "😀", "{{ x }} 'of' \\ `it`", '"public"."Orders"']


class Named:
    """A project with tables and columns of any name, and what dbt makes of it: one parse says all."""

    def __init__(self, folder: Path):
        seed = random.randrange(10**9)
        print("seed", seed)
        chance = random.Random(seed)
        generated = ["".join(chance.choices(PIECES, k=chance.randrange(1, 9))) for _ in range(150)]
        self.folder, self.fields = folder, [*dict.fromkeys(NAMES + HOSTILE + generated)]
        chance.shuffle(self.fields)
        self.said = [self.add(*arguments) for arguments in self.tables()]
        # as comments too
        self.told = named_columns(
            [(field, "string", None) for field in self.fields], comments={field: field for field in self.fields}
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            add_table("odd_names.told", found=FoundColumns(self.told, self.fields[:1]))
            self.columns = declared_columns("odd")[0]
        warnings = '{"error": "all", "silence": ["UnusedResourceConfigPath"]}'
        parsed = run("dbt", "--warn-error-options", warnings, "parse", "--quiet", cwd=folder, **{VARIABLE: LEAK})
        assert parsed.returncode == 0, parsed.stdout + parsed.stderr
        self.manifest = json.loads((folder / "target/manifest.json").read_text())

    def tables(self):
        columns = ",".join(f"{as_typed(name)}:string" for name in self.fields[1:])
        columns = ["--key", f"{as_typed(self.fields[0])}:int", "--columns", columns]
        new = ["--format", "debezium-json", "--setting", "connector=mysql"]
        key, no_key = ["--key", "id:bigint"], ["--without-key", "--columns", "title:string"]
        yield "odd_names.odd", *columns, *new, "--setting", "layout=records", "--history"
        yield "odd_files.odd", *columns, "--format", "dms-csv"
        for number, name in enumerate(TABLE_NAMES):
            yield f"odd_names.odd{number}", *key, "--source-table", name
        yield "lib_a.books", *no_key, *new
        yield "lib_b.books", *key, *new
        # other names that models of the project have
        for name in ("rejected", "unassigned_records", "books_changes"):
            yield f"lib_a.{name}", *key
        several = "customer_id:bigint,total:decimal(12,2),placed_at:timestamp"
        yield "lib_a.bookings", "--key", "order_id:bigint,line:int", "--columns", several

    def add(self, *arguments) -> str:
        result = run("add-table", *arguments, cwd=self.folder)
        assert result.returncode == 0, (arguments, result.stderr)
        return result.stdout


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    copy_empty_project(PROJECT, folder)
    return Named(folder)


def test_any_identifier_comes_back_through_add_table_and_dbt(named):
    for path in [path for path in named.folder.glob("**/*") if path.is_file()]:
        assert LEAK.encode() not in path.read_bytes(), path
    nodes, fields = named.manifest["nodes"], named.fields
    log = nodes["model.highwater.odd_changes"]
    found = {
        name: column["config"]["meta"].get("field", name)
        for name, column in log["columns"].items()
        if column["data_type"]
    }
    assert set(found.values()) ^ set(fields) == set()
    assert all(re.fullmatch(r"\w+", name) and name == name.lower() for name in found)
    assert log["config"]["meta"]["key"] == [next(name for name in found if found[name] == fields[0])]
    for model in ("told_changes", "told"):
        columns = nodes[f"model.highwater.{model}"]["columns"].values()
        assert [column["description"].strip() for column in columns] == [
            each.description.strip() for each in named.told
        ]
    sources = {node["source_name"]: node for node in named.manifest["sources"].values()}
    assert sources["odd_files"]["config"]["meta"]["columns"] == fields
    assert {column.name: column.field for column in named.columns} == found
    for names in ("name", "mart_name", "version_name"):
        several = [getattr(column, names).upper() for column in named.columns]
        assert len(several) == len(set(several)), names
    numbered = next(column for column in named.columns if column.is_numbered)
    assert f"The column {numbered.field!r} is called {numbered.name}" in named.said[0]


def test_a_table_of_any_name_parses(named):
    for number, name in enumerate(TABLE_NAMES):
        source = named.manifest["sources"][f"source.highwater.odd_names.odd{number}"]
        expected = name if '"' in name else name.lower()
        assert source["config"]["meta"]["source_table"] == expected
        escaped = expected.replace("\\", "\\\\").replace("'", "\\'")
        assert source["freshness"]["filter"] == f"source_table = '{escaped}'"


def test_tables_of_one_name_whose_first_one_has_no_key(named):
    said = "".join(named.said)
    assert "A model called books is there already, so this table is b_books." in said
    for name in ("rejected", "unassigned_records", "books_changes"):
        assert f"so this table is a_{name}." in said


def test_add_table_with_several_keys(named):
    assert "models/marts/a/bookings.sql" in named.said[-1]
    declared = (named.folder / "models/tables/a/bookings.yml").read_text()
    assert "key: [order_id, line]" in declared and '{name: total, data_type: "decimal(12,2)"}' in declared


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_the_command_that_declares_a_table_is_one_that_works(project, monkeypatch, name):
    from highwater.catalog.entities import logged_tables
    from highwater.catalog.names import declaring
    from highwater.scaffold.add_table import add_table

    monkeypatch.chdir(project)
    typed = f"printf '%s\\0' {declaring('odd_names', name)}"
    words = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True).stdout.split("\0")
    _, command, table, *told = words[:-1]
    assert command == "add-table" and (
        told == ["--source-table", name] or (told == [] and table == f"odd_names.{name}")
    )
    settings = {"connector": "mysql", "layout": "records"}
    add_table(table, "id:int", None, "debezium-json", settings, source_table=told[1] if told else None)
    assert ("odd_names", name if '"' in name else name.lower()) in [
        pair for _, pairs in logged_tables() for pair in pairs
    ]
    with pytest.raises(UsageError, match="are those of the table"):
        add_table("odd_names.another", "id:int", source_table=name)


def test_units_stand_in_the_declaration(project):
    columns = 'at:timestamp[millis],day:date[micros],"a:b":timestamp_ntz [ NANOS ],plain:timestamp'
    result = run(*DEBEZIUM, "--key", "id:bigint", "--columns", columns, cwd=project)
    assert result.returncode == 0, result.stderr
    log, *_ = yaml.safe_load((project / "models/tables/erp/bookings.yml").read_text())["models"]
    units = {c["name"]: c.get("config", {}).get("meta", {}) for c in log["columns"][1:5]}
    assert units == {
        "at": {"unit": "millis"},
        "day": {"unit": "micros"},
        "a_b": {"field": "a:b", "unit": "nanos"},
        "plain": {},
    }


def test_names_that_the_project_stores_get_a_prefix_and_never_meet():
    from highwater.catalog.columns import named_columns

    columns = named_columns([(field, "string", None) for field in ("feed", "source_feed", "Feed", "operation")])
    assert [column.name for column in columns] == ["source_feed", "source_feed_2", "source_feed_3", "operation"]
    assert [column.mart_name for column in columns] == ["feed", "source_feed_2", "source_feed_3", "operation"]
    # what 0.5.0 has declared
    assert Column("source_operation", "operation", "string").mart_name == "operation"


def test_query_only_reads_and_needs_a_lake(tmp_path):
    one_sentence(run("query", "select 1", HIGHWATER_LAKE=str(tmp_path)), "there is no lake in", "highwater build")
