"""Random histories of a table whose columns come, go, are renamed and widened, beside what the source has."""

import random

import pytest
from highwater.catalog.columns import Column
from highwater.catalog.declarations import in_columns
from highwater.upkeep.alterations import alteration
from highwater.upkeep.evolution import meet
from test_evolution import envelopes
from workshop import change

pytestmark = pytest.mark.soak

STEPS, KEYS = 10, 6
LARGE = 3_000_000_000


class Source:
    """A table at its source, which writes a record of every change in one of two formats."""

    def __init__(self, seed: int, form: str, table: str):
        self.random, self.form, self.table = random.Random(seed), form, table
        self.rows: dict[int, dict] = {}
        self.columns, self.names = ["n", "v"], {"n": "n", "v": "v"}
        self.number, self.largest = 0, 100
        self.undeclared: list[tuple[str, ...]] = []

    def change(self) -> dict:
        """Change a row, and return the record of it."""
        key, self.number = self.random.randint(1, KEYS), self.number + 1
        is_deleted = key in self.rows and self.random.random() < 0.2
        row = {name: self.rows.get(key, {}).get(name) for name in self.columns}
        name = self.random.choice(self.columns)
        row[name] = self.random.randint(1, self.largest) if name == "n" else f"{name}{self.number}"
        operation = "d" if is_deleted else "u" if key in self.rows else "c"
        if is_deleted:
            del self.rows[key]
        else:
            self.rows[key] = row
        values = {"id": key, **{self.names[each]: value for each, value in row.items()}}
        if self.form == "datastream-json":
            word = {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}[operation]
            return change(word, f"{self.number:x}", values)
        (record,) = envelopes(self.table, [(operation, values)], since=self.number)
        if operation == "d":
            record |= {"before": record["after"], "after": None}
        return record

    def evolve(self):
        """Let a column come, go, be renamed or become wider; keep in mind what is to be declared of it."""
        what = self.random.choice(["add", "add", "drop", "rename", "type"])
        others = [name for name in self.columns if name != "n"]
        if what == "add":
            name = f"x{self.number}"
            self.columns.append(name)
            self.names[name] = name
            self.undeclared.append(("add", name))
        elif what == "type" and self.largest < LARGE:
            self.largest = LARGE
            self.undeclared.append(("type", "n", "bigint"))
        elif what == "drop" and len(others) > 1:
            name = self.random.choice(others)
            self.columns.remove(name)
            self.undeclared.append(("drop", name))
        elif what == "rename":
            name = self.random.choice(others)
            self.names[name] = f"{name}_{self.number}"
            self.undeclared.append(("rename", name, self.names[name]))


def declare(source: Source):
    """Declare what has changed at the source, in its order, as somebody who edits the file would."""
    for what, name, *values in source.undeclared:
        if what == "add":
            in_columns(source.table, Column(name, name, "string"))
        else:
            alteration(source.table, what, (name, *values)).edit()
    source.undeclared = []


@pytest.mark.parametrize("seed", [1, 8, 9])  # with every kind of change, and renamed columns that stay
@pytest.mark.parametrize("form", ["debezium-json", "datastream-json"])
def test_rows_are_those_of_the_source(workshop, form, seed):
    feed, table = f"{form[:6]}_evolving{seed}", f"evolving_{form[:6]}{seed}"
    source = Source(seed, form, table)
    settings = {"connector": "mysql"} if form == "debezium-json" else None
    workshop.add_table(f"{feed}.{table}", "id:int", "n:int,v:string", form, settings)
    late = []
    for step in range(STEPS):
        if step and source.random.random() < 0.6:
            source.evolve()
        records = [source.change() for _ in range(source.random.randint(1, 6))]
        if step and source.random.random() < 0.3:
            late.append((step, records))  # a file that comes later than the next ones
        else:
            workshop.deliver(f"{feed}.{table}", f"{step}.json", records)
        if source.random.random() < 0.5 or step == STEPS - 1:
            declare(source)
        for number, kept in late if step == STEPS - 1 else ():
            workshop.deliver(f"{feed}.{table}", f"late{number}.json", kept)
        workshop.land(feed)
        said = list(meet(workshop.spark, [table]))
        assert not [each for each in said if each.is_refused], said
        workshop.build(f"+{table}", "ledger", command="run")
    found = {row.id: row.asDict() for row in workshop.spark.table(table).collect()}
    wanted = {key: {name: row.get(name) for name in source.columns} for key, row in source.rows.items()}
    assert {key: {n: v for n, v in row.items() if n != "id"} for key, row in found.items()} == wanted, seed
    counted = workshop.rows(
        f"select sum(read), sum(applied + superseded + duplicate + rejected) from ledger where table_name = '{table}'"
    )
    assert counted == [(source.number, source.number)]
    audited = workshop.audit(f"{table}_changes", f"{table}_merged")
    assert {each.status for each in audited.values()} == {"pass"}, audited
