with

current_rows as (

    {{ highwater.current_rows(ref('shipments_merged'), 'shipments') }}

)

select * from current_rows
