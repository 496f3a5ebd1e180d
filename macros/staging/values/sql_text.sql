{%- macro sql_text(text) -%}
'{{ text | replace('\\', '\\\\') | replace("'", "\\'") }}'
{%- endmacro -%}
