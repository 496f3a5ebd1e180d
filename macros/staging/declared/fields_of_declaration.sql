{%- macro fields_of_declaration(change) -%}
    {#- all that it says, as one text; lists and mappings are said with quotes doubled or escaped, which no path holds -#}
    {%- set names = [] -%}
    {%- for path in modules.re.findall("\\$((?:\\.[A-Za-z_]\\w*|\\['[^']+'\\])+)", change | string) -%}
        {%- do names.append(highwater.steps_of_path(path)[0]) -%}
    {%- endfor -%}
    {{ return(names | unique | list) }}
{%- endmacro -%}
