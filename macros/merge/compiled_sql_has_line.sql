{%- macro compiled_sql_has_line(pattern) -%}
    {#- A line of its own: no name or value has it. -#}
    {{ return(modules.re.search('(?m)^ *' ~ pattern ~ '$', model.compiled_code) is not none) }}
{%- endmacro -%}
