{{ highwater.base_rows(ref('customers_changes'), 'customers') }}
