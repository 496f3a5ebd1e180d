"""What a capture records of a value and what an export writes of it, on a real PostgreSQL: one text, for every type.

No Spark: the SQL of triggers, records and exports is run by psql, where the application has set whatever it likes.
"""

import pytest
from highwater.databases import capture_sql, captures
from highwater.databases.database import FORMS_OF_TEXT
from postgres import serving

NAMES = captures.Names("public", "kinds")
# type by column, with odd values in PostgreSQL's own words
KINDS = {
    "smallint": ["-32768", "32767"],
    "integer": ["0", "-1"],
    "bigint": ["9223372036854775807"],
    "numeric": ["12345678901234567890.12345678901234567890", "NaN", "Infinity", "1.10", "1e30"],
    "numeric(38,10)": ["1.1", "-0.0000000001"],
    "real": ["0.1", "-0", "NaN", "-Infinity", "1e-30"],
    "double precision": ["0.1", "-0", "NaN", "Infinity", "1e22", "1e300"],
    "text": ["", " a ", "NULL", r"\\N", r"\\x00", 'a "quote", a comma', "null", "ﬁ é 😀", "a\\nb"],
    "varchar(9)": ["x  "],
    "char(10)": ["x"],
    '"char"': ["x"],
    "boolean": ["t", "f"],
    "date": ["infinity", "-infinity", "0044-03-15 BC", "0001-01-01", "12024-01-01"],
    "timestamp": ["infinity", "-infinity", "0044-03-15 12:00 BC", "9999-12-31 23:59:59.999999", "2024-10-27 02:30"],
    "timestamptz": ["infinity", "-infinity", "0044-03-15 12:00+00 BC", "2024-10-27 02:30:00.1+02"],
    "time": ["24:00", "00:00:00.000001"],
    "timetz": ["12:00+05:30"],
    "interval": ["1 year 2 mons -3 days 04:05:06.7", "-1 s"],
    "uuid": ["00000000-0000-0000-0000-00000000000A"],
    "bytea": [r"\\x00ff5c", ""],
    "inet": ["10.0.0.1/8", "::1"],
    "bit(3)": ["101"],
    "varbit": [""],
    "money": ["-1234.5"],
    "point": ["(1.5,-0)"],
    "int4range": ["[1,5)", "empty", "(,)"],
    "tstzrange": ["[2024-01-01 12:00+02,infinity)"],
    "daterange": ["[2024-02-03,2024-02-05)"],
    "int[]": ["{1,2,NULL}", "{}", "{{1,2},{3,4}}"],
    "text[]": ['{"a b","c,d",NULL,""}'],
    "timestamptz[]": ["{infinity,2024-01-01 12:00+02}"],
    "json": ['{"b":1,   "a":2, "b":3}', "null", '"s"', "1.10", r'"\\u0000"', "[1 , 2]"],
    "jsonb": ['{"b":1, "a":1.10}', "null", '"s"', "1.10", "[]"],
    "json[]": [r'{"{\\"a\\":   1}",NULL,"null"}'],
    "jsonb[]": ['{NULL,"null"}'],
    "document": ["null", '"s"'],
    "mood": ["so so"],
    "pair": ['(1,"x y")', "(,)"],
    "whole": ["7"],
    "regclass": ["public.kinds"],
    "tsvector": ["a:1 b:2"],
    "pg_lsn": ["16/B374D848"],
    "xid8": ["7"],
}
HOSTILE = """
    set timezone = 'Asia/Tokyo'; set datestyle = 'German, DMY'; set intervalstyle = 'iso_8601';
    set bytea_output = 'escape'; set extra_float_digits = 0;
"""


class Asked:
    """Runs the queries of the package by psql."""

    def __init__(self, server):
        self.server = server

    def rows(self, sql: str, *parameters: str) -> list[tuple]:
        for parameter in parameters:
            sql = sql.replace("?", f"'{parameter}'", 1)
        return [tuple(line.split("|")) for line in self.server.sql(sql)]


@pytest.fixture(scope="module")
def kinds():
    with serving("kinds") as server:
        columns = ", ".join(f'"c{place}" {kind}' for place, kind in enumerate(KINDS))
        server.sql(
            f"""
            create type mood as enum ('so so'); create type pair as (n int, v text);
            create domain document as jsonb; create domain whole as int;
            create table kinds (id bigint generated always as identity primary key, {columns});
            create table plain (id bigint primary key, v text, a int[], t timestamptz);
            create schema highwater;
            """
        )
        server.sql(f"{capture_sql.CAPTURES}; {capture_sql.IMAGE_OF}")
        for table in ("kinds", "plain"):
            names = captures.Names("public", table)
            function = capture_sql.FUNCTION.format(
                function=names.function,
                changelog=names.changelog,
                record_rows=capture_sql.record_rows(names, ["id"]),
            )
            function = capture_sql.spare_the_look(function, capture_sql.texts_of(Asked(server), names, "source"))
            assert ("case when to_jsonb(new)" in function) == (table == "plain")
            server.sql(f"{capture_sql.CHANGELOG.format(changelog=names.changelog)}; {function}")
            server.sql(
                f"create trigger captured after insert or update or delete on {names.source} "
                f"for each row execute function {names.function}()"
            )
        for place, values in enumerate(KINDS.values()):
            for value in values:
                literal = (
                    "e'" + value.replace("'", "''") + "'" if "\\" in value else "'" + value.replace("'", "''") + "'"
                )
                server.sql(f'{HOSTILE} insert into kinds ("c{place}") values ({literal})')
        server.sql(f"{HOSTILE} update kinds set id = default where id % 2 = 0")
        yield server


