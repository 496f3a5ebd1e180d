with

changes as (

    {{ highwater.changes_to_take_in(ref('<< entity >>_changes'), '<< entity >>') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', '<< entity >>', this) }}

)

select * from latest
