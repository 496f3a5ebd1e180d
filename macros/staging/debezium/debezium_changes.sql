{%- macro debezium_changes(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- set parsed = highwater.debezium_records('records', source.feed, entity) -%}
    {{ highwater.staged_changes(records, source, entity, parsed, has_present=true, has_withheld=true, has_old_key=true, has_place=true) }}
{%- endmacro -%}
