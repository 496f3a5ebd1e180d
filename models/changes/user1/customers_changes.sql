{{ highwater.change_log('customers', [
    ref('stg_datastream_user1__customers_changes'),
]) }}
