with

current_rows as (

    {{ highwater.current_rows(ref('customers_merged'), 'customers') }}

)

select * from current_rows
