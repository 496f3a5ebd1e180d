{{ highwater.base_rows(ref('stock_levels_changes'), 'stock_levels') }}
