{{ config(schema='candidate' if var('candidate', false) else none) }}

with

current_rows as (

    {{ highwater.current_rows(ref('items_merged'), 'items', ref('shop_publications'), ref('items_changes')) }}

)

select * from current_rows
