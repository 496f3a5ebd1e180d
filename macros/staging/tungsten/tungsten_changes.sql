{%- macro tungsten_changes(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- set parsed = highwater.tungsten_records('records', source.feed, source.table, entity) -%}
    {{ highwater.staged_changes(records, source, entity, parsed, binary_encoding='hex', has_place=true, has_row_number=true) }}
{%- endmacro -%}
