with

current_rows as (

    {{ highwater.current_rows(ref('invoices_merged'), 'invoices') }}

)

select * from current_rows
