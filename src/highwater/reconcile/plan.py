"""What has to be asked of each table, and with which SQL: values of what the macro reconciliation_plan tells."""

import json
import re
from dataclasses import dataclass, replace

from highwater.catalog.entities import logged_tables
from highwater.runtime.errors import CheckError
from highwater.spark import dbt
from highwater.spark.spark import quoted


@dataclass(frozen=True)
class Column:
    """A column that is compared, and the SQL of its values.

    Attributes:
        data_type: of both sides when they are compared. rules: declared for it, by name.
        lake, export: the value in the one and in the other. lake_by_rules, export_by_rules: the same by the rules.
    """

    name: str
    data_type: str
    rules: dict
    lake: str
    export: str
    lake_by_rules: str
    export_by_rules: str


@dataclass(frozen=True)
class Plan:
    """What is compared with what, and the SQL that the macros have written for it.

    Attributes:
        marks: what stands in SQL in the place of the positions `start` and `position`.
        lake, export, raw, log: relations; raw: None where the export is no feed, log: where the table has none.
        where: condition of the rows that are compared. not_compared: columns left out. sensitive: columns masked.
        feed, source_table: of the exports. positions: the feed whose positions they carry.
        exports: select of what has landed. readable: relation of the rows of the export that could be read.
        log_key: the columns of the key, each with its name in the log.
        sequence: expression of the sequence of a `position`. rows_at_position, rows_of_log, versions: selects of the
            rows of the lake as of a position, of the log alone, and of the versions between two positions.
        is_baseline: condition of a change of the log that is a row of a baseline without a position. changed_since:
            select of the keys that changed behind a position, by their names in the log.
        verdicts_of_log, verdicts_of_whole_log: selects that compare what the table shows with what the log says up to a
            batch, of the keys that changed behind a position, or of all. columns_of_log: the columns;
            declared_sensitive: those of the table that are masked, in lower case.
        buckets, keys, verdicts, verdicts_of_unique_keys: selects that compare. lake_bucket, export_bucket: expressions
            of the bucket of a row.
    """

    table: str
    marks: dict
    lake: str
    export: str
    where: str | None
    key: list[str]
    columns: tuple[Column, ...]
    not_compared: list[str]
    sensitive: list[str]
    feed: str | None
    source_table: str | None
    raw: str | None
    exports: str | None
    positions: str | None
    log: str | None
    log_key: dict
    sequence: str | None
    rows_at_position: str | None
    rows_of_log: str | None
    versions: str | None
    is_baseline: str
    changed_since: str | None
    verdicts_of_log: str | None
    verdicts_of_whole_log: str | None
    columns_of_log: tuple[Column, ...]
    declared_sensitive: list[str]
    buckets: str
    keys: str | None
    verdicts: str
    verdicts_of_unique_keys: str
    readable: str
    lake_bucket: str
    export_bucket: str

    @classmethod
    def of(cls, values: dict) -> "Plan":
        """Return the plan that the macro has told as JSON."""
        columns = {name: tuple(Column(**each) for each in values[name] or ()) for name in ("columns", "columns_of_log")}
        return cls(**values | columns)

    @property
    def rules(self) -> dict:
        """The declared rules of each column that has some."""
        return {column.name: column.rules for column in self.columns if column.rules}

    @property
    def left_out(self) -> list[str]:
        """What is not compared because the test says so."""
        columns = [f"columns left out: {', '.join(self.not_compared)}"] if self.not_compared else []
        rows = [f"rows left out: only those with {self.where} are compared"] if self.where else []
        return columns + rows

    @property
    def names_of_key(self) -> str:
        """The columns of the key, as SQL."""
        return ", ".join(map(quoted, self.key))

    @property
    def key_of_log(self) -> str:
        """The columns of the key by their names in the log, as SQL."""
        return ", ".join(map(quoted, self.log_key.values()))

    @property
    def own_key_of_log(self) -> str:
        """The columns of the key from the log, with their names in the table, as SQL."""
        return ", ".join(f"{quoted(log)} as {quoted(own)}" for own, log in self.log_key.items())

    @property
    def is_keyed_as_its_log(self) -> bool:
        """Whether a row and its changes have the same key."""
        return bool(self.log_key) and set(self.log_key) == set(self.key)

    def columns_but(self, names: list[str]) -> list[Column]:
        """Return the columns that are not among these."""
        return [column for column in self.columns if column.name not in names]

    def lake_as_of(self, position: str) -> str:
        """Return a select of the rows of the lake as of a sequence."""
        return self.rows_at_position.replace(self.marks["position"], position)

    def log_as_of(self, position: str) -> str:
        """Return a select of the rows as of a sequence, from the log alone."""
        return self.rows_of_log.replace(self.marks["position"], position)

    def keys_changed_since(self, position: str) -> str:
        """Return a select of the keys that changed behind a sequence, by their names in the log."""
        return self.changed_since.replace(self.marks["position"], position)

    def compared_with_log(self, position: str | None, log_batch: int) -> str:
        """Return a select of verdicts: what the table shows beside what the log says up to a batch.

        Arguments:
            position: of the keys that changed behind this sequence; None: of all.
        """
        sql = self.verdicts_of_log if position else self.verdicts_of_whole_log
        return sql.replace(self.marks["log_batch"], str(log_batch)).replace(self.marks["position"], position or "")

    @property
    def of_log(self) -> "Plan":
        """This plan with the key and columns that are compared with the log."""
        columns = self.columns_of_log
        sensitive = [column.name for column in columns if column.name.lower() in self.declared_sensitive]
        return replace(self, key=[*self.log_key], columns=columns, sensitive=sensitive, where=None)

    def versions_between(self, start: str, end: str) -> str:
        """Return a select of the versions of rows that were valid between two sequences."""
        return self.versions.replace(self.marks["start"], start).replace(self.marks["position"], end)

    def compare(self, form: str, parts: dict[str, str]) -> str:
        """Return the SQL of a form of comparing (`keys`, `verdicts` …) for the relations of `lake` and `export`."""
        sql = getattr(self, form)
        return sql.replace("{lake_part}", parts["lake"]).replace("{export_part}", parts["export"])


