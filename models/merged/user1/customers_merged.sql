with

changes as (

    {{ highwater.changes_to_take_in(ref('customers_changes'), 'customers') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'customers', this) }}

)

select * from latest
