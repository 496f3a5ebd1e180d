"""Many tables asked one by one: small statements in a few threads, however many tables a project has."""

import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from highwater.catalog.feeds import sql_text
from highwater.runtime import faults

# what speaks of the changes of an entity, by the place of the record
LISTS = {"rejected_changes", "sequence_ties", "late_changes", "stale_rows"}
THREADS = min(4, os.cpu_count() or 1)
SECONDS_OF_SILENCE = 5
MOST_NAMED = 5


def tables_in(spark, schema: str) -> set[str]:
    """Return the names of the tables and views of a schema, by one question; none when there is no such schema."""
    if not spark.catalog.databaseExists(schema):
        return set()
    return {row.tableName for row in spark.sql(f"show tables in {schema}").collect()}


def of_each(items: Iterable, ask: Callable, doing: str) -> list:
    """Ask about each item in a few threads; what takes long says how far it has come.

    Arguments:
        items: whatever is asked about. ask: called with each of them. doing: what is done, for example `counting`.
    Returns: the answers, in the order of the items.
    Raises: what the first question that failed raised.
    """
    items, answers, last = list(items), [], time.monotonic()
    with ThreadPoolExecutor(THREADS) as threads:
        for answer in threads.map(ask, items):
            answers.append(answer)
            if time.monotonic() - last > SECONDS_OF_SILENCE:
                last = time.monotonic()
                print(f"{doing}: {len(answers):,} of {len(items):,}", file=sys.stderr, flush=True)
    return answers


@dataclass(frozen=True)
class Trouble:
    """Why one of many could not be asked.

    Attributes:
        sentence: as the module faults tells it.
    """

    sentence: str


def by_itself(ask: Callable, asked: str) -> Callable:
    """Let the trouble of one of many, a damaged table for example, be its answer, so that the others have theirs.

    Arguments:
        ask: a question, with any arguments. asked: what it asks, of which `{}` is the first argument.
    Returns: the question that returns a Trouble instead of raising.
    """

    def answer(*arguments):
        try:
            with faults.doing(f"asking {asked.format(*arguments)}"):
                return ask(*arguments)
        except Exception as error:
            return Trouble(faults.trouble_of_one(error))

    return answer


def named(names: list[str], most: int = MOST_NAMED) -> str:
    """Return the first names of a list in a row, at most so many, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def gather_anew(spark) -> None:
    """Let the next build look through all batches for what the ledger and the lists lack."""
    if "gathered_batches" in tables_in(spark, "lake"):
        spark.sql("delete from lake.gathered_batches")


def count_anew(spark, entity: str, feeds: Iterable[str]) -> None:
    """Let the next build record and list all batches of an entity again, after its log was written anew.

    Arguments:
        entity: for example `customers`. feeds: those that bring its records.
    """
    there = tables_in(spark, "lake")
    for name in {"ledger", "gathered_batches", *LISTS} & there:
        spark.sql(f"delete from lake.{name} where table_name = {sql_text(entity)}")
    for feed in feeds if "gathered_batches" in there else []:
        spark.sql(f"delete from lake.gathered_batches where model = 'ledger' and feed = {sql_text(feed)}")
