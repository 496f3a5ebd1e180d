{% macro spark__create_temporary_view(relation, compiled_code) %}
    {%- if highwater._writes_by_itself() -%}
        {{ return("select 'its SQL stands in the statement that writes'") }}
    {%- endif -%}
    {{ return(dbt.spark__create_temporary_view(relation, compiled_code)) }}
{% endmacro %}

{%- macro _writes_by_itself() -%}
    {%- set is_one_statement = config.get('incremental_strategy') == 'append' or 'merged' in config.get('meta', {}) -%}
    {#- what a schema change is found by is the view -#}
    {{ return(is_one_statement and model.language == 'sql' and config.get('on_schema_change', 'ignore') == 'ignore') }}
{%- endmacro -%}
