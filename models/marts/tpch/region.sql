with

current_rows as (

    {{ current_rows(ref('region_merged'), 'region') }}

)

select * from current_rows
