{{ highwater.datastream_changes(source('datastream_user1', 'customers'), 'customers') }}
