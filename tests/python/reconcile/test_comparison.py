"""The comparison with exports: planted and generated differences, all found and named; equal tables, no false alarm.

Every pair of tables has its own number in the key, so that one query compares all of them.
"""

import random
from datetime import date, datetime, timezone
from decimal import Context, Decimal

import pytest
from pyspark.sql import functions as f

COLUMNS = {
    "a": "string",
    "b": "string",
    "n": "decimal(38,9)",
    "l": "bigint",
    "x": "double",
    "f": "float",
    "t": "timestamp",
    "z": "timestamp_ntz",
    "d": "date",
    "y": "binary",
    "o": "boolean",
    "s": "struct<p: string, q: timestamp>",
    "r": "array<string>",
    "m": "map<string, string>",
    "v": "array<struct<i: int, w: map<string, array<int>>>>",
}
NAN = float("nan")
EXACT = Context(prec=60)
NOON = datetime(2024, 10, 27, 12, 0, 0, 123456, tzinfo=timezone.utc)

# what is in the lake, what is in the export, and the verdicts that are not `equal`, with columns, by key
DIFFERENT = {
    "value": ([("1", {"a": "x"})], [("1", {"a": "y"})], {"1": "value_differs a"}),
    "value to NULL": ([("1", {"a": None})], [("1", {"a": "y"})], {"1": "value_differs a"}),
    "NULL to value": ([("1", {"a": "x"})], [("1", {"a": None})], {"1": "value_differs a"}),
    "missing": ([("1", {})], [("1", {}), ("2", {})], {"2": "missing_in_lake"}),
    "extra": ([("1", {}), ("2", {})], [("1", {})], {"2": "extra_in_lake"}),
    "empty lake": ([], [("1", {}), ("2", {})], {"1": "missing_in_lake", "2": "missing_in_lake"}),
    "duplicate": ([("1", {"a": "x"})] * 2, [("1", {"a": "x"})], {"1": "duplicate_in_lake"}),
    "duplicate in the export": ([("1", {"a": "x"})], [("1", {"a": "x"})] * 2, {"1": "duplicate_in_export"}),
    "three and two": ([("1", {"a": "x"})] * 3, [("1", {"a": "x"})] * 2, {"1": "duplicate_in_lake"}),
    "two rows, one another": (
        [("1", {"a": "x"}), ("1", {"a": "y"})],
        [("1", {"a": "x"}), ("1", {"a": "x"})],
        {"1": "value_differs a"},
    ),
    "NULL in the next column": ([("1", {"b": "x"})], [("1", {"a": "x"})], {"1": "value_differs a b"}),
    "cut elsewhere": ([("1", {"a": "ab", "b": "c"})], [("1", {"a": "a", "b": "bc"})], {"1": "value_differs a b"}),
    "trailing blank": ([("1", {"a": "x "})], [("1", {"a": "x"})], {"1": "value_differs a"}),
    "case": ([("1", {"a": "X"})], [("1", {"a": "x"})], {"1": "value_differs a"}),
    "the word for NULL": ([("1", {"a": "<null>"})], [("1", {"a": None})], {"1": "value_differs a"}),
    "empty text": ([("1", {"a": ""})], [("1", {"a": None})], {"1": "value_differs a"}),
    "last digit": (
        [("1", {"n": Decimal("12345678901234567890123456789.123456789")})],
        [("1", {"n": Decimal("12345678901234567890123456789.123456788")})],
        {"1": "value_differs n"},
    ),
    "beyond doubles": ([("1", {"l": 2**53})], [("1", {"l": 2**53 + 1})], {"1": "value_differs l"}),
    "NULL key": ([(None, {"a": "x"}), ("1", {})], [(None, {"a": "y"}), ("1", {})], {None: "value_differs a"}),
    "extra NULL key": ([(None, {"a": "x"}), ("1", {})], [("1", {})], {None: "extra_in_lake"}),
    "not a number": ([("1", {"x": NAN})], [("1", {"x": None})], {"1": "value_differs x"}),
    "swapped rows": (
        [("1", {"a": "x"}), ("2", {"a": "y"})],
        [("1", {"a": "y"}), ("2", {"a": "x"})],
        {"1": "value_differs a", "2": "value_differs a"},
    ),
}
EQUAL = {
    "zero and its negative": ([("1", {"x": -0.0, "f": -0.0})], [("1", {"x": 0.0, "f": 0.0})], {}),
    "not a number twice": ([("1", {"x": NAN, "f": NAN})], [("1", {"x": NAN, "f": NAN})], {}),
    "duplicates in another order": (
        [("1", {"a": "x"}), ("1", {"a": "y"}), ("1", {"a": "y"})],
        [("1", {"a": "y"}), ("1", {"a": "x"}), ("1", {"a": "y"})],
        {},
    ),
    "NULL keys": ([(None, {"a": "x"}), (None, {})], [(None, {}), (None, {"a": "x"})], {}),
    "maps in another order": ([("1", {"m": {"p": "1", "q": None}})], [("1", {"m": {"q": None, "p": "1"}})], {}),
}
NESTED = {
    "NULL in another element": ([("1", {"r": [None, "a"]})], [("1", {"r": ["a", None]})], {"1": "value_differs r"}),
    "empty array": ([("1", {"r": []})], [("1", {"r": None})], {"1": "value_differs r"}),
    "array of NULL": ([("1", {"r": []})], [("1", {"r": [None]})], {"1": "value_differs r"}),
    "struct of NULLs": ([("1", {"s": (None, None)})], [("1", {"s": None})], {"1": "value_differs s"}),
    "NULL in another field": (
        [("1", {"s": ("x", None)})],
        [("1", {"s": ("x", NOON)})],
        {"1": "value_differs s"},
    ),
    "microsecond in a struct": (
        [("1", {"s": ("x", NOON)})],
        [("1", {"s": ("x", NOON.replace(microsecond=123457))})],
        {"1": "value_differs s"},
    ),
    "value of a map": ([("1", {"m": {"p": "1"}})], [("1", {"m": {"p": None}})], {"1": "value_differs m"}),
    "empty map": ([("1", {"m": {}})], [("1", {"m": None})], {"1": "value_differs m"}),
    "map inside": (
        [("1", {"v": [(1, {"p": [1, 2], "q": None})]})],
        [("1", {"v": [(1, {"p": [2, 1], "q": None})]})],
        {"1": "value_differs v"},
    ),
    "map inside in another order": (
        [("1", {"v": [(1, {"p": [1], "q": None}), None]})],
        [("1", {"v": [(1, {"q": None, "p": [1]}), None]})],
        {},
    ),
}
# of the lists that the project was built after
CASES = {
    "D14": (
        [("1", {"a": "a"}), ("2", {"a": None}), ("3", {"a": "c"}), ("4", {"a": "d"}), ("4", {"a": "d"})],
        [("1", {"a": "a"}), ("2", {"a": "b"}), ("3", {"a": None}), ("4", {"a": "d"}), ("5", {"a": "e"})],
        {"2": "value_differs a", "3": "value_differs a", "4": "duplicate_in_lake", "5": "missing_in_lake"},
    ),
    "T11 a line end that the file has lost": (
        [("1", {"a": "l1l2"})],
        [("1", {"a": "l1\nl2"})],
        {"1": "value_differs a"},
    ),
    "G16 a delete that row versions do not see": (
        [("1", {}), ("2", {}), ("3", {})],
        [("1", {}), ("2", {})],
        {"3": "extra_in_lake"},
    ),
}
PLANTED = {**DIFFERENT, **EQUAL, **NESTED, **CASES}


