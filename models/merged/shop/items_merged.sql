with

changes as (

    {{ highwater.changes_to_take_in(ref('items_changes'), 'items', ref('shop_publications')) }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'items', this) }}

)

select * from latest
