{{ highwater.export_rows(source('exports_erp', 'payments'), 'payments') }}