def test_the_list_has_27_pairs():
    assert (len(DIFFERENT), len(EQUAL)) == (22, 5)


class Pairs:
    """Two views of many small pairs of tables, and what must be found in them."""

    def __init__(self, workshop, name: str):
        self.workshop, self.name = workshop, name
        self.rows, self.expected = {"lake": [], "export": []}, {}

    def add(self, pair: str, lake: list, export: list, expected: dict):
        for side, rows in (("lake", lake), ("export", export)):
            self.rows[side] += [(pair, key, *(values.get(name) for name in COLUMNS)) for key, values in rows]
        self.expected |= {(pair, key): verdict for key, verdict in expected.items()}

    def view(self, side: str) -> str:
        return f"{self.name}_{side}"

    def create(self, rewrite=lambda side, frame: frame):
        schema = "pair string, k string, " + ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        for side, rows in self.rows.items():
            frame = self.workshop.spark.createDataFrame(rows, schema)
            rewrite(side, frame).createOrReplaceTempView(self.view(side))
        return self

    def sql(self, macro: str, key=("pair", "k"), names=("pair", "k", *COLUMNS), options="", rules="") -> str:
        views = f"'{self.view('lake')}', '{self.view('export')}'"
        columns = f"comparable_columns({views}, {list(names)}{rules})"
        return compiled(self.workshop, f"{{{{ {macro}({views}, {list(key)}, {columns}{options}) }}}}")

    def found(self, sql: str) -> dict:
        rows = self.workshop.spark.sql(f"{sql} where `row verdict` <> 'equal'").collect()
        return {(row.pair, row.k): " ".join([row["row verdict"], *row["differing columns"]]) for row in rows}


