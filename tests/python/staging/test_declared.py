"""Feeds whose records are declared: what the words of `change` make of them."""

import json

from producers_declared import PRODUCERS, history, rows_of

FIVE_WORDS = {"order": [{"integer": "$.sequenceNum"}], "delete_when": "$.operation = 'DELETE'"}


def lines(*records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def test_five_words_make_a_feed_of_any_records(workshop):
    workshop.add_table(
        "stream_users.user_states", "userId:int", "name:string,city:string", "json", {"change": json.dumps(FIVE_WORDS)}
    )
    rows = [
        (124, "Raul", "Oaxaca", "INSERT", 1),
        (123, "Isabel", "Monterrey", "INSERT", 1),
        (125, "Mercedes", "Tijuana", "INSERT", 2),
        (126, "Lily", "Cancun", "INSERT", 2),
        (123, None, None, "DELETE", 6),
        (125, "Mercedes", "Guadalajara", "UPDATE", 6),
        (125, "Mercedes", "Mexicali", "UPDATE", 5),
        (123, "Isabel", "Chihuahua", "UPDATE", 5),
    ]
    names = ("userId", "name", "city", "operation", "sequenceNum")
    workshop.deliver("stream_users.user_states", "1.json", lines(*(dict(zip(names, row, strict=True)) for row in rows)))
    workshop.land_and_run("stream_users", "+user_states")
    assert sorted(workshop.rows("select * from lake.user_states")) == [
        (124, "Raul", "Oaxaca"),
        (125, "Mercedes", "Guadalajara"),
        (126, "Lily", "Cancun"),
    ]


def test_producers_say_the_same_of_one_history(workshop):
    changes = history(20261130)
    for number, (format, (order, write)) in enumerate(PRODUCERS.items()):
        feed, name = f"declared_p{number}", f"customers_p{number}"
        workshop.add_table(
            f"{feed}.{name}", "id:int", "email:string,balance:decimal(10,2),bio:string", format,
            {"order": order, "layout": "records"}, source_table="customers",
        )  # fmt: skip
        lines = write(changes)
        # what is ordered by its place in a file cannot be cut anywhere
        half = len(lines) // 2 if format not in ("canal-json", "dms-json") else len(lines)
        for file, part in (("2", lines[:half]), ("1", lines[half:])):
            workshop.deliver(feed, f"{file}.json", "\n".join(part) + "\n")
    feeds = [f"declared_p{number}" for number in range(len(PRODUCERS))]
    workshop.land(*feeds)
    workshop.build(*(f"+customers_p{number}" for number in range(len(PRODUCERS))), command="run")
    expected = rows_of(changes)
    for number, format in enumerate(PRODUCERS):
        rows = workshop.rows(f"select id, email, cast(balance as string), bio from lake.customers_p{number}")
        assert sorted(rows) == expected, format
        rejected = workshop.rows(
            f"select rejection_reason, rejection_detail, count(*) from lake.customers_p{number}_changes "
            "where rejection_reason <> 'ignored' group by all"
        )
        assert rejected == [], format
