{% macro spark__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
    {%- set columns = adapter.get_columns_in_relation(old_relation) | map(attribute='name') | list -%}
    {%- set is_delta = config.get('file_format') == 'delta' -%}
    {%- if full_refresh or not is_delta or columns != agate_table.column_names | list -%}
        {{ return(dbt.spark__reset_csv_table(model, full_refresh, old_relation, agate_table)) }}
    {%- endif -%}
    {#- dropped and created anew, whoever asks in between would not find it -#}
    {%- if not highwater._has_rows_of_seed(old_relation, agate_table) -%}
        {%- do run_query('delete from ' ~ old_relation) -%}
    {%- endif -%}
    {{ return('-- the table stays') }}
{% endmacro %}

{%- macro _has_rows_of_seed(relation, agate_table) -%}
    {{ return(highwater._rows_as_text(run_query('select * from ' ~ relation)) == highwater._rows_as_text(agate_table)) }}
{%- endmacro -%}

{%- macro _rows_as_text(table) -%}
    {%- set texts = [] -%}
    {%- for row in table.rows -%}
        {%- do texts.append(row | map('string') | list) -%}
    {%- endfor -%}
    {{ return(texts | sort) }}
{%- endmacro -%}
