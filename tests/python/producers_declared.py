"""What producers write whose records the package declares: one history, as each of them encodes it."""

import base64
import json
import random
from datetime import datetime, timedelta, timezone

BEGAN = datetime(2026, 3, 2, 9, 15, 30, tzinfo=timezone.utc)
COLUMNS = ("id", "email", "balance", "bio")


def history(seed: int, changes: int = 60) -> list[tuple]:
    """Return what happened to a table: (operation, row before, row after), in order; None where there is none.

    Keys move, come again and are used by others; rows of one transaction are changed twice.
    """
    dice, rows, found = random.Random(seed), {}, []
    for number in range(changes):
        operation = dice.choice(["insert", "insert", "update", "update", "move", "delete"]) if rows else "insert"
        id = dice.choice([*rows]) if operation != "insert" else dice.choice([n for n in range(1, 40) if n not in rows])
        free = [n for n in range(1, 40) if n not in rows]
        before = rows.pop(id, None) if operation != "insert" else None
        after = None
        if operation != "delete":
            key = dice.choice(free) if operation == "move" else id
            bio = dice.choice([None, "null", "a 'quoted' \"bio\"", "löng [{,}] ☃", before["bio"] if before else ""])
            after = {"id": key, "email": f"{number}@x.io", "balance": f"{number}.{dice.randrange(10)}0", "bio": bio}
            rows[key] = after
        found.append(({"move": "update"}.get(operation, operation), before, after))
    return found


def rows_of(changes: list[tuple]) -> list[tuple]:
    """Return the rows that a history leaves."""
    rows = {}
    for _, before, after in changes:
        if before:
            rows.pop(before["id"])
        if after:
            rows[after["id"]] = after
    return sorted(tuple(row[name] for name in COLUMNS) for row in rows.values())


def _as_numbers(row: dict | None) -> str:
    """Return a row as JSON in which numbers are numbers, as they are written."""
    if row is None:
        return "null"
    parts = (f'"{name}":{value if name in ("id", "balance") else json.dumps(value)}' for name, value in row.items())
    return "{" + ",".join(parts) + "}"


def _changed(before: dict, after: dict) -> dict:
    return {name: value for name, value in before.items() if after[name] != value}


def _transactions(changes: list[tuple]):
    """Yield number of the transaction, place in it, whether it is the last one, and the change."""
    dice, start, number = random.Random(len(changes)), 0, 0
    while start < len(changes):
        size = dice.randint(1, 4)
        for place, change in enumerate(changes[start : start + size]):
            yield number, place, place == size - 1 or start + place == len(changes) - 1, change
        start, number = start + size, number + 1


def maxwell(changes: list[tuple], has_position: bool = True) -> list[str]:
    """Lines as Maxwell writes them, with `output_binlog_position` where positions are asked for."""
    lines = [
        '{"database":"shop","table":"customers","type":"bootstrap-start","ts":1772442930,"data":{}}',
        '{"database":"shop","table":"customers","type":"table-create","ts":1772442930,"sql":"create table customers"}',
    ]
    for number, place, is_last, (operation, before, after) in _transactions(changes):
        position = f',"position":"binlog.{999990 + number:06}:{100 + number}"' if has_position else ""
        end = '"commit":true' if is_last else f'"xoffset":{place}'
        old = f',"old":{_as_numbers(_changed(before, after))}' if operation == "update" else ""
        lines.append(
            f'{{"database":"shop","table":"customers","type":"{operation}","ts":{1772442930 + number // 3},'
            f'"xid":{7000 + number},{end}{position},"data":{_as_numbers(after or before)}{old}}}'
        )
    return lines


def canal(changes: list[tuple]) -> list[str]:
    """Messages of Canal's flat form: all values are texts, and rows of one event stand in one message."""
    lines = [
        '{"data":null,"database":"shop","es":1772442930000,"id":1,"isDdl":true,"old":null,"pkNames":null,'
        '"sql":"create table customers","table":"customers","ts":1772442930001,"type":"CREATE"}'
    ]

    def texts(row):
        return {name: None if value is None else str(value) for name, value in row.items()}

    events = []
    for number, _, _, (operation, before, after) in _transactions(changes):
        if not events or events[-1][:2] != (number, operation):
            events.append((number, operation, [], []))
        events[-1][2].append(texts(after or before))
        if operation == "update":
            events[-1][3].append(texts(_changed(before, after)))
    for number, operation, data, old in events:
        document = {
            "data": data, "database": "shop", "es": 1772442930000 + number // 3 * 1000, "id": 2 + number // 2,
            "isDdl": False, "old": old or None, "pkNames": ["id"], "sql": "", "table": "customers",
            "ts": 1772442930500 + number, "type": operation.upper(),
        }  # fmt: skip
        lines.append(json.dumps(document, ensure_ascii=False))
    return lines


