"""The lease of a lake: one writer at a time. Two without it write what is right, too; it spares them the conflict.

An embedded lake has a lock on a file, which a killed process leaves to the next one. Every other lake has a table of
one row, `<lake>/lease.delta`, which a holder renews; when one is killed, the next may take it some minutes later.
"""

import contextlib
import os
import re
import socket
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from highwater.runtime import project
from highwater.runtime.deployment import is_embedded, place, settings, target_name
from highwater.runtime.errors import UsageError
from highwater.runtime.faults import everything_said
from highwater.spark.lake_tables import is_table, require_known_tables
from highwater.spark.spark import quoted, remove_unfinished_tables, session

LEASE = "lease.delta"
SCHEMA = "holder string, command string, host string, process bigint, since timestamp, renewed_at timestamp"
RENEWED_EVERY = timedelta(seconds=45)
HELD_FOR = timedelta(minutes=4)
# stores of commits that admit several writers; Delta's default for s3a loses commits of two
SAFE_STORES = ("highwater.storage.S3ConditionalLogStore", "io.delta.storage.S3DynamoDBLogStore")
LOST = r"DELTA_CONCURRENT|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED"


@dataclass(frozen=True)
class Holder:
    """Who holds a lease of many machines, as its row says."""

    holder: str | None
    command: str
    host: str
    process: int
    since: datetime
    renewed_at: datetime

    @property
    def is_alive(self) -> bool:
        """Whether it has renewed the lease in time."""
        return self.holder is not None and _now() - self.renewed_at < HELD_FOR

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since:%Y-%m-%d %H:%M:%S} UTC"


@contextlib.contextmanager
def lease(command: str, recovering: bool = False) -> Iterator[None]:
    """Hold the lake's lease. Where other machines may write too, what a kill has left of tables is cleaned up under it.

    Arguments:
        command: what is being done, shown to whoever finds the lake taken. recovering: tables that the metastore does
            not know are no error, and stay.
    Raises: UsageError when the lake cannot be written to, or another command holds the lease.
    """
    if is_embedded():
        with project.lease(command):
            yield
        return
    require_safe_store()
    spark, holder = session(), uuid.uuid4().hex
    _take(spark, holder, command)
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(spark, holder, ended), daemon=True)
    renewing.start()
    try:
        with project.holding(command):
            if not recovering:
                require_known_tables(spark)
                remove_unfinished_tables(spark)
            yield
    finally:
        ended.set()
        renewing.join()
        with contextlib.suppress(Exception):  # Java may be gone; the lease ends by itself
            _update(spark, "holder = cast(null as string)", f"holder = '{holder}'")


def require_safe_store() -> None:
    """Refuse a lake on S3 whose commits go through a store that loses those of two writers.

    Raises: UsageError with the setting that is missing.
    """
    store = settings().get("spark.delta.logStore.s3a.impl")
    if place().startswith("s3a:") and store not in SAFE_STORES:
        raise UsageError(
            f"the lake is at {place()}, and with {store or 'the log store that Delta takes by itself'} two writers "
            "lose commits of each other. Set spark.delta.logStore.s3a.impl in the output "
            f"{target_name()} of the profile: {SAFE_STORES[0]}, see docs/deploy.md."
        )


def step_under_way(spark) -> str | None:
    """Return which command is writing to the lake, or which one was killed while it did; None: neither."""
    if is_embedded():
        return project.step_under_way()
    found = _holder(spark)
    if found is None or found.holder is None:
        return None
    if found.is_alive:
        return f"{found.command} is running ({found})"
    return f"{found.command} of {found.since:%Y-%m-%d %H:%M:%S} UTC was killed; run it again"


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _holder(spark) -> Holder | None:
    if not is_table(LEASE):
        return None
    row = spark.read.format("delta").load(project.stored(LEASE)).first()
    values = row.asDict()
    times = {name: values[name].astimezone(timezone.utc) for name in ("since", "renewed_at") if values[name]}
    return Holder(**values | times)


def _take(spark, holder: str, command: str) -> None:
    if not is_table(LEASE):
        _create(spark)
    own = {"holder": holder, "command": command, "host": socket.gethostname()}
    values = [f"{name} = '{re.sub(chr(39), '', value)}'" for name, value in own.items()]
    values += [f"process = {os.getpid()}L", f"since = {_timestamp(_now())}", f"renewed_at = {_timestamp(_now())}"]
    is_free = f"holder is null or renewed_at < {_timestamp(_now() - HELD_FOR)}"
    if not _update(spark, ", ".join(values), is_free):
        found = _holder(spark)
        raise UsageError(
            f"the lake {place()} is in use by `{found.command}` ({found}). Wait for it to end; if it was killed, the "
            f"lake is free {HELD_FOR.seconds // 60} minutes after it was last heard of, at "
            f"{found.renewed_at:%H:%M:%S} UTC."
        )


def _create(spark) -> None:
    free = spark.createDataFrame([(None, "", "", 0, _now(), _now())], SCHEMA).coalesce(1).write.format("delta")
    try:
        # nobody asks who had it yesterday
        for kept in ("deletedFileRetentionDuration", "logRetentionDuration"):
            free = free.option(f"delta.{kept}", "interval 1 day")
        free.mode("error").save(project.stored(LEASE))
    except Exception:  # another command has made it meanwhile
        if not is_table(LEASE):
            raise


def _update(spark, values: str, where: str) -> bool:
    """Set values of the row of the lease where something holds; return whether it did, and nobody else was first."""
    try:
        done = spark.sql(f"update delta.{quoted(project.stored(LEASE))} set {values} where {where}").first()
    except Exception as error:
        if not re.search(LOST, everything_said(error)):
            raise
        return False
    return done[0] > 0


def _renew(spark, holder: str, ended: threading.Event) -> None:
    last = _now()
    while not ended.wait(RENEWED_EVERY.seconds):
        with contextlib.suppress(Exception):
            if _update(spark, f"renewed_at = {_timestamp(_now())}", f"holder = '{holder}'"):
                last = _now()
        if _now() - last > HELD_FOR and not ended.is_set():
            print("warning: the lease of the lake could not be renewed, and another command may begin", file=sys.stderr)
            last = _now()


def _timestamp(moment: datetime) -> str:
    return f"timestamp_millis({int(moment.timestamp() * 1000)})"
