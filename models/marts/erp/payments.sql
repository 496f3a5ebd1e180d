{{ highwater.current_rows(ref('payments_merged'), 'payments') }}
