{% macro get_insert_into_sql(source_relation, target_relation) %}
    {#- a model of anybody may have such a comment; only before this select does it say so -#}
    {%- if highwater.compiled_sql_has_line(highwater.nothing_to_write() ~ '\n *select . from .+\n *where false') -%}
        {{ return("select 'nothing has arrived'") }}
    {%- endif -%}
    {%- set there = adapter.get_columns_in_relation(target_relation) -%}
    {%- set written = highwater._columns_to_fill(there) -%}
    {%- set columns = written | map(attribute='quoted') | join(', ') -%}
    insert into table {{ target_relation }}{{ ' (' ~ columns ~ ')' if written | length < there | length }}
    {%- if highwater.writes_in_one_statement() %}
    select {{ columns }} from (
    {{ model.compiled_code }}
    )
    {%- else %}
    select {{ columns }} from {{ source_relation }}
    {%- endif %}
{% endmacro %}

{%- macro _columns_to_fill(there) -%}
    {#- A log keeps a column that is not declared any more. -#}
    {%- if model.fqn[1] != 'changes' or not model.name.endswith('_changes') -%}
        {{ return(there) }}
    {%- endif -%}
    {%- set declared = highwater.entity_columns(model.name.removesuffix('_changes')) | map(attribute='name') | list -%}
    {%- set own = declared + highwater.stored_columns() -%}
    {%- set columns = [] -%}
    {%- for column in there if column.name in own -%}
        {%- do columns.append(column) -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro -%}
