with

current_rows as (

    {{ highwater.current_rows(ref('suppliers_merged'), 'suppliers') }}

)

select * from current_rows
