"""Tables without a key, in every format whose updates may carry an old one: a log, every record in it a change."""

import json

import pytest

FORMATS = {
    "debezium-json": {"connector": "postgresql"},
    "arcion-json": {},
    "arcion-csv": {},
    "dms-csv": {},
    "dms-parquet": {},
    "changelog": {},
}


@pytest.mark.long
def test_a_table_without_a_key_has_a_log_in_every_format(workshop):
    names = {format: f"keyless_{number}" for number, format in enumerate(FORMATS)}
    for format, settings in FORMATS.items():
        table = f"loose_{names[format]}.{names[format]}"
        workshop.add_table(table, None, "x:int,y:string", format, settings, without_key=True)
    name = names["debezium-json"]
    source = {"connector": "postgresql", "name": "shop", "ts_ms": 1_700_000_000_000, "snapshot": "false"}
    images = [(None, {"x": 1, "y": "a"}), ({"x": 1, "y": "a"}, {"x": 2, "y": "a"}), ({"x": 2, "y": "a"}, None)]
    records = [
        {"op": op, "before": before, "after": after, "source": source | {"lsn": lsn}}
        for lsn, (op, (before, after)) in enumerate(zip("cud", images, strict=True), 1)
    ]
    workshop.deliver(f"loose_{name}.{name}", "1.json", "".join(f"{json.dumps(record)}\n" for record in records))
    workshop.land(*(f"loose_{name}" for name in names.values()))
    workshop.build(*(f"+{name}_changes" for name in names.values()), command="run")
    changes = workshop.rows(
        f"select change_type, x, is_derived, rejection_reason from lake.{name}_changes order by 1, 2"
    )
    # the row that an update leaves is another one, or the same: nothing tells, so nothing is derived
    assert changes == [("delete", 2, False, None), ("insert", 1, False, None), ("update", 2, False, None)]
    for other in names.values():
        assert other == name or workshop.rows(f"select * from lake.{other}_changes") == []
