"""Columns that delivered files tell, of every family of formats: from their schema, else from their values."""

import gzip
import json
import os
import re
import shlex
import shutil

import pytest
from connect_files import avro_file, by_schema, parquet_file
from highwater.catalog.feeds import declared_feeds, feed_of_settings
from highwater.runtime.errors import UsageError
from highwater.scaffold import new_fields
from highwater.scaffold.found_columns import Observed, found_in_files
from repository import FIXTURES, PROJECT
from test_commands import run
from workshop import copy_empty_project


def found(feed, table):
    columns, doubts, _ = found_in_files(feed, table)
    types = {c.field: c.data_type + (f"[{c.unit}]" if c.unit else "") for c in columns.columns}
    return types, columns.key, [*map(str, doubts)]


def delivered(tmp_path, monkeypatch, format, files, **settings):
    """Deliver files of a table `t`, and return their feed."""
    monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path))
    for number, (name, content) in enumerate(files.items()):
        path = tmp_path / "feed_t/t" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, (number, number))
    return feed_of_settings("test", "feed_t", {"format": format, **settings}, {"t": "t"})


@pytest.mark.parametrize(
    "feed, table, types, key",
    [
        (
            "datastream_hr",
            "employees",
            "employee_id bigint, name string, salary decimal(20,4), hired_on date, badge binary, is_active boolean, "
            "rating double, starts_at string, phones string, seen_at timestamp, updated_at timestamp",
            ["employee_id"],
        ),
        (
            "dms_stock",
            "stock_levels",
            "warehouse string, sku string, quantity bigint, price decimal(12,2), is_open boolean, picture binary, "
            "counted_at timestamp_ntz, volume double",
            [],
        ),
        (
            "datastream_crm",
            "contacts",
            "id bigint, name string, credit string, photo string, born_on timestamp_ntz, seen_at timestamp_ntz",
            ["id"],
        ),
        ("arcion_tpch", "region", "r_comment string, r_name string, r_regionkey string", []),
    ],
)
def test_the_examples_tell_their_columns(feed, table, types, key, monkeypatch):
    monkeypatch.chdir(PROJECT)
    monkeypatch.setenv("HIGHWATER_LANDING", "examples/landing")
    assert found(declared_feeds()[feed], table)[:2] == (dict(each.split() for each in types.split(", ")), key)


def test_the_type_of_a_new_field_is_told_by_what_was_delivered(tmp_path, monkeypatch):
    lines = [
        json.dumps({"datastream_metadata": {"change_type": "INSERT"}, "id": 1, "qty": number, "seen": "2026-01-02"})
        for number in (1, 2)
    ]
    feed = delivered(tmp_path, monkeypatch, "datastream-json", {"a.json": "\n".join(lines) + "\n"})
    monkeypatch.setattr(new_fields, "declared_feeds", lambda: {"feed_t": feed})
    type_of = new_fields.types_of_fields()
    row = {"entity": "t", "feed": "feed_t", "table": "t"}
    assert type_of(row | {"field": "qty"}) == "bigint"
    (tmp_path / "feed_t/t/a.json").write_text("")
    assert type_of(row | {"field": "seen"}) == "date"  # read once
    assert new_fields.types_of_fields()(row | {"field": "gone"}) == "string"

    def fails(*_):
        raise OSError("no such bucket")

    monkeypatch.setattr(new_fields, "observed_of", fails)
    assert new_fields.types_of_fields()(row | {"field": "qty"}) is None


def column(name, kind, semantic=None, **parameters):
    told = {"field": name, "type": kind, "optional": True}
    return (
        told
        | ({"name": semantic, "version": 1} if semantic else {})
        | ({"parameters": parameters} if parameters else {})
    )


