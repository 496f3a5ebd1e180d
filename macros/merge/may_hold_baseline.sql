{%- macro may_hold_baseline(feed) -%}
    {%- set formats = [
        'datastream-gcs-json', 'datastream-avro', 'debezium-json', 'debezium-avro', 'debezium-parquet', 'arcion-json', 'arcion-csv', 'dms-csv', 'dms-parquet',
    ] -%}
    {{ return(highwater.baseline_condition(feed) is not none or highwater.feed_setting(feed, 'format') in formats) }}
{%- endmacro -%}
