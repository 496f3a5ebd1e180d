{{ highwater.datastream_changes(source('datastream_user1', 'table1'), 'table1') }}
