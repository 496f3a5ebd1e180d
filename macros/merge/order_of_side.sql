{%- macro order_of_side(change, side, is_folded) -%}
    {%- set order = total_order(change) -%}
    {%- if side == 'is_there' -%}
case when not {{ change }}.is_deleted then {{ order }} end
    {%- elif side == 'is_gone' and is_folded -%}
{{ change }}.deleted_order
    {%- elif side == 'is_gone' -%}
case when {{ change }}.is_deleted then {{ order }} end
    {%- elif is_folded -%}
case
    when {{ change }}.column_orders is not null then {{ change }}.column_orders['{{ side }}']
    when not {{ change }}.is_deleted then {{ order }}
end
    {%- else -%}
case
    when not {{ change }}.is_deleted
        and ({{ change }}.present_columns is null or array_contains({{ change }}.present_columns, '{{ side }}'))
        then {{ order }}
end
    {%- endif -%}
{%- endmacro -%}
