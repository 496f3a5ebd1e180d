"""`highwater query` only reads: what it refuses does no harm, what it allows works; no value speaks to a terminal."""

import json
import os
import re

import pytest
from highwater.runtime.errors import UsageError
from highwater.status.query import _paths_as_tables, show, show_table
from highwater.status.reads_only import REACHING_OUT
from pyspark.errors import AnalysisException
from repository import PROJECT

LEAK = "Geheim123xyz"
# each of them, in the words that the sentence must have; {here} is a folder of the test
REFUSED = [
    ("drop table lake.kept", "drop table"),
    ("/* select */ drop table lake.kept", "drop table"),
    ("-- select what goes\ndelete from lake.kept where a = 1", "delete from table"),
    ("/* select */ create table lake.more using delta as select 1 as a", "create table as select"),
    ("/*select*/ insert into lake.kept select 2", "insert into statement"),
    ("with n as (select 2 as a) insert into lake.kept select a from n", "insert into statement"),
    ("from lake.kept insert into lake.kept select a", "insert into statement"),
    ("from (select 1 as a) insert overwrite directory '{here}/out' using csv select a", "insert into dir"),
    ("insert overwrite directory '{here}/out' using csv select 1 as a", "insert into dir"),
    ("update lake.kept set a = 2", "update table"),
    ("merge into lake.kept using lake.kept s on true when matched then delete", "merge into table"),
    ("truncate table lake.kept", "truncate table"),
    ("alter table lake.kept add columns (b int)", "add columns"),
    ("alter table lake.kept set tblproperties ('a' = 'b')", "set table properties"),
    ("restore table lake.kept to version as of 0", "restore table statement"),
    ("vacuum lake.kept", "vacuum table"),
    ("optimize lake.kept", "optimize table"),
    ("/*select*/ set spark.sql.variable.substitute = true", "set command"),
    ("set", "set command"),
    ("reset", "reset command"),
    ("/*select*/ add jar '{here}/x.jar'", "add jars"),
    ("use raw", "set catalog and namespace"),
    ("cache table lake.kept", "cache table"),
    ("refresh table lake.kept", "refresh table"),
    ("analyze table lake.kept compute statistics", "analyze table"),
    ("call system.anything()", "call"),
    ("declare variable v int", "create variable"),
    ("execute immediate 'drop table lake.kept'", "execute immediate"),
    ("begin drop table lake.kept; end", "compound body"),
    ("create temporary view v as select 1", "create view"),
    ("create temporary function f as 'java.lang.System'", "create function"),
    ("explain drop table lake.kept", "drop table"),
    ("explain extended insert into lake.kept select 2", "insert into statement"),
    ("explain execute immediate 'drop table lake.kept'", "execute immediate"),
    ("select transform(1) using 'sh -c \"touch {here}/pwned; cat\"' as (x)", "script transformation"),
    ("select * from (select transform(1) using 'touch {here}/pwned' as (x))", "script transformation"),
    ("select java_method('java.lang.System', 'getenv', 'HIGHWATER_STORE_PASSWORD')", "java_method"),
    ("select JAVA_METHOD('java.lang.System', 'getenv', 'HIGHWATER_STORE_PASSWORD')", "JAVA_METHOD"),
    ("select `reflect`('java.lang.System', 'getenv', 'HIGHWATER_STORE_PASSWORD')", "reflect"),
    ("select try_reflect('java.lang.System', 'getenv', 'HIGHWATER_STORE_PASSWORD')", "try_reflect"),
    ("select builtin.reflect('java.lang.System', 'getenv', 'HIGHWATER_STORE_PASSWORD')", "reflect"),
    ("select spark_catalog.lake.abs(1)", "spark_catalog.lake.abs"),
    ("select (select max(reflect('java.lang.System', 'lineSeparator')) from lake.kept)", "reflect"),
    ("select transform(array('HIGHWATER_STORE_PASSWORD'), v -> reflect('java.lang.System', 'getenv', v))", "reflect"),
    ("select a from lake.kept where exists (select reflect('java.lang.System', 'lineSeparator'))", "reflect"),
    ("with c as (select reflect('java.lang.System', 'lineSeparator') as x) select * from c", "reflect"),
    ("select sum(a) over w from lake.kept window w as (order by reflect('a', 'b'))", "reflect"),
    ("select a from lake.kept order by reflect('java.lang.System', 'lineSeparator')", "reflect"),
    ("select * from lake.kept lateral view reflect('a', 'b') t as x", "reflect"),
    ("select * from lake.kept timestamp as of reflect('a', 'b')", "reflect"),
    ("values (reflect('java.lang.System', 'getenv', 'HIGHWATER_STORE_PASSWORD'))", "reflect"),
    ("select identifier('reflect')('java.lang.System', 'getenv', 'HIGHWATER_STORE_PASSWORD')", "identifier"),
    ("select * from identifier('text.`{here}/secret`')", "identifier"),
    ("select from_xml('<a/>', 'a int', map('rowValidationXSDPath', '{here}/secret'))", "from_xml"),
    ("select from_protobuf(X'00', 'm', '{here}/secret')", "from_protobuf"),
    ("select * from text.`{here}/secret`", "no schema of the lake"),
    ("select * from TEXT.`{here}/secret`", "no schema of the lake"),
    ("select * from binaryFile.`{here}/secret`", "no schema of the lake"),
    ("select * from delta.`{here}/lake`", "no schema of the lake"),
    ("select * from lake.kept where a in (select value from text.`{here}/secret`)", "no schema of the lake"),
    ("describe detail '{here}/lake'", "unresolved path based table"),
    ("describe history delta.`{here}/lake`", "no schema of the lake"),
    ("select * from read_files('{here}/secret')", "the table function read_files"),
    ("select * from table_changes_by_path('{here}/lake', 0)", "the table function table_changes_by_path"),
    ("select * from lake.kept with ('path' = '{here}/secret')", "a table with options"),
    ("select * from reflect('a', 'b')", "the table function reflect"),
]  # fmt: skip
ALLOWED = [
    "select 1",
    "-- drop table lake.kept\nselect 'delete from lake.kept'",
    "select count(*) from table1",
    "select * from lake.table1 limit 1",
    "table lake.kept",
    "select * from spark_catalog.lake.kept",
    "values (1, 'a'), (2, 'b')",
    "from lake.kept select a",
    "from lake.kept |> where a = 1 |> select a",
    "with n as (select a from lake.kept) select * from n join lake.kept using (a)",
    "with recursive r as (select 1 as n union all select n + 1 from r where n < 3) select * from r",
    "select a, row_number() over w from lake.kept window w as (order by a)",
    "select a, count(*) from lake.kept group by grouping sets ((a), ()) having count(*) > 0 order by all",
    "select a from lake.kept union all select 2 intersect select 2 except select 3",
    "select * from lake.kept version as of 0",
    "select transform(array(1, 2), v -> v + 1)",
    "select * from lake.kept lateral view explode(array(1, 2)) t as x",
    "select * from range(3), lateral (select id + 1)",
    "select * from explode(map('a', 1))",
    "select case when exists (select 1 from lake.kept) then (select max(a) from lake.kept) end",
    "select /*+ broadcast(k) */ distinct k.* except (a) from (select a, 1 as b from lake.kept) as k",
    "select * from lake.kept pivot (count(*) for a in (1, 2))",
    "select * from (select 1 as a, 2 as b) unpivot (v for n in (a, b))",
    "select * from lake.kept tablesample (100 percent) limit 5 offset 0",
    "select record, fields from raw.datastream_user1 where entry = 'record' limit 1",
    "select verdict, count(*) from table1_changes group by verdict",
    "select * from customers_merged limit 1",
    "select parse_json('{\"a\": 1}'):a::int, date '2026-01-01' + interval 1 day",
    "show tables",
    "show tables in raw like 'data*'",
    "show schemas",
    "show columns in lake.kept",
    "show create table customers",
    "show tblproperties lake.kept",
    "show functions like 'abs'",
    "show table extended in lake like 'kept'",
    "show views in lake",
    "describe lake.kept",
    "describe extended lake.kept a",
    "describe select a from lake.kept",
    "describe function abs",
    "describe schema lake",
    "describe history lake.table1_merged",
    "describe detail lake.table1_merged",
    "explain select a from lake.kept",
    "explain formatted with n as (select 1 as a) select * from n",
    "select 1;",
]  # fmt: skip


