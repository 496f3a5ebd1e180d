"""What Debezium wrote about a database, in several of its settings, ends in the rows that the database had.

`python tests/python/debezium_shop.py` records the fixtures anew.
"""

import gzip
import json
from dataclasses import replace

import pytest
from debezium_shop import FIXTURES, TABLES, UNITS

SETTINGS = {"connector": "postgresql", "layout": "records", "schema": "public"}
FLATTENED = {"form": "flattened"}
# by fixture: how its feed is declared, what numbers of time count, the tables to build, columns of another type in it
FEEDS = {
    "with_schema": ({}, {}, ["every_type", "every_type_full", "toasted", "orders", "loose_keys", "moved_keys"], []),
    "without_schema": ({"decimals": "precise", "binary": "base64"}, UNITS, ["every_type", "toasted", "loose_keys"], []),
    "as_texts": (
        {"decimals": "string", "binary": "base64url", "times": "isostring"},
        {},
        ["every_type", "loose_keys"],
        ["c_time", "c_time_3"],
    ),
    "as_numbers": (
        {"decimals": "precise", "binary": "hex", "times": "microseconds"},
        {},
        ["every_type"],
        ["c_time_3"],
    ),
    "flattened": (
        FLATTENED | {"decimals": "precise", "binary": "base64"},
        UNITS,
        ["every_type", "toasted", "moved_keys"],
        [],
    ),
    "flattened_with_schema": (FLATTENED, {}, ["every_type"], []),
    # incremental snapshots without a signal table: their rows have the position of the change that comes next
    "read_only": ({"decimals": "precise"}, {}, ["orders"], []),
}
CASES = [(fixture, table) for fixture, (_, _, tables, _) in FEEDS.items() for table in tables]


def without(table, names):
    """A table without some of its columns."""
    return replace(table, columns={name: kind for name, kind in table.columns.items() if name not in names})


@pytest.fixture(scope="module")
def entities(workshop):
    """The models of all tables, built; their names by fixture and table."""
    entities = {}
    for fixture, (settings, units, names, other) in FEEDS.items():
        for table in (without(table, other) for table in TABLES if table.entity in names):
            written = workshop.add_table(
                f"debezium_{fixture}.{table.entity}", *table.declared(units), "debezium-json", SETTINGS | settings
            )
            entities[fixture, table.entity] = next(path.stem for path in written if path.parts[1] == "marts")
        workshop.deliver(
            f"debezium_{fixture}", "1.json", gzip.decompress((FIXTURES / f"{fixture}.jsonl.gz").read_bytes())
        )
    workshop.land(*(f"debezium_{fixture}" for fixture in FEEDS))
    workshop.build(*(f"+{entity}" for entity in entities.values()), command="run")
    return entities


def shown(columns: dict[str, str]) -> list[str]:
    """Texts of columns: Python knows no time of the year 1 in every zone."""
    return [f"{'hex' if kind == 'binary' else 'string'}(`{name}`) as `{name}`" for name, kind in columns.items()]


def expected(workshop, fixture, table):
    """The rows that the database had, by the types of the lake."""
    columns = {**table.key, **table.columns}
    own = FIXTURES / f"{fixture}_rows.json"
    rows = json.loads((own if own.exists() else FIXTURES / "rows.json").read_text())[table.entity]
    names = ", ".join(f"`{name}` string" for name in columns)
    texts = workshop.spark.createDataFrame([[row[name] for name in columns] for row in rows], names)
    typed = (
        f"unhex(`{name}`) as `{name}`" if kind == "binary" else f"cast(`{name}` as {kind}) as `{name}`"
        for name, kind in columns.items()
    )
    return texts.selectExpr(*typed).selectExpr(*shown(columns))


@pytest.mark.parametrize(("fixture", "name"), CASES, ids=lambda part: part)
def test_the_rows_are_those_of_the_database(workshop, entities, fixture, name):
    entity = entities[fixture, name]
    table = without(next(table for table in TABLES if table.entity == name), FEEDS[fixture][3])
    rejected = f"select rejection_reason, rejection_detail from {entity}_changes where rejection_reason is not null"
    assert workshop.rows(rejected) == []
    wanted = expected(workshop, fixture, table)
    found = workshop.spark.table(entity).selectExpr(*shown({**table.key, **table.columns}))
    missing, extra = wanted.exceptAll(found).collect(), found.exceptAll(wanted).collect()
    assert (missing, extra) == ([], []), differences(missing, extra)


def differences(missing, extra) -> list:
    """Columns that differ in rows of the same first column."""
    found = {row[0]: row for row in extra}
    return [
        (row[0], {name: (row[name], found[row[0]][name]) for name in row.asDict() if row[name] != found[row[0]][name]})
        for row in missing
        if row[0] in found
    ]