def compiled(workshop, text: str) -> str:
    result = workshop.dbt("compile", "--inline", text)
    if result.exception:
        raise result.exception
    return result.result.results[0].node.compiled_code


@pytest.fixture(scope="module")
def planted(workshop):
    pairs = Pairs(workshop, "planted")
    for name, (lake, export, expected) in PLANTED.items():
        pairs.add(name, lake, export, expected)
    return pairs.create(with_maps_in_another_order)


def with_maps_in_another_order(side: str, frame):
    """Maps of Python reach Spark in the order of their hashes; those of the export are turned round."""
    if side == "lake":
        return frame
    turned = "map_from_entries(reverse(map_entries({0})))"
    inside = f"if(x is null, null, struct(x.i as i, {turned.format('x.w')} as w))"
    return frame.withColumns({"m": f.expr(turned.format("m")), "v": f.expr(f"transform(v, x -> {inside})")})


@pytest.fixture(scope="module")
def verdicts(planted):
    return planted.sql("row_verdicts")


def test_every_planted_difference_is_found_and_named(planted, verdicts):
    assert planted.found(verdicts) == planted.expected


@pytest.mark.parametrize("case", CASES)
def test_case(planted, verdicts, case):
    found = planted.found(verdicts)
    assert {key: verdict for (pair, key), verdict in found.items() if pair == case} == CASES[case][2]


