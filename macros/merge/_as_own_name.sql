{%- macro _as_own_name(column) -%}
`{{ column.name }}`{{ ' as `' ~ column.own_name ~ '`' if column.own_name != column.name }}
{%- endmacro -%}

{%- macro _as_own_names(columns) -%}
    {%- for column in columns -%}
        {{ highwater._as_own_name(column) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
{%- endmacro -%}
