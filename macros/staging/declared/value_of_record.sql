{%- macro value_of_record(expression, feed) -%}
    {%- set found = namespace(sql='', end=0) -%}
    {#- a text in quotes, or the path of a field -#}
    {%- for match in modules.re.finditer("'(?:[^'\\\\]|\\\\.)*'|\\$(?:(index)\\b|((?:\\.[A-Za-z_]\\w*|\\['[^']+'\\])+))", expression) -%}
        {%- if match.group(1) or match.group(2) -%}
            {%- set value = "fields['index']" if match.group(1) else highwater.text_of_field(match.group(2), feed) -%}
            {%- set found.sql = found.sql ~ expression[found.end:match.start()] ~ value -%}
            {%- set found.end = match.end() -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found.sql ~ expression[found.end:]) }}
{%- endmacro -%}
