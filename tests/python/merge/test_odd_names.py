"""Keys of any text: a table is somebody else's. Columns of any name are in test_falling_positions.py."""

import pytest
from workshop import change

pytestmark = pytest.mark.long

TEXTS = ["", "null", "=x", "O'Neil \\", "zebra", "äöü", "\U0001f600", "a`b", "%s {{ x }}", "  "]


def test_keys_of_any_text_are_merged_between_their_ends(workshop):
    """A base that is written in every build takes the ends of its keys from what the log has counted."""
    workshop.add_table("datastream_odd.oddities", "name:string,day:date,n:int", "v:string")
    workshop.configure("oddities", "merged", "{meta: {merged: {compact_when: always}}}")
    latest = {}
    for step in range(1, 4):
        records = []
        for at, text in enumerate(TEXTS):
            if (at + step) % 3 == 0:
                continue
            kind = "DELETE" if (at + step) % 5 == 0 else "UPDATE-INSERT"
            # every fourth comes in backward order
            sequence = 16 * (step if at % 4 else 6 - step) + at
            row = {"name": text, "day": "2024-02-29", "n": -at, "v": f"v{step}"}
            records.append(change(kind, f"{sequence:X}", row))
            latest[text] = max(latest.get(text, (0, None)), (sequence, None if kind == "DELETE" else f"v{step}"))
        workshop.deliver("datastream_odd.oddities", f"{step}.json", records)
        workshop.land("datastream_odd")
        workshop.build("+oddities", command="build" if step == 3 else "run")
    rows = workshop.rows("select name, v from oddities")
    assert len(rows) == len(dict(rows))
    assert dict(rows) == {text: v for text, (_, v) in latest.items() if v}
