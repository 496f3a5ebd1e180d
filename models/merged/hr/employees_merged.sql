with

changes as (

    {{ highwater.changes_to_take_in(ref('employees_changes'), 'employees') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'employees', this) }}

)

select * from latest
