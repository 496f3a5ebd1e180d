with

current_rows as (

    {{ highwater.current_rows(ref('payments_merged'), 'payments') }}

)

select * from current_rows
