{%- macro bounded_key_columns(entity) -%}
    {#- Floats and timestamps are left out: their text depends on settings. -#}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set bounded = [] -%}
    {%- for column in highwater.entity_columns(entity) if column.name in key
        and column.data_type in ('tinyint', 'smallint', 'int', 'bigint', 'date', 'string') -%}
        {%- do bounded.append(column) -%}
    {%- endfor -%}
    {{ return(bounded) }}
{%- endmacro -%}
