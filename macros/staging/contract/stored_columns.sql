{%- macro stored_columns() -%}
    {#- is_pending, is_new and is_new_key: tables of version 0.5 have them. -#}
    {{ return(highwater.contract_columns() + [
        'verdict',
        'is_tied',
        'is_new_key',
        'log_batch',
        'is_pending',
        'is_new',
        'column_orders',
        'deleted_order',
        'is_complete',
    ]) }}
{%- endmacro -%}