# what the comparison would miss if it were written otherwise: the pairs can tell
MISTAKES = {
    "one side only": ("full outer join", "left join", "missing"),
    "keys that are not NULL-safe": ("lake.`k` <=> export.`k`", "lake.`k` = export.`k`", "NULL key"),
    "rows counted once": ("count(*) as `row count`", "1 as `row count`", "duplicate"),
    "one row per key": ("sort_array(collect_list(struct(", "array(any_value(struct(", "duplicates in another order"),
    "maps in their own order": ("sort_array(map_entries(`m`))", "map_entries(`m`)", "maps in another order"),
    "sides confused": ("'missing_in_lake'", "'extra_in_lake'", "missing"),
    "duplicates on one side": (
        "when lake.`row count` < export.`row count` then",
        "when false then",
        "duplicate in the export",
    ),
    "keys only": ("not lake.`compared values` <=> export.`compared values` then 'value", "false then 'value", "value"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_comparison_is_noticed(planted, verdicts, mistake):
    right, wrong, missed = MISTAKES[mistake]
    assert right in verdicts
    found = planted.found(verdicts.replace(right, wrong))

    def of_pair(found):
        return {key: verdict for key, verdict in found.items() if key[0] == missed}

    assert of_pair(found) != of_pair(planted.expected)


# as many that no two of the planted keys share one
BUCKETS = 2**20


def in_many_buckets(planted) -> str:
    """The SQL that compares buckets, of which it has more than the product."""
    sql, few = planted.sql("differing_buckets"), "), 16384)"
    assert sql.count(few) == 2
    return sql.replace(few, f"), {BUCKETS})")


def buckets(planted, sql: str) -> tuple[set, set]:
    """The buckets that differ, and those of the keys that were planted different."""
    differing = {row.bucket for row in planted.workshop.spark.sql(f"{sql} where differs").collect()}
    keys = planted.workshop.spark.createDataFrame(list(planted.expected), "pair string, k string")
    hashed = keys.selectExpr(f"pmod(xxhash64(pair, k), {BUCKETS}) as bucket")
    return differing, {row.bucket for row in hashed.collect()}


@pytest.mark.long
def test_checksums_differ_where_rows_do_and_nowhere_else(planted):
    sql = in_many_buckets(planted)
    differing, wanted = buckets(planted, sql)
    assert differing == wanted
    # xxhash64 passes over NULLs: without their places a NULL in the next column is not seen
    assert "if(`a` is null, " in sql
    blind, _ = buckets(planted, sql.replace("is null, ", "is null and false, "))
    assert blind < wanted


def keys(pairs, sql: str) -> set:
    return {
        (row.pair, row.k) for row in pairs.workshop.spark.sql(f"select * from ({sql}) where `is different`").collect()
    }


def test_hashes_differ_for_the_keys_that_differ_and_for_no_other(planted):
    sql = planted.sql("differing_keys")
    assert keys(planted, sql) == set(planted.expected)
    assert "if(`a` is null, " in sql
    assert keys(planted, sql.replace("is null, ", "is null and false, ")) < set(planted.expected)


@pytest.mark.long
def test_keyless_tables_are_compared_as_bags(workshop):
    pairs = Pairs(workshop, "keyless")
    cases = {
        "equal": (["x", None, "x"], ["x", "x", None], {}),
        "once more": (["x", "x"], ["x"], {"x": "duplicate_in_lake"}),
        "once less": (["x"], ["x", "x"], {"x": "duplicate_in_export"}),
        "another value": (["x"], ["y"], {"x": "extra_in_lake", "y": "missing_in_lake"}),
        "NULL": (["x", None], ["x"], {None: "extra_in_lake"}),
    }
    for name, (lake, export, expected) in cases.items():
        sides = [[(value, {"m": {"p": value, "q": "1"}, "r": [value]}) for value in side] for side in (lake, export)]
        pairs.add(name, *sides, expected)
    pairs.create()
    assert pairs.found(pairs.sql("row_verdicts", key=())) == pairs.expected
    assert workshop.value(f"select count(*) from ({pairs.sql('differing_buckets', key=())} where differs)") > 0


def row_of(picks: random.Random) -> dict:
    """A row of every type; NULLs, too."""
    values = {
        "a": picks.choice(["x", "y", "", " ", "ü", "x'y", "NULL"]),
        "b": str(picks.randrange(1000)),
        "n": EXACT.scaleb(Decimal(picks.randrange(-(10**38) + 2, 10**38 - 1)), -9),
        "l": picks.randrange(-(2**63), 2**63),
        "x": picks.choice([NAN, 0.0, -0.0, picks.random(), 1e300]),
        "f": picks.choice([NAN, 0.0, 0.5, 1.5]),
        "t": NOON.replace(microsecond=picks.randrange(10**6)),
        "z": datetime(2024, 3, 31, 2, 30, 0, picks.randrange(10**6)),
        "d": date(picks.randrange(1, 9999), 2, 3),
        "y": picks.randbytes(3),
        "o": picks.random() < 0.5,
        "s": (picks.choice(["p", None]), NOON.replace(microsecond=picks.randrange(10**6))),
        "r": picks.choices(["a", None, ""], k=3),
        "m": {"p": picks.choice(["1", None]), "q": "2"},
        "v": [(picks.randrange(3), {"w": [picks.randrange(3), None]}), None],
    }
    return {name: None if picks.random() < 0.1 else value for name, value in values.items()}


# another value than this one, by column; the smallest difference that the type knows
OTHER = {
    "a": lambda value: f"{value or ''} ",
    "b": lambda value: (value or "") + "0",
    "n": lambda value: EXACT.add(value or Decimal(0), Decimal("1e-9")),
    "l": lambda value: (value or 0) ^ 1,
    "x": lambda value: 1.0 if value is None or value != value else value + max(abs(value), 1) * 1e-15,
    "f": lambda value: 2.5,
    "t": lambda value: (value or NOON).replace(microsecond=((value or NOON).microsecond + 1) % 10**6),
    "z": lambda value: (value or datetime(2024, 1, 1)).replace(year=2023),
    "d": lambda value: date(9999, 12, 31),
    "y": lambda value: (value or b"") + b"\0",
    "o": lambda value: not value,
    "s": lambda value: ("other", None),
    "r": lambda value: [*(value or []), None],
    "m": lambda value: {**(value or {}), "p": "other"},
    "v": lambda value: [*(value or []), (7, {"w": [None]})],
}


def fault(picks: random.Random, number: int, rows: list) -> tuple[list, dict]:
    """The rows with one fault in them, by turns each kind in each column; and what must be found."""
    kinds = ["other", "null", "drop", "add", "twice"]
    kind, column = kinds[number % len(kinds)], list(COLUMNS)[number // len(kinds) % len(COLUMNS)]
    rows = [(key, dict(values)) for key, values in rows]
    place = picks.randrange(len(rows))
    key, values = rows[place]
    if kind == "drop":
        return rows[:place] + rows[place + 1 :], {key: "missing_in_lake"}
    if kind == "add":
        return [*rows, ("new", values)], {"new": "extra_in_lake"}
    if kind == "twice":
        return [*rows, (key, values)], {key: "duplicate_in_lake"}
    if kind == "null" and values[column] is not None:
        values[column] = None
    else:
        values[column] = OTHER[column](values[column])
    return rows, {key: f"value_differs {column}"}


def rewritten(workshop, tmp_path_factory):
    """Rows in another order, in other files, written in another time zone."""

    def rewrite(side, frame):
        if side == "lake":
            return frame
        path = str(tmp_path_factory.mktemp("rewritten") / "rows")
        spark = workshop.spark
        zone = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
        try:
            frame.repartition(7).sortWithinPartitions("k").write.parquet(path)
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)
        return spark.read.parquet(path)

    return rewrite


@pytest.fixture(scope="module")
def generated(workshop, tmp_path_factory):
    """180 pairs with one fault each, and 100 that are equal."""
    picks, pairs = random.Random(6), Pairs(workshop, "generated")
    for number in range(280):
        rows = [(str(key), row_of(picks)) for key in range(12)]
        expected = {}
        lake = list(rows)
        if number < 180:
            lake, expected = fault(picks, number, rows)
        picks.shuffle(lake)
        pairs.add(str(number), lake, rows, expected)
    return pairs.create(rewritten(workshop, tmp_path_factory))


@pytest.mark.long
def test_generated_faults_are_found_and_equal_tables_give_no_alarm(generated):
    assert len(generated.expected) == 180
    assert generated.found(generated.sql("row_verdicts")) == generated.expected


@pytest.mark.long
def test_generated_faults_change_the_checksums(generated):
    differing, wanted = buckets(generated, in_many_buckets(generated))
    assert wanted <= differing
    # 0.0 and -0.0 inside nested values have no part in these rows, so nothing else may differ
    assert differing == wanted


@pytest.mark.long
def test_generated_faults_change_the_hashes_of_their_keys(generated):
    assert keys(generated, generated.sql("differing_keys")) == set(generated.expected)


@pytest.mark.long
def test_with_keys_that_are_known_to_be_unique_nothing_else_is_found(generated):
    sql = generated.sql("row_verdicts", options=", has_unique_keys=true")
    unique = {key: verdict for key, verdict in generated.expected.items() if "duplicate" not in verdict}
    found = generated.found(sql)
    assert {key: verdict for key, verdict in found.items() if key in unique} == unique
