{%- macro batches_of_part(part) -%}
    table_name = '{{ part.table_name }}' and {{ highwater.batches_in_log(part) }}
{%- endmacro -%}
