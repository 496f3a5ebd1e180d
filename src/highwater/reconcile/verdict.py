"""What a reconciliation says: the verdict of each table and of all of them, and the facts that it stands on."""

from dataclasses import dataclass, field

PASS, FAIL, INCONCLUSIVE = "PASS", "FAIL", "INCONCLUSIVE"
EXIT_CODES = {PASS: 0, FAIL: 1, INCONCLUSIVE: 3}
VERDICTS = (
    "equal",
    "value_differs",
    "missing_in_lake",
    "extra_in_lake",
    "duplicate_in_lake",
    "duplicate_in_export",
    "in_flight",
    "stale",
    "differs_from_log",
)


@dataclass(frozen=True)
class Count:
    """How many keys have a verdict, and how many rows they have on both sides."""

    keys: int = 0
    lake_rows: int = 0
    export_rows: int = 0

    def plus(self, other: "Count") -> "Count":
        """Return the sums of both."""
        return Count(self.keys + other.keys, self.lake_rows + other.lake_rows, self.export_rows + other.export_rows)

    def minus(self, other: "Count") -> "Count":
        """Return what is left without the other."""
        return Count(self.keys - other.keys, self.lake_rows - other.lake_rows, self.export_rows - other.export_rows)


def keys_of(counts: dict[str, Count], *verdicts: str) -> int:
    """Return how many keys have one of these verdicts."""
    return sum(counts[verdict].keys for verdict in verdicts if verdict in counts)


def differences_of(counts: dict[str, Count]) -> int:
    """Return how many keys differ; those in flight, and stale ones that are equal, are not counted."""
    return keys_of(counts, *(verdict for verdict in VERDICTS if verdict not in ("equal", "in_flight", "stale")))


class Counted:
    """What was counted by verdict of rows."""

    counts: dict[str, Count]

    def keys(self, *verdicts: str) -> int:
        """Return how many keys have one of these verdicts."""
        return keys_of(self.counts, *verdicts)

    @property
    def differences(self) -> int:
        """How many keys differ; those in flight, and stale ones that are equal, are not counted."""
        return differences_of(self.counts)


@dataclass(frozen=True)
class Sample:
    """One key that differs, for people: texts, long ones cut, sensitive ones masked.

    Attributes:
        columns: that differ. lake, export: values by column; None: the row is not there. other: the other side than the
            lake, which is the log where the row is of a key that changed behind the position of the export.
    """

    verdict: str
    key: dict
    lake_rows: int
    export_rows: int
    columns: list[str]
    lake: dict | None
    export: dict | None
    other: str = "export"


@dataclass(frozen=True)
class Cause:
    """What probably happened, and how many rows, of how many that differ, say so."""

    cause: str
    column: str | None
    rows: int
    of: int | None
    evidence: str


@dataclass(frozen=True)
class Comparison(Counted):
    """What comparing one table with its export found.

    Attributes:
        verdict: PASS, FAIL or INCONCLUSIVE. not_checked: why it is no PASS, apart from differences.
        export_file: the file of the export, or the folder that its parts are in. export_parts: each with its SHA-256.
        position: of the export, as it was declared. sequence: the same as a change_sequence_number.
        taken_at: of the export, as declared, or when its file was last changed; UTC. age: at the run, in words.
        compared: which rows of the lake were compared. compared_with: how many rows were compared with the export, and
            how many keys with the log alone, in words.
        counts: by verdict of rows, the keys and the rows of both sides; they add up to lake_rows and export_rows.
        columns: by name, the values that differ: both there, NULL in the export, NULL in the lake; and the rows that a
            declared rule made equal.
        samples: a few differences of each kind. causes: what probably happened, with the number of rows that say so.
        queries: to see more of them, by verdict. repairs: what repairs them, where that was asked for.
        seconds: what it took.
    """

    table: str
    verdict: str = INCONCLUSIVE
    not_checked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    export: str | None = None
    export_file: str | None = None
    export_parts: dict = field(default_factory=dict)
    export_records: int | None = None
    taken_at: str | None = None
    age: str | None = None
    position: str | None = None
    sequence: str | None = None
    compared: str | None = None
    compared_with: str | None = None
    lake_rows: int | None = None
    export_rows: int | None = None
    counts: dict[str, Count] = field(default_factory=dict)
    columns: dict[str, dict] = field(default_factory=dict)
    rules: dict = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    queries: dict = field(default_factory=dict)
    repairs: list = field(default_factory=list)
    newest_log_batch: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Reconciliation:
    """One run: its time, the verdict over all tables, what was found in each, and with which versions."""

    run: str
    comparisons: list[Comparison]
    spark: str
    highwater: str

    @property
    def verdict(self) -> str:
        """FAIL when a table differs, INCONCLUSIVE when one could not be checked, PASS otherwise."""
        found = {comparison.verdict for comparison in self.comparisons}
        return next((verdict for verdict in (FAIL, INCONCLUSIVE) if verdict in found), PASS)

    @property
    def headline(self) -> str:
        """The first line of every report."""
        counts = [
            f"{sum(each.verdict == verdict for each in self.comparisons)} {words}"
            for verdict, words in ((PASS, "passed"), (FAIL, "failed"), (INCONCLUSIVE, "inconclusive"))
        ]
        tables = f"{len(self.comparisons)} table{'s'[: len(self.comparisons) != 1]}"
        return f"{self.verdict}: {tables}, {', '.join(counts)}; {self.run[:19]} UTC"


def verdict_of(
    counts: dict[str, Count], not_checked: list[str], may_be_late: bool, unreadable: int, is_stable: bool = True
) -> str:
    """Return the verdict of one table.

    Arguments:
        counts: by verdict of rows. not_checked: why it is no PASS, apart from differences.
        may_be_late: the lake has not applied all changes up to the position of the export, or changed meanwhile, or
            another export waits to be compared in the place of this one, or this one is not whole.
        unreadable: rows of the export that could not be read; as many rows of the lake may be theirs.
        is_stable: the table did not change while it was compared. Then a key that is not as the log says is a fault,
            whatever is on its way.
    Returns: PASS, FAIL or INCONCLUSIVE.
    Example: `verdict_of({"equal": Count(3, 3, 3)}, [], False, 0)` is PASS.
    """
    differences = differences_of(counts)
    if is_stable and keys_of(counts, "differs_from_log"):
        return FAIL
    unexplained = differences - min(unreadable, keys_of(counts, "extra_in_lake"))
    if unexplained and not may_be_late:
        return FAIL
    return INCONCLUSIVE if not_checked or differences else PASS
