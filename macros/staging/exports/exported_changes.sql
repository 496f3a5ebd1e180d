{%- macro exported_changes(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- set parsed = highwater.exported_records('records', source.feed, entity) -%}
    {{ highwater.staged_changes(records, source, entity, parsed) }}
{%- endmacro -%}
