{%- macro own_name(column) -%}
    {%- set name = column.removeprefix('source_') -%}
    {{ return(name if name in stored_columns() else column) }}
{%- endmacro -%}

{%- macro _as_own_name(column) -%}
{{ column }}{{ ' as ' ~ own_name(column) if own_name(column) != column }}
{%- endmacro -%}
