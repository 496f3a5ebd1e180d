"""One history, every format: the same transactions, written as each producer writes them, end in the same rows.

The oracle is a dict that replays a history in the order of the source. What it holds at the end is what the view must
show, for every history and every format; every record must be counted, and none rejected.
"""

import gzip
import os
import random
import re
from collections import defaultdict
from decimal import Decimal

import pytest
from producers import PRODUCERS, RowChange

HISTORIES = 100
FILES = 6
BASES = (60, 10_000, 20_000)
KEYS = ["k", "K", "k ", "", '"', ",", "\\", "\\N", "漢", "0"]
PIECES = [*KEYS, "null", "NULL", '""', "\\\\", '\\"', "\n", "\r\n", "\t", "\x01", "\x00", " ", "x", "'", "é", "😀", "|"]
NUMBERS = ["0", "1.5", "-0.0001", "9999999999999999.9999", "-1234567890123.4567", "9007199254740993", "100.0000"]


def random_values(picks: random.Random) -> tuple:
    text = picks.choice([None, "null", "NULL", "".join(picks.choices(PIECES, k=picks.randrange(5)))])
    number = picks.choice([None, *NUMBERS, f"{picks.randrange(-(10**9), 10**9)}.{picks.randrange(10**4):04}"])
    return text, None if number is None else Decimal(number).quantize(Decimal("0.0001"))


def random_statement(picks: random.Random, history: int, live: dict) -> list[RowChange]:
    """Changes of different rows; `live` becomes what is there after it."""
    there = picks.sample(sorted(live), len(live))
    free = picks.sample([key for key in KEYS if key not in live], len(KEYS) - len(live))
    old = {key: ((history, key), live[key]) for key in there}
    kind = picks.choice(["insert", "update", "update", "delete", "move", "shift", "swap"])
    if not free:
        kind = "delete"
    if len(there) < 3 or kind == "insert":
        changes = [RowChange(None, ((history, key), random_values(picks))) for key in free[: picks.randrange(1, 3)]]
    elif kind == "update":
        v, n = random_values(picks)
        changes = []
        for key in there[: picks.randrange(1, 3)]:
            values = picks.choice([(v, n), (v, live[key][1]), (live[key][0], n)])
            changes.append(RowChange(old[key], ((history, key), values)))
    elif kind == "delete":
        changes = [RowChange(old[key], None) for key in there[: picks.randrange(1, 3)]]
    else:
        targets = {"move": free[:1], "shift": [there[1], free[0]], "swap": [there[1], there[0]]}[kind]
        changes = [RowChange(old[key], ((history, new), live[key])) for key, new in zip(there, targets, strict=False)]
        if kind == "move" and picks.random() < 0.5:
            changes = [RowChange(changes[0].old, (changes[0].new[0], random_values(picks)))]
    for change in changes:
        if change.old:
            live.pop(change.old[0][1], None)
    live |= {change.new[0][1]: change.new[1] for change in changes if change.new}
    return changes


def random_history(picks: random.Random, number: int) -> list[list[list[RowChange]]]:
    live = {}
    return [
        [random_statement(picks, number, live) for _ in range(picks.randrange(1, 5))]
        for _ in range(picks.randrange(2, 6))
    ]


def replayed(history: list) -> dict:
    """What the source holds in the end: the oracle."""
    rows = {}
    for transaction in history:
        for statement in transaction:
            for change in statement:
                if change.old:
                    del rows[change.old[0]]
            for change in statement:
                if change.new:
                    rows[change.new[0]] = change.new[1]
    return rows


def in_files(picks: random.Random, units: list[list], is_ordered: bool) -> list[list]:
    """Spread units over files, some of them to two; what `is_ordered` goes to files that rise."""
    spread = [[] for _ in range(FILES)]
    if is_ordered:
        for unit, number in zip(units, sorted(picks.choices(range(FILES), k=len(units))), strict=True):
            spread[number].append(unit)
        return spread
    for unit in units:
        for number in picks.sample(range(FILES), picks.choice([1, 1, 1, 2])):
            spread[number].append(unit)
    for file in spread:
        picks.shuffle(file)
    return spread


def merged(picks: random.Random, lists: list[list]) -> list:
    """One list of all of them, each in its order."""
    turns = [turn for records in lists for turn in [iter(records)] * len(records)]
    picks.shuffle(turns)
    return [next(turn) for turn in turns]


def delivered(picks: random.Random, producer, histories: dict, label: str, builds: int = 1) -> list[list[tuple]]:
    """Write a producer's files, some twice; return (name, content, records) of those of each of two landings."""
    files = [[] for _ in range(FILES)]
    is_ordered = producer.name == "dms_parquet"
    is_split = picks.random() < 0.3 or builds > 1  # a landing of each format costs a second
    for number, history in histories.items():
        units = producer.units(picks, history, BASES[number % len(BASES)])
        for file, chosen in zip(files, in_files(picks, units, is_ordered), strict=True):
            # at one position the source's order holds; positions of a file come as they like
            file.append([record for unit in chosen for record in unit] if is_ordered else merged(picks, chosen))
    rounds = [[], []]
    for number, file in enumerate(files):
        records = merged(picks, file)
        content = producer.file(records)
        if picks.random() < 0.3:
            content = gzip.compress(content) if producer.suffix in ("csv", "json") else content
        for copy in range(picks.choice([1, 1, 2])):
            name = f"{label}-{copy}/{producer.file_name(number)}"
            picks.choice(rounds if is_split else rounds[:1]).append((name, content, len(records)))
    return rounds


