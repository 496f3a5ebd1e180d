"""Random histories against an oracle that shares no code: a dict of the highest change per key.

Every history lives under its own number in one table, so that a few builds carry all of them. After every build the
view must hold what the oracle holds of the records delivered so far, and every record's verdict must be the oracle's.
"""

import os
import random
import re
from collections import defaultdict

import pytest
from workshop import change

HISTORIES = 240
ROUNDS = 2
PARTS = 2  # batches that a build applies at once
TABLE, FEED = "datastream_histories.histories", "datastream_histories"


def random_history(picks: random.Random, with_ties: bool) -> list[tuple]:
    """Events (operation, sequence as a tuple of numbers, key, value, number) as a source could write them."""
    events, live, log, position = [], {}, picks.choice([0, 8, 0xFE, 0xFFFE]), picks.choice([1, 9, 0xF0])

    def value():
        return picks.choice(
            ["", "x", "null", None, f"v{picks.randrange(100)}"]
        ), f"{picks.randrange(10**9)}.{picks.randrange(10**4):04}"

    for _ in range(picks.randrange(5, 26)):
        position += picks.randrange(1, 9)
        if picks.random() < 0.1:
            log, position = log + 1, picks.randrange(3)  # a new log file starts at a low position
        sequence = (log, position)
        key = f"k{picks.randrange(5)}"
        kind = picks.random()
        if key not in live:
            live[key] = value()
            events.append(("INSERT", sequence, key, *live[key]))
        elif kind < 0.25:
            del live[key]
            events.append((picks.choice(["DELETE", "delete"]), sequence, key, None, None))
        elif kind < 0.4:
            other = f"k{picks.randrange(5, 9)}"
            events.append(("UPDATE-DELETE", sequence, key, None, None))
            events.append(("UPDATE-INSERT", sequence, other, *live[key]))
            live[other] = live.pop(key)
        else:
            live[key] = value()
            events.append((picks.choice(["UPDATE-INSERT", "UPDATE"]), sequence, key, *live[key]))
            if with_ties and picks.random() < 0.3:
                events.append(("UPDATE-INSERT", sequence, key, *value()))
        if with_ties and picks.random() < 0.1:
            events.append(("DELETE", sequence, key, None, None))  # tied with what the key did: the live row holds
    return events


