{{ highwater.base_rows(ref('nation_changes'), 'nation') }}
