{{ highwater.dms_changes(source('dms_stock', 'stock_levels'), 'stock_levels') }}
