{{ highwater.change_log('nation', [
    ref('stg_arcion_tpch__nation_changes'),
]) }}
