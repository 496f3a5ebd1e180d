{%- macro merged_columns(entity) -%}
    {#- is_pending is what the table is partitioned by: Delta keeps no statistics of booleans to prune files with. -#}
    {{ return(
        ['is_pending', 'is_new']
        + entity_columns(entity) | map(attribute='name') | list
        + contract_columns() | reject('in', ['present_columns', 'rejection_reason', 'rejection_detail', 'record']) | list
        + ['log_batch']
    ) }}
{%- endmacro -%}
