with

current_rows as (

    {{ highwater.current_rows(ref('nation_merged'), 'nation') }}

)

select * from current_rows
