with

changes as (

    {{ changes_to_take_in(ref('customers_changes'), 'customers') }}

),

latest as (

    {{ latest_change_per_key('changes', 'customers', this) }}

)

select * from latest
