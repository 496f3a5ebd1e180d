"""How far the reading of a batch has got, on a terminal."""

import sys
import threading
from contextlib import contextmanager

_BAR = threading.Lock()


@contextmanager
def bar_of_tasks(spark, label: str):
    """Show how many tasks of a running batch are done, where a person is watching; of batches side by side, of one."""
    if not sys.stderr.isatty() or not _BAR.acquire(blocking=False):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    done = threading.Event()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def watch():
            tracker = spark.sparkContext.statusTracker()
            while not done.wait(0.3):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                stages = [stage for stage in stages if stage]
                if stages:
                    total = sum(stage.numTasks for stage in stages)
                    bar.update(task, total=total, completed=sum(s.numCompletedTasks for s in stages))

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            _BAR.release()