@pytest.fixture(scope="module")
def lake(workshop, tmp_path_factory):
    here = tmp_path_factory.mktemp("query")
    (here / "secret").write_text(f"{LEAK}\n")
    workshop.spark.range(1).write.format("delta").save(str(here / "lake"))
    workshop.spark.sql("create table lake.kept using delta as select 1 as a")
    yield here
    workshop.spark.sql("drop table lake.kept")


def test_what_does_more_than_read_is_refused_and_does_no_harm(workshop, lake, capsys):
    for sql, words in REFUSED:
        with pytest.raises(UsageError) as refused:
            show(workshop.spark, sql.replace("{here}", str(lake)), "table")
        assert words in str(refused.value) and "only reads" in str(refused.value), sql
        assert "\n" not in str(refused.value) and LEAK not in capsys.readouterr().out, sql
    assert workshop.rows("select * from lake.kept") == [(1,)]
    assert workshop.version("lake.kept") == 0
    assert not {"more"} & {row.tableName for row in workshop.spark.sql("show tables in lake").collect()}
    assert {path.name for path in lake.iterdir()} == {"secret", "lake"}


def test_without_the_check_each_of_these_would_do_harm(workshop, lake, capsys):
    """The negative control: what the sentence keeps from running does run with --unsafe."""
    for sql, told in (
        ("select java_method('java.lang.System', 'getenv', 'HIGHWATER_LAKE')", os.environ["HIGHWATER_LAKE"]),
        ("select transform(array('user.dir'), v -> reflect('java.lang.System', 'getProperty', v))", "/"),
        (f"select * from text.`{lake}/secret`", LEAK),
    ):
        show(workshop.spark, sql, "csv", unsafe=True)
        assert told in capsys.readouterr().out, sql
    show(workshop.spark, f"select transform(1) using 'touch {lake}/pwned; cat' as (x)", "csv", unsafe=True)
    (lake / "pwned").unlink()
    show(workshop.spark, "/* select */ create table lake.unsafe using delta as select 1 as a", "csv", unsafe=True)
    show(workshop.spark, "/* select */ drop table lake.unsafe", "csv", unsafe=True)
    assert not workshop.spark.catalog.tableExists("lake.unsafe")


