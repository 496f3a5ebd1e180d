{{ config(schema='candidate' if var('candidate', false) else none) }}
{{ highwater.current_rows(ref('items_merged'), 'items', ref('shop_publications'), ref('items_changes')) }}
