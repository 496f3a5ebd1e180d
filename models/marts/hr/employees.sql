with

current_rows as (

    {{ current_rows(ref('employees_merged'), 'employees') }}

)

select * from current_rows
