with

current_rows as (

    {{ highwater.current_rows(ref('region_merged'), 'region') }}

)

select * from current_rows