CONNECT = [
    column("id", "int64"),
    column("total", "bytes", "org.apache.kafka.connect.data.Decimal", scale="2", **{"connect.decimal.precision": "12"}),
    column("loose", "struct", "io.debezium.data.VariableScaleDecimal"),
    column("at", "int64", "io.debezium.time.MicroTimestamp"),
    column("seen", "string", "io.debezium.time.ZonedTimestamp"),
    column("day", "int32", "io.debezium.time.Date"),
    column("hour", "int64", "io.debezium.time.MicroTime"),
    column("what", "string", "io.debezium.data.Json"),
    column("photo", "bytes"),
    column("tags", "array"),
    column("open", "boolean"),
    column("small", "int16"),
    column("large", "int64", **{"__debezium.source.column.type": "BIGINT UNSIGNED"}),
    column("ratio", "double"),
    column("single", "float"),
]
OF_CONNECT = {
    "id": "bigint", "total": "decimal(12,2)", "loose": "string", "at": "timestamp_ntz[micros]", "seen": "timestamp",
    "day": "date", "hour": "string", "what": "string", "photo": "binary", "tags": "string", "open": "boolean",
    "small": "smallint", "large": "decimal(20,0)[unsigned]", "ratio": "double", "single": "float",
}  # fmt: skip


@pytest.mark.parametrize("form", ["envelope", "flattened"])
def test_a_schema_of_connect_tells_types_and_units(form, tmp_path, monkeypatch):
    row = {"id": 1, "total": "AQ==", "at": 5, "day": 3}
    if form == "envelope":
        schema = {"fields": [{"field": name, "type": "struct", "fields": CONNECT} for name in ("before", "after")]}
        payload = {"op": "c", "before": None, "after": row, "source": {"table": "t"}}
    else:
        schema, payload = {"fields": [*CONNECT, column("__op", "string")]}, row | {"__op": "c", "__deleted": "false"}
    text = json.dumps({"schema": schema, "payload": payload})
    feed = delivered(tmp_path, monkeypatch, "debezium-json", {"a.json": text}, connector="postgresql", form=form)
    assert found(feed, "t") == (OF_CONNECT, [], [])


# by the fixture of a form: the types of some columns of its table
OF_FORMS = {
    # bytes and numbers of times are not told apart from others
    "avro_json": {
        "id": "bigint",
        "c_text": "string",
        "c_bytea": "string",
        "c_double": "string",
        "c_boolean": "boolean",
    },
    "cloud_events": {"id": "bigint", "c_text": "string", "c_boolean": "boolean", "c_timestamptz": "timestamp"},
    "cloud_events_with_schema": {
        "id": "bigint",
        "c_numeric_10_2": "decimal(10,2)",
        "c_timestamp_3": "timestamp_ntz[millis]",
    },
}


@pytest.mark.parametrize("form", OF_FORMS)
def test_other_forms_of_debezium_tell_columns(form, tmp_path, monkeypatch):
    records = gzip.decompress((FIXTURES / f"debezium/{form}.jsonl.gz").read_bytes()).decode().splitlines()
    text = "\n".join(line for line in records if '"every_type"' in line)
    feed = delivered(tmp_path, monkeypatch, "debezium-json", {"a.json": text}, connector="postgresql")
    types, _, doubts = found(feed, "t")
    assert OF_FORMS[form].items() <= types.items(), types
    assert any("carry no schema" in doubt for doubt in doubts) == (form != "cloud_events_with_schema")


@pytest.mark.parametrize("prefix", ["cdc_", ""])
def test_metadata_with_a_declared_prefix_are_no_columns(prefix, tmp_path, monkeypatch):
    row = {
        "id": 1,
        "note": "x",
        f"{prefix}op": "c",
        f"{prefix}source_lsn": 5,
        f"{prefix}ts_ms": 7,
        "__deleted": "false",
    }
    settings = {"connector": "postgresql", "form": "flattened", "prefix": prefix}
    feed = delivered(tmp_path, monkeypatch, "debezium-json", {"a.json": json.dumps(row)}, **settings)
    assert found(feed, "t")[0] == {"id": "bigint", "note": "string"}


@pytest.mark.parametrize("fixture", ["with_schema", "flattened_with_schema"])
def test_avro_and_parquet_tell_what_the_same_records_tell_in_json(fixture, tmp_path, monkeypatch):
    lines = gzip.decompress((FIXTURES / f"debezium/{fixture}.jsonl.gz").read_bytes())
    group = next(group for group in by_schema(lines) if "c_timestamp" in json.dumps(group[0]))
    text = "\n".join(json.dumps({"schema": group[0], "payload": payload}) for payload in group[1])
    form = "flattened" if fixture.startswith("flattened") else "envelope"
    told = {}
    for format, content in (
        ("debezium-json", text),
        ("debezium-avro", avro_file(*group)),
        ("debezium-parquet", parquet_file(*group)),
    ):
        files = {f"a.{format.rpartition('-')[2]}": content}
        feed = delivered(tmp_path / format, monkeypatch, format, files, connector="postgresql", form=form)
        told[format] = found(feed, "t")
    assert len(told["debezium-json"][0]) > 20
    assert told["debezium-avro"] == told["debezium-parquet"] == told["debezium-json"]


