with

current_rows as (

    {{ highwater.current_rows(ref('stock_levels_merged'), 'stock_levels') }}

)

select * from current_rows
