with

current_rows as (

    {{ highwater.current_rows(ref('<< entity >>_merged'), '<< entity >>') }}

)

select * from current_rows
