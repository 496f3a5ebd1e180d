{%- macro arcion_json_changes(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- set parsed = highwater.arcion_json_records('records', source.feed, source.table, entity) -%}
    {{ highwater.staged_changes(records, source, entity, parsed, has_present=true, has_old_key=true, has_place=true) }}
{%- endmacro -%}
