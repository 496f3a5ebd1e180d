{%- macro columns_in_history(entity) -%}
    {#- Those of entity_columns, each with version_name, its name in the history. -#}
    {%- set columns = [] -%}
    {%- set names = highwater.names_in_history(highwater.entity_columns(entity) | map(attribute='own_name') | list) -%}
    {%- for column in highwater.entity_columns(entity) -%}
        {%- do columns.append(dict(column, version_name=names[loop.index0])) -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro -%}
