{{ highwater.base_rows(ref('invoices_changes'), 'invoices') }}
