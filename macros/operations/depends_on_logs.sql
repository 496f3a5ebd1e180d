{%- macro depends_on_logs() -%}
    {%- for table in logged_tables() -%}
        {%- do ref(table.entity ~ '_changes') -%}
        {%- for feed, source_table in table.sources -%}
            {%- do source(feed, source_table) -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro -%}
