"""Cases D1 to D17 of the Datastream system: files, landing, `dbt build`, view. One build per step for all cases."""

from collections import defaultdict

import pytest
from workshop import change

I, U, D, UD, UI = "INSERT", "UPDATE", "DELETE", "UPDATE-DELETE", "UPDATE-INSERT"

# case -> batches of (operation, sequence, key, value), and the live rows that must remain
D1 = [(I, "1", "a", "1"), (I, "2", "b", "2"), (U, "3", "a", "3"), (I, "4", "c", "4"), (D, "5", "b", None), (U, "6", "c", "6")]
CASES = {
    "D1-one-batch": ([D1], {"a": "3", "c": "6"}),
    "D1-halves": ([D1[:3], D1[3:]], {"a": "3", "c": "6"}),
    "D1-row-at-a-time": ([[row] for row in D1], {"a": "3", "c": "6"}),
    "D1-backwards": ([[row] for row in reversed(D1)], {"a": "3", "c": "6"}),
    "D2": ([[(U, "20", "a", "2")], [(D, "10", "a", None)]], {"a": "2"}),
    "D3": ([[(I, "5", "a", "1")], [(D, "20", "a", None)], [(U, "10", "a", "old")]], {}),
    "D4": ([[(I, "5", "a", "1")], [(UD, "10", "a", "1"), (UI, "11", "b", "1")]], {"b": "1"}),
    "D4-equal-order": ([[(I, "5", "a", "1")], [(UD, "10", "a", "1"), (UI, "10", "b", "1")]], {"b": "1"}),
    "D4-new-key-first": ([[(I, "5", "a", "1")], [(UI, "11", "b", "1")], [(UD, "10", "a", "1")]], {"b": "1"}),
    "D4-same-key": ([[(I, "5", "a", "1")], [(UD, "10", "a", "1"), (UI, "10", "a", "2")]], {"a": "2"}),
    "D4-same-key-apart": ([[(I, "5", "a", "1")], [(UI, "10", "a", "2")], [(UD, "10", "a", "1")]], {"a": "2"}),
    "D5": ([[(I, "5", "a", "1")], [(D, "20", "a", None)], [(I, "5", "a", "1")]], {}),
    "D6-decimal": ([[(I, "9", "a", "first")], [(U, "10", "a", "second")]], {"a": "second"}),
    "D6-sections": ([[(I, "F/0", "a", "first")], [(U, "10/0", "a", "second")]], {"a": "second"}),
    "D6-case": ([[(I, "0/a", "a", "first")], [(U, "0/B", "a", "second")]], {"a": "second"}),
    "D6-fewer-sections": ([[(I, "5/1", "a", "second")], [(U, "5", "a", "first")]], {"a": "second"}),
    "D6-zeros-in-front": ([[(I, "00000000000000000000009", "a", "first")], [(U, "A", "a", "second")]], {"a": "second"}),
    "D8": (
        [[(I, "1", "a", "1"), (I, "1", "b", "1"), (I, "1", "c", "1")],
         [("UPDATE", "2", "a", "2"), ("delete", "2", "b", None), ("TRUNCATE", "3", "c", None)]],
        {"a": "2", "c": "1"},
    ),
    "D11": ([[(I, "1", None, "lost"), (I, "2", "a", "1")]], {"a": "1"}),
    "D12": ([[(D, "5", "a", None)], [(I, "3", "a", "1")]], {}),
    "D13": ([[(I, "1", "a", "1"), (D, "2", "a", "still here")]], {}),
}
STEPS = max(len(batches) for batches, _ in CASES.values())


@pytest.fixture(scope="module")
def live(workshop):
    """Run every case, a batch a step; return the live rows of each."""
    workshop.add_table("datastream_cases.cases", "case_name:string,k:string", "v:string")
    for step in range(STEPS):
        records = [
            change(operation, sequence, {"case_name": name, "k": k, "v": v}, uuid=f"{name}-{number}")
            for name, (batches, _) in CASES.items()
            for number, (operation, sequence, k, v) in enumerate(batches[step] if step < len(batches) else [])
        ]
        workshop.deliver("datastream_cases.cases", f"step{step}.json", records)
        workshop.land("datastream_cases")
        workshop.build("+cases", command="run")
    workshop.build("+ledger", "+rejected_changes", "+sequence_ties", "+cases")
    live = defaultdict(dict)
    for name, k, v in workshop.rows("select case_name, k, v from cases"):
        live[name][k] = v
    return live


@pytest.mark.parametrize("case", CASES)
def test_live_rows(live, case):
    assert live[case] == CASES[case][1]
