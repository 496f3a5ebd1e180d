"""Staging: what fits a type and what does not, to the digit; and the other reasons for rejection."""

import json
import random
from decimal import Decimal
from pathlib import Path

import pytest
from highwater.catalog.entities import declared_columns
from highwater.catalog.feeds import declared_feeds
from highwater.scaffold.fits import misfit, text_is_none
from jinja2 import Environment
from workshop import change

# column, delivered value (None: JSON null), expected value as text, or None where the record must be rejected
VALUES = [
    ("n", "1.25", "1.25"), ("n", 1.25, "1.25"), ("n", 1, "1.00"), ("n", "-999.99", "-999.99"), ("n", "1.2500", "1.25"),
    ("n", "125e-2", "1.25"), ("n", "1.255", None), ("n", 1.255, None), ("n", "1000", None), ("n", "125e-4", None),
    ("n", "abc", None), ("n", "", None), ("n", True, None),
    ("d", "2024-02-29", "2024-02-29"), ("d", "2024-02-29T00:00:00", "2024-02-29"), ("d", "2023-02-29", None),
    ("d", "2024-02-29T12:00:00", None), ("d", "2024", None), ("d", "2024-02", None),
    ("t", "2024-08-29 12:00:00.123456 UTC", "2024-08-29 12:00:00.123456"),
    ("t", "2024-08-29T12:00:00.123456Z", "2024-08-29 12:00:00.123456"),
    ("t", "2024-08-29T14:00:00+02:00", "2024-08-29 12:00:00"), ("t", "2024-08-29 12:00:00.1234567", None),
    ("t", "2024-08-29 12:00:00.1234560", "2024-08-29 12:00:00.123456"), ("t", "12:00", None),
    ("t", "2024-08-29 25:00:00", None),
    ("l", "2024-08-29T12:00:00.5", "2024-08-29 12:00:00.5"), ("l", "2024-08-29T12:00:00+02:00", None),
    ("b", True, "true"), ("b", "false", "false"), ("b", "maybe", None), ("b", 2, None),
    ("x", 0.1, "0.1"), ("x", "1e400", None), ("x", "Infinity", "Infinity"), ("x", "x", None), ("x", "1.5d", None),
    ("x", "2f", None), ("x", "0x1p3", None),
    ("y", "", ""), ("y", "AP8=", "00FF"), ("y", "AP8", None), ("y", "!!", None),
    ("s", "null", "null"), ("s", "", ""), ("s", 12, "12"),
    ("s", "{{ 1/0 }} '; drop table x", "{{ 1/0 }} '; drop table x"),
]  # fmt: skip
FEED = "datastream_types"
BAD_KEYS = ["1.5", "2147483648", "1e3", "", "0x10"]


