{{ highwater.change_log('payments', [
    ref('stg_debezium_erp__payments_changes'),
]) }}
