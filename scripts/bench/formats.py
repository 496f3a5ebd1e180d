"""Measure landing and staging against Spark's own readers, in one run: `make bench`.

Prints ratios of wall time and of CPU time (this process, Spark's JVM and its workers). Every pair runs interleaved,
warm, three times; the medians are compared. Nothing here is a test: machines differ, ratios say more than seconds.
"""

import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

RECORDS = 1_000_000
ROUNDS = 3


def cpu_seconds() -> float:
    """Return the CPU seconds that this process and its descendants have used, the ended ones too."""
    children: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name_and_rest = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process, parent = int(folder.name), int(name_and_rest[1])
        children.setdefault(parent, []).append(process)
        spent[process] = sum(int(ticks) for ticks in name_and_rest[11:15]) / os.sysconf("SC_CLK_TCK")
    total, waiting = 0.0, [os.getpid()]
    for process in waiting:
        total += spent.get(process, 0)
        waiting += children.get(process, [])
    return total


def measured(run) -> tuple[tuple[float, float], object]:
    """Run once; return its wall and CPU seconds, and what it returned."""
    wall, cpu = time.monotonic(), cpu_seconds()
    result = run()
    return (time.monotonic() - wall, cpu_seconds() - cpu), result


def medians(rounds: list[tuple[float, float]]) -> list[float]:
    """Return the medians of wall and CPU seconds; the first round warms up where there are several."""
    return [statistics.median(column) for column in zip(*(rounds[1:] or rounds), strict=True)]


def print_ratio(what: str, ours: list, theirs: list, wanted: str) -> None:
    """Print how much the rounds of one way cost of those of another."""
    (wall, cpu), (their_wall, their_cpu) = medians(ours), medians(theirs)
    print(
        f"{what}: wall {wall / their_wall:.2f}x ({wall:.1f} s of {their_wall:.1f} s), "
        f"CPU {cpu / their_cpu:.2f}x ({cpu:.1f} s of {their_cpu:.1f} s); wanted: {wanted}",
        flush=True,
    )


def compare(what: str, ours, theirs, limit: float) -> None:
    """Run both in turns and print how much the first costs of the second."""
    figures: dict = {ours: [], theirs: []}
    for _ in range(ROUNDS + 1):
        for run in (ours, theirs):
            figures[run].append(measured(run)[0])
    print_ratio(what, figures[ours], figures[theirs], f"at most {limit}x")


