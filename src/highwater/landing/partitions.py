"""Folders in which a producer delivers by time: once all has landed, the old ones are listed once in a day only.

What is passed over is taken to lie there as it did when it was listed: a file that comes late into an old folder lands
with the next listing of everything.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from highwater.catalog.feeds import Feed
from highwater.landing.listing import Listed, sum_of

EVERYTHING_AFTER, KEPT = timedelta(hours=24), timedelta(days=2)
FIELDS = {"%Y": "([12][0-9]{3})", "%m": "([0-9]{2})", "%d": "([0-9]{2})", "%H": "([0-9]{2})"}
Numbers = tuple[int, ...]


@dataclass(frozen=True)
class PassedOver:
    """What a listing passes over; nothing, where it lists everything.

    Attributes:
        before: of the folder of each table, below the landing folder, the time before which what lies there is: year,
            month, day and hour; (): nothing of it is.
        rest: what `sum_of` told of the files there. since: when everything was listed; None: now.
    """

    before: dict[str, Numbers] = field(default_factory=dict)
    rest: int = 0
    since: datetime | None = None


NOTHING = PassedOver()


@lru_cache(maxsize=100)
def _levels(partitions: str) -> list[re.Pattern]:
    def pattern(level: str) -> str:
        return "".join(FIELDS.get(part, re.escape(part)) for part in re.split("(%[YmdH])", level))

    return [re.compile(pattern(level)) for level in partitions.split("/")]


@lru_cache(maxsize=1000)
def numbers_of(partitions: str, folders: tuple[str, ...]) -> Numbers:
    """Return the numbers that the names of folders tell, the year first, up to the first one that tells no time.

    Arguments:
        partitions: as the feed declares them. folders: the way from the folder of a table.
    """
    numbers: Numbers = ()
    for level, name in zip(_levels(partitions), folders, strict=False):
        found = level.fullmatch(name)
        longer = numbers + tuple(map(int, found.groups())) if found else ()
        if found is None or (longer and _moment(longer) is None):
            break
        numbers = longer
    return numbers


def _moment(numbers: Numbers) -> datetime | None:
    try:
        return datetime(*numbers, *(1, 1, 1)[len(numbers) :])
    except ValueError:
        return None


def is_passed_over(partitions: str, before: Numbers, folders: tuple[str, ...]) -> bool:
    """Return whether all that lies in a folder is of a time before another one.

    Arguments:
        partitions, folders: see `numbers_of`. before: the other time.
    """
    numbers = numbers_of(partitions, folders)
    return numbers < before[: len(numbers)]


def next_passed_over(
    feed: Feed, folders: Iterable[str], files: Iterable[Listed], now: PassedOver, at: datetime
) -> PassedOver:
    """Return what the next listing may pass over, when all of this one has landed.

    Of each table that is what lies two days and more before its newest folder; one in the future tells nothing.

    Arguments:
        folders: of its tables, below the landing folder. files: of this listing, see `sum_of`. now: what it passed
            over. at: the time of now, UTC.
    """
    of_table: dict[str, list[tuple[tuple[str, ...], Listed]]] = {folder: [] for folder in folders}
    for listed in files:
        parts = tuple(listed[0].source_file.split("/")[:-1])
        depth = next((depth for depth in (3, 2, 1) if "/".join(parts[:depth]) in of_table), None)
        if depth:
            of_table["/".join(parts[:depth])].append((parts[depth:], listed))
    before, rest = {}, now.rest
    for folder, below in of_table.items():
        newest = max((numbers_of(feed.partitions, way) for way, _ in below), default=())
        moment = min(_moment(newest), at.replace(tzinfo=None)) - KEPT if newest else None
        told = (moment.year, moment.month, moment.day, moment.hour) if moment else ()
        before[folder] = max(told, now.before.get(folder, ()))
        rest += sum_of(listed for way, listed in below if is_passed_over(feed.partitions, before[folder], way))
    return PassedOver(before, rest, now.since or at)


def noted(feed: Feed, passed_over: PassedOver) -> dict:
    """Return what may be passed over as it stands in a note."""
    return {
        "partitions": feed.partitions,
        "before": passed_over.before,
        "rest": str(passed_over.rest),
        "since": passed_over.since.isoformat(),
    }


def read_note(feed: Feed, folders: Iterable[str], note: dict, at: datetime) -> PassedOver:
    """Return what a listing may pass over by a note; nothing where the feed was another one, or a day is over.

    Arguments:
        folders, at: see `next_passed_over`.
    """
    if note.get("partitions") != feed.partitions or {*folders} != {*note.get("before", ())}:
        return NOTHING
    since = datetime.fromisoformat(note["since"])
    if not timedelta() <= at - since < EVERYTHING_AFTER:
        return NOTHING
    return PassedOver({name: tuple(numbers) for name, numbers in note["before"].items()}, int(note["rest"]), since)
