"""How far the reading of a batch has got, on a terminal."""

import sys
import threading
from contextlib import contextmanager

from highwater.spark.progress import every

_BAR = threading.Lock()


@contextmanager
def bar_of_tasks(spark, label: str):
    """Show how many tasks of a running batch are done, where a person is watching; of batches side by side, of one."""
    if not sys.stderr.isatty() or not _BAR.acquire(blocking=False):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, tracker = bar.add_task(label, total=None), spark.sparkContext.statusTracker()

        def look():
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = [stage for stage in stages if stage]
            if stages:
                total = sum(stage.numTasks for stage in stages)
                bar.update(task, total=total, completed=sum(stage.numCompletedTasks for stage in stages))

        try:
            with every(0.3, look):
                yield
        finally:
            _BAR.release()
