{%- macro tables_at_once() -%}
    {#- One commit for so many, and SQL that stays as long as it is however many tables a project has. -#}
    {{ return(8) }}
{%- endmacro -%}
