"""Views are there while they are built anew."""

import pytest
from highwater.spark import dbt
from pyspark.errors import AnalysisException
from workshop import reading


def test_c11_a_view_is_there_while_it_is_built_anew(workshop):
    """Spark replaces a view by dropping it first, and a reader meets that soon; it alters one in one step."""
    spark, found = workshop.spark, []

    def read(view):
        found.append(spark.sql(f"select * from {view}").columns)

    spark.sql("create or replace view lake.replaced as select 1 as one")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"), reading(lambda: read("lake.replaced")):
        for _ in range(100):
            spark.sql("create or replace view lake.replaced as select 1 as one")
    spark.sql("drop view lake.replaced")

    found.clear()
    before = workshop.rows("select * from table1 order by 1")
    with reading(lambda: read("lake.table1")):
        for _ in range(3):
            workshop.build("table1", command="run")
    assert len(found) > 10 and set(map(tuple, found)) == {("col1", "col2")}
    assert workshop.rows("select * from table1 order by 1") == before
    (statement,) = workshop.folder.glob("target/run/**/marts/**/table1.sql")
    assert statement.read_text().strip().startswith("alter view lake.table1 as")


REASONS = "select * from rejection_reasons order by all"


def test_the_list_of_reasons_is_there_while_it_is_built_anew(workshop):
    path = workshop.folder / "models/operations/rejection_reasons.sql"
    original, before, found = path.read_text(), workshop.rows(REASONS), []
    assert len(before) == original.count("\n    (\n") == 13
    with reading(lambda: found.append(workshop.spark.sql("select * from lake.rejection_reasons").columns)):
        workshop.build("rejection_reasons", command="run")
        path.write_text(original.replace("values\n", "values ('nobody_knows', 'nothing', 'nothing'),\n"))
        workshop.build("rejection_reasons", command="run")
        assert ("nobody_knows", "nothing", "nothing") in workshop.rows(REASONS)
        path.write_text(original)
        workshop.build("rejection_reasons", command="run")
    assert workshop.rows(REASONS) == before and len(found) > 3


def test_the_list_of_reasons_takes_the_place_of_the_table_that_it_once_was(workshop):
    """Versions up to 0.5.0 wrote a seed into a table; the next build needs no help, whatever its columns are."""
    spark, before = workshop.spark, workshop.rows(REASONS)
    for columns in ("'not_utf8' as rejection_reason, 'old' as meaning, 'old' as what_to_do", "1 as other"):
        spark.sql("drop view lake.rejection_reasons")
        spark.sql(f"create table lake.rejection_reasons using delta as select {columns}")
        workshop.build("rejection_reasons", command="run")
        assert workshop.rows(REASONS) == before
        assert not (workshop.folder / "lake/tables/lake.db/rejection_reasons").exists()


def test_an_operation_that_fails_says_why_and_is_no_node(workshop, capfd):
    mistaken = '{"feed": "datastream_user1", "entities": 3}'
    outcome = dbt.outcome_of(["run-operation", "highwater.falls_of_feed", "--args", mistaken, "--quiet"])
    assert (outcome.status, outcome.left, outcome.failed) == (1, None, ())
    said = "".join(capfd.readouterr())
    assert "'int' object is not iterable" in said and "Traceback" not in said
