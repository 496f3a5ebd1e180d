{%- macro depends_on_logs() -%}
    {#- They are of the project that has this package; dbt warns of each where the project is not named. -#}
    {%- for entity in highwater.names_of_tables() -%}
        {%- do ref(project_name, entity ~ '_changes') -%}
    {%- endfor -%}
{%- endmacro -%}
