{{ config(schema='candidate' if var('candidate', false) else none) }}

with

current_rows as (

    {{ highwater.current_rows(ref('orders_merged'), 'orders', ref('shop_publications'), ref('orders_changes')) }}

)

select * from current_rows
