{{ highwater.base_rows(ref('region_changes'), 'region') }}
