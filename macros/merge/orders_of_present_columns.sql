{%- macro orders_of_present_columns(change) -%}
map_from_arrays({{ change }}.present_columns, array_repeat({{ highwater.total_order(change) }}, size({{ change }}.present_columns)))
{%- endmacro -%}
