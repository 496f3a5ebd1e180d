with

current_rows as (

    {{ highwater.current_rows(ref('orders_merged'), 'orders') }}

)

select * from current_rows
