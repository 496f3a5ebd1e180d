{{ highwater.export_rows(source('exports_shop', 'orders'), 'orders') }}
