{%- macro order_of_side(change, side, is_folded) -%}
    {%- set order = highwater.total_order(change) -%}
    {%- if side == 'is_there' -%}
case when not {{ change }}.is_deleted then {{ order }} end
    {%- elif side == 'is_gone' and is_folded -%}
{{ change }}.deleted_order
    {%- elif side == 'is_gone' -%}
case when {{ change }}.is_deleted then {{ order }} end
    {%- endif -%}
{%- endmacro -%}
