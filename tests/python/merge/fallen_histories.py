"""Random sources with a clock and positions, ways of delivering them, and what falls, said without SQL."""

import random
from dataclasses import dataclass

START = 1_767_000_000
KEYS = "abcdefgh"
SECONDS = 2  # by which clocks may differ


@dataclass(frozen=True)
class Change:
    """A change: its position, what the clock said, its key, its place among all that happened, its source."""

    position: int
    clock: int
    key: str
    place: int
    source: str = "one"


def ordinary(picks: random.Random) -> list[Change]:
    """Changes of a source whose positions rise; many in one second, or hours between them; its clock is off by one."""
    position, clock, changes = picks.randrange(2000, 4000), START, []
    seconds = picks.choice([0, 1, 4, 600])
    for place in range(picks.randrange(8, 40)):
        position, clock = position + picks.randrange(1, 40), clock + picks.randrange(seconds + 1)
        changes.append(Change(position, clock + picks.choice([0, 0, 0, 1]), picks.choice(KEYS), place))
    return changes


def fallen(picks: random.Random, at: int | None = None) -> list[Change]:
    """The same, but from some change on by another server: its positions are lower, and later ones rise above."""
    before = ordinary(picks)
    at = picks.randrange(1, len(before)) if at is None else at
    down = picks.randrange(1, before[at].position) + before[at].position - before[at - 1].position
    later = picks.choice([SECONDS + 2, 60, 7200])
    return before[:at] + [
        Change(c.position - down, c.clock + later, c.key, c.place, "other") for c in before[at:] if c.position > down
    ]


def two_sources(picks: random.Random) -> list[Change]:
    """Changes of two sources at once, each with positions and keys of its own."""
    one = ordinary(picks)
    other = [Change(c.position // 7 + 1, c.clock, c.key.upper(), c.place, "other") for c in ordinary(picks)]
    return sorted(one + other, key=lambda change: change.clock)


def long_transactions(picks: random.Random) -> list[Change]:
    """Positions of PostgreSQL: of the writing; the clock is of the commit, until which nobody else writes the key."""
    changes, locked = [], {}
    for change in ordinary(picks):
        if change.key in locked:
            continue
        if picks.random() < 0.2:
            locked[change.key] = change
        changes.append(change)
        if locked and picks.random() < 0.2:
            ended = {open_.place for open_ in locked.values()}
            locked = {}
            changes = [Change(c.position, change.clock, c.key, c.place) if c.place in ended else c for c in changes]
    return sorted(changes, key=lambda c: (c.clock, c.place))


def delivered(picks: random.Random, changes: list[Change], is_in_order: bool = False) -> list[list[list[Change]]]:
    """Spread changes over batches of files: in order; or some late, some repeated, or all of them shuffled."""
    cuts = sorted(picks.sample(range(1, len(changes)), picks.randrange(min(5, len(changes) - 1) + 1)))
    batches = [changes[a:b] for a, b in zip([0, *cuts], [*cuts, len(changes)], strict=True)]
    kind = "in order" if is_in_order else picks.choice(["in order", "late", "repeated", "shuffled"])
    if kind == "late":
        for number, batch in enumerate(batches):
            late = [change for change in batch if picks.random() < 0.2]
            batches[number] = [change for change in batch if change not in late]
            picks.choice(batches[number:]).extend(late)
    elif kind == "repeated":
        batches.insert(picks.randrange(1, len(batches) + 1), picks.choice(batches))
    elif kind == "shuffled":
        every = picks.sample(changes, len(changes))
        batches = [every[a:b] for a, b in zip([0, *cuts], [*cuts, len(changes)], strict=True)]
    files = []
    for batch in filter(None, batches):
        cut = picks.randrange(len(batch))
        files.append([file for file in (batch[:cut], batch[cut:]) if file])
    return files


def falls_of(batches: list[list[list[Change]]]) -> list[tuple[int, set[str], bool, bool]]:
    """Say of each batch: changes that fall, their keys, whether a whole file does, whether records tell of a server."""
    highest, best, said = None, {}, []
    for files in batches:
        count, keys, is_whole, is_told = 0, set(), False, False
        for file in files:
            below = in_file = 0
            for change in file:
                other = best.get(change.key)
                falls = other and other.position > change.position and change.clock - other.clock > SECONDS
                overtakes = (
                    other
                    and other.position < change.position < highest.position
                    and other.clock - change.clock > SECONDS
                )
                if falls or overtakes:
                    in_file += 1
                    keys.add(change.key)
                    is_told |= other.source != change.source
                below += bool(highest and highest.position > change.position and change.clock - highest.clock > SECONDS)
                if other is None or change.position > other.position:
                    best[change.key] = change
                if highest is None or (change.position, change.clock) > (highest.position, highest.clock):
                    highest = change
            count += in_file
            is_whole |= bool(in_file) and below == len(file) > 1
        said.append((count, keys, is_whole, is_told))
    return said


def waits_from(batches, is_told: bool) -> int | None:
    """Return the first batch that waits; None: none does. `is_told`: records say which server they are of."""
    keys = set()
    for number, (_, its_keys, is_whole, is_other) in enumerate(falls_of(batches)):
        keys |= its_keys
        if len(keys) >= 3 or is_whole or (is_told and is_other):
            return number
    return None


def wrong_keys(batches) -> set[str]:
    """Keys whose highest position is not the last that happened of what was delivered.

    Without those of which an older one came late and above all there was: that looks like a clock that was put right.
    """
    changes = [change for files in batches for file in files for change in file]
    wrong = set()
    for key in {change.key for change in changes}:
        of_key = [change for change in changes if change.key == key]
        highest = max(of_key, key=lambda change: change.position)
        last = max(of_key, key=lambda change: change.place)
        is_above_all = any(
            change.key == key
            and change.place < last.place
            and last in changes[:number]
            and change.position > max(c.position for c in changes[:number])
            for number, change in enumerate(changes)
        )
        if (
            highest.position > last.position
            and highest.place < last.place
            and last.clock - highest.clock > SECONDS
            and not is_above_all
        ):
            wrong.add(key)
    return wrong
