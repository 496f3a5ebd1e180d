with

current_rows as (

    {{ current_rows(ref('nation_merged'), 'nation') }}

)

select * from current_rows
