with

changes as (

    {{ changes_to_take_in(ref('suppliers_changes'), 'suppliers') }}

),

latest as (

    {{ latest_change_per_key('changes', 'suppliers', this) }}

)

select * from latest
