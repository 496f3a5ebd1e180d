{%- macro reserved_columns() -%}
    {{ return(contract_columns() + [
        'problem',
        'operation',
        'sequence',
        'commit_time',
        'misfits',
        'verdict',
        'is_tied',
        'is_new_key',
        'log_batch',
        'is_pending',
        'is_new',
        'change_order',
        'copy',
        'batch_order',
        'order_before',
    ]) }}
{%- endmacro -%}