BROKEN = [
    (b'{"id": 2000, "s": "cut', "malformed_record"),
    # documents one behind the other are records of their own, and so is what is between them
    (b'{"id": 2000}{"id": 2001}', [(b'{"id": 2000}', "unknown_operation"), (b'{"id": 2001}', "unknown_operation")]),
    (b'{"id": 2000} tail', [(b'{"id": 2000}', "unknown_operation"), (b"tail", "malformed_record")]),
    (b'{"id": 2000},{"id": 2001}', [(b'{"id": 2000}', "unknown_operation"), (b',{"id": 2001}', "malformed_record")]),
    (b'[{"id": 2000}]', [(b'{"id": 2000}', "unknown_operation")]),
    (b"null", "malformed_record"),
    (b'"text"', "malformed_record"),
    (b'{"id": 2000}],"x":[{}', [(b'{"id": 2000}', "unknown_operation"), (b'],"x":[{}', "malformed_record")]),
    (b"{'id': 2000}", "malformed_record"),
    (b'{"id": 2000, "s": "\xff"}', "not_utf8"),
    (b'{"id": 2000}', "unknown_operation"),
    (b'{"id": 2000, "datastream_metadata": "text"}', "malformed_record"),
    (b'{"id": 2000, "s": "a\\x", "datastream_metadata": {"change_type": "INSERT"}}', "malformed_record"),
    (b'{"id": 2000, "other": "a\\x", "datastream_metadata": {"change_type": "INSERT"}}', "malformed_record"),
    (b'{"id": 2000, "datastream_metadata": {"change_type": "INSERT", "sort_keys": [tru]}}', "malformed_record"),
    (json.dumps(change("UPSERT", "1", {"id": 2000})).encode(), "unknown_operation"),
    (json.dumps(change("INSERT", None, {"id": 2000})).encode(), "unreadable_sequence"),
    (json.dumps(change("INSERT", "", {"id": 2000})).encode(), "unreadable_sequence"),
    (json.dumps(change("INSERT", "12G", {"id": 2000})).encode(), "unreadable_sequence"),
    (json.dumps(change("INSERT", "1/", {"id": 2000})).encode(), "unreadable_sequence"),
    (json.dumps(change("INSERT", "-1", {"id": 2000})).encode(), "unreadable_sequence"),
    (json.dumps(change("INSERT", "1/2/3/4/5", {"id": 2000})).encode(), "unreadable_sequence"),
    (json.dumps(change("INSERT", "12345678901234567", {"id": 2000})).encode(), "unreadable_sequence"),
    (json.dumps(change("INSERT", "1", {"id": 2000}, at="soon")).encode(), "unreadable_commit_time"),
    (json.dumps(change("INSERT", "1", {"id": None})).encode(), "null_key"),
    (json.dumps(change("INSERT", "1", {"ID": 2000})).encode(), "null_key"),
]


@pytest.fixture(scope="module")
def readings(workshop):
    records = [
        change("INSERT", "1", {"id": number, column: value}) for number, (column, value, _) in enumerate(VALUES, 1)
    ]
    records += [change("INSERT", "2", {"id": key}) for key in BAD_KEYS]
    workshop.deliver("datastream_types.readings", "values.json", records)
    # what a delete carries beside its key is not looked at
    workshop.deliver("datastream_types.readings", "delete.json", [change("DELETE", "9", {"id": 1000, "n": "rubbish"})])
    workshop.deliver("datastream_types.readings", "rubbish.json", b"\n".join(record for record, _ in BROKEN))
    workshop.land_and_run("datastream_types", "+readings")
    columns = (
        "cast(n as string) n, cast(d as string) d, cast(t as string) t, cast(l as string) l, cast(b as string) b, "
        "cast(x as string) x, hex(y) y, s"
    )
    rows = workshop.spark.sql(
        f"select id, verdict, rejection_reason, rejection_detail, record, {columns} from readings_changes "
        "where source_file like '%/values.json' order by source_line"
    ).collect()
    return rows


@pytest.mark.parametrize("number", range(len(VALUES)), ids=lambda n: f"{VALUES[n][0]}={json.dumps(VALUES[n][1])}")
def test_value(readings, number):
    column, value, expected = VALUES[number]
    row = readings[number]
    if expected is None:
        assert (row.verdict, row.rejection_reason) == ("rejected", "value_does_not_fit")
        assert row.rejection_detail.startswith(f"{column} = [") and "does not fit" in row.rejection_detail
        assert json.loads(bytes(row.record))[column] == value
    else:
        assert (row.verdict, row[column]) == ("applied", expected)


def test_check_says_of_these_values_what_the_build_has_done(readings):
    """`highwater check` may be silent where it is not sure; what it says comes true."""
    columns, feed = {column.name: column for column in declared_columns("readings")[0]}, declared_feeds()[FEED]
    said = [bool(misfit(json.loads(json.dumps(v), parse_float=Decimal), columns[name], feed)) for name, v, _ in VALUES]
    done = [row.verdict == "rejected" for row in readings[: len(VALUES)]]
    differ = [VALUES[number] for number in range(len(VALUES)) if said[number] != done[number]]
    assert differ == [("n", "125e-4", None)], "what it is silent of"


