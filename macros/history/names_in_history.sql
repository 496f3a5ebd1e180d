{%- macro names_in_history(columns) -%}
    {#- As in the view, unless the history has a column of this name itself: then behind `source_`, as often as needed. -#}
    {%- set own = highwater.validity_columns() -%}
    {%- set names = [] -%}
    {%- for name in columns -%}
        {%- set free = [] -%}
        {%- for times in range(1, columns | length + 1) if name in own and 'source_' * times ~ name not in columns -%}
            {%- do free.append('source_' * times ~ name) -%}
        {%- endfor -%}
        {%- do names.append((free + [name]) | first) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro -%}
