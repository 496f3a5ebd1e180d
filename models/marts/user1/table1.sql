{{ highwater.current_rows(ref('table1_merged'), 'table1') }}
