{%- macro key_ends(entity) -%}
    {%- set ends = [] -%}
    {%- for column in highwater.bounded_key_columns(entity) -%}
        {#- dbt reads an empty text, and the text null, as NULL -#}
        {%- set value = "concat('=', `" ~ column.name ~ '`)' if column.data_type == 'string' else '`' ~ column.name ~ '`' -%}
        {%- do ends.append('min(' ~ value ~ ') as `least ' ~ column.name ~ '`') -%}
        {%- do ends.append('max(' ~ value ~ ') as `greatest ' ~ column.name ~ '`') -%}
    {%- endfor -%}
    {{ return(ends) }}
{%- endmacro -%}
