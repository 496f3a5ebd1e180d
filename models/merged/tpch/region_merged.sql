with

changes as (

    {{ highwater.changes_to_take_in(ref('region_changes'), 'region') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'region', this) }}

)

select * from latest
