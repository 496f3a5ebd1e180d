{%- macro lowest_sequence() -%}
'0000000000000000'
{%- endmacro -%}
