with

current_rows as (

    {{ current_rows(ref('customers_merged'), 'customers') }}

)

select * from current_rows
