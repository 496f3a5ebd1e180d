{{ highwater.base_rows(ref('shipments_changes'), 'shipments') }}