def test_what_reads_is_run(workshop, lake, capsys):
    for sql in ALLOWED:
        show(workshop.spark, sql, "csv")
        assert capsys.readouterr().out.strip(), sql


def test_spark_too_takes_no_name_for_a_path(workshop, lake):
    """A second lock, for what only Spark knows to be a path."""
    spark = workshop.spark
    before = spark.conf.get("spark.sql.runSQLOnFiles")
    with pytest.raises(UsageError, match="no schema of the lake"):
        show(spark, f"select * from spark_catalog.text.`{lake}/secret`", "csv")
    with _paths_as_tables(spark, False), pytest.raises(AnalysisException):
        spark.sql(f"select * from text.`{lake}/secret`")
    with _paths_as_tables(spark, False), pytest.raises(AnalysisException):
        spark.sql(f"select * from delta.`{lake}/lake`")
    assert spark.conf.get("spark.sql.runSQLOnFiles") == before


def test_every_name_of_what_calls_java_is_refused(workshop):
    """A later Spark that has one more fails here."""
    spark, found = workshop.spark, []
    registry = spark._jsparkSession.sessionState().functionRegistry()
    for row in spark.sql("show functions").collect():
        identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(row.function)
        info = registry.lookupFunction(identifier)
        if info.isDefined() and ("Reflect" in info.get().getClassName() or "CallMethod" in info.get().getClassName()):
            found.append(row.function)
    assert found and set(found) <= set(REACHING_OUT.split())


def test_several_statements_are_told(workshop, lake):
    for sql in ("select 1; drop table lake.kept", "select 1;\n-- and\nselect 2", "drop table lake.kept; select 1"):
        with pytest.raises(UsageError, match="one statement, and this is more than one; nothing of it has run"):
            show(workshop.spark, sql, "table")
    with pytest.raises(UsageError, match="Syntax error at or near 'selec'"):
        show(workshop.spark, "selec 1", "table")
    assert workshop.rows("select * from lake.kept") == [(1,)]