def write_dialect(path: Path, dialect: str, files: int = 4) -> None:
    """Write RECORDS rows of ten values as Tungsten's applier does."""
    picks = random.Random(1)
    path.mkdir(parents=True)
    quote, joined = ('"', ",") if dialect != "hive" else ("", "\x01")
    for number in range(files):
        with open(path / f"shop-orders-{number}.csv", "w") as file:
            for row in range(RECORDS // files):
                values = [
                    "I", str(row), str(row), "2016-03-11 20:51:10.000", str(picks.randrange(10**9)), f"customer {row}",
                    f"{picks.random() * 1000:.2f}", "2024-08-29", "some text of a usual length", "http://www.continent.com",
                ]  # fmt: skip
                file.write(joined.join(f"{quote}{value}{quote}" for value in values) + "\n")


def bench_landing(spark, folder: Path) -> None:
    """Compare landing a CSV dialect with Spark's CSV reader, both into a Delta table."""
    from highwater.catalog.feeds import Feed
    from highwater.formats.formats import TUNGSTEN_DIALECTS, ReadOptions
    from highwater.landing.landing import land

    for dialect in ("mysql", "redshift", "hive"):
        feed = Feed(
            f"bench_{dialect}", "changes", ("orders",), "files", ReadOptions("tungsten-csv", TUNGSTEN_DIALECTS[dialect])
        )
        files = folder / feed.name
        write_dialect(files, dialect)
        separator = {"hive": "\x01"}.get(dialect, ",")
        escape = {"redshift": '"'}.get(dialect, "\\")

        def ours(feed=feed):
            spark.sql(f"drop table if exists {feed.raw_table}")
            land(spark, feed)

        def theirs(files=files, separator=separator, escape=escape):
            columns = ", ".join(f"c{number} string" for number in range(10))
            frame = spark.read.csv(str(files), schema=columns, sep=separator, escape=escape, multiLine=True)
            frame.write.format("delta").mode("overwrite").saveAsTable("raw.bench_theirs")

        compare(f"landing {RECORDS:,} records of {feed.format} ({dialect})", ours, theirs, 2)


def bench_staging(spark, folder: Path) -> None:
    """Compare the staging model of customers with a plain from_json of the same fields."""
    from highwater.catalog.feeds import declared_feeds
    from highwater.landing.landing import land
    from highwater.spark import dbt

    picks = random.Random(2)
    files = folder / "datastream_user1/customers"
    files.mkdir(parents=True)
    for number in range(4):
        with open(files / f"{number}.json", "w") as file:
            for row in range(RECORDS // 4):
                record = {
                    "CUSTOMER_ID": row, "NAME": f"customer {row}", "BALANCE": f"{picks.random() * 1000:.2f}",
                    "BORN_ON": "1980-02-29", "IS_ACTIVE": True, "PHOTO": "AAEC", "PREFERENCES": '{"a": 1}',
                    "UPDATED_AT": "2024-08-29 12:00:00.123",
                    "datastream_metadata": {
                        "uuid": f"{row:032x}", "source_timestamp": 1724900000000, "change_type": "UPDATE-INSERT",
                        "change_sequence_number": f"{row:X}/A", "sort_keys": ["1724900000000", str(row)],
                    },
                }  # fmt: skip
                file.write(json.dumps(record) + "\n")
    land(spark, declared_feeds()["datastream_user1"])
    model = "stg_datastream_user1__customers_changes"
    if dbt.run(["run", "--quiet", "--select", model]):
        sys.exit(1)
    schema = (
        "CUSTOMER_ID bigint, NAME string, BALANCE decimal(38,9), BORN_ON date, IS_ACTIVE boolean, PHOTO string, "
        "PREFERENCES string, UPDATED_AT timestamp, datastream_metadata struct<uuid: string, source_timestamp: bigint, "
        "change_sequence_number: string, change_type: string, sort_keys: array<string>>"
    )

    def ours():
        spark.table(f"lake.{model}").write.format("noop").mode("overwrite").save()

    def theirs():
        frame = spark.sql(
            "select parsed.*, source_file, source_line, landing_batch, landed_at from (select *, "
            f"from_json(cast(record as string), '{schema}') as parsed from raw.datastream_user1 where entry = 'record')"
        )
        frame.write.format("noop").mode("overwrite").save()

    compare(f"staging {RECORDS:,} records of datastream-json", ours, theirs, 1.3)


def bench_files(spark, folder: Path) -> None:
    """Show what the number of files costs, the bytes being the same."""
    from highwater.catalog.feeds import Feed
    from highwater.formats.formats import ReadOptions
    from highwater.landing.landing import land

    line = json.dumps({"id": 1, "v": "x" * 200}) + "\n"
    land_small = None
    for count in (100, 100, 1000, 10_000):
        feed = Feed(f"bench_{count}", "changes", ("t",), "folders", ReadOptions("datastream-json"))
        files = folder / feed.name / "t"
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir(parents=True)
        for number in range(count):
            (files / f"{number:05}.json").write_text(line * (500_000 // count))
        spark.sql(f"drop table if exists {feed.raw_table}")
        (wall, cpu), _ = measured(lambda feed=feed: land(spark, feed))
        if land_small:
            print(
                f"landing 500,000 records in {count:,} files: wall {wall / land_small[0]:.2f}x, CPU "
                f"{cpu / land_small[1]:.2f}x of 100 files ({wall:.1f} s, CPU {cpu:.1f} s)",
                flush=True,
            )
        land_small = land_small or (wall, cpu) if count == 100 else land_small


def main() -> None:
    """Measure everything in a lake of its own, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as folder:
        os.environ["HIGHWATER_LAKE"] = f"{folder}/lake"
        os.environ["HIGHWATER_LANDING"] = f"{folder}/landing"
        from highwater.spark.spark import session

        spark = session(spark__master="local[2]")
        spark.sql("create database if not exists raw")
        landing = Path(folder) / "landing"
        chosen = sys.argv[1:] or ["landing", "staging", "files"]
        for name in chosen:
            globals()[f"bench_{name}"](spark, landing)
        spark.stop()


if __name__ == "__main__":
    main()
