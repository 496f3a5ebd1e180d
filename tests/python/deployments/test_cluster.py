"""The shipped project on a cluster, its lake and landing on S3, its metastore in PostgreSQL; also by Thrift."""

import json
import re
import time

import pytest
from deployed import deployed
from workshop import change

pytestmark = pytest.mark.soak
KEY = 9007199254750000
ROWS = "select customer_id, name from customers where customer_id between {0} and {0} + 9 order by all"
IN_RAW = "select entry, count(*) as n from raw.datastream_user1 where landing_batch = {} group by all order by all"
# records of the newest batch in the log, and what the ledger has counted of it
COUNTED = """
    with newest as (select max(landing_batch) as batch from customers_changes)
    select 'log' as what, count(*) as n from customers_changes inner join newest on landing_batch = batch
    union all
    select 'read', sum(read) from ledger inner join newest on landing_batch = batch where table_name = 'customers'
    union all
    select 'rows of the ledger', count(*)
    from ledger inner join newest on landing_batch = batch where table_name = 'customers'
"""
# without the lease, on one core, and only when the other process has got as far
AT_ONCE = """
import os, pathlib, time
import highwater.spark.lease as leases
from highwater.commands.group import commands

leases._take = lambda *_: None
leases.RENEWED_EVERY = leases.timedelta(hours=1)

@commands.command()
def meet():
    here = pathlib.Path(os.environ["MEETING"])
    (here / f"{len(list(here.iterdir()))}-{os.getpid()}").touch()
    while len(list(here.iterdir())) % 2:
        time.sleep(0.05)
"""
# the rows that are added are in no export
BUILD = ["build", "--exclude", "test_name:matches_export"]
HELD = """
import highwater.spark.lease as leases
leases.HELD_FOR = leases.timedelta(seconds={})
"""


def customers(number: int, count: int = 3) -> bytes:
    records = [
        change("INSERT", f"F{number:03X}/E/{n}", {"CUSTOMER_ID": KEY + 10 * number + n, "NAME": f"{number} {n}"})
        for n in range(count)
    ]
    return "".join(json.dumps(record) + "\n" for record in records).encode()


@pytest.fixture(scope="module")
def project():
    """The project, examined, landed and built."""
    with deployed(("user1",)) as project:
        project.first = well(project.run(["doctor"], ["land"], ["build"]))
        yield project


def well(ran: list):
    """What commands said that ended well."""
    for each in ran:
        assert each.code == 0, f"{each.words}: {each.said} {each.error}"
    return [each.said for each in ran]


def rows_in(said: str) -> list[list]:
    return [list(json.loads(line).values()) for line in said.splitlines() if line.startswith("{")]


def query(sql: str) -> list[str]:
    return ["query", " ".join(sql.split()), "--format", "json"]


def test_it_is_built_and_shown_as_in_a_folder(project):
    examined, landed, built = project.first
    assert "WRONG" not in examined and "1 host" in examined and examined.count("ok ") == 9
    assert "datastream_user1: 9 files, 1,027 records" in landed
    assert "1,027 records landed: 312 applied, 712 superseded, 0 duplicate, 3 rejected, 0 unassigned" in built
    state, rows, compared = well(
        project.run(
            ["status", "--format", "json"], query("select count(*) as n from table1"), ["reconcile", "customers"]
        )
    )
    state = [json.loads(line) for line in state.splitlines() if line.startswith("{")]
    assert {row["table"]: row["rows"] for row in state} == {"table1": 188, "customers": 10}
    assert rows_in(rows) == [[188]]
    assert compared.startswith("PASS: 1 table, 1 passed"), compared
    assert not list(project.folder.glob(".lake/tables")), "nothing of the lake is in a folder of the driver's"


def test_upkeep_leaves_the_rows(project):
    before, *_, after = well(
        project.run(
            ["status", "--format", "json"],
            ["compact", "table1"],
            ["compact", "table1", "--method", "full"],
            ["vacuum"],
            ["rebuild", "table1"],
            ["rebuild", "customers", "--from", "raw"],
            ["replay", "customers"],
            ["dbt", "docs", "generate"],
            ["build"],
            ["status", "--format", "json"],
        )
    )
    before, after = (
        [json.loads(line)["rows"] for line in said.splitlines() if line.startswith("{")] for said in (before, after)
    )
    assert before == after and len(before) == 2


