"""Views are there while they are built anew."""

import pytest
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


def test_a_seed_is_there_while_it_is_loaded_anew(workshop):
    """dbt-spark drops the table of a seed in every build; here it is written only when the file has other rows."""
    path = workshop.folder / "seeds/rejection_reasons.csv"
    original, question = path.read_text(), "select * from rejection_reasons order by all"
    before, version, found = workshop.rows(question), workshop.version("rejection_reasons"), []
    assert len(before) == len(original.strip().splitlines()) - 1
    with reading(lambda: found.append(workshop.spark.sql("select * from lake.rejection_reasons").columns)):
        workshop.build("rejection_reasons", command="seed")
        assert workshop.version("rejection_reasons") == version
        path.write_text(original + "nobody_knows,nothing,nothing\n")
        workshop.build("rejection_reasons", command="seed")
        assert ("nobody_knows", "nothing", "nothing") in workshop.rows(question)
        path.write_text(original)
        workshop.build("rejection_reasons", command="seed")
    assert workshop.rows(question) == before and len(found) > 3
