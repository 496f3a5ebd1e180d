{{ highwater.current_rows(ref('stock_levels_merged'), 'stock_levels') }}
