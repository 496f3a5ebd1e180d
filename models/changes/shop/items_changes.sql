{{ highwater.change_log('items', [
    ref('stg_tungsten_shop__items_changes'),
]) }}
