{% macro get_insert_into_sql(source_relation, target_relation) %}
    {#- a model of anybody may have such a comment; only before this select does it say so -#}
    {%- if highwater.compiled_sql_has_line(highwater.nothing_to_write() ~ '\n *select . from .+\n *where false') -%}
        {{ return("select 'nothing has arrived'") }}
    {%- endif -%}
    {%- set columns = adapter.get_columns_in_relation(target_relation) | map(attribute='quoted') | join(', ') -%}
    insert into table {{ target_relation }}
    {%- if highwater.writes_in_one_statement() %}
    select {{ columns }} from (
    {{ model.compiled_code }}
    )
    {%- else %}
    select {{ columns }} from {{ source_relation }}
    {%- endif %}
{% endmacro %}
