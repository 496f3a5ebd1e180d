{{ highwater.base_rows(ref('table1_changes'), 'table1') }}
