with

complete as (

    {{ publication('shop', [
        ref('items_changes'),
        ref('orders_changes'),
    ]) }}

)

select * from complete
