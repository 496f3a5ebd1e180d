"""Names and values from outside are data: a hostile set, planted where text comes in, looked for where it goes out."""

import json
import os
import pty
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from highwater import columns, dbt
from highwater.add_table import declared_columns, declaring, in_sql, in_yaml
from highwater.columns import as_typed, parse_columns
from highwater.database import connection_settings, text_in_postgres
from highwater.declarations import append_epoch, epochs_of
from highwater.errors import UsageError
from highwater.feeds import plain_text, sql_text
from highwater.printable import UNPRINTABLE, ShownStream, in_shell, printable
from jinja2 import Environment
from workshop import change

LEAK = "Geheim123xyz"
VARIABLE = "HIGHWATER_STORE_PASSWORD"
HOSTILE = [
    f"{{{{ env_var(dict({VARIABLE}=1)|list|first) }}}}",
    f"${{env:{VARIABLE}}}",
    "{{ 1/0 }}",
    "{% raw %}",
    "{#",
    "%}",
    "</script><script>alert(document.domain)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "<!--<script>",
    "a,b",
    "a'b",
    'a"b',
    "a:b",
    "a\\b",
    "a\\",
    "`a`",
    "'); drop table lake.hostile; --",
    "two\nlines",
    "esc\x1b[31m\x1b]0;title\x07",
    "c1\x9b31m",
    "right\u202eleft",
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    "n" * 255,
    " ",
    "ü名",
]
# no column can be called so
LEFT = ["", "n" * 256]


def test_in_yaml_dbt_reads_the_text_itself(monkeypatch):
    monkeypatch.setenv(VARIABLE, LEAK)
    jinja = Environment()
    jinja.globals["env_var"] = os.environ.get
    for text in HOSTILE:
        written = in_yaml(text)
        for document in (f"name: {written}", f"{{name: {written}}}"):
            read = yaml.safe_load(document)["name"]
            assert jinja.from_string(read, {}).render() == text.removesuffix("\n"), written
            assert plain_text(read) == text
    control = yaml.safe_load(f"name: {json.dumps(HOSTILE[0])}")["name"]
    assert jinja.from_string(control).render() == LEAK  # quoted as YAML alone it would be run


def test_in_sql_spark_reads_the_text_itself(workshop):
    for text in HOSTILE:
        assert workshop.value(f"select {sql_text(text)}") == text
        assert workshop.value(f"select {Environment().from_string(in_sql(text)).render()}") == text


@pytest.mark.long
def test_in_a_statement_for_postgresql_it_is_the_text_itself_on_one_line():
    from postgres import serving

    with serving("odd") as server:
        literals = list(map(text_in_postgres, HOSTILE))
        assert not [literal for literal in literals if UNPRINTABLE.search(literal)]
        read = server.sql("".join(f"select encode(convert_to({literal}, 'UTF8'), 'hex');\n" for literal in literals))
        assert [bytes.fromhex(line).decode() for line in read] == HOSTILE


def test_in_a_shell_it_is_one_word_and_nothing_runs(tmp_path):
    for text in HOSTILE:
        word = in_shell(text)
        said = subprocess.run(["bash", "-c", f"printf %s {word}"], cwd=tmp_path, capture_output=True, check=True)
        assert said.stdout.decode() == text and not UNPRINTABLE.search(word)
        assert not UNPRINTABLE.search(declaring("debezium_shop", text))
    subprocess.run(["bash", "-c", f"printf %s {HOSTILE[-6]}"], cwd=tmp_path, check=True)
    assert list(tmp_path.iterdir())  # the control: as it is, it runs


def test_to_a_terminal_no_control_character_goes(capsys):
    assert not any(UNPRINTABLE.search(printable(text)) for text in HOSTILE)
    fails = f"def fail(): raise CheckError({' '.join(HOSTILE)!r})\nleave_with_the_sentence(fail)"
    fails = f"from highwater.errors import CheckError, leave_with_the_sentence\n{fails}"
    failed = subprocess.run([sys.executable, "-c", fails], capture_output=True, text=True)
    assert failed.returncode == 1 and "\\x1b[31m" in failed.stderr
    assert not set(failed.stderr) & {"\x1b", "\x07", "\x9b", "\u202e"}
    stream = ShownStream(sys.stdout)
    print("\x1b[32mOK\x1b[0m \x1b]0;title\x07\x1b[2J\x9b\ttab\r", file=stream)
    assert capsys.readouterr().out == "\x1b[32mOK\x1b[0m \\x1b]0;title\\x07\\x1b[2J\\x9b\ttab\r\n"
    assert not stream.isatty()


