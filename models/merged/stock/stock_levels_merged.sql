with

changes as (

    {{ highwater.changes_to_take_in(ref('stock_levels_changes'), 'stock_levels') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'stock_levels', this) }}

)

select * from latest
