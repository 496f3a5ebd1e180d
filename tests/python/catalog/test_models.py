"""What a model reads is told by its Jinja, however it is written; its list of refs is changed where that is certain."""

from pathlib import Path

import pytest
from highwater.catalog import entities
from highwater.catalog.models import Model, models, value_returned_in, with_ref, without_ref
from highwater.catalog.yaml_files import described_models, file_of_model
from highwater.runtime.errors import UsageError
from repository import PROJECT

LOG = (
    "{{ highwater.change_log('orders', [\n    ref('stg_a__orders_changes'),\n    ref('stg_b__orders_changes'),\n]) }}\n"
)
ONE_LINE = "{{ highwater.change_log('orders', [ref('stg_a__orders_changes'), ref('stg_b__orders_changes')]) }}"


def written(tmp_path, text, path="models/changes/shop/orders_changes.sql"):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return Model(file)


@pytest.mark.parametrize(
    "text",
    [
        "{{ highwater.x(source('feed', 'orders'), ref('other')) }}",
        '{{ highwater.x(source("feed", "orders"), ref("other")) }}',
        "{{ highwater.x(\n    source(\n'feed',\n  'orders' ), ref('package', 'other')\n) }}",
        "{# ref('gone') source('gone', 'gone') #}{{ x(source('feed', 'orders')) }} {%- do y(ref('other')) -%}",
        "{% if true %}{{ x(source('feed', 'orders'), ref('other', v=2), ref(variable)) }}{% endif %} select 'ref(x)'",
    ],
)
def test_refs_and_sources_are_read_however_they_are_written(tmp_path, text):
    model = written(tmp_path, text)
    assert (model.sources, model.refs) == ([("feed", "orders")], ["other"])


def test_a_model_that_is_written_anew_is_read_anew(tmp_path):
    assert written(tmp_path, "{{ ref('one') }}").refs == ["one"]
    assert written(tmp_path, "{{ ref('other') }}").refs == ["other"]


def test_jinja_that_cannot_be_read_is_told_with_its_line(tmp_path):
    with pytest.raises(UsageError, match=r"orders_changes.sql line 2 cannot be read: "):
        _ = written(tmp_path, "select\n{{ ref('a' }}").refs


def test_models_are_found_in_whatever_folder_of_their_layer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, LOG, "models/changes/deep/down/orders_changes.sql")
    for feed in "ab":
        written(tmp_path, f"{{{{ source('{feed}', 'orders') }}}}", f"models/staging/any/stg_{feed}__orders_changes.sql")
    written(
        tmp_path, "{{ highwater.publication('g', [ref('orders_changes')]) }}", "models/publications/g_publications.sql"
    )
    assert [*models("changes")] == ["orders_changes"]
    assert entities.sources_of_logs() == [("orders", [("a", "orders"), ("b", "orders")])]
    assert entities.publish_groups() == {"g": ["orders"]}


def test_a_staging_model_that_is_gone_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, LOG)
    with pytest.raises(UsageError, match=r"reads stg_a__orders_changes, and stg_a__orders_changes\.sql is not"):
        entities.sources_of_logs()


def test_what_else_a_log_reads_is_no_table_of_a_feed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "{{ x(ref('stg_my_seed'), ref('stg_a__orders_all')) }}")
    written(tmp_path, "{{ source('a', 'orders') }}", "models/staging/stg_a__orders_all.sql")
    assert entities.sources_of_logs() == [("orders", [("a", "orders")])]
    assert [model.name for model in entities.staging_of("orders")] == ["stg_a__orders_all"]


def test_models_are_known_by_their_table_and_layer(monkeypatch):
    monkeypatch.chdir(PROJECT)
    found = entities.models_of_tables()
    assert {*models("staging"), *models("changes"), *models("merged"), *models("history")} <= {*found}
    assert {name: found.get(name) for name in ("stg_debezium_erp__payments_changes", "stg_exports_erp__payments")} == {
        "stg_debezium_erp__payments_changes": ("payments", "staging"),
        "stg_exports_erp__payments": ("payments", "export"),
    }
    assert {name: found[f"payments{name}"] for name in ("_changes", "_merged", "")} == {
        "_changes": ("payments", "log"),
        "_merged": ("payments", "base"),
        "": ("payments", "view"),
    }
    assert not {"shipments_due", "shop_publications", "rejected_changes"} & {*found}


def test_a_text_that_is_no_utf8_is_told(tmp_path):
    model = written(tmp_path, "")
    model.path.write_bytes(b"-- caf\xe9")
    with pytest.raises(UsageError, match=r"orders_changes.sql is no UTF-8, as dbt reads it: byte 6"):
        _ = model.refs


@pytest.mark.parametrize("text", ["models: 3", "models: [3, {name: 4}]", "a: 2024-99-99", "[1]", "{", "models:\n"])
def test_yaml_of_somebody_else_describes_nothing(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "models: [{name: orders}]", "models/b.yaml")
    written(tmp_path, text, "models/a.yml")
    assert described_models() == {"orders": Path("models/b.yaml")}
    assert file_of_model("orders") == Path("models/b.yaml") and file_of_model("gone") is None


def test_yaml_that_may_describe_a_model_is_told_when_it_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "models: [{name: orders", "models/a.yml")
    with pytest.raises(UsageError, match=r"models/a.yml is no YAML: "):
        file_of_model("orders")
    Path("models/a.yml").write_bytes(b"# caf\xe9")
    with pytest.raises(UsageError, match=r"models/a.yml is no UTF-8"):
        file_of_model("orders")


def test_an_empty_log_is_left_to_its_author(tmp_path):
    with pytest.raises(UsageError, match="by hand"):
        with_ref(written(tmp_path, ""), "stg_c__orders_changes")


def test_a_ref_goes_in_and_out_as_a_line(tmp_path):
    log = written(tmp_path, LOG)
    assert without_ref(log, "stg_a__orders_changes") == LOG.replace("    ref('stg_a__orders_changes'),\n", "")
    added = with_ref(log, "stg_c__orders_changes")
    assert without_ref(written(tmp_path, added), "stg_c__orders_changes") == LOG


def test_a_list_in_one_line_is_left_to_its_author(tmp_path):
    log = written(tmp_path, ONE_LINE)
    with pytest.raises(UsageError, match=r"take ref\('stg_a__orders_changes'\) out of .* by hand"):
        without_ref(log, "stg_a__orders_changes")
    with pytest.raises(UsageError, match=r"write ref\('stg_c__orders_changes'\) into .* by hand"):
        with_ref(log, "stg_c__orders_changes")


@pytest.mark.parametrize(
    ("macro", "value"),
    [
        ("{%- macro x() -%}{{ return(['a', 'b']) }}{%- endmacro -%}", ["a", "b"]),
        ("{%- macro x() -%}{{ return([{'entity': 'a', 'sources': [['f', 'a']]}]) }}{%- endmacro -%}",
         [{"entity": "a", "sources": [["f", "a"]]}]),
        ("{%- macro x() -%}{{ return(other()) }}{%- endmacro -%}", None),
        ("{%- macro x() -%}a{%- endmacro -%}", None),
    ],
)  # fmt: skip
def test_a_constant_that_a_macro_returns_is_read(tmp_path, macro, value):
    assert value_returned_in(written(tmp_path, macro).path) == value
