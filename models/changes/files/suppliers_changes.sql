{{ highwater.change_log('suppliers', [
    ref('stg_arcion_files__suppliers_changes'),
]) }}
