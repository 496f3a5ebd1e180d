{% macro spark__create_temporary_view(relation, compiled_code) %}
    {%- if highwater.writes_in_one_statement() -%}
        {{ return("select 'its SQL stands in the statement that writes'") }}
    {%- endif -%}
    {{ return(dbt.spark__create_temporary_view(relation, compiled_code)) }}
{% endmacro %}
