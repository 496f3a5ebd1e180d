"""What the last build knew of its tables, with the commits that it knew it at: `<lake>/facts.json`.

The next build hands it to dbt's macros, which then need not ask (see the macro facts_of_table). A table that has
another newest commit, whoever made it, is asked.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version

from highwater.runtime.state import read_state, write_state
from highwater.spark.lake_tables import newest_commits

LAYERS = ("changes", "merged", "history")
# what holds from one build to the next; the rest is of one run of dbt
KEPT = ("log_batch", "feeds", "rows", "applied", "held", "highest")
OF_TABLE = "HIGHWATER_FACTS_"
MET = "HIGHWATER_COLUMNS"


@contextlib.contextmanager
def handed_over(entities: Iterable[str], commits: Mapping[str, str]) -> Iterator[None]:
    """Let dbt's macros know what is known of tables, and that their declared columns are those of their tables.

    Arguments:
        entities: of which nothing has failed. A test that failed looks at all rows again. commits: see newest_commits.
    """
    known = _known()
    entities = [entity for entity in entities if _is_of(known.get(entity), commits, entity)]
    given = {OF_TABLE + entity: json.dumps(known[entity]["facts"] | {"history": 0}) for entity in entities}
    os.environ |= given | {MET: "met"}
    try:
        yield
    finally:
        for name in [*given, MET]:
            os.environ.pop(name, None)


def keep(answers: Mapping[str, Mapping], before: Mapping[str, str]) -> None:
    """Keep what a run of dbt has answered, of tables that nothing else has written meanwhile.

    Arguments:
        answers: by entity, the facts in dbt's last response about it; {}: there are none. before: see newest_commits,
            as it was before the run.
    """
    commits, known = newest_commits("lake"), _known()
    for entity, facts in answers.items():
        known.pop(entity, None)
        if facts and all(
            _version(commits, entity, layer) - _version(before, entity, layer) in allowed
            for layer, allowed in (
                ("changes", (1,) if "since" in facts else (0,)),
                # a merge that changes no row makes no version, and vectors may have been switched on before it
                ("merged", (0, 1, 2) if "merged_since" in facts else (0,)),
            )
        ):
            kept = {name: facts[name] for name in KEPT}
            known[entity] = {"commits": _commits_of(commits, entity), "facts": kept}
    there = {name.removesuffix("_changes") for name in commits}
    tables = {name: known[name] for name in known if name in there}
    write_state("facts.json", {"by": version("highwater"), "tables": tables})


def _known() -> dict[str, dict]:
    """Return the commits and the facts of each table; those of another version of highwater say something else."""
    found = read_state("facts.json")
    tables = found.get("tables") if found.get("by") == version("highwater") else None
    return tables if isinstance(tables, dict) else {}


def _commits_of(commits: Mapping[str, str], entity: str) -> dict[str, str]:
    return {layer: commits[name] for layer in LAYERS if (name := f"{entity}_{layer}") in commits}


def _version(commits: Mapping[str, str], entity: str, layer: str) -> int:
    return int(commits.get(f"{entity}_{layer}", "-1").split()[0])


def _is_of(known: Mapping | None, commits: Mapping[str, str], entity: str) -> bool:
    if not isinstance(known, dict) or not isinstance(known.get("facts"), dict):
        return False
    return known.get("commits") == _commits_of(commits, entity) and known["facts"].keys() == {*KEPT}
