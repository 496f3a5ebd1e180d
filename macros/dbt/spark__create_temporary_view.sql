{% macro spark__create_temporary_view(relation, compiled_code) %}
    {%- if _writes_by_itself() -%}
        {{ return("select 'its SQL stands in the statement that writes'") }}
    {%- endif -%}
    {{ return(dbt.spark__create_temporary_view(relation, compiled_code)) }}
{% endmacro %}

{%- macro _writes_by_itself() -%}
    {#- what a schema change is found by is the view -#}
    {%- set keeps_columns = config.get('on_schema_change', 'ignore') == 'ignore' -%}
    {{ return(keeps_columns and (config.get('incremental_strategy') == 'append' or 'merged' in config.get('meta', {}))) }}
{%- endmacro -%}
