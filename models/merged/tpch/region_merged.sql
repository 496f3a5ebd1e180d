with

changes as (

    {{ changes_to_take_in(ref('region_changes'), 'region') }}

),

latest as (

    {{ latest_change_per_key('changes', 'region', this) }}

)

select * from latest
