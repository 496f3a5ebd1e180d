"""Measure what it costs to land one new file into a feed of which many have landed, all of them still in its folder.

    .venv/bin/python scripts/bench/many_files.py [--files 1000000] [--landings 3] [--by-time]

Makes a hundred files an hour, all of them empty, and what the raw table would hold about them; and prints for each
landing seconds, CPU seconds, and the peak of the memory that this process and Java have resident. The first landing
warms up; with --by-time, where the feed declares its folders, it is also the only one that lists all of them.
"""

import os
import shutil
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import click
from fleet import enter_lake
from formats import measured

FEED, TABLE = "datastream_many", "events"
START, AN_HOUR = datetime(2020, 1, 1, tzinfo=timezone.utc), 100
ENTRIES = """
    insert into raw.{feed} by name
    select
        'file' as entry,
        concat('{feed}/{table}/', date_format(hour, 'yyyy/MM/dd/HH'), '/part-', lpad(id, 7, '0'), '.json')
            as source_file,
        1L + id div 1000 as landing_batch,
        hour as landed_at,
        0L as file_records,
        0L as file_size,
        hour as file_modified_at,
        sha2('', 256) as file_hash
    from (select id, timestamp_seconds({start} + id div {an_hour} * 3600) as hour from range(0, {files}, 1, 2))
"""


def deliver(folder: Path, files: int) -> None:
    """Make so many empty files, each as old as its folder tells."""
    for hour in range(0, files, AN_HOUR):
        at = START + timedelta(hours=hour // AN_HOUR)
        path = folder / at.strftime("%Y/%m/%d/%H")
        path.mkdir(parents=True)
        for number in range(hour, min(hour + AN_HOUR, files)):
            name = f"{path}/part-{number:07}.json"
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
            os.utime(name, (at.timestamp(), at.timestamp()))


def peak_of(process: int, anew: bool = False) -> float:
    """Return the most memory in MB that a process has had resident, or let it count anew."""
    if anew:
        Path(f"/proc/{process}/clear_refs").write_text("5")
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@click.command()
@click.option("--files", default=1_000_000)
@click.option("--landings", default=3)
@click.option("--by-time", is_flag=True)
def main(files, landings, by_time):
    """Measure in a lake of its own, which is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="highwater-many-"))
    try:
        project = enter_lake(folder)
        for name in (".spark", "profiles", "dbt_project.yml"):
            (folder / name).symlink_to(project / name)
        os.chdir(folder)
        from highwater.catalog.feeds import Feed
        from highwater.formats.formats import ReadOptions
        from highwater.landing.landing import land
        from highwater.landing.raw_table import create_raw_table
        from highwater.spark.spark import session

        spark, partitions = session(), "%Y/%m/%d/%H" if by_time else None
        feed = Feed(FEED, "changes", (TABLE,), "folders", ReadOptions("datastream-json"), partitions=partitions)
        processes = {"this process": os.getpid(), "Java": spark._jvm.java.lang.ProcessHandle.current().pid()}
        create_raw_table(spark, feed)
        of_table = {"feed": FEED, "table": TABLE, "files": files, "an_hour": AN_HOUR}
        spark.sql(ENTRIES.format(start=int(START.timestamp()), **of_table))
        deliver(folder / "landing" / FEED / TABLE, files)
        newest = folder / "landing" / FEED / TABLE / (START + timedelta(hours=files // AN_HOUR)).strftime("%Y/%m/%d/%H")
        newest.mkdir(parents=True, exist_ok=True)
        for number in range(landings):
            (newest / f"new-{number}.json").write_text("{}\n")
            for process in processes.values():
                peak_of(process, anew=True)
            (wall, cpu), landed = measured(lambda: land(spark, feed))
            assert landed.files == 1 and not landed.changed, landed
            peaks = ", ".join(f"{name} {peak_of(process):,.0f} MB" for name, process in processes.items())
            print(f"{files:,} files, landing {number + 1}: {wall:.2f} s, CPU {cpu:.2f} s, {peaks}", flush=True)
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
