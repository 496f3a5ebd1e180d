{{ highwater.datastream_file_changes(source('datastream_hr', 'employees'), 'employees') }}
