{%- macro merged_columns(entity) -%}
    {%- set fold_columns = ['column_orders', 'deleted_order', 'is_complete'] -%}
    {{ return(
        highwater.columns_of_change(entity) | reject('equalto', 'present_columns') | list
        + (fold_columns if highwater.entity_setting(entity, 'partial_images', false) else [])
    ) }}
{%- endmacro -%}
