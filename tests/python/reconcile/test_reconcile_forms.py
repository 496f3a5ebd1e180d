"""Forms of one value in an export, each with another value beside it, and odd exports: PASS, FAIL or INCONCLUSIVE."""

import contextlib
import gzip
import itertools
import unicodedata

import pytest
import yaml
from highwater.catalog.feeds import declared_feeds
from highwater.landing.landing import skip
from highwater.reconcile import explain as reconcile_explain
from highwater.reconcile import reconcile as reconciliation
from highwater.reconcile.verdict import FAIL, INCONCLUSIVE, PASS
from highwater.runtime.errors import CheckError, UsageError
from workshop import change, in_soak_but

pytestmark = pytest.mark.soak

TYPES = {
    "S": "string",
    "N": "decimal(10,2)",
    "D": "decimal(38,9)",
    "I": "bigint",
    "X": "double",
    "F": "float",
    "T": "timestamp",
    "Z": "timestamp_ntz",
    "Y": "date",
    "O": "boolean",
    "B": "binary",
}
NAMES = ["ID", *TYPES]
NFC, NFD = (unicodedata.normalize(form, "Zoë Ångström") for form in ("NFC", "NFD"))
NOON = "2024-03-02T09:20:45Z"
DIGITS = "12345678901234567890123456789.12345678"
# column, value as the change has it, the same value in another form, another value; None: nothing between the commas
FORMS = {
    "bytes as PostgreSQL has them": ("B", "3q2+7w==", "\\xdeadbeef", "\\xdeadbeee"),
    "zero and its negative": ("X", "0.0", "-0.0", "-0.1"),
    "negative zero and zero": ("X", "-0.0", "0", "1e-300"),
    "not a number": ("X", "NaN", "nan", "0"),
    "not a number is not infinity": ("X", "NaN", "NaN", "Infinity"),
    "infinity": ("X", "Infinity", "inf", "-inf"),
    "negative infinity": ("X", "-Infinity", "-inf", "-1.7976931348623157e308"),
    "double in exponent form": ("X", "1.1", "1.1e0", "1.1000000000000003"),
    "double with more digits than it has": ("X", "0.1", "0.1000000000000000055511151231257827", "0.10000000000000002"),
    "smallest double": ("X", "4.9e-324", "4.9E-324", "0"),
    "float": ("F", "0.1", "0.10000000149", "0.10000001"),
    "blanks at the end of a decimal": ("N", "1.1", "1.10", "1.11"),
    "zeros before a decimal": ("N", "1.1", "001.10", "01.01"),
    "plus before a decimal": ("N", "1.1", "+1.1", "-1.1"),
    "decimal in exponent form": ("N", "1.1", "11E-1", "11E-2"),
    "decimal without digits behind the point": ("N", "7", "7.00", "7.01"),
    "decimal without a digit before the point": ("N", "0.5", ".5", ".05"),
    "blanks around a number": ("N", "5", " 5 ", " 6 "),
    "38 digits": ("D", f"{DIGITS}9", f"0{DIGITS}9", f"{DIGITS}8"),
    "the largest decimal": ("D", "9" * 29 + "." + "9" * 9, "9" * 29 + "." + "9" * 9, "9" * 29 + "." + "9" * 8 + "8"),
    "negative zero decimal": ("D", "0", "-0.000", "-0.000000001"),
    "integer with a fraction of zeros": ("I", "5", "5.0", "6.0"),
    "integer with zeros before it": ("I", "5", "005", "50"),
    "integer behind 2^53": ("I", "9007199254740993", "9007199254740993", "9007199254740992"),
    "lowest integer": ("I", "-9223372036854775808", "-9223372036854775808", "-9223372036854775807"),
    "moment in another zone": ("T", NOON, "2024-03-02 11:20:45+02:00", "2024-03-02 09:20:45+02:00"),
    "moment in a zone of hours, as PostgreSQL has it": ("T", NOON, "2024-03-02 11:20:45+02", "2024-03-02 11:20:45+01"),
    "moment in a zone of half hours": ("T", NOON, "2024-03-02 14:50:45+05:30", "2024-03-02 14:50:45+05:00"),
    "moment without a zone is UTC": ("T", NOON, "2024-03-02 09:20:45", "2024-03-02 09:20:46"),
    "moment before a day's end": ("T", NOON, "2024-03-01T23:20:45-10:00", "2024-03-02T23:20:45-10:00"),
    "fraction of a second": ("T", "2024-03-02T09:20:45.5Z", "2024-03-02 09:20:45.500000", "2024-03-02 09:20:45.500001"),
    "fraction of zeros": ("T", NOON, "2024-03-02 09:20:45.000000000", "2024-03-02 09:20:45.000001"),
    "midnight": ("T", "2024-03-02T00:00:00Z", "2024-03-02", "2024-03-03"),
    "local time": ("Z", "2024-03-31T02:30:00", "2024-03-31 02:30", "2024-03-31 03:30"),
    "date": ("Y", "2024-03-02", "2024-03-02 00:00:00", "2024-03-03"),
    "first day": ("Y", "0001-01-01", "0001-01-01", "0001-01-02"),
    "last day": ("Y", "9999-12-31", "9999-12-31", "9999-12-30"),
    "t": ("O", "true", "t", "f"),
    "f": ("O", "false", "f", "t"),
    "1": ("O", "true", "1", "0"),
    "0": ("O", "false", "0", "1"),
    "true in capitals": ("O", "true", "TRUE", "FALSE"),
    "yes": ("O", "true", "yes", "no"),
    "NULL is not false": ("O", "false", "false", None),
    "case of hex": ("B", "3q2+7w==", "DeadBeef", "deadbeee"),
    "bytes of zero": ("B", "AAA=", "0000", "00"),
    "no byte": ("B", "", "", None),
    "empty text": ("S", "", "", None),
    "NULL": ("S", None, None, ""),
    "the word NULL": ("S", "NULL", "NULL", None),
    "blank at the end of a text": ("S", "a ", "a ", "a"),
    "blank before a text": ("S", " a", " a", "a"),
    "case of a text": ("S", "a", "a", "A"),
    "number as text": ("S", "1.1", "1.1", "1.10"),
    "truth as text": ("S", "true", "true", "t"),
    "zeros before a number as text": ("S", "007", "007", "7"),
    "time as text": ("S", "09:20:45", "09:20:45", "09:20:45.0"),
    "JSON as text": ("S", '{"a": 1, "b": [2]}', '{"a": 1, "b": [2]}', '{"b": [2], "a": 1}'),
    "array as text": ("S", "{1,2}", "{1,2}", "{2,1}"),
    "normal forms of Unicode": ("S", NFC, NFC, NFD),
    "joined characters": ("S", "👩\u200d👧", "👩\u200d👧", "👩👧"),
    "line end in a text": ("S", "a\nb", "a\nb", "a b"),
    "line end of Windows in a text": ("S", "a\r\nb", "a\r\nb", "a\nb"),
    "quotes, comma and backslash": ("S", '"a", \\n', '"a", \\n', '"a", n'),
    "tab": ("S", "a\tb", "a\tb", "a    b"),
    "character of no width": ("S", "ab", "ab", "a\u200bb"),
}
# keys are text here: what stands in the place of each
KEYS = {"zeros before a key": ("007", "7"), "blank behind a key": ("k", "k "), "normal form of a key": (NFC, NFD)}
# what cannot be read as its type equals nothing, and is no difference either
UNREADABLE = {
    "comma as the point": ("N", "1.1", "1,10"),
    "thousands": ("N", "1000", "1,000.00"),
    "more digits than the type has": ("N", "1.1", "1.105"),
    "decimal that is not a number": ("N", "1.1", "NaN"),
    "number with its currency": ("N", "1.1", "€1.10"),
    "integer with a fraction": ("I", "5", "5.5"),
    "integer that is too large": ("I", "5", "9223372036854775808"),
    "infinite time": ("T", NOON, "infinity"),
    "nanosecond": ("T", NOON, "2024-03-02 09:20:45.000000001"),
    "day of the month first": ("Y", "2024-03-02", "02.03.2024"),
    "day that is none": ("Y", "2024-03-02", "2024-02-30"),
    "on": ("O", "true", "on"),
    "half a byte": ("B", "3q2+7w==", "deadbee"),
    "half a byte as PostgreSQL has them": ("B", "3q2+7w==", "\\xdeadbee"),
    "empty number": ("N", "1.1", ""),
}


