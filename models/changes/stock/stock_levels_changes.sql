{{ highwater.change_log('stock_levels', [
    ref('stg_dms_stock__stock_levels_changes'),
]) }}
