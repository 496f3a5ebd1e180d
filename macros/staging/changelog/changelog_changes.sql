{%- macro changelog_changes(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- set parsed = highwater.changelog_records('records', source.feed, entity) -%}
    {{ highwater.staged_changes(records, source, entity, parsed, binary_encoding='hex', has_old_key=true) }}
{%- endmacro -%}
