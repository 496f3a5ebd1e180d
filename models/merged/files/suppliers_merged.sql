{{ highwater.base_rows(ref('suppliers_changes'), 'suppliers') }}
