{{ highwater.arcion_csv_changes(source('arcion_files', 'suppliers'), 'suppliers') }}
