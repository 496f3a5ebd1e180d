{%- macro names_in_records(columns) -%}
    {%- set names = [] -%}
    {%- for column in columns -%}
        {%- do names.extend([column.field] + column.former_fields) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro -%}
