{{ highwater.export_rows(source('exports_hr', 'employees'), 'employees') }}
