"""How long the compiled staging SQL gets: a column costs a few mentions of its name, in every format."""

import pytest

FORMATS = {
    "arcion-csv": None,
    "arcion-json": None,
    "changelog": None,
    "datastream-avro": {"order": "mysql_sort_keys"},
    "datastream-json": None,
    "debezium-json": {"connector": "postgresql"},
    "dms-csv": None,
    "dms-parquet": None,
    "tungsten-csv": {"dialect": "mysql"},
}
TYPES = {"string": 120, "decimal(12,2)": 400, "date": 400, "timestamp": 400, "bigint": 400}
EACH = ",".join(f"ONE_{place}:{kind}" for place, kind in enumerate(TYPES))
COLUMNS = 10


@pytest.fixture(scope="module")
def lengths(workshop):
    """Characters of the compiled staging model, by format and type of ten further columns."""
    models = {}
    for place, (form, settings) in enumerate(FORMATS.items()):
        feed = f"vendor_long{place}"
        for kind in [None, *TYPES]:
            entity = f"long{place}_{'none' if kind is None else kind.partition('(')[0]}"
            columns = [EACH, *(f"COL_{number:02}_ABC:{kind}" for number in range(COLUMNS) if kind)]
            workshop.add_table(
                f"{feed}.{entity}", "ID:string", ",".join(columns), form, settings if kind is None else None
            )
            models[f"stg_{feed}__{entity}_changes"] = (form, kind)
    result = workshop.dbt("compile", "--indirect-selection", "empty", "--select", *models)
    return {models[r.node.name]: len(r.node.compiled_code) for r in result.result if r.node.name in models}


def cost(lengths, form, kind) -> float:
    return (lengths[form, kind] - lengths[form, None]) / COLUMNS


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("form", FORMATS)
def test_a_column_is_short(lengths, form, kind):
    assert cost(lengths, form, kind) <= TYPES[kind], (form, kind)


def test_a_longer_column_is_noticed(lengths):
    """Negative control: one more mention of each name with its indent, in the format that mentions it most."""
    longest = max(cost(lengths, form, "string") for form in FORMATS)
    assert longest + len("            image['COL_01_ABC'] as `col_01_abc`,") > TYPES["string"]
