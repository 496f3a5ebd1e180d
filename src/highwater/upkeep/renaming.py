"""Rename a table in the project, in the lake, and in everything that the lake records about it.

The plan is written first, to the journal `<lake>/renaming.json`, and removed last. Every step is idempotent, so a
renaming that was killed is finished by running it again, or by a build.
"""

from collections.abc import Iterator
from pathlib import Path

from highwater.builds import account
from highwater.catalog.as_built import forget, remember, remembered
from highwater.catalog.entities import publish_groups
from highwater.catalog.feeds import sql_text
from highwater.catalog.tables import LISTS, tables_in
from highwater.runtime.deployment import is_here, place
from highwater.runtime.errors import UsageError
from highwater.runtime.project import lake, stored, write_whole
from highwater.runtime.state import forget_state, read_state, write_state
from highwater.scaffold.add_table import write_logged_tables
from highwater.scaffold.rename_table import LAYERS, left_in, names_of_layers
from highwater.spark import untold
from highwater.spark.lake_tables import OPEN_DIFFERENCES, RECONCILIATIONS, is_table
from highwater.spark.spark import quoted
from highwater.upkeep.recover import recover

JOURNAL = "renaming.json"


def under_way() -> tuple[str, str] | None:
    """Return the old and the new name of a table whose renaming was killed; None: there is none, as at any URI."""
    if not is_here():
        return None
    found = read_state(JOURNAL)
    return (found["was"], found["is"]) if {"was", "is", "texts"} <= found.keys() else None


def refuse_half() -> None:
    """Refuse to continue while a table is only partly renamed.

    Raises: UsageError with what to run.
    """
    if half := under_way():
        raise UsageError(
            f"`highwater alter {half[0]} name {half[1]}` was killed. To do the rest of it, run it again, or: "
            "highwater build"
        )


def begin(spark, entity: str, new: str, texts: dict[Path, str | None]) -> None:
    """Write the journal of a renaming; nothing else is done yet.

    Arguments:
        texts: of the files that change, see renamed_files; {} if the user has changed them already.
    Raises: UsageError when the lake has a table of that name already, or is at a URI, where no folder can be renamed.
    """
    if not is_here():
        raise UsageError(
            f"{entity} cannot be called {new}: the lake is at {place()}, and to rename a table is to rename its "
            "folder, for which highwater needs a lake in a folder."
        )
    there, names = tables_in(spark, "lake"), names_of_layers(entity, new)
    if taken := sorted(new for old, new in names.items() if new in there):
        raise UsageError(
            f"{entity} cannot be called {new}: the lake has {', '.join(f'lake.{name}' for name in taken)} already"
        )
    written = {str(path): text for path, text in texts.items()}
    write_state(JOURNAL, {"was": entity, "is": new, "texts": written})


def finish_project() -> list[str]:
    """Change the files of the project as the journal says; return one line per file."""
    texts = {Path(path): text for path, text in read_state(JOURNAL)["texts"].items()}
    said = []
    for path, text in texts.items():
        if text is not None and not (path.exists() and path.read_text() == text):
            said.append(f"{'changed' if path.exists() else 'wrote'} {path}")
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
    for path, text in texts.items():
        if text is None and path.exists():
            path.unlink()
            said.append(f"removed {path}")
    if texts:
        write_logged_tables()
    return said


