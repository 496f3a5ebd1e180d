{%- macro tables_of_project() -%}
    {#- A project that has the package says it by a macro of its own. -#}
    {{ return(adapter.dispatch('logged_tables', 'highwater')()) }}
{%- endmacro -%}
