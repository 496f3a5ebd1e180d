with

current_rows as (

    {{ current_rows(ref('shipments_merged'), 'shipments') }}

)

select * from current_rows
