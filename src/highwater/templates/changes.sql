{{ highwater.change_log('<< entity >>', [
    ref('stg_<< feed >>__<< entity >>_changes'),
]) }}
