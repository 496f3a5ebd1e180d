{%- macro key_columns(entity) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {{ return(highwater.entity_columns(entity) | selectattr('name', 'in', key) | list) }}
{%- endmacro -%}
