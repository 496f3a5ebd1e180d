{%- macro own_name(column) -%}
    {%- set name = column.removeprefix('source_') -%}
    {{ return(name if name in reserved_columns() else column) }}
{%- endmacro -%}