def test_what_any_command_prints_is_shown_on_a_terminal_and_exact_in_a_pipe():
    text = HOSTILE[19]
    prints = f"from highwater import cli\ncli.commands = lambda **_: print({text!r})\ncli.main()"
    command = [sys.executable, "-c", prints]
    assert subprocess.run(command, capture_output=True).stdout.decode() == f"{text}\n"
    reading, terminal = pty.openpty()
    subprocess.run(command, stdout=terminal, check=True)
    said = os.read(reading, 1000).decode()
    assert said.strip() == printable(text).replace("\\x1b[31m", "\x1b[31m")  # a colour is let through


def test_columns_of_a_database_are_declared_under_their_names(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    found = parse_columns(as_typed((name, "decimal(10,2)") for name in HOSTILE))
    assert [(column.field, column.data_type) for column in found] == [(name, "decimal(10,2)") for name in HOSTILE]
    for name in HOSTILE:
        description = columns.Column("c", name, "string").description
        assert "<" not in description and "](" not in description
    for name in LEFT:
        assert columns.what_is_wrong(name, "string", None)


def test_an_epoch_that_names_a_file_is_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "models/staging/dms_shop/_dms_shop__sources.yml"
    path.parent.mkdir(parents=True)
    settings = {"format": "dms-csv"}
    tables = [{"name": "orders"}]
    path.write_text(
        yaml.safe_dump({"sources": [{"name": "dms_shop", "config": {"meta": {"feed": settings}}, "tables": tables}]})
    )
    monkeypatch.setenv(VARIABLE, LEAK)
    for text in HOSTILE:
        epoch = {"table": "orders", "when": f"source_file = {sql_text(text)}", "resync": True}
        append_epoch("dms_shop", epoch)
        assert epochs_of("dms_shop")[1][-1] == epoch and append_epoch("dms_shop", epoch) is None
    jinja = Environment()
    jinja.globals["env_var"] = os.environ.get
    (source,) = yaml.safe_load(path.read_text())["sources"]
    for text, epoch in zip(HOSTILE, source["config"]["meta"]["feed"]["epochs"], strict=True):
        assert jinja.from_string(epoch["when"]).render() == f"source_file = {sql_text(text)}"


class _Scripts(HTMLParser):
    def __init__(self, page: str):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found += [tag] if tag in ("script", "img") else []


def test_the_docs_in_one_file_run_no_name(tmp_path):
    from dbt.task.docs import DOCS_INDEX_FILE_PATH

    template = Path(DOCS_INDEX_FILE_PATH).read_text()
    data = {name: json.dumps({"descriptions": HOSTILE, "of": name}) for name in ("manifest", "catalog")}
    page = template
    for name, text in data.items():
        (tmp_path / f"{name}.json").write_text(text)
        page = page.replace(f'"{name.upper()}.JSON INLINE DATA"', text)
    (tmp_path / "static_index.html").write_text(page)
    own = _Scripts(template).found
    assert _Scripts(page).found != own  # as dbt writes it, names run
    dbt.close_static_page(tmp_path)
    closed = (tmp_path / "static_index.html").read_text()
    assert _Scripts(closed).found == own
    assert json.dumps({"descriptions": HOSTILE, "of": "manifest"}).replace("<", "\\u003c") in closed


URLS = [
    "jdbc:postgresql://db/shop?password={}",
    "jdbc:postgresql://db/shop?a=b&PASSWORD={}",
    "jdbc:postgresql://db/shop?pass%77ord={}",
    "jdbc:postgresql://db/shop?pass%2577ord={}",
    "jdbc:postgresql://db/shop?sslPassword={}",
    "jdbc:postgresql://db/shop;password={}",
    "jdbc:postgresql://db/shop?user=a&pwd={}",
    "jdbc:postgresql://a:{}@db/shop",
    "jdbc:postgresql://a:{}%40db/shop",
    "postgres://a:{}%2540db/shop",
]


@pytest.mark.parametrize("url", URLS)
def test_a_url_with_a_password_is_refused_and_not_shown(monkeypatch, url):
    monkeypatch.setenv("HIGHWATER_STORE_URL", url.format(LEAK))
    with pytest.raises(UsageError, match="carries a user or a password") as refused:
        connection_settings("changelog_store")
    assert LEAK not in str(refused.value)


def test_a_url_without_a_password_is_taken(monkeypatch):
    monkeypatch.setenv("HIGHWATER_STORE_USER", "app")
    monkeypatch.setenv("HIGHWATER_STORE_URL", "jdbc:postgresql://db:5432/shop?sslmode=require&ApplicationName=x%20y")
    assert connection_settings("changelog_store")["user"] == "app"


@pytest.mark.soak
def test_fields_of_records_become_columns_or_are_told_and_nothing_of_them_runs(workshop, capsys, monkeypatch):
    """All of the set come as fields of one record, of a table that makes columns of new fields."""
    from highwater.new_fields import add_new_fields
    from highwater.query import show
    from highwater.status import status
    from highwater.status_page import page

    monkeypatch.setenv(VARIABLE, LEAK)
    table, fields = "datastream_hostile.hostile", [*HOSTILE, *LEFT]
    workshop.add_table(table, "id:int", "v:string")
    staging = workshop.folder / "models/staging/datastream_hostile/stg_datastream_hostile__hostile_changes.yml"
    staging.write_text(
        staging.read_text().replace("severity: warn", "severity: warn\n            meta: {new_fields: add}")
    )
    values = {name: f"{number} {name}" for number, name in enumerate(fields)}
    workshop.deliver(table, "a.json", [change("INSERT", "1", {"id": 1, "v": "a", **values})])
    workshop.deliver(table, "{{ 1/0 }}\x1b[31m.json", [change("INSERT", "x\x1b", {"id": 2, "v": HOSTILE[0]})])
    workshop.land("datastream_hostile")
    add_new_fields(workshop.spark)
    said = capsys.readouterr()
    assert said.err.count("is left in raw") == len(LEFT) and said.out.count("is a column (string) now") == len(HOSTILE)
    assert not set(said.out + said.err) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert dbt.run(["build", "--select", "+hostile", "+customers", "rejected_changes"]) == 0
    declared, _ = declared_columns("hostile")
    names = {column.field: column.mart_name for column in declared}
    assert [name for name in HOSTILE if name not in names] == [] and not set(LEFT) & set(names)
    (row,) = workshop.spark.sql("select * from hostile").collect()
    assert {name: row[names[name]] for name in HOSTILE} == {name: values[name] for name in HOSTILE}
    show(workshop.spark, "select * from rejected_changes where table_name = 'hostile'", "table")
    shown = "".join(capsys.readouterr())
    assert not set(re.sub("\x1b\\[[0-9;]*m", "", shown)) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert "<script>alert" not in page(workshop.spark, status(workshop.spark, "hostile"))
    assert dbt.run(["docs", "generate", "--static", "--no-compile", "--empty-catalog", "--quiet"]) == 0
    html = (workshop.folder / "target/static_index.html").read_text()
    assert _Scripts(html).found == ["script"] * len(_Scripts(html).found) and "<script>alert" not in html
    written = [path for name in ("models", "target", "logs", "macros") for path in workshop.folder.glob(f"{name}/**/*")]
    for path in (path for path in [*written, *workshop.folder.glob("lake/*.log")] if path.is_file()):
        assert LEAK.encode() not in path.read_bytes(), path
    manifest = json.loads((workshop.folder / "target/manifest.json").read_text())
    log = manifest["nodes"]["model.highwater.hostile_changes"]["columns"]
    assert {column["config"]["meta"].get("field", name) for name, column in log.items()} >= set(HOSTILE) - {"ü名"}
    before = staging.read_text()
    add_new_fields(workshop.spark)  # a second time nothing is new
    assert staging.read_text() == before
