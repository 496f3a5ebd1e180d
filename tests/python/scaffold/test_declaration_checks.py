"""`highwater check`: each thing that can be wrong with a declaration is found, at its line, without Spark."""

import json
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from highwater.formats import readers
from highwater.runtime.errors import UsageError
from highwater.scaffold import check as check_of_declarations
from highwater.scaffold import found_columns
from highwater.scaffold.add_table import add_table, write_logged_tables
from highwater.scaffold.check import check
from highwater.scaffold.fits import fits, holds
from repository import PROJECT
from test_commands import run
from test_found_columns import CONNECT
from workshop import copy_empty_project

DECLARED = "models/tables/shop/orders.yml"
TOLD = "the schema and 1 record of debezium_shop"
ROW = {"id": 1, "total": "AQ==", "at": 5, "open": True}
COLUMNS = [column for column in CONNECT if column["field"] in ROW]


def deliver(project, row=ROW, columns=COLUMNS):
    schema = {"fields": [{"field": name, "type": "struct", "fields": columns} for name in ("before", "after")]}
    record = {"schema": schema, "payload": {"op": "c", "before": None, "after": row, "source": {}}}
    path = project / "landing/debezium_shop/orders/a.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


def deliver_plain(project, *tables):
    """Records without a schema, of some tables."""
    row = ROW | {"id": 300}
    records = [{"op": "c", "after": row, "source": {"table": name}} for name in tables or ["orders"]]
    (project / "landing/debezium_shop/orders/a.json").write_text("\n".join(map(json.dumps, records)))


def deliver_texts(project, source=None, **values):
    """A record without a schema, of texts as Debezium writes them."""
    record = {"op": "c", "after": ROW | {"total": "1.50"} | values, "source": source or {"table": "orders"}}
    (project / "landing/debezium_shop/orders/a.json").write_text(json.dumps(record))