def row_of(key: str, column=None, value=None) -> dict:
    return {**dict.fromkeys(NAMES), "ID": key, **({column: value} if column else {})}


ROWS = {
    **{name: row_of(name, column, value) for name, (column, value, _, _) in FORMS.items()},
    **{name: row_of(key) for name, (key, _) in KEYS.items()},
    **{name: row_of(name, column, value) for name, (column, value, _) in UNREADABLE.items()},
}


def same(name: str) -> dict:
    """The row of a case as the export has it where both are equal."""
    if name in FORMS:
        return row_of(name, FORMS[name][0], FORMS[name][2])
    if name in UNREADABLE:
        column, value, _ = UNREADABLE[name]
        return row_of(name, column, "deadbeef" if column == "B" else value)
    return ROWS[name]


def lines(rows, names=NAMES, delimiter=",", end="\r\n") -> str:
    """The rows as CSV; None is nothing between the commas, an empty text has quotes."""
    return "".join(delimiter.join(cell(row.get(name)) for name in names) + end for row in rows)


def cell(value: str | None) -> str:
    if value is None or (value and not set(value) & set(',;"\r\n')):
        return value or ""
    return '"' + value.replace('"', '""') + '"'


SAME = [same(name) for name in ROWS]
HEADER = ",".join(NAMES) + "\r\n"
WHOLE = HEADER + lines(SAME)


