{{ highwater.base_rows(ref('<< entity >>_changes'), '<< entity >>') }}
