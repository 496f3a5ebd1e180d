{{ highwater.export_rows(source('exports_user1', 'customers'), 'customers') }}