class Forms:
    """A table of one row a case, its exports, and the one comparison of each."""

    def __init__(self, workshop):
        self.workshop, self.numbers = workshop, itertools.count(1)
        types = ",".join(f"{name}:{kind}" for name, kind in TYPES.items())
        workshop.add_table("datastream_shapes.shapes", "ID:string", types)
        workshop.add_table(
            "exports_shapes.shapes", None, None, "csv", {"role": "export", "positions": "datastream_shapes"}
        )
        changes = [change("INSERT", f"{number:X}/1", row) for number, row in enumerate(ROWS.values(), 1)]
        workshop.deliver("datastream_shapes.shapes", "1.json", changes)
        self.deliver(WHOLE.encode())
        workshop.land("datastream_shapes", "exports_shapes")
        workshop.build("+shapes", "stg_exports_shapes__shapes", command="run")
        (self.plan,) = reconciliation.plans(("shapes",))

    def deliver(self, content: bytes, name="{}.csv") -> str:
        """Put an export into its folder, the newest one; return how the lake calls it."""
        number = next(self.numbers)
        name = name.format(f"shapes-{number:03}")
        path = self.workshop.deliver("exports_shapes.shapes", name, content, root=self.workshop.exports)
        beside = path.parent / "_exports.yml"
        entries = yaml.safe_load(beside.read_text()) if beside.exists() else {}
        moment = f"2098-01-01T00:{number // 60:02}:{number % 60:02}Z"
        beside.write_text(yaml.safe_dump({**entries, name: {"position": f"{len(ROWS):X}/1", "taken_at": moment}}))
        return f"exports_shapes/shapes/{name}"

    def reconcile(self, content: bytes | str, name="{}.csv"):
        """Compare the table with an export, and leave out what does not land."""
        content = content.encode() if isinstance(content, str) else content
        file = self.deliver(content, name)
        with contextlib.suppress(CheckError, UsageError):
            self.workshop.land("exports_shapes")
        with pytest.MonkeyPatch.context() as patch:
            # what is asked of a table does not depend on its export
            patch.setattr(reconciliation, "plans", lambda _: [self.plan])
            patch.setattr(reconcile_explain, "SAMPLES", 1000)
            (found,) = reconciliation.reconcile(self.workshop.spark, ("shapes",)).comparisons
        if found.export_file != file:
            skip(self.workshop.spark, declared_feeds(), file)
        return found


