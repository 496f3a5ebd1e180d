{%- macro path_below(steps) -%}
    {%- set quoted = [] -%}
    {%- for step in steps[1:] -%}
        {%- do quoted.append("['" ~ step ~ "']") -%}
    {%- endfor -%}
    {{ return(highwater.sql_text('$' ~ quoted | join)) }}
{%- endmacro -%}
