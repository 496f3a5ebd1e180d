{{ highwater.export_rows(source('exports_tpch', 'nation'), 'nation') }}