@pytest.fixture(scope="module")
def forms(workshop):
    return Forms(workshop)


def differing(found) -> dict:
    """What was found of each key that is not equal: the verdict, and the columns that differ."""
    return {each.key["id"]: " ".join([each.verdict, *each.columns]) for each in found.samples}


@pytest.fixture(scope="module")
def unequal(forms):
    """Every form is replaced by another value, and every key by another key; a row is there twice, and one is odd."""
    twins = [row_of(name, column, other) for name, (column, _, _, other) in FORMS.items()]
    keys = [row_of(other) for _, other in KEYS.values()]
    rest = [row_of("on", "O", "on"), *(same(name) for name in UNREADABLE if name != "on"), same(TWICE)]
    return forms.reconcile(HEADER + lines([*twins, *keys, *rest]))


@pytest.fixture(scope="module")
def unreadable(forms):
    """Every form and key is there in its other form, and the rest cannot be read."""
    odd = [row_of(name, column, odd) for name, (column, _, odd) in UNREADABLE.items()]
    return forms.reconcile(HEADER + lines([*map(same, [*FORMS, *KEYS]), *odd]))


TWICE = "day that is none"


def test_equal_forms_are_equal(unreadable):
    assert set(differing(unreadable)) == set(UNREADABLE)
    assert unreadable.keys("equal") == len(FORMS) + len(KEYS)


@pytest.mark.parametrize("form", FORMS)
def test_another_form_is_equal_and_another_value_is_not(unreadable, unequal, form):
    assert form not in differing(unreadable)
    assert differing(unequal)[form] == f"value_differs {FORMS[form][0].lower()}"


@pytest.mark.parametrize("form", KEYS)
def test_another_key_is_another_row(unreadable, unequal, form):
    key, other = KEYS[form]
    assert key not in differing(unreadable)
    assert (differing(unequal)[key], differing(unequal)[other]) == ("extra_in_lake", "missing_in_lake")


def test_nothing_but_the_other_values_differs(unequal):
    """It fails beside a row that cannot be read, too."""
    assert unequal.verdict == FAIL
    assert "rows of the export that cannot be read: 1 value_does_not_fit" in unequal.not_checked
    others = {name: what for name, what in differing(unequal).items() if name in UNREADABLE}
    assert others == {"on": "extra_in_lake", TWICE: "duplicate_in_export"}
    assert len(differing(unequal)) == len(FORMS) + 2 * len(KEYS) + len(others)


@pytest.mark.parametrize("form", UNREADABLE)
def test_what_cannot_be_read_is_inconclusive(unreadable, form):
    assert unreadable.verdict == INCONCLUSIVE
    assert f"rows of the export that cannot be read: {len(UNREADABLE)} value_does_not_fit" in unreadable.not_checked
    assert differing(unreadable)[form] == "extra_in_lake"


BODY = lines(SAME)
SHUFFLED = [*NAMES[3:], *NAMES[:3]]
CUT_IN_A_ROW = WHOLE[: WHOLE.index("38 digits")] + '38 digits,"'
BYTES_LAST = HEADER + lines([*(row for row in SAME if row["ID"] != "half a byte"), same("half a byte")])
LAST = row_of("zzz", "S", "the last value of the file")


def in_latin_1(line: str) -> bytes:
    try:
        return line.encode("latin-1")
    except UnicodeEncodeError:
        return line.encode()


