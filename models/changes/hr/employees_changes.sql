{{ highwater.change_log('employees', [
    ref('stg_datastream_hr__employees_changes'),
]) }}
