{%- macro debezium_position_fields(feed) -%}
    {%- set connector = highwater.feed_setting(feed, 'connector') -%}
    {%- set fields = {
        'postgresql': ['lsn', 'sequence'],
        'mysql': ['file', 'pos'],
        'mariadb': ['file', 'pos'],
        'oracle': ['commit_scn', 'scn', 'ssn'],
        'sqlserver': ['commit_lsn', 'change_lsn', 'event_serial_no'],
        'db2': ['commit_lsn', 'change_lsn'],
        'informix': ['commit_lsn', 'change_lsn'],
        'spanner': ['ts_us', 'sequence', 'mod_number'],
        'yugabytedb': ['lsn', 'sequence', 'commit_time', 'record_time'],
        'mongodb': ['source_ts_ms', 'ord'],
    } -%}
    {%- if not execute or highwater.feed_setting(feed, 'order') == 'kafka' -%}
        {{ return([]) }}
    {%- elif connector not in fields -%}
        {{ exceptions.raise_compiler_error(
            "debezium_position_fields: the feed declares the connector '" ~ connector ~ "'; it must be one of: "
            ~ fields.keys() | join(', ') ~ ", or the feed declares `order: kafka`."
        ) }}
    {%- endif -%}
    {{ return(fields[connector]) }}
{%- endmacro -%}
