{%- macro facts_of_table(entity) -%}
    {#- One mapping a table and run of dbt, which all nodes share: what one of them has learnt, the next one need not ask. -#}
    {%- set tables = graph.setdefault('highwater ' ~ invocation_id, {}) -%}
    {%- if entity not in tables -%}
        {%- do tables.setdefault(entity, fromjson(env_var('HIGHWATER_FACTS_' ~ entity, '{}'))) -%}
    {%- endif -%}
    {{ return(tables[entity]) }}
{%- endmacro -%}