def differing(server, names, of_record: str) -> dict[str, int]:
    """Return how many values of each column an export has in another text than the record of the row's last change."""
    texts = capture_sql.texts_of(Asked(server), names, "source")
    counts = ", ".join(f"count(*) filter (where ({text}) is distinct from (row ->> '{c}'))" for c, _, text in texts)
    (line,) = server.sql(
        f"""
        {"; ".join(FORMS_OF_TEXT)};
        select {counts} from {names.source} as source
        inner join (
            select distinct on (row ->> 'id') row
            from (select change_number, {of_record} as row from {names.changelog}) as changes
            order by row ->> 'id', change_number desc
        ) as recorded on row ->> 'id' = source.id::text
        """
    )
    return {column: int(n) for (column, _, _), n in zip(texts, line.split("|"), strict=True) if n != "0"}


LANDED = "(select jsonb_object_agg(key, value) from jsonb_each_text(row_after))"


def test_an_export_has_the_text_that_was_captured(kinds):
    assert len(KINDS) >= 20 and int(kinds.sql("select count(*) from kinds")[0]) == sum(map(len, KINDS.values()))
    assert differing(kinds, NAMES, LANDED) == {}
    # a baseline too
    image = capture_sql.image_of_row(Asked(kinds), NAMES)
    baseline = f"(select (select jsonb_object_agg(key, value) from jsonb_each_text({image})) from kinds as source"
    assert (
        differing(kinds, NAMES, f"{baseline.replace('kinds', 'public.kinds')} where id::text = row_after ->> 'id')")
        == {}
    )
    # the control: what triggers of an older version recorded; some JSON they could not, and refused the change
    column = f"c{list(KINDS).index('json')}"
    older = (
        "(select (select jsonb_object_agg(key, value) from jsonb_each_text(to_jsonb(source.*))) "
        "from public.kinds as source where id::text = row_after ->> 'id' "
        f"and coalesce({column}::text, '') not like '%u0000%')"
    )
    places = {kind: f"c{place}" for place, kind in enumerate(KINDS)}
    assert differing(kinds, NAMES, older) == {
        places["json"]: 4, places["jsonb"]: 2, places["json[]"]: 1, places["jsonb[]"]: 1, places["document"]: 2,
    }  # fmt: skip


def texts(server, kind: str) -> list[str | None]:
    column = f"c{list(KINDS).index(kind)}"
    return [
        line
        for line in server.sql(
            f"select row_after ->> '{column}' from {NAMES.changelog} where row_after ->> '{column}' is not null "
            "and change_type = 'insert' order by change_number"
        )
    ]


def test_values_that_json_has_no_form_for_keep_their_own(kinds):
    assert texts(kinds, "json") == [value.replace(r"\\", "\\") for value in KINDS["json"]]
    assert texts(kinds, "jsonb") == ['{"a": 1.10, "b": 1}', "null", '"s"', "1.10", "[]"]
    assert texts(kinds, "document") == ["null", '"s"']
    assert texts(kinds, "jsonb[]") == ['{NULL,"null"}']
    assert texts(kinds, "date")[:3] == ["infinity", "-infinity", "0044-03-15 BC"]
    assert texts(kinds, "timestamptz")[:3] == ["infinity", "-infinity", "0044-03-15T12:00:00+00:00 BC"]
    assert texts(kinds, "int[]") == ["[1, 2, null]", "[]", "[[1, 2], [3, 4]]"]
    assert texts(kinds, "pair") == ['{"n": 1, "v": "x y"}', '{"n": null, "v": null}']
    assert texts(kinds, "regclass") == ["public.kinds"]


def test_a_column_of_json_that_comes_later_and_one_that_goes(kinds):
    """Triggers do not know the columns, so no change of the table breaks the application."""
    names = captures.Names("public", "plain")
    kinds.sql("insert into plain values (1, 'a', '{1}', 'infinity')")
    assert differing(kinds, names, LANDED) == {}
    kinds.sql(
        """alter table plain add column "it's {odd}" json; insert into plain values (2, 'b', null, null, '{"b":  1}')"""
    )
    kinds.sql("alter table plain drop column a; insert into plain values (3, 'c', null, 'null')")
    kinds.sql("update plain set v = 'd' where id = 2; alter table plain rename column v to w; update plain set w = 'e'")
    found = kinds.sql(f"""select row_after ->> 'it''s {{odd}}' from {names.changelog} where row_after ->> 'id' = '2'""")
    assert found == ['{"b":  1}'] * 3
    assert (
        kinds.sql(f"""select row_after ->> 'w' from {names.changelog} where change_type = 'update'""")[-3:] == ["e"] * 3
    )
