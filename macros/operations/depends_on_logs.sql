{%- macro depends_on_logs() -%}
    {#- They are of the project that has this package; dbt warns of each where the project is not named. -#}
    {%- for table in highwater.tables_of_project() -%}
        {%- do ref(project_name, table.entity ~ '_changes') -%}
        {%- for feed, source_table in table.sources -%}
            {%- do source(feed, (table.tables or [])[loop.index0] or source_table) -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro -%}
