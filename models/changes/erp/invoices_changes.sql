{{ highwater.change_log('invoices', [
    ref('stg_debezium_erp__invoices_changes'),
]) }}
