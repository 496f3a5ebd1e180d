"""What a feed may declare, without Spark."""

import pickle
import re
from pathlib import Path

import pytest
from highwater.catalog.feeds import declared_feeds, jinja_text, plain_text
from highwater.formats.formats import CHOICES, FORMATS, TUNGSTEN_DIALECTS, Dialect, ReadOptions
from highwater.runtime.errors import UsageError
from highwater.runtime.package import require_schemas
from repository import PROJECT

DECLARATION = """
sources:
  - name: vendor_shop
    config:
      meta:
        feed:
          {settings}
    tables:
      - name: orders
"""


# what these formats need beside words
BESIDE = {"json": ["change: {order: [{integer: $.n}]}"], "delta-changes": ["relation: shop.orders"]}
BESIDE["table"] = BESIDE["json"] + BESIDE["delta-changes"]


@pytest.fixture
def declare(tmp_path, monkeypatch):
    """Return the feed that these settings declare."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models/staging").mkdir(parents=True)
    # what the package declares of producers
    for name in ("dbt_project.yml", "macros"):
        (tmp_path / name).symlink_to(PROJECT / name)

    def declared(*settings: str):
        text = DECLARATION.format(settings="\n          ".join(settings))
        (tmp_path / "models/staging/sources.yml").write_text(text)
        return declared_feeds()["vendor_shop"]

    return declared


@pytest.mark.parametrize(
    "settings, options",
    [
        (["format: datastream-json"], ReadOptions("datastream-json")),
        (["format: csv", "role: export"], ReadOptions("csv", Dialect(null="", header=True))),
        (["format: tungsten-csv", "dialect: hive"], ReadOptions("tungsten-csv", TUNGSTEN_DIALECTS["hive"])),
        (
            ["format: tungsten-csv", "dialect: redshift", "header: true", "layout: files", "schema: shop"],
            ReadOptions("tungsten-csv", Dialect(null="null", header=True), schema="shop"),
        ),
        (["format: arcion-csv"], ReadOptions("arcion-csv", Dialect(",", True, "doubled", "NULL", False))),
        (
            ["format: dms-csv", r'delimiter: "\t"', "escape: backslash", r"null: '\N'", "header: true"],
            ReadOptions("dms-csv", Dialect("\t", True, "backslash", r"\N", True)),
        ),
        (["format: dms-csv", 'null: ""'], ReadOptions("dms-csv", Dialect(null=""))),
        (["format: arcion-json", "layout: records"], ReadOptions("arcion-json", table_in_records=True)),
    ],
)
def test_options_of_the_reader(declare, settings, options):
    feed = declare(*settings)
    assert feed.options == options == pickle.loads(pickle.dumps(feed.options))
    assert (feed.format, feed.tables) == (options.format, ("orders",))


@pytest.mark.parametrize("format", [name for name in FORMATS if "baseline" in FORMATS[name].settings])
def test_settings_that_only_the_models_read(declare, format):
    needed = [f"{name}: {(CHOICES | FORMATS[format].choices)[name][0]}" for name in FORMATS[format].needed]
    needed += BESIDE.get(format, [])
    declare(f"format: {format}", *needed, "baseline: b", "epochs: [{source: a}]")
    assert declare(f"format: {format}", *needed, "role: baseline").role == "baseline"


@pytest.mark.parametrize("format, name", [(format, name) for format in FORMATS for name in FORMATS[format].needed])
def test_a_setting_that_is_needed_is_asked_for_with_its_values(declare, format, name):
    with pytest.raises(UsageError, match=f"{format} needs the setting {name}, one of: ") as caught:
        declare(f"format: {format}")
    assert all(value in str(caught.value) for value in (CHOICES | FORMATS[format].choices)[name])


WORDS = [(format, name) for format in FORMATS for name in FORMATS[format].settings if name in CHOICES]


@pytest.mark.parametrize("format, name", sorted(WORDS))
def test_words_of_settings(declare, format, name):
    choices = CHOICES | FORMATS[format].choices
    others = [f"{other}: {choices[other][0]}" for other in FORMATS[format].needed if other != name]
    role = ["role: baseline"] if "changes" not in FORMATS[format].roles else []
    others += BESIDE.get(format, [])
    for word in choices[name]:
        declare(f"format: {format}", *role, *others, f"{name}: {word}")
    with pytest.raises(UsageError, match=f"{name} is 'couchbase'; it must be one of: {choices[name][0]}"):
        declare(f"format: {format}", *role, *others, f"{name}: couchbase")


def test_the_order_of_kafka_stands_in_for_a_connector(declare):
    assert declare("format: debezium-json", "order: kafka").settings["order"] == "kafka"
    # whose positions are sets of transactions
    with pytest.raises(UsageError, match="Of any other one declare `order: kafka` in its place"):
        declare("format: debezium-json", "connector: vitess")


def test_what_raw_calls_a_table(declare, tmp_path):
    feed = declare("format: arcion-json", "layout: records")
    assert feed.source_table("orders") == "orders"
    path = tmp_path / "models/staging/sources.yml"
    for told, expected in {'"archive.orders"': "archive.orders", "\"{{ 'a {{ b }}' }}\"": "a {{ b }}"}.items():
        path.write_text(
            DECLARATION.format(settings="format: arcion-json").rstrip()
            + f"\n        config: {{meta: {{source_table: {told}}}}}\n      - name: others\n"
        )
        feed = declared_feeds()["vendor_shop"]
        assert (feed.source_table("orders"), feed.source_table("others")) == (expected, "others")
    path.write_text(
        path.read_text().replace("name: others", "name: others\n        config: {meta: {source_table: orders}}")
    )
    path.write_text(re.sub("source_table: .*a .*", "source_table: orders}}", path.read_text()))
    with pytest.raises(UsageError, match="two of its tables read the records of 'orders'"):
        declared_feeds()


@pytest.mark.parametrize(
    "text", ["a", "it's", 'a "b"', "a\\b", "a\nb", "{{ x }}", "{% x %}", "größe", "😀", "\\'", "{{ '\\n' }}"]
)
def test_texts_stay_what_they_are_in_jinja(text):
    from jinja2 import Environment

    assert Environment().from_string(f"{{{{ {jinja_text(text)} }}}}").render() == text
    assert plain_text(f"{{{{ {jinja_text(text)} }}}}") == text


@pytest.mark.parametrize(
    "settings, words",
    [
        (["format: tungsten"], "format is 'tungsten'; it must be one of: datastream-json, csv, parquet, tungsten-csv"),
        (["format: [csv]"], "format is ['csv']; it must be one of"),
        (
            ["format: tungsten-csv"],
            "tungsten-csv needs the setting dialect, one of: mysql, oracle, vertica, redshift, hive.",
        ),
        (["format: dms-csv", "dialect: mysql"], "unknown setting 'dialect'; dms-csv knows: baseline, "),
        (
            ["format: csv", "role: baseline", "order: a"],
            "unknown setting 'order'; csv knows: delimiter, endings, epochs,",
        ),
        (["format: csv"], "csv files hold rows, not changes"),
        (["format: parquet"], "parquet files hold rows, not changes"),
        (["format: parquet", "role: export", "null: '-'"], "unknown setting 'null'; parquet knows: endings, epochs, "),
        (["format: dms-csv", "role: export"], "role is 'export'; it must be one of: changes, baseline"),
        (["format: dms-csv", "layout: files"], "unknown setting 'layout'; dms-csv knows: "),
        (["format: tungsten-csv", "dialect: hive", "layout: records"], "must be one of: folders, files."),
        (["format: arcion-json", "schema: a"], "schema is 'a', but folders tell the tables; it needs `layout`"),
        (["format: arcion-json", "layout: records", "schema: 7"], "schema is 7; it must be the name"),
        (["format: dms-csv", "header: 'yes'"], "header is 'yes'; it must be true or false"),
        (["format: dms-csv", "delimiter: ';;'"], "delimiter is ';;'; it must be one ASCII character"),
        (["format: dms-csv", "delimiter: '\"'"], "delimiter is '\"'; it must be one ASCII character"),
        (["format: dms-csv", "escape: quote"], "escape is 'quote'; it must be one of: doubled, backslash"),
        (["format: dms-csv", "null: NULL"], "null is None; it must be a quoted text"),
        (["format: dms-csv", "null: 'a,b'"], "null is 'a,b'; it must be a quoted text"),
    ],
)
def test_wrong_settings_are_named(declare, settings, words):
    with pytest.raises(UsageError) as caught:
        declare(*settings)
    assert "models/staging/sources.yml line 7: feed 'vendor_shop'" in str(caught.value)
    assert words in str(caught.value)


def test_a_source_in_another_schema_is_refused(declare, tmp_path):
    declare("format: dms-csv")
    path = tmp_path / "models/staging/sources.yml"
    path.write_text(path.read_text().replace("  - name: vendor_shop", "  - name: vendor_shop\n    schema: landing"))
    with pytest.raises(UsageError, match=r"sources.yml line \d: feed 'vendor_shop': schema is 'landing'; what lands"):
        declared_feeds()


@pytest.mark.parametrize(
    ("models", "schema", "said"),
    [
        ({}, "lake", None),
        ({"shop": {"reports": {"+schema": "reports"}, "marts": {"+materialized": "view"}}}, "lake", None),
        ({"other": {"+schema": "x"}}, "lake", None),
        ({}, "analytics", "profiles.yml: schema is 'analytics'; what lands"),
        ({"shop": {"marts": {"+schema": "gold"}}}, "lake", r"models: shop: marts: \+schema is 'gold'; what lands"),
        ({"shop": {"schema": "gold"}}, "lake", "models: shop: schema is 'gold'; what lands"),
        ({"shop": {"merged": {"crm": {"+schema": "gold"}}}}, "lake", r"merged: crm: \+schema is 'gold'; what lands"),
        ({"shop": {"merged": {"+meta": {"schema": "gold"}}}}, "lake", None),
        (["shop"], "lake", None),
        ({"shop": "view"}, "lake", None),
    ],
)
def test_highwaters_own_models_stay_in_their_schema(models, schema, said):
    def ask():
        require_schemas({"name": "shop", "models": models}, schema, Path("profiles/profiles.yml"))

    if said is None:
        ask()
    else:
        with pytest.raises(UsageError, match=said):
            ask()
