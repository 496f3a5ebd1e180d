{{ highwater.change_log('table1', [
    ref('stg_datastream_user1__table1_changes'),
]) }}
