"""Commands that query the lake: query, status."""

from datetime import datetime

import click

from highwater.commands.group import commands, known
from highwater.runtime.errors import CheckError

# what `highwater status` says of each
OF_EVERY_TABLE = [
    "table",
    "rows",
    "waiting",
    "pending",
    "read",
    "applied",
    "rejected",
    "stale",
    "changed_at",
    "landed_at",
]


@commands.command()
@click.argument("sql")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table")
@click.option(
    "--unsafe", is_flag=True, help="Run any statement, even one that writes. Other commands may write at the same time."
)
def query(sql, form, unsafe):
    """Run SQL that reads the lake, and print the rows."""
    from highwater.spark.spark import reading_session
    from highwater.status.query import show

    with reading_session() as spark:
        show(spark, sql, form, unsafe)


@commands.command()
@click.argument("table", required=False, callback=known)
@click.option("--format", "form", type=click.Choice(["table", "json", "html"]), default="table")
def status(table, form):
    """Show the state of every table, or of TABLE. It counts rows, and what is waiting, pending, rejected or stale."""
    import json

    from highwater.spark.spark import reading_session
    from highwater.status.query import show_table
    from highwater.status.status import status as status_of
    from highwater.status.status_page import page

    with reading_session() as spark:
        found = status_of(spark, table)
        if form == "html":
            click.echo(page(spark, found))
    if form == "json":
        for row in found:
            click.echo(json.dumps(row, default=str, ensure_ascii=False))
    elif form == "table" and table:
        show_table(["what", table], [(name, value) for name, value in found[0].items() if name != "table"])
    elif form == "table":
        if found and found[0]["step"]:
            click.echo(found[0]["step"])
        if found:
            at = found[0]["last_build"]
            click.echo(f"The last build came to its end at {at} UTC." if at else "No build has come to its end yet.")
        show_table(OF_EVERY_TABLE, [[_to_the_second(row[name]) for name in OF_EVERY_TABLE] for row in found])
        for sentence in dict.fromkeys(row["gone_back"] for row in found if row["gone_back"]):
            click.echo(sentence)
        for row in found:
            if row["fallen"]:
                click.echo(
                    f"{row['fallen']:,} of the changes of {row['table']} that were superseded are newer than what they "
                    f"lost to, by the clock of the source, since {row['fallen_since']} UTC: "
                    f"highwater epoch {row['feeds'][0]}"
                )
            if row["patched_since"]:
                click.echo(f"a patch of {row['table']} is open since {row['patched_since']} UTC")
            if row["disabled_since"]:
                click.echo(f"the changes of {row['table']} are not captured since {row['disabled_since']} UTC")
    troubles = {}
    for row in filter(lambda row: row["trouble"], found):
        troubles.setdefault(row["trouble"], []).append(row["table"])
    if troubles:
        raise CheckError("\n".join(f"{', '.join(tables)}: {trouble}" for trouble, tables in troubles.items()))


def _to_the_second(value):
    return value.replace(microsecond=0) if isinstance(value, datetime) else value
