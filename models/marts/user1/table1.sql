with

current_rows as (

    {{ current_rows(ref('table1_merged'), 'table1') }}

)

select * from current_rows
