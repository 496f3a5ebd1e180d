{%- macro dms_changes(records, entity) -%}
    {%- set source = highwater.source_of_model(entity) -%}
    {%- set parsed = highwater.dms_records('records', source.feed, source.table, entity) -%}
    {#- without supplemental logging, images carry the columns that changed -#}
    {%- set has_present = highwater.feed_setting(source.feed, 'no_supplement') is not none -%}
    {{ highwater.staged_changes(records, source, entity, parsed, has_present=has_present, has_withheld=has_present, has_old_key=true, has_place=true) }}
{%- endmacro -%}
