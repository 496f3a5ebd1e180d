with

changes as (

    {{ changes_to_take_in(ref('table1_changes'), 'table1') }}

),

latest as (

    {{ latest_change_per_key('changes', entity_key('table1')) }}

)

select * from latest
