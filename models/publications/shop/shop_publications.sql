with

complete as (

    {{ highwater.publication('shop', [
        ref('items_changes'),
        ref('orders_changes'),
    ]) }}

)

select * from complete
