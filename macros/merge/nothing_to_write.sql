{%- macro nothing_to_write() -%}
    {#- Stands in the select of a model that has no row; the statement that writes looks for it and does not query the lake again. -#}
    {{ return('-- nothing to write') }}
{%- endmacro -%}
