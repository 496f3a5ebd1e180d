"""The newest landing of each feed that a lake has heard of, whatever became of its raw table.

A landing is known by its number and its time together. A raw table that went back (a restored copy, a commit that a
power cut took) has forgotten landings that logs have classified; their numbers must not come again.
"""

import json

from highwater.catalog.entities import entities_of
from highwater.catalog.feeds import Feed, sql_text
from highwater.catalog.tables import of_each
from highwater.runtime.state import read_state, write_state
from highwater.spark.lake_tables import newest_commit

LOGS_AT_ONCE = 8
# what is newer than raw stands in few files of a log, whose statistics tell
NEWEST_IN_LOG = """
    select max(struct(landing_batch, unix_micros(landed_at) as landed)) as newest
    from lake.`{entity}_changes` where feed = '{feed}' and landing_batch >= {batch}
"""
Landing = tuple[int, int]


def _note_of(feed: str) -> str:
    return f"landings/{feed}.json"


def noted_landing(feed: str) -> Landing:
    """Return number and time, in microseconds, of the newest landing that is noted beside the tables; (0, 0): none."""
    return _landing_in(read_state(_note_of(feed)))


def _landing_in(note: dict) -> Landing:
    number, landed = note.get("number"), note.get("landed")
    return (number, landed) if isinstance(number, int) and isinstance(landed, int) else (0, 0)


def note_landing(feed: Feed, landing: Landing) -> None:
    """Note a landing beside the tables, so that it is known where raw has lost it."""
    note = read_state(_note_of(feed.name))
    _write(feed, max(landing, _landing_in(note)), note.get("logs"))


def note_nothing_new(
    feed: Feed, listing: str, landing: Landing, odd: list[str], passed_over: dict | None = None
) -> None:
    """Note that all of a listing has landed, as its raw table is now, so that the next landing need not ask it.

    Arguments:
        listing: what tells it from any other. landing: the newest one of the raw table.
        odd: names in it that are not those of files of the feed, and that wait. passed_over: by the next one; None:
            nothing is.
    """
    note = read_state(_note_of(feed.name))
    nothing_new = {"listing": listing, "raw": newest_commit("raw", feed.name), "landing": landing, "odd": odd}
    nothing_new |= {"passed_over": passed_over} if passed_over else {}
    _write(feed, max(landing, _landing_in(note)), note.get("logs"), nothing_new)


def nothing_new(feed: Feed, listing: str) -> Landing | None:
    """Return the newest landing of a raw table where all of a listing is known to have landed in it; None: ask it.

    A table that went back, was restored or written by anybody since has another newest commit.

    Arguments:
        listing: as it was noted.
    """
    noted = _noted_nothing_new(feed)
    return tuple(noted["landing"]) if noted.get("listing") == listing else None


def _noted_nothing_new(feed: Feed) -> dict:
    """Return what was noted when nothing was new, where the raw table is as it was then."""
    noted = read_state(_note_of(feed.name)).get("nothing_new")
    raw = newest_commit("raw", feed.name)
    return noted if isinstance(noted, dict) and raw is not None and noted.get("raw") == raw else {}


def noted_passed_over(feed: Feed) -> dict:
    """Return what a landing has noted that the next one may pass over, where its raw table is as it was then."""
    return _noted_nothing_new(feed).get("passed_over", {})


def odd_names(feed: Feed) -> list[str]:
    """Return the names that are not those of files of the feed, in the listing that `nothing_new` has noted."""
    return read_state(_note_of(feed.name)).get("nothing_new", {}).get("odd", [])


def left_for_the_first_time(feed: Feed, left: dict[str, str], is_all: bool = True) -> dict[str, str]:
    """Return what no landing has named yet of files that are left alone, and note them.

    Arguments:
        left: the names of all, and what each is in words. is_all: no folder was passed over.
    """
    note = read_state(_note_of(feed.name))
    before = note.get("left", [])
    now = sorted({*left, *([] if is_all else before)})
    if now != before:
        _write_note(feed, note | {"left": now})
    return {name: words for name, words in left.items() if name not in before}


def landed_before_whole(feed: Feed, found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the files whose beginning has landed under another name, with that name, and note those just found.

    One is forgotten when an epoch of the feed names the beginning.

    Arguments:
        found: by this landing.
    """
    note = read_state(_note_of(feed.name))
    before, epochs = note.get("begun", []), json.dumps(feed.settings.get("epochs") or [], default=str)
    known = dict.fromkeys((file, name) for file, name in [*before, *found])
    begun = [[file, name] for file, name in known if json.dumps(sql_text(name)[1:-1])[1:-1] not in epochs]
    if begun != before:
        _write_note(feed, note | {"begun": begun})
    return [(file, name) for file, name in begun]


def _write(feed: Feed, landing: Landing, logs: dict | None, nothing_new: dict | None = None) -> None:
    number, landed = landing
    note = {"number": number, "landed": landed, "logs": logs or {}}
    before = read_state(_note_of(feed.name))
    note |= {name: before[name] for name in ("left", "begun") if name in before}
    _write_note(feed, note | ({"nothing_new": nothing_new} if nothing_new else {}))


def _write_note(feed: Feed, note: dict) -> None:
    write_state(_note_of(feed.name), note)


def newest_landing(spark, feed: Feed, in_raw: Landing) -> Landing:
    """Return the newest landing of a feed that raw, its note or a log knows.

    A log is asked only when it has another newest commit than when it was asked last.

    Arguments:
        in_raw: the newest one of the raw table; (0, 0): it has none.
    """
    note = read_state(_note_of(feed.name))
    asked = note.get("logs") if isinstance(note.get("logs"), dict) else {}
    commits = _commits_of_logs(feed)
    changed = [entity for entity, commit in commits.items() if asked.get(entity) != commit]
    newest = max(in_raw, _landing_in(note), *_in_logs(spark, feed, changed, in_raw[0]))
    if changed or newest != _landing_in(note):
        _write(feed, newest, commits)
    return newest


def _commits_of_logs(feed: Feed) -> dict[str, str]:
    commits = {entity: newest_commit("lake", f"{entity}_changes") for entity in entities_of(feed.name)}
    return {entity: commit for entity, commit in commits.items() if commit}


def _in_logs(spark, feed: Feed, entities: list[str], batch: int) -> list[Landing]:
    def newest(some: list[str]) -> list:
        parts = [NEWEST_IN_LOG.format(entity=entity, feed=feed.name, batch=batch) for entity in some]
        return spark.sql(" union all ".join(parts)).collect()

    groups = [entities[start : start + LOGS_AT_ONCE] for start in range(0, len(entities), LOGS_AT_ONCE)]
    found = [row.newest for rows in of_each(groups, newest, "asking logs") for row in rows]
    return [(landing.landing_batch, landing.landed) for landing in found if landing]


def gone_back(feed: str, in_raw: Landing, newest: Landing) -> str | None:
    """Return what to say of a raw table that lacks the newest landing of its feed; None: it has it."""
    if newest <= in_raw:
        return None
    what = f"up to batch {in_raw[0]}" if in_raw[0] else "no batch"
    files = (
        "Files that still lie in the landing folder land again by themselves. What no longer lies there, deliver again"
    )
    if newest[0] == in_raw[0]:
        what = f"another batch {in_raw[0]}"
        files = "Logs do not classify that one: deliver its files again under other names"
    return (
        f"raw.{feed} has {what}, and batch {newest[0]} had landed: the table went back (was it restored, or did a "
        f"power cut take a commit?). {files}, or take a new full load: highwater resync TABLE --from FILES"
    )
