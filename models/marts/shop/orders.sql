{{ config(schema='candidate' if var('candidate', false) else none) }}
{{ highwater.current_rows(ref('orders_merged'), 'orders', ref('shop_publications'), ref('orders_changes')) }}
