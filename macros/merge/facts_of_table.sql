{%- macro facts_of_table(entity) -%}
    {#- One mapping a table and run of dbt, which all nodes share: what one of them has learnt, the next one need not ask. -#}
    {%- set tables = graph.setdefault('highwater ' ~ invocation_id, {}) -%}
    {%- if entity not in tables -%}
        {%- set handed_over = fromjson(env_var('HIGHWATER_FACTS_' ~ entity, '{}')) -%}
        {%- do handed_over.update({'is_handed_over': true} if handed_over else {}) -%}
        {%- do tables.setdefault(entity, handed_over) -%}
    {%- endif -%}
    {{ return(tables[entity]) }}
{%- endmacro -%}
