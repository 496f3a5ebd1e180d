{{ highwater.dms_changes(source('dms_sales', 'shipments'), 'shipments') }}
