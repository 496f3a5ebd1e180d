{{ highwater.base_rows(ref('orders_changes'), 'orders', ref('shop_publications')) }}
