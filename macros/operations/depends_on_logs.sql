{%- macro depends_on_logs() -%}
    {%- for table in highwater.tables_of_project() -%}
        {%- do ref(table.entity ~ '_changes') -%}
        {%- for feed, source_table in table.sources -%}
            {%- do source(feed, (table.tables or [])[loop.index0] or source_table) -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro -%}