SEEN = {
    "whole": ([1, -2, None], "bigint", None),
    "large": ([2**63, 1], "decimal(38,0)", "at most 0 digits"),
    "larger": ([10**40], "string", "more than a decimal holds"),
    "part": ([1, 2.25, 3.5], "decimal(38,2)", "at most 2 digits"),
    "yes": ([True, False], "boolean", None),
    "mixed": ([1, "a"], "string", "values of several kinds"),
    "midnight": (["2026-01-02T00:00:00.000", "2026-01-03T00:00:00.000"], "timestamp_ntz", "it may be a date"),
    "day": (["2026-01-02"], "date", None),
    "local": (["2026-01-02T03:04:05.123", "2026-01-02 03:04"], "timestamp_ntz", None),
    "moment": (["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+02:00"], "timestamp", None),
    "half a moment": (["2026-01-02T03:04:05Z", "2026-01-02"], "string", None),
    "text of numbers": (["1.00", "2"], "string", "numbers as texts"),
    "zeros": (["007"], "string", None),
    "list": ([[1]], "string", None),
    "nothing": ([None], "string", "no value in these records"),
}


def test_values_tell_a_type_that_holds_all_of_them(tmp_path, monkeypatch):
    lines = []
    for number in range(3):
        row = {name: values[number] for name, (values, _, _) in SEEN.items() if number < len(values)}
        lines.append(json.dumps(row | {"datastream_metadata": {"change_type": "INSERT"}}))
    types, key, notes = found(delivered(tmp_path, monkeypatch, "datastream-json", {"a.json": "\n".join(lines)}), "t")
    assert types == {name: told for name, (_, told, _) in SEEN.items()} and key == []
    for name, (_, _, words) in SEEN.items():
        about = [note for note in notes if note.startswith(f"{name} ")]
        assert (words in about[0]) if words else about == [], (name, about)


def test_headers_tell_names_and_what_dms_puts_beside_them_is_no_column(tmp_path, monkeypatch):
    text = "Op,at,id,op,price,code\nI,2026-01-01 00:00:00,1,x,1.50,007\nU,2026-01-01 00:00:00,2,y,2,1\n"
    feed = delivered(tmp_path, monkeypatch, "dms-csv", {"a.csv": text}, header=True, timestamp_column="at")
    types, _, notes = found(feed, "t")
    assert types == {"id": "bigint", "op": "string", "price": "decimal(38,2)", "code": "string"}
    assert notes == ["price has at most 2 digits behind the point in these records; the source may have more"]


def test_the_newest_files_come_first_and_damaged_ones_are_left_to_landing(tmp_path, monkeypatch):
    def line(**row):
        return json.dumps(row | {"datastream_metadata": {}}) + "\n"

    files = {"a.json": line(old=1), "b.json.gz": b"no gzip", "c.json": line(new=1) * 1000 + "{ no json\n"}
    feed = delivered(tmp_path, monkeypatch, "datastream-json", files)
    assert found(feed, "t")[0] == {"new": "bigint"}
    (tmp_path / "feed_t/t/c.json").write_text(line(new=1) + "{ no json\n")
    os.utime(tmp_path / "feed_t/t/c.json", (9, 9))
    assert list(found(feed, "t")[0]) == ["new", "old"]


