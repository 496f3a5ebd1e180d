"""The checks of scripts/checks: the project passes, and a planted fault is found. No Spark."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import PROJECT

CHECKS = PROJECT / "scripts" / "checks"
sys.path.insert(0, str(CHECKS))

import check_docs  # noqa: E402
import check_names  # noqa: E402
import lint_sql  # noqa: E402

COPIED = ["macros", "models", "seeds", "snapshots", "tests/generic", "scripts/checks", "src/highwater"]


def copy_to(folder: Path) -> Path:
    for name in COPIED:
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".sqlfluff", "dbt_project.yml", "pyproject.toml"):
        shutil.copy(PROJECT / name, folder)
    return folder


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the project to plant faults in, as the current folder."""
    monkeypatch.chdir(copy_to(tmp_path))
    monkeypatch.setenv("HIGHWATER_LINT_BUILD", "later")
    return tmp_path


def not_found(faults: dict, findings, folder: Path) -> list:
    """Plant faults, and return those that the findings do not tell.

    As many are planted in one copy as can stand beside each other; one that another one hides is planted again.
    """
    left, missing, rounds, is_alone = list(faults), [], 0, False
    while left:
        rounds += 1
        tree, planted = copy_to(folder / str(rounds)), []
        for fault in left[:1] if is_alone else left:
            with contextlib.suppress(OSError, AssertionError):
                faults[fault][0](tree)
                planted.append(fault)
        told = findings(tree)
        found = {fault for fault in planted if any(faults[fault][1] in line for line in told)}
        if is_alone and not found:
            missing.append(left.pop(0))
        left, is_alone = [fault for fault in left if fault not in found], not found
    return missing


@pytest.fixture(scope="session")
def graph(tmp_path_factory):
    """The graph of the project, as dbt writes it."""
    folder = tmp_path_factory.mktemp("graph")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PROJECT)
        lint_sql.parse(folder)
    return folder / "manifest.json"


