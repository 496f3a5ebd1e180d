{{ highwater.export_rows(source('exports_crm', 'contacts'), 'contacts') }}