LATIN_1 = b"".join(in_latin_1(lines([row])) for row in SAME)
# the export, the verdict, and the words that say why
ODD = {
    "as it is": (WHOLE, PASS, None),
    "columns in another order": (",".join(SHUFFLED) + "\r\n" + lines(SAME, SHUFFLED), PASS, None),
    "a column more": (
        ",".join([*NAMES, "MORE"]) + "\r\n" + lines([{**row, "MORE": "x"} for row in SAME], [*NAMES, "MORE"]),
        PASS,
        None,
    ),
    "a column fewer": (
        ",".join(NAMES[:-1]) + "\r\n" + lines(SAME, NAMES[:-1]),
        INCONCLUSIVE,
        "the export has no column B",
    ),
    "names of columns in lower case": (HEADER.lower() + BODY, INCONCLUSIVE, "the export has no column"),
    "quoted names": (",".join(f'"{name}"' for name in NAMES) + "\r\n" + BODY, PASS, None),
    "rows in another order": (HEADER + lines(SAME[::-1]), PASS, None),
    "lines that end with LF": (HEADER.replace("\r", "") + lines(SAME, end="\n"), PASS, None),
    "no line end at the end": (WHOLE.removesuffix("\r\n"), PASS, None),
    "empty lines": (WHOLE.replace("\r\n", "\r\n\r\n", 1) + "\r\n\r\n", PASS, None),
    "byte order mark": (b"\xef\xbb\xbf" + WHOLE.encode(), PASS, None),
    "gzip": (gzip.compress(WHOLE.encode()), PASS, None),
    "gzip that is cut": (gzip.compress(WHOLE.encode())[:-20], INCONCLUSIVE, "has not landed"),
    "header alone": (HEADER, FAIL, None),
    "empty file": (b"", INCONCLUSIVE, "has no byte; take the export again"),
    "another table": ("CODE,LABEL\r\n1,x\r\n2,y\r\n", INCONCLUSIVE, "the export has no column ID, S"),
    "no header": (BODY, INCONCLUSIVE, None),
    "a name twice in the header": (HEADER.replace("N,D", "N,N") + BODY, INCONCLUSIVE, "has not landed"),
    "the header twice": (HEADER + WHOLE, INCONCLUSIVE, "value_does_not_fit"),
    "semicolons": (";".join(NAMES) + "\r\n" + lines(SAME, delimiter=";"), INCONCLUSIVE, None),
    "cut between rows": (WHOLE[: WHOLE.index("38 digits")], FAIL, None),
    "cut inside a row": (CUT_IN_A_ROW, INCONCLUSIVE, "cut off"),
    "cut behind a comma": (CUT_IN_A_ROW.removesuffix('"'), INCONCLUSIVE, "cut off"),
    "cut inside the last value": (BYTES_LAST.removesuffix("\r\n")[:-8] + '"dead', INCONCLUSIVE, "cut off"),
    # nothing tells it from a value that is shorter
    "cut inside the last value without quotes": (BYTES_LAST.removesuffix("\r\n")[:-4], FAIL, None),
    "Latin-1": (HEADER.encode() + LATIN_1, INCONCLUSIVE, "not_utf8"),
    "UTF-16": (WHOLE.encode("utf-16"), INCONCLUSIVE, "has not landed"),
    "a row twice": (WHOLE + lines(SAME[:1]), FAIL, None),
    "every row twice": (WHOLE + BODY, FAIL, None),
    "a row more": (WHOLE + lines([LAST]), FAIL, None),
    "a row fewer": (HEADER + lines(SAME[1:]), FAIL, None),
    "a value more in a row": (
        HEADER + lines(SAME[1:]) + lines([{**SAME[0], "MORE": "x"}], [*NAMES, "MORE"]),
        INCONCLUSIVE,
        "wrong_column_count",
    ),
    "a count of rows behind them": (WHOLE + f"({len(SAME)} rows)\r\n", INCONCLUSIVE, "wrong_column_count"),
    "a quote that is not doubled": (
        HEADER + lines(SAME[1:]) + '"zero and its negative","a "b" c",,,,,,,,,,\r\n',
        INCONCLUSIVE,
        "malformed_record",
    ),
}
IN_CI = ["cut inside a row"]


@pytest.mark.parametrize("export", in_soak_but(IN_CI, ODD))
def test_odd_exports(forms, export):
    content, verdict, words = ODD[export]
    found = forms.reconcile(content, "{}.csv.gz" if "gzip" in export else "{}.csv")
    assert found.verdict == verdict, (found.not_checked, found.counts)
    assert words is None or words in " ".join(found.not_checked), found.not_checked


def test_there_are_at_least_sixty_cases():
    assert len(FORMS) + len(KEYS) + len(UNREADABLE) + len(ODD) >= 60