@pytest.fixture
def project(tmp_path, monkeypatch):
    copy_empty_project(PROJECT, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIGHWATER_LANDING", "landing")
    columns = "total:decimal(12,2),at:timestamp_ntz[micros],open:boolean"
    add_table("debezium_shop.orders", "id:bigint", columns, "debezium-json", {"connector": "postgresql"}, history=True)
    deliver(tmp_path)
    return tmp_path


def edit(old, new, path=DECLARED):
    def plant(project):
        text = (project / path).read_text()
        assert old in text
        (project / path).write_text(text.replace(old, new, 1))

    return plant


def remove(path):
    return lambda project: (project / path).unlink()


ERRORS = {
    "an unknown type": (
        edit('"decimal(12,2)"', '"decimal(12,2,1)"'),
        f"{DECLARED}:13: column 'total' has the unknown type",
    ),
    "a unit where none may be": (
        edit("data_type: bigint}", "data_type: bigint, config: {meta: {unit: millis}}}"),
        f"{DECLARED}:12: column 'id' has the unit 'millis', which only",
    ),
    "a field twice": (
        edit("{name: open, data_type", "{name: at, data_type"),
        f"{DECLARED}:15: column 'at' is declared in line 14 already",
    ),
    "a key that is no column": (
        edit("key: [id]", "key: [idd]"),
        f"{DECLARED}:6: the key names 'idd', which is no column.",
    ),
    "no key": (edit("key: [id]", "ids: [id]"), f"{DECLARED}:2: declares no key"),
    "a model that is gone": (
        remove("models/merged/shop/orders_merged.sql"),
        f"{DECLARED}:2: the model orders_merged is not there",
    ),
    "a model that nothing describes": (
        edit("- name: orders_merged", "- name: orders_merge"),
        f"{DECLARED}:2: nothing describes the model orders_merged",
    ),
    "no YAML": (edit("columns: &columns", "columns: &columns ["), f"{DECLARED}:12: is not YAML: "),
    "a log that nothing describes": (
        edit("- name: orders_changes", "- title: orders_changes"),
        f"{DECLARED}:1: does not describe orders_changes with its columns.",
    ),
    "a list of tables that is old": (
        edit("'orders'", "'order'", "macros/operations/logged_tables.sql"),
        "macros/operations/logged_tables.sql:1: is not what the models say",
    ),
}
SOURCES = "models/staging/debezium_shop/_debezium_shop__sources.yml"
STAGING = "models/staging/debezium_shop/stg_debezium_shop__orders_changes.sql"
ERRORS |= {
    "a table that no source declares": (
        lambda project: (edit("'orders')", "'order')", STAGING)(project), write_logged_tables()),
        f"{STAGING}:1: reads the table order of the feed debezium_shop, and no source declares order. Did you mean "
        "orders?",
    ),
    "a feed that no source declares": (
        lambda project: (edit("'debezium_shop'", "'debezium_shops'", STAGING)(project), write_logged_tables()),
        f"{STAGING}:1: reads the table orders of the feed debezium_shops, and no source declares debezium_shops. Did",
    ),
    "a test of a table that is not there": (
        edit("{entity: orders}", "{entity: order}"),
        f"{DECLARED}:17: the test has_agreeing_verdicts names 'order' as entity, which is not there. Did you mean",
    ),
    "a test of a column that is not there": (
        edit("has_unique_key: {arguments: {key: [id]}}", "has_unique_key: {arguments: {key: [idd]}}"),
        f"{DECLARED}:28: the test has_unique_key names 'idd' as key, which is not there.",
    ),
    "a test of dbt's own of a column that is not there": (
        edit("      - has_unique_key:", "      - not_null: {arguments: {column_name: totl}}\n      - has_unique_key:"),
        f"{DECLARED}:28: the test not_null names 'totl' as column_name, which is not there. Did you mean total?",
    ),
    "an epoch of a table that is not there": (
        edit("connector: postgresql", "connector: postgresql\n          epochs: [{table: order, source: a}]", SOURCES),
        f"{SOURCES}:10: debezium_shop: an epoch is of the table 'order', which the feed does not have. Did you mean",
    ),
}
ERRORS |= {
    "a key that is no list": (
        edit("key: [id]", "key: id"),
        f"{DECLARED}:6: key is 'id'; it must be a list: [id].",
    ),
    "a column twice in the key": (
        edit("key: [id]", "key: [id, id]"),
        f"{DECLARED}:6: the key names 'id' twice; take one out.",
    ),
}
MINE = "  - name: my_report\n    config: {meta: {key: 1, feed: x, source_table: y, merge: daily}}\n"
RIGHT = {
    "words of one's own in meta": lambda project: (
        edit("key: [id]", "key: [id]\n        owner: me\n        feeds: [a]\n        merge: daily")(project),
        edit("- {name: total, ", "- {name: total, config: {meta: {units: EUR, sensitivity: high, key: true}}, ")(
            project
        ),
    ),
    "a model of one's own in the file": lambda project: (
        edit("models:\n", f"models:\n{MINE}")(project),
        (project / "models/marts/shop/my_report.sql").write_text("select 1 as one"),
    ),
    "a test of a column of the log": edit(
        "    data_tests:\n", "    data_tests:\n      - not_null: {arguments: {column_name: log_batch}}\n"
    ),
    "a test of a column of one's own": edit(
        "    columns: *columns\n    data_tests:\n",
        "    columns: [{name: id}, {name: mine}]\n    data_tests:\n      - unique: {arguments: {column_name: mine}}\n",
    ),
    "a staging model of another name": lambda project: (
        (project / "models/staging/debezium_shop/stg_debezium_shop__orders_changes.sql").rename(
            project / "models/staging/debezium_shop/stg_debezium_shop__all_orders_changes.sql"
        ),
        edit("orders_changes'", "all_orders_changes'", "models/changes/shop/orders_changes.sql")(project),
        edit("stg_debezium_shop__orders_changes", "stg_debezium_shop__all_orders_changes")(project),
    ),
    "a declaration that ends in .yaml": lambda project: (project / DECLARED).rename(
        (project / DECLARED).with_suffix(".yaml")
    ),
    "a list of tables in another folder": lambda project: (project / "macros/operations/logged_tables.sql").rename(
        project / "macros/logged_tables.sql"
    ),
    "YAML of somebody else": lambda project: (project / "models/other.yml").write_text("models: 3\na: 2024-99-99"),
}
WARNINGS = {
    "a misspelt setting": (
        edit("truncates: true", "truncate: true"),
        f"{DECLARED}:10: warning: nothing reads the setting 'truncate'. Did you mean truncates?",
    ),
    "a misspelt setting of another place": (
        edit("truncates: true", "new_field: add"),
        f"{DECLARED}:10: warning: nothing reads the setting 'new_field'. Did you mean new_fields? It belongs into "
        "config.meta of the test has_declared_fields.",
    ),
    "a misspelt part of a setting": (
        edit("truncates: true", "retention_days: {tombstone: 3}"),
        f"{DECLARED}:10: warning: retention_days has no 'tombstone'; it may have: changes, tombstones. Did you mean",
    ),
    "a misspelt setting of compaction": (
        edit("- name: orders_merged", "- name: orders_merged\n    config: {meta: {merged: {compact_wen: always}}}"),
        f"{DECLARED}:20: warning: merged has no 'compact_wen'; it may have: compact_when. Did you mean compact_when?",
    ),
    "a misspelt setting of a column": (
        edit("{meta: {unit: micros}}", "{meta: {units: micros}}"),
        f"{DECLARED}:14: warning: nothing reads the setting 'units'. Did you mean unit?",
    ),
    "a misspelt setting of a test": (
        edit("config: {severity: warn}", "config: {severity: warn, meta: {new_field: add}}"),
        f"{DECLARED}:35: warning: nothing reads the setting 'new_field'. Did you mean new_fields?",
    ),
    "a setting in a place where nothing reads it": (
        edit("- name: orders_merged", "- name: orders_merged\n    config: {meta: {partial_images: true}}"),
        f"{DECLARED}:20: warning: partial_images says nothing here; write it into config.meta of the model "
        "orders_changes.",
    ),
    "a misspelt setting of a source's table": (
        edit("- name: orders\n", "- name: orders\n        config: {meta: {source_tabel: Orders}}\n", SOURCES),
        f"{SOURCES}:15: warning: nothing reads the setting 'source_tabel'. Did you mean source_table?",
    ),
    "a folder in other letters": (
        lambda project: (project / "landing/debezium_shop/Orders").mkdir(),
        f"{SOURCES}:2: warning: debezium_shop/Orders/ is no declared table of the feed; its files are not read. ",
    ),
    "folders of other tables": (
        lambda project: [(project / f"landing/debezium_shop/{name}").mkdir() for name in ("items", "parts")],
        f"{SOURCES}:2: warning: 2 folders in debezium_shop/ are no declared tables of the feed; their files are not "
        "read: items, parts. All are declared with: highwater add-tables debezium_shop",
    ),
    "a file that is still written": (
        lambda project: (project / "landing/debezium_shop/orders/b.json.6E5fAbCd").write_text('{"op"'),
        f"{SOURCES}:2: warning: debezium_shop: 1 file is left alone by name: debezium_shop/orders/b.json.6E5fAbCd (aws",
    ),
    "a file with another name than the feed's": (
        lambda project: (project / "landing/debezium_shop/orders/b.dat2").write_text("{}\n"),
        f"{SOURCES}:2: warning: debezium_shop: 1 file is not read, for files of debezium-json end in .json, .jsonl, ",
    ),
    "a file that ends within a line": (
        lambda project: (
            edit("format: debezium-json\n", "format: dms-csv\n", SOURCES)(project),
            edit("          connector: postgresql\n", "", SOURCES)(project),
            (project / "landing/debezium_shop/orders/a.json").unlink(),
            (project / "landing/debezium_shop/orders/b.csv").write_text("I,1,2,3,tru"),
        ),
        f"{SOURCES}:2: warning: debezium_shop/orders/b.csv is cut: it ends within a line, and the producer of dms-csv ",
    ),
    "a landing folder that is not there": (
        lambda project: shutil.rmtree(project / "landing"),
        f"{SOURCES}:1: warning: the folder landing, into which feeds are delivered, is not there.",
    ),
    "a record that was cut": (
        lambda project: (project / "landing/debezium_shop/orders/b.json").write_text(
            '{"op": "m", "source": {}}\n{"op": "c", "aft'
        ),
        "landing/debezium_shop/orders/b.json:2: warning: malformed_record: character 13: found '\"' whose text has no",
    ),
    "a file that cannot be read": (
        lambda project: (project / "landing/debezium_shop/orders/b.json").write_bytes(b"\x1f\x8b\x08 no gzip"),
        "landing/debezium_shop/orders/b.json:1: warning: cannot be read: ",
    ),
    "a type that texts do not fit": (
        lambda project: deliver_texts(project, total="469.07890"),
        f"{DECLARED}:13: warning: column total is decimal(12,2), and 1 of 1 value of debezium_shop would be rejected: "
        '"469.07890" for example (debezium_shop/orders/a.json, line 1) does not fit; widen it: '
        "highwater alter orders type total TYPE, a type that holds it.",
    ),
    "a time without a unit": (
        lambda project: (edit("{meta: {unit: micros}}", "{meta: {}}")(project), deliver_texts(project)),
        f"{DECLARED}:14: warning: column at is timestamp_ntz, and 1 of 1 value of debezium_shop would be rejected: 5 "
        "for example (debezium_shop/orders/a.json, line 1) is a number without a unit: give the column config: {meta:",
    ),
    "records of another connector": (
        lambda project: deliver_texts(project, {"table": "orders", "connector": "mysql"}),
        f"{DECLARED}:11: warning: the connector of 1 of 1 record of debezium_shop is mysql, and the feed declares "
        f"postgresql; write `connector: mysql` into {SOURCES}.",
    ),
    "records of a connector that cannot be declared": (
        lambda project: deliver_texts(project, {"table": "orders", "connector": "vitess"}),
        f"{DECLARED}:11: warning: the connector of 1 of 1 record of debezium_shop is vitess, and the feed declares "
        "postgresql; positions of vitess cannot be read; where deliveries tell Kafka's offsets, write `order: kafka` "
        f"into {SOURCES}.",
    ),
    "a number that may be one without a sign": (
        lambda project: (
            edit("connector: postgresql", "connector: mysql", SOURCES)(project),
            edit("decimal(12,2)", "decimal(20,0)")(project),
            deliver_texts(project, {"table": "orders", "connector": "mysql"}, total=-1),
        ),
        f"{DECLARED}:13: warning: column total is decimal(20,0), and 1 of 1 value of debezium_shop would be rejected: "
        "-1 for example (debezium_shop/orders/a.json, line 1) is negative, or above 9223372036854775807 in an unsigned",
    ),
    "records in another form": (
        lambda project: (project / "landing/debezium_shop/orders/a.json").write_text(
            json.dumps(ROW | {"total": "1.50", "__op": "c"})
        ),
        f"{DECLARED}:11: warning: the form of 1 of 1 record of debezium_shop is flattened, and the feed declares",
    ),
    "digits that may be base64": (
        lambda project: deliver_texts(project, total="1234"),
        f"{DECLARED}:13: warning: column total is decimal(12,2), and 1 of 1 value of debezium_shop would be rejected: "
        '"1234" for example (debezium_shop/orders/a.json, line 1) may be digits or base64: declare `decimals` in the',
    ),
    "a type that numbers do not fit": (
        lambda project: (
            edit("{name: id, data_type: bigint}", "{name: id, data_type: tinyint}")(project),
            deliver_plain(project),
        ),
        f"{DECLARED}:12: warning: column id is tinyint, and 1 of 1 value of debezium_shop would be rejected: 300 for "
        "example (debezium_shop/orders/a.json, line 1) does not fit;",
    ),
    "records of several tables in one folder": (
        lambda project: deliver_plain(project, "orders", "others"),
        f"{DECLARED}:11: warning: debezium_shop: its records name several tables (orders, others), and the folder",
    ),
    "a field that is not declared": (
        lambda project: deliver(project, ROW | {"note": "x"}),
        f"{DECLARED}:11: warning: 1 record of debezium_shop has the field 'note', which is not declared; "
        "add it: highwater alter orders add note:string, or its values stay in raw alone.",
    ),
    "a field in other letters": (
        edit("{name: open, data_type: boolean}", "{name: open, data_type: boolean, config: {meta: {field: Open}}}"),
        f"{DECLARED}:15: warning: 1 record of debezium_shop has the field 'open', which is not declared; "
        "the column open is declared for 'Open': give it config: {meta: {field: open}}.",
    ),
    "a field that is gone": (
        lambda project: deliver(project, {"id": 1}, [column for column in COLUMNS if column["field"] != "open"]),
        f"{DECLARED}:15: warning: column open: {TOLD} have no field 'open';",
    ),
    "a type that is too narrow": (
        edit('"decimal(12,2)"', '"decimal(9,2)"'),
        f"{DECLARED}:13: warning: column total is decimal(9,2), and the schema of debezium_shop says decimal(12,2)",
    ),
}


def test_nothing_is_found_where_nothing_is_wrong(project):
    assert check().findings == check("orders").findings == []
    result = run("check", cwd=project)
    assert (result.returncode, result.stdout) == (
        0,
        "Compared orders with 1 record of 1 file, the newest.\nNothing is wrong with the declarations.\n"
        "Not all files of debezium_shop are known to have landed. Next: highwater build\n",
    ), result.stderr


@pytest.mark.parametrize("fault", ERRORS | WARNINGS)
def test_a_planted_fault_is_found_at_its_line(fault, project):
    plant, expected = (ERRORS | WARNINGS)[fault]
    plant(project)
    found = check().findings
    assert [str(each)[: len(expected)] for each in found] == [expected], list(map(str, found))
    assert found[0].is_error == (fault in ERRORS)


@pytest.mark.parametrize(("data_type", "value"), [("string", "1.50"), ("double", 1.5)])
def test_how_decimals_are_written_is_no_other_type(project, data_type, value):
    """`decimals` of the feed says it; the schema of such records has no digits. A value that does not fit is told."""
    as_written = [c if c["field"] != "total" else {"field": "total", "type": data_type} for c in COLUMNS]
    deliver(project, ROW | {"total": value}, as_written)
    assert f"and the schema of debezium_shop says {data_type}" in str(check().findings[0])
    edit("connector: postgresql", f"connector: postgresql\n          decimals: {data_type}", SOURCES)(project)
    assert check().findings == []
    deliver(project, ROW | {"total": "heavy"}, as_written)
    assert "1 of 1 value of debezium_shop would be rejected" in str(check().findings[0])


def change(path, line: int, old: str, new: str):
    """Change a line of a file, of which the advice of a finding speaks."""
    lines = Path(path).read_text().splitlines()
    assert old in lines[line - 1], (lines[line - 1], old)
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    Path(path).write_text("\n".join(lines) + "\n")


def give(project, found, config: str):
    """Give the column in the line of a finding a config, in place of the one that it has."""
    line = found.path.read_text().splitlines()[found.line - 1]
    (inside,) = re.findall(r"\{(name: .*?)(?:, config: \{.*\})?\}$", line.strip().removeprefix("- "))
    change(found.path, found.line, line.strip(), f"- {{{inside}, {config}}}")


def declare(data_type: str):
    """Declare another type for the column in the line of a finding."""

    def follow(project, found, said):
        line = found.path.read_text().splitlines()[found.line - 1]
        (old,) = re.findall(r'data_type: ("[^"]*"|\w+)', line)
        change(found.path, found.line, old, f'"{data_type}"')

    return follow


def place(setting: str):
    """Move what the line of a finding says into config.meta of the log."""

    def follow(project, found, said):
        assert "config.meta of the model orders_changes" in said
        lines = found.path.read_text().splitlines()
        del lines[found.line - 1]
        at = lines.index("        key: [id]")
        found.path.write_text("\n".join([*lines[: at + 1], f"        {setting}", *lines[at + 1 :]]) + "\n")

    return follow


def rename(project, found, said):
    """Take the word that a finding asks about."""
    meant = re.search(r"Did you mean (\w+)\?", said)[1]
    wrong = re.search(r"'(\w+)'|no source declares (\w+)\.", said)
    wrong, text = wrong[1] or wrong[2], Path(found.path).read_text().splitlines()
    line = found.line if wrong in text[found.line - 1] else next(n for n, each in enumerate(text, 1) if wrong in each)
    change(found.path, line, wrong, meant)
    write_logged_tables()


def write_again(project, found, said):
    """Write the model again that a finding misses, as another table has it."""
    text = (PROJECT / "models/merged/user1/customers_merged.sql").read_text()
    (project / "models/merged/shop/orders_merged.sql").write_text(text.replace("customers", "orders"))


def end_the_line(project, found, said):
    """Type what a finding says of a file that is cut."""
    subprocess.run(re.search(r"\((echo >> .*?)\)", said)[1], shell=True, check=True)


# what is typed for the advice of each finding, word by word; None: it names nothing to do, or only a build can
FOLLOWED = dict.fromkeys(ERRORS | WARNINGS, rename) | {
    "an unknown type": declare("decimal(12,2)"),
    "a unit where none may be": lambda project, found, said: give(project, found, "description: none"),
    "a field twice": lambda project, found, said: change(found.path, found.line, "name: at", "name: open"),
    "a key that is no column": lambda project, found, said: change(
        found.path, found.line, "idd", re.search(r"Columns are: (\w+)", said)[1]
    ),
    "no key": lambda project, found, said: change(found.path, 6, "ids: [id]", "key: [id]"),
    "a model that is gone": write_again,
    "a model that nothing describes": None,
    "no YAML": None,
    "a log that nothing describes": None,
    "a list of tables that is old": lambda project, found, said: add_table(
        "debezium_shop.items", "id:int", "name:string"
    ),
    "a key that is no list": lambda project, found, said: change(
        found.path, found.line, "key: id", f"key: {re.search(r'a list: (.*)[.]$', said)[1]}"
    ),
    "a column twice in the key": lambda project, found, said: change(found.path, found.line, "id, id", "id"),
    "a test of a column that is not there": lambda project, found, said: change(found.path, found.line, "idd", "id"),
    "a misspelt setting of another place": None,
    "a setting in a place where nothing reads it": place("partial_images: true"),
    "a folder in other letters": lambda project, found, said: (project / "landing/debezium_shop/Orders").rmdir(),
    "folders of other tables": None,
    "a landing folder that is not there": lambda project, found, said: deliver(project),
    "a record that was cut": None,
    "a file that cannot be read": lambda project, found, said: (
        project / "landing/debezium_shop/orders/b.json"
    ).unlink(),
    "a type that texts do not fit": declare("decimal(14,5)"),
    "a time without a unit": lambda project, found, said: give(
        project, found, re.search(r"give the column (config: .*?\}\})", said)[1]
    ),
    "records of another connector": lambda project, found, said: change(
        *re.search(r"into (\S+?)[.]$", said).groups(), 9, "connector: postgresql", re.search("`(.*)`", said)[1]
    ),
    "records of a connector that cannot be declared": lambda project, found, said: change(
        SOURCES, 9, "connector: postgresql", re.search("`(.*)`", said)[1]
    ),
    "a number that may be one without a sign": lambda project, found, said: give(
        project, found, re.search(r"give the column (config: .*?\}\})", said)[1]
    ),
    "records in another form": lambda project, found, said: change(
        SOURCES, 9, "connector:", f"{re.search('`(.*)`', said)[1]}\n          connector:"
    ),
    "digits that may be base64": lambda project, found, said: change(
        SOURCES, 9, "connector:", "decimals: string\n          connector:"
    ),
    "a type that numbers do not fit": declare("smallint"),
    "records of several tables in one folder": lambda project, found, said: (
        change(SOURCES, 9, "connector:", f"{re.search('`(.*)`', said)[1]}\n          connector:"),
        add_table("debezium_shop.others", "id:int", "total:decimal(12,2),at:timestamp_ntz[micros],open:boolean"),
    ),
    "a field that is not declared": lambda project, found, said: change(
        found.path, found.line + 1, "- {", "- {name: note, data_type: string}\n      - {"
    ),
    "a field in other letters": lambda project, found, said: give(
        project, found, re.search(r"give it (config: .*\}\})", said)[1]
    ),
    "a field that is gone": None,
    "a type that is too narrow": declare("decimal(12,2)"),
    "a file that is still written": lambda project, found, said: (
        project / "landing/debezium_shop/orders/b.json.6E5fAbCd"
    ).unlink(),
    "a file with another name than the feed's": lambda project, found, said: change(
        SOURCES, 9, "connector:", f"{re.search('`(.*?)`', said)[1]}\n          connector:"
    ),
    "a file that ends within a line": end_the_line,
}


@pytest.mark.parametrize("fault", [fault for fault, follow in FOLLOWED.items() if follow])
def test_the_advice_of_a_finding_ends_it(fault, project):
    """Done word by word; what it is about is then right, and nothing else is said of it."""
    plant, _ = (ERRORS | WARNINGS)[fault]
    plant(project)
    (found,) = check().findings
    FOLLOWED[fault](project, found, found.problem)
    assert [str(each) for each in check().findings] == []


@pytest.mark.parametrize("right", RIGHT)
def test_what_is_right_is_no_finding(right, project):
    RIGHT[right](project)
    assert [str(found) for found in check().findings] == []


def test_a_staging_model_of_any_name_that_reads_an_undeclared_feed_is_told(project):
    RIGHT["a staging model of another name"](project)
    model = "models/staging/debezium_shop/stg_debezium_shop__all_orders_changes.sql"
    edit("source('debezium_shop'", "source('debezium_shops'", model)(project)
    (found, *_) = check().findings
    assert str(found).startswith(
        f"{model}:1: reads the table orders of the feed debezium_shops, and no source declares"
    )


def test_a_source_that_misspells_its_feed_is_told(project):
    edit("        feed:", "        feeds:", SOURCES)(project)
    write_logged_tables()
    found = [*map(str, check().findings)]
    assert found[0].endswith("orders of the feed debezium_shop, and no source declares debezium_shop."), found
    assert found[1] == f"{SOURCES}:7: nothing reads the setting 'feeds'. Did you mean feed?"
    assert check().compared == []


def test_what_was_compared_is_said(project, monkeypatch):
    add_table("debezium_shop.items", "id:bigint", "name:string")
    assert check().compared_with() == [
        "Compared orders with 1 record of 1 file, the newest.",
        "Of items only the declaration was read: no file of it has come into landing/debezium_shop/ yet.",
    ]
    add_table("debezium_shop.others", "id:bigint", "name:string")
    said = "Of items, others only the declarations were read: no file of them has come into landing/debezium_shop/ yet."
    assert check().compared_with()[1:] == [said]
    result = run("check", "items", cwd=project)
    assert result.stdout.splitlines()[0].startswith("Of items only the declaration was read: no file of it has come")
    assert result.stdout.splitlines()[1] == "Nothing is wrong with the declarations in themselves."
    add_table("dms_shop.parts", "id:bigint", "name:string", "dms-csv")
    (project / "landing/dms_shop/parts").mkdir(parents=True)
    (project / "landing/dms_shop/parts/1.csv").write_text("I,1,a\n")
    said = "Of parts only the declaration was read: the files of dms_shop do not name their columns."
    assert check("parts").compared_with() == [said]


def test_of_many_tables_in_one_stream_no_more_is_read_than_takes_a_second(tmp_path, monkeypatch):
    """Its files are read once for all tables, and what was not found in them is said."""
    copy_empty_project(PROJECT, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIGHWATER_LANDING", "landing")
    (tmp_path / "landing/debezium_all").mkdir(parents=True)
    for number in range(4):
        settings = {"connector": "postgresql", "layout": "records"} if not number else None
        add_table(f"debezium_all.t{number}", "id:int", "note:string", "debezium-json" if not number else None, settings)
    for number in range(3):
        rows = [{"op": "c", "after": {"id": n, "note": "x"}, "source": {"table": f"t{number}"}} for n in range(30)]
        (tmp_path / f"landing/debezium_all/{number}.json").write_text("\n".join(map(json.dumps, rows)))
    opened = []
    read = readers.read
    monkeypatch.setattr(found_columns.readers, "read", lambda *args: opened.append(args) or read(*args))
    assert check().compared_with() == [
        "Compared t0, t1, t2 with 90 records of 3 files, the newest.",
        "Of t3 only the declaration was read: no record of it is in the newest 3 files of debezium_all.",
    ]
    assert len(opened) == 3
    monkeypatch.setattr(check_of_declarations, "LOOKED_AT_MOST", 40)
    assert sum(each.records for each in check().compared) == 40
    # some of them
    assert {each.entity for each in check("t2", "t0").compared} == {"t0", "t2"}


def test_errors_fail_and_warnings_do_not(project):
    WARNINGS["a type that is too narrow"][0](project)
    result = run("check", "orders", cwd=project)
    assert result.returncode == 0 and result.stdout.endswith(
        "\n1 warning.\nNot all files of debezium_shop are known to have landed. Next: highwater build\n"
    ), result.stderr
    ERRORS["a key that is no column"][0](project)
    result = run("check", "orders", cwd=project)
    assert result.returncode == 1 and result.stdout.count(f"{DECLARED}:") == 2, result.stdout
    assert result.stderr == "highwater: 1 of the 2 findings must be repaired before a build.\n"
    with pytest.raises(UsageError, match="there is no table 'other'; tables are: orders"):
        check("orders", "other")


def test_the_examples_have_nothing_wrong_and_no_spark_is_started(monkeypatch):
    monkeypatch.chdir(PROJECT)
    monkeypatch.setenv("HIGHWATER_LANDING", "examples/landing")
    imported = set(sys.modules)
    assert [str(each) for each in check().findings if each.is_error] == []
    assert not {name for name in set(sys.modules) - imported if name.startswith("pyspark.sql")}


@pytest.mark.parametrize(
    "declared, told, is_held",
    [
        ("string", "decimal(9,2)", True), ("bigint", "int", True), ("int", "bigint", False),
        ("date", "timestamp", False),
        ("decimal(10,0)", "int", True), ("decimal(9,0)", "int", False), ("decimal(12,2)", "decimal(12,3)", False),
        ("decimal(14,3)", "decimal(12,2)", True), ("double", "float", True), ("float", "double", False),
        ("timestamp", "timestamp_ntz", True), ("timestamp_ntz", "date", True), ("boolean", "int", False),
    ],
)  # fmt: skip
def test_what_a_type_holds(declared, told, is_held):
    assert holds(declared, told) == is_held


@pytest.mark.parametrize(
    "value, declared, is_held",
    [
        (127, "tinyint", True), (128, "tinyint", False), (-129, "tinyint", False), (2**63, "bigint", False),
        (Decimal("1.5"), "int", False), (Decimal("1.0"), "int", True), (Decimal("999.99"), "decimal(5,2)", True),
        (Decimal("9.999"), "decimal(5,2)", False), (1000, "decimal(5,2)", False),
        (Decimal("1E+999999"), "int", False), (10**40, "decimal(38,0)", False), (Decimal("0.00"), "int", True),
        (Decimal("1." + "0" * 50), "int", True), (0, "decimal(2,2)", True),
    ],
)  # fmt: skip
def test_what_fits_a_type(value, declared, is_held):
    assert fits(value, declared) == is_held


def test_add_table_says_where_the_positions_of_exports_stand(project):
    said = run("add-table", "exports_shop.orders", "--format", "csv", "--setting", "role=export", cwd=project).stdout
    assert said.endswith(
        "Now deliver files into exports/exports_shop/orders/, name each in _exports.yml beside it with where the "
        "source stood (`orders-1.csv: {position: unknown}` where nobody knows) and run: highwater build\n"
    )


def test_a_column_that_dms_adds_is_listed_or_named(project):
    settings = {"timestamp_column": "ts", "sequence_column": "AR_H_CHANGE_SEQ"}
    add_table("dms_erp.items", "sku:bigint", "title:string", "dms-csv", settings)
    sources = project / "models/staging/dms_erp/_dms_erp__sources.yml"
    assert "columns: [ts, sku, title]" in sources.read_text()

    def found():
        return [finding.problem for finding in check().findings if finding.is_error and "lacks" in finding.problem]

    (problem,) = found()
    assert "`columns` lacks 'AR_H_CHANGE_SEQ', the sequence_column of the feed" in problem
    sources.write_text(sources.read_text().replace("[ts, sku, title]", "[sku, title, AR_H_CHANGE_SEQ]"))
    (problem,) = found()
    assert "lacks 'ts', the timestamp_column" in problem and "behind the operation" in problem
    sources.write_text(sources.read_text().replace("[sku,", "[ts, sku,"))
    assert found() == []


def test_what_is_left_of_a_download_is_told_as_such(project):
    folder = project / "landing/debezium_shop/orders"
    (folder / "a.json.6E5fAbCd").write_text("{")
    (folder / "b.json.6E5fAbCd").write_text("{")
    told = [finding.problem for finding in check().findings if "6E5fAbCd" in finding.problem]
    assert len(told) == 2, told
    assert "left of a download whose whole file is there by now: debezium_shop/orders/a.json" in told[0]
    assert "left alone by name: debezium_shop/orders/b.json" in told[1]
