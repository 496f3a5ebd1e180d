{%- macro merged_columns(entity) -%}
    {#- Delta keeps statistics of the first 32 columns, and builds ask for what is above a batch or a sequence. -#}
    {%- set first = ['log_batch', 'change_sequence_number'] -%}
    {%- set left_out = first + ['present_columns', 'is_derived', 'rejection_reason', 'rejection_detail', 'record'] -%}
    {{ return(
        first
        + highwater.entity_columns(entity) | map(attribute='name') | list
        + highwater.contract_columns() | reject('in', left_out) | list
        + (highwater._fold_columns() if highwater.entity_setting(entity, 'partial_images', false) else [])
    ) }}
{%- endmacro -%}

{%- macro _carried_columns(entity) -%}
    {#- What a merged row has from its change: all but how it was folded. -#}
    {{ return(highwater.merged_columns(entity) | reject('in', highwater._fold_columns()) | list) }}
{%- endmacro -%}

{%- macro _columns_of_change(entity) -%}
    {#- What is read from the log to make a merged row. -#}
    {{ return((['present_columns'] if highwater.entity_setting(entity, 'partial_images', false) else []) + highwater._carried_columns(entity)) }}
{%- endmacro -%}
