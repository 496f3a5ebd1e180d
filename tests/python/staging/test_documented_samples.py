"""The producers' own samples, byte for byte as their documentation prints them, landed and built. One build for all."""

import pytest
from repository import FIXTURES

pytestmark = pytest.mark.long

SOFTWARE, MICROSOFT = "http://www.continent.com/software", "http://www.microsoft.com"


def fixture(name):
    return (FIXTURES / name).read_bytes()


def with_key(records, key):
    """The samples of region 10, told of another region."""
    return b"".join(
        record.replace(b",10,NULL,1,", b",%d,NULL,1," % key).replace(b",NULL,10,2,", b",NULL,%d,2," % key)
        for record in records
    )


@pytest.fixture(scope="module")
def samples(workshop):
    workshop.add_table("tungsten_seeds.seed_pages", "id:string", "url:string", "tungsten-csv", {"dialect": "vertica"})
    workshop.add_table("arcion_seeds.seed_regions", "r_regionkey:int", "r_comment:string,r_name:string", "arcion-csv")
    declaration = workshop.folder / "models/staging/arcion_seeds/_arcion_seeds__sources.yml"
    declaration.write_text(
        declaration.read_text().replace("[r_regionkey, r_comment, r_name]", "[r_comment, r_name, r_regionkey]")
    )
    workshop.add_table(
        "arcion_documents.seed_nations",
        "n_nationkey:int",
        "n_comment:string,n_regionkey:int,n_name:string",
        "arcion-json",
    )
    workshop.add_table("arcion_documents.seed_places", "r_regionkey:int", "r_comment:string,r_name:string")

    workshop.deliver("tungsten_seeds.seed_pages", "1.csv", '"I","1","1","2016-03-11 20:00:00.000","143","old"\n')
    workshop.land("tungsten_seeds")
    workshop.deliver("tungsten_seeds.seed_pages", "2.csv", fixture("tungsten_seed.csv"))

    insert, update, delete = fixture("arcion_seed_region_cleaned.csv").splitlines(keepends=True)
    repaired = delete.replace(b'""dscI""', b'""dscId""')
    workshop.deliver("arcion_seeds.seed_regions", "printed.csv", fixture("arcion_seed_region.csv"))
    workshop.deliver("arcion_seeds.seed_regions", "cleaned.csv", fixture("arcion_seed_region_cleaned.csv"))
    workshop.deliver("arcion_seeds.seed_regions", "a1.csv", with_key([repaired, update, insert], 11))
    workshop.deliver("arcion_seeds.seed_regions", "a2.csv", with_key([update], 12))
    workshop.land("arcion_seeds")
    workshop.deliver("arcion_seeds.seed_regions", "a2-later.csv", with_key([insert], 12))

    workshop.deliver("arcion_documents.seed_nations", "nation.json", fixture("arcion_seed_nation.json"))
    workshop.deliver("arcion_documents.seed_places", "region.json", fixture("arcion_seed_region.json"))
    workshop.land("tungsten_seeds", "arcion_seeds", "arcion_documents")
    workshop.build("+seed_pages", "+seed_regions", "+seed_nations", "+seed_places", command="run")


def verdicts(workshop, entity, file):
    return workshop.rows(
        f"select source_line, verdict, rejection_reason from {entity}_changes where source_file like '%/{file}' "
        "order by source_line"
    )


def test_t1_delete_and_insert_of_one_seqno_end_in_the_insert(samples, workshop):
    assert dict(workshop.rows("select id, url from seed_pages")) == {"986": SOFTWARE, "143": MICROSOFT}
    assert [row[1:] for row in verdicts(workshop, "seed_pages", "2.csv")] == [
        ("applied", None),
        ("superseded", None),
        ("applied", None),
    ]


def test_a1_and_a2_the_order_is_that_of_the_commit_log_however_the_records_arrive(samples, workshop):
    """Of region 11 came delete, update, insert; of region 12 the update, and in a later batch the insert."""
    assert workshop.rows("select r_comment, r_name from seed_regions where r_regionkey = 12") == [("USA", "India")]
    assert workshop.rows("select is_deleted from seed_regions_merged where r_regionkey = 11") == [(True,)]
    assert workshop.rows("select r_regionkey from seed_regions where r_regionkey = 11") == []


def test_a3_a_delete_without_a_place_in_the_commit_log_is_rejected(samples, workshop):
    assert verdicts(workshop, "seed_regions", "cleaned.csv") == [
        (1, "applied", None),
        (2, "applied", None),
        (3, "rejected", "unreadable_sequence"),
    ]
    assert workshop.rows("select r_comment, r_name from seed_regions where r_regionkey = 10") == [("USA", "India")]


def test_the_wrapped_lines_as_printed_are_rejected_with_all_their_bytes(samples, workshop):
    """A wrap stands between a quote and the next one, which no writer does: nothing of the records is believed."""
    rows = workshop.rows(
        "select verdict, rejection_reason, record from seed_regions_changes where source_file like '%/printed.csv' "
        "order by source_line"
    )
    assert {row[0] for row in rows} == {"rejected"}
    assert b"\n".join(bytes(row[2]) for row in rows) + b"\n" == fixture("arcion_seed_region.csv")


def test_a4_the_nation_is_inserted_renamed_and_deleted(samples, workshop):
    assert workshop.rows(
        "select change_type, n_name, verdict from seed_nations_changes order by change_sequence_number"
    ) == [
        ("insert", "Testing name", "superseded"),
        ("update", "Updating test name", "superseded"),
        ("delete", None, "applied"),
    ]
    assert workshop.value("select count(*) from seed_nations") == 0


def test_line_ends_inside_names_of_the_cursor_do_not_count(samples, workshop):
    """`extraction Timestamp`, `partNu m` and `partN um` are understood; the sample's region ends absent."""
    assert workshop.rows(
        "select change_type, r_comment, present_columns, rejection_reason from seed_places_changes "
        "order by change_sequence_number"
    ) == [
        ("insert", "India", None, None),
        ("update", "USA", ["r_regionkey", "r_comment"], None),
        ("delete", None, None, None),
    ]
    parts = workshop.rows("select split_part(change_sequence_number, '/', 5) from seed_places_changes")
    assert parts == [("0000000000000001",)] * 3  # partNum
    assert workshop.value("select count(*) from seed_places") == 0
