{{ highwater.export_rows(source('exports_files', 'suppliers'), 'suppliers') }}
