"""Random schedules of changes, extractions, builds, compactions, kills and readers: the view is right in every one.

The oracle is the database itself: what it holds when an extraction lands is what the view shows after the next build.
"""

import random

import pytest
from highwater.databases import capturing
from highwater.databases import extract as extraction
from highwater.upkeep.compact import compact
from postgres import killed_extraction, serving
from workshop import reading

pytestmark = pytest.mark.soak
TABLE = "changelog_harbour.berths"
STEPS = 12


@pytest.fixture(scope="module")
def harbour(workshop):
    """A database with a captured table; the merged table is partitioned by one of its columns."""
    with serving("harbour") as server:
        server.sql(
            "create table berths (id bigint primary key, v text, side text not null);"
            "insert into berths select n, 'first', substr('abc', 1 + n % 3, 1) from generate_series(1, 20) as n"
        )
        capturing.enable(workshop.spark, TABLE)
        workshop.configure("berths", "merged", "{partition_by: [side]}")
        workshop.build("+berths", command="run")
        yield server


class Schedule:
    """Steps in a random order, and what each must leave: `states` are all that a reader may ever have seen."""

    def __init__(self, workshop, server, seed):
        self.workshop, self.server, self.picks = workshop, server, random.Random(seed)
        self.landed = self.logged = self.shown = self.now()
        self.states = {self.shown}

    def now(self) -> tuple:
        """The rows of the table in the database."""
        lines = self.server.sql("select id || '|' || v || '|' || side from berths order by id")
        return tuple((int(key), v, side) for key, v, side in (line.split("|") for line in lines))

    def view(self) -> tuple:
        return tuple(sorted(self.workshop.rows("select id, v, side from berths")))

    def change(self):
        for _ in range(self.picks.randint(1, 6)):
            key, other, side = self.picks.randint(1, 30), self.picks.randint(1, 30), self.picks.choice("abc")
            value = f"v{self.picks.randrange(10**6)}"
            write = self.picks.choice(["upsert"] * 4 + ["delete", "move", "twice"] + ["truncate"] * (other == 7))
            self.server.sql(
                {
                    "upsert": f"insert into berths values ({key}, '{value}', '{side}') "
                    f"on conflict (id) do update set v = '{value}', side = '{side}'",
                    "delete": f"delete from berths where id = {key}",
                    "move": f"update berths set id = {other} where id = {key} "
                    f"and not exists (select 1 from berths where id = {other})",
                    "twice": f"begin; update berths set v = 'passing', side = '{side}' where id = {key}; "
                    f"update berths set v = '{value}' where id = {key}; commit",
                    "truncate": "truncate berths",
                }[write]
            )

    def extract(self):
        extraction.extract(self.workshop.spark, TABLE)
        self.landed = self.now()

    def extract_killed_before_the_commit(self):
        self.extract_killed(False)

    def extract_killed_before_the_removal(self):
        self.extract_killed(True)

    def extract_killed(self, is_landed):
        # there is something to extract
        self.change()
        self.server.sql("insert into berths values (99, 'x', 'a') on conflict (id) do update set v = berths.v || 'x'")
        with killed_extraction(is_landed):
            extraction.extract(self.workshop.spark, TABLE)
        if is_landed:
            self.landed = self.now()

    def build_killed_after_the_log(self):
        self.workshop.build("+berths_changes", command="run")
        self.logged = self.landed

    def build_killed_before_the_log(self):
        self.workshop.build("berths_merged", "berths", command="run")
        self.shown = self.logged

    def build(self):
        self.states.add(self.landed)
        self.workshop.build("+berths", command="run")
        self.logged = self.shown = self.landed

    def compact(self):
        compact(
            self.workshop.spark,
            "berths",
            self.picks.choice([1, 1, 1, 5]),
            self.picks.choice(["in-place", "full", "partitions"]),
        )

    def compact_killed(self):
        """By partitions, put back to a version between its commits: so a kill leaves it."""
        first = self.workshop.version("berths_merged")
        compact(self.workshop.spark, "berths", method="partitions")
        last = self.workshop.version("berths_merged")
        if last > first:
            stopped = self.picks.randint(first, last)
            self.workshop.spark.sql(f"restore table berths_merged to version as of {stopped}")

    def run(self, steps):
        """Take the steps while a thread reads; return what it read."""
        found = []
        with reading(lambda: found.append(self.view())):
            for number, step in enumerate(steps):
                self.states.add(self.logged)
                getattr(self, step)()
                assert self.view() == self.shown, f"step {number + 1} of {', '.join(steps)}"
        return found


KINDS = [
    *["change"] * 6,
    *["extract"] * 3,
    *["build"] * 3,
    *["compact"] * 2,
    "extract_killed_before_the_commit",
    "extract_killed_before_the_removal",
    "build_killed_after_the_log",
    "build_killed_before_the_log",
    "compact_killed",
]


# every kind once, in the order in which most is outstanding
EVERY_KIND = [
    "change", "extract_killed_before_the_commit", "extract", "build_killed_after_the_log",
    "extract_killed_before_the_removal", "build_killed_before_the_log", "compact_killed", "build", "compact", "change",
]  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_the_view_is_right_in_every_interleaving(workshop, harbour, seed):
    schedule = Schedule(workshop, harbour, seed)
    steps = schedule.picks.choices(KINDS, k=STEPS) if seed else EVERY_KIND
    steps = [*steps, "extract", "build"]
    found = schedule.run(steps)
    assert schedule.view() == schedule.now()
    assert found and set(found) <= schedule.states, f"{seed}: a reader saw what was never there"
    seen = f"{len(found)} reads, {len(set(found))} of {len(schedule.states)} states"
    print(f"schedule {seed}: {seen}; {', '.join(steps)}")
