{%- macro source_of_records(records, feed, table, entity) -%}
    {%- set format = highwater.feed_setting(feed, 'format') -%}
    {%- set is_debezium = (format or '').startswith('debezium-') -%}
    select
        source_file,
        source_line,
        nullif(source_identity, '0') as source_identity,
        {{ "regexp_replace(gtid, '[:-][0-9]+$', '')" if is_debezium and highwater.feed_setting(feed, 'connector') in ('mysql', 'mariadb') else 'cast(null as string)' }} as gtid_source,
        -- what the log's files are called, without their number
        nullif(regexp_extract(sequence, '([A-Za-z][A-Za-z0-9_.-]*)[.][0-9]{4,}', 1), '') as log_name
    from (
        {%- if is_debezium %}
        {{- highwater.debezium_records(records, feed, entity) | indent(8) }}
        {%- elif format == 'datastream-json' %}
        {{- highwater.datastream_records(records, feed, entity) | indent(8) }}
        {%- elif format in ('datastream-gcs-json', 'datastream-avro') %}
        {{- highwater.datastream_file_records(records, feed, entity) | indent(8) }}
        {%- elif format == 'arcion-json' %}
        {{- highwater.arcion_json_records(records, feed, table, entity) | indent(8) }}
        {%- elif format == 'arcion-csv' %}
        {{- highwater.arcion_csv_records(records, feed, table, entity) | indent(8) }}
        {%- elif format == 'tungsten-csv' %}
        {{- highwater.tungsten_records(records, feed, table, entity) | indent(8) }}
        {%- elif format in ('dms-csv', 'dms-parquet') %}
        {{- highwater.dms_records(records, feed, table, entity) | indent(8) }}
        {%- elif highwater.is_declared(feed) %}
        {{- highwater.declared_records(records, feed, entity) | indent(8) }}
        {%- else %}
        {{ exceptions.raise_compiler_error(
            "source_of_records: it is not known how records of the format '" ~ format ~ "' are read; add it there."
        ) }}
        {%- endif %}
    )
{%- endmacro -%}
