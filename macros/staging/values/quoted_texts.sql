{%- macro quoted_texts(words) -%}
    {%- for word in words %}{{ highwater.sql_text(word) }}{{ ', ' if not loop.last }}{% endfor -%}
{%- endmacro -%}
