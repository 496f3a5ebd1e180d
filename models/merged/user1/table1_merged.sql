with

changes as (

    {{ highwater.changes_to_take_in(ref('table1_changes'), 'table1') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'table1', this) }}

)

select * from latest
