with

current_rows as (

    {{ current_rows(ref('<< entity >>_merged'), '<< entity >>') }}

)

select * from current_rows
