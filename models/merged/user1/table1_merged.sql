with

changes as (

    {{ changes_to_take_in(ref('table1_changes'), 'table1') }}

),

latest as (

    {{ latest_change_per_key('changes', 'table1', this) }}

)

select * from latest
