{{ highwater.current_rows(ref('<< entity >>_merged'), '<< entity >>') }}
