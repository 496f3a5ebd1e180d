with

changes as (

    {{ changes_to_take_in(ref('shipments_changes'), 'shipments') }}

),

latest as (

    {{ latest_change_per_key('changes', 'shipments', this) }}

)

select * from latest
