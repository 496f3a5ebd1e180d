{%- macro debezium_metadata_fields() -%}
    {{ return([
        'op', 'ts_ms', 'source_ts_ms', 'source_ts_us', 'lsn', 'source_lsn', 'sequence', 'source_sequence', 'file', 'source_file',
        'pos', 'source_pos', 'scn', 'source_scn', 'commit_scn', 'source_commit_scn', 'ssn', 'source_ssn', 'commit_lsn',
        'source_commit_lsn', 'change_lsn', 'source_change_lsn', 'event_serial_no', 'source_event_serial_no', 'mod_number',
        'source_mod_number', 'commit_time', 'source_commit_time', 'record_time', 'source_record_time', 'ord', 'source_ord',
    ]) }}
{%- endmacro -%}
