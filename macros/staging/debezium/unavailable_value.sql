{%- macro unavailable_value(feed) -%}
    {{ return(highwater.feed_setting(feed, 'unavailable_value', '__debezium_unavailable_value')) }}
{%- endmacro -%}
