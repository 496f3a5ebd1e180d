with

current_rows as (

    {{ highwater.current_rows(ref('employees_merged'), 'employees') }}

)

select * from current_rows
