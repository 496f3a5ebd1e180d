{% macro spark__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
    {%- set columns = adapter.get_columns_in_relation(old_relation) | map(attribute='name') | list -%}
    {%- set is_delta = config.get('file_format') == 'delta' -%}
    {%- if full_refresh or not is_delta or columns != agate_table.column_names | list -%}
        {{ return(dbt.spark__reset_csv_table(model, full_refresh, old_relation, agate_table)) }}
    {%- endif -%}
    {#- dropped and created anew, whoever queries it in between would not find it -#}
    {%- if not highwater.has_rows_of_seed(old_relation, agate_table) -%}
        {%- do run_query('delete from ' ~ old_relation) -%}
    {%- endif -%}
    {{ return('-- the table stays') }}
{% endmacro %}
