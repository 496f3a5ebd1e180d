{%- macro datastream_changes(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- set parsed = highwater.datastream_records('records', source.feed, entity) -%}
    {{ highwater.staged_changes(records, source, entity, parsed) }}
{%- endmacro -%}
