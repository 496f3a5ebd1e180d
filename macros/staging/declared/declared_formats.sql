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
    lsn: [{lsn: $.lsn}, place]
    place: [{timestamp: $.timestamp}, place]
  time: {timestamp: $.timestamp}
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
  row: {names: $.change.columnnames, values: $.change.columnvalues}
  before: {names: $.change.oldkeys.keynames, values: $.change.oldkeys.keyvalues}
  partial: true
delta-changes:
  operation: $._change_type
  insert: [insert]
  update: [update_postimage]
  # the row that an update left: where its key is another one, it is gone
  delete: [delete, update_preimage]
  orders:
    # in one version a row that is there beats one that is gone
    version: [{integer: $._commit_version}]
  time: {timestamp: $._commit_timestamp}
{%- endset -%}
{{ return(fromyaml(declared)) }}
{%- endmacro -%}