TEXTS = """
|0|-0|+7|007|1.|.5|1.0|1.50|-1.00|469.07|99.99|100|127|128|-129|32768|2147483648|9223372036854775808|1e3|1E-3|1e400
3.5e38|1_000|1,000.5|0x10|1d|1.5f|1L| 1|1 |--1|+|.|e5|NaN|nan|-Infinity|inf|infinit|T|true|TRUE|yes|Y|on|off|no|0.0|tru
2024-02-29|2023-02-29|2024-2-9|2024-02-29T00:00|2024-02-29 00:00:00.000|2024-02-29T00:00:01|2024-02-29T00:00Z
2024-02-29 23:59:59.123456|2024-02-29T24:00:00|2024-02-29T23:60:00|2024-02-29T23:59:60|2024-02-29T23:59:59.1234567
2024-02-29T23:59:59.1234560|2024-02-29T23:59:59+02:00|2024-02-29T23:59:59+19:00|2024-02-29 23:59:59 UTC|0000-01-01
2024-02-29T23:59:59+0200|2024-02-29T23:59:59 Europe/Berlin|10000-01-01|99999-01-01|2024-13-01|2024-00-10|20240229
12:00:00|2024-02-29T1:00|2024-02-29T10:00:00.|2024-02-29T10:00:00.1| 2024-02-29|2024-02-29 |24-02-29|n/a|null|{}|[]
AP8=|AP8|AP8A|!!|00ff|00f|00FG|====|A===|AA==|größe|٣|2024-02|2024-02-29Z| true|1.000000000000000000000000000000000000
"""
KINDS = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(4,2)", "decimal(38,0)", "date"]
KINDS += ["timestamp", "timestamp_ntz", "binary", "string"]
# what Java and Spark make of it is not asked twice
SILENT = {"1e400", "3.5e38", "1E-3", "1e3", "2024-02-29T23:59:59+19:00", "größe", "٣", "10000-01-01", "99999-01-01"}
SILENT |= {"0000-01-01", "2024-02-29T23:59:59+0200", "====", "A===", "infinit", "1 ", " 1", "1.", "2024-02-29T00:00Z"}


class Macros:
    """The macros of staging that say what a text is, as dbt renders them."""

    def __init__(self):
        names = ("typed_value", "fits_type")
        text = "".join(next(Path("macros/staging").glob(f"*/{name}.sql")).read_text() for name in names)
        module = Environment().from_string(text).make_module({"highwater": self})
        self.typed_value, self.fits_type = module.typed_value, module.fits_type

    def decimal_digits(self, data_type: str) -> list[int]:
        return [int(part) for part in data_type[8:-1].split(",")]

    def fits(self, *kind: str) -> str:
        return str(self.fits_type("text", f"({self.typed_value('text', *kind)})", *kind))


def odd_texts(picks: random.Random) -> list[str]:
    """Texts like those of the list with some characters taken out, put in or changed; numbers and moments."""
    texts, letters = TEXTS.strip("\n").replace("\n", "|").split("|"), "0123456789+-.eE:TZ/ =aAfFnNxX_,dt\t"

    def changed(text: str) -> str:
        for _ in range(picks.randrange(1, 4)):
            at = picks.randrange(len(text) + 1)
            text = text[:at] + picks.choice([*letters, ""]) + text[at + picks.randrange(2) :]
        return text

    def digits(most: int) -> str:
        return "".join(picks.choices("0123456789", k=picks.randrange(most)))

    def number() -> str:
        behind = picks.choice(["", f".{digits(6)}", ".000", f"e{picks.randrange(-45, 45)}"])
        return picks.choice(["", "-", "+"]) + digits(picks.choice([3, 6, 12, 20, 42])) + behind

    def moment() -> str:
        day = f"{picks.randrange(12000):04}-{picks.randrange(14):02}-{picks.randrange(33):02}"
        time = f"{picks.randrange(26):02}:{picks.randrange(62):02}:{picks.randrange(62):02}"
        zone = picks.choice(["", "", "Z", " UTC", "+02:00", "-18:30", "+2", "+0200", "+02:00:30"])
        return day + picks.choice(["", f"T{time}", f" {time}.{digits(9)}", "T00:00:00.000"]) + zone

    return [make() for _ in range(500) for make in (number, moment, lambda: changed(picks.choice(texts)))]


