{{ highwater.debezium_changes(source('debezium_erp', 'payments'), 'payments') }}
