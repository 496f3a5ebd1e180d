{%- macro clock_of_record(feed) -%}
    {%- set fields = {
        'debezium-json': 'ts_ms',
        'debezium-avro': 'ts_ms',
        'debezium-parquet': 'ts_ms',
        'datastream-json': 'source_timestamp',
        'datastream-gcs-json': 'source_timestamp',
        'datastream-avro': 'source_timestamp',
        'arcion-json': 'timestamp',
        'arcion-csv': 'timestamp',
        'tungsten-csv': 'commit_timestamp',
    } -%}
    {%- set format = highwater.feed_setting(feed, 'format') -%}
    {%- set field = 'commit_time' if format in ('dms-csv', 'dms-parquet') and highwater.feed_setting(feed, 'timestamp_column') else fields.get(format) -%}
    {%- if highwater.feed_setting(feed, 'role', 'changes') != 'changes' -%}
        {{ return(none) }}
    {%- elif highwater.is_declared(feed) -%}
        {{ return('metadata.changed_at' if highwater.change_of_feed(feed).get('time') else none) }}
    {%- elif not field -%}
        {{ return(none) }}
    {%- elif field == 'ts_ms' or format in ('datastream-json', 'arcion-json', 'arcion-csv') -%}
        {{ return('timestamp_millis(try_cast(metadata.' ~ field ~ ' as bigint))') }}
    {%- endif -%}
    {{ return('try_cast(metadata.' ~ field ~ ' as timestamp)') }}
{%- endmacro -%}
