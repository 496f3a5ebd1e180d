{{ highwater.base_rows(ref('contacts_changes'), 'contacts') }}
