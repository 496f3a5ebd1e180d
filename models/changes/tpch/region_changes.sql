{{ highwater.change_log('region', [
    ref('stg_arcion_tpch__region_changes'),
]) }}
