"""Cases D of the Datastream system and C of CarbonData's updates: files, landing, `dbt build`, view.

One build per step carries all cases.
"""

import json
from collections import defaultdict

import pytest
from workshop import change

INS, U, D, UD, UI = "INSERT", "UPDATE", "DELETE", "UPDATE-DELETE", "UPDATE-INSERT"

C_BASE = [(INS, "1", key, value) for key, value in zip("abcd", "0123", strict=True)]
C1 = [
    (U, "10", "a", "10"), (D, "11", "a", None), (D, "12", "b", None), (D, "13", "c", None),
    (U, "14", "c", "20"), (U, "15", "c", "200"), (INS, "16", "e", "100"),
]  # fmt: skip
C1_ENDS_IN = {"c": "200", "d": "3", "e": "100"}

# case -> batches of (operation, sequence, key, value), and the live rows that must remain
D1 = [
    (INS, "1", "a", "1"),
    (INS, "2", "b", "2"),
    (U, "3", "a", "3"),
    (INS, "4", "c", "4"),
    (D, "5", "b", None),
    (U, "6", "c", "6"),
]
CASES = {
    "D1-one-batch": ([D1], {"a": "3", "c": "6"}),
    "D1-halves": ([D1[:3], D1[3:]], {"a": "3", "c": "6"}),
    "D1-row-at-a-time": ([[row] for row in D1], {"a": "3", "c": "6"}),
    "D1-backwards": ([[row] for row in reversed(D1)], {"a": "3", "c": "6"}),
    "D2": ([[(U, "20", "a", "2")], [(D, "10", "a", None)]], {"a": "2"}),
    "D3": ([[(INS, "5", "a", "1")], [(D, "20", "a", None)], [(U, "10", "a", "old")]], {}),
    "D4": ([[(INS, "5", "a", "1")], [(UD, "10", "a", "1"), (UI, "11", "b", "1")]], {"b": "1"}),
    "D4-equal-order": ([[(INS, "5", "a", "1")], [(UD, "10", "a", "1"), (UI, "10", "b", "1")]], {"b": "1"}),
    "D4-new-key-first": ([[(INS, "5", "a", "1")], [(UI, "11", "b", "1")], [(UD, "10", "a", "1")]], {"b": "1"}),
    "D4-same-key": ([[(INS, "5", "a", "1")], [(UD, "10", "a", "1"), (UI, "10", "a", "2")]], {"a": "2"}),
    "D4-same-key-apart": ([[(INS, "5", "a", "1")], [(UI, "10", "a", "2")], [(UD, "10", "a", "1")]], {"a": "2"}),
    "D5": ([[(INS, "5", "a", "1")], [(D, "20", "a", None)], [(INS, "5", "a", "1")]], {}),
    "D6-decimal": ([[(INS, "9", "a", "first")], [(U, "10", "a", "second")]], {"a": "second"}),
    "D6-sections": ([[(INS, "F/0", "a", "first")], [(U, "10/0", "a", "second")]], {"a": "second"}),
    "D6-case": ([[(INS, "0/a", "a", "first")], [(U, "0/B", "a", "second")]], {"a": "second"}),
    "D6-fewer-sections": ([[(INS, "5/1", "a", "second")], [(U, "5", "a", "first")]], {"a": "second"}),
    "D6-zeros-in-front": (
        [[(INS, "00000000000000000000009", "a", "first")], [(U, "A", "a", "second")]],
        {"a": "second"},
    ),
    "D8": (
        [
            [(INS, "1", "a", "1"), (INS, "1", "b", "1"), (INS, "1", "c", "1")],
            [
                ("UPDATE", "2", "a", "2"),
                ("delete", "2", "b", None),
                ("TRUNCATE", "3", "c", None),
                (None, "4", "c", "3"),
            ],
        ],
        {"a": "2", "c": "1"},
    ),
    "D9": ([[(INS, "1", "a", "1")] * 3, [(INS, "1", "a", "1")]], {"a": "1"}),
    "D11": ([[(INS, "1", None, "lost"), (INS, "2", "a", "1")]], {"a": "1"}),
    "D12": ([[(D, "5", "a", None)], [(INS, "3", "a", "1")]], {}),
    "D13": ([[(INS, "1", "a", "1"), (D, "2", "a", "still here")]], {}),
    "C1": ([C_BASE, C1], C1_ENDS_IN),
    "C2-backwards": ([*([row] for row in C1[:1:-1]), [C1[1], C1[0], *C_BASE]], C1_ENDS_IN),
    "C2-shuffled": ([[C1[4]], [C1[0], C1[6]], C_BASE, [C1[2]], [C1[5], C1[1]], [C1[3]]], C1_ENDS_IN),
    "C3": ([[(INS, "1", "1", "a"), (U, "2", "1", "b")]], {"1": "b"}),
    "C4": ([[(INS, "0", "1", "old")], [(D, "1", "1", None), (INS, "2", "1", "new")]], {"1": "new"}),
    "C5": ([[(INS, "1", "1", "old")], [(U, "5", "1", "z"), (D, "5", "1", None)]], {"1": "z"}),
    "C14": ([[(INS, None, "d", "4"), (INS, "5", "d", "7")]], {"d": "7"}),
    "C14-both": ([[(INS, None, "d", "4"), (INS, None, "d", "7")]], {}),
    "C15": ([[(INS, "1", None, "x")], [(INS, "2", None, "x")]], {}),
    "C16": ([[(INS, "9", "1", "new")], [(D, "1", "1", None)]], {"1": "new"}),
}
# the same three changes with one sequence, in other batches each time
TIES = {
    "D10-at-once": [["x", "y", "z"]],
    "D10-one-by-one": [["z"], ["y"], ["x"]],
    "D10-split": [["y"], ["x", "z"]],
    "D10-late": [["x"], ["z", "y"]],
}
# Six batches land, two to a build. A case of up to three batches has a build for each of them.
STEPS = 6


