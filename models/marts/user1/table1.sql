with

current_rows as (

    {{ highwater.current_rows(ref('table1_merged'), 'table1') }}

)

select * from current_rows