@dataclass(frozen=True)
class Unplanned:
    """A table of which dbt cannot say how it is compared, and why."""

    table: str
    why: str


def plans(tables) -> list[Plan | Unplanned]:
    """Return what has to be asked of each table, or of all: a plan for every test matches_export.

    Raises: CheckError when dbt fails.
    """
    answers, why = _ask_dbt(tables)
    if answers is not None:
        return [Plan.of(each) for each in answers]
    if len(tables) == 1:
        return [Unplanned(tables[0], why)]
    # one of them has an error: find out which
    names = tables or sorted(entity for entity, _ in logged_tables())
    return [plan for name in names for plan in plans((name,))]


def _ask_dbt(tables) -> tuple[list[dict] | None, str]:
    """Return what the macro tells; None: it cannot, and why."""
    from dbt.cli.main import dbtRunner

    answers, errors = [], []

    def listen(event):
        kind, value = dbt.handed_over(event)
        if kind == "reconciliation plan":
            answers.extend(value)
        if event.info.name == "RunningOperationCaughtError":
            errors.append(" ".join(str(event.data.exc).split()).removeprefix("Runtime Error "))

    dbt.set_defaults()
    arguments = ["run-operation", "highwater.reconciliation_plan", "--args", json.dumps({"tables": list(tables)})]
    result = dbtRunner(callbacks=[listen]).invoke([*arguments, "--quiet", "--log-level", "none"])
    if result.exception:
        raise CheckError(" ".join(str(result.exception).split()))
    return (answers, "") if result.success else (None, _why_in(" ".join(errors)))


def _why_in(errors: str) -> str:
    """Return what an error of dbt says, without where it stands."""
    words = re.search(r"(?:Compilation Error (?:in macro \S+ \(\S+\) )?)?([^>]*)", errors)[1].strip()
    return words or "dbt could not say how to compare it"
