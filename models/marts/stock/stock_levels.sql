with

current_rows as (

    {{ current_rows(ref('stock_levels_merged'), 'stock_levels') }}

)

select * from current_rows
