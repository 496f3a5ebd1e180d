{{ highwater.export_rows(source('exports_user1', 'table1'), 'table1') }}
