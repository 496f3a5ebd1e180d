{{ highwater.current_rows(ref('suppliers_merged'), 'suppliers') }}
