"""Columns of any name, through everything behind staging: no name of a user meets one that the project uses itself.

Staging models are replaced by tables of records in the change contract, so the tests are about what is behind them.
"""

import random
import shutil
from datetime import datetime, timedelta

import pytest
import yaml
from highwater.catalog.columns import contract, parse_columns
from highwater.catalog.entities import declared_columns
from highwater.catalog.feeds import declared_feeds
from highwater.landing.raw_table import create_raw_table
from highwater.reconcile.reconcile import reconcile
from highwater.reconcile.verdict import FAIL, PASS
from highwater.upkeep.compact import compact
from highwater.upkeep.rebuild import rebuild
from workshop import in_soak_but


def words(text: str) -> list[str]:
    return text.split()


# what macros and Python call things inside, now or before, and what stands beside them
INTERNAL = words("""
    applied_batch arrived arriving arriving_keys base based batch batch_order before bounded bucket carried change
    change_order changes classified closing column columns compared compared_values current current_changes
    current_order current_rows cut differing differs document earlier entry export export_rows export_values fields
    folded found held high_bits history image is_based is_copy is_gone is_merged is_there item key keys lake
    lake_rows lake_values latest layers log low_bits met metadata name numbered old_id order_before
    order_of_is_there ordered ordinal part parts pending place placed position problem published rank ranked row
    row_count row_hash rows sided side sides standing standing_order states surplus applied text this touched
    truncated_below truncated_order truncates typed value version versions waiting is_pending_row least_id
    greatest_id order_of_name latest_name batch_of_name
""")
# the project stores these beside the columns of a table
STORED = words(
    "feed verdict change_type landed_at log_batch is_current valid_from valid_to record column_orders is_new "
    "source_valid_from source_source_valid_from"
)
OF_SQL = words("""
    left right on full order group select from case end interval date timestamp user table values union exists not 2fa
    current_date array map struct cross semi anti using natural lateral window true false null is in between like and
    or as by having limit cast 1e5 2d 007 all any except filter over partition range distinct default
""")
OTHER_LETTERS = ["größe", "名前", "цена", "naïve", "_", "__x", "a" * 128]


class Named:
    """A table whose records are given in the change contract; it knows the rows that the table should have."""

    def __init__(self, workshop, entity: str, key: list[str], names: list[str], is_partial: bool):
        self.workshop, self.entity, self.is_partial = workshop, entity, is_partial
        self.feed = f"{'debezium' if is_partial else 'datastream'}_{entity}"
        workshop.add_table(
            f"{self.feed}.{entity}",
            ",".join(f"{name}:{kind}" for name, kind in zip(key, ("int", "string"), strict=False)),
            ",".join(f"{name}:string" for name in names),
            "debezium-json" if is_partial else "datastream-json",
            {"connector": "postgresql"} if is_partial else None,
            history=True,
        )
        self.columns, self.key = declared_columns(entity)
        self.values = [column for column in self.columns if column.name not in self.key]
        self.batch, self.number, self.rows = 0, 0, {}
        create_raw_table(workshop.spark, declared_feeds()[self.feed])
        self._replace(f"stg_{self.feed}__{entity}_changes", f"ready_{entity}")

    def _replace(self, model: str, table: str):
        """Make a staging model read a table of the lake."""
        (path,) = self.workshop.folder.glob(f"models/staging/*/{model}.sql")
        feed, source = path.parent.name, self.entity
        path.write_text(f"-- depends on {{{{ source('{feed}', '{source}') }}}}\nselect * from lake.{table}\n")

    def arrive(self, *changes):
        """Let one batch arrive: (kind, key, columns that it carries or None, what its values begin with)."""
        self.batch += 1
        landed_at = datetime(2026, 1, 1) + timedelta(hours=self.batch)
        records = []
        for kind, key, carried, word in changes:
            self.number += 1
            present = [c.name for c in self.values] if carried is None else carried
            row = {c.name: f"{word} {c.field}" for c in self.values if c.name in present and kind != "delete"}
            self.rows[key] = None if kind == "delete" else {**(self.rows.get(key) if carried else {}), **row}
            of_key = (key, f"k{key}")[: len(self.key)]
            identity = dict(zip(self.key, of_key, strict=True))
            of_contract = {
                "change_sequence_number": f"{0:016x}/{self.number:016x}",
                "change_type": kind,
                "is_deleted": kind == "delete",
                "changed_at": landed_at,
                "present_columns": carried and [*self.key, *present],
                "is_derived": False,
                "change_hash": self.number,
                "source_file": f"{self.batch}.json",
                "source_line": len(records) + 1,
                "feed": self.feed,
                "landing_batch": self.batch,
                "landed_at": landed_at,
            }
            records.append([(identity | row | of_contract).get(name) for name in self._stored()])
        types = {c.name: c.data_type for c in self.columns} | {
            "is_deleted": "boolean",
            "changed_at": "timestamp",
            "present_columns": "array<string>",
            "is_derived": "boolean",
            "change_hash": "bigint",
            "source_line": "int",
            "landing_batch": "bigint",
            "landed_at": "timestamp",
            "record": "binary",
        }
        schema = ", ".join(f"`{name}` {types.get(name, 'string')}" for name in self._stored())
        frame = self.workshop.spark.createDataFrame(records, schema).coalesce(1)
        frame.write.format("delta").mode("append").saveAsTable(f"lake.ready_{self.entity}")

    def _stored(self) -> list[str]:
        return [column.name for column in self.columns] + contract()

    def build(self, *others: str):
        staging = [f"stg_{self.feed}__{self.entity}_changes"] if self.batch == 1 else []
        parts = ("_changes", "_merged", "", *others)
        self.workshop.build(*staging, *[f"{self.entity}{part}" for part in parts], command="run")

    def expected(self) -> dict:
        names = {column.name: column.mart_name for column in self.values}
        return {
            key: {own: row.get(name) for name, own in names.items()}
            for key, row in self.rows.items()
            if row is not None
        }

    def found(self, relation=None, where="true") -> dict:
        """Rows of the mart, by the first column of the key."""
        first = next(column.mart_name for column in self.columns if column.name == self.key[0])
        own = [column.mart_name for column in self.values]
        rows = self.workshop.spark.table(relation or self.entity).where(where).collect()
        return {row[first]: {name: row[name] for name in own} for row in rows}

    def check(self):
        assert self.found() == self.expected()

    def some(self) -> list[str]:
        return [column.name for column in self.values][::2]

    def test(self):
        self.workshop.build(self.entity, f"{self.entity}_merged", f"{self.entity}_history", command="test")


