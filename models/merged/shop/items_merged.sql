{{ highwater.base_rows(ref('items_changes'), 'items', ref('shop_publications')) }}
