{%- macro tables_of_feeds() -%}
    {%- set feeds = {} -%}
    {%- for table in highwater.tables_of_project() -%}
        {%- for source in table.sources -%}
            {%- do feeds.setdefault(source.feed, []).append([table.entity, source.source_table, source.name]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(feeds) }}
{%- endmacro -%}
