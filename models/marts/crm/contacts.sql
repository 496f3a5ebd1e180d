{{ highwater.current_rows(ref('contacts_merged'), 'contacts') }}
