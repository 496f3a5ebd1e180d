"""Faults planted in the macros, one at a time: each must be noticed by a test of random histories or planted pairs.

`make soak` runs them. A fault is a piece of a macro and what stands in its place; the copy of the project in the
workshop is changed, never the project. At the end the same tests run on the whole macros: nothing that a fault has left
behind makes them fail.
"""

import contextlib

import pytest
from producers import PRODUCERS
from test_every_format import declare, run
from test_random_histories import run_histories

MERGE, STAGING = "macros/merge", "macros/staging"

# name: (file, what stands there, what is planted)
WHOLE_ROWS = {
    "deletes win ties": (f"{MERGE}/total_order.sql", "not {{ change }}.is_deleted", "{{ change }}.is_deleted"),
    "the lowest change of a key": (f"{MERGE}/latest_change_per_key.sql", "select max_by(", "select min_by("),
    "no order in a batch": (f"{MERGE}/judged_changes.sql", "when `change order` < `batch order` or ", "when "),
    "nothing was there before": (f"{MERGE}/judged_changes.sql", " or `change order` < `order before` then", " then"),
    "copies count": (f"{MERGE}/judged_changes.sql", "when `is copy` or `change order` <=>", "when `change order` <=>"),
    "what was there counts again": (
        f"{MERGE}/judged_changes.sql",
        "when `is copy` or `change order` <=> `order before` then",
        "when `is copy` then",
    ),
    "a batch is before itself": (
        f"{MERGE}/judged_changes.sql",
        "range between unbounded preceding and 1 preceding",
        "range between unbounded preceding and current row",
    ),
    "the lowest of what stands": (
        f"{MERGE}/standing_changes.sql",
        "max({{ highwater.total_order('current_rows') }}) as `current order`",
        "min({{ highwater.total_order('current_rows') }}) as `current order`",
    ),
    "what the log alone has is forgotten": (
        f"{MERGE}/arriving_batches.sql",
        "if facts.log_batch > facts.applied -",
        "if facts.log_batch > facts.applied + 1000000 -",
    ),
    "what stands is not asked": (
        f"{MERGE}/arriving_batches.sql",
        "if is_incremental() and arriving.rows > 0",
        "if is_incremental() and arriving.rows > 1000000000",
    ),
    "the last batch arrives twice": (
        f"{MERGE}/new_arrivals.sql",
        "where landing_batch > {{ source.watermark }}",
        "where landing_batch >= {{ source.watermark }}",
    ),
    "the first batch is skipped": (
        f"{MERGE}/new_arrivals.sql",
        "where landing_batch > {{ source.watermark }}",
        "where landing_batch > {{ source.watermark }} + 1",
    ),
    "log batches do not rise": (
        f"{MERGE}/judged_changes.sql",
        "{{ arriving.log_batch }} as log_batch\n    from ranked",
        "{{ arriving.log_batch - 1 }} as log_batch\n    from ranked",
    ),
    "superseded changes are applied": (
        f"{MERGE}/applied_since.sql",
        "verdict = 'applied'",
        "verdict in ('applied', 'superseded')",
    ),
    "one log batch too few is applied": (
        f"{MERGE}/applied_since.sql",
        "and log_batch > {{ applied_batch }}",
        "and log_batch > {{ applied_batch }} + 1",
    ),
    "the lower row wins in the base": (
        f"{MERGE}/merge_into_base.sql",
        "{{ highwater.total_order('change') }} > {{ highwater.total_order('base') }}",
        "{{ highwater.total_order('change') }} < {{ highwater.total_order('base') }}",
    ),
    "what is there stays": (
        f"{MERGE}/merge_into_base.sql",
        "when matched and {{ highwater.total",
        "when matched and false and {{ highwater.total",
    ),
    "compaction adds no new key": (
        f"{MERGE}/merge_into_base.sql",
        "when not matched then insert",
        "when not matched and false then insert",
    ),
    "keys below the highest of a batch are left out": (f"{MERGE}/key_ends.sql", "append('min('", "append('max('"),
    "deleted rows are shown": (f"{MERGE}/current_rows.sql", "    not is_deleted\n", "    true\n"),
    "base rows behind pending ones are shown": (
        f"{MERGE}/current_rows.sql",
        "left anti join (select `{{ key | join('`, `') }}` from pending)",
        "left anti join (select `{{ key | join('`, `') }}` from pending where false)",
    ),
    "what is pending is not shown": (
        f"{MERGE}/current_rows.sql",
        "    from latest\n",
        "    from latest\n    where false\n",
    ),
    "the newest pending batch is not shown": (
        f"{MERGE}/current_rows.sql",
        "and log_batch > {{ applied_batch }}",
        "and log_batch > {{ applied_batch }} + 1",
    ),
    "upper case sorts before lower case": (
        f"{STAGING}/order/sortable_sequence.sql",
        "then lower({{ 'concat('",
        "then ({{ 'concat('",
    ),
    "an old key stays": (
        f"{STAGING}/datastream/datastream_change_type.sql",
        "in ('UPDATE-DELETE', 'DELETE') then 'delete'",
        "in ('DELETE') then 'delete' when metadata.change_type = 'UPDATE-DELETE' then 'update'",
    ),
    "operations in lower case are unknown": (
        f"{STAGING}/datastream/datastream_change_type.sql",
        "upper(metadata.change_type) in ('UPDATE-DELETE'",
        "metadata.change_type in ('UPDATE-DELETE'",
    ),
    "deletes are live rows": (
        f"{STAGING}/contract/change_contract.sql",
        "change_type in ('delete', 'truncate') as is_deleted",
        "change_type = 'truncate' as is_deleted",
    ),
}
OF_FILES = {
    "places in a file say nothing": (
        f"{STAGING}/contract/places_in_file.sql",
        "first_line\n            {%- endif %}\n        ) - 1",
        "1\n            {%- endif %}\n        ) - 1",
    ),
    "places count copies": (f"{STAGING}/contract/places_in_file.sql", "dense_rank() over", "row_number() over"),
    "an old key goes after the new one": (
        f"{STAGING}/contract/places_in_file.sql",
        "'is_derived desc, '",
        "'is_derived, '",
    ),
    "the deletes of updates are lost": (
        f"{STAGING}/tungsten/tungsten_records.sql",
        "when 'UD' then 'delete'",
        "when 'UD' then 'update'",
    ),
    "old keys are not deleted": (
        f"{STAGING}/contract/parts_of_changes.sql",
        "then array('change', 'old key')",
        "then array('change')",
    ),
}
PARTIAL_IMAGES = {
    "what is absent is NULL": (
        f"{MERGE}/judged_changes.sql",
        "array_contains(present_columns, '{{ group[0] }}')",
        "true",
    ),
    "columns are as old as their row": (
        f"{MERGE}/folded_changes.sql",
        "'column_orders is null and not held.is_deleted'",
        "'is_deleted is false'",
    ),
    "values from before a delete shine through": (
        f"{MERGE}/folded_changes.sql",
        "coalesce(`each part`.`order` > `order gone`, `each part`.`order` is not null)",
        "`each part`.`order` is not null",
    ),
    "a row that is gone is there": (
        f"{MERGE}/folded_changes.sql",
        "not `is alive` as is_deleted",
        "`order there` is null as is_deleted",
    ),
    "what stands is not folded with": (
        f"{MERGE}/folded_changes.sql",
        "set has_current = current is not none and",
        "set has_current = false and",
    ),
    "a late column is superseded with its row": (
        f"{MERGE}/judged_changes.sql",
        "and `change order` >= `batch of {{ group[0] }}`",
        "and false",
    ),
}
# what these do shows only where the cases by id look (test_tungsten_arcion_debezium.py)
NOTICED_BY_CASES = {
    "values from before a delete shine through": "test_a_rebuild_gives_the_same_rows",
    "places count copies": "test_t14_a_copy_stands_where_its_original_does",
}
FILES = [producer for producer in PRODUCERS if producer.name in ("tungsten_mysql", "dms_csv")]
PARTIAL = [producer for producer in PRODUCERS if producer.name in ("debezium", "arcion_json")]


