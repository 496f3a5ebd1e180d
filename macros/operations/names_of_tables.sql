{%- macro names_of_tables() -%}
    {#- dbt knows no models while it parses one, so a project says them by a macro of its own. -#}
    {%- set names = [] -%}
    {%- for table in adapter.dispatch('logged_tables', 'highwater')() -%}
        {#- as `highwater add-table` of version 0.5 wrote them, each is a mapping -#}
        {%- do names.append(table.entity if table is mapping else table) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro -%}
