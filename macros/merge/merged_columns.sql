{%- macro merged_columns(entity) -%}
    {#- is_pending is what the table is partitioned by: Delta keeps no statistics of booleans to prune files with. -#}
    {{ return(
        ['is_pending', 'is_new']
        + entity_columns(entity) | map(attribute='name') | list
        + contract_columns() | reject('in', ['present_columns', 'is_derived', 'rejection_reason', 'rejection_detail', 'record']) | list
        + ['log_batch']
        + (_fold_columns() if entity_setting(entity, 'partial_images', false) else [])
    ) }}
{%- endmacro -%}
