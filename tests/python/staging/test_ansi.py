"""The SQL gives the same answer with ANSI mode on (servers) and off (dbt-spark in session mode)."""

import pytest

pytestmark = pytest.mark.long

MODELS = [
    "stg_datastream_types__readings_changes",
    "stg_datastream_user1__customers_changes",
    "stg_exports_user1__customers",
    "readings_changes",
    "readings",
]


@pytest.fixture(scope="module")
def answers(workshop):
    workshop.deliver("datastream_types.readings", "ansi.json", b'{"id": 1e400, "n": "9e99"}\n{"id": "x"}\nrubbish\n')
    workshop.land_and_run("datastream_types", "+readings")
    result = workshop.dbt("compile", "--select", *MODELS)
    found = {}
    for mode in ("true", "false"):
        workshop.spark.conf.set("spark.sql.ansi.enabled", mode)
        for node in result.result:
            rows = workshop.spark.sql(node.node.compiled_code).collect()
            found[node.node.name, mode] = sorted(map(repr, rows))
    workshop.spark.conf.set("spark.sql.ansi.enabled", "false")
    return found


@pytest.mark.parametrize("model", MODELS)
def test_both_modes_agree(answers, model):
    assert answers[model, "true"] == answers[model, "false"]


def test_the_modes_do_differ(workshop):
    """Negative control: what a plain cast does."""
    workshop.spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            workshop.rows("select cast('x' as int)")
    finally:
        workshop.spark.conf.set("spark.sql.ansi.enabled", "false")
    assert workshop.rows("select cast('x' as int)") == [(None,)]