HOSTILE = [
    "[1]", '"text"', "{}", '{"op": "c", "after": 5}', '{"op": "c", "after": [], "source": "x"}',
    "[" * 3000 + "]" * 3000,
    '{"schema": 5, "payload": {"op": "c", "after": {"id": 1}}}',
    '{"schema": {"fields": [1, {"field": 2}, {"field": "after", "type": "struct", "fields": "none"}]}, '
    '"payload": {"op": "c"}}',
    '{"schema": {"fields": [{"field": "after", "type": "struct", "fields": [{"field": "odd", "type": [], "name": 7}, '
    '{"field": "n", "name": "org.apache.kafka.connect.data.Decimal", "parameters": "?"}, {"field": "m", "name": '
    '"org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "x"}}]}]}, '
    '"payload": {"op": "c", "after": {"id": 2}}}',
    '{"op": "c", "after": {"": 1, "a\\u0000b": 2, "{{ 1/0 }}": 3, "' + "n" * 300 + '": 4}, "source": {}}',
    '{"op": "c", "after": {"id": NaN}, "source": {}}',
]  # fmt: skip


def test_hostile_records_tell_what_they_can_and_break_nothing(tmp_path, monkeypatch):
    feed = delivered(tmp_path, monkeypatch, "debezium-json", {"a.json": "\n".join(HOSTILE)}, connector="mysql")
    types, key, notes = found(feed, "t")
    assert types["id"] == "bigint" and types["{{ 1/0 }}"] == "bigint" and types["odd"] == types["m"] == "string"
    assert types["n"] == "decimal(38,0)" and not key and not {"", "a\x00b", "n" * 300} & types.keys()
    assert sum("is left in raw" in note for note in notes) == 3 and not re.search(r"[\x00-\x1f]", "".join(notes))


@pytest.mark.parametrize(
    "format, files, settings, words",
    [
        (
            "dms-csv",
            {"a.csv": "I,1,x\n"},
            {},
            "its files do not name them. Take them from the database's DDL with --ddl FILE",
        ),
        ("datastream-json", {}, {}, "no record of it is delivered yet"),
        ("changelog", {}, {}, "highwater extract feed_t.t --enable declares a table"),
    ],
)
def test_what_tells_nothing_is_a_sentence(format, files, settings, words, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=words):
        found_in_files(delivered(tmp_path, monkeypatch, format, files, **settings), "t")


