{% macro spark__load_csv_rows(model, agate_table) %}
    {%- if highwater.has_rows_of_seed(this, agate_table) -%}
        {{ return('-- its rows are there') }}
    {%- endif -%}
    {{ return(dbt.spark__load_csv_rows(model, agate_table)) }}
{% endmacro %}
