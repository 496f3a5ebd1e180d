{{ highwater.current_rows(ref('nation_merged'), 'nation') }}
