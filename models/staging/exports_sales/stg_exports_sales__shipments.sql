{{ highwater.export_rows(source('exports_sales', 'shipments'), 'shipments') }}