def test_add_table_takes_what_files_tell_and_asks_for_the_rest(tmp_path, monkeypatch):
    copy_empty_project(PROJECT, tmp_path)
    for feed in ("datastream_hr", "datastream_user1"):
        shutil.copytree(PROJECT / "examples/landing" / feed, tmp_path / "landing" / feed)
    new = ["--format", "datastream-avro", "--setting", "order=postgresql_sort_keys"]
    result = run("add-table", "datastream_hr.employees", *new, "--source-table", "public_employees", cwd=tmp_path)
    assert result.returncode == 0 and "salary        decimal(20,4)" in result.stdout, result.stderr
    text = (tmp_path / "models/tables/hr/employees.yml").read_text()
    assert "key: [employee_id]" in text and '{name: salary, data_type: "decimal(20,4)"}' in text
    customers = ["add-table", "datastream_user1.customers", "--format", "datastream-json"]
    result = run(*customers, cwd=tmp_path)
    assert (
        result.returncode == 2
        and "do not tell its key; say which columns identify a row with --key NAME" in result.stderr
    )
    assert "It has: CUSTOMER_ID, NAME" in result.stderr and not (tmp_path / "models/tables/user1").exists()
    result = run(*customers, "--key", "customer_id", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    decided = "Decided, and declared in models/tables/user1/:\n  key: as --key says\n"
    assert decided in result.stdout and "partial_images" not in result.stdout
    assert (
        "{name: customer_id, data_type: bigint, config: {meta: {field: CUSTOMER_ID}}}"
        in (tmp_path / "models/tables/user1/customers.yml").read_text()
    )
    # types that are typed are believed
    typed = run("add-table", "datastream_user1.table1", "--key", "COL1:int", "--columns", "COL2:int", cwd=tmp_path)
    assert typed.returncode == 0 and "Columns as" not in typed.stdout, typed.stderr


def test_add_tables_without_ddl_takes_every_table_that_is_delivered(tmp_path):
    copy_empty_project(PROJECT, tmp_path)
    for feed in ("datastream_crm", "arcion_tpch"):
        shutil.copytree(PROJECT / "examples/landing" / feed, tmp_path / "landing" / feed)
    shutil.copytree(
        tmp_path / "landing/datastream_crm/crm_contacts", tmp_path / "landing/datastream_crm/Other Contacts"
    )
    new = ["--format", "datastream-gcs-json", "--setting", "order=mysql_sort_keys"]
    result = run("add-tables", "datastream_crm", *new, cwd=tmp_path)
    assert result.returncode == 0 and "2 of 2 tables added." in result.stdout, result.stdout + result.stderr
    assert re.search(
        r"datastream_crm.other_contacts +6 +id +added +landing/datastream_crm/Other Contacts/", result.stdout
    )
    assert "key: [id]" in (tmp_path / "models/tables/crm/crm_contacts.yml").read_text()
    again = run("add-tables", "datastream_crm", cwd=tmp_path)
    assert again.returncode == 0 and again.stdout.count("as it was") == 2 and "0 of 2 tables added." in again.stdout
    # where records do not tell the key, the command that is told works with it
    result = run("add-tables", "arcion_tpch", "--format", "arcion-json", "--setting", "layout=records", cwd=tmp_path)
    assert result.returncode == 1 and "0 of 3 tables added." in result.stdout, result.stdout + result.stderr
    told = re.search(r"highwater (add-table arcion_tpch.region .*) --key NAME", result.stderr)[1]
    assert run(*shlex.split(told), "--key", "r_regionkey", cwd=tmp_path).returncode == 0
    nothing = run(
        "add-tables", "debezium_none", "--format", "debezium-json", "--setting", "connector=mysql", cwd=tmp_path
    )
    assert nothing.returncode == 2 and "no table is delivered in" in nothing.stderr
    (tmp_path / "models/staging/arcion_tpch/stg_arcion_tpch__region_changes.sql").unlink()
    for command in (["check"], ["add-tables", "datastream_crm"]):
        result = run(*command, cwd=tmp_path)
        assert (
            "reads stg_arcion_tpch__region_changes, and stg_arcion_tpch__region_changes.sql is not there"
            in result.stderr
        ), result.stderr


def test_what_is_decided_and_what_is_not_told_is_said_once_for_all_tables(tmp_path):
    """Of columns, keys and settings; the first three are named."""
    copy_empty_project(PROJECT, tmp_path)
    record = {"op": "c", "after": {"id": 1, "price": "1.5"}, "source": {"lsn": 1}}
    for name in "abcde":
        (tmp_path / f"landing/debezium_shop/{name}").mkdir(parents=True)
        (tmp_path / f"landing/debezium_shop/{name}/1.json").write_text(json.dumps(record))
    debezium = ["add-tables", "debezium_shop", "--format", "debezium-json", "--setting", "connector=postgresql"]
    said = run(*debezium, cwd=tmp_path).stderr
    assert "Nothing tells the key of 5 tables." in said and said.count("--key NAME,…") == 3, said
    assert "\n  and so on, for 2 more\n" in said and "price" not in said
    ddl = "".join(f"create table {name} (id int primary key, price numeric, at timestamp(3));" for name in "abcde")
    (tmp_path / "schema.sql").write_text(ddl)
    result = run(*debezium, "--ddl", "schema.sql", cwd=tmp_path)
    assert result.stderr.startswith("a.price, b.price, c.price and 2 more: each is a number without a declared scale;")
    assert result.stderr.count("\n") == 1 and "7 files" not in result.stdout
    assert (
        "Decided, and declared in models/tables/shop/:\n"
        "  key: as the DDL says\n"
        "  unit of times: millis, by the digits behind the second in the DDL (`times` of the feed may say otherwise): "
        "a.at, b.at, c.at and 2 more\n"
        "  partial_images: true, for changes of debezium-json may carry some columns only\n"
        "  truncates: true, for debezium-json tells when a table is truncated\n"
    ) in result.stdout, result.stdout
    again = run(*debezium, "--ddl", "schema.sql", cwd=tmp_path)
    assert "Decided" not in again.stdout and again.stderr == "", again.stderr


def test_of_many_tables_in_one_folder_the_first_are_named():
    told = Observed(tables={("public", f"shard_{number:03}\x1b[31m") for number in range(300)})
    assert "(shard_000\\x1b[31m, " in told.of_several_tables()
    assert " and 295 more)" in told.of_several_tables()
