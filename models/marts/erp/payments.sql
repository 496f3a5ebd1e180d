with

current_rows as (

    {{ current_rows(ref('payments_merged'), 'payments') }}

)

select * from current_rows
