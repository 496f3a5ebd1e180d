"""What became of every record that has landed, in numbers that add up; those of the last build: `<lake>/account.json`.

An account is what the ledger has counted of all tables: `read`, which is the sum of the four verdicts; `replayed`, how
many of these a replay has read once more; and `unassigned`, where that list has been built.
"""

from collections.abc import Iterable, Mapping

from highwater.runtime.printable import counted
from highwater.runtime.project import utc_now
from highwater.runtime.state import read_state, write_state

VERDICTS = ["applied", "superseded", "duplicate", "rejected"]
COUNTED = ["read", *VERDICTS, "replayed"]


def account_of(tables: Iterable[Mapping[str, int]], unassigned: int | None) -> dict[str, int]:
    """Return the account of all tables.

    Arguments:
        tables: what was counted of each, by the words of COUNTED. unassigned: records of no declared table; None: the
            list has not been built.
    """
    tables = list(tables)
    account = {name: sum(table[name] for table in tables) for name in COUNTED}
    return account | ({} if unassigned is None else {"unassigned": unassigned})


def remembered() -> dict:
    """Return `at`, `account` and `tables` of the last build that came to its end; {}: none has."""
    found = read_state("account.json")
    kinds = {"account": dict, "at": str, "tables": list}
    return found if all(isinstance(found.get(name), kind) for name, kind in kinds.items()) else {}


def remember(account: Mapping[str, int], tables: Iterable[str]) -> None:
    """Record the account of a build that came to its end, {} where it is not whole, and of which tables it is."""
    record = {"at": utc_now(), "tables": sorted(tables), "account": account}
    write_state("account.json", record)


def rename(entity: str, new: str) -> None:
    """Let the account of the last build be of a table under its new name."""
    if entity in (found := remembered()).get("tables", []):
        tables = sorted(new if table == entity else table for table in found["tables"])
        write_state("account.json", found | {"tables": tables})


def in_words(account: Mapping[str, int]) -> str:
    """Return how many records have landed, and what became of them.

    Example: `9 records landed: 3 applied, 0 superseded, 0 duplicate, 6 rejected, 0 unassigned`.
    """
    return f"{_landed(account, 'landed')}: {_verdicts(account)}"


def since_the_last(before: Mapping, account: Mapping[str, int], tables: Iterable[str]) -> str | None:
    """Return in words what became of the records that have landed since a build; None: that cannot be told.

    Arguments:
        before: what `remembered` has returned. account: the one of now. tables: of which it is.
    """
    was = before.get("account", {})
    if not (was and account):
        return None
    news = {name: count - was.get(name, 0) for name, count in account.items()}
    # counted anew since, the ledger was restored, or a table was removed
    if was.keys() != account.keys() or min(news.values()) < 0 or not {*before["tables"]} <= {*tables}:
        return None
    if not any(news.values()):
        return f"No record has landed since the build of {before['at']} UTC."
    return f"{_landed(news, 'landed since the build of ' + before['at'] + ' UTC')}: {_verdicts(news)}."


def _landed(account: Mapping[str, int], landed: str) -> str:
    records = account["read"] - account["replayed"] + account.get("unassigned", 0)
    again = f", and {counted(account['replayed'], 'record')} read again by a replay" if account["replayed"] else ""
    return f"{counted(records, 'record')} {landed}{again}"


def _verdicts(account: Mapping[str, int]) -> str:
    return ", ".join(f"{account[name]:,} {name}" for name in [*VERDICTS, "unassigned"] if name in account)
