"""What the project replaces in dbt-spark, or relies on: a new version of the adapter must be looked at, not trusted."""

import hashlib
from pathlib import Path

import pytest

RELIED_ON = {
    # replaced by macros/dbt/spark__get_merge_sql.sql, which hands other models to it, and get_insert_into_sql.sql
    "materializations/incremental/strategies.sql": "4e812c7c6a2b1467",
    # decides when the merge macro is called, and names its temporary views
    "materializations/incremental/incremental.sql": "b80bded347a2fd2a",
    # has those that macros/dbt/spark__create_view_as.sql replaces for views that are there, and
    # spark__create_temporary_view.sql for models that are written by one statement
    "adapters.sql": "ebdb98af28528bd8",
    # has the macro that macros/dbt/spark__create_columns.sql replaces, which hands on to it
    "materializations/snapshot.sql": "3beefadd9599d0e6",
}


def digest(name: str) -> str:
    import dbt.include.spark

    folder = Path(dbt.include.spark.__path__[0]) / "macros"
    return hashlib.sha256((folder / name).read_bytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", RELIED_ON)
def test_the_adapter_is_the_one_we_read(name):
    assert digest(name) == RELIED_ON[name], (
        f"dbt-spark's {name} has changed. Read it, repair macros/dbt and docs/architecture.md, "
        "then put its new hash here."
    )


def test_other_models_get_the_merge_of_dbt(workshop):
    path = workshop.folder / "models/plain_merge.sql"
    path.write_text(
        "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='k', file_format='delta') }}\n"
        "select 1 as k, 'v{{ '2' if is_incremental() else '1' }}' as v\n"
    )
    for expected in ("v1", "v2"):
        workshop.build("plain_merge", command="run")
        assert workshop.rows("select k, v from plain_merge") == [(1, expected)]
    path.unlink()


@pytest.mark.parametrize("on_schema_change", ["ignore", "append_new_columns"])
def test_other_models_are_appended_to_as_by_dbt(workshop, on_schema_change):
    path = workshop.folder / f"models/plain_{on_schema_change}.sql"
    path.write_text(
        f"{{{{ config(materialized='incremental', incremental_strategy='append', file_format='delta', "
        f"on_schema_change='{on_schema_change}') }}}}\n"
        "with rows as (select {{ '2 as k, true as is_new' if is_incremental() else '1 as k' }})\n"
        "-- nothing to write\n"
        "select * from rows -- and nothing else\n"
    )
    for _ in range(2):
        workshop.build(path.stem, command="run")
    found = workshop.rows(f"select * from {path.stem} order by k")
    assert found == ([(1,), (2,)] if on_schema_change == "ignore" else [(1, None), (2, True)])
    path.unlink()