def replace(path: Path, old: str, new: str):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("check", ["check_names", "check_docs"])
def test_project_passes(check):
    ended = subprocess.run([sys.executable, CHECKS / f"{check}.py"], cwd=PROJECT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout


def test_exit_code_and_line(tree):
    os.rename(tree / "macros/merge/total_order.sql", tree / "macros/merge/order.sql")
    ended = subprocess.run([sys.executable, CHECKS / "check_names.py"], cwd=tree, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "macros/merge/order.sql: holds no macro named order; name the file like its macro.\n" in ended.stdout


def rename(old, new):
    return lambda tree: ((tree / new).parent.mkdir(exist_ok=True, parents=True), os.rename(tree / old, tree / new))


def write(path, text):
    return lambda tree: (tree / path).write_text(text)


def edit(path, old, new):
    return lambda tree: replace(tree / path, old, new)


STAGING = "models/staging/datastream_user1/stg_datastream_user1__table1_changes"
EXPORT = "models/staging/exports_user1/stg_exports_user1__table1"
LOG = "models/changes/user1/table1_changes"
TABLE = "models/tables/user1/table1.yml"
MACRO = "{%- macro X() -%}\n1\n{%- endmacro -%}\n"

NAME_FAULTS = {
    "second public macro": (
        write("macros/merge/one.sql", MACRO.replace("X", "one") + MACRO.replace("X", "two")),
        "macros/merge/one.sql: holds a second public macro, two",
    ),
    "public macro in a private file": (
        write("macros/merge/_one.sql", MACRO.replace("X", "_one") + MACRO.replace("X", "two")),
        "macros/merge/_one.sql: is a private file and holds the public macro two",
    ),
    "macro in upper case": (
        write("macros/merge/One.sql", MACRO.replace("X", "One")),
        "macros/merge/One.sql: One is not lower-case",
    ),
    "call by a bare name": (
        edit("macros/merge/current_rows.sql", "highwater.entity_key(", "entity_key("),
        "macros/merge/current_rows.sql: calls entity_key by its bare name; write highwater.entity_key",
    ),
    "call of nothing": (
        edit("models/marts/user1/table1.sql", "highwater.current_rows(", "highwater.current_row("),
        "models/marts/user1/table1.sql: calls highwater.current_row, which is not there",
    ),
    "private macro of another file, called": (
        edit("models/marts/user1/table1.sql", "highwater.current_rows(", "highwater._base_and_pending("),
        "models/marts/user1/table1.sql: uses _base_and_pending, which is private to current_rows.sql",
    ),
    "private macro of another file, handed on": (
        edit(
            "macros/operations/late_changes_news.sql", "highwater._late_changes_gathered", "highwater._ledger_gathered"
        ),
        "macros/operations/late_changes_news.sql: uses _ledger_gathered, which is private to ledger_news.sql",
    ),
    "override outside macros/dbt": (
        write("macros/merge/generate_schema_name.sql", MACRO.replace("X", "generate_schema_name")),
        "macros/merge/generate_schema_name.sql: generate_schema_name takes the place of a macro of dbt",
    ),
    "override of a dispatched macro": (
        write("macros/merge/spark__get_merge_sql.sql", MACRO.replace("X", "spark__get_merge_sql")),
        "macros/merge/spark__get_merge_sql.sql: spark__get_merge_sql takes the place of a macro of dbt",
    ),
    "macro of ours in macros/dbt": (
        write("macros/dbt/one.sql", MACRO.replace("X", "one")),
        "macros/dbt/one.sql: one is no macro of dbt",
    ),
    "test in another file": (
        rename("tests/generic/is_empty.sql", "tests/generic/has_no_rows.sql"),
        "tests/generic/has_no_rows.sql: holds the test is_empty",
    ),
    "staging model of another feed": (
        rename(f"{STAGING}.sql", "models/staging/other_user1/stg_datastream_user1__table1_changes.sql"),
        "models/staging/other_user1/stg_datastream_user1__table1_changes.sql: is not named stg_other_user1__",
    ),
    "staging model without _changes": (
        rename(f"{STAGING}.sql", f"{STAGING.removesuffix('_changes')}.sql"),
        "stg_datastream_user1__table1.sql: belongs to a feed of changes",
    ),
    "export with _changes": (
        rename(f"{EXPORT}.sql", f"{EXPORT}_changes.sql"),
        "stg_exports_user1__table1_changes.sql: holds no changes but an export",
    ),
    "double underscore in a log": (
        rename(f"{LOG}.sql", "models/changes/user1/user1__table1_changes.sql"),
        "models/changes/user1/user1__table1_changes.sql: is not lower-case words",
    ),
    "log in another layer": (
        rename(f"{LOG}.sql", "models/merged/user1/table1_changes.sql"),
        "models/merged/user1/table1_changes.sql: is not named <entity>_merged",
    ),
    "model in no layer": (
        rename("models/marts/user1/table1.sql", "models/other/table1.sql"),
        "models/other/table1.sql: is in no layer",
    ),
    "model without YAML": (
        rename(TABLE, "models/tables/user1/tables.yml"),
        f"models/marts/user1/table1.sql: is not described in {TABLE}",
    ),
    "staging model that its table does not describe": (
        edit(TABLE, "- name: stg_exports_user1__table1", "- name: stg_exports_user1__table2"),
        f"{EXPORT}.sql: is not described in {TABLE}",
    ),
    "operation without YAML": (
        rename("models/operations/operations.yml", "models/operations/lists.yml"),
        "models/operations/ledger.sql: has no YAML beside it",
    ),
    "mart of no table without YAML": (
        rename("models/marts/sales/shipments_due.yml", "models/marts/sales/others.yml"),
        "models/marts/sales/shipments_due.sql: has no YAML beside it",
    ),
    "YAML of another model": (
        edit("models/publications/shop/shop_publications.yml", "- name: shop_publications", "- name: shop"),
        "models/publications/shop/shop_publications.yml: does not describe the model shop_publications",
    ),
    "YAML with a double underscore": (
        rename("models/operations/operations.yml", "models/operations/the__operations.yml"),
        "models/operations/the__operations.yml: has a double underscore",
    ),
    "source in another file": (
        rename(
            "models/staging/exports_user1/_exports_user1__sources.yml",
            "models/staging/exports_user1/_exports__sources.yml",
        ),
        "_exports__sources.yml: declares the source exports_user1; its place is models/staging/exports_user1/",
    ),
    "model name twice": (
        rename("models/marts/user1/table1.sql", "models/marts/user1/customers_merged.sql"),
        "customers_merged.sql: is called customers_merged, and so is models/marts/user1/customers_merged.sql",
    ),
    "alias twice": (
        write("models/operations/ledger.sql", "{{ config(alias='customers') }}\nselect 1 as one\n"),
        "models/operations/ledger.sql: is called customers, and so is models/marts/user1/customers.sql",
    ),
    "model like a seed": (
        rename("models/operations/ledger.sql", "models/operations/carriers.sql"),
        "is called carriers, and so is",
    ),
}


def test_names(tmp_path):
    assert not_found(NAME_FAULTS, check_names.findings, tmp_path) == []


def test_what_is_not_told_is_not_found(tmp_path):
    """Negative control of the planting."""
    faults = {**dict(list(NAME_FAULTS.items())[:2]), "none": (lambda tree: None, "models: a fault")}
    assert not_found(faults, check_names.findings, tmp_path) == ["none"]


DOC_FAULTS = {
    "model without description": (
        edit(TABLE, "description: The rows of table1 as they are", "label: TABLE1 as it is"),
        f"{TABLE}: model table1 has no description",
    ),
    "model without entry": (
        edit("models/operations/operations.yml", "- name: ledger", "- name: other"),
        "models/operations/ledger.sql: model ledger has no entry",
    ),
    "column with an empty description": (
        edit(TABLE, "description: Primary key.", "description: ''"),
        f"{TABLE}: column col1 of model table1 has no description",
    ),
    "contract column that nothing describes": (
        edit("models/docs.md", "| `change_hash` |", "| `hash` |"),
        "models/docs.md: no table describes the column change_hash of contract_columns.sql",
    ),
    "stored column that nothing describes": (
        edit("models/docs.md", "| `is_tied` |", "| `tied` |"),
        "models/docs.md: no table describes the column is_tied of stored_columns.sql",
    ),
    "column that is described in two ways": (
        edit("models/docs.md", "| `is_tied` | Another change", "| `is_tied` | No change"),
        "models/docs.md: describes the column is_tied in a table and in its block by other words",
    ),
    "operation without columns": (
        edit("models/publications/shop/shop_publications.yml", "    columns:", "    others:"),
        "shop_publications.yml: model shop_publications lists no columns",
    ),
    "entity column left out of the mart": (
        edit(TABLE, "columns: *columns", "columns: [{name: col1, description: Primary key.}]"),
        f"{TABLE}: model table1 does not list the column col2 (of table1_changes)",
    ),
    "seed column left out": (
        edit("seeds/sales/carriers.yml", "- name: country", "- name: land"),
        "seeds/sales/carriers.yml: seed carriers does not list the column country",
    ),
    "reason that a macro writes and the list has not": (
        edit("models/operations/rejection_reasons.sql", "'null_key'", "'no_key'"),
        "change_contract.sql: writes the rejection reason null_key, which rejection_reasons.sql does not list",
    ),
    "reason that a reader writes and the list has not": (
        edit("src/highwater/formats/avro.py", '"not_utf8: ', '"no_text: '),
        "src/highwater/formats/avro.py: writes the rejection reason no_text, which",
    ),
    "reason that nothing writes": (
        edit("models/operations/rejection_reasons.sql", "'null_key'", "'no_key'"),
        "models/operations/rejection_reasons.sql: lists the rejection reason no_key, which nothing writes",
    ),
    "snapshot without description": (
        edit("snapshots/user1/customers_snapshot.yml", "description: >", "label: >"),
        "snapshots/user1/customers_snapshot.yml: snapshot customers_snapshot has no description",
    ),
    "source table without description": (
        edit("models/staging/exports_user1/_exports_user1__sources.yml", "description: TABLE1", "loader: TABLE1"),
        "_exports_user1__sources.yml: source table table1 has no description",
    ),
    "macro without entry": (
        edit("macros/merge/_merge__macros.yml", "- name: total_order", "- name: whole_order"),
        "macros/merge/total_order.sql: total_order has no entry",
    ),
    "entry without macro": (
        edit("macros/merge/_merge__macros.yml", "- name: total_order", "- name: whole_order"),
        "macros/merge/_merge__macros.yml: describes whole_order, which is not there",
    ),
    "entry in another folder": (
        rename("macros/merge/total_order.sql", "macros/staging/order/total_order.sql"),
        "macros/merge/_merge__macros.yml: describes total_order, which is in macros/staging/order",
    ),
    "private macro without entry": (
        edit("macros/merge/_merge__macros.yml", "  - {name: _literal, config: {docs: {show: false}}}\n", ""),
        "macros/merge/key_bounds.sql: _literal has no entry in a YAML file beside it; add - {name: _literal, config:",
    ),
    "private macro that is described": (
        edit("macros/merge/_merge__macros.yml", "{name: _literal,", "{name: _literal, description: x,"),
        "macros/merge/_merge__macros.yml: describes _literal, which is private; write - {name: _literal, config:",
    ),
    "private macro in the docs site": (
        edit("macros/merge/_merge__macros.yml", "{name: _literal, config: {docs: {show: false}}}", "{name: _literal}"),
        "macros/merge/_merge__macros.yml: describes _literal, which is private; write - {name: _literal, config:",
    ),
    "description that says that nothing is raised": (
        edit("macros/merge/_merge__macros.yml", "description: |\n", "description: |\n      Raises: nothing.\n\n"),
        "that it raises nothing, which is so of every macro that says no more; take it out",
    ),
    "argument that does not exist": (
        edit("macros/merge/_merge__macros.yml", "- name: change\n", "- name: changes\n"),
        "describes the arguments of total_order as: changes; its signature has: change.",
    ),
    "argument left out": (
        edit("macros/merge/total_order.sql", "total_order(change)", "total_order(change, default=[1, 2])"),
        "describes the arguments of total_order as: change; its signature has: change, default.",
    ),
    "argument without type": (
        edit(
            "macros/staging/contract/_contract__macros.yml", "- name: typed\n        type: string\n", "- name: typed\n"
        ),
        "argument typed of change_contract needs a type and a description",
    ),
    "page that names a test that is gone": (
        write("README.md", "`test_gone.py` holds it.\n"),
        "README.md: names test_gone.py, which is not there",
    ),
    "page that names a test in another folder": (
        write("README.md", "`tests/python/formats/test_values.py` holds it, as test_values.py does.\n"),
        "README.md: names tests/python/formats/test_values.py, which is not there",
    ),
    "link to a page that is gone": (
        write("README.md", "[Decision 3](docs/decisions/0003-gone.md)\n"),
        "README.md: links to docs/decisions/0003-gone.md, which is not there",
    ),
    "link to a heading that is gone": (
        write("README.md", "## What `a` is\n[what](#what-a-is), [gone](README.md#what-b-is)\n"),
        "README.md: links to README.md#what-b-is, which is not there",
    ),
    "argument of a test": (
        edit("tests/generic/_generic__tests.yml", "- `key` (list[string])", "- `keys` (list[string])"),
        "describes the arguments of test_has_agreeing_layers as: model, keys; its signature has: model, key.",
    ),
}


def test_docs(tmp_path):
    assert not_found(DOC_FAULTS, check_docs.findings, tmp_path) == []


def test_a_page_names_tests_that_their_modules_have(tree):
    (tree / "tests/python").mkdir()
    write("tests/python/test_some.py", "import this\n\n\ndef test_value():\n    pass\n")(tree)
    write("README.md", "`test_some.py::test_value` holds it, and `test_some.py::test_valu` does not.\n")(tree)
    assert check_docs.findings(tree) == [
        "README.md: names test_valu, which test_some.py does not have; correct its name."
    ]


# what is planted, the file in which it shows, and what is said
SQL_FAULTS = {
    "layout of a model": (
        edit("models/publications/shop/shop_publications.sql", "select * from complete", "SELECT * from complete"),
        "models/publications/shop/shop_publications.sql",
        "models/publications/shop/shop_publications.sql:12:1: CP01",
    ),
    "layout of a generic test": (
        edit("tests/generic/has_unique_key.sql", "having", "HAVING"),
        "tests/generic/has_unique_key.sql",
        "tests/generic/has_unique_key.sql:15:1: CP01",
    ),
    "SQL of a macro": (
        edit(
            "macros/merge/current_rows.sql",
            "where\n    not is_deleted",
            "where where\n    not is_deleted",
        ),
        "models/marts/user1/customers.sql",
        "models/marts/user1/customers.sql:1:1: PRS",
    ),
    "SQL of a macro in a first build": (
        edit("macros/merge/applied_since.sql", "    from {{ log }}", "    from from {{ log }}"),
        "models/merged/user1/table1_merged.sql",
        "(compiled in the first build)",
    ),
    "SQL of a macro in an idle build": (
        edit("macros/merge/judged_changes.sql", "    where false\n", "    where false or\n"),
        "models/changes/user1/table1_changes.sql",
        "(compiled in the idle build)",
    ),
    "Jinja of a macro": (
        edit("macros/merge/current_rows.sql", "entity_key(entity)", "entity_key('nothing')"),
        "models/marts/user1/customers.sql",
        "models/marts/user1/customers.sql: does not render: there is no model nothing_changes",
    ),
}


def test_sql(tmp_path, graph, monkeypatch):
    """Only the file that shows a fault is linted."""
    monkeypatch.setenv("HIGHWATER_LINT_BUILD", "later")
    shows = {file for _, file, _ in SQL_FAULTS.values()}

    def findings(tree):
        for path in [*tree.glob("models/**/*.sql"), *tree.glob("tests/generic/*.sql")]:
            if str(path.relative_to(tree)) not in shows:
                path.unlink()
        (tree / "target").mkdir()
        shutil.copy(graph, tree / "target")
        monkeypatch.chdir(tree)
        return lint_sql.findings(["models", "tests/generic"])

    faults = {fault: (plant, expected) for fault, (plant, _, expected) in SQL_FAULTS.items()}
    assert not_found(faults, findings, tmp_path) == []


def add(path, text):
    return lambda tree: (tree / path).write_text((tree / path).read_text() + text)


def imports_checked(project):
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache", "--no-logo"]
    ended = subprocess.run(command, cwd=project, env=os.environ | {"PYTHONPATH": "src"}, capture_output=True, text=True)
    return ended.returncode, ended.stdout


def test_imports_go_one_way():
    status, said = imports_checked(PROJECT)
    assert status == 0, said


COMMAND = "src/highwater"
IMPORT_FAULTS = {
    "upwards": (
        edit(f"{COMMAND}/catalog/feeds.py", "import copy\n", "import copy\nfrom highwater.spark.spark import quoted\n"),
        "highwater.catalog.feeds -> highwater.spark.spark",
    ),
    "upwards in a function": (
        add(f"{COMMAND}/landing/listing.py", "\n\ndef far():\n    from highwater.upkeep import rebuild\n"),
        "highwater.landing.listing -> highwater.upkeep.rebuild",
    ),
    "of the command line": (
        add(f"{COMMAND}/reconcile/repair.py", "\n\ndef far():\n    import highwater.cli\n"),
        "highwater.reconcile is not allowed to import highwater.cli",
    ),
    "upwards by a relative name": (
        add(f"{COMMAND}/formats/compression.py", "\n\ndef far():\n    from ..catalog import feeds\n"),
        "highwater.formats.compression -> highwater.catalog.feeds",
    ),
    "in a circle": (
        edit(f"{COMMAND}/formats/records.py", "import io\n", "import io\nfrom highwater.formats import avro\n"),
        "- .records -> .avro",
    ),
    "in a circle by a function": (
        add(f"{COMMAND}/runtime/errors.py", "\n\ndef far():\n    from highwater.runtime.endings import _ending\n"),
        "- .errors -> .endings",
    ),
    "module in no folder": (write(f"{COMMAND}/odd.py", ""), "not listed as layers:\n\n- highwater.odd"),
    "folder that is not listed": (
        lambda tree: ((tree / COMMAND / "strange").mkdir(), write(f"{COMMAND}/strange/__init__.py", "")(tree)),
        "- highwater.strange",
    ),
}


def test_wrong_imports_are_found(tree):
    for plant, _ in IMPORT_FAULTS.values():
        plant(tree)
    status, said = imports_checked(tree)
    assert (status, [fault for fault, (_, expected) in IMPORT_FAULTS.items() if expected not in said]) == (1, []), said


@pytest.mark.soak
def test_added_table_passes(tree):
    from highwater.catalog.columns import FoundColumns, named_columns
    from highwater.scaffold.add_table import add_table

    def found(key, **parts):
        comments = {name: f"The {name}." for name in parts}
        return FoundColumns(named_columns([(*part, None) for part in parts.items()], comments=comments), key)

    lines = found(
        ["order_id", "line"], order_id="bigint", line="int", total="decimal(12,2)", feed="string", valid_to="date"
    )
    written = add_table("sap_erp.order_lines", format="datastream-json", history=True, found=lines)
    written += add_table("datastream_user1.table1", history=True)
    written += add_table("csv_erp.rates", format="csv", found=found(["code"], code="string", rate="double"))
    assert check_names.findings(tree) == []
    assert check_docs.findings(tree) == []
    for name in ("conf", "profiles"):
        (tree / name).symlink_to(PROJECT / name)
    lint_sql.parse()
    folders = {str(path.parent) for path in written if path.suffix == ".sql" and path.parts[0] == "models"}
    assert lint_sql.findings(sorted(folders)) == []
