{{ highwater.export_rows(source('exports_stock', 'stock_levels'), 'stock_levels') }}
