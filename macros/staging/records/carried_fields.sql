{%- macro carried_fields(feed) -%}
    {%- set format = highwater.feed_setting(feed, 'format') -%}
    {%- set document = "coalesce(fields['document'], cast(record as string))" -%}
    {%- if format == 'datastream-json' -%}
array_except(json_object_keys({{ document }}), array('datastream_metadata'))
    {%- elif format in ('datastream-gcs-json', 'datastream-avro') -%}
json_object_keys(get_json_object({{ document }}, '$.payload'))
    {%- elif format in ('arcion-json', 'changelog') -%}
json_object_keys(get_json_object({{ document }}, '$.after'))
    {%- elif (format or '').startswith('debezium-') and highwater.feed_setting(feed, 'form') == 'flattened' -%}
filter(
    json_object_keys(if(
        size(array_except(json_object_keys({{ document }}), array('schema', 'payload'))) = 0,
        get_json_object({{ document }}, '$.payload'),
        {{ document }}
    )),
    field -> not startswith(field, '__')
    {%- set prefix = highwater.feed_setting(feed, 'prefix') -%}
    {%- if prefix %} and not startswith(field, {{ highwater.sql_text(prefix) }}){% endif %}
    {#- where nothing is before the names of metadata, they are known by their names -#}
    {%- if prefix == '' %} and field not in ({{ highwater.quoted_texts(highwater.debezium_metadata_fields()) }}){% endif %}
)
    {%- elif (format or '').startswith('debezium-') -%}
json_object_keys(coalesce(
    get_json_object({{ document }}, '$.after'), get_json_object({{ document }}, '$.payload.after')
))
    {%- elif highwater.is_declared(feed) -%}
{{ highwater.declared_fields(feed, document) }}
    {%- elif format in ('dms-parquet', 'parquet') or highwater.feed_setting(feed, 'header', format == 'csv') -%}
map_keys(fields)
    {%- elif format in ('tungsten-csv', 'arcion-csv', 'dms-csv', 'csv') or not execute -%}
        {#- positions have no names; a record with another number of values is rejected -#}
cast(null as array<string>)
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "carried_fields: it is not known which fields a record of the format '" ~ format ~ "' carries; add it there."
        ) }}
    {%- endif -%}
{%- endmacro -%}
