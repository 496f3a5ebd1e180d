{%- macro names_of_key(entity) -%}
    {#- The names of the key's columns in the mart, each with its name in the log. -#}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set names = {} -%}
    {%- for column in highwater.entity_columns(entity) if column.name in key -%}
        {%- do names.update({column.own_name: column.name}) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro -%}
