{%- macro columns_of_change(entity) -%}
    {#- Delta keeps statistics of the first 32 columns, and builds query what is above a batch or a sequence. -#}
    {%- set first = ['log_batch', 'change_sequence_number'] -%}
    {%- set left_out = first + ['present_columns', 'is_derived', 'rejection_reason', 'rejection_detail', 'record'] -%}
    {{ return(
        (['present_columns'] if highwater.entity_setting(entity, 'partial_images', false) else [])
        + first
        + highwater.entity_columns(entity) | map(attribute='name') | list
        + highwater.contract_columns() | reject('in', left_out) | list
    ) }}
{%- endmacro -%}
