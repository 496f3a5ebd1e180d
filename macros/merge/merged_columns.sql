{%- macro merged_columns(entity) -%}
    {#- is_pending is what the table is partitioned by: Delta keeps no statistics of booleans to prune files with. It keeps
        those of the first 32 columns, and log_batch is asked for in every build. -#}
    {{ return(
        ['is_pending', 'is_new', 'log_batch']
        + entity_columns(entity) | map(attribute='name') | list
        + contract_columns() | reject('in', ['present_columns', 'is_derived', 'rejection_reason', 'rejection_detail', 'record']) | list
        + (_fold_columns() if entity_setting(entity, 'partial_images', false) else [])
    ) }}
{%- endmacro -%}

{%- macro _carried_columns(entity) -%}
    {#- What a merged row has from its change: all but its layer and how it was folded. -#}
    {{ return(merged_columns(entity) | reject('in', ['is_pending', 'is_new'] + _fold_columns()) | list) }}
{%- endmacro -%}

{%- macro _columns_of_change(entity) -%}
    {#- What is read from the log to make a merged row. -#}
    {{ return((['present_columns'] if entity_setting(entity, 'partial_images', false) else []) + _carried_columns(entity)) }}
{%- endmacro -%}

{%- macro _stays_pending(entity) -%}
    {#- Truncates are for the view to see, and never leave the pending layer. -#}
    {{- "change_type = 'truncate'" if entity_setting(entity, 'truncates', false) else 'false' -}}
{%- endmacro -%}
