{{ highwater.export_rows(source('exports_shop', 'items'), 'items') }}
