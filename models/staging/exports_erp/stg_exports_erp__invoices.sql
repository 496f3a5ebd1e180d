{{ highwater.export_rows(source('exports_erp', 'invoices'), 'invoices') }}
