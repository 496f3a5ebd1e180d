{{ highwater.current_rows(ref('invoices_merged'), 'invoices') }}
