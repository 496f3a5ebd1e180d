with

changes as (

    {{ changes_to_take_in(ref('nation_changes'), 'nation') }}

),

latest as (

    {{ latest_change_per_key('changes', 'nation', this) }}

)

select * from latest
