{%- macro tables_of_feeds() -%}
    {%- set feeds = {} -%}
    {%- for table in highwater.tables_of_project() -%}
        {%- for feed, source_table in table.sources -%}
            {#- as raw has it, and as dbt names it -#}
            {%- set name = (table.tables or [])[loop.index0] or source_table -%}
            {%- do feeds.setdefault(feed, []).append([table.entity, source_table, name]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(feeds) }}
{%- endmacro -%}
