{%- macro as_own_name(column) -%}
`{{ column.name }}`{{ ' as `' ~ column.own_name ~ '`' if column.own_name != column.name }}
{%- endmacro -%}
