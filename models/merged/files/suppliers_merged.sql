with

changes as (

    {{ highwater.changes_to_take_in(ref('suppliers_changes'), 'suppliers') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'suppliers', this) }}

)

select * from latest
