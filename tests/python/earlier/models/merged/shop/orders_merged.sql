with

changes as (

    {{ highwater.changes_to_take_in(ref('orders_changes'), 'orders') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'orders', this) }}

)

select * from latest
