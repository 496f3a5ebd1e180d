"""Exports as psql, mysql, pandas, SQL*Plus, bcp and INTO OUTFILE write them by default: read, or refused in a sentence.

What they write of one row, and of one of NULLs, is from their manuals.
"""

import re
from datetime import datetime
from decimal import Decimal

import pytest

pytestmark = pytest.mark.long

COLUMNS = "name:string,ok:boolean,price:decimal(9,2),at:timestamp,raw:binary"
FULL = (1, 'a "b", c', True, Decimal("1.50"), datetime(2024, 8, 29, 12, 0, 0, 500000), b"\x00\xff")
EMPTY = (2, None, False, None, None, None)
TABS = {"delimiter": '"\\t"', "escape": "backslash", "rfc4180": "false"}
FEEDS = {
    "exports_tools": {},
    "exports_batch": TABS | {"null": '"NULL"'},
    "exports_outfile": TABS | {"null": "'\\N'"},
}
NO_COLUMN = "and no column of the table: deliver it with a header"

# table -> feed, the file, what is read of its lines: a row, or a part of why it is refused
FILES = {
    # \copy t to 'psql.csv' csv header
    "psql": (
        "exports_tools",
        'id,name,ok,price,at,raw\n1,"a ""b"", c",t,1.50,2024-08-29 12:00:00.5+00,\\x00ff\n2,,f,,,\n',
        [FULL, EMPTY],
    ),
    # \copy t to 'psql.csv' csv
    "psql_bare": (
        "exports_tools",
        '1,"a ""b"", c",t,1.50,2024-08-29 12:00:00.5+00,\\x00ff\n2,,f,,,\n',
        [NO_COLUMN],
    ),
    # mysql --batch -e 'select * from t'
    "batch": (
        "exports_batch",
        'id\tname\tok\tprice\tat\traw\n1\ta "b", c\t1\t1.50\t2024-08-29 12:00:00.500000\t0x00FF\n'
        "2\tNULL\t0\tNULL\tNULL\tNULL\n3\t\"quoted\"\\ttab\t1\tNULL\tNULL\tNULL\n",
        [FULL, EMPTY, "a backslash stands before 't'"],
    ),
    # the same, and the feed declares nothing
    "batch_undeclared": ("exports_tools", "id\tname\n1\tx\n", [NO_COLUMN]),
    # select 'id', … union all select … into outfile
    "outfile": (
        "exports_outfile",
        'id\tname\tok\tprice\tat\traw\n1\ta "b", c\t1\t1.50\t2024-08-29 12:00:00.5\t00FF\n2\t\\N\t0\t\\N\t\\N\t\\N\n',
        [FULL, EMPTY],
    ),
    # bcp t out bcp.csv -c: no header
    "bcp": (
        "exports_outfile",
        "1\tx\t0\t1.5000\t2024-08-29 12:00:00.5000000 +00:00\t00FF\r\n2\t\t0\t\t\t\r\n",
        [NO_COLUMN],
    ),
    # frame.to_csv('pandas.csv')
    "pandas": (
        "exports_tools",
        ",id,name,ok,price,at,raw\n0,1,x,True,1.5,2024-08-29 12:00:00.500000+00:00,b'\\x00\\xff'\n1,2,,False,,,\n",
        ['raw = ["b', EMPTY],
    ),
    # set markup csv on, and feedback as it comes
    "sqlplus": (
        "exports_tools",
        '\n"ID","NAME","OK","PRICE","AT","RAW"\n1,"x",1,1.5,"29-AUG-24 12.00.00.500000 PM","00FF"\n2,,0,,,\n\n'
        "2 rows selected.\n\n",
        ['at = ["29-AUG-24', EMPTY, "1 values, 6 names"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def read(workshop):
    """What staging makes of each file, line by line."""
    for table, (feed, text, _) in FILES.items():
        key, columns = "id:int", COLUMNS
        if table == "sqlplus":
            key, columns = "ID:int", re.sub(r"\w+:", lambda name: name[0].upper(), COLUMNS)
        system = feed.partition("_")[2]
        workshop.add_table(f"datastream_{system}.{table}", key, columns, "datastream-json")
        workshop.add_table(f"{feed}.{table}", format="csv", settings={"role": "export", **FEEDS[feed]})
        workshop.deliver(f"{feed}.{table}", "export.csv", text, root=workshop.exports)
        workshop.deliver(f"{feed}.{table}", "_exports.yml", "export.csv: {position: unknown}\n", root=workshop.exports)
    workshop.land(*FEEDS)
    workshop.build(*(f"stg_{feed}__{table}" for table, (feed, *_) in FILES.items()), command="run")
    return {
        table: workshop.rows(
            "select rejection_reason, rejection_detail, id, name, ok, price, at, raw "
            f"from stg_{feed}__{table} order by source_line"
        )
        for table, (feed, *_) in FILES.items()
    }


@pytest.mark.parametrize("table", FILES)
def test_an_export_is_read_or_refused_by_column(read, table):
    *_, expected = FILES[table]
    assert len(read[table]) == len(expected), read[table]
    for (reason, detail, *row), right in zip(read[table], expected, strict=True):
        if isinstance(right, str):
            assert reason and right in detail, (reason, detail)
        else:
            assert (reason, detail) == (None, None) and tuple(row[:5]) == right[:5], (row, detail)
            assert (row[5] and bytes(row[5])) == right[5]