def dms(changes: list[tuple]) -> list[str]:
    """Messages of AWS DMS on Kafka, with the image before."""
    lines = [
        '{"metadata":{"timestamp":"2026-03-02T09:15:29.000001Z","record-type":"control","operation":"create-table",'
        '"partition-key-type":"task-id","schema-name":"shop","table-name":"customers"}}'
    ]
    for number, _, _, (operation, before, after) in _transactions(changes):
        at = (BEGAN + timedelta(microseconds=number // 3)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        image = f',"before-image":{_as_numbers(before)}' if operation == "update" else ""
        lines.append(
            f'{{"data":{_as_numbers(after or before)}{image},"metadata":{{"timestamp":"{at}","record-type":"data",'
            f'"operation":"{operation}","partition-key-type":"primary-key","schema-name":"shop",'
            f'"table-name":"customers","transaction-id":{670014899490 + number}}}}}'
        )
    return lines


def goldengate(changes: list[tuple]) -> list[str]:
    """Records of Oracle GoldenGate; updates carry the key and what has changed, as trails do by default."""
    lines = []
    for number, (operation, before, after) in enumerate(changes):
        new, old = after, before
        if operation == "update" and before["id"] == after["id"]:
            names = ["id", *_changed(before, after)]
            new, old = ({name: row[name] for name in names} for row in (after, before))
        images = f'"before":{_as_numbers(old)},"after":{_as_numbers(new)}'
        lines.append(
            f'{{"table":"SHOP.CUSTOMERS","op_type":"{operation[0].upper()}","op_ts":"2026-03-02 09:15:30.{number:06}",'
            f'"current_ts":"2026-03-02T09:15:32.114000","pos":"{14:010}{98826 + number:010}",'
            f'"primary_keys":["id"],{images}}}'
        )
    return lines


def _columns_of_wal2json(row: dict, names: list[str]) -> str:
    types = {"id": "integer", "email": "text", "balance": "numeric(10,2)", "bio": "text"}
    parts = []
    for name in names:
        value = row[name] if name in ("id", "balance") else json.dumps(row[name])
        parts.append(f'{{"name":"{name}","type":"{types[name]}","value":{value}}}')
    return f"[{','.join(parts)}]"


def wal2json(changes: list[tuple]) -> list[str]:
    """Records of wal2json's second format, with positions; a value that an update leaves in TOAST is absent."""
    lines = []
    for ordinal, (number, place, is_last, (operation, before, after)) in enumerate(_transactions(changes)):
        lsn = f"F/FFFF{ordinal:04X}" if ordinal < 8 else f"10/{ordinal:X}"
        if not place:
            lines.append(f'{{"action":"B","xid":{number},"lsn":"{lsn}","nextlsn":"{lsn}"}}')

        parts = []
        if after:
            in_toast = before and before["id"] == after["id"] and before["bio"] == after["bio"]
            kept = [name for name in COLUMNS if name != "bio" or not in_toast]
            parts.append(f'"columns":{_columns_of_wal2json(after, kept)}')
        if before:
            parts.append(f'"identity":{_columns_of_wal2json(before, ["id"])}')
        lines.append(
            f'{{"action":"{operation[0].upper()}","lsn":"{lsn}","timestamp":"2026-03-02 09:16:41.000001+00",'
            f'"schema":"public","table":"customers",{",".join(parts)}}}'
        )
        if is_last:
            lines.append(f'{{"action":"C","xid":{number},"lsn":"{lsn}"}}')
    return lines


def wal2json_v1(changes: list[tuple]) -> list[str]:
    """Documents of wal2json's first format, one a transaction, over many lines as `pretty-print` writes them."""
    documents: list[list[str]] = []
    for number, place, _, (operation, before, after) in _transactions(changes):
        if not place:
            documents.append([])
        parts = [f'"kind":"{operation}","schema":"public","table":"customers"']
        if after:
            values = json.loads(_as_numbers(after).replace(f":{after['balance']}", ':"%"'))
            texts = [after["balance"] if value == "%" else json.dumps(value) for value in values.values()]
            parts.append(f'"columnnames":{json.dumps(COLUMNS)},"columnvalues":[{",".join(texts)}]')
        if before:
            parts.append(f'"oldkeys":{{"keynames":["id"],"keytypes":["integer"],"keyvalues":[{before["id"]}]}}')
        documents[-1].append(f"{{{','.join(parts)}}}")
        last = number
    assert last + 1 == len(documents)
    return [
        f'{{\n\t"nextlsn":"0/{number + 250:X}",\n\t"change":[\n\t\t' + "\n\t\t,".join(each) + "\n\t]\n}"
        for number, each in enumerate(documents)
    ] + ['{"nextlsn":"0/FFFF","change":[]}']


def _as_rows(changes: list[tuple]):
    """Yield number, place, operation and row of each step; an update of the key is a delete and an insert."""
    for number, place, _, (operation, before, after) in _transactions(changes):
        if operation == "update" and before["id"] != after["id"]:
            yield number, place, "delete", before
            yield number, place, "insert", after
        else:
            yield number, place, operation, after or before


def _with(row: dict, **beside) -> str:
    return f"{_as_numbers(row)[:-1]},{json.dumps(beside)[1:]}"


def qlik_table(changes: list[tuple]) -> list[str]:
    """Rows of a change table of Qlik Replicate: a row before an update stands beside it, at its sequence."""
    lines = []
    for number, (operation, before, after) in enumerate(changes):
        at = {"header__change_seq": f"2026030209164100{number:019}", "header__timestamp": "2026-03-02 09:16:41.000"}
        images = [("B", before), ("U", after)] if operation == "update" else [(operation[0].upper(), after or before)]
        lines += [_with(row, **at, header__change_oper=kind) for kind, row in images]
    return lines


def qlik_json(changes: list[tuple]) -> list[str]:
    """Messages of Qlik Replicate."""
    lines = []
    for number, (operation, before, after) in enumerate(changes):
        headers = {"operation": operation.upper(), "changeSequence": f"2026030209164100{number:019}"}
        headers |= {"timestamp": "2026-03-02T09:16:41.000", "streamPosition": "00000;637", "transactionId": "0A"}
        old = _as_numbers(before) if operation == "update" else "null"
        lines.append(
            f'{{"magic":"atMSG","type":"DT","headers":null,"messageSchemaId":null,"messageSchema":null,"message":{{'
            f'"data":{_as_numbers(after or before)},"beforeData":{old},"headers":{json.dumps(headers)}}}}}'
        )
    return lines


def sqlserver_table(changes: list[tuple]) -> list[str]:
    """Rows of a change table of SQL Server: 3 is before an update and 4 behind it, LSNs as hex digits or in base64."""
    lines = []
    for ordinal, (number, place, _, (operation, before, after)) in enumerate(_transactions(changes)):
        lsns = [(100 + number).to_bytes(10, "big"), (7000 + place).to_bytes(10, "big")]
        texts = [base64.b64encode(lsn).decode() if ordinal % 2 else f"0x{lsn.hex().upper()}" for lsn in lsns]
        at = {"__$start_lsn": texts[0], "__$seqval": texts[1], "__$command_id": 1, "__$update_mask": "0x0F"}
        images = [(3, before), (4, after)] if operation == "update" else [(2 if after else 1, after or before)]
        lines += [_with(row, **at, **{"__$operation": kind}) for kind, row in images]
    return lines


def airbyte(changes: list[tuple]) -> list[str]:
    """Records that Airbyte has read of PostgreSQL by CDC: a deleted row has its key, and the rest is NULL."""
    lines = []
    for place, (_, _, operation, row) in enumerate(_as_rows(changes)):
        at = f"2026-03-02T09:16:41.{place:06}Z"
        gone = {"_ab_cdc_deleted_at": at if operation == "delete" else None}
        row = {name: row[name] if name == "id" else None for name in row} if operation == "delete" else row
        text = _with(row, _ab_cdc_lsn=97895067208 + place // 2, _ab_cdc_updated_at=at, _airbyte_raw_id="0e1", **gone)
        lines.append(text.replace('"balance":None', '"balance":null'))
    return lines


def fivetran(changes: list[tuple]) -> list[str]:
    """Rows of a table of Fivetran, each time that it has synced one."""
    return [
        _with(row, _fivetran_deleted=operation == "delete", _fivetran_synced=f"2026-03-02T09:30:11.{place:06}Z")
        for place, (_, _, operation, row) in enumerate(_as_rows(changes))
    ]


# by format: the order that is declared, and what writes the records
PRODUCERS = {
    "maxwell-json": ("position", maxwell),
    "canal-json": ("batch", canal),
    "dms-json": ("place", dms),
    "goldengate-json": ("pos", goldengate),
    "wal2json": ("lsn", wal2json),
    "wal2json-v1": ("lsn", wal2json_v1),
    "qlik-change-table": ("change_seq", qlik_table),
    "qlik-json": ("change_seq", qlik_json),
    "sqlserver-change-table": ("lsn", sqlserver_table),
    "airbyte": ("postgresql", airbyte),
    "fivetran": ("synced", fivetran),
}