def at_once(project, meeting, *commands: list[str]) -> list[list]:
    """Two processes run commands, each when the other has come as far, without a lease."""
    words = [each for command in commands for each in (["meet"], command)]
    both = [project.started(*words, before=AT_ONCE, cores="1", MEETING=str(meeting)) for _ in range(2)]
    return [[each for each in project.ended(process) if each.words != ["meet"]] for process in both]


def test_of_two_landings_at_once_one_lands(project, tmp_path):
    project.put("landing/datastream_user1/customers/at-once.json", customers(1))
    lands = [each for ran in at_once(project, tmp_path, ["land"]) for each in ran]
    lost = [each for each in lands if each.code]
    assert len(lost) < 2, lands
    assert all("another command has landed batch 2 meanwhile, and nothing of this one" in each.error for each in lost)
    (found,) = project.run(query(IN_RAW.format(2)))
    assert rows_in(found.said) == [["file", 1], ["record", 3]]


def test_two_builds_at_once_leave_what_one_leaves(project, tmp_path):
    project.put("landing/datastream_user1/customers/built-at-once.json", customers(4))
    project.run(["land"])
    ran = at_once(project, tmp_path, BUILD)
    print([(each.code, each.error, each.said[-3000:]) for one in ran for each in one if each.code])
    _, found, rows = project.run(BUILD, query(COUNTED), query(ROWS.format(KEY + 40)))
    assert sorted(rows_in(found.said)) == [["log", 3], ["read", 3], ["rows of the ledger", 1]]
    assert rows_in(rows.said) == [[KEY + 40 + n, f"4 {n}"] for n in range(3)]


def test_a_killed_build_holds_the_lake_for_a_while_and_the_next_one_goes_on(project):
    project.put("landing/datastream_user1/customers/killed.json", customers(2))
    logged = project.commits("lake.customers_changes")
    killed = project.started(BUILD)
    while project.commits("lake.customers_changes") == logged:
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.1)
    killed.kill()
    killed.communicate()
    status, refused = project.run(["status"], ["land"], before=HELD.format(3600))
    assert "highwater build" in status.said
    in_use = r"the lake s3a://lake/house is in use by `highwater build` \(process \d+ on \S+, since .* UTC\)"
    assert refused.code and re.search(in_use, refused.error), refused
    built, found = project.run(BUILD, query(ROWS.format(KEY + 20)), before=HELD.format(1))
    assert built.code == 0, built
    assert rows_in(found.said) == [[KEY + 20 + n, f"2 {n}"] for n in range(3)]


def test_dbt_goes_through_thrift(project):
    project.put("landing/datastream_user1/customers/thrift.json", customers(3))
    with project.thrift() as port:
        built, found, compared = project.run(
            BUILD,
            query(ROWS.format(KEY + 30)),
            ["reconcile", "customers"],
            HIGHWATER_TARGET="thrift",
            HIGHWATER_THRIFT_PORT=str(port),
        )
    assert built.code == 0, built
    assert rows_in(found.said) == [[KEY + 30 + n, f"3 {n}"] for n in range(3)]
    assert compared.said.startswith("PASS"), compared


def test_what_is_wrong_is_said_with_what_to_do(project):
    profile = project.folder / "profiles/profiles.yml"
    text = profile.read_text()
    profile.write_text(re.sub(r"\n *spark.delta.logStore.*", "", text))
    try:
        examined, landed, read = project.run(["doctor"], ["land"], query("select 1 as one"))
    finally:
        profile.write_text(text)
    assert re.search(
        "WRONG  log store  the lake is at s3a://lake/house, and with the log store .* lose commits", examined.said
    )
    assert landed.code and "Set spark.delta.logStore.s3a.impl in the output cluster" in landed.error
    assert rows_in(read.said) == [[1]], "reading needs no store"
