"""Names and values from outside are data: a hostile set, planted where text comes in, looked for where it goes out."""

import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from highwater.catalog import columns
from highwater.catalog.columns import as_typed, parse_columns
from highwater.catalog.declarations import append_epoch, epochs_of
from highwater.catalog.entities import declared_columns
from highwater.catalog.feeds import jinja_text, plain_text, sql_text
from highwater.catalog.names import declaring
from highwater.catalog.yaml_files import in_yaml
from highwater.databases.database import connection_settings, text_in_postgres
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import UNPRINTABLE, ShownStream, in_shell, printable
from highwater.spark import dbt
from jinja2 import Environment
from repository import PROJECT
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


def in_sql(text):
    """Return a text as a model may have it."""
    return f"{{{{ {jinja_text(sql_text(text))} }}}}"


def test_in_sql_spark_reads_the_text_itself(workshop):
    assert workshop.rows(f"select {', '.join(map(sql_text, HOSTILE))}") == [tuple(HOSTILE)]
    in_models = (Environment().from_string(in_sql(text)).render() for text in HOSTILE)
    assert workshop.rows(f"select {', '.join(in_models)}") == [tuple(HOSTILE)]


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
    imports = (
        "from highwater.runtime.endings import leave_with_the_sentence\nfrom highwater.runtime.errors import CheckError"
    )
    fails = f"{imports}\n{fails}"
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
    monkeypatch.chdir(PROJECT)
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
    from highwater.scaffold.new_fields import add_new_fields
    from highwater.status.query import show
    from highwater.status.status import status
    from highwater.status.status_page import page
    from highwater.upkeep.evolution import meet

    monkeypatch.setenv(VARIABLE, LEAK)
    table, fields = "datastream_hostile.hostile", [*HOSTILE, *LEFT]
    workshop.add_table(table, "id:int", "v:string")
    declaration = workshop.declaration("hostile")
    declaration.write_text(
        declaration.read_text().replace("{severity: warn}", "{severity: warn, meta: {new_fields: add}}")
    )
    values = {name: f"{number} {name}" for number, name in enumerate(fields)}
    workshop.deliver(table, "a.json", [change("INSERT", "1", {"id": 1, "v": "a", **values})])
    workshop.deliver(table, "{{ 1/0 }}\x1b[31m.json", [change("INSERT", "x\x1b", {"id": 2, "v": HOSTILE[0]})])
    workshop.land("datastream_hostile")
    add_new_fields(workshop.spark)
    list(meet(workshop.spark, ["hostile"]))
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
    before = declaration.read_text()
    add_new_fields(workshop.spark)  # a second time nothing is new
    assert declaration.read_text() == before


ODD_NAMES = ["a'b", "</script><script>alert(document.domain)</script>", "{{ 1/0 }}", "$(touch pwned)"]
ODD_MODEL = """\
select
    `what`,
    concat('{side} ', `what`) as `said`{columns}
from values
{rows} as odd (`what`)
"""
ODD_YAML = """\
models:
  - name: odd_lake
    data_tests:
      - matches_export:
          arguments: {export: ref('odd_export'), key: [what]}
"""


