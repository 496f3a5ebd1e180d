with

changes as (

    {{ changes_to_take_in(ref('employees_changes'), 'employees') }}

),

latest as (

    {{ latest_change_per_key('changes', 'employees', this) }}

)

select * from latest
