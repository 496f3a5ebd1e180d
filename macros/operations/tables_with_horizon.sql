{%- macro tables_with_horizon() -%}
    {%- set tables = [] -%}
    {%- for table in logged_tables() -%}
        {#- dbt wants to see every reference while it parses, when no setting is known yet -#}
        {%- set log = ref(table.entity ~ '_changes') -%}
        {%- set horizon = entity_setting(table.entity, 'retention_days', {}).get('tombstones') -%}
        {%- if horizon -%}
            {%- do tables.append({'entity': table.entity, 'log': log, 'horizon': horizon}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(tables) }}
{%- endmacro -%}
