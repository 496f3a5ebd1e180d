{%- macro is_declared(feed) -%}
    {%- set format = highwater.feed_setting(feed, 'format') -%}
    {{ return(format in ('json', 'table') or format in highwater.declared_formats()) }}
{%- endmacro -%}
