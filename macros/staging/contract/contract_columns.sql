{%- macro contract_columns() -%}
    {{ return([
        'change_sequence_number',
        'change_type',
        'is_deleted',
        'changed_at',
        'present_columns',
        'is_derived',
        'change_hash',
        'source_file',
        'source_line',
        'feed',
        'landing_batch',
        'landed_at',
        'rejection_reason',
        'rejection_detail',
        'record',
    ]) }}
{%- endmacro -%}
