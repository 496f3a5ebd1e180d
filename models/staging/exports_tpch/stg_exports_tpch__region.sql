{{ highwater.export_rows(source('exports_tpch', 'region'), 'region') }}
