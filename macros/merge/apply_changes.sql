{%- macro apply_changes(merged, changes, entity) -%}
    {%- if highwater.compiled_sql_has_line(highwater.nothing_to_write()) -%}
        {{ return("select 'nothing to apply'") }}
    {%- endif -%}
    {%- set due = fromjson(modules.re.search('(?m)^ *-- compaction: (.+)$', model.compiled_code)[1]) -%}
    {%- set changes = '(\n' ~ model.compiled_code ~ '\n)' if highwater.writes_in_one_statement() else changes -%}
    {{ highwater.merge_into_base(merged, changes, entity, due) }}
{%- endmacro -%}
