{%- macro datastream_file_changes(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- set parsed = highwater.datastream_file_records('records', source.feed, entity) -%}
    {%- set encoding = 'hex' if highwater.feed_setting(source.feed, 'format') == 'datastream-gcs-json' else 'base64' -%}
    {{ highwater.staged_changes(records, source, entity, parsed, binary_encoding=encoding, has_place=true) }}
{%- endmacro -%}