def delivered_rounds(picks: random.Random, events: list[tuple]) -> list[list[list[tuple]]]:
    """Spread shuffled events over rounds of batches, with repeated records and repeated batches."""
    events = events + picks.sample(events, picks.randrange(len(events) // 2 + 1))
    picks.shuffle(events)
    rounds = [[[] for _ in range(PARTS)] for _ in range(ROUNDS)]
    for event in events:
        picks.choice(picks.choice(rounds)).append(event)
    if picks.random() < 0.3:
        rounds[-1][-1] += rounds[0][0]
    return rounds


class Oracle:
    """What a source holds after a set of changes: per key, the changes with the highest sequence."""

    def __init__(self):
        self.best: dict[str, tuple] = {}
        self.candidates: dict[str, list] = {}

    def take(self, batch: list[tuple]) -> list[str]:
        """Take one batch; return a verdict per record. Only for histories without live ties are they unique."""
        before, verdicts = dict(self.best), []
        seen = set()
        winners: dict[str, tuple] = {}
        for operation, sequence, key, _, _ in batch:
            order = (sequence, "DELETE" not in operation.upper())
            if order > winners.get(key, ((-1,), False)):
                winners[key] = order
        for operation, sequence, key, value, number in batch:
            order = (sequence, "DELETE" not in operation.upper())
            identity = (key, order)
            if identity in seen or before.get(key) == order:
                verdicts.append("duplicate")
            elif order == winners[key] and order > before.get(key, ((-1,), False)):
                verdicts.append("applied")
            else:
                verdicts.append("superseded")
            seen.add(identity)
            best = self.best.get(key, ((-1,), False))
            if order > best:
                self.best[key], self.candidates[key] = order, [(value, number)]
            elif order == best:
                self.candidates[key].append((value, number))
        return verdicts

    def state(self) -> dict[str, set]:
        """Live keys, each with the values that it may have (several only where live changes tie)."""
        return {key: set(self.candidates[key]) for key, (_, is_live) in self.best.items() if is_live}


def written(picks, sequence):
    """Sections as a producer may write them: upper or lower case, with and without zeros in front."""
    return "/".join(picks.choice([f"{n:x}", f"{n:X}", f"{n:08X}"]) for n in sequence)


def run_histories(workshop, seed: int, count: int):
    print(f"seed {seed}")
    picks = random.Random(seed)
    first = 1 + 10_000 * (seed % 200_000)
    its_own = f"history between {first} and {first + count - 1}"
    rounds, oracles = {}, {}
    for history in range(first, first + count):
        rounds[history] = delivered_rounds(picks, random_history(picks, with_ties=history % 2 == 0))
        oracles[history] = Oracle()
    verdicts = {}
    # a build leaves pending rows or compacts: the first, the second, or both (then keys have a base row already)
    always, never = '"always"', '{"pending_rows": 1000000000}'
    rules = [(always, never), (never, always), (always, always)][(seed // 100 + seed) % 3]
    for number in range(ROUNDS):
        for part in range(PARTS):
            name, records = f"{seed}-{number}-{part}.json", []
            numbers = list(rounds)
            picks.shuffle(numbers)
            for history in numbers:
                batch = rounds[history][number][part]
                for event, verdict in zip(batch, oracles[history].take(batch), strict=True):
                    operation, sequence, key, value, amount = event
                    records.append(
                        (
                            change(
                                operation,
                                written(picks, sequence),
                                {"history": history, "k": key, "v": value, "n": amount},
                            ),
                            history,
                            verdict,
                        )
                    )
            picks.shuffle(records)
            workshop.deliver(TABLE, name, [record for record, _, _ in records])
            for line, (_, history, verdict) in enumerate(records, 1):
                verdicts[f"{FEED}/histories/{name}", line] = (history, verdict)
            workshop.land(FEED)
            if picks.random() < 0.5:  # a build that is cut off after the log
                workshop.build("+histories_changes", command="run")
        workshop.configure("histories", "merged", f"{{meta: {{merged: {{compact_when: {rules[number]}}}}}}}")
        workshop.build("+histories", command="run")
        found = defaultdict(dict)
        for history, key, value, amount in workshop.rows(
            f"select history, k, v, cast(n as string) from histories where {its_own}"
        ):
            assert key not in found[history], f"{(seed, number, history)}: {key} is there twice"
            found[history][key] = (value, amount)
        for history, oracle in oracles.items():
            expected = oracle.state()
            assert found[history].keys() == expected.keys(), (seed, number, history)
            wrong = {key: (row, expected[key]) for key, row in found[history].items() if row not in expected[key]}
            assert not wrong, (seed, number, history)
    workshop.configure("histories", "merged", "")
    classified = workshop.rows(
        f"select source_file, source_line, history, verdict from histories_changes where {its_own}"
    )
    assert len(classified) == len(verdicts)
    # which of several copies in one batch counts as the first is not the oracle's business
    counts, expected_counts = defaultdict(int), defaultdict(int)
    for file, _, history, verdict in classified:
        if history % 2:
            counts[file, history, verdict] += 1
    for (file, _), (history, verdict) in verdicts.items():
        if history % 2:
            expected_counts[file, history, verdict] += 1
    assert counts == expected_counts, seed
    return len(classified)


def test_random_histories(workshop):
    seed = int(os.environ.get("HIGHWATER_SEED", random.SystemRandom().randrange(10**6)))
    records = run_histories(workshop, seed, HISTORIES)
    print(f"{HISTORIES} histories, {records} records")
    workshop.build("histories_changes", "histories_merged", "histories", command="test")


@pytest.mark.long
def test_the_oracle_notices_a_wrong_order(workshop):
    """Negative control: with sequences compared as text the oracle finds a difference."""
    path = workshop.folder / "macros/staging/order/sortable_sequence.sql"
    original = path.read_text()
    broken, sections = re.subn(r"lpad\(trim\(leading '0' from (\{\{.*?\}\})\), 16, '0'\)", r"\1", original)
    assert sections, "sortable_sequence pads its sections in other words now"
    path.write_text(broken)
    try:
        with pytest.raises(AssertionError):
            run_histories(workshop, 1, 60)
    finally:
        path.write_text(original)
        workshop.build("+stg_datastream_histories__histories_changes", command="run")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_many_random_histories(workshop, seed):
    run_histories(workshop, 1000 + seed, 1000)