def build_and_compact(table: Named):
    table.arrive(("insert", 1, None, "a"), ("insert", 2, None, "a"), ("insert", 3, None, "a"))
    table.build("_history")
    table.check()
    partial = table.some() if table.is_partial else None
    for round_, method in enumerate(("in-place", "full")):
        table.arrive(
            ("update", 1, partial, f"b{round_}"),
            ("delete", 2, None, ""),
            ("insert", 10 + round_, None, "new"),
            ("update", 3, None, f"c{round_}"),
        )
        table.build("_history")
        table.check()
        if method == "in-place":
            table.arrive(("insert", 2, None, "back"), ("update", 3, partial, "d"))
            table.build("_history")
            table.check()
            table.test()
        compact(table.workshop.spark, table.entity, method=method)
        table.check()
        table.test()
    rebuild(table.workshop.spark, table.entity)
    table.check()


def check_history(table: Named):
    """The versions that hold now, and those that held when the first batch had arrived, are right."""
    history = table.workshop.spark.table(f"{table.entity}_history").where("is_current")
    names = {column.version_name: column.mart_name for column in table.columns}
    history.selectExpr(*(f"`{name}` as `{own}`" for name, own in names.items())).createOrReplaceTempView("now_named")
    assert table.found("now_named") == table.expected()
    sequence = f"{0:016x}/{3:016x}"
    for source in ("changes", "history"):
        text = f"{{{{ rows_as_of(ref('{table.entity}_{source}'), '{table.entity}', sequence='{sequence}') }}}}"
        result = table.workshop.dbt("compile", "--inline", text)
        assert result.success, result.exception
        table.workshop.spark.sql(result.result.results[0].node.compiled_code).createOrReplaceTempView("then_named")
        first = {key: {c.mart_name: f"a {c.field}" for c in table.values} for key in (1, 2, 3)}
        assert table.found("then_named") == first, source


