{%- macro has_documents(feed) -%}
    {{ return(highwater.feed_setting(feed, 'format', 'json') not in ('csv', 'parquet')) }}
{%- endmacro -%}
