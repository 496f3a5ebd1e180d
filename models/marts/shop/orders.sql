with

current_rows as (

    {{ current_rows(ref('orders_merged'), 'orders') }}

)

select * from current_rows
