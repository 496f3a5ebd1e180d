"""What a table shows now of the keys that changed behind the position of its export, beside what its log says.

The log takes these back to the position, so what the table has of them meets the export nowhere.
"""

from dataclasses import dataclass, field

from highwater.reconcile.explain import samples_of
from highwater.reconcile.repair import Repair
from highwater.reconcile.subject import Subject
from highwater.reconcile.verdict import Count, Sample

VERDICTS_OF_LOG = "highwater_verdicts_of_log"
DIFFER = f"(select * from {VERDICTS_OF_LOG} where `row verdict` <> 'equal')"


@dataclass(frozen=True)
class AgainstLog:
    """What was found; nothing, where nothing has changed behind the position.

    Attributes:
        keys: that were compared. differing: those that the table does not have as the log says.
    """

    keys: int = 0
    differing: int = 0
    samples: list[Sample] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, Count]:
        """The keys that differ, by their verdict; their rows are no rows that were compared with the export."""
        return {"differs_from_log": Count(self.differing)} if self.differing else {}

    @property
    def notes(self) -> list[str]:
        """What is to be said of keys that differ."""
        if not self.differing:
            return []
        are = "is" if self.differing == 1 else "are"
        return [
            f"{self.differing:,} of {self.keys:,} keys that changed behind the position of the export {are} not in the "
            "table as the log has them; --repair says what repairs them"
        ]


def compare_with_log(spark, subject: Subject, with_repairs: bool) -> AgainstLog:
    """Return what comparing the table as it is now with its log finds, of the keys that changed behind the position.

    Arguments:
        with_repairs: also what repairs those that differ.
    """
    since, table = subject.lake.changes_since, subject.plan.table
    if since is None:
        return AgainstLog()
    spark.sql(subject.plan.compared_with_log(since.position, since.log_batch)).createOrReplaceTempView(VERDICTS_OF_LOG)
    all_keys, differing = spark.sql(
        f"select count(*), count_if(`row verdict` <> 'equal') from {VERDICTS_OF_LOG}"
    ).first()
    keys = all_keys if since.keys is None else since.keys
    if not differing:
        return AgainstLog(keys)
    why = f"the log says what the table should show, and {table}_merged has something else"
    repairs = [Repair("differs_from_log", differing, why, [f"highwater rebuild {table}"])] if with_repairs else []
    return AgainstLog(keys, differing, samples_of(spark, subject.plan.of_log, DIFFER, "log"), repairs)
