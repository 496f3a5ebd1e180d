{{ highwater.current_rows(ref('region_merged'), 'region') }}
