{{ highwater.datastream_file_changes(source('datastream_crm', 'contacts'), 'contacts') }}
