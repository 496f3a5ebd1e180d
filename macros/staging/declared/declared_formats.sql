{%- macro declared_formats() -%}
{%- set declared %}
maxwell-json:
  table: $.table
  schema: $.database
  key: $.primary_key_columns
  operation: $.type
  insert: [insert, bootstrap-insert]
  update: [update]
  delete: [delete]
  ignore: [
    bootstrap-start, bootstrap-complete, table-create, table-alter, table-drop, database-create, database-alter,
    database-drop,
  ]
  orders:
    # the row that ends a transaction has no xoffset
    position:
      - {file: "split_part($.position, ':', 1)"}
      - {integer: "split_part($.position, ':', 2)"}
      - {integer: "coalesce($.xoffset, '9223372036854775807')"}
    place: [{timestamp: $.ts, unit: seconds}, place]
  snapshot_when: $.type = 'bootstrap-insert'
  time: {timestamp: $.ts, unit: seconds}
  row: $.data
  before: $.old
canal-json:
  each: [data, old]
  table: $.table
  schema: $.database
  key: $.pkNames
  operation: $.type
  insert: [INSERT, INIT]
  update: [UPDATE]
  delete: [DELETE]
  truncate: [TRUNCATE]
  ignore_when: $.isDdl = 'true' and $.type <> 'TRUNCATE'
  orders:
    # all messages that one request of a client has got share an id
    batch: [{timestamp: $.es, unit: milliseconds}, {integer: $.id}, place]
  snapshot_when: $.type = 'INIT'
  time: {timestamp: $.es, unit: milliseconds}
  row: $.data
  before: $.old
dms-json:
  table: $.metadata['table-name']
  schema: $.metadata['schema-name']
  operation: $.metadata.operation
  insert: [load, insert]
  update: [update]
  delete: [delete]
  truncate: [truncate-table]
  ignore_when: $.metadata['record-type'] = 'control' and $.metadata.operation <> 'truncate-table'
  orders:
    # when DMS made the record: it reads one log, in its order
    place: [{timestamp: $.metadata.timestamp}, place]
  snapshot_when: $.metadata.operation = 'load'
  time: {timestamp: $.metadata.timestamp}
  row: $.data
  before: $['before-image']
  partial: true
goldengate-json:
  table: {qualified: $.table}
  key: $.primary_keys
  operation: $.op_type
  insert: [I]
  update: [U]
  delete: [D]
  truncate: [T]
  orders:
    pos: [{digits: $.pos, width: 32}]
  time: {timestamp: $.op_ts}
  row: $.after
  before: $.before
  partial: true
wal2json:
  table: $.table
  schema: $.schema
  operation: $.action
  insert: [I]
  update: [U]
  delete: [D]
  truncate: [T]
  ignore: [B, C, M]
  orders:
    lsn: [{lsn: $.lsn}]
    place: [{timestamp: $.timestamp}, place]
  time: {timestamp: $.timestamp}
  binary: hex
  row: {of: $.columns, name: name, value: value}
  before: {of: $.identity, name: name, value: value}
  partial: true
wal2json-v1:
  each: [change]
  table: $.change.table
  schema: $.change.schema
  operation: $.change.kind
  insert: [insert]
  update: [update]
  delete: [delete]
  truncate: [truncate]
  ignore: [message]
  orders:
    lsn: [{lsn: $.nextlsn}, {integer: $index}]
    place: [{timestamp: $.timestamp}, place]
  time: {timestamp: $.timestamp}
  binary: hex
  row: {names: $.change.columnnames, values: $.change.columnvalues}
  before: {names: $.change.oldkeys.keynames, values: $.change.oldkeys.keyvalues}
  partial: true
qlik-change-table:
  operation: $.header__change_oper
  insert: [I, INSERT]
  update: [U, UPDATE]
  # B is the row before an update, at its sequence: where its key is another one, it is gone
  delete: [D, DELETE, B, BEFOREIMAGE]
  truncate: [T, TRUNCATE]
  orders:
    change_seq:
      - {digits: $.header__change_seq, width: 35}
      - {integer: "if($.header__change_oper in ('B', 'BEFOREIMAGE'), '0', '1')"}
  time: {timestamp: $.header__timestamp}
  except: ["header__*"]
qlik-json:
  operation: $.message.headers.operation
  insert: [INSERT, REFRESH]
  update: [UPDATE]
  delete: [DELETE]
  orders:
    change_seq: [{digits: $.message.headers.changeSequence, width: 35}]
  snapshot_when: $.message.headers.operation = 'REFRESH'
  time: {timestamp: $.message.headers.timestamp}
  row: $.message.data
  before: $.message.beforeData
  partial: true
sqlserver-change-table:
  operation: $['__$operation']
  insert: ["2"]
  update: ["4", "5"]
  # 3 is the row before an update, beside 4
  delete: ["1", "3"]
  orders:
    # ten bytes, four and ten, in 48 hex digits; LSNs are hex digits, with or without 0x, or base64
    lsn:
      - hex: >-
          regexp_replace(concat(
          case when $['__$start_lsn'] rlike '^(0[xX])?[0-9A-Fa-f]{20}$' then right($['__$start_lsn'], 20)
          else hex(try_to_binary($['__$start_lsn'], 'base64')) end,
          lpad(hex(try_cast(coalesce($['__$command_id'], '0') as int)), 8, '0'),
          case when $['__$seqval'] rlike '^(0[xX])?[0-9A-Fa-f]{20}$' then right($['__$seqval'], 20)
          else hex(try_to_binary($['__$seqval'], 'base64')) end
          ), '^(.{16})(.{16})(.{16})$', '$1:$2:$3')
        sections: 3
        separator: ":"
      - {integer: "$['__$operation']"}
  except: ["__$*"]
airbyte:
  delete_when: $._ab_cdc_deleted_at is not null
  orders:
    postgresql: [{integer: $._ab_cdc_lsn}, {timestamp: $._ab_cdc_updated_at}]
    mysql: [{file: $._ab_cdc_log_file}, {integer: $._ab_cdc_log_pos}, {integer: "coalesce($._ab_cdc_cursor, '0')"}]
  snapshot_when: coalesce($._ab_cdc_lsn, $._ab_cdc_log_pos, '0') = '0' and $._ab_cdc_deleted_at is null
  time: {timestamp: $._ab_cdc_updated_at}
  except: ["_ab_cdc_*", "_airbyte_*"]
fivetran:
  delete_when: $._fivetran_deleted = 'true'
  orders:
    synced: [{timestamp: $._fivetran_synced}]
  time: {timestamp: $._fivetran_synced}
  except: ["_fivetran_*"]
delta-changes:
  operation: $._change_type
  insert: [insert]
  update: [update_postimage]
  # the row that an update left: where its key is another one, it is gone
  delete: [delete, update_preimage]
  orders:
    # in one version a row that is there beats one that is gone
    version:
      - {integer: $._commit_version}
      - {integer: "if($._change_type in ('insert', 'update_postimage'), '1', '0')"}
  time: {timestamp: $._commit_timestamp}
  except: ["_commit_*", _change_type]
{%- endset -%}
{{ return(fromyaml(declared)) }}
{%- endmacro -%}
