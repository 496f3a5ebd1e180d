{% macro spark__create_table_as(temporary, relation, compiled_code, language='sql') %}
    {%- if temporary or language != 'sql' or config.get('full_refresh') is not false or config.get('file_format') != 'delta' -%}
        {{ return(dbt.spark__create_table_as(temporary, relation, compiled_code, language)) }}
    {%- endif -%}
    {#- not `create or replace`: another build that is under way may have made it, and gone on from it -#}
    create table {{ relation }}
    {%- if config.get('contract').enforced -%}
        {{ get_assert_columns_equivalent(compiled_code) }}
        {%- set compiled_code = get_select_subquery(compiled_code) -%}
    {%- endif %}
    {{ file_format_clause() }}
    {{ options_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label='partitioned by') }}
    {{ clustered_cols(label='clustered by') }}
    {{ location_clause() }}
    {{ comment_clause() }}
    as
    {{ compiled_code }}
{% endmacro %}
