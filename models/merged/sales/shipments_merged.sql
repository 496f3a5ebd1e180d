with

changes as (

    {{ highwater.changes_to_take_in(ref('shipments_changes'), 'shipments') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'shipments', this) }}

)

select * from latest