def check_export(table: Named):
    """A comparison with an export finds nothing, then the one value that is planted."""
    workshop, feed = table.workshop, f"exports_{table.entity}"
    workshop.add_table(f"{feed}.{table.entity}", format="csv", settings={"role": "export", "positions": table.feed})
    create_raw_table(workshop.spark, declared_feeds()[feed])
    exported = f"lake.exported_{table.entity}"
    names = ", ".join(f"`{column.mart_name}` as `{column.name}`" for column in table.columns)
    workshop.spark.sql(
        f"create or replace table {exported} using delta as select {names}, cast(null as string) as rejection_reason "
        f"from {table.entity}"
    )
    table._replace(f"stg_{feed}__{table.entity}", f"exported_{table.entity}")
    workshop.build(f"stg_{feed}__{table.entity}", command="run")
    for position, later in ((None, []), (f"sequence:{0:016x}/{table.number:016x}", [("update", 1, None, "later")])):
        # two entries of files: what has landed, and where the source stood
        workshop.spark.sql(
            f"insert into raw.{feed} (entry, source_table, source_file, source_position, landing_batch, landed_at, "
            f"file_modified_at, file_size, file_records) values ('file', '{table.entity}', '{len(later)}.csv', "
            f"{repr(position) if position else 'null'}, "
            f"{len(later) + 1}, current_timestamp(), current_timestamp(), 1, {len(table.expected())})"
        )
        if later:
            table.arrive(*later)
            table.build()
        (found,) = reconcile(workshop.spark, (table.entity,)).comparisons
        assert (found.verdict, found.differences) == (PASS, 0), found
    column = table.values[len(table.values) // 2]
    first = table.key[0]
    workshop.spark.sql(f"update {exported} set `{column.name}` = 'planted' where `{first}` = 3")
    workshop.spark.sql(f"delete from {exported} where `{first}` = 10")
    (found,) = reconcile(workshop.spark, (table.entity,)).comparisons
    assert found.verdict == FAIL, found
    assert {sample.verdict: sample.columns for sample in found.samples} == {
        "value_differs": [column.mart_name],
        "extra_in_lake": [],
    }
    (failed,) = workshop.dbt("test", "--select", f"matches_export_{table.entity}_*").result
    assert failed.failures == 3, failed.message


def check_snapshot(table: Named):
    name = f"{table.entity}_snapshot"
    own = {column.name: column.mart_name for column in table.columns}
    key = [own[column] for column in table.key]
    between = {"key": key, "valid_from": "dbt_valid_from", "valid_to": "dbt_valid_to"}
    snapshot = {
        "name": name,
        "relation": f"ref('{table.entity}')",
        "config": {
            "unique_key": [f"`{column}`" for column in key],
            "strategy": "check",
            "check_cols": "all",
            "hard_deletes": "invalidate",
        },
        "data_tests": [
            {"has_no_overlapping_versions": {"arguments": between}},
            {"has_current_rows_of": {"arguments": {"view": table.entity, "valid_to": "dbt_valid_to"}}},
        ],
    }
    path = table.workshop.folder / f"snapshots/{name}.yml"
    path.write_text(yaml.safe_dump({"snapshots": [snapshot]}, allow_unicode=True))
    try:
        for change in (("update", 1, None, "seen"), ("delete", 3, None, "")):
            table.workshop.build(name, command="snapshot")
            table.arrive(change)
            table.build()
        table.workshop.build(name, command="snapshot")
        assert table.found(name, "dbt_valid_to is null") == table.expected()
        table.workshop.build(name, command="test")
    finally:
        path.unlink()


def whole_path(workshop, entity: str, key: list[str], names: list[str], is_partial: bool):
    table = Named(workshop, entity, key, names, is_partial)
    build_and_compact(table)
    check_history(table)
    check_export(table)
    check_snapshot(table)


WORDS = list(dict.fromkeys(INTERNAL + STORED + OF_SQL + OTHER_LETTERS))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("entity", "key", "is_partial"),
    in_soak_but(
        [("order", ["standing", "not"], True)],
        [("order", ["standing", "not"], True), ("left", ["change_order", "名前"], False), ("union", ["value"], True)],
    ),
)
def test_words_of_the_project_and_of_sql_are_names_like_others(workshop, entity, key, is_partial):
    whole_path(workshop, entity, key, [name for name in WORDS if name not in key], is_partial)


def random_name(picks: random.Random) -> str:
    letters = "abcdefghijklmnopqrstuvwxyzäßøłčζя中の0123456789_"
    word = picks.choice(WORDS) if picks.random() < 0.5 else ""
    drawn = "".join(picks.choice(letters) for _ in range(picks.randrange(1, 9)))
    return picks.choice([f"{word}_{drawn}", f"{drawn}_{word}", f"{word}{drawn}", f"old_{word or drawn}"])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_random_names(workshop, seed):
    picks = random.Random(seed)
    names = list(dict.fromkeys(random_name(picks) for _ in range(40)))
    names = [name for name in names if len(parse_columns(f"{name}:string")) == 1]
    whole_path(workshop, f"random_{seed}", names[:2], names[2:], is_partial=seed % 2 == 0)


FAULTS = {
    "an internal name without its blank": ("judged_changes", "`change order`", "change_order"),
    "a column without its backticks": ("new_arrivals", "`{{ column.name }}`", "{{ column.name }}"),
}


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS)
def test_a_name_that_is_not_kept_apart_is_noticed(workshop, fault):
    """The control: with one name as it was, the same table is not built."""
    file, right, wrong = FAULTS[fault]
    path = workshop.folder / f"macros/merge/{file}.sql"
    sound = path.read_text()
    assert right in sound
    entity = "faulty_names_" + file.partition("_")[0]
    path.write_text(sound.replace(right, wrong))
    try:
        with pytest.raises(AssertionError, match=f"{entity}_changes"):
            table = Named(workshop, entity, ["id"], ["change_order", "not"], False)
            table.arrive(("insert", 1, None, "a"))
            table.build()
    finally:
        path.write_text(sound)
        for left in workshop.folder.glob(f"models/*/*/*{entity}*"):
            left.unlink()
        shutil.rmtree(workshop.folder / f"models/staging/datastream_{entity}")