def test_nothing_of_the_environment_is_put_into_a_statement(workshop, lake, capsys):
    """Spark would, unless conf/spark-defaults.conf says no."""
    text = "${env:HIGHWATER_LAKE} ${system:user.home} ${spark.master}"
    show(workshop.spark, f"select '{text}' as v", "csv")
    assert capsys.readouterr().out.split("\n")[1].strip() == text
    with_it = workshop.spark.newSession()
    with_it.conf.set("spark.sql.variable.substitute", "true")
    assert with_it.sql(f"select '{text}' as v").first()["v"].startswith(os.environ["HIGHWATER_LAKE"])


def test_values_and_names_do_not_speak_to_the_terminal(workshop, capsys):
    sql = "select decode(X'1b5b33316d721b5d303b7807c29b6de280ae', 'UTF-8') as `n\x1b[2J`, 'two\nlines' as b"
    show(workshop.spark, sql, "table")
    shown = capsys.readouterr().out
    assert "\\x1b[31mr\\x1b]0;x\\x07\\x9bm\\u202e" in shown and "n\\x1b[2J" in shown
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}
    show(workshop.spark, sql, "json")
    answer = capsys.readouterr().out
    assert not set(answer) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert json.loads(answer) == {"n\x1b[2J": "\x1b[31mr\x1b]0;x\x07\x9bm\u202e", "b": "two\nlines"}


def test_a_cell_is_one_line_unless_it_is_all_there_is(capsys):
    show_table(["a", "b"], [["two\nlines", "a\ttab"]])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "two" in line]
    assert "two\\nlines" in line and "a\\ttab" in line
    show_table(["plan"], [["== Physical Plan ==\nScan"]])
    assert [line.strip() for line in capsys.readouterr().out.splitlines()][-3:-1] == ["== Physical Plan ==", "Scan"]


def test_a_moment_has_its_zone_and_a_time_without_one_has_none(workshop, capsys):
    zoned, plain = "timestamp'2024-05-31 10:00:00.5Z'", "timestamp_ntz'2024-05-31 10:00:00.5'"
    sql = f"select {zoned} as z, {plain} as p, array(named_struct('z', {zoned}, 'p', {plain}), null) as nested, "
    show(workshop.spark, f"{sql} timestamp'9999-12-31' as last, cast(null as timestamp) as none", "json")
    moment, time = "2024-05-31 10:00:00.500000+00:00", "2024-05-31 10:00:00.500000"
    answer = json.loads(capsys.readouterr().out)
    assert (answer.pop("z"), answer.pop("p"), answer.pop("none")) == (moment, time, None)
    assert answer == {"nested": [{"z": moment, "p": time}, None], "last": "9999-12-31 00:00:00+00:00"}
    for form in ("table", "csv"):
        show(workshop.spark, f"select {zoned} as z, {plain} as p", form)
        assert re.search(rf"{re.escape(moment)}\W+{time}\b", capsys.readouterr().out), form


def test_the_pages_say_that_it_is_no_sandbox():
    assert "not a sandbox" in (PROJECT / "docs/commands.md").read_text()


@pytest.mark.parametrize("columns, is_upright", [(19, False), (20, False), (21, True), (60, True)])
def test_rows_stand_upright_where_their_columns_do_not_fit_side_by_side(columns, is_upright, capsys):
    names = [f"a_long_name_of_column_{number}" for number in range(columns)]
    show_table(names, [[f"value [b]{number}" for number in range(columns)], [None] * columns])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ([names[-1], "value", f"[b]{columns - 1}"] in lines) == is_upright
    assert (["column", "row", "2"] in lines) == is_upright and ([names[0], "NULL"] in lines) == is_upright
    show_table(names, [])
    assert ("no row; columns: a_long_name_of_column_0, " in capsys.readouterr().out) == is_upright


def test_narrow_columns_stand_side_by_side_however_many(capsys):
    show_table([f"c{number}" for number in range(25)], [range(25)])
    assert "c24" in capsys.readouterr().out.splitlines()[1]
