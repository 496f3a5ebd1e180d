{{ highwater.base_rows(ref('payments_changes'), 'payments') }}
