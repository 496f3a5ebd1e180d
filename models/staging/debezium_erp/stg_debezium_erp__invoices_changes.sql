{{ highwater.debezium_changes(source('debezium_erp', 'invoices'), 'invoices') }}