def test_check_says_of_texts_what_the_macros_say(workshop):
    texts, macros = TEXTS.strip("\n").replace("\n", "|").split("|"), Macros()
    listed, seed = {*texts}, random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    texts += odd_texts(random.Random(seed))
    kinds = [(kind, "base64") for kind in KINDS] + [("binary", "hex")]
    expressions = [f"coalesce({macros.fits(*kind)}, false) as c{number}" for number, kind in enumerate(kinds)]
    rows = workshop.spark.createDataFrame([(text,) for text in texts], "text string").selectExpr("text", *expressions)
    wrong, silent = [], set()
    for text, *fit in map(tuple, rows.collect()):
        for kind, does_fit in zip(kinds, fit, strict=True):
            is_none = text_is_none(text, kind[0], kind[1] == "hex")
            wrong += [(text, kind)] if is_none and does_fit else []
            silent |= {text} & listed if not is_none and not does_fit else set()
    assert not wrong and silent <= SILENT, (wrong, silent)


@pytest.mark.parametrize("place", range(len(BAD_KEYS)), ids=BAD_KEYS)
def test_a_key_that_does_not_fit_is_rejected(readings, place):
    row = readings[len(VALUES) + place]
    assert (row.verdict, row.rejection_reason) == ("rejected", "value_does_not_fit")


def test_a_delete_is_told_by_its_key(readings, workshop):
    assert workshop.rows("select verdict from readings_changes where id = 1000") == [("applied",)]


def test_broken_records_are_rejected_with_reason_line_and_bytes(readings, workshop):
    rows = workshop.rows(
        "select source_line, rejection_reason, record from readings_changes where source_file like '%/rubbish.json'"
    )
    expected = [
        (line, reason, record)
        for line, (text, found) in enumerate(BROKEN, 1)
        for record, reason in (found if isinstance(found, list) else [(text, found)])
    ]
    assert sorted((line, reason, bytes(record)) for line, reason, record in rows) == sorted(expected)
    details = (
        "select rejection_reason, rejection_detail from readings_changes where rejection_reason is not null "
        "and (coalesce(rejection_detail, '') = '' or startswith(rejection_detail, rejection_reason))"
    )
    assert workshop.rows(details) == []


def test_every_reason_is_in_the_closed_list(readings, workshop):
    known = {row[0] for row in workshop.rows("select rejection_reason from rejection_reasons")}
    used = {row[0] for row in workshop.rows("select rejection_reason from readings_changes where verdict = 'rejected'")}
    assert used <= known
    unused = {"unknown_form", "wrong_column_count", "unknown_source", "partial_image", "truncated_shard", "ignored"}
    assert known - used == unused


@pytest.mark.soak
def test_a_wider_type_is_taken_when_both_tables_have_it(readings, workshop, monkeypatch):
    """An insert would cast to the table's own type: 3000000000 would not fit, and 2.5 would become 2."""
    monkeypatch.setenv("HIGHWATER_COLUMNS", "")
    declared = workshop.folder / "models/tables/types/readings.yml"
    declared.write_text(declared.read_text().replace("data_type: int", "data_type: bigint"))
    workshop.deliver("datastream_types.readings", "wider.json", [change("INSERT", "1", {"id": 3_000_000_000})])
    workshop.land("datastream_types")
    for table in ("readings_changes", "readings_merged"):
        refused = workshop.dbt("compile", "--select", "readings_changes").exception
        assert f"{table} has id as int, and it is declared as bigint. Nothing was applied." in str(refused)
        workshop.spark.sql(f"alter table {table} set tblproperties ('delta.enableTypeWidening' = 'true')")
        workshop.spark.sql(f"alter table {table} alter column id type bigint")
    workshop.build("+readings", command="run")
    assert workshop.rows("select id from readings where id > 2147483647") == [(3_000_000_000,)]