def batch_of(batches, step):
    """Return what a case delivers in a step."""
    if len(batches) <= 3:
        batches = [batch for original in batches for batch in (original, [])]
    return batches[step] if step < len(batches) else []


@pytest.fixture(scope="module")
def live(workshop):
    """Run every case, a batch a step; return the live rows of each."""
    workshop.add_table("datastream_traced.traced", "k:string", "datastream_metadata:string,v:string")
    workshop.deliver("datastream_traced.traced", "0.json", [change(INS, "1", {"k": "a", "v": "1"}, uuid="of a")])
    for step in range(STEPS):
        records = [
            change(operation, sequence, {"case_name": name, "k": k, "v": v}, uuid=f"{name}-{number}")
            for name, (batches, _) in CASES.items()
            for number, (operation, sequence, k, v) in enumerate(batch_of(batches, step))
        ]
        records += [
            change(U, "7", {"case_name": name, "k": "a", "v": value})
            for name, batches in TIES.items()
            for value in batch_of(batches, step)
        ]
        workshop.deliver("datastream_cases.cases", f"step{step}.json", records)
        workshop.land("datastream_cases", *(["datastream_traced"] if step == 0 else []))
        if step % 2:
            workshop.build("+cases", *(["+traced"] if step == 1 else []), command="run")
    live = defaultdict(dict)
    for name, k, v in workshop.rows("select case_name, k, v from cases"):
        live[name][k] = v
    return live


@pytest.mark.parametrize("case", CASES)
def test_live_rows(live, case):
    assert live[case] == CASES[case][1]


def log(workshop, case):
    return workshop.rows(
        "select k, change_type, verdict, is_tied, rejection_reason, source_line from cases_changes "
        f"where case_name = '{case}' order by log_batch, source_line"
    )


def test_d8_truncate_is_rejected_and_the_alias_is_an_update(live, workshop):
    second_batch = [(kind, verdict, reason) for _, kind, verdict, _, reason, _ in log(workshop, "D8")[3:]]
    assert second_batch == [
        ("update", "applied", None),
        ("delete", "applied", None),
        (None, "rejected", "unknown_operation"),
        (None, "rejected", "unknown_operation"),
    ]


@pytest.mark.parametrize(
    "case, reason, details",
    [
        ("D8", "unknown_operation", ['operation is ["TRUNCATE"]', "operation is absent"]),
        ("C14", "unreadable_sequence", ["sequence is absent"]),
    ],
)
def test_what_a_record_lacks_is_absent(live, workshop, case, reason, details):
    found = workshop.rows(
        f"select rejection_reason, rejection_detail from cases_changes where case_name = '{case}' "
        "and rejection_reason is not null order by source_line"
    )
    assert found == [(reason, detail) for detail in details]


def test_d11_the_rejected_record_is_kept_with_file_and_line(live, workshop):
    ((reason, detail, file, record),) = workshop.rows(
        "select rejection_reason, rejection_detail, source_file, cast(record as string) from cases_changes "
        "where case_name = 'D11' and verdict = 'rejected'"
    )
    assert (reason, detail) == ("null_key", "the key is case_name, k")
    assert file == "datastream_cases/cases/step0.json" and '"v": "lost"' in record


def test_d12_a_tombstone_of_a_key_never_seen_is_kept(live, workshop):
    rows = workshop.rows("select is_deleted, change_sequence_number from cases_merged where case_name = 'D12'")
    assert rows == [(True, "/".join(["0" * 16, "0000000000000005"] + ["0" * 16] * 3))]
    assert [row[2] for row in log(workshop, "D12")] == ["applied", "superseded"]


def test_d5_the_repeated_batch_is_told_from_a_new_one(live, workshop):
    assert [row[2] for row in log(workshop, "D5")] == ["applied", "applied", "superseded"]


def test_d4_the_tie_is_counted(live, workshop):
    assert [(row[2], row[3]) for row in log(workshop, "D4-same-key")] == [
        ("applied", False),
        ("superseded", True),
        ("applied", False),
    ]


def test_d9_copies_count_once(live, workshop):
    assert [row[2] for row in log(workshop, "D9")] == ["applied", "duplicate", "duplicate", "duplicate"]


@pytest.mark.parametrize("case", TIES)
def test_d10_the_winner_of_a_tie_is_the_highest_hash_however_batches_are_cut(live, workshop, case):
    highest = workshop.value(f"select max_by(v, change_hash) from cases_changes where case_name = '{case}'")
    assert live[case] == {"a": highest}
    tied = workshop.rows(
        f"select is_tied, count(*) from cases_changes where case_name = '{case}' group by 1 order by 1"
    )
    assert tied == [(False, 1), (True, 2)]


@pytest.mark.parametrize(
    "case, verdicts",
    [
        ("C5", [("applied", None, False), ("applied", None, False), ("superseded", None, True)]),
        ("C14", [("rejected", "unreadable_sequence", False), ("applied", None, False)]),
        ("C14-both", [("rejected", "unreadable_sequence", False)] * 2),
        ("C15", [("rejected", "null_key", False)] * 2),
        ("C16", [("applied", None, False), ("superseded", None, False)]),
    ],
)
def test_verdicts_of_updates(live, workshop, case, verdicts):
    assert [(verdict, reason, tied) for _, _, verdict, tied, reason, _ in log(workshop, case)] == verdicts


def test_a_column_may_be_the_metadata(live, workshop):
    """It is left out of the values only where no column asks for it."""
    ((metadata, value),) = workshop.rows("select datastream_metadata, v from traced")
    assert json.loads(metadata)["uuid"] == "of a" and value == "1"
