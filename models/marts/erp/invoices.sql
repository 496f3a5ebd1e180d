with

current_rows as (

    {{ current_rows(ref('invoices_merged'), 'invoices') }}

)

select * from current_rows
