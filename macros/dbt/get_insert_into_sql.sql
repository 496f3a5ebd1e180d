{% macro get_insert_into_sql(source_relation, target_relation) %}
    {#- a model of anybody may have such a comment; only before this select does it say so -#}
    {%- if highwater._is_marked(highwater._has_nothing_new() ~ '\n *select . from .+\n *where false') -%}
        {{ return("select 'nothing has arrived'") }}
    {%- endif -%}
    {%- set columns = adapter.get_columns_in_relation(target_relation) | map(attribute='quoted') | join(', ') -%}
    insert into table {{ target_relation }}
    {%- if highwater._writes_by_itself() %}
    select {{ columns }} from (
    {{ model.compiled_code }}
    )
    {%- else %}
    select {{ columns }} from {{ source_relation }}
    {%- endif %}
{% endmacro %}

{%- macro _has_nothing_new() -%}
    {#- The mark of a log that nothing has arrived for. -#}
    {{ return('-- nothing has arrived') }}
{%- endmacro -%}

{%- macro _is_marked(mark) -%}
    {#- A line of the SQL says it, and no name or value in it. -#}
    {{ return(modules.re.search('(?m)^ *' ~ mark ~ '$', model.compiled_code) is not none) }}
{%- endmacro -%}
