{{ highwater.arcion_json_changes(source('arcion_tpch', 'region'), 'region') }}