def renumbered(history: list, offset: int) -> list:
    """The same history under a number of its own."""

    def row(old):
        return old and ((old[0][0] + offset, old[0][1]), old[1])

    return [
        [[RowChange(row(change.old), row(change.new)) for change in statement] for statement in transaction]
        for transaction in history
    ]


def feed(producer, entity="every") -> str:
    return f"{producer.name.replace('_', '')}_{entity.partition('_')[0]}"


def declare(workshop, producer, entity, is_first):
    """Declare a feed of its own for a producer; tables of the same entity are one table."""
    declared = ("history:int,k:string", "v:string,n:decimal(20,4)") if is_first else (None, None)
    name = feed(producer, entity)
    workshop.add_table(f"{name}.{entity}", *declared, producer.format, producer.settings)
    path = workshop.folder / f"models/staging/{name}/_{name}__sources.yml"
    beside = "".join(f"{column}, " for column in producer.columns)
    path.write_text(re.sub(r"\{columns: \[(ts, )?history", f"{{columns: [{beside}history", path.read_text()))


def run(workshop, seed: int, count: int, entities: dict, first=1, builds=1) -> int:
    """Deliver, land and build new histories in every format; return how many records were delivered.

    With two builds the first one finds a part of the files only.
    """
    print(f"seed {seed}")
    picks = random.Random(seed)
    histories = {number: random_history(picks, number) for number in range(first, first + count)}
    sent, rows, rounds = defaultdict(int), defaultdict(set), ([], [])
    for entity, producers in entities.items():
        for place, producer in enumerate(producers):
            own = {number + place * 1_000_000: renumbered(h, place * 1_000_000) for number, h in histories.items()}
            for history in own.values():
                for (number, key), (v, n) in replayed(history).items():
                    rows[entity].add((number, producer.held(key), producer.held(v), n))
            for files, written in zip(rounds, delivered(picks, producer, own, f"{seed}", builds), strict=True):
                files += [(entity, producer, *file) for file in written]
    for files in rounds:
        for entity, producer, file, content, records in files:
            workshop.deliver(f"{feed(producer, entity)}.{entity}", file, content)
            sent[feed(producer, entity)] += records
        workshop.land(*dict.fromkeys(feed(producer, entity) for entity, producer, *_ in files))
        if builds > 1 or files is rounds[-1]:
            workshop.build(*(f"+{entity}" for entity in entities), command="run")
    for entity, producers in entities.items():
        found = workshop.rows(f"select * from {entity} where history % 1000000 between {first} and {first + count - 1}")
        wrong = rows[entity].symmetric_difference(found)
        assert not wrong, (seed, entity, describe(wrong, producers))
        assert len(found) == len(rows[entity]), (seed, entity)
        verdicts = defaultdict(dict)
        for name, verdict, counted in workshop.rows(
            f"select feed, verdict, count(*) from {entity}_changes where source_file like '%/{seed}-%' "
            "and not is_derived group by all"
        ):
            verdicts[name][verdict] = counted
        names = [feed(producer, entity) for producer in producers]
        landed = dict(workshop.rows(" union all ".join(
            f"select '{name}', count(*) from raw.{name} where entry = 'record' and source_file like '%/{seed}-%'"
            for name in names
        )))  # fmt: skip
        for name in names:
            assert verdicts[name].keys() <= {"applied", "superseded", "duplicate"}, (seed, name, verdicts[name])
            assert sum(verdicts[name].values()) == landed[name] == sent[name], (seed, name)
    return sum(sent.values())


def describe(wrong: set, producers: list) -> dict:
    """Some rows of each format that are there and should not be, or the other way round."""
    found = defaultdict(list)
    for row in sorted(wrong, key=repr):
        found[producers[row[0] // 1_000_000].name].append(row)
    return {name: rows[:4] for name, rows in found.items()}


# producers whose records may carry some columns only have a table of their own
ENTITIES = {
    "every_whole": [producer for producer in PRODUCERS if not producer.is_partial],
    "every_partial": [producer for producer in PRODUCERS if producer.is_partial],
}


@pytest.fixture(scope="module")
def every(workshop):
    for entity, producers in ENTITIES.items():
        for place, producer in enumerate(producers):
            declare(workshop, producer, entity, place == 0)
    return workshop


def test_one_history_in_every_format(every):
    seed = int(os.environ.get("HIGHWATER_SEED", random.SystemRandom().randrange(10**6)))
    records = run(every, seed, HISTORIES, ENTITIES)
    print(f"{HISTORIES} histories, {len(PRODUCERS)} formats, {records} records")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_many_histories_in_every_format(every, seed):
    run(every, 1000 + seed, 250, ENTITIES, first=1_000 * (seed + 1))
