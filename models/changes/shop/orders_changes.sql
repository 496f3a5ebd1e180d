{{ highwater.change_log('orders', [
    ref('stg_tungsten_shop__orders_changes'),
]) }}
