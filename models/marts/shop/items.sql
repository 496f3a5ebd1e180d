with

current_rows as (

    {{ current_rows(ref('items_merged'), 'items') }}

)

select * from current_rows
