with

changes as (

    {{ highwater.changes_to_take_in(ref('nation_changes'), 'nation') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'nation', this) }}

)

select * from latest
