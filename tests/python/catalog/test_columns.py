"""Names of columns, without Spark."""

import re
import unicodedata
from types import SimpleNamespace

from highwater.catalog.columns import Column, plain_name
from jinja2 import Environment
from repository import PROJECT

FIELDS = ["feed", "Feed", "source_feed", "is tied", "Größe [cm]", "İd", "-", "", "日本", "a-b", "É"]
FIELDS += [unicodedata.normalize("NFD", "Größe")]


def test_mart_names_are_those_of_the_macro():
    """Also of columns that were named by hand, whatever letters their fields have."""
    text = (PROJECT / "macros/staging/declaration/entity_columns.sql").read_text()
    template = Environment(extensions=["jinja2.ext.do"]).from_string(text.replace("macro _own_name", "macro own_name"))
    macros = template.make_module({"modules": SimpleNamespace(re=re), "return": str})
    names = {f"source_{name}" for field in FIELDS for name in (field, plain_name(field), field.lower())} | {*FIELDS}
    said = {(name, field): Column(name, field, "string").mart_name for name in names for field in FIELDS}
    assert said == {pair: macros.own_name(*pair) for pair in said}
    assert (said["source_feed", "Feed"], said["source_feed", "source_feed"]) == ("feed", "source_feed")