@pytest.mark.long
def test_values_and_names_of_a_reconciliation_run_nowhere(workshop, capsys, monkeypatch, tmp_path):
    """All of the set as keys, values and names of what is compared, in each form of the report."""
    from highwater.reconcile import explain as reconcile_explain
    from highwater.reconcile import page as reconcile_page
    from highwater.reconcile import reconcile
    from highwater.reconcile.repair import Repair
    from highwater.reconcile.verdict import Cause

    monkeypatch.setenv(VARIABLE, LEAK)
    monkeypatch.setattr(reconcile_explain, "SAMPLES", 1000)
    folder = workshop.folder / "models/odd"
    folder.mkdir()
    try:
        for side in ("lake", "export"):
            named = "".join(f",\n    '{side}' as {in_name(name)}" for name in ODD_NAMES)
            rows = ",\n".join(f"({in_sql(text)})" for text in HOSTILE)
            (folder / f"odd_{side}.sql").write_text(ODD_MODEL.format(side=side, columns=named, rows=rows))
        (folder / "odd_lake.yml").write_text(ODD_YAML)
        workshop.build("odd_lake", "odd_export", command="run")
        (failed,) = workshop.dbt("test", "--select", "odd_lake").result
        assert failed.failures == len(HOSTILE)
        found = reconcile.reconcile(workshop.spark, ("odd_lake",))
    finally:
        for path in folder.glob("*"):
            path.unlink()
        folder.rmdir()
    (each,) = found.comparisons
    letters = reconcile_explain.SHOWN_LETTERS
    assert {sample.key["what"] for sample in each.samples} == {
        text if len(text) <= letters else f"{text[:letters]}…" for text in HOSTILE
    }
    assert {name for sample in each.samples for name in sample.columns} == {"said", *ODD_NAMES}
    (query,) = each.queries.values()
    words = subprocess.run(
        ["bash", "-c", f"highwater() {{ printf '%s\\0' \"$@\"; }}\n{query}"],
        cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip
    assert not list(tmp_path.iterdir())
    _, sql, _ = words.stdout.decode().split("\0")
    assert {row["said"] for row in workshop.spark.sql(sql).collect()} == {
        f"{side} {text}" for side in ("lake", "export") for text in HOSTILE
    }
    plain = _Scripts(reconcile_page.page(workshop.spark, found_without_words(found))).found
    counts = {"value": 1, "null_in_export": 0, "null_in_lake": 0, "equal_by_rule": 0}
    each = replace(
        each,
        export_file=HOSTILE[0],
        export_parts=dict.fromkeys(HOSTILE, "hash"),
        position=HOSTILE[6],
        taken_at="now",
        age="new",
        export_records=1,
        not_checked=list(HOSTILE),
        notes=list(HOSTILE),
        columns=dict.fromkeys(HOSTILE, counts),
        causes=[Cause(cause=text, column=text, rows=1, of=2, evidence=text) for text in HOSTILE],
        repairs=[Repair(verdict="missing_in_lake", keys=1, why=text, run=[text]) for text in HOSTILE],
    )
    found = replace(found, comparisons=[each])
    capsys.readouterr()
    reconcile_page.show(found)
    shown = capsys.readouterr().out
    assert not [line for line in shown.splitlines() if UNPRINTABLE.search(line)]
    assert not [line for line in shown.split("\n") if line.startswith("lines")] and "two\\nlines" in shown
    text = reconcile_page.as_json(found)
    (read,) = json.loads(text)["tables"]
    assert read["notes"] == HOSTILE and not re.search("[\x00-\x09\x0b-\x1f]", text)
    for verdict, told in (("FAIL", "failure"), ("INCONCLUSIVE", "error")):
        junit = reconcile_page.as_junit(replace(found, comparisons=[replace(each, verdict=verdict)]))
        tree = ElementTree.fromstring(junit)
        assert [node.tag for node in tree.iter()] == ["testsuite", "properties", "property", "testcase", told]
        said = tree.find(f".//{told}").text.splitlines()
        assert len(said) > len(HOSTILE) and not [
            line for line in said if UNPRINTABLE.search(line) or line.startswith("lines")
        ]
        assert LEAK not in junit
    html = reconcile_page.page(workshop.spark, found)
    assert _Scripts(html).found == plain and "alert(document.domain)&lt;/script&gt;" in html
    assert not [form for form in (shown, text, html) if LEAK in form]
    # the control: a page that escapes nothing is found out
    assert _Scripts(html + HOSTILE[6]).found != plain


def in_name(name: str) -> str:
    """A name as the SQL of a model has it, where dbt renders it."""
    return "{{ " + jinja_text(f"`{name}`") + " }}"


def found_without_words(found):
    """The same result without a text from outside."""
    comparisons = [replace(each, samples=[], columns={}, queries={}, rules={}) for each in found.comparisons]
    return replace(found, comparisons=comparisons)