def planted(text: str, fault: tuple) -> str:
    """The text of a macro with a fault in it."""
    path, right, wrong = fault
    assert right in text, f"{path} is written in other words now: {right}"
    return text.replace(right, wrong)


@pytest.mark.parametrize("name", [*WHOLE_ROWS, *OF_FILES, *PARTIAL_IMAGES])
def test_every_fault_can_be_planted(request, name):
    fault = (WHOLE_ROWS | OF_FILES | PARTIAL_IMAGES)[name]
    text = (request.config.rootpath / fault[0]).read_text()
    assert planted(text, fault) != text


@contextlib.contextmanager
def noticed():
    """What runs inside finds a difference; SQL that cannot be run says nothing about a test."""
    with pytest.raises(AssertionError) as found:
        yield
    words = str(found.value)
    assert "Error" not in words or "DELTA_MULTIPLE_SOURCE_ROW_MATCHING" in words, words
    print(words.splitlines()[0][:300])


@pytest.fixture
def with_fault(workshop):
    changed = {}

    def plant(fault):
        path = workshop.folder / fault[0]
        changed[path] = path.read_text()
        path.write_text(planted(changed[path], fault))

    yield plant
    for path, text in changed.items():
        path.write_text(text)


@pytest.fixture(scope="module")
def faulty(workshop):
    for producers, entity in ((FILES, "faulty_files"), (PARTIAL, "faulty_partial")):
        for place, producer in enumerate(producers):
            declare(workshop, producer, entity, place == 0)
    # a first build on whole macros
    run_histories(workshop, 4_000, 10)
    run(workshop, 4_000, 10, {"faulty_files": FILES})
    run(workshop, 4_000, 10, {"faulty_partial": PARTIAL})
    return workshop


def check_whole_rows(workshop, number):
    run_histories(workshop, 4_000 + number, 60)


def check_files(workshop, number):
    run(workshop, 4_000 + number, 40, {"faulty_files": FILES}, first=1_000 * number, builds=2)


def check_partial_images(workshop, number):
    run(workshop, 4_000 + number, 40, {"faulty_partial": PARTIAL}, first=1_000 * number, builds=2)


CHECKS = [(WHOLE_ROWS, check_whole_rows), (OF_FILES, check_files), (PARTIAL_IMAGES, check_partial_images)]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("fault", "number", "check"),
    [
        pytest.param(fault, number, check, id=name)
        for faults, check in CHECKS
        for number, (name, fault) in enumerate(faults.items(), 1)
        if name not in NOTICED_BY_CASES
    ],
)
def test_a_fault_is_noticed(faulty, with_fault, fault, number, check):
    with_fault(fault)
    with noticed():
        # what happens in a history is chance: not each has a build that was cut off
        for attempt in range(3):
            check(faulty, number + 100 * attempt)


@pytest.mark.soak
def test_the_whole_macros_pass_after_all_that(faulty):
    for _, check in CHECKS:
        check(faulty, 900)
