"""Measure how a build grows with the number of builds before it: every one brings each table some changes.

    .venv/bin/python scripts/bench/years.py [--tables 2] [--builds 200] [--changes 100] [--vacuum-every 20]

Tables as in fleet.py; all of `highwater build` in a warm process, `highwater vacuum` between builds. Prints the median
of every twentieth of the builds, with the files and bytes that the lake has then, and what the last twentieth costs of
the second; the first one warms Java up.
"""

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import click
import fleet
from formats import cpu_seconds

PARTS = 20


def files_below(folder: Path) -> tuple[int, int]:
    """Return how many files lie below a folder, and their bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


@click.command()
@click.option("--tables", default=2)
@click.option("--builds", default=200)
@click.option("--changes", default=100)
@click.option("--vacuum-every", default=20)
def main(tables, builds, changes, vacuum_every):
    """Measure in a project and a lake of their own, which are removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="highwater-years-"))
    try:
        project = fleet.enter_lake(folder)
        _measure(folder, fleet.make_fleet(project, folder / "project", tables), builds, changes, vacuum_every)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(folder: Path, names: list[str], builds: int, changes: int, vacuum_every: int) -> None:
    from highwater.spark.spark import session
    from highwater.upkeep.retention import vacuum

    spark, part, found, medians = session(), max(builds // PARTS, 1), [], []
    for number in range(builds):
        for name in names:
            fleet.deliver(folder / "landing", name, number, changes)
        started, spent = time.monotonic(), cpu_seconds()
        fleet.build()
        found.append((time.monotonic() - started, cpu_seconds() - spent))
        if vacuum_every and (number + 1) % vacuum_every == 0:
            list(vacuum(spark, None))
        if (number + 1) % part == 0:
            medians.append([statistics.median(figures) for figures in zip(*found[-part:], strict=True)])
            files, size = files_below(folder / "lake/tables")
            print(
                f"builds {number + 2 - part:,} to {number + 1:,}: {medians[-1][0]:.1f} s, CPU {medians[-1][1]:.1f} s; "
                f"the lake has {files:,} files, {size / 1e6:,.1f} MB",
                flush=True,
            )
    first, last = medians[1 if len(medians) > 2 else 0], medians[-1]
    print(
        f"the last builds cost {last[0] / first[0]:.2f}x of the time and {last[1] / first[1]:.2f}x of the CPU of those "
        "at the beginning; wanted: at most 1.2x"
    )


if __name__ == "__main__":
    main()
