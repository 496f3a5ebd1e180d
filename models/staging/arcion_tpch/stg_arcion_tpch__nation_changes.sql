{{ highwater.arcion_json_changes(source('arcion_tpch', 'nation'), 'nation') }}
