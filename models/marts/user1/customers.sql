{{ highwater.current_rows(ref('customers_merged'), 'customers') }}
