{%- macro apply_changes(merged, changes, entity) -%}
    {%- set handed_on = highwater.handed_on() -%}
    {%- if handed_on.is_empty -%}
        {{ return("select 'nothing to apply'") }}
    {%- endif -%}
    {%- set changes = '(\n' ~ model.compiled_code ~ '\n)' if highwater.writes_in_one_statement() else changes -%}
    {{ highwater.merge_into_base(merged, changes, entity, handed_on.due) }}
{%- endmacro -%}
