{{ highwater.change_log('shipments', [
    ref('stg_dms_sales__shipments_changes'),
]) }}
