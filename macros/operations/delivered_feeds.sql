{%- macro delivered_feeds() -%}
    {%- set feeds = {} -%}
    {%- for table in logged_tables() -%}
        {%- for feed, source_table in table.sources -%}
            {%- do feeds.setdefault(feed, []).append(source_table) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(feeds) }}
{%- endmacro -%}