def finish_lake(spark) -> list[str]:
    """Rename the tables of the lake, and everything recorded about them; return what was done."""
    was, new = under_way()
    there = tables_in(spark, "lake")
    renamed = [name for layer in LAYERS if (name := _rename(spark, f"{was}_{layer}", f"{new}_{layer}"))]
    _drop_views(spark, was)
    for name in sorted(({"ledger", "gathered_batches"} | LISTS) & there):
        _say_anew(spark, f"lake.{name}", was, new)
    for group in publish_groups():
        if f"{group}_publications" in there:
            spark.sql(
                f"update lake.{group}_publications set log_batches = "
                f"transform_keys(log_batches, (name, batch) -> if(name = '{was}', '{new}', name)) "
                f"where map_contains_key(log_batches, '{was}')"
            )
    if is_table(RECONCILIATIONS):
        _say_anew(spark, f"delta.`{stored(RECONCILIATIONS)}`", was, new)
    if is_table(OPEN_DIFFERENCES):
        spark.sql(
            f"update delta.`{stored(OPEN_DIFFERENCES)}` set table_name = replace(replace(table_name, "
            f"'\"{was}\"', '\"{new}\"'), '__{was}\"', '__{new}\"') where table_name like '[\"{was}\",%'"
        )
    shapes = remembered()
    if was in shapes:
        remember({new: shapes[was]})
        forget([was])
    untold.rename(was, new)
    account.rename(was, new)
    forget_state(JOURNAL)
    return [f"{old} is called {name} now" for old, name in renamed]


def _say_anew(spark, table: str, was: str, new: str) -> None:
    spark.sql(f"update {table} set table_name = {sql_text(new)} where table_name = {sql_text(was)}")


def _rename(spark, was: str, new: str) -> tuple[str, str] | None:
    """Rename a table of the lake, and repair what a killed renaming left between metastore and folders.

    Returns: the names; None if there is no such table, or it has the new name already.
    """
    folders = {name: (lake() / "tables/lake.db" / name) for name in (was, new)}
    if folders[new].exists() and folders[was].exists():
        raise UsageError(
            f"lake.{was} cannot be called {new}, for lake.{new} is there too (did plain dbt make it while the renaming "
            f"was half done?). Move the folder {folders[new]} away, then run: highwater build"
        )
    here = new if folders[new].exists() else was
    away = was if here == new else new
    known = tables_in(spark, "lake")
    if away in known and not _place(spark, away).exists():
        spark.sql(f"drop table lake.{quoted(away)}")
    if not folders[here].exists():
        return None
    if here not in known:
        recover(spark)
    if here == was:
        spark.sql(f"alter table lake.{quoted(was)} rename to lake.{quoted(new)}")
        return f"lake.{was}", f"lake.{new}"
    return None


def _place(spark, table: str) -> Path:
    catalog = spark._jsparkSession.sessionState().catalog().externalCatalog()
    return Path(catalog.getTable("lake", table).location().getPath())


def _drop_views(spark, was: str) -> None:
    """Drop what would still show a table under its old name: its views, and leftovers of rebuilds and candidates."""
    for schema in ("lake", "lake_candidate", "lake_rebuilt"):
        if not spark.catalog.databaseExists(schema):
            continue
        for each in spark.catalog.listTables(schema):
            of_staging = each.name.startswith("stg_") and each.name.partition("__")[2] in (was, f"{was}_changes")
            if of_staging or each.name == was or (schema != "lake" and each.name == f"{was}_changes"):
                kind = "view" if each.tableType == "VIEW" else "table"
                if schema != "lake" or kind == "view":
                    spark.sql(f"drop {kind} {schema}.{quoted(each.name)}")


def finish(spark) -> list[str]:
    """Do the remaining steps of a renaming; return what was done, one line each."""
    was, _ = under_way()
    texts = {Path(path): text for path, text in read_state(JOURNAL)["texts"].items()}
    said = finish_project()
    said += [f"{place} still names it {was}; change it there" for place in left_in(texts, was)]
    return [*finish_lake(spark), *said]


def renamed_by_hand(shapes: dict[str, dict], there: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the old and the new name of each table whose models were renamed by hand.

    Such a table reads the same records, and the lake has tables only under the old name.

    Arguments:
        shapes: of all declared tables, see declared_shape. there: tables of the lake.
    """
    gone = {e: s for e, s in remembered().items() if e not in shapes and f"{e}_changes" in there and s.get("sources")}
    for was, shape in gone.items():
        found = [
            entity
            for entity, now in shapes.items()
            if now["sources"] == shape["sources"] and f"{entity}_changes" not in there
        ]
        if len(found) == 1:
            yield was, found[0]
