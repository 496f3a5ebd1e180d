{{ highwater.current_rows(ref('shipments_merged'), 'shipments') }}
