with

changes as (

    {{ highwater.changes_to_take_in(ref('payments_changes'), 'payments') }}

),

latest as (

    {{ highwater.latest_change_per_key('changes', 'payments', this) }}

)

select * from latest
